//! Comparisons as they are shown: on simulated samples always, on real captures where `STRATO_CORPUS` names their
//! directory. `STRATO_BLESS=1` accepts what comes out now, which is then reviewed as a difference of `tests/golden`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;

use common::analyze;
use diagnosis::{
    compare::{
        Difference, Statistics,
        align::Way,
        contract::{self, Facts, MAIN, Subject, Verdict},
    },
    diagnose,
    i18n::Lang,
    platform::Packs,
};
use model::{
    Trace,
    manifest::{Control, FIELDS, Provenance},
};
use report::{
    Report,
    diff::{DiffReport, Head, json},
};
use simulator::{Config, Fault, FaultKind, simulate};

fn head(trace: &Trace) -> Head {
    Head {
        name: Path::new(&*trace.source).file_name().unwrap().to_string_lossy().into_owned(),
        device: trace.manifest.value("hardware.device").map(str::to_owned),
        simulated: trace.simulated,
    }
}

fn report(a: &Trace, b: &Trace) -> DiffReport {
    let [of_a, of_b] = [a, b].map(analyze);
    let [facts_a, facts_b] = [(a, &of_a), (b, &of_b)].map(|(trace, analysis)| Facts::of(trace, analysis));
    let contract = contract::judge(
        Subject { manifest: &a.manifest, facts: &facts_a },
        Subject { manifest: &b.manifest, facts: &facts_b },
        &[],
    );
    let packs = Packs::embedded().unwrap();
    let single = |trace: &Trace| {
        let analysis = analyze(trace);
        let diagnosis = diagnose::diagnose(trace, &analysis, &packs);
        Report::of([(trace, &analysis, &diagnosis)])
    };
    let readiness = [a, b].map(|trace| single(trace).captures[0].readiness.clone());
    DiffReport::build(
        [head(a), head(b)],
        contract,
        || Difference::of((a, &of_a), (b, &of_b), false),
        |difference| Statistics::of(difference, [&[(a, &of_a)], &[(b, &of_b)]]),
        || [single(a), single(b)],
    )
    .with_readiness(readiness)
}

/// Says of captures what they do not say, the same of all but for `model.name`.
fn declare<const N: usize>(traces: [&mut Trace; N], model: [&str; N]) {
    for (trace, model) in traces.into_iter().zip(model) {
        for field in FIELDS.iter().filter(|field| field.control == Control::Hard) {
            let value = if field.key == "model.name" { model } else { "as on the other side" };
            if trace.manifest.value(field.key).is_none() {
                trace.manifest.set(field.key, value, Provenance::Declared);
            }
        }
    }
}

/// Compares a text with the one that was read and accepted.
fn golden(name: &str, text: &str) {
    let accepted = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("STRATO_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(&accepted, text).unwrap();
    } else if std::fs::read_to_string(&accepted).ok().as_deref() != Some(text) {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&directory, text).unwrap();
        panic!("{name} is not as accepted; what came out is in {}", directory.display());
    }
}

fn sample(name: &str) -> Trace {
    common::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-traces").join(name))
}

fn document(report: &DiffReport) -> serde_json::Value {
    let document = serde_json::from_str(&json::render(report, Lang::En).unwrap()).unwrap();
    common::schema::check(&common::schema::read("strato.diff"), &document, "the comparison");
    document
}

#[test]
fn samples_are_compared_as_accepted() {
    let (mut a, mut b) = (sample("healthy-full-graph.json.gz"), sample("launch-bound-eager.json.gz"));
    declare([&mut a, &mut b], ["simulated", "simulated"]);
    let report = report(&a, &b);
    golden("diff-samples.md", &report.document(Lang::En).markdown());
    golden("diff-samples.zh.md", &report.document(Lang::Zh).markdown());
    let json = document(&report);
    let terms = json["waterfall"]["terms"].as_array().unwrap();
    let sum: i64 = terms.iter().map(|term| term["delta_ns"].as_i64().unwrap()).sum();
    let time = |key: &str| json["waterfall"][key].as_i64().unwrap();
    assert_eq!(sum, time("to_ns") - time("from_ns"));
    assert!(json["reports"].is_null() && json["contract"]["verdict"] == "caveats", "{}", json["contract"]["verdict"]);
}

