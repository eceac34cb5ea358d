//! From costs to findings: every cost is priced by the replay, named by the rule whose finding speaks of the same time, and stated in
//! generated words where no rule names it.

use model::{Ns, Span};
use rayon::prelude::*;

use super::{
    catalogue::Catalogue,
    claims,
    coverage::NotUseful,
    estimate::{Estimate, Intervention, Method},
    finding::{Evidence, Finding, Over, Severity, Trigger},
    gain::Gains,
    relations::Role,
    rule::Context,
    signals::reading::{MOST_ROWS, merged, overlap},
};
use crate::{
    analysis::{Confidence, Layer, touched},
    cause::{self, Gated, Kind, Occurs, statement},
    i18n::{Message, Text, Value},
};

/// Part of a cost that a finding must speak of to name it.
const NAMES: f64 = 0.5;
/// Part of a cost that a finding must at least promise to name it: a remedy that gains less is not its cause.
const PROMISES: f64 = 0.5;
/// Part of a cost that a finding must remove at least to name it; heuristic.
const PARTS: f64 = 0.25;
/// The same of kernels of several classes: a rule about one class does not name the others. Set between two recorded runs, one in which
/// a rule about 0.52 of the time was wrong for the rest, and one in which a rule about 0.60 was right.
const CLASS: f64 = 0.55;
/// The same of a cost that does not come again: rules are about what does.
const ONCE: f64 = 0.5;
/// Part of both times that a cost and a finding share from which they are the same time.
const SAME: f64 = 0.4;
/// Part of a finding's own gain that a cost has at least to replace it.
const LARGER: f64 = 0.75;
/// Smallest cost that is stated without a rule, as a share of the counted steps.
pub const STATED: f64 = 0.05;

/// Part of what the replay reaches among ranks that is sure, in percent.
const RANKS: Ns = 80;
/// The most that is promised above what is sure where the replay reaches less, in percent.
const OVER: Ns = 125;
/// The most that is promised above what is sure where the ledger bounds less, in percent.
const BEYOND: Ns = 150;

/// A cost with the step that its change leaves.
pub struct Priced {
    cost: Gated,
    finding: Finding,
}

/// Prices every cost by the replay, over the steps that it was counted over.
pub fn price(cx: &Context<'_>, rules: Catalogue, gains: &Gains<'_>, costs: Vec<Gated>) -> Vec<Priced> {
    costs.into_par_iter().filter_map(|cost| priced(cx, rules, gains, cost)).collect()
}

fn priced(cx: &Context<'_>, rules: Catalogue, gains: &Gains<'_>, cost: Gated) -> Option<Priced> {
    let mut finding = drafted(cx, rules, &cost)?;
    let ledger = finding.estimate;
    if ledger.method != Method::None {
        gains.price(&mut finding);
        finding.estimate =
            combined(ledger, finding.estimate, is_of_some(cx, &cost) && cost.is_of_one_rank(), cost.is_idle());
    }
    finding.severity = severity(&cost, &finding.estimate);
    Some(Priced { cost, finding })
}

/// What the ledger bounds and the replay say together. The ledger measures the cost; the replay knows what follows from it: less where
/// ranks wait for each other anyway, more where the host gets ahead.
fn combined(ledger: Estimate, replay: Estimate, ranks: bool, of_host: bool) -> Estimate {
    if replay.method != Method::Replay {
        return ledger;
    }
    let gain = |of: &Estimate| (of.from - of.to_high, of.from - of.to_low);
    let ((sure, most), (cautious, hopeful)) = (gain(&ledger), gain(&replay));
    let (least, most) = match hopeful < sure && ranks {
        true => (cautious.max(hopeful * RANKS / 100), hopeful),
        // The ledger's upper end of an owner is all of the host's idle time: of that only what the replay reaches.
        false if of_host => (sure, hopeful.min(most.max(sure * BEYOND / 100)).max(most.min(sure * OVER / 100))),
        false => (sure, most),
    };
    let most = most.clamp(0, replay.from);
    Estimate { to_low: replay.from - most, to_high: replay.from - least.clamp(0, most), ..replay }
}

/// Whether only some of the ranks that work together have a cost.
fn is_of_some(cx: &Context<'_>, cost: &Gated) -> bool {
    !cx.analysis.job.instances.is_empty() && cost.ranks.len() < cx.analysis.ranks.len()
}

