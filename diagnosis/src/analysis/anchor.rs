//! Where steps begin, in the order of trust (method §2.2): annotations, token readbacks, graph launches, a device operation
//! that occurs once per step, the whole capture.

use std::collections::BTreeMap;

use model::{Category, Detail, Ns, ProcessId, Span, StringId, Trace, TrackKind};
use rustc_hash::FxHashMap;

use super::{
    bucket::CopyDir,
    forward_calls, loading, passes, sampled,
    timeline::{DeviceOp, OpKind, Timeline},
};
use crate::platform::{CanonicalOp, HostCall, Packs, StepLabel};

/// How sure a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// May be wrong.
    Low,
    /// Likely.
    Medium,
    /// Sure.
    High,
}

/// What marks the beginning of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnchorKind {
    /// A range that the engine annotated.
    UserRange,
    /// A sequence of the device's operations that is the whole work, repeated.
    Passes,
    /// A range of the name that somebody said.
    Asked,
    /// The blocking readback of the sampled token.
    TokenReadback,
    /// The launch of the decode graph.
    GraphLaunch,
    /// A device operation that occurs once per step.
    PeriodicOp,
    /// Nothing: one window over the whole capture.
    WholeCapture,
    /// A log that times whole steps.
    Log,
}

impl AnchorKind {
    /// Whether steps are ranges that somebody drew.
    pub fn is_range(self) -> bool {
        matches!(self, Self::UserRange | Self::Asked)
    }
}

/// How the steps of a rank were found.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Anchor {
    /// What marks them.
    pub kind: AnchorKind,
    /// The name of the mark (an annotation's engine, a kernel name).
    pub name: String,
    /// How sure it is.
    pub confidence: Confidence,
    /// Marks that began no step because no device operation followed from them.
    pub without_work: u32,
}

impl Anchor {
    /// Key in JSON, such as `user_range:vllm`.
    pub fn key(&self) -> String {
        let kind = match self.kind {
            AnchorKind::UserRange => "user_range",
            AnchorKind::Passes => "passes",
            AnchorKind::Asked => "asked",
            AnchorKind::TokenReadback => "token_readback",
            AnchorKind::GraphLaunch => "graph_launch",
            AnchorKind::PeriodicOp => "periodic_op",
            AnchorKind::WholeCapture => return "whole_capture".into(),
            AnchorKind::Log => return "log".into(),
        };
        format!("{kind}:{}", self.name)
    }
}

/// The beginning of one step.
#[derive(Clone, Debug)]
pub struct Mark {
    /// First device operation of the step.
    pub op: usize,
    /// What the mark is called.
    pub name: String,
    /// What the annotation says of the step.
    pub label: Option<StepLabel>,
    /// The annotated host range.
    pub host: Option<Span>,
}

/// Operations between sampling and the copy of its result: casts, gathers, a stack of results.
const LOOK_BACK: usize = 8;
/// Fewest occurrences that make a rhythm.
const MIN_MARKS: usize = 3;

/// Finds the steps of a rank, which are ranges called `asked` where that is given and the rank has any; marks are strictly
/// increasing in their operation.
pub fn find(
    trace: &Trace,
    packs: &Packs,
    asked: Option<&str>,
    timeline: &Timeline,
    (process, device): (ProcessId, i32),
) -> (Anchor, Vec<Mark>) {
    let of_steps = |(_, marks): &(Anchor, Vec<Mark>)| {
        let firsts: Vec<usize> = marks.iter().map(|mark| mark.op).collect();
        !forward_calls::hold_several(trace, process, timeline, &firsts) && !lie_at_the_end(timeline, marks)
    };
    let own = |asked: Option<&str>| user_ranges(trace, packs, asked, timeline, (process, device));
    asked
        .and_then(|name| own(Some(name)))
        .or_else(|| own(None))
        .or_else(|| token_readbacks(trace, timeline).filter(of_steps))
        .or_else(|| graph_launches(trace, timeline).filter(of_steps))
        .or_else(|| sampling(trace, timeline).filter(of_steps))
        .or_else(|| equal_passes(trace, timeline, process).filter(of_steps))
        .unwrap_or_else(|| {
            let anchor = Anchor {
                kind: AnchorKind::WholeCapture,
                name: String::new(),
                confidence: Confidence::Low,
                without_work: 0,
            };
            let op = loading::end(trace, timeline, process);
            (anchor, vec![Mark { op, name: "whole capture".into(), label: None, host: None }])
        })
}

