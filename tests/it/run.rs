//! `strato run`: real runs of the reference engine, and what a diagnosis makes of them.

use std::{
    path::Path,
    process::{Command, Output},
};

use crate::common::strato;

fn json(output: &Output) -> serde_json::Value {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

const TINY: &[&str] = &["run", "--model", "tiny", "--prompt-len", "8", "--gen", "12"];

#[test]
fn the_same_command_gives_the_same_tokens_however_steps_are_started_and_divided() {
    let directory = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| json(&strato(&[TINY, &["--json"], more].concat(), directory.path()));
    let first = run(&[]);
    let tokens = first["tokens"][0].as_array().unwrap();
    assert_eq!(tokens.len(), 12);
    assert!(first["step_ns"]["p50"].as_i64().unwrap() > 0);
    for more in [
        &["--mode", "graph"][..],
        &["--level", "fused", "--kv-block", "4"],
        &["--level", "composite", "--sync", "per-op", "--sampling", "host"],
        &["--threads", "1"],
        &["--batch", "3", "--mode", "graph", "--level", "fused"],
    ] {
        assert_eq!(run(more)["tokens"][0], first["tokens"][0], "{more:?}");
    }
}

/// Shape and content of a NumPy file of single-precision numbers.
fn npy(path: &Path) -> (String, Vec<f32>) {
    let bytes = std::fs::read(path).unwrap();
    let data = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..data]).unwrap();
    let shape = header.split("'shape': ").nth(1).unwrap().split(", }").next().unwrap().to_owned();
    (shape, bytes[data..].chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}

#[test]
fn logits_of_every_position_choose_the_tokens_that_are_printed() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("prompts.txt"), "5,6,7\n8 9 10\n").unwrap();
    let run = |more: &[&str]| strato(&[&["run", "--model", "tiny", "--gen", "4"], more].concat(), directory.path());
    let single = run(&["--prompt-ids", "5,6,7", "--logits", "one.npy", "--tokens", "--level", "fused"]);
    let text = String::from_utf8(single.stdout).unwrap();
    let printed = text.lines().find_map(|line| line.strip_prefix("tokens   ")).unwrap().to_owned();
    let (shape, logits) = npy(&directory.path().join("one.npy"));
    assert_eq!((shape.as_str(), logits.len()), ("(6, 512)", 6 * 512));
    let chosen: Vec<String> = logits
        .chunks_exact(512)
        .skip(2)
        .map(|row| row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0.to_string())
        .collect();
    assert_eq!(chosen.join(","), printed);

    // The same sequence in a batch, on another number of ranks, has the same logits but for the order of additions.
    let several = ["--prompt-ids", "prompts.txt", "--batch", "2", "--mode", "graph", "--dtype", "f32"];
    for more in [
        &["--logits", "two.npy", "--json"][..],
        &["--logits", "four.npy", "--json", "--tp", "2", "--ranks", "processes"],
    ] {
        let output = run(&[&several[..], more].concat());
        assert_eq!(json(&output)["tokens"].as_array().unwrap().len(), 2);
    }
    let (two, four) = (npy(&directory.path().join("two.npy")), npy(&directory.path().join("four.npy")));
    assert_eq!((two.0.as_str(), four.0.as_str()), ("(2, 6, 512)", "(2, 6, 512)"));
    assert!(two.1.iter().zip(&four.1).all(|(a, b)| (a - b).abs() < 1e-4));
    let wide = run(&["--prompt-ids", "5,6,7", "--logits", "wide.npy", "--dtype", "f32", "--json"]);
    let tokens = |output: &Output| json(output)["tokens"][0].clone();
    let alone = npy(&directory.path().join("wide.npy")).1;
    assert_eq!(tokens(&wide).as_array().unwrap().len(), 4);
    assert!(alone.iter().zip(&two.1).all(|(a, b)| (a - b).abs() < 1e-4));

    let other = |seed: &str| tokens(&run(&["--prompt-len", "8", "--seed", seed, "--json"]));
    assert_eq!(other("0"), tokens(&run(&["--prompt-len", "8", "--json"])));
    assert_eq!(other("7"), other("7"));
    assert_ne!(other("7"), other("8"));
}

