//! Kinds of steps: what makes two steps comparable, which of them count, and their statistics.

use std::collections::BTreeMap;

use model::{Ns, Span};

use super::{
    anchor::Mark,
    bucket::{Bucket, Shadow},
    jitter,
    model::{Class, GraphMode, Options, Selection, Step},
    scheduler::Series,
    timeline::{DeviceOp, OpKind, Timeline},
};
use crate::platform::{CanonicalOp, HostCall, Stage, StepLabel};

/// What is known of a step before classes exist.
pub struct Draft {
    /// No mark was found: the window is the capture, not a step.
    whole: bool,
    /// Most of the window lies inside graph captures, in which launches run nothing.
    captures: bool,
    stage: Stage,
    batch: Option<u32>,
    prefill_requests: Option<u32>,
    prefill_tokens: Option<u32>,
    context_per_sequence: Option<u64>,
    graph: GraphMode,
    ops: usize,
    rows: Option<u64>,
}

impl Draft {
    /// Reads a step's annotation and, where it is silent, its kernels and the `rows` that their launches show.
    /// `tokens` is what the engine counts of its steps, if it does, and `usual` what all steps of the run are known to be.
    pub fn new(
        mark: &Mark,
        (ops, rows): (&[DeviceOp], Option<u64>),
        timeline: &Timeline,
        tokens: Option<&Series>,
        usual: Stage,
        whole: bool,
    ) -> Self {
        let label = mark.label.as_ref();
        let said = label.map_or(Stage::Unknown, |l| l.stage);
        let batch = label.and_then(|l| l.decode_requests).filter(|n| *n > 0);
        let stage = match said {
            Stage::Unknown if usual == Stage::Train => usual,
            Stage::Unknown => match stage_of_kernels(ops) {
                Stage::Unknown => usual,
                told => told,
            },
            known => known,
        };
        // A step of decode only has a token per sequence.
        let counted = tokens.and_then(|tokens| tokens.of_step(timeline, ops));
        let counted = counted.filter(|n| stage == Stage::Decode && (1.0..1e9).contains(n)).map(|n| n as u32);
        let batch = batch.or(counted);
        Self {
            whole,
            captures: captures_graphs(ops, timeline),
            stage,
            batch,
            prefill_requests: label.and_then(|l| l.prefill_requests).filter(|n| *n > 0),
            prefill_tokens: label.and_then(|l| l.prefill_tokens).filter(|n| *n > 0),
            context_per_sequence: label
                .and_then(|l| l.context_tokens)
                .zip(batch)
                .map(|(tokens, batch)| tokens / u64::from(batch)),
            graph: graph_mode(ops, timeline),
            ops: ops.len(),
            rows,
        }
    }

    /// A step that a log times: what the log says of it.
    pub fn logged(label: &StepLabel, graph: GraphMode) -> Self {
        let batch = label.decode_requests.filter(|n| *n > 0);
        Self {
            whole: false,
            captures: false,
            stage: label.stage,
            batch,
            prefill_requests: label.prefill_requests.filter(|n| *n > 0),
            prefill_tokens: label.prefill_tokens.filter(|n| *n > 0),
            context_per_sequence: label.context_tokens.zip(batch).map(|(tokens, batch)| tokens / u64::from(batch)),
            graph,
            ops: 0,
            rows: None,
        }
    }

    /// Class key of the step, but for its size.
    pub fn kind(&self) -> String {
        self.key(Size::default())
    }

