//! Counters of the cores that a profile has of each kernel, beside it in a table of tasks or by its id in a database: how much
//! of its time each unit worked, and whatever else was counted.

use std::collections::BTreeMap;

use model::{Conditions, KernelSummary, Metric, Ns, Severity, TraceSink};
use rustc_hash::FxHashMap;

use crate::csv_table::{Row, Table};

/// Counters that say how much each unit worked: the time of each kind of core, then the ratios of its units, which are of
/// the time of that kind of core. Spellings of tables and of databases stand side by side.
const UNITS: [&str; 12] = [
    "aicore_time(us)|aic_time(us)|aic_total_time",
    "aiv_time(us)|aiv_total_time",
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
/// What the names of columns of counters begin with: those of the cube cores, of the vector cores, and of the share of both.
const BEGIN: [&str; 4] = ["aic_", "aiv_", "aicore_time", "cube_utilization"];
/// What they end with on chips whose cores are of one kind, which have no prefix.
const END: [&str; 5] = ["_ratio", "_rate", "_bw(gb/s)", "_fops", "_cycles"];
/// Most counters that are told apart; a profile has some thirty.
const MOST_NAMES: usize = 1024;
/// Most values that are summed: kernels times counters.
const MOST: usize = 1 << 20;

/// What was counted of kernels, by name and blocks.
#[derive(Default)]
pub(super) struct Counted {
    kernels: BTreeMap<(String, Option<u32>), Sum>,
    beyond: u64,
    names: Vec<String>,
    ids: FxHashMap<String, usize>,
    /// Place in [`UNITS`] of each name that has one.
    units: Vec<Option<usize>>,
    /// Columns of the table that is being read, and the names they are of.
    columns: Vec<(usize, usize)>,
    values: Vec<(usize, f64)>,
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
    /// Sum of each counter, and how many executions have it.
    counters: Vec<(f64, u32)>,
}

impl Counted {
    /// Takes the columns of a table that are counters.
    pub fn head(&mut self, table: &Table) {
        let is_counter = |column: &str| {
            let begins = BEGIN.iter().any(|begin| column.starts_with(begin));
            !column.contains(' ') && (begins || END.iter().any(|end| column.ends_with(end)))
        };
        let columns = table.header().iter().zip(table.titles()).enumerate();
        let counters: Vec<(usize, String)> =
            columns.filter(|(_, (column, _))| is_counter(column)).map(|(at, (_, title))| (at, title.clone())).collect();
        self.columns = counters.into_iter().filter_map(|(at, title)| Some((at, self.name(&title)?))).collect();
    }

    /// The number of a counter; `None` where it would be one too many.
    pub fn name(&mut self, name: &str) -> Option<usize> {
        if let Some(known) = self.ids.get(name) {
            return Some(*known);
        }
        let id = self.names.len();
        if id >= MOST_NAMES {
            return None;
        }
        let lower = name.to_ascii_lowercase();
        self.units.push(UNITS.iter().position(|names| names.split('|').any(|known| known == lower)));
        self.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        Some(id)
    }

    /// Adds a kernel of so many ns with the counters of its row; nothing where none was counted.
    pub fn add_row(&mut self, name: &str, blocks: Option<i64>, dur: Ns, row: Row<'_>) {
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        values.extend(self.columns.iter().filter_map(|(at, id)| Some((*id, row.number_in(*at)?))));
        self.add(name, blocks, dur, &values);
        self.values = values;
    }

    /// Adds a kernel of so many ns with counters by their numbers.
    pub fn add(&mut self, name: &str, blocks: Option<i64>, dur: Ns, values: &[(usize, f64)]) {
        let mut units = [None; UNITS.len()];
        for (id, value) in values.iter().filter(|(_, value)| *value >= 0.0) {
            if let Some(unit) = self.units.get(*id).copied().flatten().and_then(|unit| units.get_mut(unit)) {
                *unit = Some(*value);
            }
        }
        if values.is_empty() {
            return;
        }
        let key = (name.to_owned(), blocks.and_then(|blocks| u32::try_from(blocks).ok()).filter(|blocks| *blocks > 0));
        if (self.kernels.len() + 1) * self.names.len() > MOST && !self.kernels.contains_key(&key) {
            self.beyond += 1;
            return;
        }
        let sum = self.kernels.entry(key).or_default();
        sum.count += 1;
        sum.total = sum.total.saturating_add(dur);
        let (least, longest) = sum.range.unwrap_or((dur, dur));
        sum.range = Some((least.min(dur), longest.max(dur)));
        sum.counters.resize(self.names.len(), (0.0, 0));
        for (id, value) in values {
            if let Some((total, count)) = sum.counters.get_mut(*id) {
                (*total, *count) = (*total + value, count.saturating_add(1));
            }
        }
        let [cube, vector, mac, scalar, mte1, mte2, mte3, fixpipe, vec, own_scalar, own_mte2, own_mte3] = units;
        let most = |cells: &[Option<f64>]| cells.iter().copied().flatten().reduce(f64::max);
        // A kernel of both kinds of cores takes as long as the slower kind.
        let (compute, memory, scalar) = if vector.unwrap_or(0.0) > cube.unwrap_or(0.0) {
            (vec, most(&[own_mte2, own_mte3]), own_scalar)
        } else {
            (most(&[mac, vec]), most(&[mte1, mte2, mte3, fixpipe]), scalar)
        };
        if compute.is_some() || memory.is_some() || scalar.is_some() {
            let time = dur.max(0) as f64;
            sum.time += time;
            sum.compute += time * compute.unwrap_or(0.0);
            sum.memory += time * memory.unwrap_or(0.0);
            sum.scalar += time * scalar.unwrap_or(0.0);
        }
    }

    /// Hands the sums on.
    pub fn tell(self, sink: &mut dyn TraceSink) {
        for ((name, blocks), sum) in self.kernels {
            let percent = |share: f64| 100.0 * share / sum.time;
            let units = [
                (Metric::Compute, percent(sum.compute)),
                (Metric::Memory, percent(sum.memory)),
                (Metric::Scalar, percent(sum.scalar)),
            ];
            let kernel = sink.intern(&name);
            let means = self.names.iter().zip(&sum.counters).filter(|(_, (_, count))| *count > 0);
            let means = means.map(|(name, (total, count))| (name, total / f64::from(*count)));
            let counters: Vec<_> = means.map(|(name, mean)| (sink.intern(name), mean)).collect();
            sink.summary(KernelSummary {
                count: sum.count,
                total: Some(sum.total),
                range: sum.range,
                grid: blocks.map(|blocks| [blocks, 1, 1]),
                metrics: if sum.time > 0.0 { units.to_vec() } else { Vec::new() },
                counters,
                ..KernelSummary::of(kernel, Conditions::Counted)
            });
        }
        if self.beyond > 0 {
            sink.stat("ascend.counters_beyond_limit", Severity::Notice, self.beyond, None);
        }
    }
}