/// The finding that states a cost in generated words, with the bounds that the ledger gives.
fn drafted(cx: &Context<'_>, rules: Catalogue, cost: &Gated) -> Option<Finding> {
    let at = *cost.ranks.first()?;
    let rank = cx.analysis.ranks.get(at)?;
    let class = rank.main_class()?;
    let mean = rank.workload(class).mean();
    let steps = cost.steps.max(1) as Ns;
    let (least, most) = (cost.bounds.0 / steps, cost.bounds.1 / steps);
    let estimate = match cost.kind {
        _ if cost.is_size() => Estimate::none(mean),
        _ => Estimate {
            from: mean,
            to_low: (mean - most).max(0),
            to_high: (mean - least).clamp(0, mean),
            method: Method::Bound,
        },
    };
    let (id, claim) = statement::of(cx.trace, cost, mean - cost.apart / steps);
    let doc = rules.doc(id)?;
    let changes = cost.ranks.iter().map(|at| {
        let edits = cost.edits.iter().filter(|(of, _)| of == at).map(|(_, edit)| edit.clone()).collect();
        let number = cx.analysis.ranks.get(*at).map_or(rank.rank, |rank| rank.rank);
        (number, Intervention { removes: cost.per_step(), layer: cost.layer, edits })
    });
    let changes: Vec<(u32, Intervention)> = changes.collect();
    let mut ranks: Vec<u32> = changes.iter().map(|(rank, _)| *rank).collect();
    ranks.sort_unstable();
    Some(Finding {
        rule: doc.id,
        layer: cost.layer,
        severity: severity(cost, &estimate),
        confidence: cx.confidence(rank).min(Confidence::Medium),
        claim,
        class: class.key.clone(),
        ranks,
        evidence: vec![
            Evidence::new(Text::new("time per step", "每步时间"), Value::Ns(cost.per_step()), rows(cx, cost)),
            Evidence::new(Text::new("gaps or operations", "间隙或算子数"), Value::Count(cost.count as u64), Vec::new()),
            Evidence::new(Text::new("the longest", "最长"), Value::Ns(cost.longest), Vec::new()),
        ],
        trigger: Trigger {
            formula: Text::new("time of the cost / time of the counted steps", "成本时间 / 计入步的时间"),
            value: cost.share(),
            threshold: STATED,
        },
        estimate,
        over: Over::Workload,
        limits: None,
        unreplayed: None,
        changes,
        competing: Vec::new(),
        remedy: cx.remedies(doc.id),
        verify: Message::plain(doc.verify),
        supersedes: Vec::new(),
        explains: 0,
        same_time_as: None,
        beyond: false,
        claimed: cost.per_step(),
        cost: cost.per_step(),
        weight: cost.weight(),
        selection: selection(rank, cost),
        selected_on: rank.rank,
        stretches: Vec::new(),
    })
}

/// Medium from a tenth of the steps or a sure gain of a twentieth, low from a twentieth; what has no change, what happens once and
/// what belongs to a healthy run have none.
fn severity(cost: &Gated, estimate: &Estimate) -> Severity {
    if cost.is_size() || cost.occurs != Occurs::Throughout || cost.inherent {
        return Severity::Info;
    }
    let size = match cost.share() {
        share if share >= 0.10 => Severity::Medium,
        share if share >= STATED => Severity::Low,
        _ => Severity::Info,
    };
    let sure = estimate.least_gain_share();
    let sure = if sure >= STATED { Severity::of(sure).max(Severity::Medium) } else { Severity::Info };
    size.max(sure)
}

/// Slices that show a cost: the operations, or those that end the longest gaps.
fn rows(cx: &Context<'_>, cost: &Gated) -> Vec<model::SliceId> {
    let Some(rank) = cost.ranks.first().and_then(|at| cx.analysis.ranks.get(*at)) else { return Vec::new() };
    let ops = &rank.timeline.ops;
    if !cost.ops.is_empty() {
        let mut longest: Vec<_> = cost.ops.iter().filter_map(|op| ops.get(*op as usize)).collect();
        longest.sort_by_key(|op| (std::cmp::Reverse(op.dur()), op.slice));
        return longest.into_iter().take(MOST_ROWS).map(|op| op.slice).collect();
    }
    let mut longest: Vec<&Span> = cost.idle.iter().collect();
    longest.sort_by_key(|span| (std::cmp::Reverse(span.len()), span.start));
    let ends = |span: &Span| {
        let at = rank.gaps.partition_point(|gap| gap.span.end < span.end);
        let op = rank.gaps.get(at)?.owner?;
        ops.get(op as usize).map(|op| op.slice)
    };
    let mut out = Vec::new();
    for slice in longest.into_iter().filter_map(ends) {
        if !out.contains(&slice) && out.len() < MOST_ROWS {
            out.push(slice);
        }
    }
    out
}

