//! What the first screen says beside the findings: work around a lone step, first uses, rates that nobody judged.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, ImportStat, Severity, TraceSink};

use super::super::testing::{GEMM, NORM, Run, check, diagnosis, fires, us};
use crate::{
    analysis::script::Script,
    diagnose::{Diagnosis, VerdictLayer, signals::first_use::FirstUses},
    i18n::{Lang, Message, Value},
};

fn text(message: &Message) -> String {
    message.render(Lang::En, |value| match value {
        Value::Raw(raw) => raw.clone(),
        Value::Message(inner) => text(inner),
        Value::Text(words) => words.en.to_owned(),
        Value::Ns(ns) => format!("{ns} ns"),
        _ => "x".to_owned(),
    })
}

fn unjudged(diagnosis: &Diagnosis) -> Vec<String> {
    diagnosis.verdict.unjudged.iter().map(|doubt| text(&doubt.sentence)).collect()
}

/// One marked step: the host prepares inside `preprocess`, then launches ten products; `more` adds another such step.
fn prepared(more: bool) -> Diagnosis {
    let mut s = Script::default();
    for (n, t) in [(1, 0), (2, us(60_000))].into_iter().take(if more { 2 } else { 1 }) {
        s.host(Category::UserRange, &format!("ProfilerStep#{n}"), (t, t + us(52_000)));
        s.host(Category::PythonFrame, "video.py(7): preprocess", (t + us(10), t + us(40_000)));
        for i in 0..10 {
            let at = t + us(41_000 + i * 1_000);
            s.launch((at, at + us(5)), GEMM, (at + us(10), at + us(1_000)));
        }
    }
    diagnosis(&s.analyze())
}

#[test]
fn host_work_before_the_only_step_is_said_with_its_owner() {
    let one = prepared(false);
    let headline = text(&one.verdict.headline);
    assert!(headline.contains("its mark lasts 52000000 ns: for 42010000 ns of it only the host works"), "{headline}");
    let doubts = unjudged(&one);
    assert!(
        doubts.iter().any(|d| d.contains("the 41010000 ns in which only") && d.contains("preprocess")),
        "{doubts:?}"
    );
    let two = prepared(true);
    assert!(!text(&two.verdict.headline).contains("only the host works"), "a step before holds it");
}

#[test]
fn work_that_was_not_recorded_is_no_host_work_before_the_step() {
    let mut s = Script::default();
    s.host(Category::UserRange, "ProfilerStep#1", (0, us(50_000)));
    // The kernel was launched at once, and starts only when what ran before it ends.
    s.launch((us(10), us(15)), GEMM, (us(30_000), us(40_000)));
    s.launch((us(20), us(25)), GEMM, (us(40_000), us(50_000)));
    let d = diagnosis(&s.analyze());
    assert!(!text(&d.verdict.headline).contains("only the host works"), "{}", text(&d.verdict.headline));
}

#[test]
fn a_first_pass_that_makes_the_context_and_loads_kernels_is_a_start_up_and_no_allocator_stall() {
    let run = |again: bool| {
        let mut s = Script::default();
        s.launch((0, us(5)), NORM, (us(10), us(50)));
        if again {
            s.call("cudaFree", (us(52), us(62)));
            s.launch((us(64), us(69)), NORM, (us(72), us(90)));
        }
        s.call("cudaFree", (us(100), us(600_100)));
        s.launch((us(600_200), us(900_200)), GEMM, (us(900_210), us(900_900)));
        s.launch((us(900_300), us(900_305)), GEMM, (us(900_900), us(901_900)));
        s.analyze()
    };
    let first = run(false);
    let d = diagnosis(&first);
    assert!(text(&d.verdict.headline).contains("first of their kind"), "{}", text(&d.verdict.headline));
    assert_eq!(d.verdict.layer, VerdictLayer::Undecided);
    assert!(!fires("RT-10", &first));
    assert!(d.findings.iter().all(|finding| finding.rule != "RT-26"));
    assert!(fires("RT-10", &run(true)), "a later call makes no context");
}

