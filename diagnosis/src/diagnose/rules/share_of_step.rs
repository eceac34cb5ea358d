//! The frame of the rules that say "kernels of one kind take a visible part of the step": a rule brings its text and
//! names the operations; the sum, the gate, the claim and the change follow.

use std::collections::HashMap;

use model::{Ns, SliceId};

use super::{gate::recurring, reading};
use crate::{
    analysis::{Class, Confidence, DeviceOp, Edit, OpKind, Rank, Step, attribution::Exclusive},
    diagnose::{
        Competing, Evidence, Finding, Intervention, Trigger,
        estimate::LEAST_GAIN,
        rule::{Context, Doc},
    },
    i18n::{Message, Text, Value},
};

/// One operation that a rule counts in a step.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    op: u32,
    row: SliceId,
    dur: Ns,
    busy: Ns,
    to: Option<Ns>,
    within: Option<(Ns, Ns)>,
}

impl Part {
    /// An operation that need not be done, from its index, itself and what it is accountable for.
    pub fn gone((index, op, exclusive): (usize, &DeviceOp, Exclusive)) -> Self {
        Self { op: index as u32, row: op.slice, dur: op.dur(), busy: exclusive.busy, to: None, within: None }
    }

    /// The operation would take `ns` instead.
    pub fn to(self, ns: Ns) -> Self {
        Self { to: Some(ns.clamp(0, self.dur)), ..self }
    }

    /// What the operation would take instead is known only to lie between `best` and `worst` ns.
    pub fn within(self, best: Ns, worst: Ns) -> Self {
        let worst = worst.clamp(0, self.dur);
        Self { within: Some((best.clamp(0, worst), worst)), ..self }
    }

    /// Time that the change takes away from the step, ns: of what the operation holds alone.
    pub fn saved(&self) -> Ns {
        (self.dur - self.to.unwrap_or(0)).clamp(0, self.busy)
    }
}

/// Operations of a step that `is` takes and that prepare the next other operation of their queue, which `serves` takes; in
/// order of time.
pub fn before(
    rank: &Rank,
    step: &Step,
    is: impl Fn(&DeviceOp) -> bool,
    serves: impl Fn(&DeviceOp) -> bool,
) -> Vec<Part> {
    let computes = |op: &DeviceOp| op.kind == OpKind::Compute;
    let ops: Vec<_> = reading::accounted(rank, step).collect();
    // The next operation of the same queue that is none of them, from the last one backwards.
    let mut next: Vec<Option<&DeviceOp>> = vec![None; rank.timeline.queues.len()];
    let mut out = Vec::new();
    for part in ops.into_iter().rev() {
        let (_, op, _) = part;
        let Some(after) = next.get_mut(op.queue as usize) else { continue };
        match (computes(op) && is(op), *after) {
            (true, Some(other)) if computes(other) && serves(other) => out.push(Part::gone(part)),
            (true, _) => {}
            (false, _) => *after = Some(op),
        }
    }
    out.reverse();
    out
}

/// What a rule says of its kind of operations.
pub struct Kind {
    /// The rule's text.
    pub doc: &'static Doc,
    /// Least time that the change takes away, as a share of the mean step.
    pub share: f64,
    /// So many per layer are structural: the least gain is enough then.
    pub per_layer: Option<usize>,
    /// Formula of the trigger.
    pub formula: Text,
    /// The claim, from `class`, `step` (mean), `busy` (what they take), `time` (what the change takes away), `share`
    /// (of the latter) and `count` (operations per step).
    pub claim: Text,
    /// What the sum of their time is.
    pub what: Text,
    /// Other explanations that stay open, each with what would decide.
    pub rivals: &'static [(Text, Text)],
    /// The most that the evidence allows one to be sure of.
    pub most: Confidence,
}

/// The finding of one class of one rank, if the operations that `parts` names in each step are worth one.
pub fn of_class(
    cx: &Context<'_>,
    kind: &Kind,
    rank: &Rank,
    class: &Class,
    parts: impl Fn(&Step) -> Vec<Part>,
) -> Option<Finding> {
    let per_step: HashMap<u32, Vec<Part>> = rank.steady_steps(class).map(|s| (s.index, parts(s))).collect();
    let of = |s: &Step| per_step.get(&s.index).map_or(&[][..], Vec::as_slice);
    let count = rank.steady_steps(class).map(|s| of(s).len()).min().unwrap_or(0);
    let layers = rank.period.as_ref().map(|p| p.repeats);
    let structural = kind.per_layer.zip(layers).is_some_and(|(each, l)| count >= each.saturating_mul(l));
    let threshold = if structural { LEAST_GAIN } else { kind.share };
    let cost = recurring(rank, class, threshold, |s| of(s).iter().map(Part::saved).sum())?;
    let all = || rank.steady_steps(class).flat_map(of);
    let steps = class.steady.max(1);
    let busy = all().map(|p| p.busy).sum::<Ns>() / steps as Ns;
    let claim = Message::new(
        kind.claim,
        [
            ("class", Value::Raw(class.key.clone())),
            ("step", Value::Ns(class.mean())),
            ("busy", Value::Ns(busy)),
            ("time", Value::Ns(cost.per_step)),
            ("share", Value::Share(cost.share)),
            ("count", Value::Count((all().count() / steps) as u64)),
        ],
    );
    let trigger = Trigger { formula: kind.formula, value: cost.share, threshold };
    let change = Intervention { removes: cost.per_step, layer: kind.doc.layer, edits: edits(all()) };
    let mut finding = cx.finding(kind.doc, rank, class, claim, trigger, change).with(Evidence::new(
        kind.what,
        Value::Ns(busy),
        reading::sample(all().map(|p| p.row)),
    ));
    let mut names: Vec<_> = all().filter_map(|p| rank.timeline.ops.get(p.op as usize)).map(|op| op.name).collect();
    names.sort_unstable();
    names.dedup();
    finding.remedy.retain(|r| r.is_about(names.iter().map(|name| cx.trace.strings.get(*name))));
    for (rival, decides) in kind.rivals {
        finding = finding.against(Competing::open(*rival, *decides));
    }
    finding.gated(cost.most.min(kind.most))
}

/// The findings of every rank's main class.
pub fn check(cx: &Context<'_>, kind: &Kind, parts: impl Fn(&Rank, &Class, &Step) -> Vec<Part>) -> Vec<Finding> {
    cx.main_classes()
        .filter_map(|(rank, class)| of_class(cx, kind, rank, class, |step| parts(rank, class, step)))
        .collect()
}

fn edits<'a>(parts: impl Iterator<Item = &'a Part>) -> Vec<Edit> {
    let (mut gone, mut resized, mut hoped) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        match (part.within, part.to) {
            (Some((best, worst)), _) => {
                resized.push((part.op, worst));
                hoped.push((part.op, best));
            }
            (None, Some(ns)) => resized.push((part.op, ns)),
            (None, None) => gone.push(part.op),
        }
    }
    let gone = (!gone.is_empty()).then_some(Edit::Remove(gone));
    let resized = (!resized.is_empty()).then_some(Edit::Resize(resized));
    let hoped = (!hoped.is_empty()).then(|| Edit::Hoped(Box::new(Edit::Resize(hoped))));
    gone.into_iter().chain(resized).chain(hoped).collect()
}