/// Gives every cost to the finding that speaks of the same time; a cost that none speaks of becomes a finding of its own. The largest
/// cost that a finding names gives it its size, and where both speak of the same time its change and its gain. What is too small to
/// be stated is given back.
pub fn name(cx: &Context<'_>, rules: Catalogue, findings: &mut Vec<Finding>, costs: Vec<Priced>) -> Vec<Gated> {
    let mut small = Vec::new();
    // What a late rank does explains the waiting for it: that comes last.
    let (waiting, costs): (Vec<Priced>, Vec<Priced>) =
        costs.into_iter().partition(|priced| matches!(priced.cost.kind, Kind::Waiting { .. }));
    for Priced { cost, finding } in costs.into_iter().chain(waiting) {
        match namer(cx, rules, findings, &cost).and_then(|(at, same)| Some((findings.get_mut(at)?, same))) {
            Some((named, same)) => named.take(finding, same),
            None if is_stated(&cost) => findings.push(finding),
            None => small.push(cost),
        }
    }
    select(cx, findings);
    small
}

/// Part of the time that is not useful which may stay unstated, and the share of the steps from which the rest is stated.
const UNSTATED: (f64, f64) = (0.1, 0.01);
/// Small costs that are named of the rest.
const LARGEST: usize = 3;

/// What no finding is about in the end: one statement with the largest of the small costs in it, so that nothing is silent.
pub fn rest(cx: &Context<'_>, rules: Catalogue, findings: &[Finding], mut small: Vec<Gated>) -> Option<Finding> {
    let time = NotUseful::of(cx).filter(|_| !touched::hardly(cx.trace, &cx.analysis.ranks))?;
    let left = time.without(findings);
    let sum = |spans: &[Span]| spans.iter().map(|span| span.len()).sum::<Ns>();
    let (total, all) = (sum(&left), sum(&time.spans));
    let workload = time.rank.workload(time.class);
    if (total as f64) < UNSTATED.0 * all as f64 || (total as f64) < UNSTATED.1 * workload.total() as f64 {
        return None;
    }
    let at = cx.analysis.ranks.iter().position(|rank| std::ptr::eq(rank, time.rank))?;
    small.retain(|cost| cost.ranks.contains(&at) && cost.kind != Kind::Bubble);
    small.sort_by(|a, b| b.share().total_cmp(&a.share()));
    let parts: Vec<Message> = small.iter().take(LARGEST).map(|cost| statement::part(cx.trace, cost)).collect();
    let (id, claim) = statement::rest((total / workload.steady().max(1) as Ns, workload.mean()), left.len(), parts);
    let class = time.class;
    let trigger = Trigger {
        formula: Text::new("unstated time / time of the counted steps", "未指明的时间 / 计入步的时间"),
        value: total as f64 / workload.total().max(1) as f64,
        threshold: UNSTATED.1,
    };
    let change = Intervention::none(Layer::Runtime);
    let mut finding = cx.finding(rules.doc(id)?, time.rank, class, claim, trigger, change);
    finding.severity = Severity::Info;
    finding.estimate = Estimate::none(workload.mean());
    (finding.cost, finding.weight) = (total / workload.steady().max(1) as Ns, 0.01);
    (finding.selection, finding.selected_on) = (left, time.rank.rank);
    Some(finding)
}

/// Whether a cost that no rule names is told: not what a pipeline has by nature.
fn is_stated(cost: &Gated) -> bool {
    cost.share() >= STATED && cost.kind != Kind::Bubble
}

impl Finding {
    /// Takes the size of a cost that it names, and its change and gain where both speak of the same time.
    fn take(&mut self, of: Self, same: bool) {
        // What was selected, where and how much, in generated words.
        self.evidence.insert(0, Evidence { what: of.claim.clone(), value: Value::Ns(of.cost), rows: Vec::new() });
        if same {
            self.take_price(&of);
        } else {
            self.cost = self.cost.max(of.cost);
        }
    }

