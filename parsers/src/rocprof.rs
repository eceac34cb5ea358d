//! rocprof, the first profiler of ROCm (roctracer), as `results.csv` and as JSON. Times are ns since boot. Source:
//! roctracer's `tblextr.py`, files of ROCm 4 to 6.

use std::path::{Path, PathBuf};

use model::{Category, Clock, Detail, ImportStat, KernelDetail, Ns, Severity, Slice, TraceSink};

use crate::{
    Format, Head, Match, ReadError, ReadOptions,
    csv_table::{self, Row, Table},
    hip, hip_events,
    json::member,
    lanes::{Account, Lanes},
};

#[cfg(feature = "sqlite")]
use crate::hip_database::{self, Profiler};

/// The output of rocprof v1.
pub const FORMAT: Format = Format { id: "rocprof", name: "rocprof v1 CSV or JSON", matches, read, lead };

/// The database of the run, from which rocprof makes its CSV and JSON; where it is not there, the JSON, which has more than the
/// CSV. A table with counters is a run of its own: they are read one kernel after the other.
fn lead(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let (stem, csv) = match name.strip_suffix(".csv") {
        Some(stem) => (stem, true),
        None => (name.strip_suffix(".json")?, false),
    };
    if csv {
        let head = crate::container::head(path, HEAD).ok()?;
        if csv_table::first_header(&head).iter().any(|column| hip::is_counter(column)) {
            return None;
        }
    }
    let named = |kind: &str| Some(path.with_file_name(format!("{stem}.{kind}"))).filter(|file| file.is_file());
    let database = named("db").filter(|file| is(file, DATABASES));
    database.or_else(|| named("json").filter(|file| csv && is(file, &[FORMAT.id])))
}

/// Formats of the database.
const DATABASES: &[&str] = if cfg!(feature = "sqlite") { &["rocprof-db"] } else { &[] };

/// Whether a file is of one of these formats.
fn is(file: &Path, formats: &[&str]) -> bool {
    let Ok(head) = crate::container::head(file, HEAD) else { return false };
    let head = Head::new(file, &head);
    let mut known = formats.iter().filter_map(|id| crate::format(id));
    known.any(|format| (format.matches)(&head) != Match::No)
}

/// The database of rocprof v1.
#[cfg(feature = "sqlite")]
pub const DATABASE_FORMAT: Format = Format {
    id: "rocprof-db",
    name: "rocprof v1 database (results.db)",
    matches: |head| hip_database::matches(head, Profiler::Rocprof),
    read: hip_database::read,
    lead: crate::alone,
};

/// Columns that only its table of kernels has together.
const MARKS: &[&str] = &["index", "kernelname", "gpu-id", "queue-id", "beginns", "endns"];
/// Columns that are read.
const COLUMNS: &[&str] = &["beginns", "endns", "pid", "gpu-id", "queue-id", "grd", "wgr", "kernelname", "index"];

/// Bytes in which a version that numbers its events has numbered one.
const HEAD: usize = 1 << 18;

