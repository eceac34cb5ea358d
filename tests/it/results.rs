//! What `strato diagnose --save` leaves in a capture file is what the report said.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::common::strato;

const LAUNCH_BOUND: &str = "launch-bound-eager.json.gz";
const PARALLEL: &str = "tensor-parallel-rocm.json.gz";
const SAMPLES: [&str; 4] = [LAUNCH_BOUND, PARALLEL, "sync-per-layer.sqlite", "healthy-full-graph.json.gz"];

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-traces").join(name)
}

/// What a command that succeeds prints.
fn out(arguments: &[&str], directory: &Path) -> String {
    let output = strato(arguments, directory);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), errors.as_str()), (Some(0), ""), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str], directory: &Path) -> Value {
    serde_json::from_str(&out(arguments, directory)).unwrap()
}

/// Rows of `x.strato`.
fn ask(directory: &Path, query: &str) -> Vec<Value> {
    json(&["sql", "x.strato", query, "--json"], directory).as_array().unwrap().clone()
}

/// A directory with `x.strato`, and the JSON report that went with it.
fn saved(samples: &[&str]) -> (tempfile::TempDir, Value) {
    let directory = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = samples.iter().map(|name| sample(name)).collect();
    let mut arguments = vec!["diagnose", "--save", "x.strato", "--format", "json"];
    arguments.extend(paths.iter().map(|p| p.to_str().unwrap()));
    let report = json(&arguments, directory.path());
    (directory, report)
}

fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap()
}

/// Time by capture, rank, class and bucket.
type Times = BTreeMap<(i64, i64, String, String), i64>;

fn times<'a>(rows: impl IntoIterator<Item = &'a Value>) -> Times {
    let mut times = Times::new();
    for row in rows {
        let [class, bucket] = ["class", "bucket"].map(|key| row[key].as_str().unwrap().to_owned());
        let [capture, rank, ns] = ["capture", "rank", "ns"].map(|key| row[key].as_i64().unwrap());
        *times.entry((capture, rank, class, bucket)).or_default() += ns;
    }
    times
}

/// Steps of `x.strato` whose buckets do not add up to them.
const ASTRAY: &str = "SELECT s.id, s.dur_ns, sum(a.ns) FROM step s LEFT JOIN attribution a ON a.step_id = s.id \
                      GROUP BY s.id HAVING coalesce(sum(a.ns), 0) <> s.dur_ns";

#[test]
fn steps_and_attribution_are_those_of_the_report() {
    let (directory, report) = saved(&SAMPLES);
    let here = directory.path();
    assert_eq!(ask(here, ASTRAY), Vec::<Value>::new());
    for capture in array(&report, "captures") {
        for rank in array(capture, "ranks") {
            let query = format!(
                "SELECT count(*) AS n, count(DISTINCT number) AS numbers, min(anchor) AS anchor FROM step \
                 WHERE capture_id = {} AND rank = {} AND device = {}",
                capture["id"], rank["rank"], rank["device"]
            );
            let steps = &rank["steps"];
            let expected =
                serde_json::json!({"n": steps["count"], "numbers": steps["count"], "anchor": steps["anchor"]});
            assert_eq!(ask(here, &query), [expected], "{}", capture["source"]);
        }
    }
    let query = "SELECT s.capture_id AS capture, s.rank, s.class, a.bucket, sum(a.ns) AS ns FROM step s \
                 JOIN attribution a ON a.step_id = s.id WHERE s.selection = 'steady' GROUP BY 1, 2, 3, 4";
    let told = array(&report, "attribution").iter().flat_map(|entry| {
        array(entry, "buckets").iter().map(|row| {
            let mut row = row.clone();
            ["capture", "rank", "class"].iter().for_each(|key| row[key] = entry[key].clone());
            row
        })
    });
    let told: Vec<Value> = told.filter(|row| row["ns"] != 0).collect();
    assert!(told.len() > 20, "{}", told.len());
    let mut kept = times(&ask(here, query));
    kept.retain(|_, ns| *ns != 0);
    assert_eq!(kept, times(&told));
}

#[test]
fn findings_are_those_of_the_report() {
    let (directory, report) = saved(&SAMPLES);
    let rows = ask(directory.path(), "SELECT * FROM finding ORDER BY id");
    let findings = array(&report, "findings");
    assert!(!findings.is_empty());
    let bodies = rows.iter().map(|row| serde_json::from_str::<Value>(row["body"].as_str().unwrap()).unwrap());
    assert_eq!(bodies.collect::<Vec<_>>(), findings);
    for (row, finding) in rows.iter().zip(findings) {
        assert_eq!(row["capture_id"], finding["capture"]);
        for key in ["rule", "layer", "severity", "confidence", "claim"] {
            assert_eq!(row[key], finding[key]);
        }
        let estimate = &finding["estimate"];
        assert_eq!((&row["method"], &row["from_ns"]), (&estimate["method"], &estimate["from_ns"]));
        let unknown = estimate["method"] == "none";
        for key in ["to_ns_low", "to_ns_high"] {
            assert_eq!(row[key], if unknown { Value::Null } else { estimate[key].clone() });
        }
        assert_eq!(row["class"].as_str().unwrap_or(""), finding["scope"]["class"]);
    }
}

