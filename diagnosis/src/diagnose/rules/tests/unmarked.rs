#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::super::testing::{GEMM, diagnosis, fires, us};
use crate::{analysis::script::Script, i18n::Lang};

/// A solver waited for the device behind nearly every kernel, and was called launch-bound: without marks nothing was said of waits.
#[test]
fn rt09_speaks_of_waits_behind_every_launch_where_nothing_marks_a_step() {
    let solver = |every: i64| {
        let mut s = Script::default();
        for i in 0..200 {
            let t = i * us(60);
            s.launch((t, t + us(5)), "void solve(float*)", (t + us(7), t + us(40)));
            if i % every == 0 {
                s.call("cudaDeviceSynchronize", (t + us(6), t + us(43)));
            }
        }
        s.analyze()
    };
    let often = diagnosis(&solver(1));
    let rules: Vec<&str> = often.findings.iter().map(|f| f.rule).collect();
    assert!(rules.contains(&"RT-09") && !rules.contains(&"RT-14"), "{rules:?}");
    let said = often.findings[0].claim.render(Lang::En, |value| format!("{value:?}"));
    assert!(said.contains("about as often as it launches"), "{said}");
    let rare = diagnosis(&solver(25));
    assert!(rare.findings.iter().all(|f| f.rule != "RT-09"));
    assert!(rare.abstained.iter().any(|a| a.rule == "RT-09"), "a wait now and then may end a step");
}

/// Four launches of one kernel were promised to take a tenth of the time from a graph.
#[test]
fn rt14_does_not_judge_a_few_launches_that_nothing_marks() {
    let of = |launches: i64| {
        let mut s = Script::default();
        for i in 0..launches {
            s.launch((i * us(40), i * us(40) + us(5)), GEMM, (i * us(40) + us(8), i * us(40) + us(12)));
        }
        fires("RT-14", &s.analyze())
    };
    assert!(of(40) && !of(4));
}

/// The longest copy of a program, of which its profiler kept no size, passed for the readback of a token.
#[test]
fn rt11_counts_a_long_copy_of_unknown_size() {
    let of = |back: i64| {
        let mut s = Script::default();
        s.launch((0, us(5)), GEMM, (us(10), us(2_000)));
        s.copy("hipMemcpy", (us(20), us(2_010) + back), "DtoH", "unknown", 0, (us(2_005), us(2_005) + back));
        s.launch((us(2_020) + back, us(2_025) + back), GEMM, (us(2_030) + back, us(4_000) + back));
        fires("RT-11", &s.analyze())
    };
    assert!(of(us(5_000)) && !of(us(100)));
}
