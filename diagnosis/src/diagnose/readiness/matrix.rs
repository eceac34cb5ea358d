//! The maturity matrix: operator coverage, efficiency, ecosystem, and what only a person can say.

use model::{EvidenceClass, Light, Maturity, Severity as Loss, manifest::COMMUNITY};

use super::{
    super::{
        level::NAMED,
        relations::{Feeds, Role},
        signals::{fallback::Fallbacks, unfused},
    },
    Cell, Fact, Next, Seen, cell, unknown,
};

/// How much of the least time of a step must be reached: runs that use a device well reach 40 to 60 % of what it can do
/// (published accounts of inference stacks); own values.
const REACHED: [f64; 2] = [0.40, 0.60];

impl Seen<'_> {
    pub(super) fn coverage(&self) -> Cell<Maturity> {
        let longest = self.cx.main_classes().max_by_key(|(_, class)| class.total);
        let usual = longest.and_then(|(rank, class)| {
            let far = |step: &&crate::analysis::Step| step.window.len().abs_diff(class.p50);
            Some((rank, class, rank.steady_steps(class).min_by_key(far)?))
        });
        let (Some((rank, class, step)), Some(named)) = (usual, self.cx.analysis.op_coverage) else {
            return unknown(Maturity::OperatorCoverage, Fact::NothingRan, Next::Collect(EvidenceClass::Device));
        };
        let [native, composite] = unfused::realised(self.cx.trace, rank, step).map(|n| n as u64);
        let fallback = Fallbacks::of(self.cx, rank, class).of_step(step).len() as u64;
        let mut facts = vec![Fact::Named(named), Fact::Realised { native, composite, fallback }];
        let mut wrong = Vec::new();
        if fallback > 0 {
            wrong.extend(self.about(Role::CpuFallback).map(|next| (Light::Red, next)));
        }
        self.blame(&[Feeds::Maturity(Maturity::OperatorCoverage)], &mut facts, &mut wrong);
        if composite > 0 {
            wrong.extend(self.about(Role::Composite).map(|next| (Light::Amber, next)));
        }
        if named < NAMED {
            wrong.push((Light::Amber, Next::Patterns));
        }
        cell(Maturity::OperatorCoverage, facts, wrong)
    }

    pub(super) fn efficiency(&self) -> Cell<Maturity> {
        let reached = |row: usize| self.held.and_then(|held| Some(held.rows.get(row)?.reached));
        let (Some(bandwidth), Some(step)) = (reached(1), reached(2)) else {
            return unknown(Maturity::Efficiency, Fact::NoCeiling, Next::Probe);
        };
        let facts = vec![Fact::Bandwidth(bandwidth), Fact::Step(step)];
        let [red, amber] = REACHED;
        let wrong = match step {
            step if step < red => vec![(Light::Red, Next::Held)],
            step if step < amber => vec![(Light::Amber, Next::Held)],
            _ => Vec::new(),
        };
        cell(Maturity::Efficiency, facts, wrong)
    }

    /// How much the tools of the platform show, and what they could not read.
    pub(super) fn ecosystem(&self) -> Cell<Maturity> {
        let seen = self.observability();
        let errors = self.cx.trace.stats.iter().filter(|stat| stat.severity >= Loss::Error).map(|stat| stat.count);
        let errors = errors.fold(0, u64::saturating_add);
        let mut facts = vec![self.score()];
        let mut wrong: Vec<(Light, Next)> = seen.next.into_iter().map(|next| (seen.light, next)).collect();
        if errors > 0 {
            facts.push(Fact::Lost(errors));
            wrong.push((Light::Amber, Next::Losses));
        }
        self.blame(&[Feeds::Maturity(Maturity::Ecosystem)], &mut facts, &mut wrong);
        cell(Maturity::Ecosystem, facts, wrong)
    }

    /// What a person said: no capture shows it.
    pub(super) fn community(&self) -> Cell<Maturity> {
        let Some(said) = self.cx.trace.manifest.value(COMMUNITY.key) else {
            return unknown(Maturity::Community, Fact::NotJudged, Next::Judge);
        };
        let light = match said.split(|c: char| !c.is_alphabetic()).next().map(str::to_ascii_lowercase).as_deref() {
            Some("good") => Light::Green,
            Some("fair") => Light::Amber,
            Some("poor") => Light::Red,
            _ => Light::Unknown,
        };
        let next = (light != Light::Green).then_some(Next::Judge);
        Cell { of: Maturity::Community, light, facts: vec![Fact::Judged(said.to_owned())], next }
    }
}