#[test]
fn a_run_leaves_a_capture_whose_every_operator_is_known_and_whose_steps_add_up() {
    for (mode, class) in [("eager", "graph=eager"), ("graph", "graph=full")] {
        let directory = tempfile::tempdir().unwrap();
        let run = strato(&[TINY, &["--mode", mode, "-o", "run.strato"]].concat(), directory.path());
        assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
        let text = String::from_utf8(run.stdout).unwrap();
        assert!(text.contains("decode   11 steps") && text.contains("wrote run.strato"), "{text}");

        let report = json(&strato(&["diagnose", "run.strato", "--format", "json"], directory.path()));
        assert_eq!(report["simulated"], false);
        assert_eq!(report["captures"][0]["platform"]["vendor"], "cpu");
        let classes = report["steps"]["classes"].as_array().unwrap();
        assert!(classes.iter().any(|c| c["key"].as_str().unwrap().contains(class)), "{classes:?}");
        for class in report["attribution"].as_array().unwrap() {
            let buckets = class["buckets"].as_array().unwrap();
            let sum: i64 = buckets.iter().map(|bucket| bucket["ns"].as_i64().unwrap()).sum();
            assert_eq!(sum, class["window_ns"].as_i64().unwrap());
            assert!(buckets.iter().all(|bucket| bucket["bucket"] != "compute.other"), "{buckets:?}");
        }
    }
}