/// Share of the kernels before the first mark, in percent, above which the marks belong to something else than the run. Heuristic: a
/// prefill has as many kernels as a few decode steps.
const AHEAD: usize = 80;

/// Whether most of what the device did lies before the first mark that was met.
fn lie_at_the_end(timeline: &Timeline, marks: &[Mark]) -> bool {
    let Some(met) = marks.iter().map(|mark| mark.op).find(|op| *op > 0) else { return false };
    let kernel = |op: &&DeviceOp| op.kind == OpKind::Compute;
    let all = timeline.ops.iter().filter(kernel).count();
    timeline.ops.iter().take(met).filter(kernel).count() * 100 > AHEAD * all
}

/// Keeps the marks whose operation comes after that of the mark before.
fn increasing(marks: Vec<Mark>) -> (Vec<Mark>, u32) {
    let (mut kept, mut dropped) = (Vec::<Mark>::new(), 0);
    for mark in marks {
        if kept.last().is_none_or(|last| last.op < mark.op) {
            kept.push(mark);
        } else {
            dropped += 1;
        }
    }
    (kept, dropped)
}

struct Range {
    span: Span,
    name: StringId,
    label: StepLabel,
    on_device: bool,
}

/// Whether a range is one of those called `mark`, which may be numbered: `step 12`, `ProfilerStep#12`.
fn is_called(text: &str, mark: &str) -> bool {
    let number = |rest: &str| {
        let digits = rest.trim_start_matches([' ', '#', '_', '-', ':', '.']);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    text.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || number(rest))
}

/// What a range says of its step where it is one because of its name.
fn unlabelled(packs: &Packs, text: &str) -> StepLabel {
    StepLabel { specificity: 0, ..packs.step_label(text).unwrap_or_default() }
}

fn user_ranges(
    trace: &Trace,
    packs: &Packs,
    asked: Option<&str>,
    timeline: &Timeline,
    (process, device): (ProcessId, i32),
) -> Option<(Anchor, Vec<Mark>)> {
    let mut labels: FxHashMap<StringId, Option<StepLabel>> = FxHashMap::default();
    let mut ranges = Vec::new();
    for (track, lane) in trace.tracks.iter().zip(&trace.lanes) {
        let on_device = match track.key.kind {
            TrackKind::HostThread | TrackKind::Global => false,
            TrackKind::DeviceAnnotation if track.key.device == Some(device) => true,
            _ => continue,
        };
        if track.key.process != process {
            continue;
        }
        for i in 0..lane.len() {
            let drawn = matches!(lane.category[i], Category::UserRange | Category::DeviceRange);
            // What somebody names may be any record of what a thread did.
            let named = asked.is_some() && matches!(lane.category[i], Category::FrameworkOp | Category::PythonFrame);
            if !(drawn || named) {
                continue;
            }
            let name = lane.name[i];
            let label = labels.entry(name).or_insert_with(|| {
                let text = trace.strings.get(name);
                match asked {
                    Some(mark) => is_called(text, mark).then(|| unlabelled(packs, text)),
                    // A warm-up step does not count.
                    None => packs.step_label(text).filter(|_| !loading::prepares(text)),
                }
            });
            if let Some(label) = label.clone() {
                ranges.push(Range { span: Span::new(lane.start[i], lane.end(i)), name, label, on_device });
            }
        }
    }
    let has_links = timeline.ops.iter().any(|op| op.call.is_some());
    // Host ranges say when work was launched; their projections are only needed where launches are unknown, and ranges that
    // the device alone has where the host has none.
    let on_device = !has_links || ranges.iter().all(|r| r.on_device);
    ranges.retain(|r| r.on_device == on_device);
    let best = ranges.iter().map(|r| r.label.specificity).max()?;
    ranges.retain(|r| r.label.specificity == best);
    ranges.sort_by_key(|r| (r.span.start, std::cmp::Reverse(r.span.end)));
    // Of nested annotations the inner one lies closer around the step's work: what an outer one spans besides may be
    // waiting for the step before.
    let mut inner: Vec<Range> = Vec::new();
    for range in ranges {
        while inner.last().is_some_and(|last| last.span.end >= range.span.end) {
            inner.pop();
        }
        if inner.last().is_none_or(|last| last.span.end <= range.span.start) {
            inner.push(range);
        }
    }
    let launched = launches_by_time(timeline);
    let total = inner.len();
    let marks: Vec<Mark> = inner
        .into_iter()
        .filter_map(|r| {
            let op = if r.on_device {
                let i = timeline.ops.partition_point(|op| op.start < r.span.start);
                timeline.ops.get(i).filter(|op| op.start < r.span.end).map(|_| i)?
            } else {
                let from = launched.partition_point(|(t, _)| *t < r.span.start);
                let to = launched.partition_point(|(t, _)| *t < r.span.end);
                launched.get(from..to)?.iter().map(|(_, op)| *op).min()?
            };
            let host = (!r.on_device).then_some(r.span);
            Some(Mark { op, name: trace.strings.get(r.name).to_owned(), label: Some(r.label), host })
        })
        .collect();
    let engine = marks.first()?.label.as_ref()?.engine.clone();
    let (kind, name) = match asked {
        Some(mark) => (AnchorKind::Asked, mark.to_owned()),
        None => (AnchorKind::UserRange, engine),
    };
    let without_work = (total - marks.len()) as u32;
    let (marks, dropped) = increasing(marks);
    // Engine annotations name the step itself; a generic profiler step may hold many decode steps.
    let confidence = if asked.is_some() || marks.iter().any(|m| m.label.as_ref().is_some_and(names_engine_step)) {
        Confidence::High
    } else {
        Confidence::Medium
    };
    let anchor = Anchor { kind, name, confidence, without_work: without_work + dropped };
    Some((anchor, marks))
}

