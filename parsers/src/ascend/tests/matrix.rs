#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Trace, TraceBuilder};

use super::*;
use crate::ascend::tests::Output;

const METADATA: &str = r#"{"distributed_args": {"rank": 1, "world_size": 4}, "parallel_group_info": {
"g0": {"group_name": "default_group", "group_rank": 1, "global_ranks": [0, 1, 2, 3]},
"g1": {"group_name": "dp_cp", "group_rank": 1, "global_ranks": [0, 1]},
"g2": {"group_name": "pp", "group_rank": 0, "global_ranks": [1, 3]}, "g3": {"group_name": "ep", "group_rank": 0, "global_ranks": [1, 2]},
"g4": {"group_name": "torn", "group_rank": -1, "global_ranks": "x"}}}"#;
/// A pipeline's pair, one of data parallelism, one of a group that two fit, one of all ranks; picks and a torn row beside them.
const MATRIX: &str = r#"{"step13": {"p2p": {
"batchsendrecv-top1@11": {"0-1": {"Transport Type": "HCCS", "Transit Size(MB)": 8.388608, "Transit Time(ms)": 0.4, "Bandwidth(GB/s)": 20.9}},
"batchsendrecv-total@11": {"0-0": {"Transport Type": "LOCAL", "Transit Size(MB)": 1, "Transit Time(ms)": 0.1},
"0-1": {"Transport Type": "HCCS", "Transit Size(MB)": 16.777216, "Transit Time(ms)": 0.8025}}},
"collective": {"reduce-total@22": {"1-0": {"Transport Type": "HCCS", "Transit Size(MB)": 751.63136, "Transit Time(ms)": 40.21264}},
"allreduce-total@33": {"0-1": {"Transport Type": "HCCS", "Transit Size(MB)": 5, "Transit Time(ms)": 1}},
"allgather-total@44": {"1-3": {"Transport Type": "HCCS", "Transit Size(MB)": 0.000096, "Transit Time(ms)": 0.00144},
"1-2": {"Transport Type": "HCCS", "Transit Size(MB)": "x"}}}}}"#;

fn matrix(files: &[(&str, &str)], database: Option<&str>) -> Trace {
    let place = |file: &str| format!("rank_1_ascend_pt/{file}");
    let mut output = Output::new();
    for (file, text) in files {
        output = output.file(&place(file), text);
    }
    if let Some(sql) = database {
        output = output.database(&place("analysis.db"), sql);
    }
    let mut builder = TraceBuilder::new("t", "ascend");
    read(&Layout::of(&output.path("rank_1_ascend_pt")), &mut builder);
    builder.finish()
}

fn links(trace: &Trace) -> Vec<(u32, u32, &str, i64, i64)> {
    let links = trace.job_sums.links.iter();
    links.map(|link| (link.from, link.to, trace.strings.get(link.transport), link.bytes, link.time)).collect()
}

#[test]
fn pairs_of_a_group_become_links_between_ranks_of_the_job() {
    let trace = matrix(&[("communication_matrix.json", MATRIX), ("profiler_metadata.json", METADATA)], None);
    let expected = [
        (1, 0, "HCCS", 751_631_360, 40_212_640),
        (1, 1, "LOCAL", 1_000_000, 100_000),
        (1, 3, "HCCS", 16_777_216 + 96, 802_500 + 1_440),
    ];
    assert_eq!(links(&trace), expected);
    // Two groups fit the pair of the all-reduce, and its peer would be another rank in each.
    assert_eq!((trace.stat("ascend.links_of_unknown_ranks"), trace.stat("ascend.incomplete_row")), (1, 1));
    let row = trace.ledger.iter().find(|row| row.category == "communication_matrix.json").unwrap();
    assert_eq!((row.read, row.kept), (7, 5), "{}", row.note);
}

#[test]
fn without_groups_the_numbers_are_the_jobs_if_they_are_the_ranks_own() {
    let own = r#"{"step2": {"p2p": {"send@1": {"1-9": {"Transport Type": "RDMA", "Transit Size(MB)": 20.97152, "Transit Time(ms)": 0.86382}}}}}"#;
    let trace = matrix(&[("communication_matrix.json", own)], None);
    assert_eq!(links(&trace), [(1, 9, "RDMA", 20_971_520, 863_820)]);
    let other = own.replace("1-9", "0-1");
    let trace = matrix(&[("communication_matrix.json", &other)], None);
    assert_eq!((links(&trace).len(), trace.stat("ascend.links_of_unknown_ranks")), (0, 1));
}

#[test]
fn a_torn_matrix_gives_what_stands_before_the_tear_and_says_so() {
    let torn = &MATRIX[..MATRIX.find("\"allreduce-total").unwrap()];
    let trace = matrix(&[("communication_matrix.json", torn), ("profiler_metadata.json", METADATA)], None);
    assert_eq!((links(&trace).len(), trace.stat("ascend.damaged_file")), (3, 1));
}

#[test]
fn the_table_of_the_analysis_says_the_same() {
    let sql = "CREATE TABLE CommAnalyzerMatrix (hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank TEXT, transport_type TEXT, transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC, step TEXT, type TEXT, op_name TEXT);
        INSERT INTO CommAnalyzerMatrix VALUES ('batchsendrecv-total','11','0','1','HCCS',16.777216,0.8025,20.9,'step13','p2p',''),('batchsendrecv-top1','11','0','1','HCCS',8.388608,0.4,20.9,'step13','p2p','x'),('reduce-total','22','1','0','HCCS',NULL,1,1,'step13','collective','')";
    let trace = matrix(&[("profiler_metadata.json", METADATA)], Some(sql));
    assert_eq!(links(&trace), [(1, 3, "HCCS", 16_777_216, 802_500)]);
    assert_eq!(trace.stat("ascend.incomplete_row"), 1);
}
