//! Step windows, their classes, and which of them count.

use std::{collections::BTreeMap, ops::Range};

use model::{Category, Ns, ProcessId, Span, StringId, Trace, TrackKind};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    Analysis, Integrity, Measured, Options, Place, Rank,
    anchor::{self, AnchorKind, Mark},
    attribution,
    bucket::Bucket,
    classes, clock,
    collective::Split,
    evidence,
    host::{HostStates, Labels},
    idle::Explainer,
    launch_shape, logged, matching, period,
    scheduler::{self, RankCounter},
    segments::Segments,
    timeline,
    timeline::{DeviceOp, OpKind, Timeline},
    training, wait,
};
use crate::platform::{CanonicalOp, Chip, HostCall, OpMatch, Packs, Stage};

/// How much of a step was replayed from graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GraphMode {
    /// No graph launch.
    Eager,
    /// Several graph launches, or one that holds only part of the kernels.
    Piecewise,
    /// One graph launch holds nearly all kernels.
    Full,
    /// A log times the step and does not say.
    Unknown,
}

impl GraphMode {
    /// What a manifest calls it, the one of the engine that comes with the program too; `None` where nobody knows.
    pub fn stated(self) -> Option<&'static str> {
        match self {
            Self::Eager => Some("eager"),
            Self::Piecewise => Some("piecewise graphs"),
            Self::Full => Some("full graph"),
            Self::Unknown => None,
        }
    }
}

/// Whether a step counts, and why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// It counts.
    Steady,
    /// Before the step time had settled.
    WarmUp,
    /// Holds compilation or graph capture at the start of the run.
    Compiling,
    /// Last step: its window has no end that a next step gives.
    Unfinished,
    /// Outside the range the user asked for.
    NotAsked,
}

impl Selection {
    /// Key in SQL.
    pub fn key(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::WarmUp => "warm_up",
            Self::Compiling => "compiling",
            Self::Unfinished => "unfinished",
            Self::NotAsked => "not_asked",
        }
    }
}

/// One step of one rank.
#[derive(Clone, Debug)]
pub struct Step {
    /// Position in the run.
    pub index: u32,
    /// From the start of its first device operation to the start of the next step's first.
    pub window: Span,
    /// From the start of its host range to the start of the next, where ranges anchor the steps.
    pub host: Option<Span>,
    /// Index into the rank's classes.
    pub class: usize,
    /// Annotation or other name.
    pub label: String,
    /// Device operations whose start lies in the window.
    pub ops: Range<usize>,
    /// Rows that these work on, padding included, where their launches show it.
    pub rows: Option<u64>,
    /// Whether it counts.
    pub selection: Selection,
    /// Nanoseconds by bucket; they add up to the window exactly.
    pub buckets: Vec<(Bucket, Ns)>,
    /// Time that two kinds of work were active together, by kind; hidden inside `buckets`.
    pub shadow: Vec<(Shadow, Ns)>,
}

/// Two kinds of device work at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shadow {
    /// Compute over a transfer.
    ComputeTransfer,
    /// Compute over a copy.
    ComputeCopy,
    /// Compute over the wait of a collective.
    ComputeWait,
    /// A transfer over a copy.
    TransferCopy,
    /// Several compute operations at once.
    ComputeCompute,
}

/// Steps of one kind; statistics never mix classes.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its own index.
    pub index: usize,
    /// Key such as `decode b=32 graph=full`.
    pub key: String,
    /// Stage.
    pub stage: Stage,
    /// Sequences decoded in a step, if known.
    pub batch: Option<u32>,
    /// Graph mode.
    pub graph: GraphMode,
    /// Steps of the class.
    pub count: usize,
    /// Of those, steps that count.
    pub steady: usize,
    /// Median, 95th and 99th percentile of the windows that count, ns (nearest rank); the windows of all steps if none counts.
    pub p50: Ns,
    /// 95th percentile.
    pub p95: Ns,
    /// 99th percentile.
    pub p99: Ns,
    /// Sum of the windows that count, ns.
    pub total: Ns,
    /// Nanoseconds by bucket over the steps that count; they add up to `total` exactly.
    pub buckets: Vec<(Bucket, Ns)>,
    /// Shadow over the steps that count.
    pub shadow: Vec<(Shadow, Ns)>,
    /// Slow steps against the median one.
    pub jitter: Option<super::Jitter>,
}

