#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::{
    super::testing::{GEMM, Run, diagnosis, us},
    runtime::{eager, graph},
};
use crate::{
    analysis::{Confidence, Layer, script::Script},
    diagnose::{Level, VerdictLayer},
    i18n::Lang,
};

#[test]
fn a_launch_bound_run_is_blamed_once_and_on_the_runtime() {
    let d = diagnosis(&eager(us(4)));
    assert_eq!(d.verdict.layer, VerdictLayer::Runtime);
    assert_eq!(d.findings[0].rule, "RT-14");
    assert_eq!(d.findings[0].supersedes, ["RT-01"]);
    assert!(d.findings.iter().all(|f| f.rule != "RT-01"));
    assert_eq!(d.verdict.because[0], "RT-14");
}

#[test]
fn a_full_graph_that_keeps_the_device_busy_has_no_host_finding() {
    let d = diagnosis(&graph(12, |_, _| {}));
    let host: Vec<_> = d.findings.iter().filter(|f| f.layer == Layer::Runtime).map(|f| f.rule).collect();
    assert_eq!(host, [""; 0]);
    assert_eq!(d.verdict.layer, VerdictLayer::Operator);
    assert!(d.verdict.because.is_empty());
    assert_eq!(d.verdict.level, Some(Level::Run));
    assert!(!d.verdict.missing.is_empty());
}

#[test]
fn between_step_scheduling_is_the_verdict_where_it_costs_most() {
    let d = diagnosis(&graph(12, |r, _| {
        r.think(us(300));
    }));
    assert_eq!((d.verdict.layer, d.verdict.because[0]), (VerdictLayer::Runtime, "RT-12"));
}

#[test]
fn a_capture_that_cannot_explain_itself_gets_no_verdict() {
    let mut s = Script::default();
    for i in 0..8 {
        s.kernel(7, GEMM, (i * us(100), i * us(100) + us(20)), None, None);
    }
    let d = diagnosis(&s.analyze());
    assert_eq!(d.verdict.layer, VerdictLayer::Undecided);
    assert!(d.findings.iter().any(|f| f.rule == "CP-08"));
    assert!(d.abstained.iter().any(|a| a.rule == "RT-14" && !a.needs.is_empty()));
}

#[test]
fn nothing_on_the_device_reaches_no_level() {
    let mut s = Script::default();
    s.call("cudaLaunchKernel", (0, 10));
    let d = diagnosis(&s.analyze());
    assert_eq!((d.verdict.layer, d.verdict.level), (VerdictLayer::Undecided, None));
}

#[test]
fn measurement_findings_come_last_and_texts_are_complete() {
    for capture in [
        eager(us(4)),
        graph(12, |r, _| {
            r.think(us(300));
        }),
    ] {
        let d = diagnosis(&capture);
        let gates: Vec<bool> = d.findings.iter().map(|f| f.layer == Layer::Measurement).collect();
        assert!(gates.is_sorted());
        for lang in [Lang::En, Lang::Zh] {
            let mut texts = vec![&d.verdict.headline];
            texts.extend(&d.verdict.missing);
            texts.extend(d.findings.iter().flat_map(|f| f.competing.iter().flat_map(|c| [&c.claim, &c.why])));
            texts.extend(d.findings.iter().flat_map(|f| f.evidence.iter().map(|e| &e.what)));
            for text in texts {
                let shown = text.render(lang, |_| "x".into());
                assert!(!shown.is_empty() && !shown.contains(['{', '}']), "{shown}");
            }
        }
    }
}

#[test]
fn few_steps_leave_a_finding_unsure() {
    let short = Run::steps(3, |r, _| {
        for _ in 0..20 {
            r.work(model::Category::FrameworkOp, "aten::linear", us(15)).launch(GEMM, us(4));
        }
        r.token();
    });
    let d = diagnosis(&short);
    let launch = d.findings.iter().find(|f| f.rule == "RT-14" || f.rule == "RT-01").unwrap();
    assert_eq!(launch.confidence, Confidence::Low);
}

#[test]
fn collectives_of_one_rank_alone_are_not_passed_over_for_what_little_else_is_known() {
    let d = diagnosis(&graph(12, |r, _| {
        r.graph(&[("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", us(2_000))], 0);
    }));
    let headline = d.verdict.headline.render(Lang::En, |_| String::new());
    assert_eq!(d.verdict.layer, VerdictLayer::Undecided, "{headline}");
    assert!(headline.contains("inside collectives"), "{headline}");
}

#[test]
fn a_capture_that_mostly_captures_a_graph_is_a_start_up() {
    let mut s = Script::default();
    s.launch((0, us(1)), GEMM, (us(2), us(10)));
    s.call("cudaStreamBeginCapture", (us(20), us(21)));
    s.call("cudaStreamEndCapture", (us(900), us(901)));
    s.launch((us(950), us(951)), GEMM, (us(952), us(960)));
    let d = diagnosis(&s.analyze());
    let headline = d.verdict.headline.render(Lang::En, |_| String::new());
    assert!(headline.contains("start-up"), "{headline}");
}
