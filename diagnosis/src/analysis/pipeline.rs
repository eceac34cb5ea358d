//! Who orders the analysis: names, what each rank's device did, what the ranks did together, then steps and attribution.

use std::sync::Arc;

use model::{Category, Ns, ProcessId, Span, StringId, Trace, TrackKind};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    anchor::{self, AnchorKind, Mark},
    attribution,
    class_keys::Key,
    classes, clock,
    collective::Split,
    convolved, device_waits, evidence,
    graph_capture::{Tracks, range_at},
    graph_holes,
    host::{HostStates, Labels},
    idle::Explainer,
    integrity::Integrity,
    launch_shape,
    launching::{Launching, Recorded},
    lead::Lead,
    logged,
    loss::Loss,
    matching,
    measured::Measured,
    median::median,
    model::{Analysis, Facts, Options, Rank, Selection, Step},
    owners::{self, Owners, Window},
    period,
    places::{self, Place},
    routed,
    scheduler::{self, RankCounter},
    segments::Segments,
    stated,
    step_facts::{self, Draft, Launched},
    timeline::{self, DeviceOp, OpKind, Timeline},
    training, wait,
};
use crate::platform::{CanonicalOp, Chip, HostCall, OpMatch, Packs, Stage};

/// Canonical operators of every device name of a capture.
struct Names {
    ops: FxHashMap<StringId, OpMatch>,
    coverage: Option<f64>,
    unmapped: Vec<(StringId, Ns)>,
}

fn canonical(trace: &Trace, packs: &Packs) -> Names {
    let mut time: FxHashMap<StringId, Ns> = FxHashMap::default();
    let told = Tracks::of(trace);
    // The operator of a name's first kernel, where the source says it beside the queue.
    let mut types: FxHashMap<StringId, StringId> = FxHashMap::default();
    for (track, lane) in trace.tracks.iter().zip(&trace.lanes) {
        if track.key.kind == TrackKind::DeviceQueue {
            let beside = told.operators(track.key);
            for i in (0..lane.len()).filter(|i| lane.category[*i] == Category::Kernel) {
                *time.entry(lane.name[i]).or_default() += lane.dur[i];
                if let Some((of, row)) = beside.and_then(|beside| range_at(trace, beside, lane.start[i])) {
                    types.entry(lane.name[i]).or_insert(of.name[row]);
                }
            }
        }
    }
    // `Cast190` is an operator of a graph that no name says; that it casts its type does.
    let op = |name: &StringId| {
        let own = packs.op(trace.strings.get(*name));
        let typed = types.get(name).filter(|_| !own.mapped).map(|op| packs.op(trace.strings.get(*op)));
        typed.filter(|typed| typed.mapped).unwrap_or(own)
    };
    let ops = time.par_iter().map(|(name, _)| (*name, op(name))).collect::<FxHashMap<_, _>>();
    let total: Ns = time.values().sum();
    let mut unmapped: Vec<(StringId, Ns)> =
        time.into_iter().filter(|(name, _)| ops.get(name).is_none_or(|m| !m.mapped)).collect();
    unmapped.sort_by_key(|(name, ns)| (std::cmp::Reverse(*ns), trace.strings.get(*name)));
    let missing: Ns = unmapped.iter().map(|(_, ns)| ns).sum();
    Names { ops, coverage: (total > 0).then(|| 1.0 - missing as f64 / total as f64), unmapped }
}

