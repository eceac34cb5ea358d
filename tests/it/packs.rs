//! Packs through the command: a user's log lines, the minimal log in its three forms, and what the built-in packs must hold
//! for every rule and every device that the corpus shows.

use crate::common;
use std::{path::Path, process::Output};

use diagnosis::{
    diagnose::{relations::Advice, rules::REGISTRY},
    platform::Packs,
};
use serde_json::Value;

use crate::common::strato;

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Count and total ns of the ranges that begin so, as `strato sql` tells of an imported file.
fn ranges(directory: &Path, name: &str) -> (u64, u64) {
    let query = format!("SELECT count(*) AS n, sum(dur_ns) AS ns FROM ranges WHERE name LIKE '{name}%'");
    let rows = json(&strato(&["sql", "out.strato", &query, "--json"], directory));
    (rows[0]["n"].as_u64().unwrap(), rows[0]["ns"].as_u64().unwrap_or(0))
}

const PACK: &str = r"id = 'mine'
source = 'the log of our own engine'
date = '2026-11'
[[log]]
engine = 'mine'
regex = 'iter (?P<step>\d+) bs (?P<batch_size>\d+) took (?P<latency_ms>[\d.]+) ms graph=(?P<graph_mode>\w+)'
";

/// Forty steps of an engine that no built-in pack knows: 3 ms each, every tenth 9 ms, so 40 × 3 + 4 × 6 = 144 ms.
fn own_log() -> String {
    let line = |i: usize| format!("[worker] iter {i} bs 8 took {}.0 ms graph=full\n", if i % 10 == 9 { 9 } else { 3 });
    (0..40).map(line).collect()
}

#[test]
fn lines_of_a_users_pack_are_imported_and_diagnosed() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    std::fs::create_dir(here.join("packs")).unwrap();
    std::fs::write(here.join("packs/mine.toml"), PACK).unwrap();
    std::fs::write(here.join("own.log"), own_log()).unwrap();
    for arguments in [&["diagnose", "own.log"][..], &["import", "own.log", "-o", "out.strato"]] {
        let declined = strato(arguments, here);
        let why = String::from_utf8_lossy(&declined.stderr).into_owned();
        assert_eq!(declined.status.code(), Some(3), "{why}");
        assert!(why.contains("'own.log'"), "{why}");
    }
    let imported = strato(&["import", "own.log", "-o", "out.strato", "--pack", "packs"], here);
    assert_eq!(imported.status.code(), Some(0), "{}", String::from_utf8_lossy(&imported.stderr));
    assert_eq!(ranges(here, "log step"), (40, 144_000_000));
    let report = json(&strato(&["diagnose", "own.log", "--pack", "packs", "--format", "json"], here));
    assert_eq!(report["steps"]["count"], 40);
    let class = &report["steps"]["classes"][0];
    assert_eq!((class["count"].as_u64(), class["median_ns"].as_u64()), (Some(40), Some(3_000_000)), "{class}");
    let rules: Vec<_> = report["findings"].as_array().unwrap().iter().map(|f| f["rule"].as_str().unwrap()).collect();
    assert!(rules.contains(&"RT-22"), "four steps in forty take three times as long: {rules:?}");
}

#[test]
fn a_users_expression_that_is_wrong_is_refused_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    std::fs::create_dir(here.join("packs")).unwrap();
    std::fs::write(here.join("packs/mine.toml"), PACK.replace("latency_ms", "duration")).unwrap();
    std::fs::write(here.join("own.log"), own_log()).unwrap();
    for arguments in [&["diagnose", "own.log"][..], &["import", "own.log", "-o", "out.strato"]] {
        let refused = strato(&[arguments, &["--pack", "packs"]].concat(), here);
        let why = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{why}");
        assert!(why.contains("'duration' is no field"), "{why}");
    }
}