fn names_engine_step(label: &StepLabel) -> bool {
    label.prefill_requests.is_some() || label.prefill_tokens.is_some() || label.decode_requests.is_some()
}

/// (start of launch call, operation) in order of the call.
fn launches_by_time(timeline: &Timeline) -> Vec<(Ns, usize)> {
    let mut out: Vec<(Ns, usize)> =
        timeline.ops.iter().enumerate().filter_map(|(i, op)| Some((timeline.call(op)?.start, i))).collect();
    out.sort_unstable();
    out
}

/// The end of a blocking copy to the host that follows a sampling operation is where the host learns the token.
fn token_readbacks(trace: &Trace, timeline: &Timeline) -> Option<(Anchor, Vec<Mark>)> {
    let launched = launches_by_time(timeline);
    let mut marks = Vec::new();
    for (i, op) in timeline.ops.iter().enumerate() {
        if op.kind != OpKind::Copy(CopyDir::DtoH) || bytes(trace, op) > MOST_BYTES {
            continue;
        }
        let Some(call) = timeline.call(op) else { continue };
        let Some(known) = boundary_of(timeline, op) else { continue };
        let before = timeline.ops.get(..i).unwrap_or(&[]).iter().rev().take(LOOK_BACK);
        let mut since =
            before.map(|b| (b, trace.strings.get(b.name))).take_while(|(_, name)| !sampled::counts_uniques(name));
        if !since.any(|(b, name)| b.op == CanonicalOp::Sample && !sampled::is_of_integers(name)) {
            continue;
        }
        let next = launched.partition_point(|(t, _)| *t < known.max(call.end));
        if let Some(op) = launched.get(next..).and_then(|rest| rest.iter().take(64).map(|(_, op)| *op).min()) {
            marks.push(Mark { op, name: "token readback".into(), label: None, host: None });
        }
    }
    let (marks, _) = increasing(marks);
    let marks = with_first(marks, timeline);
    (marks.len() > MIN_MARKS).then(|| {
        let anchor = Anchor {
            kind: AnchorKind::TokenReadback,
            name: "blocking copy to the host after sampling".into(),
            confidence: Confidence::Medium,
            without_work: 0,
        };
        (anchor, marks)
    })
}

/// Most bytes that sampled tokens take, 8 each: logits are more.
const MOST_BYTES: i64 = 131_072;

/// Bytes of a copy; 0 where the capture does not say.
fn bytes(trace: &Trace, op: &DeviceOp) -> i64 {
    let Some((track, row)) = trace.locate(op.slice) else { return 0 };
    match trace.lanes.get(track.0 as usize).and_then(|lane| trace.detail(lane, row)) {
        Some(Detail::Copy(copy)) => copy.bytes.unwrap_or(0),
        _ => 0,
    }
}

/// When the host is known to have the result of a copy: the end of the copy call if it blocked, else the end of the next
/// blocking synchronisation of that thread.
fn boundary_of(timeline: &Timeline, op: &DeviceOp) -> Option<Ns> {
    let index = op.call? as usize;
    let call = timeline.calls.get(index)?;
    if call.blocking {
        return Some(call.end);
    }
    let later = timeline.calls.get(index + 1..)?.iter().take(64);
    later.filter(|c| c.track == call.track).find(|c| c.kind.is_sync()).map(|c| c.end)
}

