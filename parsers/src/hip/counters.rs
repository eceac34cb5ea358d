//! Counters that HIP's profilers read of kernels: which columns of a wide table they are, the metrics that follow from them,
//! and their means where a table has too many for a value of each kernel.

use std::collections::BTreeMap;

use model::{Conditions, KernelSummary, Metric, Ns, Severity, StringId, TraceSink};

use crate::csv_table::{Row, Table};

/// Most sums of means; some kernels times two thousand counters are some ten thousand.
const MOST: usize = 1 << 20;
/// Columns of wide tables that say which kernel ran, where and when: rocprof v1 and rocprof-compute, in lower case. Those
/// that a table has again for each of its passes end with `_` and the number of the pass.
const IDENTITY: &[&str] = &[
    "accum_vgpr",
    "agent_id",
    "arch_vgpr",
    "beginns",
    "completens",
    "correlation_id",
    "dispatch_id",
    "dispatchns",
    "durationns",
    "end_timestamp",
    "endns",
    "fbar",
    "gpu-id",
    "gpu_id",
    "grd",
    "grid_size",
    "index",
    "kernel_id",
    "kernel_name",
    "kernelname",
    "lds",
    "lds_per_workgroup",
    "node",
    "obj",
    "pid",
    "process_id",
    "queue-id",
    "queue-index",
    "queue_id",
    "scr",
    "scratch_per_workitem",
    "sgpr",
    "sig",
    "start_timestamp",
    "thread_id",
    "tid",
    "vgpr",
    "wave_size",
    "wgr",
    "workgroup_size",
];

/// The columns of a wide table that are counters.
pub(crate) struct Columns {
    columns: Vec<(usize, String)>,
}

impl Columns {
    /// Those of a table: all that do not say which kernel ran.
    pub fn of(table: &Table) -> Self {
        let identity = |column: &str| {
            let pass = column.rsplit_once('_').filter(|(_, pass)| pass.parse::<u16>().is_ok());
            IDENTITY.contains(&column) || pass.is_some_and(|(of, _)| IDENTITY.contains(&of))
        };
        let counters = table.header().iter().zip(table.titles()).enumerate();
        let counters = counters.filter(|(_, (column, _))| !column.is_empty() && !identity(column));
        Self { columns: counters.map(|(at, (_, title))| (at, title.clone())).collect() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// The counters that a row has, with their names.
    pub fn read<'a>(&'a self, row: Row<'a>) -> impl Iterator<Item = (&'a str, f64)> {
        self.columns.iter().filter_map(move |(at, name)| Some((name.as_str(), row.number_in(*at)?)))
    }
}

/// Adds counters of one execution to what is known of it, and the metrics that follow from them.
pub(crate) fn add<'a>(
    sink: &mut dyn TraceSink,
    summary: &mut KernelSummary,
    counters: impl Iterator<Item = (&'a str, f64)>,
) {
    let counters: Vec<(&str, f64)> = counters.collect();
    let mean = summary.total.map(|total| total as f64 / summary.count.max(1) as f64);
    summary.metrics = metrics(&counters, mean);
    summary.counters = counters.into_iter().map(|(name, value)| (sink.intern(name), value)).collect();
}

/// The metrics that follow from the counters of one execution of so many ns. Source: derived counters of rocprofiler's
/// `metrics.xml` and of rocprofiler-sdk's `counter_defs.yaml`, by their definitions.
fn metrics(counters: &[(&str, f64)], ns: Option<f64>) -> Vec<(Metric, f64)> {
    let of = |name: &str| find(counters, name);
    let hits = || {
        let (hit, miss) = (of("TCC_HIT_sum")?, of("TCC_MISS_sum")?);
        (hit + miss > 0.0).then(|| 100.0 * hit / (hit + miss))
    };
    // Requests are counted by their length: 32, 64 and, on the MI300, 128 bytes; the MI200 names the interface EA, the MI300 EA0.
    let bytes = |ea: &str| {
        let of = |what: &str| of(&format!("TCC_{ea}_{what}_sum"));
        let (reads, short, long) = (of("RDREQ")?, of("RDREQ_32B")?, find(counters, "TCC_BUBBLE_sum").unwrap_or(0.0));
        let (writes, whole) = (of("WRREQ")?, of("WRREQ_64B")?);
        let read = 32.0 * short + 128.0 * long + 64.0 * (reads - short - long).max(0.0);
        Some(read + 64.0 * whole + 32.0 * (writes - whole).max(0.0))
    };
    // Both are in KiB.
    let told = || Some(1024.0 * (of("FETCH_SIZE")? + of("WRITE_SIZE")?));
    let bytes = told().or_else(|| bytes("EA")).or_else(|| bytes("EA0"));
    let per_second = |bytes: f64| ns.filter(|ns| *ns > 0.0).map(|ns| bytes / ns * 1e9);
    let read = || of("FETCH_SIZE").map(|fetched| 1024.0 * fetched);
    let all = [
        (Metric::L2Hit, of("L2CacheHit").or_else(hits)),
        (Metric::Occupancy, of("OccupancyPercent")),
        (Metric::VectorBusy, of("VALUBusy")),
        (Metric::LoadStoreBusy, of("MemUnitBusy")),
        (Metric::DramBytesPerSecond, bytes.and_then(per_second)),
        (Metric::DramReadBytesPerSecond, bytes.is_none().then(read).flatten().and_then(per_second)),
    ];
    all.into_iter().filter_map(|(metric, value)| Some((metric, value?))).collect()
}

/// Kernel, blocks, threads of a block.
pub(crate) type Key = (StringId, Option<[u32; 3]>, Option<[u32; 3]>);

/// Means of the counters of each kernel with each shape of launch.
pub(crate) struct Means {
    columns: Columns,
    kernels: BTreeMap<Key, Sum>,
    values: u64,
    beyond: u64,
}

/// Executions of one kernel, and of each counter the sum and how many executions have it.
struct Sum {
    count: u64,
    total: Ns,
    range: (Ns, Ns),
    counters: Vec<(f64, u32)>,
}

impl Means {
    pub fn new(columns: Columns) -> Self {
        Self { columns, kernels: BTreeMap::new(), values: 0, beyond: 0 }
    }

