//! Whether a difference is a regression: what a build pipeline asks. It fails for what is slower, as a whole or in a slot, and for
//! what cannot be compared or judged, each by a word of its own.

use std::collections::BTreeMap;

use diagnosis::{
    compare::{
        contract::{MAIN, Verdict},
        statistics::Outcome,
    },
    diagnose::Severity,
};
use model::Ns;

use super::DiffReport;

/// Share of the step below which one launch of each side shows no regression: what launches of one run differ by (own value; the
/// gate of nsys-ai has the same).
pub const SINGLE: f64 = 0.02;

/// How a comparison ends for a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// Nothing is slower than is accepted.
    Pass,
    /// B is slower.
    Slower,
    /// The two may not be compared.
    Refused,
    /// They may, and there is nothing that counts on both sides.
    Unjudged,
}

impl Ends {
    /// Word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Slower => "slower",
            Self::Refused => "refused",
            Self::Unjudged => "cannot be judged",
        }
    }
}

/// What was accepted before: an earlier comparison of the same two kinds of machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accepted {
    /// How much slower B may be, as a share of A.
    pub share: f64,
    /// Differences of slots and buckets, ns.
    pub terms: BTreeMap<String, Ns>,
    /// Devices of A and B, and the model, as far as the earlier comparison knew them.
    pub identity: [Option<String>; 3],
}

/// The gate with what it decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// How it ends.
    pub ends: Ends,
    /// The least severity that fails.
    pub limit: Severity,
    /// How much slower B is, as a share of A; `None` where nobody can say.
    pub slowdown: Option<f64>,
    /// How much of that was accepted before.
    pub accepted: f64,
    /// Slots and buckets that are slower than accepted by as much as fails, ns, the largest first.
    pub slower: Vec<(String, Ns)>,
}

