//! What goes into a capture file comes out of it, by either of its two forms, and a damaged file is refused in words.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use model::{
    Category, Clock, CollectiveCall, CopyDetail, Detail, Device, Flow, KernelDetail, OpDetail, Provenance, Severity,
    Slice, Span, StringId, SyncKind, Trace, TraceBuilder, TraceSink, TrackKey, TrackKind,
};
use proptest::prelude::*;
use sqlx::{Connection, SqliteConnection};

use super::{Error, Results, Sink, Value, chunk, is_capture, load, query, save, save_results};

mod diagnosis;
mod job_sums;
mod probes;
mod sealed;
mod summaries;
mod sweep;

/// Everything two captures can differ in.
fn assert_same(a: &Trace, b: &Trace) {
    assert_eq!((&a.source, &a.format, a.simulated), (&b.source, &b.format, b.simulated));
    assert!(a.strings.iter().eq(b.strings.iter()));
    assert_eq!(a.processes, b.processes);
    assert_eq!(a.devices, b.devices);
    assert_eq!(a.tracks, b.tracks);
    assert_eq!(a.lanes, b.lanes);
    assert_eq!(a.details, b.details);
    assert_eq!(a.counters, b.counters);
    assert_eq!(a.summaries, b.summaries);
    assert_eq!(a.job_sums, b.job_sums);
    assert_eq!(a.stated, b.stated);
    assert_eq!(a.probes, b.probes);
    assert_eq!(a.flows, b.flows);
    assert_eq!(a.manifest, b.manifest);
    assert_eq!(a.stats, b.stats);
    assert_eq!(a.ledger, b.ledger);
    assert_eq!((a.start_unix_ns, a.window), (b.start_unix_ns, b.window));
}

fn temporary() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.strato");
    (directory, path)
}

/// Runs SQL on a file behind the store's back, and seals it again: what is written so are other values, no damage.
fn tamper(path: &Path, sql: &str) {
    change(path, sql);
    super::seal::Seal::put_on(path).unwrap();
}

/// Runs SQL on a file as another program does.
fn change(path: &Path, sql: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut connection = SqliteConnection::connect(path.to_str().unwrap()).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    });
}

struct Table(Vec<String>, Vec<Vec<Value>>);

