//! The stages of a pipeline, by who sends to whom: what each computes in a step, how long it waits for its neighbours, and what
//! the slow one computes that the others do not.

use std::collections::BTreeMap;

use model::{Ns, StepPart, StringId};
use rustc_hash::FxHashSet;

use crate::{
    analysis::{Analysis, Bucket, Class, OpKind, Rank, job},
    diagnose::rule::Context,
    platform::{self, CanonicalOp},
};

/// One rank of a stage over its steps that count.
#[derive(Clone, Copy)]
pub struct Member<'a> {
    /// Its position in the analysis.
    pub index: usize,
    /// The rank.
    pub rank: &'a Rank,
    /// Its main class.
    pub class: &'a Class,
    /// What it computes, ns per step.
    pub compute: Ns,
    /// What it waits for its neighbours, ns per step, with nothing beside it.
    pub bubble: Ns,
}

/// A stage: ranks that hold the same layers.
pub struct Stage<'a> {
    /// Its ranks.
    pub members: Vec<Member<'a>>,
}

impl<'a> Stage<'a> {
    fn mean(&self, of: impl Fn(&Member<'a>) -> Ns) -> Ns {
        self.members.iter().map(of).sum::<Ns>() / (self.members.len().max(1) as Ns)
    }

    /// What a rank of it computes, ns per step.
    pub fn compute(&self) -> Ns {
        self.mean(|member| member.compute)
    }

    /// What a rank of it waits for its neighbours, ns per step.
    pub fn bubble(&self) -> Ns {
        self.mean(|member| member.bubble)
    }

    /// A rank of which more than its collectives was recorded.
    pub fn recorded(&self) -> Option<&Member<'a>> {
        self.members.iter().find(|member| !member.rank.timeline.collectives_only)
    }
}

/// The stage of each rank that sends to one other or receives from one, as positions in the analysis; empty where none does.
pub fn numbers(analysis: &Analysis) -> BTreeMap<usize, usize> {
    let number = |at: &usize| analysis.ranks.get(*at).map_or(u32::MAX, |rank| rank.rank);
    let mut edges: Vec<(usize, usize)> = Vec::new();
    for group in analysis.job.groups.iter().filter(|group| group.is_pair && group.instances > 0) {
        if let [a, b] = group.ranks[..] {
            edges.push(if number(&a) <= number(&b) { (a, b) } else { (b, a) });
        }
    }
    edges.sort_unstable_by_key(|(a, b)| (number(a), number(b)));
    edges.dedup();
    let mut place: BTreeMap<usize, usize> = BTreeMap::new();
    for (from, to) in edges {
        let next = *place.entry(from).or_insert(0) + 1;
        let own = place.entry(to).or_insert(next);
        *own = next.max(*own);
    }
    place
}

/// The stages of the job in the order in which they send; empty where no rank sends to one other.
pub fn of<'a>(cx: &Context<'a>) -> Vec<Stage<'a>> {
    let mut stages: BTreeMap<usize, Vec<Member<'a>>> = BTreeMap::new();
    for (index, stage) in numbers(cx.analysis) {
        stages.entry(stage).or_default().extend(member(cx.analysis, cx, index));
    }
    stages.into_values().filter(|members| !members.is_empty()).map(|members| Stage { members }).collect()
}

/// Micro-batches of a step of training, by what the first stage exchanges with its neighbour in it: each is sent once. Where no name
/// tells sends from receives, the schedule does that runs one forward and one backward pass in turn: at first a stage sends as
/// often as stages follow it, at last it receives as often, and in between does both at once.
pub fn micro_batches(cx: &Context<'_>, stages: &[Stage<'_>]) -> Option<u64> {
    let first = stages.first()?.members.first().filter(|member| member.class.stage == platform::Stage::Train)?;
    let ops = || first.rank.steady_steps(first.class).flat_map(|step| step.ops.clone());
    let exchanged: FxHashSet<u32> = (cx.analysis.job.instances.iter())
        .filter(|instance| cx.analysis.job.groups.get(instance.group).is_some_and(|group| group.is_pair))
        .flat_map(|instance| &instance.members)
        .filter(|member| member.rank == first.index)
        .map(|member| member.op)
        .collect();
    let (mut sent, mut both) = (0, 0);
    for op in ops().filter(|op| u32::try_from(*op).is_ok_and(|op| exchanged.contains(&op))) {
        let name = first.rank.timeline.ops.get(op).map_or("", |op| cx.trace.strings.get(op.name));
        match job::sends(name) {
            Some(sends) => sent += u64::from(sends),
            None => both += 1,
        }
    }
    let steps = first.class.steady.max(1) as u64;
    let (sent, both, follow) = (sent / steps, both / steps, stages.len() as u64 - 1);
    let count = match (sent, both) {
        (0, both) if both >= 2 * follow => both - follow,
        (0, both) => both / 2,
        (sent, _) => sent,
    };
    (count > 0).then_some(count)
}

