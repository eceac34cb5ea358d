//! `strato probe`: ceilings of this machine measured, shown, kept, and used by the diagnosis of a run on it. What is tested is
//! what holds on any machine, never how fast it is.

use std::process::Output;

use crate::common::strato;

fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_str(&done(output)).unwrap()
}

const QUICK: [&str; 7] = ["probe", "--budget", "1", "--only", "timer", "--only", "dispatch"];

#[test]
fn ceilings_are_told_with_unit_spread_and_provenance_in_both_forms_and_languages() {
    let directory = tempfile::tempdir().unwrap();
    let document = json(&strato(&[&QUICK[..], &["--format", "json"]].concat(), directory.path()));
    assert_eq!(document["schema"], "strato.probe/1");
    for key in ["device", "system", "cores", "threads", "isa", "taken_unix_ns", "load", "others", "steal", "noise"] {
        assert!(!document["provenance"][key].is_null(), "{key}: {document}");
    }
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert!(row["median"].as_f64().unwrap() > 0.0 && row["repeats"].as_u64().unwrap() >= 3, "{row}");
        assert!(["ns", "1/s"].contains(&row["unit"].as_str().unwrap()), "{row}");
    }
    let zh = done(&strato(&[&QUICK[..], &["--lang", "zh"]].concat(), directory.path()));
    assert!(zh.contains("# 本机上限") && zh.contains("| timer") && zh.contains("离散度"), "{zh}");
    let en = strato(&[&QUICK[..], &["--quiet", "-o", "ceilings.md"]].concat(), directory.path());
    assert_eq!((done(&en).as_str(), en.stderr.len()), ("", 0));
    let text = std::fs::read_to_string(directory.path().join("ceilings.md")).unwrap();
    assert!(text.starts_with("# Ceilings of this machine") && text.contains("M/s"), "{text}");
}

#[test]
fn what_cannot_be_probed_or_kept_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let run = ["run", "--model", "tiny", "--prompt-len", "4", "--gen", "4", "--quiet", "-o", "run.strato"];
    done(&strato(&run, directory.path()));
    let before = std::fs::read(directory.path().join("run.strato")).unwrap();
    for (arguments, told) in [
        (&["probe", "--only", "luck"][..], "possible values"),
        (&["probe", "--threads", "0"], "at least one thread"),
        (&["probe", "--budget", "9999"], "9999"),
        (&["probe", "--only", "timer", "--save", "run.strato"], "which holds a run"),
        (&["probe", "--only", "timer", "--save", "a", "-o", "a"], "choose two names"),
        (&["probe", "--only", "timer", "--save", "nowhere/a"], "there is no directory"),
        (&["diagnose", "run.strato", "--probe", "run.strato"], "holds no measured ceilings"),
    ] {
        let error = refused(&strato(arguments, directory.path()));
        assert!(error.contains(told), "{arguments:?}: {error}");
    }
    assert_eq!(std::fs::read(directory.path().join("run.strato")).unwrap(), before);
}

#[test]
fn ceilings_that_were_kept_judge_a_run_of_the_same_machine() {
    let directory = tempfile::tempdir().unwrap();
    let run = ["run", "--model", "tiny", "--prompt-len", "8", "--gen", "12", "--quiet", "-o", "run.strato"];
    done(&strato(&run, directory.path()));
    let evidence = |more: &[&str]| {
        let report = json(&strato(&[&["diagnose", "run.strato", "--format", "json"], more].concat(), directory.path()));
        let abstained: Vec<String> =
            report["abstained"].as_array().unwrap().iter().map(|a| a["rule"].as_str().unwrap().to_owned()).collect();
        (report["captures"][0]["evidence"]["probes"].as_bool().unwrap(), abstained)
    };
    let (probes, abstained) = evidence(&[]);
    assert!(!probes && abstained.iter().any(|rule| rule == "OP-01"), "{abstained:?}");
    let probe = ["probe", "--budget", "1", "--only", "launch", "--only", "read", "--only", "product"];
    let more = ["--like", "run.strato", "--save", "ceilings.strato", "--quiet"];
    done(&strato(&[&probe[..], &more].concat(), directory.path()));
    let (probes, abstained) = evidence(&["--probe", "ceilings.strato"]);
    assert!(probes && !abstained.iter().any(|rule| rule == "OP-01" || rule == "OP-02"), "{abstained:?}");
    let sql = "SELECT count(*) FROM probe_result WHERE probe = 'product' AND value > 0";
    let counted = done(&strato(&["sql", "ceilings.strato", "--csv", sql], directory.path()));
    // Four matrices of a layer of `tiny` in their canonical parts, and the head: more than the usual four shapes' worth.
    assert!(counted.lines().nth(1).unwrap().parse::<u32>().unwrap() >= 5, "{counted}");
    // Kept ceilings may be replaced by newer ones.
    done(&strato(&[&QUICK[..], &["--quiet", "--save", "ceilings.strato"]].concat(), directory.path()));
}