fn matches(head: &Head<'_>) -> Match {
    let has = |key: &str| member::has_key(head.bytes, key);
    let events = head.bytes.trim_ascii_start().starts_with(b"{") && has("traceEvents") && has("BeginNs");
    if events || csv_table::has_all(&csv_table::first_header(head.bytes), MARKS) { Match::Certain } else { Match::No }
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let head = crate::container::head(path, HEAD)?;
    if head.trim_ascii_start().starts_with(b"{") {
        // A version that numbers its events needs no arrows, which take another reading of the whole file.
        let arrows = !member::has_key(&head, "Index");
        let profiler = hip_events::Profiler { format: "rocprof", vendor: "amd", arrows };
        return hip_events::read(path, &profiler, sink, options.progress);
    }
    let mut table = Table::open(path, |cells| csv_table::has_all(cells, MARKS))?;
    let counters = table.header().iter().any(|name| hip::is_counter(name));
    let columns = hip::counters::Columns::of(&table);
    table.select(COLUMNS);
    table.single();
    let (mut lanes, mut account) = (Lanes::default(), Account::default());
    let mut numbers: Option<(i64, i64)> = None;
    while let Some(row) = table.next(options.progress)? {
        account.read += 1;
        let [number] = row.ints(8);
        numbers = number.map(|n| numbers.map_or((n, n), |(first, last)| (first.min(n), last.max(n)))).or(numbers);
        let taken = if counters { counted(sink, row, &columns) } else { kernel(sink, &mut lanes, row) };
        match taken {
            Some((start, end)) => account.keep(start, end),
            None => account.incomplete += 1,
        }
    }
    let becomes = if counters { "measurements of kernels" } else { "kernel" };
    account.tell(sink, "rocprof", "kernels", becomes);
    let stem = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".csv"));
    if let Some(stem) = stem.filter(|_| !counters) {
        hip::tell_sums(&path.with_file_name(format!("{stem}.stats.csv")), sink);
    }
    table.tell_damage(sink, "rocprof");
    // A filter of the run with counters leaves kernels out on purpose.
    let numbered = numbers.filter(|_| !counters).map_or(0, |(first, last)| last.abs_diff(first).saturating_add(1));
    let missing = numbered.saturating_sub(account.read);
    if missing > 0 {
        let why = "numbers between the first and the last that have no row; export the whole table";
        sink.stat(ImportStat::MISSING_KERNELS, Severity::DataLoss, missing, Some(why));
    }
    if lanes.crowded > 0 {
        sink.stat("rocprof.too_many_tracks", Severity::DataLoss, lanes.crowded, None);
    }
    lanes.describe(sink, "amd");
    hip::manifest(sink, "amd", "rocprof");
    sink.clock(Clock::FromFirstSlice { unix_offset: None });
    Ok(())
}

/// A row of a table with counters.
fn counted(sink: &mut dyn TraceSink, row: Row<'_>, columns: &hip::counters::Columns) -> Option<(Ns, Ns)> {
    let [start, end, _, _, _, items, block] = row.ints(0);
    let (times, name) = ((start?, end?), row.text(7)?);
    let kernel = sink.intern(hip::kernel_name(&name));
    let mut summary = hip::counted(kernel, times, shape(items, block));
    hip::counters::add(sink, &mut summary, columns.read(row));
    sink.summary(summary);
    Some(times)
}

/// Blocks and threads; the table has the totals, so they have one side.
fn shape(items: Option<i64>, block: Option<i64>) -> (Option<[u32; 3]>, Option<[u32; 3]>) {
    let (items, block) = (hip::sides([items, Some(1), Some(1)]), hip::sides([block, Some(1), Some(1)]));
    (hip::blocks(items, block), block)
}

/// A row of a table without counters.
fn kernel(sink: &mut dyn TraceSink, lanes: &mut Lanes, row: Row<'_>) -> Option<(Ns, Ns)> {
    let [start, end, pid, device, queue, items, block] = row.ints(0);
    let (start, end, name) = (start?, end?, row.text(7)?);
    let process = pid.map_or(0, i64::cast_unsigned);
    let id = lanes.process(sink, process);
    sink.describe_process(id, pid, None, None);
    let device = device.and_then(|n| i32::try_from(n).ok());
    let track = lanes.queue(sink, process, device, None, queue.unwrap_or(-1));
    let (grid, block) = shape(items, block);
    let detail = KernelDetail { grid, block, ..KernelDetail::default() };
    let name = sink.intern(hip::kernel_name(&name));
    let (dur, detail) = (end.saturating_sub(start), Detail::Kernel(detail));
    sink.slice(Slice { track, start, dur, name, category: Category::Kernel, correlation: None, detail: Some(&detail) });
    Some((start, end))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use model::{Trace, TraceBuilder};

    fn import(name: &str, text: &str) -> Result<Trace, ReadError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        assert_eq!(matches(&Head::new(&path, text.as_bytes())), Match::Certain);
        let mut builder = TraceBuilder::new("t", "rocprof");
        read(&path, &mut builder, &crate::ReadOptions::default()).map(|()| builder.finish())
    }

    const TABLE: &str = r#""Index","KernelName","gpu-id","queue-id","queue-index","pid","tid","grd","wgr","sig","DispatchNs","BeginNs","EndNs","CompleteNs","DurationNs"