/// Keys and texts that set one side beside the other.
fn set_beside(json: &serde_json::Value) -> Vec<String> {
    ["alignment", "waterfall", "path", "configuration", "steps", "unknown"]
        .into_iter()
        .filter(|key| !json[*key].is_null())
        .map(str::to_owned)
        .collect()
}

#[test]
fn what_may_not_be_compared_is_nowhere_set_beside_each_other() {
    let (a, b) = (sample("healthy-full-graph.json.gz"), sample("launch-bound-eager.json.gz"));
    let report = report(&a, &b);
    assert_eq!(report.contract.verdict(), Verdict::NotComparable);
    let json = document(&report);
    assert_eq!(set_beside(&json), Vec::<String>::new());
    for side in ["a", "b"] {
        assert_eq!(json["reports"][side]["schema"], report::json::SCHEMA);
    }
    assert!(!json["contract"]["changes"].as_array().unwrap().is_empty());
    // Lights are words; what they rest on, which counts and measures, stands in the reports on both sides.
    for side in ["a", "b"] {
        let board = json["readiness"][side]["board"].as_array().unwrap();
        assert_eq!(board.len(), 6);
        assert!(board.iter().all(|cell| cell["evidence"].is_null() && cell["light"].is_string()), "{board:?}");
        assert!(json["reports"][side]["captures"][0]["readiness"]["board"][0]["evidence"].is_array());
    }
    assert!(
        json["readiness"]["together"].as_array().unwrap().iter().any(|c| c["area"] == "verify" && c["light"] == "red")
    );
    for lang in [Lang::En, Lang::Zh] {
        let page = report.document(lang).markdown();
        let parts: Vec<&str> = page.split("\n# ").collect();
        let [own, _, _] = parts.as_slice() else { panic!("the page and both reports, not {}", parts.len()) };
        assert!(!own.contains('×') && !own.contains("µs") && !own.contains(" %"), "{own}");
    }
}

fn captures(corpus: &Path, model: &str) -> [Trace; 2] {
    ["tl-h100", "tl-mi300"].map(|device| common::read(&corpus.join("kineto").join(device).join(model)))
}

const QWEN: &str = "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz";
const BERT: &str = "gaunernst_bert-small-uncased__1016001.json.gz";

#[test]
fn two_vendors_are_compared_kernel_by_kernel_where_a_declaration_says_they_may_be() {
    let Some(corpus) = common::corpus() else { return };
    let [mut a, mut b] = captures(&corpus, QWEN);
    let refused = report(&a, &b);
    assert_eq!(refused.contract.verdict(), Verdict::NotComparable);
    assert!(refused.contract.refusals(MAIN).any(|reason| reason.text() == "UNKNOWN(model.name)"));
    assert_eq!(set_beside(&document(&refused)), Vec::<String>::new());
    declare([&mut a, &mut b], ["Qwen1.5-0.5B-Chat", "Qwen1.5-0.5B-Chat"]);
    let report = report(&a, &b);
    let d = report.difference.as_ref().expect("comparable");
    // The model has 24 layers (its configuration); both captures show one step.
    assert_eq!((d.alignment.way, d.alignment.layers), (Way::Layers, 24));
    for coverage in d.waterfall.coverage {
        assert!(coverage.share().unwrap() >= 0.95, "{coverage:?}");
        assert!(coverage.shared as f64 >= 0.95 * coverage.busy as f64, "{coverage:?}");
    }
    // The windows of `ProfilerStep` in the reports of each side by itself.
    assert_eq!((d.waterfall.from, d.waterfall.to), (34_892_419, 33_131_334));
    golden("diff-qwen-h100-mi300.md", &report.document(Lang::En).markdown());
    golden("diff-qwen-h100-mi300.zh.md", &report.document(Lang::Zh).markdown());
}

