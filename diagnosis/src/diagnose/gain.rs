//! What findings would gain, by counterfactual replay of the whole run (method §2.11).
//!
//! A finding that several ranks share is one finding whose change is made on all of them at once: to take a cost away from
//! one of several ranks that wait for each other gains nothing. A change is worth what it brings to the slowest of the ranks
//! that the finding names, because a job is as fast as its slowest rank. Where the unedited replay does not reproduce the
//! steps of a rank, the bound that the rule drafted stays and says why.

use std::collections::BTreeMap;

use model::Ns;
use rayon::prelude::*;

use super::{
    catalogue::Catalogue,
    claims,
    estimate::{Estimate, LEAST_GAIN, Method},
    finding::{Abstention, Finding, Limits, Over, Severity},
    relations::Role,
    signals::stages,
    twins::{self, Twins},
};
use crate::{
    analysis::{
        Analysis, Class, Edit, Layer, Rank,
        replay::{self, Check, CriticalPath, Replay, Variant, Windows},
    },
    i18n::{Message, Text, Value},
};

/// Part of the time that a finding names by which its gain may be larger without a word; own value, that of the laws.
const BEYOND: f64 = 0.10;

/// Findings that are replayed together.
const TOGETHER: usize = 3;

/// One part in so many of what a change of the host's doing brings comes on top where the device is a processor, at most:
/// operators that begin on an idle one find caches and clocks cold, and so does the host after what it did. The same holds of
/// fusing, where the intermediate results no longer pass through the caches of the others. Own measurement of the
/// engine on a server CPU: of the time that delays of the host cost, 2 to 16 % was in operators that had become slower, and
/// of the time that unfused operators cost, 17 % in the others in the pair of runs that was looked at (`benches/injections`).
const WARMER: Ns = 6;

/// Why a change that is known was not replayed.
const UNFAITHFUL: Text = Text::new(
    "the replay does not reproduce the recorded steps of this rank well enough",
    "重放未能足够准确地复现该 rank 的已记录步",
);

/// What the replay says beside the single estimates.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Counterfactual {
    /// How well the unedited replay reproduces the steps, rank by rank, main class.
    pub checks: Vec<RankCheck>,
    /// The first findings carried out together.
    pub joint: Option<Joint>,
    /// Critical path of the median step of each rank.
    pub paths: Vec<CriticalPath>,
    /// What pairs of them gain beyond the sum of each alone.
    pub interactions: Vec<Interaction>,
}

/// The self-check of one rank.
#[derive(Clone, Debug, serde::Serialize)]
pub struct RankCheck {
    /// Rank.
    pub rank: u32,
    /// Class key.
    pub class: String,
    /// Errors.
    pub check: Check,
}

/// Several findings carried out together.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Joint {
    /// Their rules.
    pub rules: Vec<&'static str>,
    /// Class that the estimate speaks of.
    pub class: String,
    /// From X to Y with all of them.
    pub estimate: Estimate,
}

/// Gain of a pair less the gains of its two alone.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Interaction {
    /// The two rules.
    pub rules: [&'static str; 2],
    /// Middle of the joint gain less the middles of the single ones, ns per step: negative where one masks the other,
    /// positive where both are needed.
    pub ns: Ns,
}

/// Makes one finding of those of the same rule and layer that speak of different ranks, or of different classes of one
/// workload: they have one cause. Of classes the one that could gain most gives claim and evidence, and what they gain adds up; of
/// ranks the slowest does, whose step is replayed.
pub fn merged(findings: Vec<Finding>, analysis: &Analysis) -> Vec<Finding> {
    let mut out: Vec<Finding> = Vec::new();
    for f in findings {
        let same = |o: &&mut Finding| {
            let shared = o.ranks.iter().any(|r| f.ranks.contains(r));
            let alike = match shared {
                true => o.class != f.class && is_one_workload(o, &f, analysis),
                false => o.class == f.class || is_one_workload(o, &f, analysis) || are_of_one_kind(o, &f, analysis),
            };
            o.layer != Layer::Measurement && (o.rule, o.layer) == (f.rule, f.layer) && alike
        };
        let Some(other) = out.iter_mut().find(same) else {
            out.push(f);
            continue;
        };
        let shared = other.ranks.iter().any(|r| f.ranks.contains(r));
        // Of ranks the slowest speaks: it is the one whose step is replayed.
        let gain = |f: &Finding| f.estimate.max_gain_share();
        let slower = || (f.estimate.from, gain(&f)) > (other.estimate.from, gain(other));
        let first = if shared { gain(&f) > gain(other) } else { slower() };
        let (mut worst, rest) = if first { (f, other.clone()) } else { (other.clone(), f) };
        if shared {
            let Estimate { from, to_low, to_high, .. } = rest.estimate;
            let estimate = &mut worst.estimate;
            estimate.to_low = (estimate.to_low - (from - to_low)).clamp(0, estimate.from);
            estimate.to_high = (estimate.to_high - (from - to_high)).clamp(estimate.to_low, estimate.from);
            worst.severity = Severity::of_estimate(&worst.estimate).max(worst.severity);
        }
        worst.severity = worst.severity.max(rest.severity);
        worst.ranks.extend(rest.ranks);
        worst.ranks.sort_unstable();
        worst.ranks.dedup();
        worst.changes.extend(rest.changes);
        worst.changes.sort_by_key(|(rank, _)| *rank);
        worst.confidence = worst.confidence.min(rest.confidence);
        *other = worst;
    }
    out
}