/// Analyses one capture: names, what each rank's device did, what the ranks did together, then steps and attribution.
pub fn analyze(trace: &Trace, packs: &Packs, options: &Options) -> Analysis {
    let names = canonical(trace, packs);
    let wanted = |place: &Place| options.rank.is_none_or(|wanted| wanted == place.rank);
    let places: Vec<Place> = places::places(trace).into_iter().filter(wanted).collect();
    let build = |place: &Place| {
        let mut timeline = timeline::build(trace, packs, &names.ops, place.process, place.device);
        convolved::mark(trace, &mut timeline);
        routed::mark(&mut timeline);
        timeline.stood = device_waits::recorded(trace, &timeline.queues);
        device_waits::mark_staging(trace, &mut timeline);
        let split = Split::estimate(trace, &timeline);
        (timeline, split)
    };
    let (timelines, mut splits): (Vec<Timeline>, Vec<Split>) = places.par_iter().map(build).unzip();
    let mut job = matching::run(trace, &timelines, &splits);
    let mut cuts = job.settle(trace, &timelines, &mut splits);
    let mut labels = Labels::default();
    // What a rank does of which only collectives were kept, the others of its job tell.
    let trains = timelines.iter().any(|timeline| timeline.collectives_only)
        && places.iter().any(|place| training::is_training(trace, place.process));
    let (mut ranks, mut segments, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for (((place, timeline), split), cuts) in places.into_iter().zip(timelines).zip(splits).zip(&mut cuts) {
        let (rank, parts, own) =
            analyze_rank(trace, packs, options, &mut labels, place, (timeline, split, std::mem::take(cuts)), trains);
        ranks.push(rank);
        segments.push(parts);
        keys.extend(own);
    }
    classes::agree(&mut ranks, &keys);
    let recorded = Recorded::of(trace);
    for rank in &mut ranks {
        rank.launching = Launching::find(trace, &recorded, &rank.timeline);
        let window = |step: &Step| Window { index: step.index, span: step.window, host: step.host };
        let windows: Vec<Window> = rank.counted_steps().map(window).collect();
        let alone = match rank.steps.as_slice() {
            [step] if rank.anchor.kind.is_range() => step.host.map(|mark| (step, mark)),
            _ => None,
        };
        let lead = alone.and_then(|(step, mark)| {
            let (lead, call) = Lead::of(&rank.timeline, step.ops.start, mark, step.window)?;
            Some((lead, window(step), call))
        });
        let before = lead.as_ref().map(|(lead, window, call)| (lead.before, *window, *call));
        let (owners, owner) = owners::find(trace, packs, (&rank.timeline, &rank.gaps, &windows), before, &mut labels);
        rank.lead = lead.map(|(lead, ..)| Lead { owner, ..lead });
        rank.owners = owners;
    }
    let known: FxHashSet<ProcessId> = ranks.iter().map(|rank| rank.process).collect();
    let logged = logged::ranks(trace, packs, options, &known);
    job.clocks = clock::offsets(&job, &ranks);
    job.waits = wait::explain(&job, &ranks, &segments);
    ranks.extend(logged);
    let integrity = ranks.iter().fold(Integrity::default(), |mut sum, rank| {
        sum.add(rank);
        sum.graph_holes += graph_holes::count(trace, &rank.timeline.ops);
        // Of a process with several devices nobody knows which of them a call without work was for.
        if ranks.iter().filter(|other| other.process == rank.process).count() == 1 {
            sum.unrecorded += rank.timeline.unrecorded;
        }
        sum
    });
    let vendor = trace.devices.iter().find_map(|d| d.vendor).map(|v| trace.strings.get(v));
    let timelines: Vec<&Timeline> = ranks.iter().map(|rank| &rank.timeline).collect();
    let measured = Measured::join(trace, &timelines);
    Analysis {
        evidence: evidence::of(trace, &ranks, &measured),
        card: packs.card(&trace.format, vendor).clone(),
        chips: chips(trace, packs),
        model: options.model.clone().or_else(|| {
            let named = trace.manifest.value("model.name").and_then(|name| packs.model(name));
            named.cloned().map(Arc::new)
        }),
        host_labels: labels.into_names(),
        ops: names.ops,
        job,
        op_coverage: names.coverage,
        unmapped: names.unmapped,
        loss: Loss::of(trace, &places::places(trace), &integrity),
        integrity,
        measured,
        contradictions: stated::contradictions(trace, &ranks),
        ranks,
    }
}

impl Integrity {
    fn add(&mut self, rank: &Rank) {
        let timeline = &rank.timeline;
        for step in rank.steps.iter().filter(|s| s.selection == Selection::Steady) {
            let ops = rank.ops_of(step);
            self.judged += ops.len() as u64;
            self.judged_unlinked += ops.iter().filter(|op| op.call.is_none()).count() as u64;
        }
        self.device_ops += timeline.ops.len() as u64;
        self.before_launch += timeline.before_launch;
        self.lag = self.lag.max(timeline.lag);
        self.unlinked += timeline.unlinked;
        self.before_recording += timeline.before_recording;
        self.lost_links += timeline.lost_links;
        self.gaps += timeline.gaps.0;
        self.zero_gaps += timeline.gaps.1;
        self.overlapping += timeline.overlapping;
    }
}

fn analyze_rank(
    trace: &Trace,
    packs: &Packs,
    options: &Options,
    labels: &mut Labels,
    Place { rank, process, device }: Place,
    (timeline, collectives, cuts): (Timeline, Split, Vec<Ns>),
    trains: bool,
) -> (Rank, Segments, Vec<Key>) {
    let (anchor, marks) = anchor::find(trace, packs, options.step_mark.as_deref(), &timeline, (process, device));
    let windows = windows(&timeline, &marks, anchor.kind);
    let states = HostStates::build(trace, packs, process, &timeline, labels);
    let explainer = Explainer::new(&timeline, &states);
    let attribution = attribution::attribute(trace, &timeline, &collectives, &explainer, &windows, cuts);
    let usual = match () {
        () if timeline.collectives_only && trains => Stage::Train,
        () if training::is_training(trace, process) => Stage::Train,
        () if scheduler::only_decodes(trace, process) => Stage::Decode,
        () => Stage::Unknown,
    };
    let tokens = RankCounter::Tokens.of(trace, process);
    let by_core = launch_shape::names_cores(trace, packs);
    let mut steps: Vec<Step> = Vec::with_capacity(windows.len());
    let mut drafts = Vec::with_capacity(windows.len());
    let partitions = attribution.partitions.into_iter();
    for (i, ((window, mark), partition)) in windows.iter().zip(&marks).zip(partitions).enumerate() {
        let end = timeline.ops.partition_point(|op| op.start < window.end);
        let ops = mark.op..end.max(mark.op);
        let here = timeline.ops.get(ops.clone()).unwrap_or(&[]);
        let whole = anchor.kind == AnchorKind::WholeCapture;
        let launched = if by_core { Launched::default() } else { launch_shape::launched(trace, here) };
        drafts.push(Draft::new(mark, (here, launched), &timeline, tokens.as_ref(), usual, whole));
        steps.push(Step {
            index: i as u32,
            window: *window,
            host: mark.host,
            class: 0,
            label: mark.name.clone(),
            ops,
            facts: Facts::UNKNOWN,
            rows: launched.rows,
            selection: Selection::Steady,
            buckets: partition.buckets,
            shadow: partition.shadow,
        });
    }
    step_facts::settle(&mut drafts);
    steps.iter_mut().zip(&drafts).for_each(|(step, draft)| step.facts = draft.facts);
    let compiling = |step: &Step| {
        let calls = timeline.calls_between(step.window.start, step.window.end);
        calls.iter().any(|c| c.kind.is_compile() && c.kind != HostCall::ModuleLoad)
    };
    classes::select(&mut steps, &drafts, &compiling, options);
    let whole = begins_whole(&timeline, &steps);
    classes::leave_unfinished(&mut steps, whole);
    let (classes, keys) = classes::summarize(&mut steps, &drafts);
    let mut result = Rank {
        rank,
        process,
        device,
        timeline,
        launching: Launching::default(),
        anchor,
        steps,
        classes,
        gaps: attribution.gaps,
        exclusive: attribution.exclusive,
        period: None,
        collectives,
        owners: Owners::default(),
        lead: None,
    };
    result.period = layer_period(&result);
    (result, attribution.segments, keys)
}

/// Whether what precedes the first mark is a whole step: the host was recorded before it launched anything, nothing runs whose
/// launch came before the recording, and it writes the cache as often as each step after it does.
fn begins_whole(timeline: &Timeline, steps: &[Step]) -> bool {
    let Some((first, rest)) = steps.split_first() else { return false };
    let launched = timeline.ops.first().and_then(|op| timeline.call(op)).map(|call| call.start);
    let recorded = timeline.recorded_from;
    let writes = |step: &Step| {
        let ops = timeline.ops.get(step.ops.clone()).unwrap_or(&[]);
        ops.iter().filter(|op| op.op == CanonicalOp::KvWrite).count() as Ns
    };
    let usual = median(rest.iter().map(writes).collect()).unwrap_or(0);
    let before = launched.zip(recorded).is_some_and(|(launched, recorded)| launched > recorded);
    before && timeline.before_recording == 0 && usual > 0 && writes(first) >= usual
}

/// Windows tile the run from mark to mark; the last one ends with the last operation that belongs to it.
fn windows(timeline: &Timeline, marks: &[Mark], kind: AnchorKind) -> Vec<Span> {
    let start_of = |mark: &Mark| timeline.ops.get(mark.op).map_or(0, |op| op.start);
    let end_of = |ops: &mut dyn Iterator<Item = &DeviceOp>| ops.map(|op| op.end).max();
    let mut out = Vec::with_capacity(marks.len());
    for (i, mark) in marks.iter().enumerate() {
        let start = start_of(mark);
        let end = match marks.get(i + 1) {
            Some(next) => start_of(next),
            None => {
                let rest = timeline.ops.get(mark.op..).unwrap_or(&[]);
                // After several annotated steps, what was launched after the last range is no part of it.
                let limit = mark.host.filter(|_| kind.is_range() && i > 0).map(|h| h.end);
                let mut own = rest
                    .iter()
                    .filter(|op| limit.is_none_or(|limit| timeline.call(op).is_some_and(|call| call.start < limit)));
                end_of(&mut own).unwrap_or(start)
            }
        };
        out.push(Span::new(start, end));
    }
    out
}

/// Layers of the median step of the main class, by the canonical operators of its kernels.
fn layer_period(rank: &Rank) -> Option<period::Period> {
    let class = rank.main_class()?;
    let mut steps: Vec<&Step> = rank.steady_steps(class).collect();
    steps.sort_by_key(|s| (s.window.len(), s.index));
    let median = steps.get(steps.len().checked_sub(1)? / 2)?;
    let kernels = rank.ops_of(median).iter().filter(|op| matches!(op.kind, OpKind::Compute | OpKind::Comm));
    let symbols: Vec<u32> = kernels.map(|op| op.op as u32).collect();
    period::mine(&symbols, &[CanonicalOp::AddNorm as u32, CanonicalOp::Norm as u32])
}

/// What is published of the chips of a capture's devices, by the names of the devices.
fn chips(trace: &Trace, packs: &Packs) -> FxHashMap<StringId, Chip> {
    let names = trace.devices.iter().filter_map(|device| device.name);
    names.filter_map(|name| Some((name, packs.chip(trace.strings.get(name))?.clone()))).collect()
}