impl Sink for Table {
    fn columns(&mut self, names: &[&str]) -> std::io::Result<()> {
        self.0 = names.iter().map(|n| (*n).to_owned()).collect();
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> std::io::Result<()> {
        self.1.push(values);
        Ok(())
    }
}

fn ask(path: &Path, sql: &str) -> Result<Table, Error> {
    let mut table = Table(Vec::new(), Vec::new());
    query(path, sql, None, &mut table).map(|()| table)
}

fn text(s: &str) -> Value {
    Value::Text(s.to_owned())
}

/// One launch, the kernel and the copy it caused, a wait, a range and a collective.
fn small() -> Trace {
    let mut b = TraceBuilder::new("run.json", "kineto");
    let process = b.process(7);
    b.describe_process(process, Some(4711), Some("python"), Some(3));
    let host = b.track(TrackKey { kind: TrackKind::HostThread, process, device: None, context: None, id: 11 });
    let stream = b.track(TrackKey { kind: TrackKind::DeviceQueue, process, device: Some(0), context: None, id: 7 });
    let mut add = |track, start, dur, name: &str, category, correlation, detail: Option<Detail>| {
        let name = b.intern(name);
        b.slice(Slice { track, start, dur, name, category, correlation, detail: detail.as_ref() });
    };
    add(host, 100, 900, "step 1", Category::UserRange, None, None);
    add(host, 110, 20, "cudaLaunchKernel", Category::HostApi, Some(5), None);
    add(host, 140, 20, "cudaMemcpyAsync", Category::HostApi, Some(6), None);
    add(host, 200, 50, "cudaStreamSynchronize", Category::HostSync, None, Some(Detail::Sync(SyncKind::Stream)));
    let graph = KernelDetail { graph: Some(2), graph_node: Some(9), grid: Some([1, 2, 3]), ..KernelDetail::default() };
    add(stream, 150, 40, "gemm", Category::Kernel, Some(5), Some(Detail::Kernel(graph)));
    let all = CollectiveCall { seq: Some(1), bytes: Some(64), group_size: Some(4), ..CollectiveCall::default() };
    let nccl = KernelDetail { collective: Some(Box::new(all)), ..KernelDetail::default() };
    add(stream, 190, 10, "nccl", Category::Kernel, None, Some(Detail::Kernel(nccl)));
    let copy = CopyDetail { bytes: Some(4096), ..CopyDetail::default() };
    add(stream, 210, 15, "Memcpy DtoH", Category::Memcpy, Some(6), Some(Detail::Copy(copy)));
    b.finish()
}

#[cfg(unix)]
#[test]
fn a_capture_behind_a_link_is_replaced_and_edited_and_the_link_stays() {
    let directory = tempfile::tempdir().unwrap();
    let [link, file] = ["latest.strato", "a.strato"].map(|name| directory.path().join(name));
    std::os::unix::fs::symlink("a.strato", &link).unwrap();
    assert!(matches!(save(&link, &[small()]), Err(Error::Occupied { .. })), "its link leads nowhere");
    save(&file, &[small()]).unwrap();
    save(&link, &[small()]).unwrap();
    crate::declare(&link, &[("model.name", "m")]).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert!(file.symlink_metadata().unwrap().is_file());
    assert_eq!(load(&file).unwrap()[0].manifest.value("model.name"), Some("m"));
}

#[test]
fn views_resolve_names_and_launches() {
    let (_keep, path) = temporary();
    let trace = small();
    // Twice, so that the second capture's ids are not the first's.
    let gemm = trace.strings.find("gemm").unwrap();
    let named = Results { ops: vec![(gemm, "matmul")], ..Results::default() };
    save_results(&path, &[(&trace, &Results::default()), (&trace, &named)]).unwrap();
    let kernels = ask(&path, "SELECT * FROM kernels WHERE capture_id = 2 ORDER BY start_ns").unwrap();
    let promised = "capture_id rank device stream name op start_ns dur_ns correlation graph_id graph_node launch_ns";
    assert_eq!(kernels.0, promised.split(' ').collect::<Vec<_>>());
    let [i, none] = [Value::Integer, |_| Value::Null];
    let row = |v: [Value; 12]| v.to_vec();
    assert_eq!(
        kernels.1,
        [
            row([i(2), i(3), i(0), i(7), text("gemm"), text("matmul"), i(50), i(40), i(5), i(2), i(9), i(10)]),
            row([i(2), i(3), i(0), i(7), text("nccl"), none(0), i(90), i(10), none(0), none(0), none(0), none(0)]),
        ]
    );
    let one = |sql: &str| ask(&path, sql).unwrap().1;
    assert_eq!(
        one("SELECT name, work, first_start_ns FROM launches WHERE capture_id = 1 ORDER BY start_ns"),
        [[text("cudaLaunchKernel"), i(1), i(50)], [text("cudaMemcpyAsync"), i(1), i(110)]]
    );
    assert_eq!(
        one("SELECT name, bytes, launch_ns FROM copies WHERE capture_id = 2"),
        [[text("Memcpy DtoH"), i(4096), i(40)]]
    );
    assert_eq!(
        one("SELECT name, sync, rank FROM syncs"),
        vec![[text("cudaStreamSynchronize"), text("stream"), i(3)]; 2]
    );
    assert_eq!(one("SELECT name, dur_ns FROM ranges WHERE capture_id = 1"), [[text("step 1"), i(900)]]);
    assert_eq!(one("SELECT name, group_size, bytes FROM collectives"), vec![[text("nccl"), i(4), i(64)]; 2]);
    assert_eq!(one("SELECT rank, pid, process FROM rank WHERE capture_id = 1"), [[i(3), i(4711), text("python")]]);
    assert_eq!(one("SELECT name FROM category WHERE code = 17"), [[text("framework_op")]]);
}

#[test]
fn several_captures_keep_apart_and_chunks_are_rebuilt_from_rows() {
    let (_keep, path) = temporary();
    let (a, b) = (small(), {
        let mut b = TraceBuilder::new("empty", "nsys");
        b.stat("nsys.nothing", Severity::DataLoss, 3, Some("here"));
        b.finish()
    });
    save(&path, &[a.clone(), b.clone(), a.clone()]).unwrap();
    let expect_all = || {
        let loaded = load(&path).unwrap();
        assert_eq!(loaded.len(), 3);
        for (found, expected) in loaded.iter().zip([&a, &b, &a]) {
            assert_same(found, expected);
        }
    };
    expect_all();
    tamper(&path, "UPDATE lane_chunk SET version = 99, columns = x'00'");
    expect_all();
    tamper(&path, "DELETE FROM lane_chunk");
    expect_all();
}

#[test]
fn a_damaged_file_is_refused_with_table_and_row() {
    let cases = [
        ("UPDATE lane_chunk SET columns = x'0011' WHERE id = 2", "row 2 of table 'lane_chunk'"),
        ("UPDATE lane_chunk SET n = 70000", "table 'lane_chunk'"),
        ("UPDATE lane_chunk SET n = -1", "table 'lane_chunk'"),
        ("DELETE FROM lane_chunk; UPDATE slice SET category = 200 WHERE id = 3", "row 3 of table 'slice'"),
        ("DELETE FROM lane_chunk; UPDATE slice SET link_id = 3000 WHERE id = 5", "row 5 of table 'slice'"),
        ("DELETE FROM lane_chunk; UPDATE slice SET start_ns = 1000000 WHERE id = 0", "table 'slice'"),
        ("DELETE FROM lane_chunk; DELETE FROM slice WHERE id = 1", "table 'slice'"),
        ("UPDATE track SET slice_count = 9223372036854775807", "table 'track'"),
        ("UPDATE track SET kind = 'x' WHERE id = 1", "row 1 of table 'track'"),
        ("UPDATE track SET process_id = 77", "there is no process 77"),
        ("UPDATE capture SET slice_count = -1", "table 'capture'"),
        ("UPDATE string SET value = '' WHERE id = 2", "row 2 of table 'string'"),
        ("UPDATE string SET capture_id = 9 WHERE id = 4", "there is no capture 9"),
        ("DELETE FROM string WHERE id > 1", "table"),
        ("UPDATE detail SET kind = 'y'", "unknown kind 'y'"),
        ("UPDATE process SET rank = -5", "table 'process'"),
        ("DROP VIEW kernels", "'kernels' is not what"),
        ("DROP TABLE flow; CREATE VIEW flow AS SELECT 1", "'flow' is not what"),
    ];
    for (sql, expected) in cases {
        let (_keep, path) = temporary();
        save(&path, &[small()]).unwrap();
        tamper(&path, sql);
        let message = load(&path).expect_err(sql).to_string();
        assert!(message.contains(expected) && message.contains("a.strato"), "{sql}: {message}");
    }
}

#[test]
fn the_kind_of_a_file_goes_by_its_content() {
    let (keep, path) = temporary();
    save(&path, &[small()]).unwrap();
    let renamed = keep.path().join("trace.json");
    std::fs::copy(&path, &renamed).unwrap();
    assert!(is_capture(&renamed).unwrap());
    std::fs::write(keep.path().join("b.strato"), "SQLite format 3\0 but no more").unwrap();
    assert!(!is_capture(&keep.path().join("b.strato")).unwrap());
    assert!(matches!(load(&keep.path().join("b.strato")), Err(Error::NotACapture { .. })));
    tamper(&path, "PRAGMA user_version = 99");
    let message = load(&path).expect_err("newer").to_string();
    assert!(message.contains("schema version 99") && message.contains("newer strato"), "{message}");
}

#[test]
fn only_a_capture_file_is_replaced_and_nothing_else_is_left() {
    let (keep, path) = temporary();
    std::fs::write(&path, "precious").unwrap();
    assert!(matches!(save(&path, &[small()]), Err(Error::Occupied { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    std::fs::remove_file(&path).unwrap();

    let abandoned = keep.path().join("a.strato.Ab12Cd.tmp");
    let foreign = keep.path().join("a.strato.notes-of-mine.tmp");
    let held = keep.path().join("a.strato.Zy98Xw.tmp");
    for file in [&abandoned, &foreign, &held] {
        std::fs::write(file, "x").unwrap();
    }
    let lock = std::fs::File::open(&held).unwrap();
    lock.lock().unwrap();
    save(&path, &[]).unwrap();
    save(&path, &[small()]).unwrap();
    assert_same(&load(&path).unwrap()[0], &small());
    assert_eq!((abandoned.exists(), foreign.exists(), held.exists()), (false, true, true));
    assert_eq!(keep.path().read_dir().unwrap().count(), 3);
}

#[test]
fn queries_are_read_only_single_and_helpful() {
    let (_keep, path) = temporary();
    save(&path, &[small()]).unwrap();
    let refused = |sql: &str| match ask(&path, sql) {
        Err(Error::Query { message, hint }) => format!("{message}; {hint}"),
        other => panic!("{sql}: {:?}", other.map(|t| t.1)),
    };
    assert!(refused("SELECT * FROM kernel").contains("no such table: kernel; tables and views: attribution, capture"));
    assert!(refused("DELETE FROM slice").contains("read-only"));
    assert!(refused("SELECT 1; SELECT 2").contains("one statement"));
    let kinds = ask(&path, "SELECT NULL, 1, 0.5, 'a', x'00ff', 1 = 1").unwrap();
    let expected =
        [Value::Null, Value::Integer(1), Value::Real(0.5), text("a"), Value::Blob(vec![0, 255]), Value::Integer(1)];
    assert_eq!(kinds.1, [expected]);
    assert_eq!(ask(&path, "SELECT name FROM kernels WHERE 0").unwrap().0, ["name"]);
}

#[test]
fn a_track_longer_than_a_chunk_and_a_batch_comes_back_whole() {
    let (_keep, path) = temporary();
    let mut b = TraceBuilder::new("long", "kineto");
    let process = b.process(0);
    let track = b.track(TrackKey { kind: TrackKind::DeviceQueue, process, device: Some(0), context: None, id: 0 });
    let name = b.intern("k");
    let n = chunk::SLICES as i64 + 512 + 64 + 8 + 3;
    for i in 0..n {
        b.slice(Slice {
            track,
            start: i * 3,
            dur: 2,
            name,
            category: Category::Kernel,
            correlation: None,
            detail: None,
        });
    }
    let trace = b.finish();
    save(&path, std::slice::from_ref(&trace)).unwrap();
    assert_same(&load(&path).unwrap()[0], &trace);
    let counts = ask(&path, "SELECT count(*), max(id), (SELECT count(*) FROM lane_chunk) FROM slice").unwrap();
    assert_eq!(counts.1, [[Value::Integer(n), Value::Integer(n - 1), Value::Integer(2)]]);
}

fn details(strings: &[StringId]) -> Vec<Detail> {
    let text = |i: usize| strings.get(i).copied();
    let call = CollectiveCall {
        op: text(0),
        group: text(1),
        group_size: Some(u32::MAX),
        seq: Some(i64::MIN),
        bytes: None,
        dtype: text(2),
    };
    vec![
        Detail::Kernel(KernelDetail::default()),
        Detail::Kernel(KernelDetail {
            collective: Some(Box::default()),
            block: Some([u32::MAX, 0, 1]),
            ..KernelDetail::default()
        }),
        Detail::Kernel(KernelDetail {
            graph: Some(1),
            graph_node: Some(-1),
            grid: Some([1, 2, 3]),
            ..KernelDetail::default()
        }),
        Detail::Copy(CopyDetail { direction: text(1), src: text(0), dst: None, bytes: Some(7), graph_node: Some(3) }),
        Detail::Op(OpDetail { shapes: text(2), dtypes: None }),
        Detail::Collective(Box::new(call)),
        Detail::Sync(SyncKind::StreamWaitEvent),
        Detail::Launch(StringId(1)),
        Detail::Failed(i64::MIN),
    ]
}

type Event = (usize, i64, i64, usize, usize, Option<i64>, Option<usize>);

fn any_time() -> impl Strategy<Value = i64> {
    prop_oneof![4 => -1000..1000i64, 1 => any::<i64>()]
}

fn any_trace() -> impl Strategy<Value = Trace> {
    let event = (
        0..6usize,
        any_time(),
        any_time(),
        0..5usize,
        0..20usize,
        prop::option::of(-3..3i64),
        prop::option::of(0..8usize),
    );
    let names = prop::collection::vec(".{0,12}", 5);
    let samples = prop::collection::vec((any_time(), any::<i32>().prop_map(f64::from)), 0..6);
    (prop::collection::vec(event, 0..80), names, samples, any::<Option<i64>>(), any::<bool>())
        .prop_map(|(events, names, samples, clock, window)| build(&events, &names, &samples, clock, window))
}

fn build(events: &[Event], names: &[String], samples: &[(i64, f64)], clock: Option<i64>, window: bool) -> Trace {
    let mut b = TraceBuilder::new("random", "test");
    let names: Vec<StringId> = names.iter().map(|n| b.intern(n)).collect();
    let details = details(&names);
    let processes = [b.process(1), b.process(2)];
    b.describe_process(processes[1], None, Some("p"), Some(1));
    b.device(Device {
        process: processes[1],
        ordinal: -1,
        name: names.first().copied(),
        vendor: None,
        cores: Some(9),
        memory_bytes: Some(i64::MAX),
    });
    let tracks: Vec<_> = (0..6)
        .map(|i| {
            let kind = TrackKind::ALL[i % TrackKind::ALL.len()];
            b.track(TrackKey {
                kind,
                process: processes[i % 2],
                device: (i > 2).then_some(1),
                context: (i > 3).then_some(-7),
                id: i as i64,
            })
        })
        .collect();
    b.name_track(tracks[2], "named");
    for (track, start, dur, name, category, correlation, detail) in events {
        b.slice(Slice {
            track: tracks[*track],
            start: *start,
            dur: *dur,
            name: names[*name],
            category: Category::ALL[*category],
            correlation: *correlation,
            detail: detail.map(|i| &details[i]),
        });
    }
    for (t, value) in samples {
        b.counter(processes[0], Some(0), names[0], "W", *t, *value);
        b.counter(processes[1], None, names[1], "", *t, -value);
        b.flow(Flow { process: processes[0], id: *t, from: (tracks[0], *t), to: (tracks[5], 0), kind: names[3] });
    }
    b.manifest("model.name", "m", Provenance::Declared);
    b.manifest("parallel.tp", "2", Provenance::Observed);
    b.ledger("kernel", 5, 3, i64::MAX, "kept");
    b.clock(clock.map_or(Clock::FromFirstSlice { unix_offset: Some(5) }, |t| Clock::AsIs { unix_zero: Some(t) }));
    if window {
        b.window(Span::new(-5, 5));
    }
    b.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn what_is_saved_is_loaded_by_either_form(traces in prop::collection::vec(any_trace(), 1..4)) {
        let (_keep, path) = temporary();
        save(&path, &traces).unwrap();
        for (found, expected) in load(&path).unwrap().iter().zip(&traces) {
            assert_same(found, expected);
        }
        tamper(&path, "DELETE FROM lane_chunk");
        let by_rows = load(&path).unwrap();
        prop_assert_eq!(by_rows.len(), traces.len());
        for (found, expected) in by_rows.iter().zip(&traces) {
            assert_same(found, expected);
        }
    }

    #[test]
    fn a_chunk_of_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), n in -2..6i64) {
        let mut lane = model::Columns::default();
        let bounds = chunk::Bounds { strings: 1, details: 1, slices: 1 };
        let _ = chunk::decode(&bytes, n, &mut lane).map(|()| bounds.check(&lane, 0));
    }
}
