#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, ImportStat, Ns, Provenance, Trace};

use model::manifest::COMMUNITY;

use super::*;
use crate::{
    analysis::{Analysis, job_script, script::Script},
    diagnose::{
        estimate::Intervention,
        finding::Trigger,
        roofline::Row,
        rules::{
            self,
            testing::{GEMM, NORM, Run, us},
        },
    },
    i18n::{Message, Text, Value},
    platform::Packs,
};

/// A run that replays its steps from one graph.
fn graphs(steps: usize) -> (Trace, Analysis) {
    Run::steps(steps, |r, _| {
        r.think(us(5)).graph(&[(NORM, us(4)), (GEMM, us(60)), (NORM, us(4)), (GEMM, us(60))], 100).token();
    })
}

/// A run that launches its kernels one by one; `every` says in which steps it compiles.
fn eager(steps: usize, compiles: impl Fn(usize) -> bool) -> (Trace, Analysis) {
    Run::steps(steps, |r, i| {
        if compiles(i) {
            r.call("cuModuleLoadData", us(40));
        }
        r.launch(GEMM, us(60)).launch(NORM, us(5)).launch(GEMM, us(60)).token();
    })
}

/// A finding of a rule.
fn finding((trace, analysis): &(Trace, Analysis), rule: &'static str, severity: Severity) -> Finding {
    let packs = Packs::embedded().unwrap();
    let cx = Context { trace, analysis, packs: &packs };
    let (rank, class) = cx.main_classes().next().unwrap();
    let doc = rules::find(rule).unwrap().doc();
    let claim = Message::plain(Text::new("a claim", "断言"));
    let trigger = Trigger { formula: Text::new("f", "f"), value: 1.0, threshold: 1.0 };
    let change = Intervention { removes: 0, layer: doc.layer, edits: Default::default() };
    Finding { severity, ..cx.finding(doc, rank, class, claim, trigger, change) }
}

fn assessed(capture: &(Trace, Analysis), findings: &[Finding], roofline: Option<&Roofline>) -> Readiness {
    let packs = Packs::embedded().unwrap();
    let (trace, analysis) = capture;
    assess(&Context { trace, analysis, packs: &packs }, findings, roofline, rules::CATALOGUE)
}

fn area(capture: &(Trace, Analysis), findings: &[Finding], area: Area) -> (Light, Option<Next>) {
    let readiness = assessed(capture, findings, None);
    assert_eq!(readiness.board.iter().map(|cell| cell.of).collect::<Vec<_>>(), Area::ALL);
    let cell = readiness.board.into_iter().find(|cell| cell.of == area).unwrap();
    assert!(!cell.facts.is_empty(), "{area:?} rests on nothing");
    assert_eq!(cell.light == Light::Green, cell.next.is_none(), "{cell:?}");
    (cell.light, cell.next)
}

fn row(capture: &(Trace, Analysis), roofline: Option<&Roofline>, row: Maturity) -> (Light, Option<Next>) {
    let readiness = assessed(capture, &[], roofline);
    assert_eq!(readiness.matrix.iter().map(|cell| cell.of).collect::<Vec<_>>(), Maturity::ALL);
    let cell = readiness.matrix.into_iter().find(|cell| cell.of == row).unwrap();
    assert!(!cell.facts.is_empty(), "{row:?} rests on nothing");
    (cell.light, cell.next)
}

/// A capture that says this of itself.
fn stated(mut capture: (Trace, Analysis), facts: &[(&str, &str)]) -> (Trace, Analysis) {
    for (key, value) in facts {
        capture.0.manifest.set(key, *value, Provenance::Declared);
    }
    capture
}

/// Host calls and nothing that they caused.
fn nothing() -> (Trace, Analysis) {
    let mut script = Script::default();
    script.call("cudaLaunchKernel", (0, 10));
    script.analyze()
}

