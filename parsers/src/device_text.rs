//! What vendors' device tools print, read into typed readings: no trace format, but what a live session samples.
//!
//! The tools print for people and change their layout between versions. So no text is an error: what a header names and a
//! row does not hold is unavailable with the text that stood there, and rows of no known shape are counted.
//!
//! | module | owns |
//! | --- | --- |
//! | `cell` | quantities inside a cell |
//! | `boxes` | tables drawn with `\|` and rules, several lines per device |
//! | `columns` | tables of aligned columns, and `key : value` lines |
//! | one per tool | what its columns mean |

use model::Reading;

mod boxes;
mod cell;
mod cnmon;
mod columns;
mod efsmi;
mod ixsmi;
mod mthreads_gmi;
mod mx_smi;
mod npu_smi;
mod nvidia_smi;
mod rocm_smi;
#[cfg(test)]
mod tests;
mod xpu_smi;

/// A quantity that a tool shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Metric {
    /// Share of time in which the compute units worked.
    Utilisation,
    /// Share of the device memory in use.
    MemoryUtilisation,
    /// Share of the memory bandwidth used.
    MemoryBandwidth,
    /// Device memory in use.
    MemoryUsed,
    /// Device memory there is.
    MemoryTotal,
    /// Power drawn.
    Power,
    /// Power allowed.
    PowerCap,
    /// Temperature of the chip.
    Temperature,
    /// Clock of the compute units.
    Clock,
    /// Clock of the memory.
    MemoryClock,
}

impl Metric {
    /// Name of the counter in captures and of the reading in a live session.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utilisation => "utilisation",
            Self::MemoryUtilisation => "memory_utilisation",
            Self::MemoryBandwidth => "memory_bandwidth",
            Self::MemoryUsed => "memory_used",
            Self::MemoryTotal => "memory_total",
            Self::Power => "power",
            Self::PowerCap => "power_cap",
            Self::Temperature => "temperature",
            Self::Clock => "clock",
            Self::MemoryClock => "memory_clock",
        }
    }

    /// Unit of the values.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Utilisation | Self::MemoryUtilisation | Self::MemoryBandwidth => "%",
            Self::MemoryUsed | Self::MemoryTotal => "B",
            Self::Power | Self::PowerCap => "W",
            Self::Temperature => "°C",
            Self::Clock | Self::MemoryClock => "MHz",
        }
    }
}

/// One device as a tool shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceReadings {
    /// Number that the tool gives the card.
    pub card: u32,
    /// Chip on the card, where cards have several.
    pub chip: Option<u32>,
    /// Product name.
    pub name: Option<String>,
    /// Bus address.
    pub bus: Option<String>,
    /// Every quantity that the text has a place for, once.
    pub readings: Vec<(Metric, Reading<f64>)>,
}

impl DeviceReadings {
    /// A device without readings.
    fn new(card: u32) -> Self {
        Self { card, ..Self::default() }
    }

    /// Adds a reading; of several places for one quantity the first one with a value holds.
    fn put(&mut self, metric: Metric, reading: Reading<f64>) {
        match self.readings.iter_mut().find(|(known, _)| *known == metric) {
            Some((_, known)) if known.value().is_none() => *known = reading,
            Some(_) => {}
            None => self.readings.push((metric, reading)),
        }
    }

    /// The reading of a quantity; `None` when the text has no place for it.
    pub fn get(&self, metric: Metric) -> Option<&Reading<f64>> {
        self.readings.iter().find(|(known, _)| *known == metric).map(|(_, reading)| reading)
    }

    /// The value of a quantity, if there is one.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.get(metric)?.value().copied()
    }
}

/// What a text holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readout {
    /// Version that the tool says it is.
    pub version: Option<String>,
    /// Devices in the order of the text.
    pub devices: Vec<DeviceReadings>,
    /// Rows that look like a device and could not be told what they are.
    pub unread: u64,
}

/// A vendor's tool.
#[derive(Debug)]
pub struct Tool {
    /// Name, which is also the command.
    pub id: &'static str,
    /// Vendor key of the platform packs.
    pub vendor: &'static str,
    /// What the command is asked for, so that it prints once all that is read here, and ends.
    pub arguments: &'static [&'static str],
    /// Whether a text is this tool's.
    pub matches: fn(&str) -> bool,
    /// Reads a text; never fails.
    pub read: fn(&str) -> Readout,
}

/// Every tool, one line each.
pub const REGISTRY: &[Tool] = &[
    npu_smi::TOOL,
    rocm_smi::TOOL,
    rocm_smi::HYGON,
    cnmon::TOOL,
    mx_smi::TOOL,
    mthreads_gmi::TOOL,
    ixsmi::TOOL,
    xpu_smi::TOOL,
    efsmi::TOOL,
    nvidia_smi::TOOL,
];

/// Longest text that is read, bytes; a node of hundreds of devices prints some 100 KiB.
const LONGEST: usize = 4 << 20;

/// Reads a text of the first tool that knows it; `None` when none does.
pub fn read(text: &str) -> Option<(&'static Tool, Readout)> {
    let text = text.get(..text.floor_char_boundary(LONGEST)).unwrap_or(text);
    let tool = REGISTRY.iter().find(|tool| (tool.matches)(text))?;
    Some((tool, (tool.read)(text)))
}

/// The word after `mark`, such as a version.
fn word_after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(mark)?;
    rest.split_whitespace().next().map(|word| word.trim_matches(['|', ':'])).filter(|word| !word.is_empty())
}
