#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{StepPart::*, StepSum, Trace, TraceBuilder};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, sqlite::SqliteConnectOptions};

use super::*;

const STEPS: &str = "Step,Type,Index,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble\n\
    2,rank,0,70.5,20.25,1,21.25,9.25,100.0,0.0\n2,rank,8,60,30,0,30,10,70,30\n2,rank,x,1,1,1,1,1,1,1\n\
    2,stage,\"(0, 1)\",70.5,20.25,1,21.25,9.25,100.0,0\n2,stage,\"(8, 9)\",60,30,0,30,10,70,30\n";

/// A rank's times in a collective, ms.
fn times(elapse: &str, transit: &str, wait: &str) -> String {
    format!(
        r#"{{"Communication Time Info":{{"Elapse Time(ms)":{elapse},"Transit Time(ms)":{transit},"Wait Time(ms)":{wait}}},"Communication Bandwidth Info":{{}}}}"#
    )
}

/// A link's bytes and time, MB and ms.
fn moved(kind: &str, size: &str, time: &str) -> String {
    format!(r#"{{"Transport Type":"{kind}","Transit Time(ms)":{time},"Transit Size(MB)":{size},"Bandwidth(GB/s)":7}}"#)
}

fn write(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn import(path: &Path) -> Trace {
    assert_eq!(
        crate::detect::detect(path, &crate::ReadOptions::default()).unwrap().id,
        "ascend-cluster",
        "{}",
        path.display()
    );
    let mut builder = TraceBuilder::new("t", "ascend-cluster");
    read(path, &mut builder, &crate::ReadOptions::default()).unwrap();
    builder.finish()
}

fn links(trace: &Trace) -> Vec<(u32, u32, &str, i64, i64)> {
    let of = |l: &model::LinkSum| (l.from, l.to, trace.strings.get(l.transport), l.bytes, l.time);
    trace.job_sums.links.iter().map(of).collect()
}

#[test]
fn a_step_of_a_rank_is_a_sum_and_never_a_slice() {
    let directory = tempfile::tempdir().unwrap();
    let trace = import(&write(directory.path(), "cluster_step_trace_time.csv", STEPS));
    let [first, second] = trace.job_sums.steps.as_slice() else { panic!("{:?}", trace.job_sums) };
    assert_eq!((trace.strings.get(first.step), first.rank, first.stage), ("2", 0, Some(0)));
    assert_eq!(
        [Computing, ExposedCommunication, Free, Overlapped, Bubble].map(|part| first.part(part)),
        [70_500, 20_250, 9_250, 1_000, 0].map(Some)
    );
    assert_eq!(
        (second.rank, second.stage, second.part(Bubble), second.part(Preparing)),
        (8, Some(1), Some(30_000), None)
    );
    assert_eq!((trace.slice_count(), trace.stat("ascend-cluster.incomplete_row")), (0, 1));
    let rows: Vec<_> = trace.ledger.iter().map(|r| (&*r.category, r.read, r.kept, r.time_ns)).collect();
    assert_eq!(rows, [("steps of ranks", 3, 2, 200_000), ("steps of stages", 2, 0, 0)]);
}

/// `Total Op Info` is the sum of the group's operations, `-total` that of a type, `-top1` one of them again.
#[test]
fn sums_beside_their_parts_count_once() {
    let directory = tempfile::tempdir().unwrap();
    let text = format!(
        r#"{{"p2p":{{"step2":{{"hcom_send__1_0@7":{{"0-8":{}}},"Total Op Info":{{"0-8":{},"0-0":{}}}}}}},
            "(0, 1)":{{"step2":{{"allgather-total@9":{{"0-1":{}}},"allgather-top1@9":{{"0-1":{}}},"allgather-total@8":{{"0-1":{}}}}}}}}}"#,
        moved("RDMA", "20.97152", "0.86381540625"),
        moved("RDMA", "20.97152", "0.86381540625"),
        moved("LOCAL", "4e-05", "0"),
        moved("HCCS", "3", "2"),
        moved("HCCS", "1", "1"),
        moved("HCCS", "0.5", "0.25"),
    );
    let trace = import(&write(directory.path(), "cluster_communication_matrix.json", &text));
    assert_eq!(
        links(&trace),
        [(0, 0, "LOCAL", 40, 0), (0, 1, "HCCS", 3_500_000, 2_250_000), (0, 8, "RDMA", 20_971_520, 863_815)]
    );
}

