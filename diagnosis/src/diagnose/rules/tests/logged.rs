#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, Ns, Slice, Trace, TraceBuilder, TraceSink, TrackKey, TrackKind};

use super::super::testing::diagnosis;
use crate::{
    analysis::{Analysis, Bucket, Selection, analyze},
    diagnose::{Diagnosis, VerdictLayer},
    platform::Packs,
};

const MS: Ns = 1_000_000;

/// A log of steps, each with its name and length, laid end to end; and what happened beside them.
fn log(steps: &[(&str, Ns)], beside: &[(&str, Ns, Ns)]) -> (Trace, Analysis) {
    let mut sink = TraceBuilder::new("t", "log");
    let process = sink.process(0);
    let track = |sink: &mut TraceBuilder, id| {
        sink.track(TrackKey { kind: TrackKind::Global, process, device: None, context: None, id })
    };
    let mut slice = |id, name: &str, start, dur| {
        let (track, name) = (track(&mut sink, id), sink.intern(name));
        let category = Category::UserRange;
        sink.slice(Slice { track, start, dur, name, category, correlation: None, detail: None });
    };
    let mut at = 0;
    for (name, dur) in steps {
        slice(0, &format!("log step {name}"), at, *dur);
        at += dur;
    }
    for (name, start, dur) in beside {
        slice(2, name, *start, *dur);
    }
    let trace = sink.finish();
    let analysis = analyze(&trace, &Packs::embedded().unwrap(), &Default::default());
    (trace, analysis)
}

fn rules(d: &Diagnosis) -> Vec<&str> {
    d.findings.iter().map(|f| f.rule).collect()
}

fn why(d: &Diagnosis, rule: &str) -> bool {
    d.abstained.iter().any(|a| a.rule == rule && a.why.is_some())
}

/// A log of a start-up holds no step; that no device was recorded is no news of a log.
#[test]
fn a_log_without_steps_says_what_it_lacks() {
    let mut sink = TraceBuilder::new("t", "log");
    let (process, name) = (sink.process(0), sink.intern("num_requests_running"));
    sink.counter(process, None, name, "", 0, 8.0);
    let trace = sink.finish();
    let analysis = analyze(&trace, &Packs::embedded().unwrap(), &Default::default());
    let d = diagnosis(&(trace, analysis));
    assert!(d.verdict.headline.text.en.starts_with("The log times no step"), "{:?}", d.verdict.headline);
}

#[test]
fn rt22_speaks_of_logged_steps_and_all_else_abstains() {
    let steps: Vec<(&str, Ns)> = (0..40).map(|i| ("decode=8", if i % 10 == 9 { 9 * MS } else { 3 * MS })).collect();
    let run = log(&steps, &[]);
    let d = diagnosis(&run);
    assert_eq!(rules(&d), ["RT-22"]);
    assert_eq!(d.verdict.layer, VerdictLayer::Undecided);
    assert!(why(&d, "RT-05") && why(&d, "RT-06") && why(&d, "RT-02"), "the log says nothing of graphs or compilation");
    for rule in ["OP-08", "RT-01", "RT-14", "CM-01", "CP-08"] {
        assert!(d.abstained.iter().any(|a| a.rule == rule && !a.needs.is_empty()), "{rule}");
    }
    let rank = &run.1.ranks[0];
    assert_eq!((rank.steps.len(), rank.classes[0].p50, rank.classes[0].key.as_str()), (40, 3 * MS, "decode b=8"));
    assert!(
        rank.steps.iter().all(|s| s.selection == Selection::Steady && s.buckets == [(Bucket::Unseen, s.window.len())])
    );
    let even = log(&[("decode=8", 3 * MS); 40], &[]);
    assert!(diagnosis(&even).findings.is_empty());
}

#[test]
fn rt05_takes_what_a_step_that_compiled_took_beyond_its_like() {
    let miss = "decode=8 compile=miss";
    let steps: Vec<(&str, Ns)> =
        (0..40).map(|i| if i == 20 || i == 30 { (miss, 23 * MS) } else { ("decode=8 compile=hit", 3 * MS) }).collect();
    let run = log(&steps, &[]);
    let d = diagnosis(&run);
    assert!(rules(&d).contains(&"RT-05"));
    let class = &run.1.ranks[0].classes[0];
    assert_eq!((class.count, class.ns(Bucket::Compile), class.ns(Bucket::Unseen)), (40, 40 * MS, 120 * MS));
    let early: Vec<(&str, Ns)> =
        (0..40).map(|i| if i < 2 { (miss, 23 * MS) } else { ("decode=8 compile=hit", 3 * MS) }).collect();
    assert!(diagnosis(&log(&early, &[])).findings.is_empty(), "compilation at the start is warm-up");
    let quiet = diagnosis(&log(&[("decode=8 compile=hit", 3 * MS); 40], &[]));
    assert!(quiet.findings.is_empty() && !why(&quiet, "RT-05"));
}

#[test]
fn rt05_takes_the_time_that_the_log_gives_a_compilation() {
    let steps: Vec<(&str, Ns)> =
        (0..40).map(|i| ("decode=8", if i == 20 || i == 30 { 23 * MS } else { 3 * MS })).collect();
    let at = 60 * MS;
    let run = log(&steps, &[("log compile", at + MS, 15 * MS), ("log compile", at + 20 * MS + 30 * MS, 15 * MS)]);
    assert!(rules(&diagnosis(&run)).contains(&"RT-05"));
    assert_eq!(run.1.ranks[0].classes[0].ns(Bucket::Compile), 30 * MS);
}

#[test]
fn rt06_sees_graphs_captured_between_logged_steps_that_count() {
    let steps: Vec<(&str, Ns)> =
        (0..40).map(|i| ("decode=8", if i == 20 || i == 30 { 23 * MS } else { 3 * MS })).collect();
    let at = 60 * MS;
    let run = log(&steps, &[("log graph capture", at, 15 * MS), ("log graph capture", at + 50 * MS, 15 * MS)]);
    let d = diagnosis(&run);
    assert!(rules(&d).contains(&"RT-06") && !rules(&d).contains(&"RT-05"), "{:?}", rules(&d));
}

#[test]
fn rt02_names_logged_batches_that_no_graph_was_captured_for() {
    let steps: Vec<(&str, Ns)> = (0..60)
        .map(|i| if i % 3 == 0 { ("decode=9 graph=eager", 20 * MS) } else { ("decode=16 graph=full", 4 * MS) })
        .collect();
    let d = diagnosis(&log(&steps, &[]));
    assert!(rules(&d).contains(&"RT-02"), "{:?}", rules(&d));
    let unknown: Vec<(&str, Ns)> =
        (0..60).map(|i| if i % 3 == 0 { ("decode=9", 20 * MS) } else { ("decode=16 graph=full", 4 * MS) }).collect();
    assert!(!rules(&diagnosis(&log(&unknown, &[]))).contains(&"RT-02"), "unknown is not eager");
}
