//! What the writers of other platforms write: every event and every nanosecond, with the semantics of their profilers.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;
use simulator::{
    AscendForm, AscendLevel, AscendOutput, Config, Job, Run, WriteError,
    kernel::Vendor,
    record::{HostKind, Work},
    simulate_job,
};
use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};

/// Wall clock of a capture's zero.
const EPOCH: i64 = 1_767_189_312_000_000_000;

fn job(seed: u64, vendor: Vendor) -> Job {
    let config = Config { vendor, steps: 6, warmup_steps: 1, layers: 4, streams: 3, ..Config::draw(seed) };
    simulate_job(&Config { tensor_parallel: 4, graph_level_trace: false, ..config })
}

/// Start and end of the operations that are chosen, in order.
fn ops(run: &Run, chosen: impl Fn(Work) -> bool) -> Vec<(i64, i64)> {
    sorted(run.ops.iter().filter(|op| chosen(op.work)).map(|op| (op.start, op.end)))
}

fn sorted(times: impl Iterator<Item = (i64, i64)>) -> Vec<(i64, i64)> {
    let mut times: Vec<(i64, i64)> = times.collect();
    times.sort_unstable();
    times
}

fn is_collective(work: Work) -> bool {
    matches!(work, Work::Collective { .. })
}

/// Text of microseconds with three decimals as nanoseconds.
fn ns(text: &str) -> i64 {
    let (whole, part) = text.split_once('.').unwrap();
    assert_eq!(part.len(), 3, "{text}");
    whole.parse::<i64>().unwrap() * 1000 + part.parse::<i64>().unwrap()
}

fn events(path: &Path) -> Vec<Value> {
    let value: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let list = if value.is_array() { value } else { value["traceEvents"].clone() };
    list.as_array().unwrap().clone()
}

async fn open(path: &Path) -> SqliteConnection {
    SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(path).read_only(true)).await.unwrap()
}

/// Rows of two integers that a query gives.
fn query(path: &Path, sql: &str) -> Vec<(i64, i64)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut db = open(path).await;
        sqlx::query_as(sqlx::AssertSqlSafe(sql.to_owned())).fetch_all(&mut db).await.unwrap()
    })
}

#[test]
fn ascend_timelines_hold_every_event_and_show_the_waits_inside_collectives() {
    for seed in [20, 21, 24] {
        let job = job(seed, Vendor::Ascend);
        let run = &job.ranks[0];
        let directory = tempfile::tempdir().unwrap();
        let written = job.write_ascend(directory.path(), AscendForm::Text).unwrap();
        let output = written[0].join("ASCEND_PROFILER_OUTPUT");
        let events = events(&output.join("trace_view.json"));
        let named = |name: &str| {
            let process = events.iter().find(|e| e["name"] == "process_name" && e["args"]["name"] == name).unwrap();
            process["pid"].as_i64().unwrap()
        };
        let spans = |pid: i64, chosen: &dyn Fn(&Value) -> bool| {
            let spans = events.iter().filter(|e| e["ph"] == "X" && e["pid"] == pid && chosen(e));
            // Durations have at most three decimals, which a float of this size holds.
            sorted(spans.map(|e| {
                let start = ns(e["ts"].as_str().unwrap()) - EPOCH;
                (start, start + (e["dur"].as_f64().unwrap() * 1000.0).round() as i64)
            }))
        };
        let inside = ["Notify Wait", "Write Value", "SDMA", "EVENT_WAIT"];
        let work = spans(named("Ascend Hardware"), &|e| !inside.contains(&e["name"].as_str().unwrap()));
        assert_eq!(work, ops(run, |work| !is_collective(work)));
        let communication = named("Communication");
        assert_eq!(spans(communication, &|e| e["tid"] == 0), ops(run, is_collective));
        let waits: i64 = spans(communication, &|e| e["name"] == "Notify_Wait").iter().map(|(a, b)| b - a).sum();
        assert_eq!(waits, run.ops.iter().map(|op| op.work.wait()).sum::<i64>());
        let length = |times: &[(i64, i64)]| times.iter().map(|(start, end)| end - start).sum::<i64>();
        let calls = sorted(run.host.iter().filter(|e| e.kind.is_api()).map(|e| (e.start, e.end)));
        let written = spans(named("CANN"), &|_| true);
        // A collective that is launched by itself comes with four calls that order the queues, within the launch's time.
        let alone = run.ops.iter().filter(|op| op.node.is_none() && is_collective(op.work)).count();
        assert_eq!((written.len(), length(&written)), (calls.len() + 4 * alone, length(&calls)));
        assert!(events.iter().any(|e| e["name"] == "strato_simulated" && e["args"]["name"] == "true"));
        let rows = fs::read_to_string(output.join("kernel_details.csv")).unwrap();
        let kernels = ops(run, |work| matches!(work, Work::Compute(_) | Work::Collective { .. }));
        assert_eq!(rows.lines().count() - 1, kernels.len());
    }
}