#[test]
fn times_in_collectives_are_those_of_the_ranks_step() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "cluster_step_trace_time.csv", STEPS);
    write(directory.path(), "communication_group.json", "{}");
    let text = format!(
        r#"{{"p2p":{{"step2":{{"hcom_send__1_0@7":{{"0":{},"8":{}}},"Total Op Info":{{"0":{}}}}}}},"(0, 1)":{{"step2":{{"hcom_broadcast__1_0@9":{{"0":{},"1":{{}}}}}}}}}}"#,
        times("2", "1", "0.5"),
        times("3", "1", "2e-05"),
        times("2", "1", "0.5"),
        times("4", "0", "4"),
    );
    write(directory.path(), "cluster_communication.json", &text);
    let trace = import(directory.path());
    let of = |sum: &StepSum| [InCollectives, Transfer, Wait].map(|part| sum.part(part));
    let found: Vec<_> = trace.job_sums.steps.iter().map(|sum| (sum.rank, of(sum))).collect();
    let ms = |a: i64, b: i64, c: i64| [a, b, c].map(Some);
    assert_eq!(found, [(0, ms(6_000_000, 1_000_000, 4_500_000)), (8, ms(3_000_000, 1_000_000, 20))]);
    assert_eq!(trace.stat("ascend-cluster.incomplete_row"), 2);
    assert!(trace.ledger.iter().any(|row| row.category == "communication_group.json" && row.kept == 0));
}

/// The files of a single rank have the same words: they belong to the capture beside them.
#[test]
fn the_files_of_one_rank_are_not_those_of_a_job() {
    let own = format!(
        r#"{{"step":{{"p2p":{{}},"collective":{{"hcom_send__1_0@7":{{"0-8":{}}}}}}}}}"#,
        moved("RDMA", "1", "1")
    );
    assert_eq!(communication::kind(own.as_bytes()), None);
    let own = format!(r#"{{"step":{{"p2p":{{}},"collective":{{"hcom_send__1_0@7":{}}}}}}}"#, times("1", "1", "0"));
    assert_eq!(communication::kind(own.as_bytes()), None);
}

#[test]
fn a_file_that_ends_early_keeps_what_came_before() {
    let directory = tempfile::tempdir().unwrap();
    let text = format!(r#"{{"p2p":{{"step2":{{"a@7":{{"0-8":{},"8-0":{{"Tran"#, moved("RDMA", "1", "1"));
    let trace = import(&write(directory.path(), "cluster_communication_matrix.json", &text));
    assert_eq!((links(&trace).len(), trace.stat("ascend-cluster.damaged_file")), (1, 1));
}

fn database(directory: &Path, suffix: &str, sql: &str) -> PathBuf {
    let path = directory.join("cluster_analysis.db");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut db = SqliteConnectOptions::new().filename(&path).create_if_missing(true).connect().await.unwrap();
        db.execute(sqlx::raw_sql(AssertSqlSafe(sql.replace('$', suffix)))).await.unwrap();
        db.close().await.unwrap();
    });
    path
}

