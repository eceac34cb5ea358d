//! Comparisons as they are shown, and as a gate takes them: on simulated runs always, on real captures where `STRATO_CORPUS`
//! names their directory. Whole pages are those of `golden.rs`.

use std::path::Path;

use diagnosis::{
    compare::{
        align::Way,
        contract::{MAIN, Verdict},
    },
    i18n::Lang,
};
use model::Trace;
use report::diff::{DiffReport, json};
use simulator::{Config, Fault, FaultKind, simulate};

use crate::common::{
    self,
    pair::{Known, compare, declaration, steady},
    sample, samples,
};

/// What the program says of two captures of which nothing, or that, is declared.
fn report([a, b]: [&Trace; 2], declared: &str) -> DiffReport {
    compare([vec![a.clone()], vec![b.clone()]], declared).1
}

fn document(report: &DiffReport) -> serde_json::Value {
    serde_json::from_str(&json::render(report, Lang::En).unwrap()).unwrap()
}

#[test]
fn the_terms_of_a_waterfall_add_up_to_the_difference() {
    let traces = steady().map(|file| common::read(&file));
    let declared = declaration(traces.each_ref(), Known::Hard);
    let json = document(&report(traces.each_ref(), &declared));
    let terms = json["waterfall"]["terms"].as_array().unwrap();
    let sum: i64 = terms.iter().map(|term| term["delta_ns"].as_i64().unwrap()).sum();
    let time = |key: &str| json["waterfall"][key].as_i64().unwrap();
    assert_eq!(sum, time("to_ns") - time("from_ns"));
    assert!(json["reports"].is_null() && json["contract"]["verdict"] == "caveats", "{}", json["contract"]["verdict"]);
}

/// Of the samples one had compiled before the steps that count and the other had not, whatever a person says of them.
#[test]
fn a_declaration_does_not_overrule_what_a_capture_shows() {
    let (a, b) = (sample("healthy-full-graph.json.gz"), sample("launch-bound-eager.json.gz"));
    let refused = report([&a, &b], &declaration([&a, &b], Known::Hard));
    assert_eq!(refused.contract.verdict(), Verdict::NotComparable);
    assert_eq!(refused.contract.refusals(MAIN).map(|reason| reason.text()).collect::<Vec<_>>(), ["WARMUP"]);
    assert_eq!(set_beside(&document(&refused)), Vec::<String>::new());
    let claimed = "[both]\nwarmup.compile_done = \"yes\"\n";
    let (code, _, errors) = diff_of(["healthy-full-graph.json.gz", "launch-bound-eager.json.gz"], claimed);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("warmup.compile_done") && errors.contains("'no'"), "{errors}");
}

/// `strato diff` on two samples.
fn diff_of(captures: [&str; 2], declared: &str) -> (Option<i32>, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pair.toml");
    std::fs::write(&file, declared).unwrap();
    let [a, b] = captures;
    run(&["diff", a, b, "--declare", file.to_str().unwrap()], &samples())
}