/// Rows of a query on a capture, the header left out.
fn rows(directory: &Path, query: &str) -> Vec<String> {
    let output = strato(&["sql", "run.strato", query, "--csv"], directory);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn ranks_give_the_tokens_of_one_and_one_capture_in_which_every_collective_has_its_counterpart() {
    let alone = tempfile::tempdir().unwrap();
    let expected = json(&strato(&[TINY, &["--json", "--dtype", "f32"]].concat(), alone.path()))["tokens"].clone();
    for ranks in ["threads", "processes"] {
        for mode in ["eager", "graph"] {
            let directory = tempfile::tempdir().unwrap();
            let more = ["--tp", "2", "--ranks", ranks, "--mode", mode, "--dtype", "f32", "--json", "-o", "run.strato"];
            let run = json(&strato(&[TINY, &more].concat(), directory.path()));
            assert_eq!(run["tokens"], expected, "{ranks} {mode}");
            assert_eq!(run["tp"], 2);
            let query = "select seq, bytes, count(distinct rank), count(*) from collectives group by seq, bytes";
            let collectives = rows(directory.path(), query);
            // Twelve steps, in each the embedding, two sums in each of two layers and the logits.
            assert_eq!(collectives.len(), 12 * 6, "{ranks} {mode}");
            assert!(collectives.iter().all(|row| row.ends_with(",2,2")), "{ranks} {mode}: {collectives:?}");

            let report = json(&strato(&["diagnose", "run.strato", "--format", "json"], directory.path()));
            assert_eq!(report["captures"][0]["world_size"], 2, "{ranks} {mode}");
            let ranks: Vec<_> = report["attribution"].as_array().unwrap().iter().map(|a| a["rank"].as_i64()).collect();
            assert!(ranks.contains(&Some(0)) && ranks.contains(&Some(1)), "{ranks:?}");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_rank_that_is_killed_ends_the_run_with_its_number() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["run", "--model", "tiny", "--prompt-len", "4", "--gen", "50000", "--tp", "2", "--threads", "1"];
    let run = Command::new(env!("CARGO_BIN_EXE_strato"))
        .args(arguments)
        .args(["--ranks", "processes"])
        .current_dir(directory.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    let began = std::time::Instant::now();
    let second = loop {
        let pids = std::fs::read_to_string(&children).unwrap();
        if let Some(second) = pids.split_whitespace().nth(1) {
            break second.to_owned();
        }
        assert!(began.elapsed().as_secs() < 60, "the ranks were not started");
    };
    assert!(Command::new("kill").args(["-9", &second]).status().unwrap().success());
    let output = run.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("rank 1 ended with signal: 9"), "{said}");
}

/// A rule that knew what was put in would pass every examination and find nothing on a user's machine.
#[test]
fn what_was_put_in_is_written_down_and_no_diagnosis_reads_it() {
    let directory = tempfile::tempdir().unwrap();
    let run = ["--inject", "extra_sync:every=op", "--inject", "host_delay:us=20", "-o", "run.strato", "--quiet"];
    assert_eq!(strato(&[TINY, &run].concat(), directory.path()).status.code(), Some(0));
    let truth = collectors::engine_run::TRUTH;
    let mut traces = store::load(&directory.path().join("run.strato")).unwrap();
    assert_eq!(traces[0].manifest.value(truth), Some("extra_sync:every=op host_delay:us=20"));

    // The report lists the facts of a capture, this one too: a reader must know of it. Nothing else may depend on it.
    let diagnose = |directory: &Path| {
        let mut report = json(&strato(&["diagnose", "run.strato", "--format", "json"], directory));
        let listed = report["captures"][0]["facts"].as_object_mut().unwrap().remove(truth);
        (listed.is_some(), report)
    };
    let (listed, told) = diagnose(directory.path());
    assert!(listed);
    for other in [None, Some("no_graph")] {
        let mut manifest = model::Manifest::default();
        for (key, entry) in traces[0].manifest.iter().filter(|(key, _)| *key != truth) {
            manifest.set(key, entry.value.clone(), entry.provenance);
        }
        if let Some(other) = other {
            manifest.set(truth, other, model::Provenance::Observed);
        }
        traces[0].manifest = manifest;
        let copy = tempfile::tempdir().unwrap();
        store::save(&copy.path().join("run.strato"), &traces).unwrap();
        assert!(
            diagnose(copy.path()) == (other.is_some(), told.clone()),
            "the diagnosis of the same run differs with the truth {other:?}"
        );
    }
}

/// The level "can run" rests on numbers that were compared, and on none that were only asked for.
#[test]
fn numbers_held_against_single_precision_are_evidence_of_the_first_level() {
    for (more, met, words) in [
        (&["--numerics"][..], true, "within precision of bf16"),
        (&["--numerics", "--inject", "nan_at:layer=1"], false, "layer 1, operator down_proj"),
        (&[], false, "strato run --numerics"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let run = strato(&[TINY, &["-o", "run.strato"], more].concat(), directory.path());
        let code = i32::from(more.contains(&"nan_at:layer=1"));
        assert_eq!(run.status.code(), Some(code), "{}", String::from_utf8_lossy(&run.stderr));
        let report = json(&strato(&["diagnose", "run.strato", "--format", "json"], directory.path()));
        let numbers = &report["verdict"]["levels"][0]["checks"][1];
        assert_eq!(numbers["met"], met, "{more:?}: {numbers}");
        assert!(numbers["what"].as_str().unwrap().contains(words), "{more:?}: {numbers}");
    }
}

#[test]
fn repeats_are_launches_that_a_comparison_takes() {
    let directory = tempfile::tempdir().unwrap();
    let run = strato(&[TINY, &["-o", "run.strato", "--repeats", "2"]].concat(), directory.path());
    let said = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success() && said.ends_with("launches run.1.strato,run.2.strato\n"), "{said}");
    assert!(!directory.path().join("run.strato").exists());
    for launch in ["run.1.strato", "run.2.strato"] {
        let shown = json(&strato(&["manifest", "show", launch, "--format", "json"], directory.path()));
        let fields = shown["captures"][0]["fields"].as_array().unwrap();
        let repeats = fields.iter().find(|field| field["field"] == "measurement.repeats").unwrap();
        assert_eq!((repeats["value"].as_str(), repeats["provenance"].as_str()), (Some("2"), Some("observed")));
    }
    let compared = strato(
        &["diff", "run.1.strato,run.2.strato", "run.2.strato,run.1.strato,run.1.strato", "--format", "json"],
        directory.path(),
    );
    let errors = String::from_utf8(compared.stderr.clone()).unwrap();
    // A capture that stands twice on a side counts once.
    assert!(compared.status.success(), "{errors}");
    let alone = strato(&[TINY, &["--repeats", "2"]].concat(), directory.path());
    assert_eq!(alone.status.code(), Some(2), "where the captures would go is not said");
}

#[test]
fn injections_are_listed_and_unknown_ones_refused_with_the_list() {
    let directory = tempfile::tempdir().unwrap();
    let list = strato(&["run", "--inject", "help"], directory.path());
    let list = String::from_utf8(list.stdout).unwrap();
    assert!(list.lines().count() >= 17 && list.contains("gil_like_stall"), "{list}");
    let refused = strato(&["run", "--model", "tiny", "--inject", "gremlins"], directory.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("bandwidth_thief"));
}

#[test]
fn what_cannot_be_run_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, code, words) in [
        (&["run", "--model", "gpt-5"][..], 2, "qwen2.5-0.5b"),
        (&["run", "--model", "tiny", "--gen", "0"], 2, "at least one"),
        (&["run", "--model", "tiny", "--prompt-len", "0"], 2, "cannot read"),
        (&["run", "--model", "tiny", "--kv-block", "0"], 2, "no cache"),
        (&["run", "--model", "."], 3, "config.json"),
        (&["run", "--model", "tiny", "--tp", "3"], 2, "key heads"),
        (&["run", "--model", "tiny", "--tp", "0"], 2, "at least one rank"),
        (&["run", "--model", "tiny", "--prompt-ids", "1,600"], 2, "token 600 is not in the vocabulary"),
        (&["run", "--model", "tiny", "--prompt-ids", "prompts"], 3, "prompts"),
        (&["run", "--model", "tiny", "--logits", "nowhere/logits.npy"], 2, "no directory"),
    ] {
        let output = strato(arguments, directory.path());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

/// Processes as on a cluster: each rank by its own clock, and the collectives show only that one of them comes late.
#[test]
#[cfg(target_os = "linux")]
fn a_slow_rank_is_its_own_fault_and_not_the_links() {
    let directory = tempfile::tempdir().unwrap();
    let run = ["run", "--model", "tiny", "--prompt-len", "16", "--gen", "30", "--tp", "2", "--ranks", "processes"];
    let more = ["--threads", "1", "--inject", "slow_rank:rank=1,factor=400", "-o", "run.strato", "--quiet"];
    assert_eq!(strato(&[&run[..], &more].concat(), directory.path()).status.code(), Some(0));
    let report = json(&strato(&["diagnose", "run.strato", "--format", "json"], directory.path()));
    let findings = report["findings"].as_array().unwrap();
    let late = findings.iter().find(|f| f["rule"] == "CM-01").unwrap_or_else(|| panic!("no late rank: {findings:#?}"));
    assert_eq!(late["scope"]["ranks"], serde_json::json!([1]), "{late:#}");
    assert!(["operator", "runtime"].iter().any(|layer| late["layer"] == *layer), "{late:#}");
    // What other processes do to a rank inside a collective may look like its link, but never as grave.
    let blamed = |f: &&serde_json::Value| {
        f["layer"] == "communication" && !["info", "low"].contains(&f["severity"].as_str().unwrap())
    };
    assert!(!findings.iter().any(|f| blamed(&f)), "{findings:#?}");
    assert_ne!(report["verdict"]["layer"], "communication");
}

#[test]
fn probes_of_the_runs_own_shapes_and_counters_of_the_machine_are_kept_in_its_capture() {
    let directory = tempfile::tempdir().unwrap();
    let run = strato(&[TINY, &["--mode", "graph", "--probe", "-o", "run.strato"]].concat(), directory.path());
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    let probed = rows(directory.path(), "SELECT DISTINCT probe FROM probe_result ORDER BY probe");
    assert_eq!(probed, ["gemm", "launch", "product", "read", "replay"]);
    let known = rows(directory.path(), "SELECT count(*) FROM counter");
    assert!(known[0].parse::<u32>().unwrap() > 0, "{known:?}");
    let report = json(&strato(&["diagnose", "run.strato", "--format", "json"], directory.path()));
    let abstained = report["abstained"].as_array().unwrap();
    // A replay says nothing of what its nodes work on; the engine that made the graph does.
    assert!(!abstained.iter().any(|a| a["rule"] == "OP-01" || a["rule"] == "OP-02"), "{abstained:#?}");
}
