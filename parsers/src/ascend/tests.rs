//! Small captures written by hand, and what they become.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use model::{Category, Columns, Detail, KernelDetail, Trace, TraceBuilder, TrackKind};
use sqlx::{AssertSqlSafe, Connection, Executor, SqliteConnection, sqlite::SqliteConnectOptions};

use super::FORMAT;
use crate::{Match, ReadError};

mod damage;
mod databases;
mod tables;
mod timelines;

/// A directory with files.
pub(super) struct Output {
    directory: tempfile::TempDir,
}

impl Output {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// Writes a file, making the directories above it.
    pub fn file(self, name: &str, content: &str) -> Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// Writes a database made of these statements.
    pub fn database(self, name: &str, sql: &str) -> Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut db = SqliteConnection::connect_with(&options).await.unwrap();
            db.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await.unwrap();
            db.close().await.unwrap();
        });
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// Reads what detection must take for ours.
pub(super) fn read(path: &Path) -> Trace {
    assert_eq!(crate::detect::detect(path, &crate::ReadOptions::default()).unwrap().id, FORMAT.id);
    try_read(path).unwrap()
}

pub(super) fn try_read(path: &Path) -> Result<Trace, ReadError> {
    let mut builder = TraceBuilder::new(path.display().to_string(), "ascend");
    (FORMAT.read)(path, &mut builder, &crate::ReadOptions::default()).map(|()| builder.finish())
}

/// Every slice of a kind of track: category, name, start, duration.
pub(super) fn rows(trace: &Trace, kind: TrackKind) -> Vec<(Category, String, i64, i64)> {
    let lanes = trace.tracks.iter().zip(&trace.lanes).filter(|(track, _)| track.key.kind == kind);
    let row = |lane: &Columns, i: usize| {
        (lane.category[i], trace.strings.get(lane.name[i]).to_owned(), lane.start[i], lane.dur[i])
    };
    let mut rows: Vec<_> = lanes.flat_map(|(_, lane)| (0..lane.len()).map(move |i| row(lane, i))).collect();
    rows.sort_by_key(|row| (row.2, row.1.clone()));
    rows
}

/// The detail of the only kernel with this name.
pub(super) fn kernel(trace: &Trace, name: &str) -> KernelDetail {
    let mut found = trace.lanes.iter().flat_map(|lane| {
        let named = move |i: &usize| lane.category[*i] == Category::Kernel && trace.strings.get(lane.name[*i]) == name;
        (0..lane.len()).filter(named).map(move |i| trace.detail(lane, i).cloned())
    });
    match (found.next(), found.next()) {
        (Some(Some(Detail::Kernel(kernel))), None) => kernel,
        other => panic!("{name}: {other:?}"),
    }
}

/// Rows read, rows kept and nanoseconds of the rows of the ledger that begin so.
pub(super) fn ledger(trace: &Trace, prefix: &str) -> (u64, u64, i64) {
    let rows = trace.ledger.iter().filter(|row| row.category.starts_with(prefix));
    rows.fold((0, 0, 0), |sum, row| (sum.0 + row.read, sum.1 + row.kept, sum.2 + row.time_ns))
}

#[test]
fn directories_are_known_by_what_lies_in_them() {
    let is = |path: &Path| (FORMAT.matches)(&crate::Head::new(path, &[]));
    let output = Output::new().file("rank_0/ASCEND_PROFILER_OUTPUT/trace_view.json", "[]");
    let old = Output::new().file("capture/device_0/timeline/msprof_0_1_1.json", "[]");
    for path in [output.path("rank_0"), output.path("rank_0/ASCEND_PROFILER_OUTPUT"), old.path("capture")] {
        assert_eq!(is(&path), Match::Certain, "{}", path.display());
    }
    for name in ["host_1_20250101_ascend_pt", "host_1_20250101_ascend_ms", "PROF_000001_20250101"] {
        let raw = Output::new().file(&format!("{name}/FRAMEWORK/torch.op_range"), "raw");
        assert_eq!(is(&raw.path(name)), Match::Certain);
        let told = try_read(&raw.path(name)).unwrap_err().to_string();
        assert!(told.contains("raw data only") && told.contains("analyse"), "{told}");
    }
    let other = Output::new().file("traces/a.json", "[]");
    assert_eq!(is(&other.path("traces")), Match::No);
}

