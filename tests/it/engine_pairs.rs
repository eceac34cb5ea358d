//! Runs of the reference engine beside each other: what may be compared without a word from a person, what is refused and
//! for which field, and a plan that is carried out and then holds.

use std::{collections::BTreeSet, path::Path};

use crate::common::strato;

const TINY: &[&str] = &["run", "-q", "--model", "tiny", "--prompt-len", "8", "--gen", "40", "--threads", "1"];

fn run(directory: &Path, more: &[&str]) {
    let out = strato(&[TINY, more].concat(), directory);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
}

fn text(directory: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let out = strato(arguments, directory);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code(), text(out.stdout), text(out.stderr))
}

/// The fields for which the claim of steps is refused.
fn refusals(directory: &Path, a: &str, b: &str) -> BTreeSet<String> {
    let (_, out, said) = text(directory, &["diff", a, b, "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{said}"));
    let list = |key: &str| report["contract"][key].as_array().unwrap().clone();
    let refuses = |code: &serde_json::Value| {
        let own = |reason: &serde_json::Value| reason["code"] == *code && reason["force"] == "refuses";
        list("reasons").iter().any(|r| own(r) && r["claims"].as_array().unwrap().iter().any(|claim| claim == "step"))
    };
    let open = |control: &&serde_json::Value| control["status"] == "different" || control["status"] == "unknown";
    let controls = list("controls");
    let fields = controls.iter().filter(open).filter(|control| refuses(&control["code"]));
    let fields = fields.map(|control| control["field"].as_str().unwrap().to_owned());
    // How steady the machine is on which tests run is not what is asked here.
    fields.filter(|field| field != "warmup.change_point").collect()
}

#[test]
fn runs_of_one_model_are_comparable_without_a_declaration_and_others_are_refused_for_their_field() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    run(directory, &["-o", "a.strato"]);
    run(directory, &["-o", "graph.strato", "--mode", "graph"]);
    assert_eq!(refusals(directory, "a.strato", "graph.strato"), BTreeSet::new());
    let cases: [(&[&str], &str); 4] = [
        (&["--dtype", "f32"], "precision.weights"),
        (&["--batch", "2"], "caps.batch"),
        (&["--tp", "2"], "parallel.tp"),
        (&["--seed", "7"], "model.weight_hash"),
    ];
    for (more, field) in cases {
        run(directory, &[more, &["-o", "b.strato"]].concat());
        let found = refusals(directory, "a.strato", "b.strato");
        assert!(found.contains(field), "{more:?}: {found:?}");
        let group = field.split_once('.').unwrap().0;
        let others = |field: &&String| !field.starts_with(group) && !field.starts_with("workload.");
        let foreign: Vec<_> = found.iter().filter(others).collect();
        assert!(
            foreign.iter().all(|field| *field == "quality.generated_tokens" || *field == "service.scenario"),
            "{more:?}: {found:?}"
        );
    }
}

#[test]
fn launches_keep_their_noise_and_one_of_them_is_judged_by_it() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    run(directory, &["-o", "a.strato", "--repeats", "3"]);
    run(directory, &["-o", "b.strato", "--repeats", "3", "--level", "fused"]);
    let arguments = ["diff", "a.1.strato", "b.2.strato", "--format", "json"];
    let (_, out, said) = text(directory, &arguments);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{said}"));
    let Some(statistics) = report["statistics"].as_object() else {
        // Where the machine was not steady the pair is refused for that, and says nothing of noise.
        let reasons = report["contract"]["reasons"].as_array().unwrap();
        assert!(reasons.iter().any(|reason| reason["code"] == "WARMUP" || reason["code"] == "UNKNOWN"), "{reasons:?}");
        return;
    };
    assert_eq!(statistics["repeated"]["earlier_noise"][0]["repeats"], 3, "{statistics:?}");
    assert_ne!(statistics["outcome"], "unknown");
    let codes = report["contract"]["reasons"].as_array().unwrap().iter().map(|reason| reason["code"].clone());
    assert!(!codes.collect::<Vec<_>>().contains(&"NOISE".into()));
}

