//! Files that are cut, broken or hostile.

use super::*;

const NAMES: &str = r#"{"name":"process_name","pid":32,"tid":0,"args":{"name":"Ascend Hardware"},"ph":"M"}"#;

fn kernel_at(us: u32) -> String {
    format!(
        r#"{{"name":"MatMulV3","pid":32,"tid":2,"ts":"17364088830000{us:02}.000","dur":0.5,"args":{{"Task Type":"AI_CORE"}},"ph":"X"}}"#
    )
}

fn timeline(content: &str) -> Trace {
    try_read(&Output::new().file("trace_view.json", content).path("trace_view.json")).unwrap()
}

fn timeline_of(output: &Output) -> Trace {
    read(&output.path("trace_view.json"))
}

#[test]
fn a_timeline_that_was_cut_gives_what_was_whole() {
    let whole = format!("[{NAMES},{},{},{}]", kernel_at(10), kernel_at(20), kernel_at(30));
    let cut = &whole[..whole.len() - 40];
    let output = Output::new().file("trace_view.json", cut);
    let trace = timeline_of(&output);
    assert_eq!(rows(&trace, TrackKind::DeviceQueue).len(), 2);
    assert_eq!(trace.stat("ascend.truncated_file"), 1);
    assert_eq!(timeline(&whole).stat("ascend.truncated_file"), 0);
}

#[test]
fn a_broken_event_costs_itself() {
    let broken = kernel_at(20).replace("\"dur\":0.5", "\"dur\":0.5x");
    let trace = timeline(&format!("[{NAMES},{},{broken},{}]", kernel_at(10), kernel_at(30)));
    assert_eq!(rows(&trace, TrackKind::DeviceQueue).len(), 2);
    assert_eq!(trace.stat("ascend.broken_events"), 1);
}

#[test]
fn events_without_time_and_layers_without_name_are_counted() {
    let timeless = kernel_at(20).replace("\"dur\":0.5,", "");
    let stranger = kernel_at(30).replace("\"pid\":32", "\"pid\":33");
    let trace = timeline(&format!("[{NAMES},{},{timeless},{stranger}]", kernel_at(10)));
    assert_eq!(rows(&trace, TrackKind::DeviceQueue).len(), 1);
    assert_eq!(trace.stat("ascend.incomplete_event"), 1);
    assert_eq!(ledger(&trace, "unnamed process"), (1, 0, 0));
}

