//! Rows of `nccl-tests`, `rccl-tests` and `hccl_test`.

use std::collections::BTreeSet;

use model::{Ns, Reading, time::parse_decimal};

use super::LinkProbe;

/// What a line's titles say of the rows below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Two groups of time, algbw, busbw and errors, out of place and in place.
    Nccl {
        /// Titles before the first group.
        first: usize,
        /// Titles of one group.
        group: usize,
        /// Whether rows name a reduction.
        redop: bool,
    },
    /// Size, time, algorithm bandwidth and check, between bars.
    Hccl,
}

impl Header {
    /// The header that a line is.
    pub fn of(line: &str) -> Option<Self> {
        let titles: Vec<&str> = line.trim_start_matches(['#', ' ']).split_whitespace().collect();
        if titles.first() == Some(&"size") && titles.contains(&"algbw") && titles.contains(&"busbw") {
            let times: Vec<usize> = titles.iter().enumerate().filter(|(_, t)| **t == "time").map(|(i, _)| i).collect();
            let [first, second] = times.as_slice() else { return None };
            let (group, redop) = (second - first, titles.contains(&"redop"));
            return Some(Self::Nccl { first: *first, group, redop });
        }
        (line.contains("data_size(Bytes)") && line.contains("alg_bandwidth(GB/s)")).then_some(Self::Hccl)
    }
}

/// What became of a line.
pub enum Taken {
    /// Measured sizes.
    Row(Vec<LinkProbe>),
    /// Measured sizes, after a row that was torn and whose end never came.
    RowAfterLoss(Vec<LinkProbe>),
    /// Something about the test.
    Fact,
    /// A row that could not be read.
    Unreadable,
    /// Not of a test.
    Nothing,
}

/// A test while its output is read.
#[derive(Default)]
pub struct Test {
    header: Option<Header>,
    op: Option<String>,
    ranks: BTreeSet<u32>,
    processes: Option<u32>,
    devices: BTreeSet<String>,
    /// Hosts that the lines of a debug log begin with: where one stands behind a row, the row was torn.
    hosts: BTreeSet<String>,
    /// The first cells of a row that a debug log tore.
    torn: Option<Vec<String>>,
}

/// Most hosts that are remembered.
const MAX_HOSTS: usize = 1 << 10;
/// Most models of devices that are remembered.
const MAX_DEVICES: usize = 64;
/// How far the bandwidth of a row that was put together may be from its size over its time: both are printed rounded.
const SAME: f64 = 0.02;

/// Programs of the tests end so.
const ENDS: [&str; 2] = ["_perf", "_test"];