    fn key(&self, size: Size) -> String {
        let mut key = match self.stage {
            _ if self.whole => "capture".to_owned(),
            Stage::Unknown => "step".to_owned(),
            stage => stage.name().to_owned(),
        };
        if let Some(batch) = self.batch {
            key += &format!(" b={batch}");
        }
        if let Some(requests) = self.prefill_requests.filter(|_| self.stage == Stage::Prefill) {
            key += &format!(" b={requests}");
        }
        if let Some(tokens) = self.prefill_tokens {
            let name = if self.stage == Stage::Prefill { "tokens" } else { "prefill" };
            key += &format!(" {name}={tokens}");
        }
        if let Some(context) = self.context_per_sequence.filter(|c| *c > 0) {
            // Context grows by a token per step: powers of two keep neighbouring steps together.
            key += &format!(" ctx≥{}", 1u64 << context.ilog2());
        }
        if let Some(rows) = size.rows {
            key += &format!(" rows≈{rows}");
        }
        if let Some(ops) = size.ops {
            key += &format!(" ops≈{ops}");
        }
        let graph = match self.graph {
            GraphMode::Eager if self.captures => "capturing",
            GraphMode::Eager => "eager",
            GraphMode::Piecewise => "piecewise",
            GraphMode::Full => "full",
            GraphMode::Unknown => return key,
        };
        format!("{key} graph={graph}")
    }
}

/// Attention kernels made for one stage tell the stage; anything else does not.
fn stage_of_kernels(ops: &[DeviceOp]) -> Stage {
    let has = |op: CanonicalOp| ops.iter().any(|o| o.op == op);
    match (has(CanonicalOp::AttnPrefill), has(CanonicalOp::AttnDecode)) {
        (true, true) => Stage::Mixed,
        (true, false) => Stage::Prefill,
        (false, true) => Stage::Decode,
        (false, false) => Stage::Unknown,
    }
}

/// Whether more than half of the time from the first operation to the last lies inside graph captures.
fn captures_graphs(ops: &[DeviceOp], timeline: &Timeline) -> bool {
    let Some(first) = ops.first() else { return false };
    let window = Span::new(first.start, ops.iter().map(|op| op.end).max().unwrap_or(first.start));
    2 * timeline.capturing.iter().map(|span| span.clip(window).len()).sum::<Ns>() > window.len()
}

/// Share of a step's kernels that a single graph launch must hold for the step to count as one full graph; sampling and
/// input copies stay outside even then.
const FULL_GRAPH_SHARE: f64 = 0.8;
/// Share from which graph launches matter at all.
const PIECEWISE_SHARE: f64 = 0.2;

fn graph_mode(ops: &[DeviceOp], timeline: &Timeline) -> GraphMode {
    // Replays whose operators nobody tells: one has the whole step, several have pieces of it.
    match ops.iter().filter(|op| op.kind == OpKind::Opaque).count() {
        0 => (),
        1 => return GraphMode::Full,
        _ => return GraphMode::Piecewise,
    }
    let mut by_call: BTreeMap<u32, usize> = BTreeMap::new();
    for op in ops {
        let graph = timeline.call(op).filter(|c| c.kind == HostCall::GraphLaunch);
        if let (Some(_), Some(call)) = (graph, op.call) {
            *by_call.entry(call).or_default() += 1;
        }
    }
    let share = |n: usize| n as f64 / ops.len().max(1) as f64;
    let largest = by_call.values().copied().max().unwrap_or(0);
    let all: usize = by_call.values().sum();
    match () {
        () if share(largest) >= FULL_GRAPH_SHARE => GraphMode::Full,
        () if share(all) >= PIECEWISE_SHARE => GraphMode::Piecewise,
        () => GraphMode::Eager,
    }
}

/// Step sizes within this factor of each other are one kind of step where no annotation says more.
const SAME_SIZE: f64 = 1.15;

/// What tells steps apart that no annotation tells apart: the least of their group, where there are several groups.
#[derive(Clone, Copy, Default)]
struct Size {
    /// Rows that the kernels work on.
    rows: Option<u64>,
    /// Operations.
    ops: Option<u64>,
}

/// Class key of every step: annotated facts, and its size where there are none.
fn keys(drafts: &[Draft]) -> Vec<String> {
    let alike = vec![Size::default(); drafts.len()];
    let by_rows = told_apart(drafts, &alike, |draft| draft.rows);
    let by_rows: Vec<Size> = by_rows.into_iter().map(|rows| Size { rows, ops: None }).collect();
    let by_ops = told_apart(drafts, &by_rows, |draft| Some(draft.ops as u64));
    drafts.iter().zip(by_rows.iter().zip(by_ops)).map(|(draft, (size, ops))| draft.key(Size { ops, ..*size })).collect()
}