#[test]
fn steps_that_allocate_and_free_all_the_time_have_no_cache() {
    let run = |frees: usize| {
        Run::steps(6, move |r, _| {
            for i in 0..10 {
                r.call("cudaMalloc", us(300)).launch(GEMM, us(100));
                if i < frees {
                    r.call("cudaFree", us(300));
                }
            }
            r.token();
        })
    };
    let uncached = check("RT-10", &run(10));
    assert!(text(&uncached[0].claim).contains("the framework's cache is off"), "{}", text(&uncached[0].claim));
    let advice = |f: &crate::diagnose::Finding| f.remedy.iter().map(|r| r.text_en.clone()).collect::<String>();
    assert!(advice(&uncached[0]).contains("NO_CUDA_MEMORY_CACHING") && !advice(&uncached[0]).contains("expandable"));
    let growing = check("RT-10", &run(0));
    assert!(!text(&growing[0].claim).contains("cache is off"));
    assert!(advice(&growing[0]).contains("expandable") && !advice(&growing[0]).contains("NO_CUDA_MEMORY_CACHING"));
}

#[test]
fn where_no_step_is_marked_nothing_is_said_per_step() {
    let mut s = Script::default();
    s.launch((0, us(5)), NORM, (us(10), us(50)));
    for i in 0..4 {
        let at = us(100 + i * 1_000);
        s.call("cudaMalloc", (at, at + us(600)));
        s.launch((at + us(610), at + us(615)), GEMM, (at + us(620), at + us(900)));
    }
    let d = diagnosis(&s.analyze());
    let alloc = d.findings.iter().find(|finding| finding.rule == "RT-10").unwrap();
    let said = alloc.evidence.iter().map(|fact| text(&fact.what)).collect::<String>() + &text(&alloc.claim);
    assert!(!said.contains("per step"), "{said}");
    let marked = check(
        "RT-10",
        &Run::steps(6, |r, _| {
            r.call("cudaMalloc", us(300)).launch(GEMM, us(100)).token();
        }),
    );
    assert!(text(&marked[0].claim).contains("per step on average"));
}

#[test]
fn copies_that_fill_the_step_are_asked_about() {
    let d = diagnosis(&Run::steps(8, |r, _| {
        r.copy("cudaMemcpyAsync", us(5), "HtoD", "pinned", us(2_000)).launch(GEMM, us(100)).token();
    }));
    assert!(unjudged(&d).iter().any(|doubt| doubt.contains("copies between host and device")), "{:?}", unjudged(&d));
}

#[test]
fn kernels_of_counter_passes_are_no_run_and_nothing_is_asked_about_the_time_between_them() {
    let run = |stat: Option<(&'static str, u64)>| {
        let mut s = Script::default();
        for i in 0..4 {
            s.kernel(1, GEMM, (us(1_000 * i), us(1_000 * i + 10)), None, None);
        }
        if let Some((name, count)) = stat {
            s.builder.stat(name, Severity::DataLoss, count, None);
        }
        diagnosis(&s.analyze())
    };
    let alone = run(Some((ImportStat::RUN_ALONE, 4)));
    assert!(text(&alone.verdict.headline).contains("ran one after the other"), "{}", text(&alone.verdict.headline));
    assert!(alone.verdict.place.is_none() && alone.verdict.unjudged.is_empty());
    let holes = run(Some((ImportStat::MISSING_KERNELS, 100)));
    assert!(unjudged(&holes)[0].contains("have holes"), "{:?}", unjudged(&holes));
    let usual = run(None);
    assert!(usual.verdict.place.is_some() && unjudged(&usual)[0].contains("record the host's calls"));
}

#[test]
fn first_calls_at_the_same_time_are_counted_once() {
    let mut s = Script::default();
    s.launch((0, us(5)), NORM, (us(10), us(50)));
    s.launch((us(100), us(900_100)), GEMM, (us(900_110), us(900_900)));
    s.launch((us(100), us(900_050)), "ampere_sgemm_128x64_tn", (us(900_900), us(901_900)));
    let (_, analysis) = s.analyze();
    let rank = &analysis.ranks[0];
    let class = rank.main_class().unwrap();
    let first = FirstUses::of(rank, class);
    assert_eq!(first.calls.len(), 2);
    assert!(first.all_idle(rank, class) <= class.total);
}