#[test]
fn ascend_databases_hold_what_the_timelines_hold() {
    for seed in 23..26 {
        let job = job(seed, Vendor::Ascend);
        let run = &job.ranks[0];
        let directory = tempfile::tempdir().unwrap();
        let written = job.write_ascend(directory.path(), AscendForm::Database).unwrap();
        let path = written[0].join("ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db");
        let epoch = format!("startNs - {EPOCH}, endNs - {EPOCH}");
        let kernels = query(
            &path,
            &format!("SELECT {epoch} FROM TASK JOIN COMPUTE_TASK_INFO USING (globalTaskId) ORDER BY 1, 2"),
        );
        assert_eq!(kernels, ops(run, |work| matches!(work, Work::Compute(_))));
        let copies =
            query(&path, &format!("SELECT {epoch} FROM TASK JOIN MEMCPY_INFO USING (globalTaskId) ORDER BY 1, 2"));
        assert_eq!(copies, ops(run, |work| matches!(work, Work::Copy { .. })));
        let collectives = query(&path, &format!("SELECT {epoch} FROM COMMUNICATION_OP ORDER BY 1, 2"));
        assert_eq!(collectives, ops(run, is_collective));
        let sum = query(&path, "SELECT sum(endNs - startNs), 0 FROM CANN_API");
        let calls: i64 = run.host.iter().filter(|e| e.kind.is_api()).map(|e| e.end - e.start).sum();
        assert_eq!(sum, [(calls, 0)]);
        let unlinked = "SELECT count(*), 0 FROM TASK WHERE connectionId NOT IN (SELECT connectionId FROM CANN_API)";
        assert_eq!(query(&path, unlinked), [(0, 0)]);
        let label = "SELECT count(*), 0 FROM META_DATA WHERE name = 'strato_simulated' AND value = 'true'";
        assert_eq!(query(&path, label), [(1, 0)]);
    }
}

#[test]
fn ascend_level_0_keeps_tasks_and_arrows_and_types_nothing() {
    let job = job(24, Vendor::Ascend);
    let run = &job.ranks[0];
    let directory = tempfile::tempdir().unwrap();
    let write = |form: AscendForm| {
        let output = AscendOutput { level: AscendLevel::Zero, ..form.into() };
        job.write_ascend(&directory.path().join(format!("{form:?}")), output).unwrap()[0].join("ASCEND_PROFILER_OUTPUT")
    };
    let text = write(AscendForm::Text);
    let events = events(&text.join("trace_view.json"));
    assert!(!events.iter().any(|e| e["args"]["name"] == "CANN" || e["name"] == "Notify_Wait"));
    assert!(!events.iter().any(|e| e["ph"] == "X" && e["name"].as_str().unwrap().starts_with("AscendCL")));
    let begins = |category: &'static str| events.iter().filter(move |e| e["cat"] == category && e["ph"] == "s");
    let launched: BTreeSet<i64> = begins("HostToDevice").map(|e| ns(e["ts"].as_str().unwrap()) - EPOCH).collect();
    assert_eq!(launched, run.ops.iter().map(|op| run.host[op.call].start).collect());
    assert_eq!(begins("async_npu").count() > 0, run.config.framework_ops);
    let rows = fs::read_to_string(text.join("kernel_details.csv")).unwrap();
    assert!(rows.starts_with("Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim\n"));
    let path = write(AscendForm::Database).join("ascend_pytorch_profiler_0.db");
    let typed = "SELECT count(*), 0 FROM COMMUNICATION_TASK_INFO WHERE taskType != \
                 (SELECT id FROM STRING_IDS WHERE value = 'N/A')";
    assert_eq!(query(&path, typed), [(0, 0)]);
    let waits = "SELECT sum(endNs - startNs), 0 FROM TASK JOIN COMMUNICATION_TASK_INFO USING (globalTaskId) WHERE \
                 TASK.taskType = (SELECT id FROM STRING_IDS WHERE value = 'Notify Wait')";
    assert_eq!(query(&path, waits), [(run.ops.iter().map(|op| op.work.wait()).sum(), 0)]);
    let told = "SELECT count(inputShapes), sum(blockNum) FROM COMPUTE_TASK_INFO";
    assert_eq!(query(&path, told), [(0, 0)]);
}