/// Cuts the steps that have the same key so far by a measure of them: for each the least value of its group, if its key has
/// several groups.
fn told_apart(drafts: &[Draft], so_far: &[Size], of: impl Fn(&Draft) -> Option<u64>) -> Vec<Option<u64>> {
    let value = |draft: &Draft| of(draft).filter(|_| needs_size(draft));
    let keys: Vec<String> = drafts.iter().zip(so_far).map(|(draft, size)| draft.key(*size)).collect();
    let mut values: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (draft, key) in drafts.iter().zip(&keys) {
        values.entry(key).or_default().extend(value(draft));
    }
    for list in values.values_mut() {
        list.sort_unstable();
        let mut groups: Vec<u64> = Vec::new();
        for value in list.iter() {
            if groups.last().is_none_or(|least| *value as f64 > *least as f64 * SAME_SIZE) {
                groups.push(*value);
            }
        }
        *list = groups;
    }
    let group = |(draft, key): (&Draft, &String)| {
        let (groups, value) = (values.get(key.as_str()).filter(|groups| groups.len() > 1)?, value(draft)?);
        groups.iter().rev().find(|least| **least <= value).copied()
    };
    drafts.iter().zip(&keys).map(group).collect()
}

fn needs_size(draft: &Draft) -> bool {
    draft.batch.is_none() && draft.prefill_tokens.is_none()
}

/// Gives every step its class and decides which steps count; `compiling` says whether a step holds compilation.
pub fn select(steps: &mut [Step], drafts: &[Draft], compiling: &dyn Fn(&Step) -> bool, options: &Options) {
    let keys = keys(drafts);
    let mut order: Vec<&String> = keys.iter().collect();
    order.sort();
    order.dedup();
    for (step, key) in steps.iter_mut().zip(&keys) {
        step.class = order.binary_search(&key).unwrap_or(0);
    }
    for class in 0..order.len() {
        let members: Vec<usize> = (0..steps.len()).filter(|i| steps[*i].class == class).collect();
        select_class(steps, &members, compiling);
    }
    for step in steps.iter_mut() {
        if options.steps.is_some_and(|(from, to)| step.index < from || step.index > to) {
            step.selection = Selection::NotAsked;
        }
    }
}

/// Takes out what precedes the first mark and what follows the last one where the windows go from mark to mark.
pub fn leave_unfinished(steps: &mut [Step]) {
    let last = steps.len().saturating_sub(1);
    for (i, step) in steps.iter_mut().enumerate() {
        // Before the first mark there is no complete step either.
        let partial = i == 0 && last > 0 && step.label == "before the first mark";
        if partial && step.selection == Selection::Steady {
            step.selection = Selection::Unfinished;
        }
    }
    if let Some(tail) = steps.last().filter(|_| last > 0).cloned() {
        let others = steps.iter().take(last).any(|s| s.class == tail.class && s.selection == Selection::Steady);
        if let Some(step) = steps.last_mut().filter(|s| others && s.selection == Selection::Steady) {
            step.selection = Selection::Unfinished;
        }
    }
}

/// Relative change of the step time below which a run has settled (rule RT-23 uses the same 3 %).
pub(super) const SETTLED: f64 = 0.03;
/// A first step this much slower than the median is warm-up even in a run too short for a change-point test.
const SLOW_START: f64 = 1.5;
/// Fewest steps for a change-point test.
const MIN_FOR_CHANGE_POINT: usize = 8;

fn select_class(steps: &mut [Step], members: &[usize], compiling: &dyn Fn(&Step) -> bool) {
    // Only at the start of the run: later compilation is a finding, not warm-up.
    let mut rest = members;
    while rest.len() > 2 && compiling(&steps[rest[0]]) {
        steps[rest[0]].selection = Selection::Compiling;
        rest = &rest[1..];
    }
    let times: Vec<Ns> = rest.iter().map(|i| steps[*i].window.len()).collect();
    for i in rest.iter().take(warm_up(&times)) {
        steps[*i].selection = Selection::WarmUp;
    }
}

