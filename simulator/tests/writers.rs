//! What the writers write: every event, every nanosecond, and the samples of the repository again.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{fs, io::Read, path::Path};

use flate2::read::GzDecoder;
use serde_json::{Value, value::RawValue};
use simulator::{
    Config, WriteError,
    kernel::Vendor,
    record::{HostKind, Work},
    samples, simulate,
};
use sqlx::{Column, Connection, Row, SqliteConnection, TypeInfo, ValueRef, sqlite::SqliteConnectOptions};

fn read(path: &Path) -> String {
    let bytes = fs::read(path).unwrap();
    let mut text = String::new();
    if path.extension().is_some_and(|e| e == "gz") {
        GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
        return text;
    }
    String::from_utf8(bytes).unwrap()
}

fn config(seed: u64, vendor: Vendor) -> Config {
    Config { vendor, steps: 6, warmup_steps: 1, layers: 4, streams: 3, graph_level_trace: false, ..Config::draw(seed) }
}

/// Decimal text of microseconds as nanoseconds.
fn ns(text: &str) -> i64 {
    let (whole, part) = text.split_once('.').unwrap();
    assert_eq!(part.len(), 3);
    whole.parse::<i64>().unwrap() * 1000 + part.parse::<i64>().unwrap()
}

#[derive(serde::Deserialize)]
struct Event<'a> {
    #[serde(default)]
    cat: String,
    ph: String,
    #[serde(borrow)]
    ts: &'a RawValue,
    #[serde(borrow)]
    dur: Option<&'a RawValue>,
    args: Option<Value>,
}

#[derive(serde::Deserialize)]
struct Trace<'a> {
    #[serde(rename = "stratoSimulated")]
    simulated: bool,
    #[serde(borrow, rename = "traceEvents")]
    events: Vec<Event<'a>>,
}

#[test]
fn kineto_holds_every_event_and_nanosecond() {
    let directory = tempfile::tempdir().unwrap();
    for (seed, vendor) in (20..32).zip([Vendor::Cuda, Vendor::Rocm].into_iter().cycle()) {
        let run = simulate(&config(seed, vendor));
        let path = directory.path().join("run.json");
        run.write_kineto(&path).unwrap();
        let text = read(&path);
        let trace: Trace<'_> = serde_json::from_str(&text).unwrap();
        assert!(trace.simulated);
        let of = |cats: &[&str]| {
            let chosen = trace.events.iter().filter(|e| e.ph == "X" && cats.contains(&e.cat.as_str()));
            let mut times: Vec<(i64, i64)> =
                chosen.map(|e| (ns(e.ts.get()), ns(e.ts.get()) + ns(e.dur.unwrap().get()))).collect();
            times.sort_unstable();
            times
        };
        let sorted = |mut times: Vec<(i64, i64)>| {
            times.sort_unstable();
            times
        };
        let device = run.ops.iter().map(|op| (op.start, op.end)).collect();
        assert_eq!(of(&["kernel", "gpu_memcpy", "gpu_memset"]), sorted(device));
        let api = run.host.iter().filter(|e| e.kind.is_api()).map(|e| (e.start, e.end)).collect();
        assert_eq!(of(&["cuda_runtime", "cuda_driver"]), sorted(api));
        let rest = run.host.iter().filter(|e| !e.kind.is_api()).map(|e| (e.start, e.end)).collect();
        assert_eq!(of(&["cpu_op", "user_annotation", "python_function", "overhead"]), sorted(rest));
        // Each device operation names a call that was made.
        let id = |e: &Event<'_>| e.args.as_ref().and_then(|args| args["correlation"].as_i64());
        let calls: Vec<_> = trace.events.iter().filter(|e| e.cat == "cuda_runtime").filter_map(id).collect();
        assert!(trace.events.iter().filter(|e| e.cat == "kernel").all(|e| calls.contains(&id(e).unwrap())));
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}

async fn open(path: &Path) -> SqliteConnection {
    SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(path).read_only(true)).await.unwrap()
}

async fn count(db: &mut SqliteConnection, table: &str) -> i64 {
    let exists = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM sqlite_master WHERE name = ?");
    if exists.bind(table).fetch_one(&mut *db).await.unwrap() == 0 {
        return 0;
    }
    let query = format!("SELECT count(*) FROM {table}");
    sqlx::query_scalar(sqlx::AssertSqlSafe(query)).fetch_one(db).await.unwrap()
}