#[test]
fn kernels_have_their_operator_after_import_and_after_diagnosis() {
    let query = "SELECT DISTINCT name, op FROM kernels ORDER BY name";
    for name in SAMPLES {
        let (directory, report) = saved(&[name]);
        let diagnosed = ask(directory.path(), query);
        let unmapped = array(&report["captures"][0], "unmapped");
        for row in &diagnosed {
            let expected = unmapped.iter().any(|u| u["name"] == row["name"]);
            assert_eq!(row["op"].is_null(), expected, "{name}: {row}");
        }
        assert!(diagnosed.iter().any(|row| row["op"] == "gemm"), "{name}: {diagnosed:?}");
        let quiet = out(&["import", sample(name).to_str().unwrap(), "-o", "x.strato", "--quiet"], directory.path());
        assert_eq!(quiet, "");
        assert_eq!(ask(directory.path(), query), diagnosed);
        let none = "SELECT (SELECT count(*) FROM step) + (SELECT count(*) FROM attribution) + \
                    (SELECT count(*) FROM finding) AS n";
        assert_eq!(ask(directory.path(), none), [serde_json::json!({"n": 0})]);
    }
}

#[test]
fn only_what_was_estimated_is_called_modelled() {
    let (directory, _) = saved(&[PARALLEL, LAUNCH_BOUND]);
    let query = "SELECT DISTINCT capture_id, bucket FROM attribution WHERE provenance = 'modelled' ORDER BY bucket";
    let modelled = ["comm.transfer", "comm.wait"].map(|b| serde_json::json!({"capture_id": 1, "bucket": b}));
    assert_eq!(ask(directory.path(), query), modelled);
    let query = "SELECT count(*) AS n FROM attribution WHERE provenance NOT IN ('measured', 'modelled') OR \
                 bucket LIKE 'compute.%' AND provenance <> 'measured'";
    assert_eq!(ask(directory.path(), query), [serde_json::json!({"n": 0})]);
}

#[test]
fn a_saved_diagnosis_is_diagnosed_again_to_the_same_report() {
    for name in [PARALLEL, "sync-per-layer.sqlite"] {
        let (directory, report) = saved(&[name]);
        let here = directory.path();
        let before = std::fs::read(here.join("x.strato")).unwrap();
        assert_eq!(json(&["diagnose", "x.strato", "--format", "json", "--save", "y.strato"], here), report);
        let markdown = out(&["diagnose", "x.strato"], here);
        assert_eq!(markdown, out(&["diagnose", sample(name).to_str().unwrap()], here));
        assert!(std::fs::read(here.join("x.strato")).unwrap() == before, "the input changed");
        let everything = "SELECT * FROM step JOIN attribution ON id = step_id ORDER BY id, bucket";
        let [x, y] = ["x.strato", "y.strato"].map(|file| out(&["sql", file, everything, "--csv"], here));
        assert!(x == y && x.lines().count() > 10);
    }
}

#[test]
fn no_input_and_nothing_else_than_a_capture_file_is_replaced() {
    let (directory, _) = saved(&[LAUNCH_BOUND]);
    let here = directory.path();
    std::fs::write(here.join("notes.txt"), "mine").unwrap();
    let before = std::fs::read(here.join("x.strato")).unwrap();
    let trace = sample(LAUNCH_BOUND);
    let trace = trace.to_str().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["diagnose", trace, "--save", "notes.txt"], "will not replace 'notes.txt'"),
        (&["diagnose", trace, "--save", "no/where.strato"], "no directory 'no'"),
        (&["diagnose", "x.strato", "--save", "./x.strato"], "is an input"),
        (&["diagnose", trace, "--save", trace], "is an input"),
        (&["diagnose", trace, "--save", "new.strato", "-o", "./new.strato"], "--output and --save both name"),
        (&["import", "x.strato", "-o", "x.strato", "-q"], "is an input"),
    ];
    for (arguments, message) in cases {
        let output = strato(arguments, here);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}: {errors}");
        assert!(errors.contains(message), "{arguments:?}: {errors}");
    }
    assert_eq!(std::fs::read(here.join("notes.txt")).unwrap(), b"mine");
    assert!(std::fs::read(here.join("x.strato")).unwrap() == before, "an input was changed");
    assert_eq!(here.read_dir().unwrap().count(), 2, "a refused command left a file");
    assert_eq!(out(&["diagnose", trace, "--save", "x.strato", "-q"], here), "");
    assert!(std::fs::read(here.join("x.strato")).unwrap().starts_with(b"SQLite format 3"));
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn the_steps_of_real_captures_add_up_in_sql() {
    let corpus = crate::common::corpus();
    let captures = [
        "kineto/tl-sglang-prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz",
        "kineto/hta-trace_diff/test.json.gz",
        "nsys-sqlite/nsysai-h100-2gpu/h100_2gpu_1s.sqlite",
    ];
    for name in captures {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        out(&["diagnose", corpus.join(name).to_str().unwrap(), "--save", "x.strato", "--quiet"], here);
        assert_eq!(ask(here, ASTRAY), Vec::<Value>::new(), "{name}");
        let counts = "SELECT (SELECT count(*) > 0 FROM step) AS steps, (SELECT count(op) > 0 FROM kernels) AS ops";
        assert_eq!(ask(here, counts), [serde_json::json!({"steps": 1, "ops": 1})], "{name}");
    }
}