/// Number of leading steps before the step time settles: the first position from which a block's median lies within 3 %
/// (or within the spread) of the median of the second half. At most half of the steps.
fn warm_up(times: &[Ns]) -> usize {
    let n = times.len();
    if n < 3 {
        return 0;
    }
    if n < MIN_FOR_CHANGE_POINT {
        let rest = median(&times[1..]) as f64;
        return usize::from(times[0] as f64 > SLOW_START * rest);
    }
    let half = &times[n / 2..];
    let settled = median(half) as f64;
    let spread = median(&half.iter().map(|t| (*t as f64 - settled).abs() as Ns).collect::<Vec<_>>()) as f64;
    // Three median absolute deviations hold nearly all of a settled run's steps.
    let tolerance = (SETTLED * settled).max(3.0 * spread);
    let block = (n / 10).max(3);
    (0..n / 2)
        .find(|k| {
            let ahead = median(&times[*k..(*k + block).min(n)]) as f64;
            (ahead - settled).abs() <= tolerance && (times[*k] as f64 - settled) <= settled * (SLOW_START - 1.0)
        })
        .unwrap_or(n / 2)
}

/// Lower median.
pub fn median(values: &[Ns]) -> Ns {
    percentile(&mut values.to_vec(), 50)
}

/// Nearest-rank percentile.
fn percentile(values: &mut [Ns], p: usize) -> Ns {
    values.sort_unstable();
    let rank = (values.len() * p).div_ceil(100).clamp(1, values.len().max(1));
    values.get(rank - 1).copied().unwrap_or(0)
}

/// Statistics per class, ordered by total time; step class indices are renumbered to that order.
pub fn summarize(steps: &mut [Step], drafts: &[Draft]) -> Vec<Class> {
    let keys = keys(drafts);
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (i, step) in steps.iter().enumerate() {
        groups.entry(step.class).or_default().push(i);
    }
    let mut classes: Vec<Class> = groups
        .into_iter()
        .map(|(index, members)| class_of(index, &keys[members[0]], &drafts[members[0]], steps, &members))
        .collect();
    classes.sort_by_key(|c| (std::cmp::Reverse(c.total), c.index));
    let place: BTreeMap<usize, usize> = classes.iter().enumerate().map(|(new, c)| (c.index, new)).collect();
    for step in steps.iter_mut() {
        step.class = place.get(&step.class).copied().unwrap_or(0);
    }
    for (new, class) in classes.iter_mut().enumerate() {
        class.index = new;
    }
    classes
}

fn class_of(index: usize, key: &str, draft: &Draft, steps: &[Step], members: &[usize]) -> Class {
    let steady: Vec<&Step> = members.iter().map(|i| &steps[*i]).filter(|s| s.selection == Selection::Steady).collect();
    let timed: Vec<&Step> =
        if steady.is_empty() { members.iter().map(|i| &steps[*i]).collect() } else { steady.clone() };
    let mut times: Vec<Ns> = timed.iter().map(|s| s.window.len()).collect();
    let mut buckets: BTreeMap<Bucket, Ns> = BTreeMap::new();
    let mut shadow: BTreeMap<Shadow, Ns> = BTreeMap::new();
    for step in &steady {
        step.buckets.iter().for_each(|(b, ns)| *buckets.entry(*b).or_default() += ns);
        step.shadow.iter().for_each(|(s, ns)| *shadow.entry(*s).or_default() += ns);
    }
    let [p50, p95, p99] = [50, 95, 99].map(|p| percentile(&mut times, p));
    Class {
        index,
        key: key.to_owned(),
        stage: draft.stage,
        batch: draft.batch,
        graph: draft.graph,
        count: members.len(),
        steady: steady.len(),
        p50,
        p95,
        p99,
        total: steady.iter().map(|s| s.window.len()).sum(),
        buckets: buckets.into_iter().collect(),
        shadow: shadow.into_iter().collect(),
        jitter: jitter::jitter(&steady, p50, p99),
    }
}