0,"fill<2, false>(int) [clone .kd]",2,0,0,70,71,1000,256,"0x0",769537349987029,769537350099688,769537350107288,769537350169162,7600
1,"second.kd",2,1,2,70,71,256,256,"0x0",1,769537350107288,769537350107290,1,2
2,"without end",2,1,2,70,71,256,256,"0x0",1,769537350107288,,1,2
"#;

    #[test]
    fn every_row_of_the_table_is_a_kernel() {
        let trace = import("results.csv", TABLE).unwrap();
        let rows: Vec<_> = trace
            .tracks
            .iter()
            .zip(&trace.lanes)
            .map(|(track, lane)| {
                (track.key.device, track.key.id, trace.strings.get(lane.name[0]), lane.start[0], lane.dur[0])
            })
            .collect();
        assert_eq!(rows, [(Some(2), 0, "fill<2, false>(int)", 0, 7_600), (Some(2), 1, "second", 7_600, 2)]);
        assert_eq!(trace.stat("rocprof.incomplete_row"), 1);
        assert!(
            matches!(&trace.details[0], Detail::Kernel(k) if k.grid == Some([4, 1, 1]) && k.block == Some([256, 1, 1]))
        );
        assert_eq!(trace.ledger.iter().map(|r| (r.read, r.kept, r.time_ns)).collect::<Vec<_>>(), [(3, 2, 7_602)]);
    }

    /// Rows that were taken out of the table left numbers without a row, and half of the kernels were called idle time.
    #[test]
    fn numbers_without_a_row_are_missing_kernels() {
        let missing = |table: &str| import("results.csv", table).unwrap().stat(ImportStat::MISSING_KERNELS);
        assert_eq!(missing(TABLE), 0);
        assert_eq!(missing(&TABLE.replace("\n2,", "\n6,")), 4);
        assert_eq!(missing(&TABLE.replace("\n2,", "\n,")), 0);
    }

    /// Rows of another profiler's table were read by the columns of this one: a thousand processes.
    #[test]
    fn a_second_table_in_the_file_ends_the_first_and_is_told() {
        let second = "Kind,Agent_Id,Queue_Id,Kernel_Id,Dispatch_Id,Kernel_Name\nKERNEL_DISPATCH,1,2,3,4,k\n";
        let trace = import("results.csv", &format!("{TABLE}{second}")).unwrap();
        let alone = import("results.csv", TABLE).unwrap();
        assert_eq!((trace.slice_count(), trace.stat("rocprof.second_table")), (alone.slice_count(), 1));
        assert_eq!(alone.stat("rocprof.second_table"), 0);
    }

    #[test]
    fn rows_with_counters_are_measurements_and_no_timeline() {
        let trace = import(
            "pmc_perf.csv",
            "Index,KernelName,gpu-id,queue-id,pid,grd,wgr,SQ_WAVES,L2CacheHit,BeginNs,EndNs\n0,k.kd,0,0,7,512,256,5,71.5,10,30\n",
        ).unwrap();
        let [k] = trace.summaries.as_slice() else { panic!("{:?}", trace.summaries) };
        assert_eq!((trace.slice_count(), k.total, k.grid), (0, Some(20), Some([2, 1, 1])));
        assert_eq!(k.metrics, [(model::Metric::L2Hit, 71.5)]);
        let counters: Vec<_> = k.counters.iter().map(|(name, value)| (trace.strings.get(*name), *value)).collect();
        assert_eq!(counters, [("SQ_WAVES", 5.0), ("L2CacheHit", 71.5)]);
    }

    const EVENTS: &str = r#"{ "traceEvents":[{}
