//! The sums that `nsys stats` prints, as CSV or as text: how often each kernel, copy or call ran and how long in all. There is no
//! timeline in them, so they are summaries and no slices.

use std::path::Path;

use model::{Conditions, Provenance, TraceSink};

use crate::{
    Format, Head, Match, ReadError, ReadOptions, container,
    csv_table::{self, Table},
    kernel_sums::{self, Columns, Sums},
};

mod printed;

/// The reports of `nsys stats`.
pub const FORMAT: Format = Format {
    id: "nsys-stats",
    name: "nsys stats CSV or text (sums per kernel, copy and call)",
    matches,
    read,
    lead: crate::alone,
};

/// Bytes that tell in which form a file is.
const HEAD: usize = 64 << 10;

/// Units that `--timeunit` may have chosen, as the names of columns carry them, with their power of ten in ns. The column
/// of totals is what every report has.
const UNITS: &[(&str, i32)] = &[("ns", 0), ("us", 3), ("ms", 6), ("s", 9)];

fn total(unit: &str) -> String {
    format!("total time ({unit})")
}

/// The unit of a report, and what its rows are about: kernels and copies have instances or operations, calls have none.
fn report(header: &[String]) -> Option<(&'static str, i32)> {
    let has = |name: &str| header.iter().any(|column| column == name);
    let share = has("time (%)") || has("time(%)");
    UNITS.iter().copied().find(|(unit, _)| share && has(&total(unit)))
}

/// Why sums of ranges are not kept.
const OF_RANGES: &str = "not kept: ranges lie within each other, so that their sums count time several times";

fn is_ranges(header: &[String]) -> bool {
    header.iter().any(|column| matches!(column.as_str(), "range" | "style"))
}

fn is_device(header: &[String]) -> bool {
    header.iter().any(|column| matches!(column.as_str(), "instances" | "operation" | "operations"))
}

fn matches(head: &Head<'_>) -> Match {
    let csv = report(&csv_table::first_header(head.bytes)).is_some();
    if csv || head.is_text() && printed::matches(head.bytes) { Match::Certain } else { Match::No }
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    match report(&csv_table::first_header(&container::head(path, HEAD)?)) {
        Some(_) => table(path, sink, options)?,
        // Words of the tool may stand before the header of a CSV file that somebody names as this format.
        None => match printed::read(path, sink, options.progress) {
            Err(ReadError::Malformed { .. }) => table(path, sink, options)?,
            read => read?,
        },
    }
    for (key, value) in [
        ("hardware.vendor", "nvidia"),
        ("measurement.traced", "nsys"),
        ("software.profiler", "Nsight Systems, sums only"),
    ] {
        sink.manifest(key, value, Provenance::Observed);
    }
    Ok(())
}

