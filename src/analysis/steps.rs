//! Step windows, their classes, and which of them count.

use std::ops::Range;

use model::{Ns, Span};

use super::bucket::Bucket;
use crate::platform::Stage;

/// How much of a step was replayed from graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GraphMode {
    /// No graph launch.
    Eager,
    /// Several graph launches, or one that holds only part of the kernels.
    Piecewise,
    /// One graph launch holds nearly all kernels.
    Full,
}

/// Whether a step counts, and why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// Whether it counts.
    pub selection: Selection,
    /// Nanoseconds by bucket; they add up to the window exactly.
    pub buckets: Vec<(Bucket, Ns)>,
    /// Time that two kinds of work were active together, by kind; hidden inside `buckets`.
    pub shadow: Vec<(Shadow, Ns)>,
}

/// Two kinds of device work at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