,{"args":{"name":"0 CPU HIP API"},"ph":"M","pid":2,"name":"process_name","sort_index":0}
,{"args":{"name":"1 GPU0"},"ph":"M","pid":6,"name":"process_name","sort_index":1}
,{"ts":"769537350","dur":"1","ph":"X","pid":"2","tid":"71","name":"hipLaunchKernel","args":{"BeginNs":"769537350000001","EndNs":"769537350001002","pid":"70","tid":"71","Index":"8"}}
,{"ts":"769537352","dur":"7","ph":"X","pid":"6","tid":"0","name":"gemm.kd","args":{"BeginNs":"769537352000003","EndNs":"769537359000004","dev-id":"2","queue-id":"1","pid":"70","tid":"71","Index":"8"}}
,{"ts":"769537352","dur":"7","ph":"X","pid":"518","tid":"0","name":"<barrier packet>","args":{"BeginNs":"1","EndNs":"2"}}
,{"ts":"1","ph":"s","cat":"DataFlow","id":1,"pid":"2","tid":"71","name":"dep"}
,{"ts":"x","dur":"7","ph":"X","pid":"6","name":"no time"}
,{"ph":5}
"#;

    #[test]
    fn events_have_exact_times_among_their_arguments_and_may_have_no_end() {
        let trace = import("results.json", EVENTS).unwrap();
        let (host, device) = (&trace.lanes[0], &trace.lanes[1]);
        assert_eq!((host.dur[0], device.start[0], device.dur[0]), (1_001, 2_000_002, 7_000_001));
        assert_eq!(trace.strings.get(device.name[0]), "gemm");
        assert!(device.link(0).is_some());
        let stat = |name: &str| trace.stat(&format!("rocprof.{name}"));
        assert_eq!((stat("incomplete_row"), stat("unreadable_event"), stat("damaged_file")), (1, 1, 1));
        let barriers = trace.ledger.iter().find(|row| row.category == "GPU barriers").unwrap();
        assert_eq!((barriers.read, barriers.kept), (1, 0));
    }

    /// Events without numbers, of which arrows alone say what launched what: nothing was linked.
    #[test]
    fn arrows_link_events_that_have_no_number() {
        let call = |ts: u32, dur: u32, name: &str| {
            format!(
                r#"{{"ts":"{ts}","dur":"{dur}","ph":"X","pid":"2","tid":"71","name":"{name}","args":{{"pid":"70","tid":"71"}}}}"#
            )
        };
        let kernel = |ts: u32, name: &str| {
            format!(
                r#"{{"ts":"{ts}","dur":"7","ph":"X","pid":"6","tid":"0","name":"{name}","args":{{"dev-id":"2","queue-id":"1","pid":"70"}}}}"#
            )
        };
        let arrow = |ts: u32, phase: &str, id: u32, pid: u32, tid: u32| {
            format!(r#"{{"ts":{ts},"ph":"{phase}","cat":"DataFlow","id":{id},"pid":{pid},"tid":{tid},"name":"dep"}}"#)
        };
        let events = [
            call(100, 50, "hipLaunchKernel"),
            call(200, 50, "hipLaunchKernel"),
            kernel(160, "first.kd"),
            kernel(260, "second.kd"),
            kernel(300, "alone.kd"),
            arrow(120, "s", 0, 2, 71),
            arrow(160, "t", 0, 6, 0),
            arrow(210, "s", 1, 2, 71),
            arrow(260, "t", 1, 6, 0),
            arrow(280, "s", 2, 2, 71),
            arrow(300, "t", 2, 6, 0),
        ];
        let text = format!(r#"{{"traceEvents":[{{}},{{"args":{{"BeginNs":1}}}},{}]}}"#, events.join(","));
        let trace = import("results.json", &text).unwrap();
        let (host, device) = (&trace.lanes[0], &trace.lanes[1]);
        let calls: Vec<_> = (0..3).map(|row| device.link(row).map(|slice| trace.locate(slice).unwrap().1)).collect();
        assert_eq!((host.len(), calls), (2, vec![Some(0), Some(1), None]));
    }

    /// A version whose arguments repeat the lane as `pid` put calls and work into processes of their own, between which no
    /// arrow was followed.
    #[test]
    fn the_number_of_a_lane_is_no_process() {
        let events = [
            r#"{"ts":"100","dur":"9","ph":"X","pid":"2","tid":"71","name":"hipLaunchKernel","args":{"BeginNs":"100000","EndNs":"109000","pid":"2","tid":"71"}}"#,
            r#"{"ts":"120","dur":"7","ph":"X","pid":"6","tid":"1","name":"k.kd","args":{"BeginNs":"120000","EndNs":"127000","dev-id":"0","queue-id":"0","pid":"6","tid":"1","proc-id":"70"}}"#,
            r#"{"ts":"130","dur":"7","ph":"X","pid":"1","tid":"0","name":"FillBuffer","args":{"BeginNs":"130000","EndNs":"137000","dev-id":"0","queue-id":"0","pid":"1","tid":"0","proc-id":"72"}}"#,
            r#"{"ts":105,"ph":"s","cat":"DataFlow","id":0,"pid":2,"tid":71,"name":"dep"}"#,
            r#"{"ts":120,"ph":"t","cat":"DataFlow","id":0,"pid":6,"tid":1,"name":"dep"}"#,
        ];
        let trace = import("results.json", &format!(r#"{{"traceEvents":[{{}},{}]}}"#, events.join(","))).unwrap();
        let lanes: Vec<_> = trace.lanes.iter().map(|lane| (lane.category[0], lane.link(0).is_some())).collect();
        assert_eq!(lanes, [(Category::HostApi, false), (Category::Kernel, true), (Category::Memset, false)]);
        assert_eq!(trace.processes.iter().map(|process| process.pid).collect::<Vec<_>>(), [Some(70)]);
        assert_eq!(trace.stat("rocprof.processes_joined"), 1);
    }

    /// A copy to a symbol is a copy within a call; both begin in one nanosecond, and the outer one was taken for the cause.
    #[test]
    fn of_nested_calls_that_begin_together_the_inner_one_is_the_cause() {
        let events = [
            r#"{"ts":"100","dur":"9","ph":"X","pid":"2","tid":"71","name":"hipMemcpy","args":{"BeginNs":"100100","EndNs":"109000","pid":"2","tid":"71"}}"#,
            r#"{"ts":"100","dur":"9","ph":"X","pid":"2","tid":"71","name":"hipMemcpyToSymbol","args":{"BeginNs":"100100","EndNs":"109500","pid":"2","tid":"71"}}"#,
            r#"{"ts":"104","dur":"2","ph":"X","pid":"1","tid":"0","name":"CopyHostToDevice","args":{"BeginNs":"104000","EndNs":"106000","dev-id":"0","queue-id":"0","pid":"1","tid":"0","proc-id":"70"}}"#,
            r#"{"ts":"108","dur":"0","ph":"X","pid":"6","tid":"0","name":"Unknown command type","args":{"BeginNs":"108000","EndNs":"108000","dev-id":"0","queue-id":"0","pid":"6","tid":"0","proc-id":"70"}}"#,
            r#"{"ts":104,"ph":"s","cat":"DataFlow","id":0,"pid":2,"tid":71,"name":"dep"}"#,
            r#"{"ts":104,"ph":"t","cat":"DataFlow","id":0,"pid":1,"tid":0,"name":"dep"}"#,
        ];
        let trace = import("results.json", &format!(r#"{{"traceEvents":[{{}},{}]}}"#, events.join(","))).unwrap();
        let copy = trace.lanes.iter().find(|lane| lane.category[0] == Category::Memcpy).unwrap();
        let (track, row) = trace.locate(copy.link(0).unwrap()).unwrap();
        assert_eq!(trace.strings.get(trace.lanes[track.0 as usize].name[row]), "hipMemcpy");
        assert!(
            trace.lanes.iter().any(|lane| lane.category[0] == Category::DeviceEvent),
            "an unknown command is no work"
        );
    }
}