/// Whether two findings speak of one workload of a rank, each by another of its classes.
fn is_one_workload(a: &Finding, b: &Finding, analysis: &Analysis) -> bool {
    let mean_of_it = |f: &Finding| f.over == Over::Workload && f.estimate.method != Method::None;
    let ranks = analysis.ranks.iter().filter(|rank| a.ranks.contains(&rank.rank));
    let mut workloads = ranks.filter_map(|rank| Some(rank.workload(rank.classes.iter().find(|c| c.key == a.class)?)));
    mean_of_it(a) && mean_of_it(b) && workloads.any(|of| of.classes.iter().any(|class| class.key == b.class))
}

/// Whether two findings of different ranks speak of populations of one kind, though other batches met on each.
fn are_of_one_kind(a: &Finding, b: &Finding, analysis: &Analysis) -> bool {
    let class = |f: &Finding| {
        let ranks = analysis.ranks.iter().filter(|rank| f.ranks.contains(&rank.rank));
        ranks.flat_map(|rank| &rank.classes).find(|class| class.key == f.class)
    };
    class(a).zip(class(b)).is_some_and(|(a, b)| a.is_like(b))
}

/// That what a rule found is hidden behind something else.
fn hidden(finding: &Finding) -> Message {
    const SAYS: Text = Text::new(
        "found, and not worth a line: replayed without it the step of {step} loses less than 1 %, because something else sets its pace",
        "已发现但不单列：去除后重放，步时 {step} 的缩短不足 1%，因为步的快慢由其他因素决定",
    );
    Message::new(SAYS, [("step", Value::Ns(finding.estimate.from))])
}

/// Estimates by replay of one capture.
pub struct Gains<'a> {
    analysis: &'a Analysis,
    replay: Replay<'a>,
    unedited: Windows,
    /// Whether the device is a processor, of which [`WARMER`] is known.
    on_cpu: bool,
    twins: Twins,
    rules: Catalogue,
}

/// The rank and class that a finding is worth something to.
type Place<'a> = (usize, &'a Rank, &'a Class);

impl<'a> Gains<'a> {
    /// Builds the replay and runs it once without any change.
    pub fn new(analysis: &'a Analysis, rules: Catalogue) -> Self {
        let replay = Replay::new(analysis);
        let unedited = replay.unedited();
        let on_cpu = analysis.ranks.iter().any(|rank| rank.timeline.on_host);
        Self { analysis, replay, unedited, on_cpu, twins: Twins::of(analysis), rules }
    }

    /// Replaces the drafted bounds of findings whose change is known by replayed intervals, and sets aside what turns out not to
    /// be worth a line.
    pub fn estimate(&self, findings: &mut Vec<Finding>) -> Vec<Abstention> {
        findings.par_iter_mut().for_each(|f| self.estimate_one(f));
        let gains = |f: &Finding| f.estimate.method != Method::Replay || f.estimate.max_gain_share() >= LEAST_GAIN;
        let (kept, without): (Vec<Finding>, Vec<Finding>) = findings.drain(..).partition(gains);
        *findings = kept;
        // Of a rule that finds something elsewhere that finding speaks.
        let silent = without.into_iter().filter(|f| findings.iter().all(|kept| kept.rule != f.rule));
        let told = silent.map(|f| Abstention { rule: f.rule, needs: Vec::new(), why: Some(hidden(&f)) });
        told.collect()
    }

    /// Replaces the bounds of a finding by a replayed interval where the replay reproduces the run.
    pub fn price(&self, finding: &mut Finding) {
        self.estimate_one(finding);
    }

