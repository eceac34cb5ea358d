//! The sums per kernel that rocprof v1 (`results.stats.csv`) and rocprofv3 (`*_kernel_stats.csv`) write with `--stats`. They
//! have no times of their own, so they are summaries and no slices. Source: roctracer's `rpl_run.sh`, rocprofiler-sdk's
//! `generateStats.cpp`; the newer one adds the shortest, the longest and the standard deviation.

use std::path::{Path, PathBuf};

use model::TraceSink;

use crate::{
    Format, Head, Match, ReadError, ReadOptions,
    csv_table::{self, Table},
    hip,
    kernel_sums::{self, Columns, Sums},
};

/// The tables of `rocprof --stats` and `rocprofv3 --stats`.
pub const FORMAT: Format =
    Format { id: "rocprof-stats", name: "rocprof statistics CSV (sums per kernel)", matches, read, lead };

/// Columns that only these tables have together.
const MARKS: &[&str] = &["name", "calls", "totaldurationns", "averagens", "percentage"];
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
    if csv_table::has_all(&csv_table::first_header(head.bytes), MARKS) { Match::Certain } else { Match::No }
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let mut table = Table::open(path, |header| csv_table::has_all(header, MARKS))?;
    let sums = Sums { format: FORMAT.id, becomes: "sums of kernels", unit: 0, kernel };
    kernel_sums::read(&mut table, &sums, COLUMNS, sink, options.progress)?;
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