#[test]
fn unknown_files_are_named_up_to_a_limit() {
    let mut output = Output::new().file("PROF_1/msprof_1.json", "[]");
    for number in 0..30 {
        output = output.file(&format!("PROF_1/new_{number:02}.csv"), "a,b\n");
    }
    let layout = super::layout::Layout::of(&output.path("PROF_1"));
    let names: Vec<&str> = layout.not_read.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names.len(), names[0], names[16]), (17, "new_00.csv", "other files"));
}

/// The first bytes of each kind of file that holds sums only.
const DECLINED: [(&str, &str, &str); 14] = [
    ("api_statistic.csv", "Device_id,Level,API Name,Time(us),Count,Avg(us)\nhost,acl,x,1,1,1\n", "host's calls"),
    ("operator_details.csv", "Name,Input Shapes,Call Stack,Host Self Duration(us)\na,,,1\n", "framework's operators"),
    ("step_trace_1.csv", "Device_id,Iteration ID,FP Start(us)\n0,1,1\n", "iterations"),
    ("fusion_op_1.csv", "Device_id,Model Name,Model ID,Fusion Op,Original Ops\n0,m,1,a,b\n", "fused"),
    ("operator_memory.csv", "Name,Size(KB),Allocation Time(us)\na,1,1\n", "allocations"),
    ("memory_record.csv", "Component,Timestamp(us),Total Allocated(MB)\nPTA,1,1\n", "memory over time"),
    ("l2_cache.csv", "Device_id,Stream Id,Task Id,Hit Rate,Victim Rate,Op Name\n0,1,1,1,0,a\n", "cache hits"),
    (
        "communication.json",
        r#"{"step": {"collective": {"a": {"Communication Time Info": {"Elapse Time(ms)": 1}}}}}"#,
        "each collective",
    ),
    (
        "communication_matrix.json",
        r#"{"step": {"collective": {"a": {"0-1": {"Transport Type": "HCCS", "Transit Size(MB)": 1}}}}}"#,
        "pair of ranks",
    ),
    ("communication_group.json", r#"{"collective": [[0, 1]], "p2p": [[0, 1]]}"#, "communication group"),
    (
        "op_meantime_baseline_910.json",
        r#"{"test_LlcIsCapacity_AicMetricsIsMemory": {"Conv2D-1,1,2-1": 164.4401}}"#,
        "mean times",
    ),
    (
        "profiler_metadata.json",
        r#"{"distributed_args": {"rank": 0}, "ENV_VARIABLES": {"ASCEND_GLOBAL_LOG_LEVEL": ""}, "parallel_group_info": {}}"#,
        "process groups",
    ),
    (
        "profiler_info_0.json",
        r#"{"config": {"common_config": {"activities": []}, "experimental_config": {}}, "rank_id": 0}"#,
        "settings of a profiler",
    ),
    ("analysis.db", "SQLite", "steps and collectives"),
];

#[test]
fn sums_without_their_capture_are_declined_by_what_they_hold() {
    for (name, content, holds) in DECLINED {
        let output = match name.ends_with(".db") {
            true => {
                Output::new().database(name, "CREATE TABLE StepTraceTime (deviceId TEXT, step TEXT, computing REAL)")
            }
            false => Output::new().file(name, content),
        };
        let mut builder = TraceBuilder::new(name, "");
        let declined = crate::detect::read(&output.path(name), &mut builder, &crate::ReadOptions::default())
            .map(|format| format.id);
        let Err(error @ ReadError::Declined { .. }) = declined else { panic!("{name}: {declined:?}") };
        let told = error.to_string();
        assert!(told.contains(holds) && told.contains("give the directory"), "{told}");
    }
}

#[test]
fn of_two_exports_the_later_one_is_read_and_slices_of_it_are_joined() {
    let kernel = |ts: u32| {
        format!(
            r#"[{{"name":"process_name","pid":32,"tid":0,"args":{{"name":"Ascend Hardware"}},"ph":"M"}},
{{"name":"MatMulV3","pid":32,"tid":2,"ts":"17364088830000{ts}.000","dur":1,"args":{{"Task Type":"AI_CORE"}},"ph":"X"}}]"#
        )
    };
    let output = Output::new()
        .file("PROF_1/mindstudio_profiler_output/msprof_20250101000000.json", &kernel(10))
        .file("PROF_1/mindstudio_profiler_output/msprof_slice_0_20250102000000.json", &kernel(20))
        .file("PROF_1/mindstudio_profiler_output/msprof_slice_1_20250102000000.json", &kernel(30));
    let trace = read(&output.path("PROF_1"));
    let starts: Vec<i64> = rows(&trace, TrackKind::DeviceQueue).into_iter().map(|row| row.2).collect();
    assert_eq!(starts, [0, 10_000]);
}

