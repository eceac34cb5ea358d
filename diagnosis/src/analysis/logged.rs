//! Steps that a log times: their length is known, what they were spent on is not, but for compilation that the log names.

use std::collections::BTreeMap;

use model::{Category, Ns, ProcessId, SliceId, Span, StringId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    anchor::{Anchor, AnchorKind, Confidence},
    bucket::Bucket,
    class_keys::Key,
    classes,
    collective::Split,
    idle::Gap,
    launching::Launching,
    model::{Facts, GraphMode, Options, Rank, Selection, Step},
    step_facts::Draft,
    timeline::Timeline,
};
use crate::platform::{HostCall, Packs, StepLabel};

/// Who draws the ranges of logged steps.
const ENGINE: &str = "log";

/// What the log says of one rank.
#[derive(Default)]
struct Logged {
    steps: Vec<(Span, StringId, StepLabel, SliceId)>,
    /// Compilations and graph captures.
    stalls: Vec<(Span, HostCall)>,
}

/// The ranks of which a log tells steps; those in `known` have device work, which tells more.
pub(super) fn ranks(trace: &Trace, packs: &Packs, options: &Options, known: &FxHashSet<ProcessId>) -> Vec<Rank> {
    let mut names: FxHashMap<StringId, (Option<StepLabel>, HostCall)> = FxHashMap::default();
    let mut found: BTreeMap<ProcessId, Logged> = BTreeMap::new();
    for (track, lane) in trace.tracks.iter().zip(&trace.lanes).filter(|(t, _)| !known.contains(&t.key.process)) {
        for i in (0..lane.len()).filter(|i| lane.category[*i] == Category::UserRange) {
            let (label, call) = names.entry(lane.name[i]).or_insert_with(|| {
                let name = trace.strings.get(lane.name[i]);
                (packs.step_label(name).filter(|label| label.engine == ENGINE), packs.host_call(name))
            });
            let logged = found.entry(track.key.process).or_default();
            let span = Span::new(lane.start[i], lane.end(i));
            match label {
                Some(label) => logged.steps.push((span, lane.name[i], label.clone(), lane.id(i))),
                None if matches!(call, HostCall::Compile | HostCall::GraphCapture) => logged.stalls.push((span, *call)),
                None => {}
            }
        }
    }
    let ranks = found.into_iter().filter(|(_, logged)| !logged.steps.is_empty()).zip(0u32..);
    let ranks = ranks.map(|((process, logged), position)| {
        let said = trace.processes.get(process.0 as usize).and_then(|p| p.rank);
        (said.unwrap_or(position), process, logged)
    });
    let wanted = ranks.filter(|(rank, ..)| options.rank.is_none_or(|wanted| wanted == *rank));
    wanted.map(|(rank, process, logged)| build(trace, options, rank, process, logged)).collect()
}

fn build(trace: &Trace, options: &Options, rank: u32, process: ProcessId, mut logged: Logged) -> Rank {
    logged.steps.sort_by_key(|(span, _, _, slice)| (span.start, *slice));
    logged.stalls.sort_unstable_by_key(|(span, _)| *span);
    let drafts: Vec<_> = logged.steps.iter().map(|(_, _, label, _)| Draft::logged(label, mode(label))).collect();
    let mut steps: Vec<Step> = logged
        .steps
        .iter()
        .zip(0u32..)
        .map(|((span, name, ..), index)| Step {
            index,
            window: *span,
            host: Some(*span),
            class: 0,
            label: trace.strings.get(*name).to_owned(),
            facts: Facts::UNKNOWN,
            ops: 0..0,
            rows: None,
            selection: Selection::Steady,
            buckets: Vec::new(),
            shadow: Vec::new(),
        })
        .collect();
    steps.iter_mut().zip(&drafts).for_each(|(step, draft)| step.facts = draft.facts);
    let mut gaps = Vec::new();
    let mut compiling = vec![false; steps.len()];
    let usual = usual(&logged, &drafts);
    let kinds = drafts.iter().map(Key::exact);
    let mut stalls = logged.stalls.iter().peekable();
    for (((step, (_, _, label, _)), compiles), kind) in
        steps.iter_mut().zip(&logged.steps).zip(&mut compiling).zip(kinds)
    {
        while stalls.next_if(|(stall, _)| stall.start < step.window.start).is_some() {}
        let mut parts = Vec::new();
        let mut end = step.window.start;
        while let Some((stall, _)) = stalls.next_if(|(stall, _)| stall.start < step.window.end) {
            let part = Span::new(stall.start.max(end), stall.end.min(step.window.end));
            end = end.max(part.end);
            parts.push((Bucket::Compile, part));
        }
        *compiles = !parts.is_empty() || label.compile_hit == Some(false);
        if parts.is_empty() && label.compile_hit == Some(false) {
            // The log says that the step compiled and not for how long: what it took beyond its like.
            let usual = usual.get(&kind).copied().unwrap_or(step.window.len());
            let beyond = step.window.len().saturating_sub(usual).max(0);
            parts.push((Bucket::Compile, Span::new(step.window.start, step.window.start.saturating_add(beyond))));
        }
        parts.retain(|(_, span)| !span.is_empty());
        let known: Ns = parts.iter().map(|(_, span)| span.len()).sum();
        step.buckets = [(Bucket::Compile, known), (Bucket::Unseen, step.window.len() - known)]
            .into_iter()
            .filter(|(_, ns)| *ns > 0)
            .collect();
        if let (Some(first), Some(last)) = (parts.first(), parts.last()) {
            let span = Span::new(first.1.start, last.1.end);
            gaps.push(Gap { span, owner: None, step: step.index, parts, after_sync: false, between_steps: false });
        }
    }
    let compiles = |step: &Step| compiling.get(step.index as usize).copied().unwrap_or(false);
    classes::select(&mut steps, &drafts, &compiles, options);
    let (classes, _) = classes::summarize(&mut steps, &drafts);
    let captures = logged.stalls.iter().filter(|(_, call)| *call == HostCall::GraphCapture).map(|(span, _)| *span);
    let timeline = Timeline { capturing: captures.collect(), ..Timeline::default() };
    Rank {
        rank,
        process,
        device: 0,
        collectives: Split::estimate(trace, &timeline),
        timeline,
        launching: Launching::default(),
        anchor: Anchor { kind: AnchorKind::Log, name: ENGINE.into(), confidence: Confidence::Low, without_work: 0 },
        steps,
        classes,
        gaps,
        exclusive: Vec::new(),
        period: None,
        owners: Default::default(),
        lead: None,
    }
}

/// Median time of the steps that found compiled code, by class, ns.
fn usual(logged: &Logged, drafts: &[Draft]) -> BTreeMap<Key, Ns> {
    let mut times: BTreeMap<Key, Vec<Ns>> = BTreeMap::new();
    for ((span, _, label, _), draft) in logged.steps.iter().zip(drafts) {
        if label.compile_hit == Some(true) {
            times.entry(Key::exact(draft)).or_default().push(span.len());
        }
    }
    times.into_iter().map(|(kind, times)| (kind, classes::median(&times))).collect()
}

fn mode(label: &StepLabel) -> GraphMode {
    match label.graph.as_deref() {
        Some("eager") => GraphMode::Eager,
        Some("piecewise") => GraphMode::Piecewise,
        Some("full") => GraphMode::Full,
        _ => GraphMode::Unknown,
    }
}
