//! What is said of results, of logs and of files that are declined.

use session::{Reading, Session};

use crate::common::{self, corpus};

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d11_what_a_serving_test_says_of_its_run_is_in_the_contract() {
    // SGLang's `server_info` names the model and its tensor parallelism; whether two tests compare is a matter of `diff`.
    let folder = corpus().join("serving");
    let mut told = 0;
    for path in folder.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(session) = Session::open(&[path], &Reading::default()) else { continue };
        for trace in session.captures() {
            let of = |key| trace.manifest.value(key);
            if trace.source.rsplit('/').next().is_some_and(|name| name.contains("sglang")) {
                assert_eq!(of("model.name"), Some("Qwen/Qwen3-VL-8B-Instruct"));
                assert_eq!((of("parallel.tp"), of("precision.weights")), (Some("1"), Some("bfloat16")));
                told += 1;
            }
        }
    }
    assert!(told > 0);
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d12_no_size_is_invented_from_a_log_that_tears_rows_apart() {
    let log = corpus().join("nccl/nccl-tests-fault/nccl-fault.log");
    let directory = tempfile::tempdir().unwrap();
    common::printed(&["import", "-q", "-o", "x.strato", log.to_str().unwrap()], directory.path());
    let sql =
        "select count(*) as n, min(dur_ns) > 0 as timed, min(dtype) as least, max(dtype) as most from collectives";
    let rows = common::printed(&["sql", "x.strato", sql, "--csv"], directory.path());
    // Each of the sizes out of place and in place, all `float`, none without a time.
    let last = rows.lines().last().unwrap();
    assert!(last.ends_with(",1,float,float"), "{rows}");
}

/// D14: timelines that are no Kineto traces were read as such: device operations as calls of the host, and all ended well.
#[test]
fn d14_timelines_of_other_writers_are_declined_by_name() {
    let directory = tempfile::tempdir().unwrap();
    for (text, name) in [
        (
            r#"[{"name": "InitData", "ph": "X", "tid": "0", "ts": 0.0, "dur": 159.9, "pid": 9000},{"name": "AssignAdd-op142", "ph": "X", "tid": "519", "ts": 6042909.5, "dur": 3.1, "pid": 1, "args": {"type": "AssignAdd", "fullname": "Default/AssignAdd-op142", "input_0": {"data_type": "NUMBER_TYPE_UINT8", "shape": "1"}}}]"#,
            "MindInsight",
        ),
        (
            r#"[{"name":"MEMCPY_ASYNC","pid":"1993459 aclGraph","tid":"stream165","ts":20,"dur":9.5,"ph":"X","args":{"Model Id":1,"Stream Id":165,"Task Id":2}}]"#,
            "captured graph",
        ),
    ] {
        std::fs::write(directory.path().join("t.json"), text).unwrap();
        let out = common::strato(&["diagnose", "t.json"], directory.path());
        let told = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(3), "{told}");
        assert!(told.contains(name) && told.contains("give "), "{told}");
    }
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d16_what_is_refused_says_what_to_give_instead() {
    for (path, next) in [
        ("msprof/op-meantime-baseline-cross-chip", "give the directory of the profiler"),
        ("cluster-analysis/communication-group", "give the directory of the profiler"),
        (
            "mindspore/mindinsight-run2-alexnet-910/normal_run/profiler/ascend_timeline_display_1.json",
            "record again with the profiler of MindSpore 2",
        ),
        ("ascend-misc/aclgraph-debug", "give the profile of a run"),
    ] {
        let error = common::refused(&corpus().join(path)).to_string();
        assert!(error.contains(next), "{path}: {error}");
    }
}