    /// Takes the size of a larger cost, and its change and gain where it is the larger part of what this finding speaks of. A replayed
    /// remedy keeps its own interval where that brings at least as much, or leaves open all that the cost's does.
    pub(super) fn take_price(&mut self, of: &Self) {
        if self.cost >= of.cost {
            return;
        }
        let (own, other) = (&self.estimate, &of.estimate);
        let larger = of.cost as f64 >= LARGER * own.mid_gain_share() * own.from as f64;
        let (least, most) = (own.least_gain_share(), own.max_gain_share());
        let as_much = own.mid_gain_share() >= other.mid_gain_share() && least <= other.max_gain_share();
        let open = least <= other.least_gain_share() && most >= other.max_gain_share();
        let keeps = own.method == Method::Replay && (as_much || open);
        // The price of a rank that the finding says nothing about is another finding's.
        let about = self.ranks.contains(&of.selected_on);
        if larger && !keeps && about && other.method != Method::None {
            let (mut price, mut limits, mut both) = (*other, of.limits, false);
            let by_rank = own.from - price.from;
            if by_rank != 0 && self.class == of.class && self.over == of.over {
                // A replay covers the slowest rank's step. Ranks that run in step gain the same, each from its own.
                price = price.shifted(by_rank);
                limits = limits.map(|limits| limits.shifted(by_rank));
            } else {
                // It is a mean over its own steps, and so is the finding from now on.
                self.class.clone_from(&of.class);
            }
            // A replayed remedy that brings more than its cost has a part in other costs, too: the truth lies between the two.
            if own.method == Method::Replay && own.from == price.from && least > other.max_gain_share() {
                price.to_high = (price.to_low + price.to_high) / 2;
                price.to_low = own.to_low;
                both = true;
            }
            (self.estimate, self.limits, self.over) = (price, limits, of.over);
            if !both && of.changes.iter().any(|(_, change)| !change.edits.is_empty()) {
                self.changes.clone_from(&of.changes);
            }
        }
        if !of.selection.is_empty() {
            self.selection.clone_from(&of.selection);
            self.selected_on = of.selected_on;
        }
        self.cost = of.cost;
        self.severity = self.severity.max(of.severity);
    }
}

/// The finding that names a cost, and whether both speak of the same time.
fn namer(cx: &Context<'_>, rules: Catalogue, findings: &[Finding], cost: &Gated) -> Option<(usize, bool)> {
    by_kind(cx, rules, findings, cost).or_else(|| by_time(cx, rules, findings, cost))
}

/// By what kind of cost it is: a slow device, or what one rank does that the others wait for.
fn by_kind(cx: &Context<'_>, rules: Catalogue, findings: &[Finding], cost: &Gated) -> Option<(usize, bool)> {
    let plays = |finding: &Finding, role: Role| rules.plays(finding.rule, role);
    let largest = |pick: &dyn Fn(&Finding) -> bool| {
        let found = findings.iter().enumerate().filter(|(_, f)| pick(f));
        found.max_by(|a, b| a.1.size().total_cmp(&b.1.size()).then(b.0.cmp(&a.0))).map(|(at, _)| at)
    };
    let of_rank = |f: &Finding| f.ranks.contains(&cost.rank);
    if matches!(cost.kind, Kind::Drift { .. } | Kind::SlowRank { .. }) {
        return largest(&|f| plays(f, Role::SlowDevice) && of_rank(f)).map(|at| (at, true));
    }
    if cost.kind == Kind::Bubble {
        return largest(&|f| plays(f, Role::UnevenStages)).map(|at| (at, true));
    }
    let pauses = matches!(cost.kind, Kind::Owner(_) | Kind::Turnaround { .. });
    if let Some(at) = largest(&|f| pauses && plays(f, Role::LoadLimited) && f.trigger.value >= PROMISES * cost.share())
    {
        // What nobody asked for cannot be gained.
        return Some((at, false));
    }
    let alone = |f: &Finding| f.ranks == [cost.rank] && f.layer != Layer::Measurement;
    let half = |f: &Finding| f.size() >= PROMISES * cost.share();
    let late = |least: f64| largest(&|f| plays(f, Role::LateRank) && alone(f) && f.size() >= least * cost.share());
    let found = match cost.kind {
        Kind::Waiting { .. } => {
            let of_waits = |f: &Finding| f.layer == Layer::Communication && half(f);
            late(PROMISES).or_else(|| largest(&|f| alone(f) && half(f))).or_else(|| largest(&of_waits))
        }
        Kind::Owner(_) | Kind::Turnaround { .. } | Kind::Chain(_) if is_of_some(cx, cost) && cost.ranks.len() == 1 => {
            late(PROMISES / 2.0)
        }
        _ => None,
    };
    found.map(|at| (at, true))
}