    fn estimate_one(&self, finding: &mut Finding) {
        let Some(place) = self.slowest(&finding.class, &finding.ranks) else { return };
        // Steps of a log have nothing in them to replay: the bound stays.
        if self.edits(&[finding]).is_empty() || place.1.timeline.ops.is_empty() {
            return;
        }
        let faithful = self.places(&finding.class, &finding.ranks).all(|place| self.check(place).passed());
        if !faithful {
            finding.unreplayed = Some(UNFAITHFUL);
            return;
        }
        let (estimate, limits) = self.joint(&[finding], place);
        let estimate = self.within_removed(finding, estimate);
        finding.estimate = estimate;
        finding.beyond = (estimate.from - estimate.to_low) as f64 > (1.0 + BEYOND) * self.removed(finding) as f64;
        finding.severity = Severity::of_estimate(&estimate);
        finding.limits = Some(limits);
    }

    /// An estimate of a change to operations that is no better than what goes with them: their time, and that of their launches where
    /// the capture shows these. Else the replay takes the gap before an operation for its own, whatever that was for.
    fn within_removed(&self, finding: &Finding, estimate: Estimate) -> Estimate {
        if self.on_cpu || finding.layer != Layer::Operator {
            return estimate;
        }
        let launched = || {
            let places = self.places(&finding.class, &finding.ranks);
            let most = |(i, rank, class)| Some((i, claims::most(rank, finding.over.mean(rank, class).1, finding)?));
            places.filter_map(most).collect::<Vec<_>>()
        };
        let most = self.one_after_another(launched());
        let most = most.max(self.removed(finding)).min(estimate.from);
        let at_best = Estimate::gaining(estimate.from, (most, most), Method::Replay);
        let (to_low, to_high) = (estimate.from - most, at_best.to_high);
        Estimate { to_low: estimate.to_low.max(to_low), to_high: estimate.to_high.max(to_high), ..estimate }
    }

    /// What a finding's changes take away, ns per step.
    fn removed(&self, finding: &Finding) -> Ns {
        let at = |rank: u32| self.analysis.ranks.iter().position(|own| own.rank == rank).unwrap_or(usize::MAX);
        let mut of_ranks: BTreeMap<usize, Ns> = BTreeMap::new();
        for (rank, change) in &finding.changes {
            let sum = of_ranks.entry(at(*rank)).or_default();
            *sum = sum.saturating_add(change.removes);
        }
        self.one_after_another(of_ranks)
    }

    /// Times of ranks as a step sees them: stages of a pipeline work one after another, all others at once.
    fn one_after_another(&self, of_ranks: impl IntoIterator<Item = (usize, Ns)>) -> Ns {
        let stages = stages::numbers(self.analysis);
        let mut longest: BTreeMap<Option<usize>, Ns> = BTreeMap::new();
        for (rank, ns) in of_ranks {
            let own = longest.entry(stages.get(&rank).copied()).or_default();
            *own = ns.max(*own);
        }
        longest.into_values().fold(0, Ns::saturating_add)
    }

    /// The first findings together, and how they interact.
    pub fn together(&self, findings: &[Finding]) -> Counterfactual {
        let checks = self.analysis.ranks.iter().enumerate().filter_map(|(i, rank)| {
            let class = rank.main_class().filter(|c| c.steady > 0)?;
            let check = self.check((i, rank, class));
            Some(RankCheck { rank: rank.rank, class: class.key.clone(), check })
        });
        let paths = (0..self.analysis.ranks.len()).filter_map(|i| self.replay.critical_path(i)).collect();
        let mut out = Counterfactual { checks: checks.collect(), paths, ..Counterfactual::default() };
        let mut first: Vec<&Finding> = Vec::new();
        for f in findings.iter().filter(|f| f.estimate.method == Method::Replay) {
            if first.len() < TOGETHER && first.first().is_none_or(|g| g.class == f.class) {
                first.push(f);
            }
        }
        let ranks: Vec<u32> = first.iter().flat_map(|f| f.ranks.iter().copied()).collect();
        let Some(place) = first.first().and_then(|f| self.slowest(&f.class, &ranks)).filter(|_| first.len() > 1) else {
            return out;
        };
        let mid = |of: &[&Finding]| {
            let (estimate, _) = self.joint(of, place);
            (estimate, estimate.from - (estimate.to_low + estimate.to_high) / 2)
        };
        let alone: Vec<Ns> = first.par_iter().map(|f| mid(&[f]).1).collect();
        let pairs = [(0, 1), (0, 2), (1, 2)];
        let interactions: Vec<Interaction> = pairs
            .par_iter()
            .filter_map(|(a, b)| {
                let (x, y) = (*first.get(*a)?, *first.get(*b)?);
                let ns = mid(&[x, y]).1 - alone.get(*a)? - alone.get(*b)?;
                Some(Interaction { rules: [x.rule, y.rule], ns })
            })
            .collect();
        out.interactions = interactions;
        out.joint = Some(Joint {
            rules: first.iter().map(|f| f.rule).collect(),
            class: place.2.key.clone(),
            estimate: mid(&first).0,
        });
        out
    }

