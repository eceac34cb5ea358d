//! Output directories of the Ascend profiler, written by hand.

use std::path::Path;

use sqlx::{AssertSqlSafe, Connection, Executor, SqliteConnection, sqlite::SqliteConnectOptions};

/// Runs statements on a database, which is made where there is none.
pub fn database(path: &Path, sql: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut db = SqliteConnection::connect_with(&options).await.unwrap();
        db.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await.unwrap();
        db.close().await.unwrap();
    });
}

/// Writes a file, making the directories above it.
pub fn file(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// Collectives of a rank of sums: name, start and elapsed time, µs.
const COLLECTIVES: [(&str, f64, f64); 4] = [
    ("hcom_allReduce__1_0_1", 100.0, 100.0),
    ("hcom_allReduce__1_1_1", 400.0, 200.0),
    ("hcom_receive__1_2_1", 700.0, 50.0),
    ("hcom_allReduce__1_3_1", 900.0, 100.0),
];

/// Writes a rank of which only sums were kept, in all files that hold them: a step of 1 000 µs of which 450 are computing and
/// 450 communication, 50 of either at once; its collectives begin `late` µs later than those of other ranks.
pub fn rank_of_sums(directory: &Path, rank: u32, late: f64) {
    let output = directory.join(format!("rank_{rank}_ascend_pt/ASCEND_PROFILER_OUTPUT"));
    let begin = |start: f64| 1_736_408_883_000_000.0 + start + late;
    let op = |(name, start, elapse): &(&str, f64, f64)| {
        let (start, ms) = (begin(*start), *elapse / 1e3);
        format!(
            r#""{name}@77": {{"Communication Time Info": {{"Start Timestamp(us)": {start:.1}, "Elapse Time(ms)": {ms}, "Transit Time(ms)": 0.01, "Wait Time(ms)": 0.02}}}}"#
        )
    };
    let ops: Vec<String> = COLLECTIVES.iter().map(op).collect();
    file(&output.join("communication.json"), &format!(r#"{{"step1": {{"collective": {{{}}}}}}}"#, ops.join(",\n")));
    file(
        &output.join("step_trace_time.csv"),
        "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Communication(Not \
         Overlapped and Exclude Receive),Preparing\n0,1,450.0,400.0,50.0,450.0,150.0,950.0,50.0,350.0,5.0\n",
    );
    file(
        &output.join("op_statistic.csv"),
        "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n0,MatMulV2,AI_CORE,9,450.0,50.0,50.0,50.0,100.0\n",
    );
    let row = |(name, start, elapse): &(&str, f64, f64)| {
        format!("('{name}','77',{:.1},{},0.01,0.02,'step1','collective')", begin(*start), *elapse / 1e3)
    };
    let rows: Vec<String> = COLLECTIVES.iter().map(row).collect();
    database(
        &output.join("analysis.db"),
        &format!(
            "CREATE TABLE CommAnalyzerTime (hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, elapse_time NUMERIC, \
             transit_time NUMERIC, wait_time NUMERIC, step TEXT, type TEXT);
             INSERT INTO CommAnalyzerTime VALUES {};
             CREATE TABLE StepTraceTime (deviceId INTEGER, step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC, \
             overlapped NUMERIC, communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC);
             INSERT INTO StepTraceTime VALUES (0,'1',450,400,50,450,150,950,50);",
            rows.join(",")
        ),
    );
}
