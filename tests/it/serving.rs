//! Results of serving benchmarks as reports of their own, two of them load by load, and the page on which two platforms are
//! decided.

use std::{fs, path::Path};

use serde_json::Value;

use super::common::{corpus, printed, schema, strato};

/// A result of one load as SGLang's `bench_serving` writes it.
fn result(ttft: f64, tpot: f64, concurrency: u32, more: &str) -> String {
    let e2e = ttft + 99.0 * tpot;
    let rate = f64::from(concurrency) / e2e * 1e3;
    format!(
        r#"{{"max_concurrency": {concurrency}, "request_rate": Infinity, "completed": 100, "total_input_tokens": 20000,
            "total_output_tokens": 10000, "request_throughput": {rate}, "output_throughput": {}, "mean_ttft_ms": {ttft},
            "std_ttft_ms": 1, "p99_ttft_ms": {}, "mean_tpot_ms": {tpot}, "std_tpot_ms": 0.1, "p99_tpot_ms": {},
            "mean_e2e_latency_ms": {e2e}{more}}}"#,
        rate * 100.0,
        ttft * 1.2,
        tpot * 1.1,
    )
    .replace('\n', " ")
}

/// Two sides under three loads: B needs longer for the first token, and as long for the others.
fn sweeps(directory: &Path) {
    for (name, first) in [("a.jsonl", 20.0), ("b.jsonl", 60.0)] {
        let lines = [(1, 5.0), (8, 6.0), (32, 15.0)].map(|(n, tpot)| result(first * f64::from(n).sqrt(), tpot, n, ""));
        fs::write(directory.join(name), lines.join("\n")).unwrap();
    }
}

fn json(arguments: &[&str], directory: &Path) -> Value {
    serde_json::from_str(&printed(arguments, directory)).unwrap()
}

#[test]
fn a_result_is_a_report_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    sweeps(directory.path());
    let text = printed(&["diagnose", "a.jsonl", "--slo", "ttft=200ms,tpot=10ms", "--lang", "en"], directory.path());
    for said in [
        "first token after 20.00 ms",
        "Serving under load",
        "32 at a time",
        "200 → 100",
        "Targets: ttft=200ms,tpot=10ms,p=99",
    ] {
        assert!(text.contains(said), "{said} is not in\n{text}");
    }
    assert!(!text.contains("67 rules were skipped"), "{text}");
    let zh = printed(&["diagnose", "a.jsonl", "--lang", "zh"], directory.path());
    assert!(zh.contains("负载下的服务") && zh.contains("首 token"), "{zh}");
    let document =
        json(&["diagnose", "a.jsonl", "--slo", "ttft=200ms,tpot=10ms", "--format", "json"], directory.path());
    schema::check(&schema::read("strato.diagnosis"), &document, "a serving result");
    let loads = &document["captures"][0]["serving"]["loads"];
    assert_eq!((&loads[1]["concurrency"], &loads[2]["holds_slo"]), (&Value::from(8.0), &Value::from(false)));
    assert_eq!(loads[0]["holds_slo"], true);
}

#[test]
fn d12_two_results_are_compared_load_by_load() {
    let directory = tempfile::tempdir().unwrap();
    sweeps(directory.path());
    let text = printed(&["diff", "a.jsonl", "b.jsonl", "--lang", "en"], directory.path());
    assert_eq!(text.matches("TTFT is the only gap").count(), 3, "{text}");
    assert!(text.contains("A 20.00 ms, B 60.00 ms, 3.00×"), "{text}");
    let document = json(&["diff", "a.jsonl", "b.jsonl", "--format", "json"], directory.path());
    schema::check(&schema::read("strato.serving"), &document, "two serving results");
    assert_eq!((document["loads"].as_array().unwrap().len(), &document["comparable"]), (3, &Value::from(true)));
    assert!(document["knee_a"]["concurrency"] == 8.0, "{document:#}");
    // A result against itself shows nothing.
    let own = json(&["diff", "a.jsonl", "a.jsonl", "--format", "json"], directory.path());
    let rows = own["loads"].as_array().unwrap().iter().flat_map(|load| load["rows"].as_array().unwrap());
    assert!(rows.clone().count() > 20 && rows.into_iter().all(|row| row["reading"] == "equal"));
}