fn member<'a>(analysis: &'a Analysis, cx: &Context<'a>, index: usize) -> Option<Member<'a>> {
    let rank = analysis.ranks.get(index)?;
    let class = rank.main_class().filter(|class| class.steady > 0)?;
    let waits = rank.steady_steps(class).flat_map(|step| analysis.job.waits_in(index, &step.ops));
    let sent = |instance: usize| {
        let group = analysis.job.instances.get(instance).and_then(|i| analysis.job.groups.get(i.group));
        group.is_some_and(|group| group.is_pair)
    };
    let waited: Ns = waits.filter(|wait| sent(wait.instance)).map(|wait| wait.exposed).sum();
    let compute = match rank.timeline.collectives_only {
        true => summed(cx, rank.rank)?,
        false => class.per_step(|bucket| matches!(bucket, Bucket::Compute(_))),
    };
    Some(Member { index, rank, class, compute, bubble: waited / (class.steady as Ns) })
}

/// What the profiler summed of a rank's computing, ns per step.
fn summed(cx: &Context<'_>, rank: u32) -> Option<Ns> {
    let steps = cx.trace.job_sums.steps.iter().filter(|sum| sum.rank == rank);
    let times: Vec<Ns> = steps.filter_map(|sum| sum.part(StepPart::Computing)).collect();
    Some(times.iter().sum::<Ns>() / Ns::try_from(times.len()).ok().filter(|n| *n > 0)?)
}

/// What a slow stage computes beside the layers that another stage computes too.
#[derive(Default)]
pub struct Beyond {
    /// How many times the layers of the other stage it holds.
    pub layers: f64,
    /// What its layers take, ns per step.
    pub in_layers: Ns,
    /// What it computes beside them, ns per step.
    pub rest: Ns,
    /// The operators of that, those that take most first.
    pub operators: Vec<(CanonicalOp, Ns)>,
}

/// Parts of what is left of a stage below which an operator is not told.
const TOLD: Ns = 10;

/// Compares what two ranks compute in a step, kernel by kernel: kernels of layers run on both, as often as there are layers.
pub fn beyond(slow: &Member<'_>, fast: &Member<'_>) -> Beyond {
    let (own, other) = (kernels(slow), kernels(fast));
    // The ratio of layers is what most of the shared time agrees on.
    let mut ratios: Vec<(f64, Ns)> = own
        .iter()
        .filter_map(|(name, (_, count, ns))| Some((*count as f64 / other.get(name)?.1.max(1) as f64, *ns)))
        .collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = ratios.iter().map(|(_, ns)| ns).sum::<Ns>() / 2;
    let mut seen = 0;
    let middle = ratios.iter().find(|(_, ns)| {
        seen += ns;
        seen >= half
    });
    let Some((layers, _)) = middle.copied() else { return Beyond::default() };
    let mut left: BTreeMap<CanonicalOp, Ns> = BTreeMap::new();
    for (name, (op, _, ns)) in &own {
        let in_layers = other.get(name).map_or(0, |(_, _, theirs)| (*theirs as f64 * layers) as Ns);
        *left.entry(*op).or_default() += ns - in_layers;
    }
    let steps = slow.class.steady.max(1) as Ns;
    let rest: Ns = left.values().map(|ns| ns.max(&0)).sum::<Ns>() / steps;
    let mut operators: Vec<(CanonicalOp, Ns)> = left.into_iter().map(|(op, ns)| (op, ns / steps)).collect();
    operators.retain(|(_, ns)| *ns > 0 && *ns * TOLD >= rest);
    operators.sort_by_key(|(op, ns)| (std::cmp::Reverse(*ns), *op));
    Beyond { layers, in_layers: (slow.compute - rest).max(0), rest, operators }
}

/// Kernels that compute: operator, how often and for how long in the steps that count.
fn kernels(member: &Member<'_>) -> BTreeMap<StringId, (CanonicalOp, u64, Ns)> {
    let mut found: BTreeMap<StringId, (CanonicalOp, u64, Ns)> = BTreeMap::new();
    let ops = member.rank.steady_steps(member.class).flat_map(|step| member.rank.ops_of(step));
    for op in ops.filter(|op| op.kind == OpKind::Compute) {
        let (_, count, ns) = found.entry(op.name).or_insert((op.op, 0, 0));
        (*count, *ns) = (*count + 1, *ns + op.dur());
    }
    found
}