/// Adds a mark at the first operation, so that what precedes the first boundary is a step of its own.
fn with_first(mut marks: Vec<Mark>, timeline: &Timeline) -> Vec<Mark> {
    if marks.first().is_some_and(|m| m.op > 0) && !timeline.ops.is_empty() {
        marks.insert(0, Mark { op: 0, name: "before the first mark".into(), label: None, host: None });
    }
    marks
}

/// Graph launches: all of them where each replays a whole step, else those of the graph that occurs once per step.
fn graph_launches(trace: &Trace, timeline: &Timeline) -> Option<(Anchor, Vec<Mark>)> {
    let mut launches: Vec<(usize, (u32, StringId))> = Vec::new();
    for (i, op) in timeline.ops.iter().enumerate() {
        let graph = timeline.call(op).filter(|c| c.kind == HostCall::GraphLaunch && op.first_of_call);
        match graph {
            Some(call) => launches.push((i, (call.ops, op.name))),
            None if op.kind == OpKind::Opaque => launches.push((i, (1, op.name))),
            None => {}
        }
    }
    if launches.len() < MIN_MARKS {
        return None;
    }
    let mut positions: BTreeMap<(u32, StringId), Vec<usize>> = BTreeMap::new();
    for (position, (_, graph)) in launches.iter().enumerate() {
        positions.entry(*graph).or_default().push(position);
    }
    let rarest = positions.values().filter(|p| p.len() >= MIN_MARKS).min_by_key(|p| (p.len(), p[0]))?;
    let strides: Vec<usize> = rarest.windows(2).map(|w| w[1] - w[0]).collect();
    let piecewise = strides[0] > 1 && strides.iter().all(|s| *s == strides[0]);
    let chosen: Vec<usize> = if piecewise { rarest.clone() } else { (0..launches.len()).collect() };
    let marks = chosen.into_iter().filter_map(|p| launches.get(p)).map(|(op, (_, name))| Mark {
        op: *op,
        name: format!("graph launch: {}", trace.strings.get(*name)),
        label: None,
        host: None,
    });
    let (marks, _) = increasing(marks.collect());
    let anchor = Anchor {
        kind: AnchorKind::GraphLaunch,
        name: if piecewise { "first piece of the step".into() } else { "one replay per step".into() },
        confidence: if piecewise { Confidence::Medium } else { Confidence::High },
        without_work: 0,
    };
    Some((anchor, with_first(marks, timeline)))
}

/// Steps are equal passes, where nothing marks them.
fn equal_passes(trace: &Trace, timeline: &Timeline, process: ProcessId) -> Option<(Anchor, Vec<Mark>)> {
    let firsts = passes::firsts(timeline, loading::end(trace, timeline, process))?;
    let mark = |op| Mark { op, name: "pass".into(), label: None, host: None };
    let name = format!("{} alike", firsts.len());
    let anchor = Anchor { kind: AnchorKind::Passes, name, confidence: Confidence::Medium, without_work: 0 };
    Some((anchor, firsts.into_iter().map(mark).collect()))
}

/// Steps end with the last sampling operation of a run of them.
fn sampling(trace: &Trace, timeline: &Timeline) -> Option<(Anchor, Vec<Mark>)> {
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, op) in timeline.ops.iter().enumerate().filter(|(_, op)| op.op == CanonicalOp::Sample) {
        let name = trace.strings.get(op.name);
        let next = || timeline.ops.get(i + 1..).unwrap_or(&[]).iter().take(LOOK_BACK);
        if !sampled::is_of_integers(name) && !next().any(|op| sampled::counts_uniques(trace.strings.get(op.name))) {
            by_name.entry(name).or_default().push(i);
        }
    }
    let (name, occurrences) =
        by_name.into_iter().filter(|(_, o)| o.len() >= MIN_MARKS).min_by_key(|(name, o)| (o.len(), *name))?;
    let marks = occurrences.iter().filter_map(|i| {
        let rest = timeline.ops.get(i + 1..)?;
        let ahead = rest.iter().position(|op| op.op != CanonicalOp::Sample && op.kind == OpKind::Compute)?;
        Some(Mark { op: i + 1 + ahead, name: "after sampling".into(), label: None, host: None })
    });
    let (marks, _) = increasing(marks.collect());
    let anchor =
        Anchor { kind: AnchorKind::PeriodicOp, name: name.to_owned(), confidence: Confidence::Medium, without_work: 0 };
    let marks = with_first(marks, timeline);
    (marks.len() > MIN_MARKS).then_some((anchor, marks))
}