#[test]
fn rocpd_holds_every_call_kernel_and_copy_of_each_rank() {
    let config =
        Config { vendor: Vendor::Rocm, steps: 4, layers: 3, graph_level_trace: false, ..Config::draw_job(5, 2) };
    let job = simulate_job(&config);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    job.write_rocpd(&path).unwrap();
    for run in &job.ranks {
        let suffix = format!("_{:08x}_92cb_7aa1_b2c3_000000000000", 4711 + run.rank);
        let times = |table: &str| {
            let boot = 1_000_000_000_000_000_i64;
            query(&path, &format!("SELECT start - {boot}, end - {boot} FROM {table}{suffix} ORDER BY 1, 2"))
        };
        assert_eq!(times("rocpd_memory_copy"), ops(run, |work| matches!(work, Work::Copy { .. })));
        assert_eq!(times("rocpd_kernel_dispatch"), ops(run, |work| !matches!(work, Work::Copy { .. })));
        let recorded = |kind: HostKind| kind.is_api() || matches!(kind, HostKind::UserRange | HostKind::Compile);
        let calls = run.host.iter().filter(|e| recorded(e.kind)).map(|e| (e.start, e.end));
        assert_eq!(times("rocpd_region"), sorted(calls));
        let label = format!("SELECT count(*), 0 FROM rocpd_metadata{suffix} WHERE tag = 'strato_simulated'");
        assert_eq!(query(&path, &label), [(1, 0)]);
    }
}

#[test]
fn hipprof_begins_a_queued_kernel_where_another_operation_ended_and_ends_each_when_it_ended() {
    let job = job(31, Vendor::Rocm);
    let run = &job.ranks[0];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("result.json");
    job.write_hipprof(&path).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(r#""stratoSimulated":"true""#));
    let shown = events(&path).into_iter().filter(|e| e["ph"] == "X" && e["pid"] != 2);
    let shown: Vec<(i64, i64)> = shown
        .map(|e| {
            let start = ns(e["ts"].as_str().unwrap());
            (start, start + ns(e["dur"].as_str().unwrap()))
        })
        .collect();
    let ends: BTreeSet<i64> = run.ops.iter().map(|op| op.end).collect();
    let mut folded = 0;
    assert_eq!(shown.len(), run.ops.len());
    for (op, (start, end)) in run.ops.iter().zip(shown) {
        assert_eq!(end, op.end);
        assert!(start == op.start || (start < op.start && ends.contains(&start)));
        folded += usize::from(start < op.start);
    }
    assert!(folded * 3 > run.ops.len(), "{folded} of {} kernels were queued", run.ops.len());
}

#[test]
fn a_format_refuses_a_run_of_a_platform_that_its_profiler_does_not_know() {
    let directory = tempfile::tempdir().unwrap();
    let cuda = job(3, Vendor::Cuda);
    let refused = [
        cuda.write_ascend(directory.path(), AscendForm::Text).map(drop),
        cuda.write_rocpd(&directory.path().join("a.db")),
        cuda.write_hipprof(&directory.path().join("a.json")),
        job(3, Vendor::Ascend).write_kineto(directory.path()).map(drop),
    ];
    for result in refused {
        let error = result.unwrap_err();
        assert!(
            matches!(error, WriteError::Platform { .. }) && error.to_string().contains("does not record"),
            "{error}"
        );
    }
}