const TABLES: &str = "CREATE TABLE ClusterStepTraceTime (step TEXT, type TEXT, \"index\" TEXT, computing NUMERIC,
    communication_not_overlapped NUMERIC, overlapped NUMERIC, communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC);
    INSERT INTO ClusterStepTraceTime VALUES ('2','rank','0',70.5,20.25,1,21.25,9.25,100,0), ('2','rank','8',60,30,0,30,10,70,30),
    ('2','stage','(0, 1)',1,1,1,1,1,1,1), ('2','stage','(8, 9)',1,1,1,1,1,1,1);
    CREATE TABLE ClusterComm$Time (step TEXT, rank_id INTEGER, hccl_op_name TEXT, group_name TEXT, elapsed_time NUMERIC,
    transit_time NUMERIC, wait_time NUMERIC);
    INSERT INTO ClusterComm$Time VALUES ('step2',0,'hcom_send__1_0','7',2,1,0.5), ('step2',0,'Total Op Info','7',2,1,0.5);
    CREATE TABLE ClusterComm$Matrix (step TEXT, hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank REAL,
    transport_type TEXT, transit_size NUMERIC, transit_time NUMERIC);
    INSERT INTO ClusterComm$Matrix VALUES ('step2','Total Op Info','7','0',8,'RDMA',20.97152,0.86381540625);
    CREATE TABLE HostInfo (hostUid TEXT); INSERT INTO HostInfo VALUES ('1');";