    /// Adds an execution of so many ns.
    pub fn add(&mut self, kernel: Key, dur: Ns, row: Row<'_>) {
        if self.columns.len() == 0 {
            return;
        }
        if (self.kernels.len() + 1) * self.columns.len() > MOST && !self.kernels.contains_key(&kernel) {
            self.beyond += 1;
            return;
        }
        let empty = || Sum { count: 0, total: 0, range: (dur, dur), counters: vec![(0.0, 0); self.columns.len()] };
        let sum = self.kernels.entry(kernel).or_insert_with(empty);
        sum.count += 1;
        sum.total = sum.total.saturating_add(dur);
        sum.range = (sum.range.0.min(dur), sum.range.1.max(dur));
        for ((at, _), (total, count)) in self.columns.columns.iter().zip(&mut sum.counters) {
            if let Some(value) = row.number_in(*at) {
                (*total, *count) = (*total + value, count.saturating_add(1));
                self.values += 1;
            }
        }
    }

    /// Hands the means on; the ledger row `table` counts values read and means kept.
    pub fn tell(self, sink: &mut dyn TraceSink, format: &str, table: &str) {
        let mut kept = 0;
        for ((kernel, grid, block), sum) in self.kernels {
            let known = KernelSummary::of(kernel, Conditions::Counted);
            let Sum { count, total, range, counters } = sum;
            let mut summary = KernelSummary { count, total: Some(total), range: Some(range), grid, block, ..known };
            let means = self.columns.columns.iter().zip(counters).filter(|(_, (_, count))| *count > 0);
            let means = means.map(|((_, name), (total, count))| (name.as_str(), total / f64::from(count)));
            add(sink, &mut summary, means.filter(|(_, mean)| mean.is_finite()));
            kept += summary.counters.len() as u64;
            sink.summary(summary);
        }
        if self.values > 0 {
            sink.ledger(
                table,
                self.values,
                kept,
                0,
                "values of counters; kept as means by kernel, launch shape and counter",
            );
        }
        if self.beyond > 0 {
            let why = "kernels whose counters are one kind of kernel too many";
            sink.stat(&format!("{format}.counters_beyond_limit"), Severity::Notice, self.beyond, Some(why));
        }
    }
}

fn find(counters: &[(&str, f64)], name: &str) -> Option<f64> {
    counters.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_follow_from_the_counters_that_define_them() {
        let mi200 = [("TCC_HIT_sum", 30.0), ("TCC_MISS_sum", 10.0), ("TCC_EA_RDREQ_sum", 10.0)];
        assert_eq!(metrics(&mi200, Some(100.0)), [(Metric::L2Hit, 75.0)], "bytes need the lengths of requests");
        let ea = [("TCC_EA_RDREQ_32B_sum", 4.0), ("TCC_EA_WRREQ_sum", 3.0), ("TCC_EA_WRREQ_64B_sum", 1.0)];
        let all: Vec<_> = mi200.into_iter().chain(ea).collect();
        // 4 × 32 + 6 × 64 read, 1 × 64 + 2 × 32 written, in 100 ns.
        assert_eq!(metrics(&all, Some(100.0)).last(), Some(&(Metric::DramBytesPerSecond, 640.0 / 100.0 * 1e9)));
        let told = [("L2CacheHit", 12.5), ("FETCH_SIZE", 1.0), ("WRITE_SIZE", 1.0)];
        assert_eq!(metrics(&told, Some(2_048.0)), [(Metric::L2Hit, 12.5), (Metric::DramBytesPerSecond, 1e9)]);
        assert_eq!(metrics(&told, None), [(Metric::L2Hit, 12.5)]);
        let busy = [("MemUnitBusy", 99.75), ("VALUBusy", 11.0)];
        assert_eq!(metrics(&busy, None), [(Metric::VectorBusy, 11.0), (Metric::LoadStoreBusy, 99.75)]);
        // Nobody counted what was written: only the reads have a rate.
        assert_eq!(metrics(&[("FETCH_SIZE", 2.0)], Some(2_048.0)), [(Metric::DramReadBytesPerSecond, 1e9)]);
        assert_eq!(metrics(&[("TCC_HIT_sum", 0.0), ("TCC_MISS_sum", 0.0)], Some(1.0)), []);
    }
}
