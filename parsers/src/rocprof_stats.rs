//! The sums per kernel that rocprof v1 (`results.stats.csv`) and rocprofv3 (`*_kernel_stats.csv`) write with `--stats`. They
//! have no times of their own, so they are summaries and no slices. Source: roctracer's `rpl_run.sh`, rocprofiler-sdk's
//! `generateStats.cpp`; the newer one adds the shortest, the longest and the standard deviation.

use std::path::{Path, PathBuf};

use model::TraceSink;

use crate::{
    Format, Head, Match, ReadError, ReadOptions,
    csv_table::{self, Table, has_all},
    hip,
    kernel_sums::{self, Columns, Sums},
};

/// The tables of `rocprof --stats` and `rocprofv3 --stats`.
pub const FORMAT: Format =
    Format { id: "rocprof-stats", name: "rocprof statistics CSV (sums per kernel)", matches, read, lead };

/// Columns that only these tables have together.
const MARKS: &[&str] = &["name", "calls", "totaldurationns", "averagens", "percentage"];
/// Columns of `pmc_kernel_top.csv`, the same sums as rocprof-compute writes them.
const TOP_MARKS: &[&str] = &["kernel_name", "count", "sum(ns)", "pct"];
/// Columns of [`TOP_MARKS`] that are read.
const TOP: Columns<'_> =
    Columns { name: "kernel_name", count: "count", total: "sum(ns)", shortest: "", longest: "", grid: "", block: "" };
/// Columns that are read.
const COLUMNS: Columns<'_> = Columns {
    name: "name",
    count: "calls",
    total: "totaldurationns",
    shortest: "minns",
    longest: "maxns",
    grid: "",
    block: "",
};
/// The table of the kernels that are summed, which is read with these sums beside it.
fn lead(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?.strip_suffix(".stats.csv")?;
    let lead = path.with_file_name(format!("{name}.csv"));
    lead.is_file().then_some(lead)
}

fn matches(head: &Head<'_>) -> Match {
    let header = csv_table::first_header(head.bytes);
    // The tables of rocprof-compute are one capture where what ran is among them.
    let of_top = has_all(&header, TOP_MARKS) && !head.path.with_file_name("pmc_perf.csv").is_file();
    if of_top || has_all(&header, MARKS) { Match::Certain } else { Match::No }
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let mut table = Table::open(path, |header| has_all(header, MARKS) || has_all(header, TOP_MARKS))?;
    let columns = if has_all(table.header(), TOP_MARKS) { TOP } else { COLUMNS };
    let sums = Sums { format: FORMAT.id, becomes: "sums of kernels", unit: 0, kernel };
    kernel_sums::read(&mut table, &sums, columns, sink, options.progress)?;
    hip::manifest(sink, "amd", "rocprof, sums only");
    Ok(())
}

fn kernel(name: &str) -> Option<&str> {
    (!hip::CALLS.iter().any(|prefix| name.starts_with(prefix))).then(|| hip::kernel_name(name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use model::{Ns, Trace, TraceBuilder};

    fn import(text: &str) -> Trace {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.stats.csv");
        std::fs::write(&path, text).unwrap();
        assert_eq!(matches(&Head::new(&path, text.as_bytes())), Match::Certain);
        let mut builder = TraceBuilder::new("t", "rocprof-stats");
        read(&path, &mut builder, &crate::ReadOptions::default()).unwrap();
        builder.finish()
    }

    /// Sums of rocprof-compute on their own were a table of which nothing could be kept.
    #[test]
    fn sums_of_rocprof_compute_are_sums_where_what_ran_is_not_beside_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pmc_kernel_top.csv");
        let text = "Kernel_Name,Count,Sum(ns),Mean(ns),Median(ns),Pct\n\"gemm<64u, 8u>(int)\",150,4358035.07,29053.5,28900.3,83.7\n";
        std::fs::write(&path, text).unwrap();
        let mut builder = TraceBuilder::new("t", "");
        assert_eq!(crate::detect::read(&path, &mut builder, &crate::ReadOptions::default()).unwrap().id, FORMAT.id);
        assert_eq!(sums(&builder.finish()), [("gemm<64u, 8u>(int)", 150, Some(4_358_035), None)]);
        std::fs::write(directory.path().join("pmc_perf.csv"), "").unwrap();
        assert_eq!(matches(&Head::new(&path, text.as_bytes())), Match::No);
    }

    /// Name, count, total and range.
    type Sum<'t> = (&'t str, u64, Option<Ns>, Option<(Ns, Ns)>);

    fn sums(trace: &Trace) -> Vec<Sum<'_>> {
        trace.summaries.iter().map(|s| (trace.strings.get(s.kernel), s.count, s.total, s.range)).collect()
    }

    #[test]
    fn kernels_are_sums_and_never_slices() {
        let trace = import(
            "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\"\n\
             \"void gemm<2, true>(int) [clone .kd]\",3,600,200,60.0\n\"cut\",1,",
        );
        assert_eq!(sums(&trace), [("void gemm<2, true>(int)", 3, Some(600), None)]);
        assert_eq!((trace.slice_count(), trace.stat("rocprof-stats.incomplete_row")), (0, 1));
        assert_eq!(trace.ledger.iter().map(|r| (r.read, r.kept, r.time_ns)).collect::<Vec<_>>(), [(2, 1, 600)]);
    }

    #[test]
    fn the_newer_table_has_a_range_and_may_be_one_of_calls() {
        let head =
            "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\",\"MaxNs\",\"StdDev\"\n";
        let trace = import(&format!(
            "{head}\"k.kd\",2,30,15.000000,99.0,10,20,7.07\n\"hipLaunchKernel\",2,9,4.5,1.0,4,5,0.5\n"
        ));
        assert_eq!(sums(&trace), [("k", 2, Some(30), Some((10, 20)))]);
        assert_eq!(
            trace.ledger.iter().map(|r| (&*r.category, r.read, r.kept)).collect::<Vec<_>>(),
            [("calls", 1, 0), ("kernels", 1, 1)]
        );
    }
}