#[test]
fn results_of_other_work_are_refused_and_the_gate_says_so() {
    let directory = tempfile::tempdir().unwrap();
    sweeps(directory.path());
    let other = result(20.0, 5.0, 1, r#", "server_info": {"model_path": "other", "dtype": "bfloat16", "tp_size": 1}"#);
    fs::write(directory.path().join("other.json"), &other).unwrap();
    fs::write(directory.path().join("named.json"), other.replace("\"other\"", "\"this\"")).unwrap();
    let refused = strato(&["diff", "named.json", "other.json", "--fail-on", "low", "--lang", "en"], directory.path());
    let text = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert_eq!(refused.status.code(), Some(5), "{text}");
    assert!(text.contains("may not be compared") && text.contains("model.name") && !text.contains('×'), "{text}");
    let decided = |more: &[&str]| {
        strato(&[&["decide", "named.json", "other.json"], more].concat(), directory.path()).status.code()
    };
    assert_eq!((decided(&[]), decided(&["--force"])), (Some(5), Some(0)), "a decision that was refused");
    let slower =
        strato(&["diff", "a.jsonl", "b.jsonl", "--fail-on", "critical", "--format", "junit"], directory.path());
    assert_eq!(slower.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&slower.stdout).contains("failures=\"1\""));
    let same = strato(&["diff", "a.jsonl", "a.jsonl", "--fail-on", "low", "--format", "github"], directory.path());
    assert_eq!(same.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&same.stdout).starts_with("::notice title="));
}