    fn places<'s>(&'s self, class: &'s str, ranks: &'s [u32]) -> impl Iterator<Item = Place<'a>> + 's {
        let named = self.analysis.ranks.iter().enumerate().filter(|(_, r)| ranks.contains(&r.rank));
        named.filter_map(move |(i, r)| Some((i, r, r.classes.iter().find(|c| c.key == class && c.steady > 0)?)))
    }

    /// Of the ranks that are named the one whose steps take longest.
    fn slowest(&self, class: &str, ranks: &[u32]) -> Option<Place<'a>> {
        let time = |(i, _, c): &Place<'_>| (c.total / c.steady.max(1) as Ns, std::cmp::Reverse(*i));
        self.places(class, ranks).max_by_key(time)
    }

    fn check(&self, (i, rank, class): Place<'_>) -> Check {
        Replay::check(rank, class, self.unedited.get(i).map_or(&[][..], Vec::as_slice))
    }

    fn edits<'f>(&self, findings: &[&'f Finding]) -> Vec<(usize, &'f Edit)> {
        let position = |rank: u32| self.analysis.ranks.iter().position(|r| r.rank == rank);
        let changes = findings.iter().flat_map(|f| &f.changes);
        let placed = changes.filter_map(|(rank, change)| Some((position(*rank)?, change)));
        placed.flat_map(|(i, change)| change.edits.iter().map(move |edit| (i, edit))).collect()
    }

    /// What the findings' changes of a program do on ranks that run it too and were not found by themselves.
    fn on_twins(&self, findings: &[&Finding], variant: Variant) -> Vec<(usize, Edit)> {
        let of_program = |finding: &&&Finding| {
            let is_of_operators = self.rules.doc(finding.rule).is_some_and(|doc| doc.layer == Layer::Operator);
            let plays = |role| self.rules.plays(finding.rule, role);
            plays(Role::UnevenStages) || is_of_operators && !plays(Role::SlowDevice)
        };
        let findings: Vec<&Finding> = findings.iter().filter(of_program).copied().collect();
        let edits = self.edits(&findings);
        let [recorded, summed] = self.twins.unchanged(self.analysis, &edits);
        let timeline = |i: usize| self.analysis.ranks.get(i).map(|rank| &rank.timeline);
        let mut out = self.replay.mirrored(&edits, variant, &summed);
        for (from, to) in recorded {
            let Some((own, other)) = timeline(from).zip(timeline(to)) else { continue };
            let own_edits = edits.iter().filter(|(i, _)| *i == from);
            out.extend(own_edits.filter_map(|(_, edit)| Some((to, twins::carried_over(edit, own, other)?))));
        }
        out
    }

    /// Step time of a place with all the findings' changes, and what it cannot fall below.
    fn joint(&self, findings: &[&Finding], (i, rank, class): Place<'_>) -> (Estimate, Limits) {
        let edits = self.edits(findings);
        let over = findings.iter().map(|f| f.over).max().unwrap_or(Over::Workload);
        let steps = || over.steps(rank, class);
        let (from, count) = over.mean(rank, class);
        let now = self.unedited.get(i).map_or(from, |w| replay::mean(steps(), w));
        let gain = |variant| {
            let on_twins = self.on_twins(findings, variant);
            let edits: Vec<_> = edits.iter().copied().chain(on_twins.iter().map(|(i, edit)| (*i, edit))).collect();
            let windows = self.replay.windows(&edits, variant);
            (now - windows.get(i).map_or(now, |w| replay::mean(steps(), w))).clamp(0, from)
        };
        let (cautious, hopeful) = (gain(Variant::Cautious), gain(Variant::Hopeful));
        let rest = self.replay.rest(&edits, i, steps());
        let (least, most) = (cautious.min(hopeful), cautious.max(hopeful));
        // Work that no longer waits for the host is done faster than it was recorded.
        let warms = |edit: &Edit| match edit {
            Edit::Unblock(calls) => !calls.is_empty(),
            Edit::Fuse(groups) => !groups.is_empty(),
            _ => false,
        };
        let warms = findings.iter().any(|f| f.layer == Layer::Runtime) || edits.iter().any(|(_, edit)| warms(edit));
        let warmer = if self.on_cpu && warms { most / WARMER } else { 0 };
        // However little is known of the gain, what is left to do has to be done.
        let overlap = rest.device.max(rest.host).min(from - most);
        let taken = (rest.taken / count).max(most);
        let mut estimate = Estimate::gaining(from, (least, most + warmer), Method::Replay);
        estimate.to_low = estimate.to_low.max((rest.device.max(rest.host) - warmer).min(overlap));
        let overlap = overlap.min(estimate.to_low);
        (estimate, Limits { amdahl: (from - taken).clamp(0, estimate.to_low), overlap })
    }
}