#[test]
fn nsys_holds_every_event() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.sqlite");
    for (seed, graph_level_trace) in (40..46).zip([false, true].into_iter().cycle()) {
        let run = simulate(&Config { graph_level_trace, ..config(seed, Vendor::Cuda) });
        run.write_nsys(&path).unwrap();
        block_on(async {
            let mut db = open(&path).await;
            let shown = |op: &&simulator::record::DeviceOp| !(graph_level_trace && op.node.is_some());
            let copies = run.ops.iter().filter(|op| matches!(op.work, Work::Copy { .. })).count();
            let fills = run.ops.iter().filter(|op| op.work == Work::Memset).count();
            let kernels = run.ops.iter().filter(shown).count() - copies - fills;
            assert_eq!(count(&mut db, "CUPTI_ACTIVITY_KIND_MEMCPY").await, copies as i64);
            assert_eq!(count(&mut db, "CUPTI_ACTIVITY_KIND_MEMSET").await, fills as i64);
            assert_eq!(count(&mut db, "CUPTI_ACTIVITY_KIND_KERNEL").await, kernels as i64);
            let replays = run.host.iter().filter(|e| e.kind == HostKind::GraphLaunch).count();
            let rows = count(&mut db, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE").await;
            assert_eq!(rows, if graph_level_trace { replays as i64 } else { 0 });
            let api = run.host.iter().filter(|e| e.kind.is_api()).count();
            assert_eq!(count(&mut db, "CUPTI_ACTIVITY_KIND_RUNTIME").await, api as i64);
            let busy: i64 = run.ops.iter().filter(shown).map(|op| op.end - op.start).sum();
            let written = "SELECT sum(end - start) FROM (SELECT start, end FROM CUPTI_ACTIVITY_KIND_KERNEL \
                UNION ALL SELECT start, end FROM CUPTI_ACTIVITY_KIND_MEMCPY UNION ALL SELECT start, end FROM CUPTI_ACTIVITY_KIND_MEMSET)";
            assert_eq!(sqlx::query_scalar::<_, i64>(written).fetch_one(&mut db).await.unwrap(), busy);
            let named = "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName";
            assert_eq!(sqlx::query_scalar::<_, i64>(named).fetch_one(&mut db).await.unwrap(), kernels as i64);
            let said = "SELECT value FROM META_DATA_EXPORT WHERE name = 'strato_simulated'";
            assert_eq!(sqlx::query_scalar::<_, String>(said).fetch_one(&mut db).await.unwrap(), "true");
        });
    }
}

#[test]
fn nsys_refuses_what_it_could_not_have_recorded() {
    let run = simulate(&config(3, Vendor::Rocm));
    let directory = tempfile::tempdir().unwrap();
    let refused = run.write_nsys(&directory.path().join("rocm.sqlite"));
    assert!(matches!(refused, Err(WriteError::Platform { .. })));
}

/// All rows of all tables as text.
async fn dump(path: &Path) -> Vec<String> {
    let mut db = open(path).await;
    let tables = sqlx::query_scalar::<_, String>("SELECT name FROM sqlite_master ORDER BY name");
    let mut out = Vec::new();
    for table in tables.fetch_all(&mut db).await.unwrap() {
        let query = format!("SELECT * FROM {table} ORDER BY rowid");
        for row in sqlx::query(sqlx::AssertSqlSafe(query)).fetch_all(&mut db).await.unwrap() {
            let cells = row.columns().iter().map(|column| {
                let cell = row.try_get_raw(column.ordinal()).unwrap();
                match (cell.is_null(), cell.type_info().name()) {
                    (true, _) => "NULL".to_owned(),
                    (false, "INTEGER") => row.get_unchecked::<i64, _>(column.ordinal()).to_string(),
                    _ => row.get_unchecked::<String, _>(column.ordinal()),
                }
            });
            out.push(format!("{table}: {}", cells.collect::<Vec<_>>().join("|")));
        }
    }
    out
}

#[test]
fn the_samples_are_what_the_program_writes() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-traces");
    let fresh = tempfile::tempdir().unwrap();
    samples::write(fresh.path()).unwrap();
    if std::env::var_os("STRATO_BLESS").is_some() {
        samples::write(&kept).unwrap();
    }
    let mut size = 0;
    let mut names = Vec::new();
    for entry in fs::read_dir(fresh.path()).unwrap() {
        let name = entry.unwrap().file_name();
        let (kept, fresh) = (kept.join(&name), fresh.path().join(&name));
        assert!(kept.exists(), "{} is missing; run make-samples", kept.display());
        size += fs::metadata(&kept).unwrap().len();
        if kept.extension().is_some_and(|e| e == "sqlite") {
            assert!(block_on(dump(&kept)) == block_on(dump(&fresh)), "{name:?} differs; run make-samples");
        } else {
            assert!(read(&kept) == read(&fresh), "{name:?} differs; run make-samples");
        }
        names.push(name);
    }
    assert_eq!(names.len(), 2 * samples::all().len() + 1);
    assert!(size < 1_500_000, "the samples take {size} bytes");
}
