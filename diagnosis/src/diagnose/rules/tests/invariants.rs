//! What must hold of a report: a finding that breaks it loses its gain, and the report says which and why.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Ns, Trace};

use super::{
    super::testing::{diagnosis, us},
    runtime::{eager, graph},
};
use crate::{
    analysis::{Analysis, Edit, Layer},
    diagnose::{
        Diagnosis, Estimate, Finding, Law, Method, Severity, claims,
        estimate::Intervention,
        invariants::{self, enforce},
    },
};

/// A launch-bound run, and the finding that comes first in it.
fn launch_bound() -> ((Trace, Analysis), Finding) {
    let capture = eager(us(4));
    let Diagnosis { findings, breaches, .. } = diagnosis(&capture);
    assert!(breaches.is_empty(), "{breaches:?}");
    let first = findings.into_iter().find(|f| f.layer == Layer::Runtime && f.estimate.method == Method::Replay);
    (capture, first.expect("a launch-bound run has a finding that is replayed"))
}

/// What is said of a finding when its estimate is changed.
fn changed(change: impl FnOnce(&mut Finding)) -> (Finding, Option<Law>) {
    let (capture, mut finding) = launch_bound();
    change(&mut finding);
    let mut findings = vec![finding];
    let breaches = enforce(&mut findings, &capture.1);
    assert!(breaches.len() < 2 && breaches.iter().all(|b| b.rule == Some(findings[0].rule)));
    (findings.remove(0), breaches.first().map(|b| b.law))
}

fn to(low: impl FnOnce(Ns) -> Ns) -> impl FnOnce(&mut Finding) {
    |finding| finding.estimate.to_low = low(finding.estimate.from)
}

#[test]
fn what_holds_keeps_its_gain() {
    let (_, before) = launch_bound();
    let (after, law) = changed(|_| {});
    assert_eq!((after.estimate, after.severity, law), (before.estimate, before.severity, None));
    assert!(after.severity > Severity::Info);
}

#[test]
fn a_step_without_a_cost_that_is_longer_than_the_step_or_negative_is_withheld() {
    for low in [|from: Ns| from + 1, |_: Ns| -1] {
        let (finding, law) = changed(to(low));
        assert_eq!(law, Some(Law::ShorterWithout));
        assert_eq!(finding.estimate, Estimate::none(finding.estimate.from));
        assert_eq!(finding.severity, Severity::Info);
    }
    let (_, law) = changed(|finding| finding.estimate.to_high = finding.estimate.from + 1);
    assert_eq!(law, Some(Law::ShorterWithout));
}

#[test]
fn a_gain_of_another_step_is_withheld() {
    let (_, law) = changed(|finding| finding.estimate.from += us(7));
    assert_eq!(law, Some(Law::OneBase));
}

#[test]
fn a_gain_of_more_than_the_change_concerns_is_withheld() {
    // One kernel of 4 µs of each step and the few µs before it: most of the step cannot go with them.
    let one = |finding: &mut Finding| {
        finding.changes[0].1 =
            Intervention { removes: us(4), layer: Layer::Runtime, edits: vec![Edit::Remove(vec![3])] };
    };
    let (_, law) = changed(one);
    assert_eq!(law, Some(Law::GainWithinClaim));
}

#[test]
fn a_bound_above_the_time_of_its_layer_is_withheld() {
    // The device waits for about 17 of 23 µs: a bound of the runtime that takes all of the step has more than its layer.
    let bound = |low: fn(Ns) -> Ns| {
        changed(|finding| {
            let from = finding.estimate.from;
            finding.changes[0].1 = Intervention { removes: from, layer: Layer::Runtime, edits: Vec::new() };
            finding.estimate = Estimate { from, to_low: low(from), to_high: from, method: Method::Bound };
        })
    };
    assert_eq!(bound(|_| 0).1, Some(Law::GainWithinLayer));
    assert_eq!(bound(|from| from / 2).1, None);
}

#[test]
fn a_layer_without_time_has_none_on_the_critical_path() {
    let capture = eager(us(4));
    let mut counterfactual = diagnosis(&capture).counterfactual;
    assert!(invariants::examine(&capture.1, &counterfactual).is_empty());
    let path = &mut counterfactual.paths[0];
    let comm = path.layers.iter_mut().find(|(layer, _)| *layer == Layer::Communication);
    match comm {
        Some((_, ns)) => *ns = us(3),
        None => path.layers.push((Layer::Communication, us(3))),
    }
    let breaches = invariants::examine(&capture.1, &counterfactual);
    assert_eq!(breaches.iter().map(|b| b.law).collect::<Vec<_>>(), [Law::PathWithinTable]);
}

#[test]
fn each_nanosecond_has_one_first_claimant() {
    let (capture, finding) = launch_bound();
    let mut twice = vec![finding.clone(), Finding { rule: "RT-01", ..finding.clone() }];
    let explained = claims::settle(&mut twice, &capture.1);
    assert!(twice[0].explains > 0 && twice[0].same_time_as.is_none());
    assert_eq!((twice[1].explains, twice[1].same_time_as), (0, Some(twice[0].rule)));
    let runtime = explained.iter().find(|e| e.layer == Layer::Runtime).unwrap().share;
    assert!((0.5..=1.0).contains(&runtime), "{runtime}");
    // Nothing is explained twice, nor where nothing is claimed.
    let mut once = vec![finding];
    assert_eq!(claims::settle(&mut once, &capture.1).iter().map(|e| e.share).collect::<Vec<_>>(), {
        explained.iter().map(|e| e.share).collect::<Vec<_>>()
    });
    assert!(claims::settle(&mut [], &graph(12, |_, _| {}).1).iter().all(|e| e.share == 0.0));
}
