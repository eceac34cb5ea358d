//! From attributed steps to findings: which rule fires, what it would gain, what speaks against it.
//!
//! A rule is one file in [`rules`] and one line in its registry. Findings are ranked by estimated gain; rules that lack
//! evidence abstain and name what to collect.

pub mod catalogue;
mod claims;
pub mod costs;
pub mod coverage;
pub mod estimate;
pub mod finding;
pub mod gain;
pub mod invariants;
pub mod kernel_sums;
pub mod level;
pub mod limits;
pub mod lost;
mod named;
pub mod ranking;
pub mod readiness;
pub mod relations;
pub mod roofline;
pub mod rule;
pub mod rules;
mod signals;
pub mod state;
mod stretch;
mod sums;
mod twins;
pub mod verdict;

use std::cell::OnceCell;

use model::Trace;

pub use estimate::{Estimate, Intervention, Method};
pub use finding::{Abstention, Competing, Evidence, Finding, Limits, Over, Severity, Trigger};
pub use gain::{Counterfactual, Interaction, Joint, RankCheck};
pub use invariants::{Breach, Law};
pub use level::{Assessment, Condition, Level};
pub use readiness::Readiness;
pub use rule::{Context, Doc, Outcome, Rule};
pub use stretch::Stretch;
pub use verdict::{Explained, First, Place, Unjudged, Verdict, VerdictLayer};

use crate::{
    analysis::{Analysis, AnchorKind},
    i18n::{Message, Text},
    largest::Largest,
    platform::{Packs, Stage},
};

/// What was found in one capture.
#[derive(serde::Serialize)]
pub struct Diagnosis {
    /// Findings, the most important first; measurement rules (CP) keep their place at the end unless they gate.
    pub findings: Vec<Finding>,
    /// Rules that could not decide, with what they need.
    pub abstained: Vec<Abstention>,
    /// The answer in one sentence.
    pub verdict: Verdict,
    /// What takes the most time by name, and which of it no finding names.
    pub largest: Largest,
    /// The steps with the most time, held against what the device was measured to be able to do.
    pub roofline: Option<roofline::Roofline>,
    /// How far the operators of the steps with the most time are from what the device can do, and the least that such a step takes.
    pub limits: limits::Limits,
    /// How far the replay can be trusted, and what the first findings gain together.
    pub counterfactual: Counterfactual,
    /// How ready the platform is, as far as the capture shows it.
    pub readiness: Readiness,
    /// Sums over the run by operator, where the capture holds such sums; the largest first.
    pub kernel_sums: Vec<kernel_sums::OperatorSum>,
    /// How much of the time that is not useful the findings and doubts state.
    pub coverage: coverage::Coverage,
    /// What cannot be, and was withheld.
    pub breaches: Vec<Breach>,
}

/// Why a rule about steps abstains on a capture in which none was found.
const NO_STEPS: Text = Text::new(
    "nothing in the capture marks the steps; annotate them (the engine's own ranges, or a profiler step around each)",
    "采集中没有标记步的信息；请标注各步（引擎自带的区间，或在每步外包一层 profiler step）",
);

/// Why on a capture of training.
const TRAINING: Text =
    Text::new("the capture is of training, which has no inference step", "该采集为训练，其中没有推理步");

/// Why on a capture of a start-up.
const START_UP: Text = Text::new(
    "the capture holds a start-up and no step; record decode steps after the warm-up",
    "采集中只有启动阶段，没有步；请在预热之后采集解码步",
);

/// Why a rule about steps abstains where none is marked.
fn no_steps(cx: &Context<'_>) -> Text {
    if cx.main_classes().any(|(_, class)| class.stage == Stage::Train) {
        TRAINING
    } else if cx.main_classes().any(|(rank, class)| signals::start_up::is_start_up(rank, class)) {
        START_UP
    } else {
        NO_STEPS
    }
}