impl Class {
    /// Nanoseconds of a bucket over the steps that count.
    pub fn ns(&self, bucket: Bucket) -> Ns {
        self.buckets.iter().filter(|(b, _)| *b == bucket).map(|(_, ns)| ns).sum()
    }

    /// Nanoseconds of the buckets that `pick` takes, over the steps that count.
    pub fn sum(&self, pick: impl Fn(Bucket) -> bool) -> Ns {
        self.buckets.iter().filter(|(b, _)| pick(*b)).map(|(_, ns)| ns).sum()
    }

    /// Mean of the buckets that `pick` takes over the steps that count, ns per step.
    pub fn per_step(&self, pick: impl Fn(Bucket) -> bool) -> Ns {
        self.sum(pick) / (self.steady.max(1) as Ns)
    }

    /// Share of the class's time in the buckets that `pick` takes.
    pub fn share(&self, pick: impl Fn(Bucket) -> bool) -> f64 {
        if self.total == 0 { 0.0 } else { self.sum(pick) as f64 / self.total as f64 }
    }
}

/// Canonical operators of every device name of a capture.
struct Names {
    ops: FxHashMap<StringId, OpMatch>,
    coverage: Option<f64>,
    unmapped: Vec<(StringId, Ns)>,
}

fn canonical(trace: &Trace, packs: &Packs) -> Names {
    let mut time: FxHashMap<StringId, Ns> = FxHashMap::default();
    for (track, lane) in trace.tracks.iter().zip(&trace.lanes) {
        if track.key.kind == TrackKind::DeviceQueue {
            for i in (0..lane.len()).filter(|i| lane.category[*i] == Category::Kernel) {
                *time.entry(lane.name[i]).or_default() += lane.dur[i];
            }
        }
    }
    let ops = time.par_iter().map(|(n, _)| (*n, packs.op(trace.strings.get(*n)))).collect::<FxHashMap<_, _>>();
    let total: Ns = time.values().sum();
    let mut unmapped: Vec<(StringId, Ns)> =
        time.into_iter().filter(|(name, _)| ops.get(name).is_none_or(|m| !m.mapped)).collect();
    unmapped.sort_by_key(|(name, ns)| (std::cmp::Reverse(*ns), trace.strings.get(*name)));
    let missing: Ns = unmapped.iter().map(|(_, ns)| ns).sum();
    Names { ops, coverage: (total > 0).then(|| 1.0 - missing as f64 / total as f64), unmapped }
}

/// The devices that worked, process by process.
pub(super) fn places(trace: &Trace) -> impl Iterator<Item = Place> {
    let mut places: BTreeMap<(ProcessId, i32), bool> = BTreeMap::new();
    for (track, lane) in trace.tracks.iter().zip(&trace.lanes) {
        if let (TrackKind::DeviceQueue, Some(device)) = (track.key.kind, track.key.device) {
            let work = lane.category.iter().any(|c| c.is_device_work());
            *places.entry((track.key.process, device)).or_default() |= work;
        }
    }
    let worked = places.into_iter().filter(|(_, work)| *work).enumerate();
    worked.map(move |(position, ((process, device), _))| {
        let said = trace.processes.get(process.0 as usize).and_then(|p| p.rank);
        Place { rank: said.unwrap_or(position as u32), process, device }
    })
}