fn run(arguments: &[&str], directory: &Path) -> (Option<i32>, String, String) {
    let out = common::strato(arguments, directory);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code(), text(out.stdout), text(out.stderr))
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
    let report = report([&a, &b], "");
    assert_eq!(report.contract.verdict(), Verdict::NotComparable);
    let json = document(&report);
    assert_eq!(set_beside(&json), Vec::<String>::new());
    for side in ["a", "b"] {
        assert_eq!(json["reports"][side]["schema"], "strato.diagnosis/2");
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
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn two_vendors_are_compared_kernel_by_kernel_where_a_declaration_says_they_may_be() {
    let corpus = common::corpus();
    let traces = captures(&corpus, QWEN);
    let refused = report(traces.each_ref(), "");
    assert_eq!(refused.contract.verdict(), Verdict::NotComparable);
    assert!(refused.contract.refusals(MAIN).any(|reason| reason.text() == "UNKNOWN(model.name)"));
    assert_eq!(set_beside(&document(&refused)), Vec::<String>::new());
    let report = report(traces.each_ref(), &declaration(traces.each_ref(), Known::Hard));
    let d = report.difference.as_ref().expect("comparable");
    // The model has 24 layers (its configuration); both captures show one step.
    assert_eq!((d.alignment.way, d.alignment.layers), (Way::Layers, 24));
    for coverage in d.waterfall.coverage {
        assert!(coverage.share().unwrap() >= 0.95, "{coverage:?}");
        assert!(coverage.shared as f64 >= 0.95 * coverage.busy as f64, "{coverage:?}");
    }
    // The windows of `ProfilerStep` in the reports of each side by itself.
    assert_eq!((d.waterfall.from, d.waterfall.to), (34_892_419, 33_131_334));
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn another_model_is_refused() {
    let corpus = common::corpus();
    let ([a, _], [_, b]) = (captures(&corpus, QWEN), captures(&corpus, BERT));
    let mut declared: toml::Table = declaration([&a, &b], Known::Hard).parse().unwrap();
    for (side, model) in [("both", None), ("a", Some("Qwen1.5-0.5B-Chat")), ("b", Some("bert-small-uncased"))] {
        let fields = declared.entry(side).or_insert_with(|| toml::Table::new().into()).as_table_mut().unwrap();
        let fields = fields.entry("model").or_insert_with(|| toml::Table::new().into()).as_table_mut().unwrap();
        match model {
            Some(model) => fields.insert("name".into(), model.into()),
            None => fields.remove("name"),
        };
    }
    let report = report([&a, &b], &declared.to_string());
    assert_eq!(report.contract.verdict(), Verdict::NotComparable);
    assert!(report.contract.refusals(MAIN).any(|reason| reason.text() == "MODEL"));
    assert_eq!(set_beside(&document(&report)), Vec::<String>::new());
}

/// Runs `strato diff` in a directory that holds the steady runs as `a` and `b`.
fn diff(arguments: &[&str], files: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let directory = tempfile::tempdir().unwrap();
    for (name, capture) in ["a", "b"].into_iter().zip(steady()) {
        std::fs::copy(capture, directory.path().join(name)).unwrap();
    }
    files.iter().for_each(|(name, text)| std::fs::write(directory.path().join(name), text).unwrap());
    run(&[&["diff"], arguments].concat(), directory.path())
}

/// A declaration of every hard field that the steady runs neither state nor show.
fn declared() -> String {
    declaration(steady().map(|file| common::read(&file)).each_ref(), Known::Hard)
}

#[test]
fn the_gate_lets_pass_what_is_accepted_and_nothing_that_cannot_be_judged() {
    let declared = declared();
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
    assert_eq!(diff(&["a", "b", "--fail-on", "critical", "--quiet"], &[]).0, Some(5), "refused");
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
    let declared = declared();
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
    let sides = ["a0.json", "b0.json"].map(|file| common::read(&directory.path().join(file)));
    std::fs::write(directory.path().join("pair.toml"), declaration(sides.each_ref(), Known::Hard)).unwrap();
    let compare = |a: &str, b: &str, format: &str| {
        let arguments = ["diff", a, b, "--declare", "pair.toml", "--lang", "en", "--format", format];
        let out = common::strato(&arguments, directory.path());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let json = |a: &str, b: &str| serde_json::from_str::<serde_json::Value>(&compare(a, b, "json")).unwrap();
    // The page of the two holds the timelines of both, which move together.
    let page = compare(&a, &b, "html");
    let drawn = page.split("<main>").nth(1).unwrap();
    assert_eq!(drawn.matches(" data-linked data-lanes=").count(), 2);
    // What makes the difference stands before them, and the tables are folded after them.
    let order = ["<figure class=\"waterfall\"", " data-linked", "<details>"].map(|part| drawn.find(part).unwrap());
    assert!(order.is_sorted(), "{order:?}");
    assert!(drawn.contains("Timeline A") && drawn.contains("Timeline B"), "{page:.400}");
    let (there, back) = (json(&a, &b), json(&b, &a));
    let statistics = &there["statistics"];
    assert_eq!(
        (&statistics["outcome"], &statistics["unit"]),
        (&"significant".into(), &"launch".into()),
        "{statistics}"
    );
    assert_eq!(statistics["a"]["repeats_ns"].as_array().unwrap().len(), 6);
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
    assert_eq!(same["statistics"]["outcome"], "not_significant", "{}", same["statistics"]);
    assert!(same["statistics"]["repeated"]["ratio"].is_null());
    let page = compare(&a, &again, "md");
    let answer = page.lines().find(|line| line.starts_with("**For a step")).unwrap();
    assert!(!answer.contains('×') && page.contains("no difference is shown"), "{answer}");
    assert!(page.contains("the middle one of 6 launches"));
}

#[test]
fn what_is_declared_in_a_capture_need_not_be_declared_again() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| run(arguments, directory.path());
    for (name, file) in ["a", "b"].into_iter().zip(steady()) {
        let capture = format!("{name}.strato");
        let saved = run(&["diagnose", file.to_str().unwrap(), "--save", &capture, "--quiet"]);
        assert_eq!(saved.0, Some(0), "{}", saved.2);
    }
    assert_eq!(run(&["diff", "a.strato", "b.strato", "--fail-on", "critical", "-q"]).0, Some(5), "refused");
    std::fs::write(directory.path().join("pair.toml"), declared()).unwrap();
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
