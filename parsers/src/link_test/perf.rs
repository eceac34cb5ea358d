//! Rows of `nccl-tests`, `rccl-tests` and `hccl_test`.

use std::collections::BTreeSet;

use model::{Ns, Reading, time::parse_decimal};

use super::LinkProbe;

/// What a line's titles say of the rows below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Two groups of time, algbw, busbw and errors, out of place and in place.
    Nccl {
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
            return Some(Self::Nccl { group: second - first, redop: titles.contains(&"redop") });
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
            Some(Header::Nccl { group, redop }) => self.nccl(text, group, redop),
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
