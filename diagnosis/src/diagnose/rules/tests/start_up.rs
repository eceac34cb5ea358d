//! What is said of a capture in which everything happens for the first time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::Category;

use super::{
    super::testing::{GEMM, NORM, diagnosis, fires, us},
    first_screen::text,
};
use crate::{
    analysis::script::Script,
    diagnose::{VerdictLayer, signals::first_use::FirstUses},
};

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

/// The gaps before launches held the pause of the first call, of which a warm step has none.
#[test]
fn a_start_up_promises_nothing_for_its_launches() {
    let run = |first: i64| {
        let mut s = Script::default();
        s.host(Category::UserRange, "ProfilerStep#1", (0, us(2_000 + first)));
        for i in 0..20 {
            let at = us(20 + 90 * i) + if i > 1 { us(first) } else { 0 };
            let called = if i == 1 { us(first) } else { 0 };
            s.launch(
                (at, at + us(5) + called),
                if i == 0 { NORM } else { GEMM },
                (at + called + us(8), at + called + us(20)),
            );
        }
        diagnosis(&s.analyze())
    };
    let bound = |d: &crate::diagnose::Diagnosis| {
        let found = d.findings.iter().find(|finding| finding.rule == "RT-14");
        found.map(|finding| finding.estimate.max_gain_share())
    };
    let warm = run(0);
    assert!(bound(&warm).unwrap() > 0.3, "{:?}", bound(&warm));
    let cold = run(100_000);
    assert!(text(&cold.verdict.headline).contains("start-up"), "{}", text(&cold.verdict.headline));
    assert!(bound(&cold).is_none_or(|gain| gain == 0.0), "{:?}", bound(&cold));
    assert!(cold.verdict.first.is_none(), "{:?}", cold.verdict.first);
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

/// A window of which two fifths were one first launch promised them as a gain of the operator around it.
#[test]
fn a_first_launch_that_is_part_of_a_window_is_said_and_not_promised() {
    let run = |first: i64| {
        let mut s = Script::default();
        for i in 0..40 {
            let (at, called) = (us(200 * i) + if i > 3 { us(first) } else { 0 }, if i == 3 { us(first) } else { 0 });
            s.host(Category::FrameworkOp, "aten::masked_fill_", (at, at + us(6) + called));
            let name = if i == 3 { NORM } else { GEMM };
            s.launch((at, at + us(5) + called), name, (at + called + us(8), at + called + us(190)));
        }
        diagnosis(&s.analyze())
    };
    let says = |d: &crate::diagnose::Diagnosis| {
        d.verdict.unjudged.iter().any(|doubt| text(&doubt.sentence).contains("the first of their kind"))
    };
    let cold = run(6_000);
    assert!(says(&cold), "{:?}", cold.verdict.unjudged);
    assert!(!cold.findings.iter().any(|finding| finding.rule == "RT-26"), "{:?}", cold.findings);
    assert!(!says(&run(0)));
}
