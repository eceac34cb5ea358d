//! Launch calls whose clock or nesting misleads.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::{Analysis, Bucket, script::Script};

const GEMM: &str = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64";

#[test]
fn idle_time_is_explained_on_the_device_s_clock_where_that_lags() {
    // Each kernel starts 5 ns after its launch returned, on a clock that lags by 75 ns: the launch seems to come after it.
    let run = |lag: i64| {
        let mut s = Script::default();
        for i in 0..10 {
            let at = 1_000 * i;
            s.launch((at, at + 10), GEMM, (at + 15 - lag, at + 515 - lag));
        }
        s.analyze().1
    };
    let (true_clock, lagging) = (run(0), run(75));
    assert_eq!((true_clock.integrity.lag, true_clock.integrity.before_launch), (0, 0));
    // 60 ns is the least lag after which no kernel starts before its launch.
    assert_eq!((lagging.integrity.lag, lagging.integrity.before_launch), (60, 10));
    let unattributed = |a: &Analysis| -> i64 {
        let buckets = a.ranks[0].steps.iter().flat_map(|step| &step.buckets);
        buckets.filter(|(bucket, _)| *bucket == Bucket::Unattributed).map(|(_, ns)| ns).sum()
    };
    assert_eq!((unattributed(&true_clock), unattributed(&lagging)), (0, 0));
}

#[test]
fn a_launch_inside_a_launch_is_no_lost_operation() {
    let mut s = Script::default();
    for i in 0..4 {
        let at = 1_000 * i;
        s.launch((at, at + 100), GEMM, (at + 150, at + 500));
        s.call("cuLaunchKernel", (at + 10, at + 90));
    }
    assert_eq!(s.analyze().1.integrity.unrecorded, 0);
    let mut s = Script::default();
    for i in 0..4 {
        let at = 1_000 * i;
        s.launch((at, at + 100), GEMM, (at + 150, at + 500));
        s.call("cuLaunchKernel", (at + 110, at + 190));
    }
    assert_eq!(s.analyze().1.integrity.unrecorded, 3, "between the first and the last recorded launch");
}
