//! What is known of the work of a step before classes exist: its annotation and, where that is silent, its kernels.

use std::collections::BTreeMap;

use model::{Ns, Span};

use super::{
    anchor::Mark,
    model::{Facts, GraphMode},
    scheduler::Series,
    timeline::{DeviceOp, OpKind, Timeline},
};
use crate::platform::{CanonicalOp, HostCall, Stage, StepLabel};

/// What is known of a step before classes exist.
pub struct Draft {
    /// No mark was found: the window is the capture, not a step.
    pub(super) whole: bool,
    /// Most of the window lies inside graph captures, in which launches run nothing.
    pub(super) captures: bool,
    /// Its work.
    pub facts: Facts,
    /// Operations.
    pub(super) ops: usize,
    /// Rows that the kernels work on, padding included.
    pub(super) rows: Option<u64>,
    /// Sequences, where the launches of a step that decodes show as many as tokens.
    sequences: Option<u32>,
}

/// Takes the sequences of steps that decode from their launches, where no step of the run says how many they are and all of
/// them show it: a batch that is known of some steps only would tell apart what is alike.
pub fn settle(drafts: &mut [Draft]) {
    let decodes = |draft: &&mut Draft| draft.facts.stage == Stage::Decode;
    let all = drafts.iter_mut().filter(decodes).all(|draft| draft.facts.batch.is_none() && draft.sequences.is_some());
    for draft in drafts.iter_mut().filter(|draft| all && decodes(draft)) {
        draft.facts.batch = draft.sequences;
    }
}

/// What the launches of a step show: the rows of its kernels, and its tokens and sequences where these tell them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Launched {
    /// Rows that the kernels work on, padding included.
    pub rows: Option<u64>,
    /// Tokens and sequences.
    pub work: Option<(u64, u64)>,
}

/// Tokens per sequence from which a step reads prompts: a decode step has one, or a few that were drafted; own value.
const PROMPT: u64 = 16;

impl Draft {
    /// Reads a step's annotation and, where it is silent, its kernels and what their launches show. `tokens` is what the
    /// engine counts of its steps, if it does, and `usual` what all steps of the run are known to be.
    pub fn new(
        mark: &Mark,
        (ops, launched): (&[DeviceOp], Launched),
        timeline: &Timeline,
        tokens: Option<&Series>,
        usual: Stage,
        whole: bool,
    ) -> Self {
        let label = mark.label.as_ref();
        let said = label.map_or(Stage::Unknown, |l| l.stage);
        let batch = label.and_then(|l| l.decode_requests).filter(|n| *n > 0);
        let graph = graph_mode(ops, timeline, mark);
        // Prompts have any length: one graph holds a whole step only where each sequence has a token.
        let replays = || (graph == GraphMode::Full && launched.rows.is_some()).then_some(Stage::Decode);
        let stage = match said {
            Stage::Unknown if usual == Stage::Train => usual,
            Stage::Unknown => {
                match stage_of_launches(launched.work).or_else(replays).unwrap_or_else(|| stage_of_kernels(ops)) {
                    Stage::Unknown => usual,
                    told => told,
                }
            }
            known => known,
        };
        // A step of decode only has a token per sequence.
        let counted = tokens.and_then(|tokens| tokens.of_step(timeline, ops));
        let counted = counted.filter(|n| stage == Stage::Decode && (1.0..1e9).contains(n)).map(|n| n as u32);
        let batch = batch.or(counted);
        let read = launched.work.filter(|_| stage == Stage::Prefill && said == Stage::Unknown);
        Self {
            whole,
            captures: captures_graphs(ops, timeline),
            facts: Facts {
                stage,
                batch,
                prefill_requests: label.and_then(|l| l.prefill_requests).filter(|n| *n > 0),
                prefill_tokens: label
                    .and_then(|l| l.prefill_tokens)
                    .filter(|n| *n > 0)
                    .or_else(|| u32::try_from(read?.0).ok()),
                context: label
                    .and_then(|l| l.context_tokens)
                    .zip(batch)
                    .map(|(tokens, batch)| tokens / u64::from(batch)),
                graph,
            },
            ops: ops.len(),
            rows: launched.rows,
            sequences: launched.work.filter(|(tokens, all)| tokens == all).and_then(|(n, _)| u32::try_from(n).ok()),
        }
    }