#[test]
fn a_capture_of_nothing_is_green_nowhere() {
    for capture in [nothing(), Script::default().analyze()] {
        let readiness = assessed(&capture, &[], None);
        let lights = readiness.board.iter().map(|c| c.light).chain(readiness.matrix.iter().map(|c| c.light));
        assert!(lights.into_iter().all(|light| light != Light::Green), "{readiness:?}");
    }
}

#[test]
fn run() {
    let run = |capture: &(Trace, Analysis), findings: &[Finding]| area(capture, findings, Area::Run);
    let plain = graphs(24);
    assert_eq!(run(&nothing(), &[]), (Light::Unknown, Some(Next::Collect(EvidenceClass::Device))));
    assert_eq!(run(&plain, &[]), (Light::Amber, Some(Next::Reference)));
    let right = stated(graphs(24), &[("precision.deviation", "within precision of bf16")]);
    assert_eq!(run(&right, &[]), (Light::Green, None));
    // That something is stated of the numbers is not that they are right.
    for (field, value, light) in [
        ("precision.deviation", "as on the other side", Light::Amber),
        ("quality.token_agreement", "99.5 %", Light::Green),
        ("quality.token_agreement", "0.4", Light::Amber),
        ("quality.accuracy", "0.81", Light::Amber),
    ] {
        assert_eq!(run(&stated(graphs(24), &[(field, value)]), &[]).0, light, "{field} = {value}");
    }
    let wrong = stated(graphs(24), &[("precision.deviation", "diverges at layer 3")]);
    assert_eq!(run(&wrong, &[]), (Light::Red, Some(Next::Diverges)));
    let fallback = |severity| run(&right, &[finding(&right, "OP-07", severity)]);
    assert_eq!(fallback(Severity::High), (Light::Red, Some(Next::Remedy("OP-07"))));
    assert_eq!(fallback(Severity::Low), (Light::Amber, Some(Next::Remedy("OP-07"))));
    assert_eq!(fallback(Severity::Info), (Light::Green, None));
}

#[test]
fn graph() {
    let graph = |capture: &(Trace, Analysis), findings: &[Finding]| area(capture, findings, Area::Graph);
    assert_eq!(graph(&graphs(24), &[]), (Light::Green, None));
    let launched = eager(24, |_| false);
    assert_eq!(graph(&launched, &[]), (Light::Amber, Some(Next::Graphs)));
    let costly = finding(&launched, "RT-01", Severity::High);
    assert_eq!(graph(&launched, &[costly]), (Light::Red, Some(Next::Remedy("RT-01"))));
    let bound = finding(&launched, "RT-14", Severity::Critical);
    assert_eq!(graph(&launched, &[bound]), (Light::Red, Some(Next::Remedy("RT-14"))));
    let replayed = graphs(24);
    let elsewhere = finding(&replayed, "RT-14", Severity::Critical);
    assert_eq!(graph(&replayed, &[elsewhere]), (Light::Green, None), "no launch of these steps is left to replay");
    let mut blind = launched;
    blind.1.evidence = [EvidenceClass::Device].into_iter().collect();
    assert_eq!(graph(&blind, &[]), (Light::Unknown, Some(Next::Collect(EvidenceClass::Graph))));
}

#[test]
fn compile_stability() {
    let stable = |capture: &(Trace, Analysis), findings: &[Finding]| area(capture, findings, Area::CompileStability);
    assert_eq!(stable(&eager(40, |_| false), &[]), (Light::Green, None));
    assert_eq!(stable(&eager(12, |_| false), &[]), (Light::Amber, Some(Next::Steps)));
    assert_eq!(stable(&eager(60, |i| i == 40), &[]), (Light::Amber, Some(Next::WarmUp)));
    assert_eq!(stable(&eager(60, |i| i > 20 && i % 4 == 0), &[]), (Light::Red, Some(Next::WarmUp)));
    let mut blind = eager(40, |_| false);
    blind.1.evidence = [EvidenceClass::Device].into_iter().collect();
    assert_eq!(stable(&blind, &[]), (Light::Unknown, Some(Next::Collect(EvidenceClass::HostApi))));
}