#[test]
fn another_model_is_refused() {
    let Some(corpus) = common::corpus() else { return };
    let ([mut a, _], [_, mut b]) = (captures(&corpus, QWEN), captures(&corpus, BERT));
    declare([&mut a, &mut b], ["Qwen1.5-0.5B-Chat", "bert-small-uncased"]);
    let report = report(&a, &b);
    assert_eq!(report.contract.verdict(), Verdict::NotComparable);
    assert!(report.contract.refusals(MAIN).any(|reason| reason.text() == "MODEL"));
    assert_eq!(set_beside(&document(&report)), Vec::<String>::new());
}

/// Runs `strato diff` in a directory that holds the samples `a` and `b`.
fn diff(arguments: &[&str], files: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-traces");
    for (name, sample) in [("a", "healthy-full-graph.json.gz"), ("b", "launch-bound-eager.json.gz")] {
        std::fs::copy(samples.join(sample), directory.path().join(name)).unwrap();
    }
    files.iter().for_each(|(name, text)| std::fs::write(directory.path().join(name), text).unwrap());
    let out = common::strato(&[&["diff"], arguments].concat(), directory.path());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code(), text(out.stdout), text(out.stderr))
}

/// A declaration of every hard field that the samples do not state.
fn declaration() -> String {
    let (a, b) = (sample("healthy-full-graph.json.gz"), sample("launch-bound-eager.json.gz"));
    let silent = FIELDS.iter().filter(|f| f.control == Control::Hard);
    let silent = silent.filter(|f| a.manifest.value(f.key).is_none() && b.manifest.value(f.key).is_none());
    format!("[both]\n{}", silent.map(|f| format!("{} = \"the same\"\n", f.key)).collect::<String>())
}