    /// A step that a log times: what the log says of it.
    pub fn logged(label: &StepLabel, graph: GraphMode) -> Self {
        let batch = label.decode_requests.filter(|n| *n > 0);
        Self {
            whole: false,
            captures: false,
            facts: Facts {
                stage: label.stage,
                batch,
                prefill_requests: label.prefill_requests.filter(|n| *n > 0),
                prefill_tokens: label.prefill_tokens.filter(|n| *n > 0),
                context: label.context_tokens.zip(batch).map(|(tokens, batch)| tokens / u64::from(batch)),
                graph,
            },
            ops: 0,
            rows: None,
            sequences: None,
        }
    }
}

/// The stage that tokens and sequences of a step tell. Between a few tokens per sequence, as speculation drafts them, and a
/// prompt nobody can tell a short prompt from a mix.
fn stage_of_launches(work: Option<(u64, u64)>) -> Option<Stage> {
    let (tokens, sequences) = work?;
    match () {
        // A graph may pad the rows to the next captured size.
        () if tokens <= 2 * sequences => Some(Stage::Decode),
        () if tokens >= sequences.saturating_mul(PROMPT) => Some(Stage::Prefill),
        () => None,
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

/// How much of a step its graph launches hold: by the launches that are linked, else by the node ids of the operations. A
/// graph launch of whose work nothing was recorded is a graph launch all the same: without its operations nobody can say what
/// share it has.
fn graph_mode(ops: &[DeviceOp], timeline: &Timeline, mark: &Mark) -> GraphMode {
    // Replays whose operators nobody tells: one has the whole step, several have pieces of it.
    match ops.iter().filter(|op| op.kind == OpKind::Opaque).count() {
        0 => (),
        1 => return GraphMode::Full,
        _ => return GraphMode::Piecewise,
    }
    let mut by_call: BTreeMap<u32, usize> = BTreeMap::new();
    let mut nodes = 0;
    for op in ops {
        let graph = timeline.call(op).filter(|c| c.kind == HostCall::GraphLaunch);
        match (graph, op.call) {
            (Some(_), Some(call)) => *by_call.entry(call).or_default() += 1,
            _ if op.in_graph => nodes += 1,
            _ => {}
        }
    }
    let share = |n: usize| n as f64 / ops.len().max(1) as f64;
    let largest = by_call.values().copied().max().unwrap_or(0);
    let all: usize = by_call.values().sum::<usize>() + nodes;
    let unseen = || lost_launches(ops, timeline, mark) > 0;
    match () {
        // Where no launch is linked at all, nodes are all that is known: of one replay as far as anyone can tell.
        () if share(largest) >= FULL_GRAPH_SHARE || (by_call.is_empty() && share(nodes) >= FULL_GRAPH_SHARE) => {
            GraphMode::Full
        }
        () if all > 0 || unseen() => GraphMode::Piecewise,
        // What else ran, and how, was not recorded.
        () if timeline.collectives_only => GraphMode::Unknown,
        () => GraphMode::Eager,
    }
}

/// Graph launches of a step of whose work no record exists.
fn lost_launches(ops: &[DeviceOp], timeline: &Timeline, mark: &Mark) -> usize {
    let launched = || ops.iter().filter_map(|op| timeline.call(op)).map(|call| call.start);
    let span = mark.host.or_else(|| Some(Span::new(launched().min()?, launched().max()?)));
    let Some(span) = span else { return 0 };
    let lost = &timeline.unrecorded_graphs;
    lost.partition_point(|t| *t < span.end) - lost.partition_point(|t| *t < span.start)
}
