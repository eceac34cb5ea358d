#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, Provenance, TraceSink};

use super::{
    super::testing::{CONTIGUOUS, GEMM, NORM, Run, check, diagnosis, fires, us},
    runtime::graph,
};
use crate::{
    analysis::{Confidence, script::Script},
    diagnose::{Severity, VerdictLayer},
};

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
fn cp05_sees_launched_work_that_was_not_recorded() {
    let lost = |api: &'static str, silent: &dyn Fn(i64) -> bool| {
        let mut s = Script::default();
        for i in 0..40 {
            let at = i * us(100);
            match silent(i) {
                true => drop(s.issue(api, (at, at + us(5)))),
                false => drop(s.launch((at, at + us(5)), GEMM, (at + us(10), at + us(60)))),
            }
        }
        s.analyze()
    };
    let capture = |silent: &dyn Fn(i64) -> bool| lost("cudaLaunchKernel", silent);
    assert!(fires("CP-05", &capture(&|i| i % 4 == 1)));
    // A fill that the profiler leaves out is no kernel that is lost.
    assert!(!fires("CP-05", &lost("cudaMemsetAsync", &|i| i % 4 == 1)));
    assert!(!fires("CP-05", &capture(&|_| false)));
    // What is launched before the first record, or after the last, may lie outside the recording.
    assert!(!fires("CP-05", &capture(&|i| !(4..36).contains(&i))));
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
fn cp07_speaks_once_for_the_ranks_of_a_class() {
    let mut s = Script::default();
    for rank in 0..3 {
        s.rank(rank);
        for queue in [7, 8] {
            let end = if rank == 1 { us(95) } else { us(75) };
            s.kernel(queue, GEMM, (us(10), end), None, None);
        }
    }
    let found = check("CP-07", &s.analyze());
    let [one] = found.as_slice() else { panic!("{} findings", found.len()) };
    assert_eq!(one.ranks, [0, 1, 2]);
    assert!((one.trigger.value - 2.0).abs() < 0.3, "{}", one.trigger.value);
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

#[test]
fn cp04_speaks_once_for_all_ranks() {
    let two = || {
        let mut capture = graph(12, |r, _| {
            r.work(Category::Overhead, "Buffer Flush", us(30));
        });
        let other = graph(12, |r, _| {
            r.work(Category::Overhead, "Buffer Flush", us(30));
        });
        let mut rank = other.1.ranks.into_iter().next().unwrap();
        rank.rank = 1;
        capture.1.ranks.push(rank);
        capture
    };
    let found = check("CP-04", &two());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].ranks, [0, 1]);
}

#[test]
fn cp06_sees_a_clock_that_drifts_and_kernels_that_slow_down_alike() {
    let clock = |late: f64| {
        graph(30, move |r, i| {
            let at = r.host;
            r.script.device_counter("SM Clock", at, if i < 15 { 1980.0 } else { late });
        })
    };
    assert!(fires("CP-06", &clock(1800.0)));
    assert!(!fires("CP-06", &clock(1950.0)));
    // Three kernels; from step 23 on the last one takes `one` and the others `all` permille of their time.
    let kernels = |all: i64, one: i64| {
        Run::steps(30, move |r, i| {
            let (all, one) = if i < 23 { (1000, 1000) } else { (all, one) };
            r.graph(
                &[(GEMM, us(50) * all / 1000), (NORM, us(20) * all / 1000), (CONTIGUOUS, us(40) * one / 1000)],
                us(1),
            );
            r.token();
        })
    };
    assert!(fires("CP-06", &kernels(1080, 1080)));
    assert!(!fires("CP-06", &kernels(1010, 1010)), "within noise");
    assert!(!fires("CP-06", &kernels(1080, 1000)), "not alike");
}

