#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, Provenance, TraceSink};

use super::{
    super::testing::{GEMM, Run, check, fires, us},
    runtime::graph,
};
use crate::{analysis::script::Script, diagnose::Severity};

#[test]
fn cp04_takes_recorded_overhead_or_a_ratio() {
    let overhead = graph(12, |r, _| {
        r.work(Category::Overhead, "Buffer Flush", us(30));
    });
    assert!(fires("CP-04", &overhead));
    assert!(!fires("CP-04", &graph(12, |_, _| {})));
    let ratio = |value: &'static str| {
        graph(12, move |r, _| r.script.builder.manifest("measurement.inflation", value, Provenance::Observed))
    };
    assert!(fires("CP-04", &ratio("1.4")));
    assert!(!fires("CP-04", &ratio("1.01")));
    assert!(!fires("CP-04", &ratio("NaN")));
    assert!(check("CP-04", &ratio("1.4")).iter().all(|f| f.severity == Severity::Info));
}

#[test]
fn cp05_sees_work_before_its_launch() {
    let capture = |kernel: i64| {
        let mut s = Script::default();
        for i in 0..8 {
            let at = i * us(100);
            s.launch((at + us(20), at + us(25)), GEMM, (at + kernel, at + us(90)));
        }
        s.analyze()
    };
    assert!(fires("CP-05", &capture(us(10))));
    assert!(!fires("CP-05", &capture(us(30))));
}

#[test]
fn cp05_sees_durations_that_hold_the_gaps() {
    let replay = |gap: i64| {
        Run::steps(12, move |r, _| {
            r.graph(&[(GEMM, us(5)); 60], gap).token();
        })
    };
    assert!(fires("CP-05", &replay(0)));
    assert!(!fires("CP-05", &replay(us(1))));
}

#[test]
fn cp07_sees_a_sum_above_the_wall() {
    let queues = |second: i64| {
        let mut s = Script::default();
        for i in 0..8 {
            let at = i * us(100);
            s.launch((at, at + us(5)), GEMM, (at + us(10), at + us(95)));
            s.launch_on(second, (at + us(5), at + us(8)), GEMM, (at + us(12), at + us(95)));
        }
        s.analyze()
    };
    assert!(fires("CP-07", &queues(8)));
    let mut s = Script::default();
    s.launch((0, us(5)), GEMM, (us(10), us(95)));
    assert!(!fires("CP-07", &s.analyze()));
}

#[test]
fn cp08_needs_a_fifth_of_the_time_unexplained() {
    let unlinked = |kernel: i64| {
        let mut s = Script::default();
        for i in 0..8 {
            let at = i * us(100);
            s.kernel(7, GEMM, (at, at + kernel), None, None);
        }
        s.analyze()
    };
    assert!(fires("CP-08", &unlinked(us(50))));
    assert!(!fires("CP-08", &unlinked(us(95))));
}