/// Two ranks that meet in every layer.
fn job(ranks: usize) -> (Trace, Analysis) {
    let work: Vec<Vec<(Ns, Ns)>> = vec![vec![(us(30), us(2)); 40]; ranks];
    job_script::Run::new(work, 2).analyze()
}

#[test]
fn communication() {
    let comm = |capture: &(Trace, Analysis), findings: &[Finding]| area(capture, findings, Area::Communication);
    let two = job(2);
    assert_eq!(comm(&two, &[]), (Light::Green, None));
    assert_eq!(comm(&two, &[finding(&two, "CM-01", Severity::Critical)]), (Light::Red, Some(Next::Remedy("CM-01"))));
    assert_eq!(comm(&two, &[finding(&two, "CM-05", Severity::Low)]), (Light::Amber, Some(Next::Remedy("CM-05"))));
    // No collective was seen, because there is nobody to talk to.
    assert_eq!(comm(&graphs(24), &[]), (Light::Unknown, Some(Next::Distribute)));
    let mut one = job(2);
    one.1.evidence = [EvidenceClass::Device, EvidenceClass::HostApi].into_iter().collect();
    assert_eq!(comm(&one, &[]), (Light::Unknown, Some(Next::Collect(EvidenceClass::MultiRank))));
}

#[test]
fn observability() {
    let seen = |capture: &(Trace, Analysis)| area(capture, &[], Area::Observability);
    assert_eq!(seen(&graphs(24)), (Light::Green, None));
    let mut without_host = graphs(24);
    without_host.1.evidence = [EvidenceClass::Device].into_iter().collect();
    assert_eq!(seen(&without_host), (Light::Red, Some(Next::Collect(EvidenceClass::HostApi))));
    let mut lossy = graphs(24);
    lossy.0.stats.push(ImportStat { name: "kineto.lost".into(), severity: Loss::DataLoss, count: 3, example: None });
    assert_eq!(seen(&lossy), (Light::Amber, Some(Next::Losses)));
    let unnamed = Run::steps(24, |r, _| {
        r.launch("a_kernel_that_nobody_knows", us(60)).launch(GEMM, us(20)).token();
    });
    assert_eq!(seen(&unnamed), (Light::Amber, Some(Next::Patterns)));
    let mut dark = nothing();
    dark.1.evidence = Default::default();
    assert_eq!(seen(&dark), (Light::Unknown, Some(Next::Collect(EvidenceClass::Device))));
}

#[test]
fn verify() {
    let hard = || model::manifest::FIELDS.iter().filter(|f| f.control == model::manifest::Control::Hard);
    let verify = |capture: &(Trace, Analysis)| area(capture, &[], Area::Verify);
    let mut silent = graphs(40);
    silent.0.manifest = Default::default();
    assert_eq!(verify(&silent), (Light::Unknown, Some(Next::Declare)));
    assert_eq!(verify(&stated(graphs(40), &[("model.name", "m")])), (Light::Red, Some(Next::Declare)));
    let all: Vec<(&str, &str)> = hard().map(|field| (field.key, "1")).collect();
    assert_eq!(verify(&stated(graphs(40), &all)), (Light::Amber, Some(Next::Repeat)));
    let most: Vec<(&str, &str)> = all.iter().copied().skip(1).chain([("measurement.repeats", "6")]).collect();
    assert_eq!(verify(&stated(graphs(40), &most)), (Light::Amber, Some(Next::Declare)));
    let done: Vec<(&str, &str)> = all.iter().copied().chain([("measurement.repeats", "6")]).collect();
    assert_eq!(verify(&stated(graphs(40), &done)), (Light::Green, None));
    assert_eq!(verify(&stated(graphs(12), &done)), (Light::Amber, Some(Next::Steps)));
}

