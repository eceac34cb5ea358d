//! What a report must not claim: advice that is followed already, verdicts on what nobody measured.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, Provenance, TraceSink};

use super::{
    super::testing::{GEMM, Run, check, diagnosis, us},
    runtime::{eager, graph},
};
use crate::{
    analysis::script::Script,
    diagnose::Diagnosis,
    i18n::{Lang, Message, Value},
};

/// A message in English with the names it holds; numbers do not matter here.
fn text(message: &Message) -> String {
    message.render(Lang::En, |value| match value {
        Value::Raw(name) => name.clone(),
        Value::Text(text) => text.en.to_owned(),
        _ => "n".to_owned(),
    })
}

/// Why a rule abstained.
fn why(d: &Diagnosis, rule: &str) -> String {
    d.abstained.iter().find(|a| a.rule == rule).and_then(|a| a.why.as_ref()).map(text).unwrap_or_default()
}

#[test]
fn advice_that_the_manifest_shows_to_be_followed_is_not_given() {
    let advice = |traced: &'static str| {
        let capture = graph(12, move |r, _| {
            r.script.builder.manifest("nsys.graph_trace", traced, Provenance::Observed);
            r.work(Category::Overhead, "Buffer Flush", us(30));
        });
        let remedies = check("CP-04", &capture).remove(0).remedy;
        remedies.iter().filter(|r| r.text_en.contains("--cuda-graph-trace=graph")).count()
    };
    assert_eq!((advice("node"), advice("graph")), (1, 0));
}

#[test]
fn operators_that_no_probe_judged_are_not_called_fine() {
    let d = diagnosis(&graph(12, |_, _| {}));
    let doubt = text(&d.verdict.unjudged[0].sentence);
    assert!(doubt.contains("how fast") && doubt.contains("--model"), "{doubt}");
    assert!(d.verdict.first.is_none());
}

#[test]
fn a_gap_that_ends_in_a_module_load_is_a_start_up() {
    let capture = |api: &str| {
        let mut s = Script::default();
        s.launch((0, us(5)), GEMM, (us(10), us(50)));
        s.call(api, (us(700), us(800)));
        s.launch((us(900), us(905)), GEMM, (us(910), us(950)));
        diagnosis(&s.analyze())
    };
    let load = capture("cuModuleLoadData");
    assert!(text(&load.verdict.headline).contains("start-up"), "{}", text(&load.verdict.headline));
    assert!(why(&load, "RT-01").contains("start-up"));
    let query = capture("cudaEventQuery");
    assert!(!text(&query.verdict.headline).contains("start-up"));
    assert!(why(&query, "RT-01").contains("annotate them"));
}

#[test]
fn training_is_asked_for_no_decode_steps() {
    let mut s = Script::default();
    s.launch((0, us(5)), "igemm_wrw_gtcx2_nhwc_bf16", (us(10), us(50)));
    s.launch((us(5), us(10)), GEMM, (us(50), us(90)));
    let d = diagnosis(&s.analyze());
    assert!(text(&d.verdict.headline).starts_with("Training"), "{}", text(&d.verdict.headline));
    assert!(why(&d, "RT-01").contains("training"));
    assert!(!d.verdict.missing.iter().map(text).any(|m| m.contains("decode")));
}

#[test]
fn switches_of_the_profiler_that_slow_the_host_are_named() {
    let with = |switch: Option<&'static str>| {
        Run::steps(12, move |r, _| {
            if let Some(switch) = switch {
                r.script.builder.manifest(switch, "1", Provenance::Observed);
            }
            for _ in 0..20 {
                r.work(Category::FrameworkOp, "aten::linear", us(15)).launch(GEMM, us(4));
            }
            r.token();
        })
    };
    let capture = |stacks: bool| with(stacks.then_some("kineto.with_stack"));
    let open = |stacks| {
        let found = check("RT-14", &capture(stacks)).remove(0);
        found.competing.iter().filter(|c| !c.refuted).map(|c| text(&c.why)).collect::<String>()
    };
    assert!(open(true).contains("with_stack") && !open(false).contains("with_stack"));
    assert!(why(&diagnosis(&capture(true)), "CP-04").contains("with_stack"));
    assert!(!why(&diagnosis(&eager(us(4))), "CP-04").contains("with_stack"));
    // A range for every operator costs as much, whoever wrote it.
    assert!(why(&diagnosis(&with(Some("nsys.emit_nvtx"))), "CP-04").contains("emit_nvtx"));
}

#[test]
fn of_equal_buckets_the_verdict_names_the_one_that_the_table_lists_first() {
    let mut s = Script::default();
    s.launch((0, 10), GEMM, (20, 1_020));
    s.launch((10, 20), "void at::native::elementwise_add<float>(float*, float*)", (1_020, 2_020));
    let headline = text(&diagnosis(&s.analyze()).verdict.headline);
    assert!(headline.contains("compute.elementwise"), "{headline}");
}
