//! Tables drawn with `|` and rules, in which a device takes several lines: the layout of nvidia-smi, which most vendors
//! follow. The header has as many lines, and names what stands in each cell.

use model::Reading;

use super::{
    DeviceReadings, Metric, Readout,
    cell::{memory, pair, unavailable, with_unit},
};

/// The lines between two rules, cell by cell.
pub type Block<'a> = Vec<Vec<&'a str>>;

/// Header and device blocks of a table, up to the list of processes.
pub struct Table<'a> {
    /// The header; empty when the text begins below it.
    pub header: Block<'a>,
    /// A block per device; its first cell begins with a number.
    pub devices: Vec<Block<'a>>,
    /// Lines of other blocks that begin with a number.
    pub unread: u64,
}

/// First words of a header.
const FIRST: [&str; 6] = ["npu", "gpu", "xpu", "card", "id", "dev"];

/// Reads the blocks of a text.
pub fn table(text: &str) -> Table<'_> {
    let mut table = Table { header: Vec::new(), devices: Vec::new(), unread: 0 };
    let mut block: Block<'_> = Vec::new();
    for line in text.lines() {
        if is_rule(line) {
            table.take(std::mem::take(&mut block));
        } else if line.trim_start().starts_with("Processes") || (line.contains("Process") && line.contains('|')) {
            break;
        } else if line.contains('|') {
            block.push(cells(line));
        } else {
            table.take(std::mem::take(&mut block));
        }
    }
    table.take(block);
    table
}

impl<'a> Table<'a> {
    fn take(&mut self, block: Block<'a>) {
        let Some(first) = block.first().and_then(|line| line.first()).map(|cell| cell.trim()) else { return };
        let word = first.split_whitespace().next().unwrap_or("");
        if FIRST.iter().any(|name| word.eq_ignore_ascii_case(name)) && first.to_ascii_lowercase().contains("name") {
            self.header = block;
        } else if word.parse::<u32>().is_ok() {
            self.devices.push(block);
        } else {
            // Documents leave devices out with three dots.
            self.unread +=
                block.iter().filter(|line| line.first().is_some_and(|cell| cell.trim() == "...")).count() as u64;
        }
    }
}

/// A line of nothing but rule characters.
fn is_rule(line: &str) -> bool {
    let line = line.trim().trim_start_matches("> ");
    line.len() > 2 && line.chars().all(|c| matches!(c, '+' | '-' | '=' | '|' | ' ')) && line.contains(['-', '='])
}

/// Cells of a line; what stands before the first bar of a drawn frame is none.
fn cells(line: &str) -> Vec<&str> {
    let line = line.trim_end();
    let framed = line.trim_start_matches(['>', ' ']).starts_with('|');
    let inner = if framed { line.split_once('|').map_or(line, |(_, rest)| rest).trim_end_matches('|') } else { line };
    inner.split('|').collect()
}

/// The parts of a cell that two spaces or more separate: names hold single ones.
pub fn parts(cell: &str) -> Vec<&str> {
    cell.split("  ").map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Number of the card, product name and bus address of a device block.
pub fn device(header: &Block<'_>, block: &Block<'_>) -> Option<DeviceReadings> {
    let line = block.first()?;
    let found = parts(line.first()?);
    let (card, rest) = match found.first()?.split_once(' ') {
        // A narrow column leaves a single space behind the number.
        Some((card, name)) => (card, Some(name.trim())),
        None => (*found.first()?, None),
    };
    let mut device = DeviceReadings::new(card.parse().ok()?);
    let names = header.first().and_then(|line| line.first()).map(|cell| parts(cell)).unwrap_or_default();
    let at = names.iter().position(|name| name.eq_ignore_ascii_case("name")).unwrap_or(1);
    device.name = rest.or(found.get(at).copied()).map(str::to_owned);
    let address = |cell: &&&str| {
        cell.trim().matches(':').count() >= 2 || cell.trim().matches(':').count() == 1 && cell.contains('.')
    };
    let bus = block.iter().flat_map(|line| line.iter().skip(1)).find(address);
    device.bus = bus.and_then(|cell| cell.split_whitespace().next()).map(str::to_owned);
    Some(device)
}

/// Reads every device by what the header says of each cell.
pub fn read(text: &str) -> Readout {
    let table = table(text);
    let mut out = Readout { unread: table.unread, ..Readout::default() };
    for block in &table.devices {
        let Some(mut found) = device(&table.header, block) else {
            out.unread += 1;
            continue;
        };
        for (i, line) in table.header.iter().enumerate() {
            for (j, title) in line.iter().enumerate() {
                let cell = block.get(i).and_then(|line| line.get(j)).copied();
                fill(&mut found, title, cell.unwrap_or(""));
            }
        }
        out.devices.push(found);
    }
    out
}

/// Reads a cell by its title, which may name several quantities.
fn fill(device: &mut DeviceReadings, title: &str, cell: &str) {
    let title = title.to_ascii_lowercase();
    let part = |unit: &str| parts(cell).into_iter().find(|part| part.contains(unit)).unwrap_or(cell);
    if title.contains("pwr") || title.contains("power") {
        let [power, cap] = watts(cell);
        device.put(Metric::Power, power);
        if title.contains("cap") {
            device.put(Metric::PowerCap, cap);
        }
    }
    if title.contains("temp") {
        device.put(Metric::Temperature, with_unit(cell, &["C", "°C"]));
    }
    if title.contains("util") || title.contains("%gpu") || title.contains("dused") {
        device.put(Metric::Utilisation, with_unit(cell, &["%"]));
    }
    if title.contains("clock-sm") {
        device.put(Metric::Clock, with_unit(cell, &["MHz"]));
    }
    let memory_cell = title.contains("memory-usage") && !title.contains("vmem") || title.trim_end().ends_with(" mem");
    if memory_cell {
        let [used, total] = memory(part("iB"));
        device.put(Metric::MemoryUsed, used);
        device.put(Metric::MemoryTotal, total);
    }
}

/// Power drawn and allowed: what stands before and behind the last slash between watts, or two numbers of watts.
fn watts(cell: &str) -> [Reading<f64>; 2] {
    let Some(w) = cell.find(['W', 'w']) else { return [unavailable(cell), unavailable(cell)] };
    let from = cell.get(..w).unwrap_or("").trim_end().trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    pair(cell.get(from..).unwrap_or(""))
}