impl Gate {
    /// Judges a comparison.
    pub fn of(report: &DiffReport, limit: Severity, accepted: &Accepted) -> Self {
        let slowdown = report.slowdown();
        let fails =
            |share: f64| Severity::of(share) >= limit && (report.outcome() != Outcome::Unknown || share >= SINGLE);
        let mut slower = Vec::new();
        // Only what was accepted slot by slot can hide a new regression behind an old one that is gone.
        if let (Some(difference), false) = (report.difference.as_ref(), accepted.terms.is_empty()) {
            let from = difference.waterfall.from.max(1) as f64;
            for term in &difference.terms {
                let more = term.delta().saturating_sub(accepted.terms.get(&term.name).copied().unwrap_or(0));
                if fails(more as f64 / from) {
                    slower.push((term.name.clone(), more));
                }
            }
            slower.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        }
        let ends = match slowdown {
            _ if report.contract.of(MAIN) == Verdict::NotComparable => Ends::Refused,
            None => Ends::Unjudged,
            Some(share) if fails(share - accepted.share) || !slower.is_empty() => Ends::Slower,
            Some(_) => Ends::Pass,
        };
        Self { ends, limit, slowdown, accepted: accepted.share, slower }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::diff::Head;
    use diagnosis::{
        analysis::{Analysis, script::Script},
        compare::{Difference, contract::Contract, terms::How},
    };
    use model::{Category, Trace};

    /// Six decode steps of two products and a norm; the products take so long.
    fn run(products: [i64; 2]) -> (Trace, Analysis) {
        let mut script = Script::default();
        let mut at = 1_000;
        for _ in 0..6 {
            let from = at;
            for (name, ns) in
                [("first_gemm_kernel", products[0]), ("rms_norm_kernel", 100), ("second_gemm_kernel", products[1])]
            {
                script.launch((at, at + 10), name, (at + 20, at + 20 + ns));
                at += 30 + ns;
            }
            script.host(Category::UserRange, "execute_context_0(0)_generation_1(1)", (from - 5, at - 5));
        }
        script.analyze()
    }

    fn compared(a: [i64; 2], b: [i64; 2]) -> DiffReport {
        let (a, b) = (run(a), run(b));
        let contract = Contract { controls: Vec::new(), reasons: Vec::new(), work: None };
        let difference = || Difference::of((&a.0, &a.1), (&b.0, &b.1), false);
        let statistics = |d: &Difference| diagnosis::compare::Statistics::of(d, [&[(&a.0, &a.1)], &[(&b.0, &b.1)]]);
        DiffReport::build([Head::default(), Head::default()], contract, false, difference, statistics, || {
            panic!("refused")
        })
    }

    /// D8: two slots of one operator that go opposite ways cancelled, and the largest was named nowhere.
    #[test]
    fn d8_no_sum_of_opposite_signs_hides_the_largest_slot() {
        let report = compared([1_000, 9_000], [8_000, 2_500]);
        let terms = &report.difference.as_ref().unwrap().terms;
        let deltas: Vec<Ns> = terms.iter().take(2).map(|term| term.delta()).collect();
        assert_eq!(deltas, [7_000, -6_500]);
        assert!(terms.iter().take(2).all(|term| term.how == How::SameKernel && term.sides[0].calls == 1.0));
        assert_eq!(terms.iter().map(|term| term.delta()).sum::<Ns>(), report.difference.unwrap().waterfall.delta());
    }

    /// One kernel that takes twice as long in two places was told as two facts.
    #[test]
    fn a_kernel_that_changed_alike_in_several_places_is_one_term() {
        let both = |names: [&str; 2], ns: i64| {
            let mut script = Script::default();
            let mut at = 1_000;
            for _ in 0..6 {
                let from = at;
                for (name, ns) in [(names[0], ns), ("rms_norm_kernel", 100), (names[1], ns / 2)] {
                    script.launch((at, at + 10), name, (at + 20, at + 20 + ns));
                    at += 30 + ns;
                }
                script.host(Category::UserRange, "execute_context_0(0)_generation_1(1)", (from - 5, at - 5));
            }
            script.analyze()
        };
        let terms = |names: [&str; 2], [a, b]: [i64; 2]| {
            let (a, b) = (both(names, a), both(names, b));
            let terms = Difference::of((&a.0, &a.1), (&b.0, &b.1), false).unwrap().terms;
            terms.iter().filter(|t| t.delta() != 0).map(|t| (t.delta(), t.slots.len())).collect::<Vec<_>>()
        };
        assert_eq!(terms(["one_gemm_kernel"; 2], [1_000, 2_000]), [(1_500, 2)]);
        assert_eq!(terms(["one_gemm_kernel"; 2], [2_000, 1_000]), [(-1_500, 2)]);
        assert_eq!(terms(["one_gemm_kernel", "other_gemm_kernel"], [1_000, 2_000]), [(1_000, 1), (500, 1)]);
    }

    /// Which terms are one hung on the side that is called first, and their name was that of another term.
    #[test]
    fn joined_terms_are_the_same_either_way_round_and_have_names_of_their_own() {
        let script = |times: [i64; 3]| {
            let mut script = Script::default();
            let mut at = 1_000;
            for _ in 0..6 {
                let from = at;
                for ns in times {
                    script.launch((at, at + 10), "one_gemm_kernel", (at + 20, at + 20 + ns));
                    script.launch((at + 10, at + 15), "rms_norm_kernel", (at + 30 + ns, at + 130 + ns));
                    at += 150 + ns;
                }
                script.host(Category::UserRange, "execute_context_0(0)_generation_1(1)", (from - 5, at - 5));
            }
            script.analyze()
        };
        for (a, b) in [([1_000, 100, 500], [1_300, 170, 500]), ([800, 600, 400], [400, 310, 900])] {
            let (a, b) = (script(a), script(b));
            let told = |a: &(Trace, Analysis), b: &(Trace, Analysis)| {
                let terms = Difference::of((&a.0, &a.1), (&b.0, &b.1), false).unwrap().terms;
                let mut told: Vec<(String, Ns)> = terms.iter().map(|t| (t.name.clone(), t.delta())).collect();
                told.sort();
                told
            };
            let (there, back) = (told(&a, &b), told(&b, &a));
            let negated: Vec<(String, Ns)> = back.into_iter().map(|(name, ns)| (name, -ns)).collect();
            assert_eq!(there, negated);
            assert!(there.windows(2).all(|two| two[0].0 != two[1].0), "{there:?}");
        }
    }

    /// D10: a baseline was one ratio, so that a regression passed where another one had gone.
    #[test]
    fn d10_an_accepted_slot_hides_no_other() {
        let old = compared([1_000, 9_000], [2_000, 9_000]);
        let terms = old.difference.as_ref().unwrap();
        let accepted = Accepted {
            share: old.slowdown().unwrap(),
            terms: terms.terms.iter().map(|term| (term.name.clone(), term.delta())).collect(),
            identity: Default::default(),
        };
        assert_eq!(Gate::of(&old, Severity::Low, &accepted).ends, Ends::Pass);
        let new = compared([1_000, 9_000], [1_000, 10_000]);
        let gate = Gate::of(&new, Severity::Low, &accepted);
        assert_eq!(gate.ends, Ends::Slower);
        assert_eq!(gate.slower.first().map(|(_, ns)| *ns), Some(1_000));
    }

    /// D10: one launch of each side failed at 1 %.
    #[test]
    fn d10_one_launch_of_each_shows_no_regression_below_two_percent() {
        let report = compared([1_000, 9_000], [1_000, 9_150]);
        assert_eq!(Gate::of(&report, Severity::Low, &Accepted::default()).ends, Ends::Pass);
        let report = compared([1_000, 9_000], [1_000, 9_300]);
        assert_eq!(Gate::of(&report, Severity::Low, &Accepted::default()).ends, Ends::Slower);
    }
}