/// The finding that speaks of most of the same time, and promises as much.
fn by_time(cx: &Context<'_>, rules: Catalogue, findings: &[Finding], cost: &Gated) -> Option<(usize, bool)> {
    let rank = cx.analysis.ranks.get(*cost.ranks.first()?)?;
    let own = selection(rank, cost);
    let size: Ns = own.iter().map(|span| span.len()).sum();
    let same = findings.iter().enumerate().filter_map(|(i, finding)| {
        if finding.layer == Layer::Measurement || !finding.ranks.contains(&rank.rank) {
            return None;
        }
        let claimed = claims::claimed(rank, finding);
        let common = overlap(&own, &claimed);
        let whole: Ns = claimed.iter().map(|span| span.len()).sum();
        let covers = common as f64 >= NAMES * size as f64;
        let promises = finding.estimate.max_gain_share() >= PROMISES * cost.share();
        // What removes much less than the cost is a part of it.
        let parts = match cost.kind {
            _ if cost.occurs != Occurs::Throughout => ONCE,
            Kind::Class { .. } => CLASS,
            _ => PARTS,
        };
        let promises = promises && finding.claimed as f64 >= parts * cost.per_step() as f64;
        let same = common as f64 / (whole + size - common).max(1) as f64;
        // That the host is late between steps says less than what it does there.
        let closer = same >= SAME && !rules.plays(finding.rule, Role::BetweenSteps);
        (covers && promises).then_some((i, closer, same))
    });
    let (at, _, same) = same.max_by(|a, b| a.1.cmp(&b.1).then(a.2.total_cmp(&b.2)).then(b.0.cmp(&a.0)))?;
    Some((at, same >= SAME))
}

/// The time of the device that a cost selects, disjoint and in order.
fn selection(rank: &crate::analysis::Rank, cost: &Gated) -> Vec<Span> {
    let ops = cost.ops.iter().filter_map(|op| rank.timeline.ops.get(*op as usize));
    merged(cost.idle.iter().copied().chain(ops.map(|op| Span::new(op.start, op.end))).collect())
}

/// Fills in the time that findings are about which no cost gave theirs: what their changes concern.
fn select(cx: &Context<'_>, findings: &mut [Finding]) {
    for finding in findings.iter_mut().filter(|f| f.selection.is_empty()) {
        let first = finding.ranks.first().and_then(|of| cx.analysis.ranks.iter().find(|rank| rank.rank == *of));
        finding.selection = first.map(|rank| claims::claimed(rank, finding)).unwrap_or_default();
        finding.selected_on = first.map_or(0, |rank| rank.rank);
    }
}

/// Costs of a capture, for whoever looks at them before they are named.
pub fn find(cx: &Context<'_>) -> Vec<Gated> {
    cause::find(cx.trace, cx.analysis, cx.packs)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::{
        diagnose::{diagnose, finding::Limits},
        platform::Packs,
    };

    /// A finding took the price of another rank's step and was withheld, because its base was no step of its own.
    #[test]
    fn a_price_of_another_rank_is_told_from_the_findings_own_step() {
        let mut script = crate::analysis::script::Script::default();
        for i in 0..12 {
            let at = 1_000_000 * i;
            script.host(model::Category::UserRange, "execute_context_0(0)_generation_4(4)", (at, at + 990_000));
            script.host(model::Category::PythonFrame, "scheduler.py(7): schedule", (at + 1_000, at + 500_000));
            script.launch((at + 510_000, at + 515_000), "my_kernel", (at + 520_000, at + 990_000));
        }
        let (trace, analysis) = script.analyze();
        let found = diagnose(&trace, &analysis, &Packs::embedded().unwrap());
        let mut own = found.findings.into_iter().find(|finding| finding.cost > 0).unwrap();
        let base = own.estimate.from;
        let mut other = own.clone();
        (own.cost, own.estimate) = (0, Estimate::none(base));
        other.estimate =
            Estimate { from: base + 70, to_low: base + 70 - 900, to_high: base + 70 - 500, ..other.estimate };
        other.estimate.method = Method::Bound;
        other.limits = Some(Limits { amdahl: base - 830, overlap: base / 2 });
        other.cost = 1_000;
        own.take_price(&other);
        let Estimate { from, to_low, to_high, .. } = own.estimate;
        assert_eq!((from, to_low, to_high), (base, base - 900, base - 500));
        assert_eq!(own.limits.unwrap().amdahl, base - 900);
        // Of a rank that it says nothing about it takes no price.
        let kept = own.estimate;
        (other.cost, other.selected_on) = (2_000, 99);
        own.take_price(&other);
        assert_eq!((own.estimate, own.cost), (kept, 2_000));
    }
}