impl Test {
    /// Takes a line.
    pub fn take(&mut self, line: &str) -> Taken {
        if let Some(header) = Header::of(line) {
            self.header = Some(header);
            return Taken::Fact;
        }
        if self.command(line) {
            return Taken::Fact;
        }
        let text = line.trim();
        self.host(text);
        if let Some(rank) = text.strip_prefix("#").map(str::trim).and_then(|t| t.strip_prefix("Rank")) {
            self.ranks.extend(rank.split_whitespace().next().and_then(|n| n.parse::<u32>().ok()));
            // `0 Group 0 Pid 100 on node0 device 0 [0000:17:00] NVIDIA A100 80GB PCIe`.
            let device = rank.split_once("] ").map(|(_, name)| name.trim()).filter(|name| !name.is_empty());
            if let Some(device) = device.filter(|_| self.devices.len() < MAX_DEVICES) {
                self.devices.insert(device.to_owned());
            }
            return Taken::Fact;
        }
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            return if text.starts_with('#') { Taken::Fact } else { Taken::Nothing };
        }
        match self.header {
            Some(Header::Nccl { first, group, redop }) => self.torn_or_whole(text, (first, group), redop),
            Some(Header::Hccl) => self.hccl(text),
            None => Taken::Nothing,
        }
    }

    /// Name of the collective and number of processes, from the command or the test's own first line.
    fn command(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        let program = words.iter().map(|word| word.rsplit('/').next().unwrap_or(word)).find_map(|word| {
            let name = ENDS.iter().find_map(|end| word.strip_suffix(end))?;
            let known = name.contains("reduce") || name.contains("gather") || name.contains("all");
            (known || matches!(name, "broadcast" | "scatter" | "sendrecv")).then_some(name)
        });
        let Some(name) = program else { return false };
        self.op = Some(name.replace('-', "_"));
        // A new test: what was said of the ranks of the one before does not hold.
        self.ranks.clear();
        let count = words.windows(2).find(|pair| matches!(pair[0], "-n" | "-np")).and_then(|pair| pair[1].parse().ok());
        self.processes = count.filter(|_| line.contains("mpirun")).or(self.processes);
        true
    }

    /// Models of the devices that took part.
    pub fn devices(self) -> BTreeSet<String> {
        self.devices
    }

    fn ranks(&self) -> Option<u32> {
        // Nobody else of the job prints: the ranks are listed where the test lists them, else mpirun's number holds.
        if self.ranks.is_empty() { self.processes } else { u32::try_from(self.ranks.len()).ok() }
    }

    /// Remembers the host that a line of a debug log begins with: `node0:100:101 [0] NCCL INFO …`.
    fn host(&mut self, text: &str) {
        if !is_log(text) || self.hosts.len() >= MAX_HOSTS {
            return;
        }
        let mut parts = text.split_whitespace().next().unwrap_or_default().split(':');
        let number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u32>().is_ok());
        if let Some(host) = parts.next().filter(|host| !host.is_empty())
            && number(parts.next())
            && number(parts.next())
        {
            self.hosts.insert(host.to_owned());
        }
    }

    /// What of a line is of the test, where a line of a debug log follows on the same one.
    fn own<'t>(&self, text: &'t str) -> &'t str {
        if !is_log(text) {
            return text;
        }
        let begins = |host: &String| text.find(&format!("{host}:"));
        let at = self.hosts.iter().filter_map(begins).min().unwrap_or_default();
        text.get(..at).unwrap_or_default()
    }

    /// A row, or a part of one: a debug log on the same stream tears a row into its size, and each of its groups.
    fn torn_or_whole(&mut self, text: &str, (first, group): (usize, usize), redop: bool) -> Taken {
        let own = self.own(text);
        let cells: Vec<&str> = own.split_whitespace().collect();
        let lost = |before: Option<Vec<String>>| if before.is_some() { Taken::Unreadable } else { Taken::Nothing };
        if cells.is_empty() {
            return Taken::Nothing;
        }
        if let Some(mut row) = self.torn.take_if(|_| cells.len() == group) {
            row.extend(cells.into_iter().map(str::to_owned));
            if row.len() < first + 2 * group {
                self.torn = Some(row);
                return Taken::Nothing;
            }
            return match self.nccl(&row.join(" "), group, redop) {
                Taken::Row(rows) if rows.iter().all(is_plausible) => Taken::Row(rows),
                _ => Taken::Unreadable,
            };
        }
        if own.len() == text.len() {
            return match (self.torn.take(), self.nccl(own, group, redop)) {
                // Rows of which one was lost: the whole one counts, and so does the loss.
                (Some(_), Taken::Row(rows)) => Taken::RowAfterLoss(rows),
                (_, taken) => taken,
            };
        }
        if cells.len() == first {
            return lost(self.torn.replace(cells.into_iter().map(str::to_owned).collect()));
        }
        self.torn = None;
        Taken::Unreadable
    }

    /// Rows that were torn and whose end never came.
    pub fn unfinished(&self) -> u64 {
        u64::from(self.torn.is_some())
    }

    fn nccl(&self, text: &str, group: usize, redop: bool) -> Taken {
        let cells: Vec<&str> = text.split_whitespace().collect();
        let Some(from) = cells.len().checked_sub(2 * group).filter(|from| *from >= 3 && group >= 3) else {
            return Taken::Unreadable;
        };
        let Some(bytes) = cells.first().and_then(|cell| cell.parse().ok()) else { return Taken::Unreadable };
        let dtype = cells.get(2).filter(|_| from > 2).map(|cell| (*cell).to_owned());
        let rows = [(from, false), (from + group, true)].into_iter().map(|(at, in_place)| {
            let cell = |i: usize| cells.get(at + i).copied().unwrap_or("");
            LinkProbe {
                op: self.op.clone(),
                ranks: self.ranks(),
                bytes,
                dtype: dtype.clone(),
                in_place: Some(in_place),
                time: time(cell(0)),
                algbw: bandwidth(cell(1)),
                busbw: bandwidth(cell(2)),
                correct: cell(3)
                    .parse::<f64>()
                    .ok()
                    .filter(|_| group > 3)
                    .map(|wrong| wrong == 0.0 || !redop && wrong < 1e-3),
            }
        });
        Taken::Row(rows.collect())
    }

    fn hccl(&self, text: &str) -> Taken {
        let cells: Vec<&str> = text.split('|').map(str::trim).collect();
        let [bytes, mean, algbw, check, ..] = cells.as_slice() else { return Taken::Unreadable };
        let Ok(bytes) = bytes.parse() else { return Taken::Unreadable };
        Taken::Row(vec![LinkProbe {
            op: self.op.clone(),
            ranks: self.ranks(),
            bytes,
            dtype: None,
            in_place: None,
            time: time(mean),
            algbw: bandwidth(algbw),
            busbw: Reading::Unavailable("hccl_test prints algorithm bandwidth only".to_owned()),
            correct: match *check {
                "success" => Some(true),
                "failed" => Some(false),
                _ => None,
            },
        }])
    }
}

/// Whether a line is one of a debug log, or has one behind it.
pub fn is_log(line: &str) -> bool {
    line.contains(" NCCL INFO ")
}

/// Whether the bandwidth is that of the size and the time, as far as both are told and large enough to be told exactly.
fn is_plausible(probe: &LinkProbe) -> bool {
    match (probe.time.value(), probe.algbw.value()) {
        (Some(time), Some(algbw)) if *time > 0 && *algbw >= 1.0 => {
            let computed = probe.bytes as f64 / *time as f64;
            (computed - algbw).abs() <= SAME * algbw
        }
        _ => true,
    }
}

/// Microseconds.
fn time(cell: &str) -> Reading<Ns> {
    match parse_decimal(cell.as_bytes(), 3) {
        Ok((ns, _)) if ns >= 0 => Reading::Value(ns),
        _ => Reading::Unavailable(format!("the test shows '{cell}'")),
    }
}

fn bandwidth(cell: &str) -> Reading<f64> {
    match cell.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Reading::Value(value),
        _ => Reading::Unavailable(format!("the test shows '{cell}'")),
    }
}
