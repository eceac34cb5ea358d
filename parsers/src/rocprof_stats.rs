//! The sums per kernel that rocprof v1 (`results.stats.csv`) and rocprofv3 (`*_kernel_stats.csv`) write with `--stats`. They
//! have no times of their own, so they are summaries and no slices. Source: roctracer's `rpl_run.sh`, rocprofiler-sdk's
//! `generateStats.cpp`; the newer one adds the shortest, the longest and the standard deviation.

use std::path::{Path, PathBuf};

use model::{Conditions, TraceSink};

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
/// What the names of files of sums of calls and ranges end with. Source: roctracer's `tblextr.py`, rocprofiler-sdk's
/// `generateCSV.cpp`.
const OF_CALLS: [&str; 10] = [
    ".hip_stats.csv",
    ".hsa_stats.csv",
    ".roctx_stats.csv",
    "hip_api_stats.csv",
    "hip_stats.csv",
    "hsa_api_stats.csv",
    "hsa_stats.csv",
    "marker_api_stats.csv",
    "rccl_api_stats.csv",
    "scratch_memory_stats.csv",
];
/// Names of the rows of `*_domain_stats.csv`, each the sum of a class of records. Source: rocprofiler-sdk's `domain_type.cpp`.
const CLASSES: [&str; 13] = [
    "HSA_API",
    "HIP_API",
    "MARKER_API",
    "RCCL_API",
    "KERNEL_DISPATCH",
    "MEMORY_COPY",
    "MEMORY_ALLOCATION",
    "SCRATCH_MEMORY",
    "COUNTER_COLLECTION",
    "ROCDECODE_API",
    "ROCJPEG_API",
    "OMPT",
    "PC_SAMPLING",
];
/// What the names of rocprof v1's files of sums end with.
const ENDINGS: [&str; 5] = [".stats.csv", ".hip_stats.csv", ".hsa_stats.csv", ".copy_stats.csv", ".roctx_stats.csv"];

/// The file of the run whose kernels, calls or copies are summed.
fn lead(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending))?;
    let database = cfg!(feature = "sqlite").then_some("db");
    let mut run = database.into_iter().chain(["json", "csv"]).map(|kind| path.with_file_name(format!("{stem}.{kind}")));
    run.find(|file| file.is_file())
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
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // The tables have one shape; the names of ranges are the program's own, so that only the file's name tells them.
    let calls = OF_CALLS.iter().any(|ending| name.ends_with(ending));
    let kind: fn(&str) -> (Conditions, &str) = if calls { |name| (Conditions::Host, name) } else { kind };
    let sums = Sums { format: FORMAT.id, becomes: "sums of kernels", unit: 0, kind };
    kernel_sums::read(&mut table, &sums, columns, sink, options.progress)?;
    hip::manifest(sink, "amd", "rocprof, sums only");
    Ok(())
}

fn kind(name: &str) -> (Conditions, &str) {
    let call = hip::is_call(name) || hip::is_library_call(name);
    match () {
        () if CLASSES.contains(&name) => (Conditions::Classes, name),
        () if call => (Conditions::Host, name),
        () => (Conditions::Run, hip::kernel_name(name)),
    }
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

    /// rocprof v1 quotes no name: rows whose names have commas were lost, and those that were left had all the time.
    #[test]
    fn names_with_commas_and_without_quotes_are_whole() {
        let trace = import(
            "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\"\n\
             void fill<Left<int, 2>, Flags<0u, 1u>>(int*, long),4,800,200,80.0\nvoid plain(),1,200,200,20.0\n",
        );
        let expected = [
            ("void fill<Left<int, 2>, Flags<0u, 1u>>(int*, long)", 4, Some(800), None),
            ("void plain()", 1, Some(200), None),
        ];
        assert_eq!(sums(&trace), expected);
        assert_eq!(trace.stat("rocprof-stats.incomplete_row"), 0);
    }

    /// A kernel of the program whose name begins as those of the runtime do was a call of the host.
    #[test]
    fn a_kernel_named_after_hip_is_a_kernel() {
        let trace = import(
            "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\"\n\
             hip_scatter [clone .kd],4,800,200,80.0\n\"hipMemcpy\",1,200,200,20.0\n",
        );
        let kinds: Vec<_> = trace.summaries.iter().map(|s| s.conditions).collect();
        assert_eq!(kinds, [Conditions::Run, Conditions::Host]);
    }

    #[test]
    fn the_newer_table_has_a_range_and_may_be_one_of_calls() {
        let head =
            "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\",\"MaxNs\",\"StdDev\"\n";
        let trace = import(&format!(
            "{head}\"k.kd\",2,30,15.000000,99.0,10,20,7.07\n\"hipLaunchKernel\",2,9,4.5,1.0,4,5,0.5\n"
        ));
        let expected = [("k", 2, Some(30), Some((10, 20))), ("hipLaunchKernel", 2, Some(9), Some((4, 5)))];
        assert_eq!(sums(&trace), expected);
        assert_eq!(
            trace.ledger.iter().map(|r| (&*r.category, r.read, r.kept)).collect::<Vec<_>>(),
            [("calls", 1, 1), ("kernels", 1, 1)]
        );
    }

    /// Tables of calls alone were read and nothing of them kept; those of domains were kernels.
    #[test]
    fn calls_and_classes_of_records_are_no_kernels() {
        let head = "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\"\n";
        let trace = import(&format!(
            "{head}\"hipMemcpy\",3,30,10,99.0\n\"KERNEL_DISPATCH\",2,9,4.5,1.0\n\"ncclAllReduce\",1,5,5,1\n"
        ));
        let kinds: Vec<_> = trace.summaries.iter().map(|s| s.conditions).collect();
        assert_eq!(kinds, [Conditions::Host, Conditions::Classes, Conditions::Host]);
    }
}