#[test]
fn a_plan_is_carried_out_and_then_holds_until_a_field_is_changed() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    run(directory, &["-o", "a.strato", "--dtype", "q8"]);
    run(directory, &["-o", "b.strato", "--dtype", "q8"]);
    let (code, plan, said) = text(directory, &["plan", "a.strato", "b.strato", "--effect", "20", "--format", "toml"]);
    assert_eq!(code, Some(0), "{said}");
    // Probes take seconds each, and the machine on which tests run need not be steady.
    let mut plan: toml::Table = plan.parse().unwrap();
    let open = plan["open"].as_array().unwrap();
    assert!(open.iter().all(|field| field.as_str() == Some("warmup.change_point")), "{plan}");
    plan["open"] = toml::Value::Array(vec![]);
    plan["probes"] = toml::Value::Array(vec![]);
    plan["controls"].as_table_mut().unwrap().remove("warmup.change_point");
    let write = |name: &str, plan: &toml::Table| std::fs::write(directory.join(name), plan.to_string()).unwrap();
    write("plan.toml", &plan);
    let side = |name: &str| text(directory, &["run", "--plan", "plan.toml", "--threads", "1", "-o", name]);
    let captures = |out: &str| -> Vec<String> {
        let line = out.lines().find_map(|line| line.strip_prefix("launches ")).unwrap();
        line.split(',').map(str::to_owned).collect()
    };
    // Both sides are this machine.
    let mut all = Vec::new();
    for name in ["one.strato", "two.strato"] {
        let (code, out, said) = side(name);
        assert_eq!(code, Some(0), "{said}");
        assert!(out.contains("strato plan check plan.toml"), "{out}");
        all.extend(captures(&out));
    }
    assert_eq!(all.len(), 10, "{all:?}");
    let check = |plan: &str, captures: &[String]| {
        let captures: Vec<&str> = captures.iter().map(String::as_str).collect();
        text(directory, &[&["plan", "check", plan], &captures[..]].concat())
    };
    let (code, out, said) = check("plan.toml", &all);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{said}");
    let (code, out, _) = check("plan.toml", &all[..9]);
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("9 of 10") || out.contains("9 launches of 10"), "{out}");
    plan["controls"]["precision.weights"] = "bf16".into();
    write("changed.toml", &plan);
    let (code, out, _) = check("changed.toml", &all);
    assert!(code == Some(1) && out.contains("precision.weights is q8, and has to be bf16"), "{out}");
}

#[test]
fn what_a_plan_asks_and_this_machine_cannot_do_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    run(directory, &["-o", "a.strato"]);
    let (_, plan, said) = text(directory, &["plan", "a.strato", "a.strato", "--effect", "20", "--format", "toml"]);
    let mut plan: toml::Table = plan.parse().unwrap_or_else(|_| panic!("{said}"));
    // How steady the machine is on which tests run is not what is asked here.
    plan["open"] = toml::Value::Array(vec![]);
    plan["controls"].as_table_mut().unwrap().remove("warmup.change_point");
    let refused = |change: &dyn Fn(&mut toml::Table)| {
        let mut plan = plan.clone();
        change(&mut plan);
        std::fs::write(directory.join("plan.toml"), plan.to_string()).unwrap();
        let (code, _, said) = text(directory, &["run", "--plan", "plan.toml"]);
        (code, said)
    };
    let has = |(code, said): (Option<i32>, String), wanted: i32, words: &[&str]| {
        assert_eq!(code, Some(wanted), "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    };
    let control =
        |key: &'static str, value: &'static str| move |plan: &mut toml::Table| plan["controls"][key] = value.into();
    has(refused(&control("precision.activations", "bf16")), 2, &["precision.activations", "bf16", "f32"]);
    has(refused(&control("precision.weights", "fp8 e4m3")), 2, &["precision.weights", "q8"]);
    has(refused(&control("parallel.pp", "2")), 2, &["parallel.pp"]);
    has(
        refused(&|plan| plan["devices"] = toml::Value::Array(vec!["X100".into(), "Y200".into()])),
        4,
        &["X100", "Y200"],
    );
    has(refused(&|plan| plan["open"] = toml::Value::Array(vec!["model.lora".into()])), 2, &["model.lora", "open"]);
    let (code, _, said) = text(directory, &["run", "--plan", "plan.toml", "--batch", "2"]);
    assert!(code == Some(2) && said.contains("--batch"), "{said}");
}