#[test]
fn devices_of_early_layouts_are_those_of_their_directories() {
    let kernel = r#"[{"name":"process_name","pid":3,"tid":0,"args":{"name":"Ascend Hardware"},"ph":"M"},
{"name":"Cast","pid":3,"tid":2,"ts":56635864000.8,"dur":1,"args":{"Task Type":"AI_CORE"},"ph":"X"}]"#;
    let output = Output::new()
        .file("p/device_0/timeline/msprof_0_1_1.json", kernel)
        .file("p/device_5/timeline/msprof_5_1_1.json", kernel);
    let trace = read(&output.path("p"));
    assert_eq!(trace.devices.iter().map(|device| device.ordinal).collect::<Vec<_>>(), [0, 5]);
}

#[test]
fn collectives_of_early_layouts_are_of_the_device_of_their_directory() {
    // The numbers of processes are counted up from the host's: the lower bits of HCCL's are 27.
    let text = r#"[{"name":"process_name","pid":1003602,"tid":0,"args":{"name":"CANN"},"ph":"M"},
{"name":"process_name","pid":1003611,"tid":0,"args":{"name":"HCCL"},"ph":"M"},
{"name":"thread_name","pid":1003611,"tid":1,"args":{"name":"Communication Kernel"},"ph":"M"},
{"name":"process_name","pid":3,"tid":0,"args":{"name":"Ascend Hardware"},"ph":"M"},
{"name":"hcom_allReduce__1_1","pid":1003611,"tid":1,"ts":56635864002.8,"dur":1,"args":{},"ph":"X"},
{"name":"Cast","pid":3,"tid":2,"ts":56635864000.8,"dur":1,"args":{"Task Type":"AI_CORE"},"ph":"X"}]"#;
    let output = Output::new().file("p/device_0/timeline/msprof_0_1_1.json", text);
    let trace = read(&output.path("p"));
    assert_eq!(trace.devices.iter().map(|device| device.ordinal).collect::<Vec<_>>(), [0]);
    assert_eq!(rows(&trace, TrackKind::DeviceQueue).len(), 2);
}

/// Sums of the steps of one rank were refused on their own, although those of all ranks are read.
#[test]
fn sums_of_the_steps_of_one_rank_are_those_of_a_job_of_one() {
    let table = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble\n\
                 4,13,400.5,277.25,0.0,277.25,131,808.75,0\n";
    let older =
        "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n13,400.5,277.25,0,277.25,131\n";
    for (content, rank) in [(table, 4), (older, 0)] {
        let output = Output::new().file("step_trace_time.csv", content);
        let mut builder = TraceBuilder::new("t", "");
        crate::detect::read(&output.path("step_trace_time.csv"), &mut builder, &crate::ReadOptions::default()).unwrap();
        let trace = builder.finish();
        let [step] = trace.job_sums.steps.as_slice() else { panic!("{:?}", trace.job_sums) };
        assert_eq!((step.rank, step.parts.first().map(|(_, ns)| *ns)), (rank, Some(400_500)));
    }
}
