//! What an analysis says of a capture: its ranks, their steps, the classes of these, and what is wrong with the trace.
//! Types only; [`super::pipeline`] fills them.

use std::{ops::Range, sync::Arc};

use model::{Evidence, Ns, ProcessId, Span, StringId};
use rustc_hash::FxHashMap;

use super::{
    anchor::Anchor,
    attribution::Exclusive,
    bucket::{Bucket, Shadow},
    collective::Split,
    contradiction::Contradiction,
    idle::Gap,
    integrity::Integrity,
    job::Job,
    launching::Launching,
    lead::Lead,
    loss::Loss,
    measured::Measured,
    owners::{Owner, Owners},
    period::Period,
    timeline::{DeviceOp, Timeline},
};
use crate::platform::{Chip, ModelShape, OpMatch, SemanticsCard, Stage};

/// What the user may narrow down.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only these step indices, first and last included.
    pub steps: Option<(u32, u32)>,
    /// Only this rank.
    pub rank: Option<u32>,
    /// Name of the ranges that are the steps; where nobody says it, they are found.
    pub step_mark: Option<Arc<str>>,
    /// The model that ran, if somebody said it.
    pub model: Option<Arc<ModelShape>>,
}

/// Everything known about one capture.
pub struct Analysis {
    /// Ranks: each a (process, device) pair with work on it.
    pub ranks: Vec<Rank>,
    /// What the ranks did together.
    pub job: Job,
    /// Evidence the capture holds.
    pub evidence: Evidence,
    /// How this source's records are to be read.
    pub card: SemanticsCard,
    /// What is published of the chips that the names of its devices are known for.
    pub chips: FxHashMap<StringId, Chip>,
    /// The model that ran, if somebody said it.
    pub model: Option<Arc<ModelShape>>,
    /// Names behind [`super::HostLabel`].
    pub host_labels: Vec<String>,
    /// Canonical operator of each device name.
    pub ops: FxHashMap<StringId, OpMatch>,
    /// Device time of names that a pattern mapped, over all device time; `None` without device time.
    pub op_coverage: Option<f64>,
    /// Device names that no pattern mapped, with their device time, longest first.
    pub unmapped: Vec<(StringId, i64)>,
    /// What is wrong with the trace itself.
    pub integrity: Integrity,
    /// What of the run the capture lacks.
    pub loss: Loss,
    /// Measurements of its kernels that were taken apart from the run.
    pub measured: Measured,
    /// Sums of the profiler that its rows, or other sums of it, contradict.
    pub contradictions: Vec<Contradiction>,
}

/// One accelerator as one process drove it.
pub struct Rank {
    /// Rank in the job if the source says it, else the position in the capture.
    pub rank: u32,
    /// Owning process.
    pub process: ProcessId,
    /// Device ordinal in that process.
    pub device: i32,
    /// Device operations and launch calls.
    pub timeline: Timeline,
    /// Operators behind its launch calls.
    pub launching: Launching,
    /// How the steps were found.
    pub anchor: Anchor,
    /// Steps in time order; their windows tile the run.
    pub steps: Vec<Step>,
    /// Step classes in order of total time, longest first.
    pub classes: Vec<Class>,
    /// Idle gaps in time order.
    pub gaps: Vec<Gap>,
    /// Per device operation: exclusive ns and idle ns that it owns.
    pub exclusive: Vec<Exclusive>,
    /// Layer structure of the median step of the main class.
    pub period: Option<Period>,
    /// Whether transfer and wait of collectives were told apart, and how.
    pub collectives: Split,
    /// What the host was doing in the gaps of the steps that count.
    pub owners: Owners,
    /// What it does alone around the only step; `None` where there are several, or where that is not known.
    pub lead: Option<Lead>,
}

impl Rank {
    /// The class the verdict is about: decode if there is any, else the one with the most time.
    pub fn main_class(&self) -> Option<&Class> {
        let decode = |c: &&Class| c.stage == Stage::Decode && c.steady > 0;
        self.classes.iter().find(decode).or_else(|| self.classes.iter().find(|c| c.steady > 0)).or(self.classes.first())
    }

    /// The steps of a class that count.
    pub fn steady_steps<'a>(&'a self, class: &'a Class) -> impl Iterator<Item = &'a Step> {
        self.steps.iter().filter(move |s| s.class == class.index && s.selection == Selection::Steady)
    }

    /// The record of the host that owns the host's own time in a gap.
    pub fn owner_of(&self, gap: &Gap) -> Option<&Owner> {
        self.owners.of(self.gaps.partition_point(|other| other.span.start < gap.span.start))
    }

    /// The device operations of a step.
    pub fn ops_of(&self, step: &Step) -> &[DeviceOp] {
        self.timeline.ops.get(step.ops.clone()).unwrap_or(&[])
    }
}

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
    /// What it worked on.
    pub facts: Facts,
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

/// What is known of the work of a step, whatever class it is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Stage.
    pub stage: Stage,
    /// Graph mode.
    pub graph: GraphMode,
    /// Sequences decoded.
    pub batch: Option<u32>,
    /// Requests in prefill.
    pub prefill_requests: Option<u32>,
    /// New tokens of the requests in prefill.
    pub prefill_tokens: Option<u32>,
    /// Tokens of KV cache attended to, per sequence.
    pub context: Option<u64>,
}

impl Facts {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        stage: Stage::Unknown,
        graph: GraphMode::Unknown,
        batch: None,
        prefill_requests: None,
        prefill_tokens: None,
        context: None,
    };
}

/// Steps of one kind: the same work, or a population in which the work changes every few steps as requests join and leave.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its own index.
    pub index: usize,
    /// Key such as `decode b=32 graph=full`, or `decode b=12…16 graph=full` where requests join and leave.
    pub key: String,
    /// Stage.
    pub stage: Stage,
    /// Sequences decoded in a step, if known and the same in all of them.
    pub batch: Option<u32>,
    /// Fewest and most sequences decoded in a step, if known of all of them.
    pub batches: Option<(u32, u32)>,
    /// Whether the work changes from step to step, so that steps are compared at equal work only.
    pub churns: bool,
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
    pub jitter: Option<Jitter>,
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

    /// Mean of the windows that count, ns: what every share, gain and headline refers to.
    pub fn mean(&self) -> Ns {
        if self.steady == 0 { self.p50 } else { self.total / self.steady as Ns }
    }

    /// Whether two classes may hold steps of equal work: their numbers of sequences meet, as far as both are known.
    pub fn may_equal(&self, other: &Self) -> bool {
        self.batches.zip(other.batches).is_none_or(|(a, b)| a.0 <= b.1 && b.0 <= a.1)
    }

    /// Whether steps of another run are of this kind: of the same work, or of a population that churns about it.
    pub fn is_like(&self, other: &Self) -> bool {
        let churns = self.churns || other.churns;
        self.key == other.key
            || (churns && (self.stage, self.graph) == (other.stage, other.graph) && self.may_equal(other))
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

/// How the slow steps of a class differ from its median step.
#[derive(Clone, Debug, PartialEq)]
pub struct Jitter {
    /// p99 over p50 of the step time.
    pub ratio: f64,
    /// Indices of the steps above the 95th percentile (at least one), slowest first.
    pub slow: Vec<u32>,
    /// Index of the step whose time is the median.
    pub median: u32,
    /// Excess of all slow steps over the median step by bucket, ns, signed, largest first. The terms add up exactly to the
    /// sum of the slow steps' windows less as many times the median window.
    pub excess: Vec<(Bucket, Ns)>,
}