#[test]
fn the_gate_lets_pass_what_is_accepted_and_nothing_that_cannot_be_judged() {
    let declared = declaration();
    let pair = |more: &[&'static str]| [&["a", "b", "--declare", "pair.toml", "--format", "json"], more].concat();
    let files = [("pair.toml", declared.as_str())];
    let (code, json, errors) = diff(&pair(&[]), &files);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    // 2.4 times as long is critical.
    assert_eq!(diff(&pair(&["--fail-on", "critical", "--quiet"]), &files).0, Some(1));
    let accepted = [files[0], ("accepted.json", &json)];
    assert_eq!(diff(&pair(&["--fail-on", "low", "--baseline", "accepted.json"]), &accepted).0, Some(0));
    // The other way round B is the faster one.
    assert_eq!(diff(&["b", "a", "--declare", "pair.toml", "--fail-on", "low", "--quiet"], &files).0, Some(0));
    assert_eq!(diff(&["a", "b", "--quiet"], &[]).0, Some(0));
    assert_eq!(diff(&["a", "b", "--fail-on", "critical", "--quiet"], &[]).0, Some(1), "refused");
}

#[test]
fn what_is_asked_wrongly_is_refused_with_the_next_step() {
    for (arguments, files, code, said) in [
        (&["a", "c"][..], &[][..], 3, "'c'"),
        (&["a", ","], &[], 2, "name a capture"),
        (&["a", "b", "--study", "model.name"], &[], 2, "different work"),
        (&["a", "b", "--declare", "pair.toml"], &[("pair.toml", "[both]\nmodel.nam = 1")], 2, "model.nam"),
        (&["a", "b", "--baseline", "x"], &[], 2, "--fail-on"),
        (&["a", "b", "--fail-on", "low", "--baseline", "x"], &[("x", "{}")], 2, "strato diff --format json"),
        (&["a", "b", "--rank", "9"], &[], 2, "rank 9"),
        (&["a", "b", "-o", "b"], &[], 2, "an input"),
    ] {
        let (found, _, errors) = diff(arguments, files);
        assert_eq!(found, Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(said), "{arguments:?}: {errors}");
    }
}

#[test]
fn several_runs_of_a_side_stand_for_it_by_the_median_one() {
    let declared = declaration();
    let files = [("pair.toml", declared.as_str())];
    let (_, one, _) = diff(&["a", "b", "--declare", "pair.toml", "--format", "json"], &files);
    let (code, three, _) = diff(&["a,a,a", "b", "--declare", "pair.toml", "--format", "json"], &files);
    let waterfall = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["waterfall"]["terms"].clone();
    assert_eq!((code, waterfall(&three)), (Some(0), waterfall(&one)));
    // A capture that is named thrice is one launch.
    assert!(three.contains("\"outcome\": \"unknown\""));
}

/// Simulated launches of one run, each with other noise, as a side of a comparison.
fn launches(directory: &Path, name: &str, config: &Config, seeds: std::ops::Range<u64>) -> String {
    let file = |seed: u64| {
        let file = format!("{name}{seed}.json");
        simulate(&Config { seed, ..config.clone() }).write_kineto(&directory.join(&file)).unwrap();
        file
    };
    seeds.map(file).collect::<Vec<_>>().join(",")
}

#[test]
fn repeated_launches_say_whether_a_difference_is_more_than_noise() {
    let directory = tempfile::tempdir().unwrap();
    let slow = [Fault { kind: FaultKind::SlowGemm, magnitude_permille: 1000 }];
    let config = Config { graph_level_trace: false, ..Config::draw_with(3, &slow) };
    let healthy = config.twin();
    let a = launches(directory.path(), "a", &healthy, 0..6);
    let again = launches(directory.path(), "a", &healthy, 6..12);
    let b = launches(directory.path(), "b", &config, 0..6);
    let mut one = common::read(&directory.path().join("a0.json"));
    let stated = one.manifest.clone();
    declare([&mut one], ["simulated"]);
    let declared: String = one
        .manifest
        .iter()
        .filter(|(key, _)| stated.value(key).is_none())
        .map(|(key, entry)| format!("{key} = \"{}\"\n", entry.value))
        .collect();
    std::fs::write(directory.path().join("pair.toml"), format!("[both]\n{declared}")).unwrap();
    let compare = |a: &str, b: &str, format: &str| {
        let arguments = ["diff", a, b, "--declare", "pair.toml", "--lang", "en", "--format", format];
        let out = common::strato(&arguments, directory.path());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let json = |a: &str, b: &str| serde_json::from_str::<serde_json::Value>(&compare(a, b, "json")).unwrap();
    let (there, back) = (json(&a, &b), json(&b, &a));
    let statistics = &there["statistics"];
    assert_eq!((&statistics["outcome"], &statistics["unit"]), (&"shown".into(), &"launch".into()), "{statistics}");
    assert_eq!(statistics["a"]["launches_ns"].as_array().unwrap().len(), 6);
    let difference = |document: &serde_json::Value, key: &str| {
        document["statistics"]["repeated"]["difference_ns"][key].as_f64().unwrap()
    };
    assert_eq!(difference(&there, "value"), -difference(&back, "value"));
    assert_eq!(difference(&there, "low"), -difference(&back, "high"));
    let buckets = statistics["repeated"]["buckets"].as_array().unwrap();
    let gemm = buckets.iter().find(|bucket| bucket["bucket"] == "compute.gemm").unwrap();
    assert_eq!(gemm["differs"], true, "{gemm}");
    assert!(!there["contract"]["reasons"].to_string().contains("NOISE"));
    assert!(compare(&a, &b, "md").contains("Yes: the difference is above what launches of one side differ by"));
    // The same work twice: nothing to show, and no ratio of noise anywhere.
    let same = json(&a, &again);
    assert_eq!(same["statistics"]["outcome"], "not_shown", "{}", same["statistics"]);
    assert!(same["statistics"]["repeated"]["ratio"].is_null());
    let page = compare(&a, &again, "md");
    let answer = page.lines().find(|line| line.starts_with("**For a step")).unwrap();
    assert!(!answer.contains('×') && page.contains("no difference is shown"), "{answer}");
    assert!(page.contains("the middle one of 6 launches"));
}

#[test]
fn what_is_declared_in_a_capture_need_not_be_declared_again() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let out = common::strato(arguments, directory.path());
        (out.status.code(), String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
    };
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-traces");
    for (name, sample) in [("a", "healthy-full-graph.json.gz"), ("b", "launch-bound-eager.json.gz")] {
        let capture = format!("{name}.strato");
        let saved = run(&["diagnose", samples.join(sample).to_str().unwrap(), "--save", &capture, "--quiet"]);
        assert_eq!(saved.0, Some(0), "{}", saved.2);
    }
    assert_eq!(run(&["diff", "a.strato", "b.strato", "--fail-on", "critical", "-q"]).0, Some(1), "refused");
    std::fs::write(directory.path().join("pair.toml"), declaration()).unwrap();
    let findings = "SELECT count(*) FROM finding";
    let before = run(&["sql", "b.strato", findings, "--csv"]).1;
    for capture in ["a.strato", "b.strato"] {
        assert_eq!(
            run(&["manifest", "edit", capture, "--declare", "pair.toml"]),
            (Some(0), String::new(), String::new())
        );
    }
    assert_eq!(run(&["sql", "b.strato", findings, "--csv"]).1, before, "what else is in the file stays");
    let document: serde_json::Value =
        serde_json::from_str(&run(&["diff", "a.strato", "b.strato", "--format", "json"]).1).unwrap();
    assert_eq!(document["contract"]["verdict"], "caveats");
    let shown: serde_json::Value =
        serde_json::from_str(&run(&["manifest", "show", "a.strato", "--format", "json"]).1).unwrap();
    let fields = shown["captures"][0]["fields"].as_array().unwrap();
    assert!(
        fields.iter().any(|f| f["field"] == "model.lora" && f["value"] == "the same" && f["provenance"] == "declared")
    );
    // A plan made of both asks for more launches than one.
    assert_eq!(run(&["plan", "a.strato", "b.strato", "--format", "toml", "-o", "plan.toml"]).0, Some(0));
    let (code, lacks, errors) = run(&["plan", "check", "plan.toml", "a.strato", "b.strato", "--lang", "en"]);
    assert!(code == Some(1) && lacks.contains("launches of"), "{lacks}{errors}");
    let page = run(&["plan", "a.strato", "b.strato", "--lang", "en"]).1;
    assert!(page.contains("does not mean that it is finished") && page.contains("strato probe --only"), "{page}");
    // What the capture shows stays, and two sides are not one.
    let observed = fields.iter().find(|f| f["provenance"] == "observed" && f["class"] == "soft").unwrap();
    let key = observed["field"].as_str().unwrap();
    std::fs::write(directory.path().join("wrong.toml"), format!("[both]\n{key} = \"something else\"")).unwrap();
    std::fs::write(directory.path().join("sides.toml"), "[a]\nmodel.name = \"m\"").unwrap();
    for (file, said) in [("wrong.toml", key), ("sides.toml", "--side a")] {
        let (code, _, errors) = run(&["manifest", "edit", "a.strato", "--declare", file]);
        assert!(code == Some(2) && errors.contains(said), "{file}: {errors}");
    }
    let (code, _, errors) = run(&["manifest", "edit", "pair.toml", "--declare", "pair.toml"]);
    assert!(code == Some(3) && errors.contains("strato import"), "{errors}");
}

#[test]
fn captures_of_other_work_are_no_launches_of_a_side() {
    let directory = tempfile::tempdir().unwrap();
    for (name, of, model) in
        [("x", "healthy-full-graph.json.gz", "one"), ("y", "launch-bound-eager.json.gz", "another")]
    {
        let mut trace = sample(of);
        trace.manifest = model::Manifest::default();
        trace.manifest.set("model.name", model, model::Provenance::Observed);
        store::save(&directory.path().join(name), &[trace]).unwrap();
    }
    let out = common::strato(&["diff", "x,y", "x"], directory.path());
    let errors = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(2), "{errors}");
    assert!(errors.contains("no launches of one run: they differ in model.name"), "{errors}");
}