/// Analyses one capture: names, what each rank's device did, what the ranks did together, then steps and attribution.
pub fn analyze(trace: &Trace, packs: &Packs, options: &Options) -> Analysis {
    let names = canonical(trace, packs);
    let wanted = |place: &Place| options.rank.is_none_or(|wanted| wanted == place.rank);
    let places: Vec<Place> = places(trace).filter(wanted).collect();
    let build = |place: &Place| {
        let timeline = timeline::build(trace, packs, &names.ops, place.process, place.device);
        let split = Split::estimate(trace, &timeline);
        (timeline, split)
    };
    let (timelines, mut splits): (Vec<Timeline>, Vec<Split>) = places.par_iter().map(build).unzip();
    let mut job = matching::run(trace, &timelines, &splits);
    let mut cuts = job.settle(trace, &timelines, &mut splits);
    let mut labels = Labels::default();
    let (mut ranks, mut segments) = (Vec::new(), Vec::new());
    for (((place, timeline), split), cuts) in places.into_iter().zip(timelines).zip(splits).zip(&mut cuts) {
        let (rank, parts) =
            analyze_rank(trace, packs, options, &mut labels, place, (timeline, split, std::mem::take(cuts)));
        ranks.push(rank);
        segments.push(parts);
    }
    let known: FxHashSet<ProcessId> = ranks.iter().map(|rank| rank.process).collect();
    let logged = logged::ranks(trace, packs, options, &known);
    job.clocks = clock::offsets(&job, &ranks);
    job.waits = wait::explain(&job, &ranks, &segments);
    ranks.extend(logged);
    let integrity = ranks.iter().fold(Integrity::default(), |mut sum, rank| {
        sum.add(rank);
        // Of a process with several devices nobody knows which of them a call without work was for.
        if ranks.iter().filter(|other| other.process == rank.process).count() == 1 {
            sum.unrecorded += rank.timeline.unrecorded;
        }
        sum
    });
    let vendor = trace.devices.iter().find_map(|d| d.vendor).map(|v| trace.strings.get(v));
    let measured = Measured::join(trace, &ranks);
    Analysis {
        evidence: evidence::of(trace, &ranks, &measured),
        card: packs.card(&trace.format, vendor).clone(),
        chips: chips(trace, packs),
        host_labels: labels.into_names(),
        ops: names.ops,
        job,
        op_coverage: names.coverage,
        unmapped: names.unmapped,
        integrity,
        measured,
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
) -> (Rank, Segments) {
    let (anchor, marks) = anchor::find(trace, packs, &timeline, process, device);
    let windows = windows(&timeline, &marks, anchor.kind);
    let states = HostStates::build(trace, packs, process, &timeline, labels);
    let explainer = Explainer::new(&timeline, &states);
    let attribution = attribution::attribute(trace, &timeline, &collectives, &explainer, &windows, cuts);
    let usual = match () {
        () if training::is_training(trace, process) => Stage::Train,
        () if scheduler::only_decodes(trace, process) => Stage::Decode,
        () => Stage::Unknown,
    };
    let tokens = RankCounter::Tokens.of(trace, process);
    let mut steps: Vec<Step> = Vec::with_capacity(windows.len());
    let mut drafts = Vec::with_capacity(windows.len());
    let partitions = attribution.partitions.into_iter();
    for (i, ((window, mark), partition)) in windows.iter().zip(&marks).zip(partitions).enumerate() {
        let end = timeline.ops.partition_point(|op| op.start < window.end);
        let ops = mark.op..end.max(mark.op);
        let here = timeline.ops.get(ops.clone()).unwrap_or(&[]);
        let whole = anchor.kind == AnchorKind::WholeCapture;
        let rows = launch_shape::rows(trace, here);
        drafts.push(classes::Draft::new(mark, (here, rows), &timeline, tokens.as_ref(), usual, whole));
        steps.push(Step {
            index: i as u32,
            window: *window,
            host: mark.host,
            class: 0,
            label: mark.name.clone(),
            ops,
            rows,
            selection: Selection::Steady,
            buckets: partition.buckets,
            shadow: partition.shadow,
        });
    }
    let compiling = |step: &Step| {
        let calls = timeline.calls_between(step.window.start, step.window.end);
        calls.iter().any(|c| c.kind.is_compile() && c.kind != HostCall::ModuleLoad)
    };
    classes::select(&mut steps, &drafts, &compiling, options);
    classes::leave_unfinished(&mut steps);
    let classes = classes::summarize(&mut steps, &drafts);
    let mut result = Rank {
        rank,
        process,
        device,
        timeline,
        anchor,
        steps,
        classes,
        gaps: attribution.gaps,
        exclusive: attribution.exclusive,
        period: None,
        collectives,
    };
    result.period = layer_period(&result);
    (result, attribution.segments)
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
                let limit = mark.host.filter(|_| kind == AnchorKind::UserRange && i > 0).map(|h| h.end);
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
