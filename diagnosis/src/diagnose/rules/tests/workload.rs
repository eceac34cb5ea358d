//! What must not change the cause that is named: requests that join and leave, a run that is repeated, names of streams, and
//! clocks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Ns, Trace, TrackKind};

use super::super::testing::{GEMM, NORM, Run, diagnosis, us};
use crate::{
    analysis::{Analysis, Options, analyze},
    diagnose::{Diagnosis, Severity},
    platform::Packs,
};

/// What a step has more than its work.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    Pauses,
    Captures,
    Compiles,
    Allocates,
    Prepares,
}

const FAULTS: [Fault; 6] =
    [Fault::None, Fault::Pauses, Fault::Captures, Fault::Compiles, Fault::Allocates, Fault::Prepares];

impl Fault {
    /// The rule that names it.
    fn rule(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Pauses => Some("RT-15"),
            Self::Captures => Some("RT-06"),
            Self::Compiles => Some("RT-05"),
            Self::Allocates => Some("RT-10"),
            Self::Prepares => Some("RT-08"),
        }
    }

    fn write(self, r: &mut Run, i: usize) {
        let now_and_then = i % 8 == 5;
        match self {
            Self::Pauses if now_and_then => _ = r.think(us(4_000)),
            Self::Captures if now_and_then => {
                r.call("cudaStreamBeginCapture", us(2)).think(us(3_000)).call("cudaStreamEndCapture", us(2));
            }
            Self::Compiles if now_and_then => _ = r.call("cuModuleLoadData", us(3_000)),
            Self::Allocates if now_and_then => _ = r.call("cudaMalloc", us(3_000)),
            Self::Prepares => _ = r.think(us(400)),
            _ => {}
        }
    }
}

/// Steps of as many sequences as `batch` says, in graphs whose rows are padded to the next eight; time grows with both.
fn serve(fault: Fault, steps: usize, batch: impl Fn(usize) -> u32) -> (Trace, Analysis) {
    Run::batches(steps, |r, i| {
        let batch = batch(i);
        let padded = Ns::from(batch.div_ceil(8) * 8);
        fault.write(r, i);
        let layer = [(GEMM, us(90) + us(padded) / 4), (NORM, us(5)), (GEMM, us(90) + us(Ns::from(batch)) / 8)];
        r.graph(&layer.repeat(10), us(1)).token();
        batch
    })
}

/// Requests that join and leave one by one.
fn churning(i: usize) -> u32 {
    [32, 32, 33, 32, 31, 31, 30, 31, 33, 34, 34, 33, 35, 36, 35, 34, 34, 33][i % 18]
}

/// The first finding that counts: its rule, and the ends of what it would gain.
fn first(d: &Diagnosis) -> Option<(&'static str, [f64; 2])> {
    let f = d.findings.iter().find(|f| f.severity >= Severity::Low)?;
    Some((f.rule, [f.estimate.least_gain_share(), f.estimate.max_gain_share()]))
}

fn same(a: &Diagnosis, b: &Diagnosis, what: &str) {
    let (a, b) = (first(a), first(b));
    assert_eq!(a.map(|(rule, _)| rule), b.map(|(rule, _)| rule), "{what}");
    for (x, y) in a.into_iter().zip(b).flat_map(|(a, b)| a.1.into_iter().zip(b.1)) {
        assert!((x - y).abs() < 0.02, "{what}: {a:?} {b:?}");
    }
}

#[test]
fn churn_of_the_batch_hides_no_cause_and_makes_none() {
    for fault in FAULTS {
        let (fixed, churn) = (diagnosis(&serve(fault, 48, |_| 33)), diagnosis(&serve(fault, 48, churning)));
        assert_eq!(first(&churn).map(|(rule, _)| rule), fault.rule(), "{fault:?}");
        same(&fixed, &churn, &format!("{fault:?}"));
        let loud = |d: &Diagnosis| d.findings.iter().filter(|f| f.severity >= Severity::Medium).count();
        assert_eq!(loud(&churn), usize::from(fault != Fault::None), "{fault:?}");
    }
}

#[test]
fn steps_whose_batch_churns_are_one_class_and_those_of_a_sweep_are_several() {
    let keys = |batch: fn(usize) -> u32| -> Vec<String> {
        serve(Fault::None, 60, batch).1.ranks[0].classes.iter().map(|class| class.key.clone()).collect()
    };
    assert_eq!(keys(churning), ["decode b=30…36 graph=full"]);
    assert_eq!(keys(|i| 8 << (i / 20)).len(), 3, "held for long, and far from each other");
    assert_eq!(keys(|i| 30 + i as u32 / 20).len(), 3, "held for long");
    assert_eq!(keys(|i| 30 + i as u32 / 5).len(), 1, "a batch that drains");
}

#[test]
fn a_run_that_is_repeated_has_the_same_cause() {
    for fault in FAULTS {
        let (once, often) = (serve(fault, 72, churning), serve(fault, 5 * 72, churning));
        same(&diagnosis(&once), &diagnosis(&often), &format!("{fault:?}"));
    }
}

fn changed(trace: &Trace, change: impl Fn(&mut Trace)) -> Diagnosis {
    let mut trace = trace.clone();
    change(&mut trace);
    let analysis = analyze(&trace, &Packs::embedded().unwrap(), &Options::default());
    diagnosis(&(trace, analysis))
}

#[test]
fn names_of_streams_and_shifted_clocks_change_nothing() {
    for fault in FAULTS {
        let capture = serve(fault, 48, churning);
        let as_recorded = diagnosis(&capture);
        let renamed = changed(&capture.0, |trace| {
            let queues = trace.tracks.iter_mut().filter(|track| track.key.kind == TrackKind::DeviceQueue);
            queues.for_each(|track| track.key.id += 1_000);
        });
        let shifted = changed(&capture.0, |trace| {
            trace.lanes.iter_mut().flat_map(|lane| &mut lane.start).for_each(|start| *start += 1_000_000_000_007);
        });
        for other in [renamed, shifted] {
            assert_eq!(first(&as_recorded), first(&other), "{fault:?}");
        }
    }
}