/// The same twelve steps, two of prompts and ten of tokens, in each form: 2 × 20.5 + 10 × 4.25 = 83.5 ms.
fn minimal(form: &str) -> String {
    let stage = |i: usize| if i < 2 { ("prefill", "20.5") } else { ("decode", "4.25") };
    let line = |i: usize| {
        let (stage, ms) = stage(i);
        match form {
            "jsonl" => format!(
                "{{\"platform\": \"h20\", \"batch_size\": 8, \"prompt_len\": 128, \"stage\": \"{stage}\", \"latency_ms\": {ms}, \"graph_mode\": \"full\", \"compile_hit\": true, \"memory_allocated\": 1024}}\n"
            ),
            "csv" => format!("h20,8,128,{stage},{ms},full,true,1024\n"),
            _ => format!(
                "log(platform=h20, batch_size=8, prompt_len=128, stage={stage}, latency_ms={ms})\nlog(graph_mode=full, compile_hit=True, memory_allocated=1024)\n"
            ),
        }
    };
    let head = "platform,batch_size,prompt_len,stage,latency_ms,graph_mode,compile_hit,memory_allocated\n";
    let head = if form == "csv" { head } else { "" };
    format!("{head}{}", (0..12).map(line).collect::<String>())
}

#[test]
fn the_minimal_log_says_the_same_in_every_form() {
    let mut said = Vec::new();
    for form in ["jsonl", "csv", "log"] {
        let directory = tempfile::tempdir().unwrap();
        let (here, file) = (directory.path(), format!("run.{form}"));
        std::fs::write(here.join(&file), minimal(form)).unwrap();
        let imported = strato(&["import", &file, "-o", "out.strato", "-q"], here);
        assert_eq!(imported.status.code(), Some(0), "{form}: {}", String::from_utf8_lossy(&imported.stderr));
        assert_eq!(ranges(here, "log step"), (12, 83_500_000), "{form}");
        assert_eq!(ranges(here, "log step decode"), (10, 42_500_000), "{form}");
        let report = json(&strato(&["diagnose", &file, "--format", "json"], here));
        assert_eq!(report["steps"]["count"], 12, "{form}");
        let evidence = report["captures"][0]["evidence"].as_object().unwrap();
        for absent in ["device", "host_api", "correlation", "graph", "shapes"] {
            assert_eq!(evidence.get(absent), Some(&Value::Bool(false)), "{form}: {absent}");
        }
        said.push((form, report["steps"]["classes"].clone(), report["verdict"]["layer"].clone()));
    }
    let (_, classes, layer) = &said[0];
    for (form, other, other_layer) in &said[1..] {
        assert_eq!((other, other_layer), (classes, layer), "{form}");
    }
}

/// What a rule says of itself decides who is asked for advice: a platform's pack where the remedy depends on the device, and
/// the generic pack at least where it does not.
#[test]
fn every_rule_has_advice_and_that_of_ascend_and_rocm_where_the_device_matters() {
    let packs = Packs::embedded().unwrap();
    let docs = || REGISTRY.iter().map(|rule| rule.doc());
    assert!(docs().filter(|doc| doc.advice == Advice::Device).count() > 40);
    assert!(docs().filter(|doc| doc.advice == Advice::Host).count() > 10);
    for doc in docs() {
        assert!(!packs.remedies(doc.id, None).is_empty(), "{} has no advice that holds everywhere", doc.id);
    }
    for (vendor, pack) in [("ascend", "ascend"), ("amd", "rocm"), ("hygon", "rocm")] {
        for doc in docs().filter(|doc| doc.relations.vendors.include(vendor)) {
            let own: Vec<_> = packs.remedies(doc.id, Some(vendor)).into_iter().filter(|r| r.platform == pack).collect();
            assert!(doc.advice == Advice::Host || !own.is_empty(), "{} has no advice for {vendor}", doc.id);
        }
    }
}