fn table(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let mut table = Table::open(path, |header| report(header).is_some())?;
    let (unit, exponent) = report(table.header()).unwrap_or(("ns", 0));
    if is_ranges(table.header()) {
        let mut ranges = 0;
        while table.next(options.progress)?.is_some() {
            ranges += 1;
        }
        sink.ledger("ranges", ranges, 0, 0, OF_RANGES);
        return Ok(());
    }
    let kind: fn(&str) -> (Conditions, &str) =
        if is_device(table.header()) { |name| (Conditions::Run, name) } else { |name| (Conditions::Host, name) };
    let columns = Columns {
        name: "name|operation",
        count: "instances|count|operations|num calls",
        total: &total(unit),
        shortest: &format!("min ({unit})|minimum"),
        longest: &format!("max ({unit})|maximum"),
        grid: "gridxyz",
        block: "blockxyz",
    };
    let sums = Sums { format: FORMAT.id, becomes: "sums of kernels, copies and fills", unit: exponent, kind };
    kernel_sums::read(&mut table, &sums, columns, sink, options.progress)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use model::{Ns, Trace, TraceBuilder};

    fn import(text: &str) -> Trace {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x_cuda_gpu_kern_sum.csv");
        std::fs::write(&path, text).unwrap();
        assert_eq!(matches(&Head::new(&path, text.as_bytes())), Match::Certain);
        let mut builder = TraceBuilder::new("t", "nsys-stats");
        read(&path, &mut builder, &crate::ReadOptions::default()).unwrap();
        builder.finish()
    }

    /// Name, count, total and range.
    type Sum<'t> = (&'t str, u64, Option<Ns>, Option<(Ns, Ns)>);

    fn rows(trace: &Trace) -> Vec<Sum<'_>> {
        trace.summaries.iter().map(|s| (trace.strings.get(s.kernel), s.count, s.total, s.range)).collect()
    }

    #[test]
    fn kernels_are_sums_and_never_slices() {
        let trace = import(
            "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n\
             60.0,600,3,200.0,200.0,100,300,1.5,\"void gemm<int, 2>(T1)\"\n40.0,400,1,400.0,400.0,400,400,0.0,\n40.0,4",
        );
        assert_eq!(rows(&trace), [("void gemm<int, 2>(T1)", 3, Some(600), Some((100, 300)))]);
        assert_eq!((trace.slice_count(), trace.stat("nsys-stats.incomplete_row")), (0, 2));
        assert_eq!(trace.ledger.iter().map(|r| (r.read, r.kept, r.time_ns)).collect::<Vec<_>>(), [(3, 1, 600)]);
    }

    #[test]
    fn the_unit_is_that_of_the_columns() {
        let trace = import(
            "Time (%),Total Time (us),Instances,Avg (us),Min (us),Max (us),Name,GridXYZ,BlockXYZ\n\
             1.0,1.5,2,0.75,0.5,1.0,k,   4    2    1, 256    1    1\n",
        );
        assert_eq!(rows(&trace), [("k", 2, Some(1_500), Some((500, 1_000)))]);
        assert_eq!((trace.summaries[0].grid, trace.summaries[0].block), (Some([4, 2, 1]), Some([256, 1, 1])));
    }

    #[test]
    fn calls_are_sums_of_the_host_and_ranges_are_counted() {
        let trace = import("Time (%),Total Time (ns),Num Calls,Avg (ns),Name\n90.0,10,2,5.0,cudaLaunchKernel\n");
        assert_eq!((rows(&trace), trace.ledger[0].kept), (vec![("cudaLaunchKernel", 2, Some(10), None)], 1));
        assert_eq!(trace.summaries[0].conditions, Conditions::Host);
        let trace = import("Time (%),Total Time (ns),Instances,Avg (ns),Style,Range\n90.0,10,2,5.0,PushPop,:step\n");
        assert_eq!((rows(&trace), trace.ledger[0].read, trace.ledger[0].kept), (Vec::new(), 1, 0));
    }

    #[test]
    fn printed_tables_are_read_by_the_dashes_under_their_columns() {
        let trace = import(
            "Processing [r.sqlite] with [cuda_gpu_kern_sum.py]...\n\n ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n\n\
             \x20Time (%)  Total Time (ns)  Instances  Avg (ns)  Med (ns)  Min (ns)  Max (ns)  StdDev (ns)          Name         \n\
             \x20--------  ---------------  ---------  --------  --------  --------  --------  -----------  ----------------------\n\
             \x20    60.0            1,600          3     533.3     500.0       100       900          1.5  void gemm<int, 2>(T1)\n\
             \x20    40.0              400          1     400.0     400.0       400       400          0.0  void  two  blanks\n\
             \x20    40.0\n\n\
             \x20** CUDA API Summary (cuda_api_sum):\n\n\
             \x20Time (%)  Total Time (ns)  Num Calls  Avg (ns)          Name         \n\
             \x20--------  ---------------  ---------  --------  ----------------------\n\
             \x20    90.0               10          2       5.0  cudaLaunchKernel\n",
        );
        let expected = [
            ("void gemm<int, 2>(T1)", 3, Some(1_600), Some((100, 900))),
            ("void  two  blanks", 1, Some(400), Some((400, 400))),
            ("cudaLaunchKernel", 2, Some(10), None),
        ];
        assert_eq!(rows(&trace), expected);
        assert_eq!(trace.stat("nsys-stats.incomplete_row"), 1);
        assert_eq!(trace.ledger.iter().map(|r| (r.read, r.kept)).collect::<Vec<_>>(), [(1, 1), (3, 2)]);
    }

    /// The column of counts gave a copy the name "60", and `43.985.471` in a language of `52,0` was no number.
    #[test]
    fn operations_are_a_count_and_dots_may_group_digits() {
        let trace = import(
            " Time(%)  Total Time (ns)  Operations   Average   Minimum  Maximum      Operation     \n\
             \x20-------  ---------------  ----------  ---------  -------  -------  ------------------\n\
             \x20   52,0       43.985.471          60  131.529,4   65.920  194.239  [CUDA memcpy HtoD]\n",
        );
        assert_eq!(rows(&trace), [("[CUDA memcpy HtoD]", 60, Some(43_985_471), Some((65_920, 194_239)))]);
    }
}