#[test]
fn operator_coverage() {
    let covered = |capture: &(Trace, Analysis)| row(capture, None, Maturity::OperatorCoverage);
    assert_eq!(covered(&graphs(24)), (Light::Green, None));
    assert_eq!(covered(&nothing()), (Light::Unknown, Some(Next::Collect(EvidenceClass::Device))));
    let unnamed = Run::steps(24, |r, _| {
        r.launch("a_kernel_that_nobody_knows", us(60)).launch(GEMM, us(20)).token();
    });
    assert_eq!(covered(&unnamed), (Light::Amber, Some(Next::Patterns)));
    let falls_back = Run::steps(24, |r, _| {
        r.launch(GEMM, us(60));
        r.copy("cudaMemcpyAsync", us(5), "DtoH", "pinned", us(10)).wait();
        r.copy("cudaMemcpyAsync", us(5), "HtoD", "pinned", us(10));
        r.launch(GEMM, us(60)).token();
    });
    // Alone it has no finding that could say more.
    assert_eq!(covered(&falls_back), (Light::Red, Some(Next::Explain("OP-07"))));
}

#[test]
fn efficiency() {
    let roofline = |reached: f64| {
        let row =
            |reached| Row { what: Text::new("what", "项目"), run: Value::Ns(1), ceiling: Value::Ns(1), reached };
        let rows = [0.9, 0.8, reached].map(row).to_vec();
        Roofline { rank: 0, class: "decode".into(), rows, kernels: Vec::new(), noise: None }
    };
    let efficiency = |roofline: Option<&Roofline>| row(&graphs(24), roofline, Maturity::Efficiency);
    assert_eq!(efficiency(None), (Light::Unknown, Some(Next::Probe)));
    assert_eq!(efficiency(Some(&roofline(0.39))), (Light::Red, Some(Next::Roofline)));
    assert_eq!(efficiency(Some(&roofline(0.5))), (Light::Amber, Some(Next::Roofline)));
    assert_eq!(efficiency(Some(&roofline(0.6))), (Light::Green, None));
}

#[test]
fn ecosystem() {
    let ecosystem = |capture: &(Trace, Analysis)| row(capture, None, Maturity::Ecosystem);
    assert_eq!(ecosystem(&graphs(24)), (Light::Green, None));
    let mut errors = graphs(24);
    errors.0.stats.push(ImportStat { name: "x.error".into(), severity: Loss::Error, count: 1, example: None });
    assert_eq!(ecosystem(&errors), (Light::Amber, Some(Next::Losses)));
    let mut blind = graphs(24);
    blind.1.evidence = [EvidenceClass::Device].into_iter().collect();
    assert_eq!(ecosystem(&blind).0, Light::Red);
    blind.1.evidence = Default::default();
    assert_eq!(ecosystem(&blind).0, Light::Unknown);
}

#[test]
fn what_a_person_says_of_the_community_is_a_judgement() {
    let community = |said: &str| row(&stated(graphs(24), &[(COMMUNITY.key, said)]), None, Maturity::Community);
    assert_eq!(row(&graphs(24), None, Maturity::Community), (Light::Unknown, Some(Next::Judge)));
    assert_eq!(community("Good: documented per operator"), (Light::Green, None));
    assert_eq!(community("fair").0, Light::Amber);
    assert_eq!(community("poor, no answers").0, Light::Red);
    assert_eq!(community("goodish").0, Light::Unknown);
}

/// The category that host work of a step is recorded under says nothing of compilation.
#[test]
fn host_work_is_no_compilation() {
    let busy = Run::steps(40, |r, _| {
        r.work(Category::FrameworkOp, "aten::linear", us(10)).launch(GEMM, us(60)).token();
    });
    assert_eq!(area(&busy, &[], Area::CompileStability), (Light::Green, None));
}