#[test]
fn every_remedy_is_told_in_both_languages_with_its_source_and_one_date() {
    let packs = Packs::embedded().unwrap();
    let mut remedies = 0;
    for remedy in REGISTRY.iter().flat_map(|rule| packs.all_remedies(rule.doc().id)) {
        assert!(!remedy.text_en.is_empty() && !remedy.source.is_empty() && remedy.date.len() == 7, "{remedy:?}");
        assert!(remedy.text_zh.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)), "{remedy:?}");
        assert!(!remedy.source.ends_with(&remedy.date), "the date stands in the source too: {remedy:?}");
        remedies += 1;
    }
    assert!(remedies > 150, "{remedies} remedies");
}

#[test]
fn devices_are_known_by_the_names_that_captures_and_tools_give_them() {
    let packs = Packs::embedded().unwrap();
    for (device, chip, cores) in [
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 SXM", Some(132)),
        ("NVIDIA H800", "NVIDIA H800 SXM", Some(132)),
        ("NVIDIA A100-SXM4-80GB", "NVIDIA A100 SXM4 80 GB", Some(108)),
        ("NVIDIA A100-PG509-200", "NVIDIA A100", Some(108)),
        ("Tesla V100-SXM2-16GB", "NVIDIA V100 SXM2 16 GB", Some(80)),
        ("Tesla V100-SXM2-32GB", "NVIDIA V100 SXM2 32 GB", Some(80)),
        ("NVIDIA RTX A2000 12GB", "NVIDIA RTX A2000 12 GB", Some(26)),
        ("NVIDIA GeForce RTX 5060 Ti", "NVIDIA GeForce RTX 5060 Ti", Some(36)),
        ("AMD Instinct MI300X VF", "AMD Instinct MI300X", Some(304)),
        ("AMD Instinct MI210", "AMD Instinct MI210", Some(104)),
        ("910B3", "Ascend 910B3", Some(20)),
        ("Ascend910B2C", "Ascend 910B2", Some(24)),
        ("310P3", "Ascend 310P3", Some(8)),
    ] {
        let known = packs.chip(device).unwrap_or_else(|| panic!("{device}"));
        assert_eq!((known.name.as_str(), known.cores), (chip, cores), "{device}");
        assert!(!known.source.is_empty() && known.date.len() == 7);
    }
    for device in ["", "SIMULATED GPU", "AMD Radeon Graphics", "NVIDIA RTX A1000", "Ascend910", "xMI300X"] {
        assert_eq!(packs.chip(device), None, "{device}");
    }
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn cores_that_captures_record_are_those_that_are_published() {
    let corpus = common::corpus();
    let packs = Packs::embedded().unwrap();
    let mut compared = 0;
    for file in [
        "kineto/tl-h100/gaunernst_bert-small-uncased__1016001.json.gz",
        "kineto/tl-mi300/gaunernst_bert-small-uncased__1016001.json.gz",
        "kineto/tl-mi210-gpuonly/gpu_only_trace.json.gz",
        "kineto/hta-event-sync/event_sync_trace.json.gz",
        "kineto/hta-trace_diff/test.json.gz",
        "nsys-sqlite/sglang-fork/baseline-report.sqlite",
        "nsys-sqlite/lt-gemm/profile.sqlite",
        "nsys-sqlite/dynamicvit-dlprof/nsys_profile.sqlite",
    ] {
        let trace = common::read(&corpus.join(file));
        for device in &trace.devices {
            let name = device.name.map_or("", |name| trace.strings.get(name));
            let known = packs.chip(name).unwrap_or_else(|| panic!("{file}: {name}"));
            if let Some(cores) = device.cores {
                assert_eq!(known.cores, Some(cores), "{file}: {name}");
                compared += 1;
            }
        }
    }
    // H100, MI300X, MI210 four times of which the header names each, A100 and V100; the Nsight exports hold no cores of some.
    assert!(compared >= 6, "{compared} devices");
}
