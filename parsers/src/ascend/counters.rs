//! Counters of the cores that stand beside each kernel of a table of tasks: how much of its time each unit worked.

use std::collections::BTreeMap;

use model::{Conditions, Evidence, EvidenceClass, KernelSummary, Metric, Ns, Provenance, Severity, TraceSink};

use crate::csv_table::Row;

/// Columns of the counters, in the order in which [`Counted::add`] counts them: the time of each kind of core, then its units.
/// Ratios are of the time of that kind of core.
pub(super) const COLUMNS: &[&str] = &[
    "aicore_time(us)|aic_time(us)",
    "aiv_time(us)",
    "aic_mac_ratio|mac_ratio|aic_cube_ratio",
    "aic_scalar_ratio|scalar_ratio",
    "aic_mte1_ratio|mte1_ratio",
    "aic_mte2_ratio|mte2_ratio",
    "aic_mte3_ratio|mte3_ratio",
    "aic_fixpipe_ratio",
    "aiv_vec_ratio|vec_ratio",
    "aiv_scalar_ratio",
    "aiv_mte2_ratio",
    "aiv_mte3_ratio",
];
/// What the names of columns of counters begin with, of the cube cores and of the vector cores.
const CORES: [&str; 2] = ["aic_", "aiv_"];
/// Most columns that are named.
const NAMED: usize = 6;
/// Most kernels that are told apart.
const MOST: usize = 4096;

/// What was counted of kernels, by name and blocks.
#[derive(Default)]
pub(super) struct Counted {
    kernels: BTreeMap<(String, Option<u32>), Sum>,
    beyond: u64,
    /// Columns of counters that are none of [`COLUMNS`].
    unread: Vec<String>,
}

/// Executions of one kernel; the shares of its units are weighted by its time.
#[derive(Default)]
struct Sum {
    count: u64,
    total: Ns,
    range: Option<(Ns, Ns)>,
    time: f64,
    compute: f64,
    memory: f64,
    scalar: f64,
}

impl Counted {
    /// Notes which counters a table has that are not read: it holds them all the same.
    pub fn head(&mut self, header: &[String]) {
        let read = |column: &str| COLUMNS.iter().any(|known| known.split('|').any(|known| known == column));
        let counters = header.iter().filter(|column| CORES.iter().any(|core| column.starts_with(core)));
        self.unread = counters.filter(|column| !read(column) && !column.ends_with("_total_cycles")).cloned().collect();
    }

    /// Adds a kernel of so many ns, whose counters stand from cell `first` on; nothing where none was counted.
    pub fn add(&mut self, name: &str, blocks: Option<i64>, dur: Ns, row: Row<'_>, first: usize) {
        let cell = |at: usize| row.number(first + at).filter(|value| *value >= 0.0);
        let most = |cells: &[usize]| cells.iter().filter_map(|at| cell(*at)).reduce(f64::max);
        // A kernel of both kinds of cores takes as long as the slower kind.
        let vector = cell(1).unwrap_or(0.0) > cell(0).unwrap_or(0.0);
        let (compute, memory, scalar) =
            if vector { (cell(8), most(&[10, 11]), cell(9)) } else { (most(&[2, 8]), most(&[4, 5, 6, 7]), cell(3)) };
        if compute.is_none() && memory.is_none() && scalar.is_none() {
            return;
        }
        let key = (name.to_owned(), blocks.and_then(|blocks| u32::try_from(blocks).ok()).filter(|blocks| *blocks > 0));
        if self.kernels.len() >= MOST && !self.kernels.contains_key(&key) {
            self.beyond += 1;
            return;
        }
        let sum = self.kernels.entry(key).or_default();
        let time = dur.max(0) as f64;
        sum.count += 1;
        sum.total = sum.total.saturating_add(dur);
        let (least, longest) = sum.range.unwrap_or((dur, dur));
        sum.range = Some((least.min(dur), longest.max(dur)));
        sum.time += time;
        sum.compute += time * compute.unwrap_or(0.0);
        sum.memory += time * memory.unwrap_or(0.0);
        sum.scalar += time * scalar.unwrap_or(0.0);
    }

    /// Hands the sums on.
    pub fn tell(self, sink: &mut dyn TraceSink) {
        if self.kernels.is_empty() && !self.unread.is_empty() {
            let mut names = self.unread.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
            if self.unread.len() > NAMED {
                names.push_str(", …");
            }
            let key = Evidence::unread(EvidenceClass::Counters);
            sink.manifest(&key, &names, Provenance::Observed);
        }
        for ((name, blocks), sum) in self.kernels {
            let percent = |share: f64| 100.0 * share / sum.time.max(f64::MIN_POSITIVE);
            let kernel = sink.intern(&name);
            sink.summary(KernelSummary {
                count: sum.count,
                total: Some(sum.total),
                range: sum.range,
                grid: blocks.map(|blocks| [blocks, 1, 1]),
                metrics: vec![
                    (Metric::Compute, percent(sum.compute)),
                    (Metric::Memory, percent(sum.memory)),
                    (Metric::Scalar, percent(sum.scalar)),
                ],
                ..KernelSummary::of(kernel, Conditions::Counted)
            });
        }
        if self.beyond > 0 {
            sink.stat("ascend.counters_beyond_limit", Severity::Notice, self.beyond, None);
        }
    }
}