/// What the text says, the database says too, whatever its tables were called.
#[test]
fn the_database_and_the_text_say_the_same() {
    let text = tempfile::tempdir().unwrap();
    write(text.path(), "cluster_step_trace_time.csv", &STEPS.replace("2,rank,x,1,1,1,1,1,1,1\n", ""));
    let times = format!(r#"{{"p2p":{{"step2":{{"hcom_send__1_0@7":{{"0":{}}}}}}}}}"#, times("2", "1", "0.5"));
    write(text.path(), "cluster_communication.json", &times);
    let moved = moved("RDMA", "20.97152", "0.86381540625");
    let moved = format!(r#"{{"p2p":{{"step2":{{"Total Op Info":{{"0-8":{moved}}}}}}}}}"#);
    write(text.path(), "cluster_communication_matrix.json", &moved);
    let expected = import(text.path());
    for suffix in ["Analyzer", "unication"] {
        let directory = tempfile::tempdir().unwrap();
        let trace = import(&database(directory.path(), suffix, TABLES));
        let of = |trace: &Trace, sum: &StepSum| {
            let mut parts = sum.parts.clone();
            parts.sort();
            (trace.strings.get(sum.step).to_owned(), sum.rank, sum.stage, parts)
        };
        let steps = |trace: &Trace| trace.job_sums.steps.iter().map(|sum| of(trace, sum)).collect::<Vec<_>>();
        assert_eq!(steps(&trace), steps(&expected), "{suffix}");
        assert_eq!(links(&trace), links(&expected), "{suffix}");
        assert!(trace.ledger.iter().any(|row| row.category == "HostInfo" && (row.read, row.kept) == (1, 0)));
        // Text beside a database says nothing new.
        write(directory.path(), "cluster_step_trace_time.csv", STEPS);
        assert_eq!(steps(&import(directory.path())), steps(&expected), "{suffix}");
    }
}

/// A sum over all operations stands beside them without a group of its own: it was counted as one more group.
#[test]
fn sums_over_all_groups_of_a_set_of_ranks_are_counted_once() {
    const SETS: &str = "CREATE TABLE ClusterComm$Time (rank_set TEXT, step TEXT, rank_id INTEGER, hccl_op_name TEXT, group_name TEXT,
        elapsed_time NUMERIC, transit_time NUMERIC, wait_time NUMERIC);
        INSERT INTO ClusterComm$Time VALUES ('(0,8)','step2',0,'hcom_send__1_0','7',2,1,0.5), ('(0,8)','step2',0,'hcom_send__2_0','9',4,3,1),
        ('(0,8)','step2',0,'Total Op Info','',6,4,1.5);
        CREATE TABLE ClusterComm$Matrix (rank_set TEXT, step TEXT, hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank REAL,
        transport_type TEXT, transit_size NUMERIC, transit_time NUMERIC);
        INSERT INTO ClusterComm$Matrix VALUES ('(0,8)','step2','Total Op Info','','0',8,'RDMA',20,2),
        ('(0,8)','step2','send-total','7','0',8,'RDMA',20,2);";
    let directory = tempfile::tempdir().unwrap();
    let trace = import(&database(directory.path(), "Analyzer", SETS));
    let [step] = &trace.job_sums.steps[..] else { panic!("{:?}", trace.job_sums.steps) };
    assert_eq!(step.part(model::StepPart::Transfer), Some(4_000_000));
    assert_eq!(step.part(model::StepPart::Wait), Some(1_500_000));
    let [link] = &trace.job_sums.links[..] else { panic!("{:?}", trace.job_sums.links) };
    assert_eq!((link.bytes, link.time), (20_000_000, 2_000_000));
}

/// The start of each collective on each rank was left unread, so nobody was found to be late.
#[test]
fn collectives_with_starts_are_placed_on_every_rank() {
    const TIMED: &str =
        "CREATE TABLE ClusterComm$Time (rank_set TEXT, step TEXT, rank_id INTEGER, hccl_op_name TEXT, group_name TEXT,
        start_timestamp NUMERIC, elapsed_time NUMERIC, transit_time NUMERIC, wait_time NUMERIC);
        INSERT INTO ClusterComm$Time VALUES ('(0,8)','step2',0,'hcom_allReduce__1_0','71',1700000000000100,2,1,0.5),
        ('(0,8)','step2',8,'hcom_allReduce__1_0','71',1700000000001100,1,1,0),
        ('(0,8)','step2',0,'Total Op Info','',0,2,1,0.5), ('(0,8)','step2',8,'Total Op Info','',0,1,1,0);";
    let directory = tempfile::tempdir().unwrap();
    for suffix in ["Analyzer", "unication"] {
        let trace = import(&database(directory.path(), suffix, TIMED));
        let mut kernels = Vec::new();
        for (track, lane) in trace.tracks.iter().zip(&trace.lanes) {
            let rank = trace.processes[track.key.process.0 as usize].rank;
            let rows = (0..lane.len()).filter(|i| lane.category[*i] == model::Category::Kernel);
            kernels
                .extend(rows.map(|i| (rank, trace.strings.get(lane.name[i]).to_owned(), lane.start[i], lane.dur[i])));
        }
        kernels.sort();
        // Floats of µs since 1970 are exact to a quarter of a microsecond.
        let apart = kernels.last().unwrap().2 - kernels[0].2;
        assert!((apart - 1_000_000).abs() < 1_000, "{apart}");
        let rest: Vec<_> = kernels.into_iter().map(|(rank, name, _, dur)| (rank, name, dur)).collect();
        let of = |rank, dur| (Some(rank), "hcom_allReduce".to_owned(), dur);
        assert_eq!(rest, [of(0, 2_000_000), of(8, 1_000_000)], "{suffix}");
        assert_eq!(trace.job_sums.steps.len(), 2, "the sums stay");
        std::fs::remove_file(directory.path().join("cluster_analysis.db")).unwrap();
    }
    // The text says the same.
    let at = |us: &str, ms: &str| {
        times(ms, "1", "0").replacen(r#""Elapse"#, &format!(r#""Start Timestamp(us)":{us},"Elapse"#), 1)
    };
    let (a, b) = (at("1700000000000100", "2"), at("1700000000001100", "1"));
    let text = format!(r#"{{"(0, 8)":{{"step2":{{"hcom_allReduce__1_0@71":{{"0":{a},"8":{b}}}}}}}}}"#);
    let trace = import(&write(directory.path(), "cluster_communication.json", &text));
    let kernels = |lane: &&model::Columns| lane.category.contains(&model::Category::Kernel);
    assert_eq!(trace.lanes.iter().filter(kernels).count(), 2, "{text}");
}
