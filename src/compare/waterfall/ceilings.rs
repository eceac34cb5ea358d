//! What the two sides' devices can do, as probes measured it on both: the part of a difference that no software can remove.
//!
//! Ratios are used, of the same quantity under the same setting, so that a probe which is a few percent off on every device is
//! off by nothing here. Only of the way from one operation to the next it is the time itself: a gap is that and what else holds
//! the device up, and the two have nothing to be multiplied by. Data sheets are no ceilings: no kernel reaches them.

use model::{ProbeRun, Setting};

use crate::{
    analysis::Bucket,
    compare::chosen::{Chosen, Work},
    platform::OpClass,
};

/// Natural logarithms of what the same work costs at best on each side; `None` where it was not measured on both.
type Cost = Option<[f64; 2]>;

/// Ceilings that both sides were probed for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ceilings {
    /// Time to read a byte.
    pub memory: Cost,
    /// Time of an operation of a matrix product of the run's weights.
    pub arithmetic: Cost,
    /// Time that the least work takes to be launched and run.
    pub launch: Cost,
    /// Time of an empty node of a replay.
    pub node: Cost,
    /// From the end of an operation to the start of the next one that has long been launched, ns; no logarithm.
    pub gap: Option<[f64; 2]>,
    /// Whether the steps only read their weights and caches once: then memory bounds all they compute.
    pub streaming: bool,
    /// Whether both read prompts, whose products arithmetic bounds.
    pub dense: bool,
}

impl Ceilings {
    /// Those of two sides.
    pub fn of(sides: &[Chosen<'_>; 2]) -> Self {
        let best = |probe: &str, metric: &str, fits: &dyn Fn(&Chosen<'_>, &Setting) -> bool| -> Cost {
            let of = |side: &Chosen<'_>| {
                let run: &ProbeRun = &side.trace.probes;
                let (rows, own) = (run.rows.iter(), threads(side));
                let rows = rows.filter(|row| row.probe == probe && row.metric == metric && fits(side, &row.setting));
                // What another number of threads can do says nothing of the run.
                let rows = rows.filter(|row| {
                    let probed = row.setting.number(Setting::THREADS);
                    own.zip(probed).is_none_or(|(own, probed)| own == probed)
                });
                let costs = rows.filter_map(|row| {
                    let value = row.statistic()?.median;
                    let cost = if row.unit.less_is_better() { value } else { 1.0 / value };
                    (cost.is_finite() && cost > 0.0).then_some(cost.ln())
                });
                costs.min_by(f64::total_cmp)
            };
            let [a, b] = sides;
            Some([of(a)?, of(b)?])
        };
        let dtype = |side: &Chosen<'_>, setting: &Setting| {
            let own = side.trace.manifest.value("precision.weights");
            own.is_some() && setting.get(Setting::DTYPE) == own
        };
        Self {
            memory: best("read", "bandwidth", &|_, setting| setting.get("in") == Some("memory")),
            arithmetic: best("gemm", "arithmetic", &dtype),
            launch: best("launch", "floor", &|_, _| true),
            node: best("replay", "node", &|_, _| true),
            gap: best("launch", "gap", &|_, _| true).map(|both| both.map(f64::exp)),
            streaming: sides.iter().all(|side| side.work() == Work::Streaming),
            dense: sides.iter().all(|side| side.work() == Work::Dense),
        }
    }

    /// Whether nothing at all was measured on both sides.
    pub fn is_empty(&self) -> bool {
        [self.memory, self.arithmetic, self.launch, self.node, self.gap].iter().all(Option::is_none)
    }

    /// The ceiling that a bucket is bound by.
    pub fn bound(&self, bucket: Bucket) -> Cost {
        match bucket {
            Bucket::Compute(op) if op.class() == OpClass::Matrix && self.dense => self.arithmetic,
            // Decode of more rows lies below the ridge of one device and above that of another.
            Bucket::Compute(op) if op.class() == OpClass::Matrix && !self.streaming => None,
            // Attention over long sequences is bound by either, and nobody knows by which.
            Bucket::Compute(op) if op.class() == OpClass::Attention && !self.streaming => None,
            Bucket::Compute(_) => self.memory,
            Bucket::LaunchApi | Bucket::LaunchLatency | Bucket::GraphLaunch => self.launch,
            Bucket::GraphInternal => self.node,
            _ => None,
        }
    }
}

/// Threads of a run on processors; `None` of other devices.
fn threads(side: &Chosen<'_>) -> Option<i64> {
    let trace = side.trace;
    let own = |device: &&model::Device| device.process == side.rank.process && device.ordinal == side.rank.device;
    let device = trace.devices.iter().find(own)?;
    (trace.strings.get(device.vendor?) == "cpu").then_some(i64::from(device.cores?))
}