#[test]
fn cp09_warns_of_other_stages() {
    let run = |every: usize| {
        let mut s = Script::default();
        for i in 0..24 {
            let at = i as i64 * us(100);
            let prefill = i % every == 3;
            let name =
                if prefill { "execute_context_1(64)_generation_4(4)" } else { "execute_context_0(0)_generation_4(4)" };
            s.host(Category::UserRange, name, (at, at + us(90)));
            s.launch((at + us(1), at + us(5)), GEMM, (at + us(10), at + us(95)));
        }
        s.analyze()
    };
    assert!(fires("CP-09", &run(4)));
    assert!(!fires("CP-09", &run(100)));
}

#[test]
fn cp10_takes_what_the_run_declares() {
    let run = |key: &'static str, value: &'static str| {
        graph(12, move |r, _| r.script.builder.manifest(key, value, Provenance::Declared))
    };
    assert!(fires("CP-10", &run("workload.prefix_cache_hit", "92 %")));
    assert!(fires("CP-10", &run("workload.routing", "Balanced")));
    assert!(!fires("CP-10", &run("workload.prefix_cache_hit", "0.1")));
    assert!(!fires("CP-10", &run("workload.routing", "model")));
    let d = super::super::testing::diagnosis(&graph(12, |_, _| {}));
    assert!(d.abstained.iter().any(|a| a.rule == "CP-10"));
}

/// A launch-bound run, while the machine was busy for so much of its time and the run's process had so much of it.
fn beside(busy: f64, own: f64) -> (model::Trace, crate::analysis::Analysis) {
    Run::steps(12, |r, _| {
        for _ in 0..20 {
            r.work(Category::FrameworkOp, "aten::linear", us(15)).launch(GEMM, us(4));
        }
        r.token();
        let now = r.host;
        r.script.device_counter("cpu_busy", now, busy).device_counter("cpu_own", now, own);
    })
}

#[test]
fn cp13_tells_of_a_machine_that_others_had_and_not_of_one_that_the_run_had() {
    assert!(fires("CP-13", &beside(0.9, 0.8)));
    assert!(!fires("CP-13", &beside(0.9, 0.87)));
    assert!(!fires("CP-13", &graph(12, |_, _| {})), "nobody looked");
}

#[test]
fn cp13_leaves_no_verdict_on_a_run_that_had_too_little_of_its_machine() {
    let starved = diagnosis(&beside(0.99, 0.3));
    assert_eq!((starved.verdict.layer, starved.verdict.because.as_slice()), (VerdictLayer::Undecided, &["CP-13"][..]));
    let found = |d: &crate::diagnose::Diagnosis| {
        let f = d.findings.iter().find(|f| f.rule == "RT-14").unwrap();
        (f.severity, f.confidence, f.competing.iter().any(|c| c.why.text.en.contains("CP-13")))
    };
    assert_eq!(found(&starved), (Severity::Low, Confidence::Low, true));
    // Others had as much, but cores were free.
    let beside_free_cores = diagnosis(&beside(0.7, 0.3));
    assert_eq!(beside_free_cores.verdict.layer, VerdictLayer::Runtime);
    assert!(found(&beside_free_cores).0 > Severity::Low);
}

#[test]
fn cp05_misses_the_work_of_replays_that_was_not_recorded() {
    // Of each replay one node is there: right after the launch, or long after it on an idle device.
    let replay = |late: i64| {
        Run::steps(12, move |r, _| {
            (0..8).for_each(|_| _ = r.launch(GEMM, us(10)));
            let call = (r.host, r.host + us(5));
            let at = r.device.max(call.1) + us(2) + late;
            r.script.graph(call, &[(GEMM, (at, at + us(100)))]);
            (r.host, r.device) = (call.1, at + us(100));
            r.token();
        })
    };
    let says = |capture: &_| {
        check("CP-05", capture)
            .iter()
            .any(|f| f.claim.render(crate::i18n::Lang::En, |v| format!("{v:?}")).contains("graph launches"))
    };
    assert!(says(&replay(us(6_000))));
    assert!(!says(&replay(0)));
}