#[test]
fn k13_the_gate_of_results_names_what_is_slower_and_says_when_nobody_asked() {
    let directory = tempfile::tempdir().unwrap();
    sweeps(directory.path());
    let diff = |more: &[&str]| {
        let output = strato(&[&["diff", "a.jsonl", "b.jsonl"], more].concat(), directory.path());
        let texts = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        (output.status.code(), texts)
    };
    let (code, [junit, errors]) = diff(&["--fail-on", "critical", "--format", "junit"]);
    assert!(code == Some(1) && junit.contains("TTFT mean, ") && errors.contains("TTFT mean, "), "{junit}{errors}");
    let (_, [json, _]) = diff(&["--fail-on", "critical", "--format", "json"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    schema::check(&schema::read("strato.serving"), &document, "a gate of two serving results");
    let gate = &document["gate"];
    assert_eq!((&gate["ends"], &gate["limit"]), (&Value::from("slower"), &Value::from("critical")), "{gate}");
    assert!(gate["slower"][0]["name"].as_str().unwrap().starts_with("TTFT mean, "), "{gate}");
    assert!((gate["slower"][0]["by"].as_f64().unwrap() - 2.0).abs() < 1e-9, "{gate}");
    let (code, [junit, _]) = diff(&["--format", "junit"]);
    assert!(code == Some(0) && junit.contains("not gated") && !junit.contains("pass"), "{junit}");
    let (_, [json, _]) = diff(&["--format", "json"]);
    assert!(serde_json::from_str::<Value>(&json).unwrap()["gate"].is_null());
}

/// The example of the page on decisions is one that the program takes.
#[test]
fn the_example_of_a_price_is_true() {
    let page = include_str!("../../docs/decide.md");
    let listing = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let directory = tempfile::tempdir().unwrap();
    sweeps(directory.path());
    fs::write(directory.path().join("pair.toml"), listing).unwrap();
    let arguments = ["decide", "a.jsonl", "b.jsonl", "--declare", "pair.toml", "--slo", "ttft=250ms,tpot=15ms"];
    let text = printed(&[&arguments[..], &["--lang", "en"]].concat(), directory.path());
    for said in [
        "is the cheaper one",
        "Break-even",
        "(measured)",
        "(modelled)",
        "(declared)",
        "Simulated beside measured",
        "prefill on A, decode on B",
    ] {
        assert!(text.contains(said), "{said} is not in\n{text}");
    }
    let document = json(&[&arguments[..], &["--format", "json"]].concat(), directory.path());
    schema::check(&schema::read("strato.decide"), &document, "a decision");
    // The break-even price is that at which a token costs the same.
    let (a, b) = (&document["a"], &document["b"]);
    let rate = |side: &Value| side["tokens_per_s_of_device"]["value"].as_f64().unwrap();
    let hour = a["device_hour"]["value"].as_f64().unwrap() * rate(b) / rate(a);
    let told = document["balance"]["break_even_device_hour"].as_f64().unwrap();
    assert!((told - hour).abs() < 1e-9 * hour, "{told} {hour}");
    let page = printed(&[&arguments[..], &["--format", "html"]].concat(), directory.path());
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("A or B"));
    // Simulations are the same every time.
    assert_eq!(document, json(&[&arguments[..], &["--format", "json"]].concat(), directory.path()));
}

#[test]
fn what_is_missing_for_a_decision_is_named() {
    let directory = tempfile::tempdir().unwrap();
    sweeps(directory.path());
    let text = printed(&["decide", "a.jsonl", "b.jsonl", "--lang", "en"], directory.path());
    for said in ["price.a.device_hour", "--slo ttft=200ms,tpot=50ms", "No power was recorded of A, B", "not declared"] {
        assert!(text.contains(said), "{said} is not in\n{text}");
    }
    let wrong = strato(&["decide", "a.jsonl", "b.jsonl", "--slo", "ttft"], directory.path());
    assert_eq!(wrong.status.code(), Some(2));
    fs::write(directory.path().join("bad.toml"), "[price.a]\npue = 0.5\n").unwrap();
    let bad = strato(&["decide", "a.jsonl", "b.jsonl", "--declare", "bad.toml"], directory.path());
    assert!(String::from_utf8_lossy(&bad.stderr).contains("price.a.pue"), "{bad:?}");
}

/// The page once gave a code where it refused, and said of captures that they hold no steps.
#[test]
fn what_may_not_be_weighed_is_told_with_its_reasons() {
    let directory = tempfile::tempdir().unwrap();
    for (name, model) in [("a.strato", "tiny"), ("b.strato", "tiny-moe")] {
        let run = strato(&["run", "--model", model, "--gen", "32", "-o", name, "--quiet"], directory.path());
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }
    let told = strato(&["decide", "a.strato", "b.strato", "--format", "json"], directory.path());
    assert_eq!(told.status.code(), Some(5));
    let document: Value = serde_json::from_slice(&told.stdout).unwrap();
    let refused: Vec<&str> = document["refused"].as_array().unwrap().iter().filter_map(|why| why.as_str()).collect();
    assert!(refused.contains(&"model.name differs: A has tiny, B has tiny-moe"), "{refused:?}");
    assert!(
        refused.last().is_some_and(|last| last.contains("--force")) && document["balance"].is_null(),
        "{refused:?}"
    );
    let page = strato(&["decide", "a.strato", "b.strato", "--lang", "en"], directory.path());
    let page = String::from_utf8_lossy(&page.stdout);
    assert!(page.contains("may not be weighed") && !page.contains("hold no steps"), "{page}");
}

#[test]
fn two_runs_of_the_engine_are_weighed() {
    // What was measured one request at a time says nothing of a fleet.
    for (sequences, says_fleets) in [(1, false), (4, true)] {
        let directory = tempfile::tempdir().unwrap();
        let batch = sequences.to_string();
        for name in ["a.strato", "b.strato"] {
            let run = ["run", "--model", "tiny", "--batch", &batch, "--gen", "32", "-o", name, "--quiet"];
            let run = strato(&run, directory.path());
            assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        }
        fs::write(
            directory.path().join("p.toml"),
            "[price]\ncurrency = \"EUR\"\na.device_hour = 1.0\nb.device_hour = 2.0\n",
        )
        .unwrap();
        // Other processes of the machine may leave no verdict; the numbers are there all the same.
        let arguments = [
            "decide",
            "a.strato",
            "b.strato",
            "--declare",
            "p.toml",
            "--force",
            "--slo",
            "ttft=10s,tpot=1s",
            "--format",
            "json",
        ];
        let document = json(&arguments, directory.path());
        for side in ["a", "b"] {
            let [batch, ns] = [0, 1].map(|at| document[side]["step"][at].as_i64().unwrap());
            let rate = document[side]["tokens_per_s_of_device"]["value"].as_f64().unwrap();
            let expected = batch as f64 * 1e9 / ns as f64;
            assert!(batch == sequences && (rate - expected).abs() < 1e-6 * rate, "{document:#}");
        }
        assert!(document["gap"]["causes_ns"].is_object() && document["balance"]["cost"].is_number(), "{document:#}");
        let fleets = document["fleets"].as_array().unwrap();
        assert_eq!(fleets.iter().any(|fleet| fleet["workers"].is_array()), says_fleets, "{document:#}");
        assert_eq!(fleets.is_empty(), !says_fleets, "{document:#}");
    }
}

#[test]
#[ignore = "needs STRATO_CORPUS"]
fn h200_case_a_says_what_its_authors_found() {
    let folder = corpus().join("serving/h200-sglang-vs-vllm");
    let of = |case: &str, engine: &str| format!("case{case}_{engine}_rep1.json");
    let document =
        |case: &str| json(&["diff", &of(case, "vllm"), &of(case, "sglang-oai"), "--format", "json"], &folder);
    let row = |document: &Value, what: &str| -> Value {
        let rows = document["loads"][0]["rows"].as_array().unwrap();
        rows.iter().find(|row| row["what"] == what).unwrap().clone()
    };
    let a = document("A_short");
    let (ttft, tpot) = (row(&a, "ttft.mean"), row(&a, "tpot.mean"));
    assert_eq!((&ttft["reading"], &tpot["reading"]), (&Value::from("more"), &Value::from("equal")));
    // Read from the files by hand: 56.38483 and 16.63614 ms.
    assert!(
        (ttft["a"].as_f64().unwrap() - 16.636_144).abs() < 1e-5
            && (ttft["b"].as_f64().unwrap() - 56.384_833).abs() < 1e-5
    );
    let text = printed(&["diff", &of("A_short", "vllm"), &of("A_short", "sglang-oai"), "--lang", "en"], &folder);
    assert!(text.contains("TTFT is the only gap"), "{text}");
    for case in ["B_longprefill", "C_batched", "D_decode"] {
        assert_eq!(document(case)["comparable"], true, "{case}");
    }
}