#[test]
fn what_is_no_array_is_refused_with_the_next_step() {
    for content in ["{}", "no json", "\u{feff}", "[", "[{"] {
        let output = Output::new().file("trace_view.json", content);
        match try_read(&output.path("trace_view.json")) {
            Err(ReadError::Malformed { next, .. }) => assert!(next.contains("export"), "{next}"),
            Ok(trace) => assert!(content.starts_with('[') && trace.slice_count() == 0),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_database_that_was_cut_anywhere_ends_without_panic() {
    let sql = "CREATE TABLE STRING_IDS (id INTEGER, value TEXT); INSERT INTO STRING_IDS VALUES (1,'KERNEL_AICORE');
CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, globalTaskId INTEGER);
CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, globalPid INTEGER, taskType INTEGER, streamId INTEGER, modelId INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
INSERT INTO TASK SELECT 1736408883000000000 + i * 1000, 1736408883000000500 + i * 1000, 0, i, i, 1, 1, 2, 4294967295 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO COMPUTE_TASK_INFO SELECT 1, i FROM n;";
    let output = Output::new().database("msprof_1.db", sql);
    let bytes = std::fs::read(output.path("msprof_1.db")).unwrap();
    assert_eq!(rows(&read(&output.path("msprof_1.db")), TrackKind::DeviceQueue).len(), 2000);
    let mut kept = Vec::new();
    for part in 1..16 {
        let cut = Output::new();
        std::fs::write(cut.path("msprof_1.db"), &bytes[..bytes.len() * part / 16]).unwrap();
        if let Ok(trace) = try_read(&cut.path("msprof_1.db")) {
            let work = rows(&trace, TrackKind::DeviceQueue).len();
            assert!(work < 2000);
            assert!(trace.stats.iter().any(|stat| stat.severity == model::Severity::DataLoss), "part {part}");
            kept.push(work);
        }
    }
    assert!(!kept.is_empty(), "a file cut near its end still gives something");
}

/// One collective after the other, as `communication.json` has them.
fn collectives(names: &[&str]) -> String {
    let one = |name: &&str| {
        format!(
            r#""{name}": {{"Communication Time Info": {{"Start Timestamp(us)": 1736408883000040.0, "Elapse Time(ms)": 0.025, "Transit Time(ms)": 0.005, "Wait Time(ms)": 0.02}}}}"#
        )
    };
    format!(r#"{{"step1": {{"collective": {{{}}}}}}}"#, names.iter().map(one).collect::<Vec<_>>().join(",\n"))
}

const ANALYSIS: &str = "CREATE TABLE CommAnalyzerTime (hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, elapse_time NUMERIC, transit_time NUMERIC, wait_time NUMERIC);
INSERT INTO CommAnalyzerTime VALUES ('hcom_allReduce__1_0_1','g',1736408883000040.0,0.025,0.005,0.02),('hcom_allReduce__1_1_1','g',1736408883000140.0,0.025,0.005,0.02),('hcom_allReduce__1_2_1','g',1736408883000240.0,0.025,0.005,0.02);";

/// D8: what was cut sent people in a circle, to an export that there is already.
#[test]
fn of_a_rank_of_sums_what_is_whole_is_read_and_what_is_torn_is_named() {
    const RANK: &str = "rank3_ascend_pt";
    let whole = collectives(&["hcom_allReduce__1_0_1@g", "hcom_allReduce__1_1_1@g", "hcom_allReduce__1_2_1@g"]);
    let torn = &whole[..whole.len() - 40];
    let json = format!("{RANK}/ASCEND_PROFILER_OUTPUT/communication.json");
    let database = format!("{RANK}/ASCEND_PROFILER_OUTPUT/analysis.db");
    let collectives =
        |trace: &Trace| rows(trace, TrackKind::DeviceQueue).iter().filter(|row| row.1.starts_with("hcom_")).count();

    let both = Output::new().file(&json, torn).database(&database, ANALYSIS);
    let trace = read(&both.path(RANK));
    assert_eq!((collectives(&trace), trace.stat("ascend.read_instead")), (3, 1));
    let told = trace.stats.iter().find(|stat| stat.name == "ascend.read_instead").unwrap().example.clone().unwrap();
    assert!(told.starts_with("communication.json: ") && told.ends_with("analysis.db was read instead"), "{told}");

    let alone = Output::new().file(&json, torn);
    let trace = read(&alone.path(RANK));
    assert_eq!((collectives(&trace), trace.stat("ascend.damaged_file")), (2, 1));

    let nothing = Output::new().file(&json, &torn[..60]);
    let told = try_read(&nothing.path(RANK)).unwrap_err().to_string();
    assert!(told.contains("communication.json: EOF") && !told.contains("raw data"), "{told}");

    let steps = Output::new().file(
        &format!("{RANK}/ASCEND_PROFILER_OUTPUT/step_trace_time.csv"),
        "Step,Computing,Communication(Not Overlapped)\n1,2,3\n",
    );
    let told = try_read(&steps.path(RANK)).unwrap_err().to_string();
    assert!(told.contains("found only step_trace_time.csv") && told.contains("analysis.db"), "{told}");

    let empty = Output::new().file("other.txt", "");
    std::fs::create_dir(empty.path(RANK)).unwrap();
    let told = try_read(&empty.path(RANK)).unwrap_err().to_string();
    assert!(told.contains("found no file of it") && !told.contains("raw data"), "{told}");
}
