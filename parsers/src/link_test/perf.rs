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
        lead: usize,
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
            return Some(Self::Nccl { lead: *first, group: second - first, redop: titles.contains(&"redop") });
        }
        (line.contains("data_size(Bytes)") && line.contains("alg_bandwidth(GB/s)")).then_some(Self::Hccl)
    }
}

/// What became of a line.
pub enum Taken {
    /// Measured sizes.
    Row(Vec<LinkProbe>),
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
    /// Cells of a row that lines of the debug log tore apart, as far as they have come.
    torn: Vec<String>,
}

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
        if let Some(rank) = text.strip_prefix("#").map(str::trim).and_then(|t| t.strip_prefix("Rank")) {
            self.ranks.extend(rank.split_whitespace().next().and_then(|n| n.parse::<u32>().ok()));
            return Taken::Fact;
        }
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            return if text.starts_with('#') { Taken::Fact } else { Taken::Nothing };
        }
        match self.header {
            Some(Header::Nccl { lead, group, redop }) => self.pieces(text, (lead, group), redop),
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

    fn ranks(&self) -> Option<u32> {
        // Nobody else of the job prints: the ranks are listed where the test lists them, else mpirun's number holds.
        if self.ranks.is_empty() { self.processes } else { u32::try_from(self.ranks.len()).ok() }
    }

    /// Takes a row, or a piece of one: with NCCL_DEBUG the log writes into the middle of the row that the test is printing.
    fn pieces(&mut self, text: &str, (lead, group): (usize, usize), redop: bool) -> Taken {
        let (own, is_torn) = before_log(text);
        let cells: Vec<&str> = own.split_whitespace().collect();
        let is_start = cells.get(2).is_some_and(|kind| kind.starts_with(|c: char| c.is_ascii_alphabetic()));
        let whole = cells.len() >= lead + 2 * group && (is_start || lead < 3);
        if whole && !is_torn {
            self.torn.clear();
            return self.nccl(own, group, redop);
        }
        let lost = !self.torn.is_empty();
        if is_start {
            self.torn = cells.into_iter().map(str::to_owned).collect();
            return if lost { Taken::Unreadable } else { Taken::Fact };
        }
        if !lost {
            return if is_torn { Taken::Nothing } else { Taken::Unreadable };
        }
        self.torn.extend(cells.into_iter().map(str::to_owned));
        if self.torn.len() < lead + 2 * group {
            return Taken::Fact;
        }
        let row = std::mem::take(&mut self.torn);
        if row.len() > lead + 2 * group { Taken::Unreadable } else { self.nccl(&row.join(" "), group, redop) }
    }

    /// Rows whose rest never came.
    pub fn left(&self) -> u64 {
        u64::from(!self.torn.is_empty())
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

/// What stands before a line of the debug log (`host:pid:tid [n] NCCL INFO …`) that begins within `text`, and whether one does.
/// The log begins where the test stopped, without a blank: `-1node0:70:70 [1] NCCL`.
fn before_log(text: &str) -> (&str, bool) {
    let Some(log) = [" NCCL ", " RCCL "].iter().find_map(|name| text.find(name)) else { return (text, false) };
    let before = &text[..log];
    let Some(host) = before.split_whitespace().find(|word| word.split(':').count() == 3) else { return (text, false) };
    let at = before.find(host).unwrap_or(0);
    let number = host.bytes().take_while(|b| b.is_ascii_digit() || matches!(b, b'-' | b'.')).count();
    (&text[..at + number], true)
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