/// What the rules find, and which of them could not decide.
fn check(cx: &Context<'_>) -> (Vec<Finding>, Vec<Abstention>) {
    let (mut findings, mut abstained) = (Vec::new(), Vec::new());
    let unmarked = OnceCell::new();
    for rule in rules::REGISTRY {
        let doc = rule.doc();
        if cx.vendor().is_some_and(|vendor| !doc.relations.vendors.include(vendor)) {
            continue;
        }
        let missing = cx.analysis.evidence.missing(doc.needs);
        let told_by_log = rule.reads_logs() && cx.is_logged();
        if !missing.is_empty() && !told_by_log {
            abstained.push(Abstention { rule: doc.id, needs: missing, why: None });
            continue;
        }
        if rule.needs_steps() && !cx.has_marked_steps() {
            let found = rule.check_unmarked(cx);
            if !found.is_empty() {
                findings.extend(found);
                continue;
            }
            let why = Some(Message::plain(*unmarked.get_or_init(|| no_steps(cx))));
            abstained.push(Abstention { rule: doc.id, needs: Vec::new(), why });
            continue;
        }
        match rule.check(cx) {
            Outcome::Quiet => {}
            Outcome::Found(found) => findings.extend(found),
            Outcome::Abstain(why) => abstained.push(Abstention { rule: doc.id, needs: Vec::new(), why: Some(why) }),
        }
    }
    (findings, abstained)
}

/// Runs every rule over a capture.
pub fn diagnose(trace: &Trace, analysis: &Analysis, packs: &Packs) -> Diagnosis {
    let cx = Context { trace, analysis, packs };
    let ((mut findings, mut abstained), costs) = rayon::join(|| check(&cx), || costs::find(&cx));
    ranking::screen(&mut findings, analysis);
    let gains = gain::Gains::new(analysis, rules::CATALOGUE);
    let mut findings = gain::merged(findings, analysis);
    abstained.extend(gains.estimate(&mut findings));
    let priced = costs::price(&cx, rules::CATALOGUE, &gains, costs);
    let small = costs::name(&cx, rules::CATALOGUE, &mut findings, priced);
    ranking::temper(&cx, &mut findings, rules::CATALOGUE);
    ranking::doubt_sums(&cx, &mut findings);
    ranking::set_apart_start_ups(&mut findings, analysis, rules::CATALOGUE);
    ranking::assure(&mut findings);
    ranking::hold_back(&mut findings);
    let mut breaches = invariants::enforce(&mut findings, analysis);
    ranking::settle(&mut findings, analysis, rules::CATALOGUE);
    let rest = costs::rest(&cx, rules::CATALOGUE, &findings, small);
    findings.extend(rest);
    abstained.extend(lost::withhold(&mut findings, analysis));
    let explained = claims::settle(&mut findings, analysis);
    findings.iter_mut().for_each(|finding| finding.give_stretches(analysis));
    let marked = |finding: &Finding| {
        let mut ranks = analysis.ranks.iter().filter(|rank| finding.ranks.contains(&rank.rank));
        ranks.any(|rank| rank.anchor.kind != AnchorKind::WholeCapture) || finding.ranks.is_empty()
    };
    findings.iter_mut().filter(|finding| !marked(finding)).for_each(Finding::speak_of_window);
    // The replay takes about as much memory as the tables do: it goes before they come.
    let counterfactual = gains.together(&findings);
    drop(gains);
    let (largest, limits) = rayon::join(|| named::largest(&cx, &findings), || limits::of(&cx));
    let verdict = verdict::judge(&cx, (&findings, rules::CATALOGUE), &limits, explained);
    breaches.extend(invariants::examine(analysis, &counterfactual));
    let roofline = roofline::of(&cx);
    let readiness = readiness::assess(&cx, &findings, roofline.as_ref(), rules::CATALOGUE);
    let kernel_sums = kernel_sums::by_operator(trace, packs);
    let coverage = coverage::of(&cx, &findings, &verdict.unjudged);
    Diagnosis {
        findings,
        abstained,
        verdict,
        largest,
        roofline,
        limits,
        counterfactual,
        readiness,
        kernel_sums,
        coverage,
        breaches,
    }
}
