//! What the two sides' devices can do, as probes measured it on both: the part of a difference that no software can remove.
//!
//! Ratios are used, of the same quantity under the same setting, so that a probe which is a few percent off on every device is
//! off by nothing here. Only of the way from one operation to the next it is the time itself: a gap is that and what else holds
//! the device up, and the two have nothing to be multiplied by. Where nobody probed both, the ratio is that of the data sheets,
//! and marked so: no kernel reaches them, but each device's falls short of its own by about as much. Two probes that
//! are nearer to each other than their own repeats are one ceiling.

use model::{ProbeRun, Setting};

use crate::{
    analysis::Bucket,
    compare::chosen::{Chosen, Work},
    platform::{Chip, OpClass, Stage},
};

/// Natural logarithms of what the same work costs at best on each side; `None` where it was not measured on both.
type Cost = Option<[f64; 2]>;

/// A cost, and by how much its repeats differ: one standard deviation, both as natural logarithms.
type Spread = (f64, f64);

/// A median distance from the median as a standard deviation, of what is distributed normally (Rousseeuw and Croux 1993).
const OF_MAD: f64 = 1.4826;
/// Standard deviations from which on two probes are told apart: the usual three.
const APART: f64 = 3.0;

/// Ceilings that both sides were probed for.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
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
    /// Whether both decode: attention then reads the cache once for each sequence, and memory bounds it.
    pub decode: bool,
    /// Whether time to read a byte, or that of an operation, is by data sheets: what nobody probed on both sides.
    pub published: bool,
}

impl Ceilings {
    /// Those of two sides.
    pub fn of(sides: &[Chosen<'_>; 2]) -> Self {
        let runs = sides.each_ref().map(|side| (&side.trace.probes, threads(side)));
        let best = |probe: &str, metric: &str, fits: &dyn Fn(usize, &Setting) -> bool| best(&runs, probe, metric, fits);
        let dtype = |side: usize, setting: &Setting| {
            let own = sides.get(side).and_then(|side| side.trace.manifest.value("precision.weights"));
            own.is_some() && setting.get(Setting::DTYPE) == own
        };
        let (probed, computed) = (memory(&runs), best("gemm", "arithmetic", &dtype));
        let sheet = published(sides);
        Self {
            memory: probed.or(sheet.0),
            arithmetic: computed.or(sheet.1),
            decode: sides.iter().all(|side| side.class.stage == Stage::Decode),
            published: (probed.is_none() && sheet.0.is_some()) || (computed.is_none() && sheet.1.is_some()),
            launch: best("launch", "floor", &|_, _| true),
            node: best("replay", "node", &|_, _| true),
            gap: best("launch", "gap", &|_, _| true).map(|both| both.map(f64::exp)),
            streaming: sides.iter().all(|side| side.work() == Work::Streaming || below_ridge(side)),
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
            Bucket::Compute(op) if op.class() == OpClass::Attention && !self.streaming && !self.decode => None,
            Bucket::Compute(_) => self.memory,
            Bucket::LaunchApi | Bucket::LaunchLatency | Bucket::GraphLaunch => self.launch,
            Bucket::GraphInternal => self.node,
            _ => None,
        }
    }
}

/// What is published of the device of a side.
fn chip<'a>(side: &Chosen<'a>) -> Option<&'a Chip> {
    let own = |device: &&model::Device| device.process == side.rank.process && device.ordinal == side.rank.device;
    side.analysis.chips.get(&side.trace.devices.iter().find(own)?.name?)
}

/// Bandwidth of the memory of a side's device as its data sheet says it, bytes per ns.
pub fn published_bandwidth(side: &Chosen<'_>) -> Option<f64> {
    chip(side)?.memory_gb_per_s.map(f64::from)
}

/// Time to read a byte and time of an operation of the run's products by the data sheets of two devices of different name. Of
/// equal devices nothing differs.
fn published(sides: &[Chosen<'_>; 2]) -> (Cost, Cost) {
    let [Some(a), Some(b)] = sides.each_ref().map(chip) else { return (None, None) };
    if a.name == b.name {
        return (None, None);
    }
    let cost = |rate: Option<f64>| rate.filter(|rate| *rate > 0.0).map(|rate| -rate.ln());
    let both = |of: [Option<f64>; 2]| cost(of[0]).zip(cost(of[1])).map(|(a, b)| [a, b]);
    let format = |n: usize| sides[n].trace.manifest.value("precision.weights");
    let peak = |n: usize, chip: &Chip| chip.peaks.of(format(n)?);
    let memory = both([a, b].map(|chip| chip.memory_gb_per_s.map(f64::from)));
    (memory, both([peak(0, a), peak(1, b)]))
}

/// Part of the rows at which arithmetic and memory take the same time, below which memory bounds a product; own value.
const BELOW: f64 = 0.5;

/// Whether the steps decode so few rows that by the data sheet memory bounds their products of 16 bits: a row is an operation
/// for each byte of the weights.
fn below_ridge(side: &Chosen<'_>) -> bool {
    let ridge = || {
        let own = chip(side)?;
        let peak = own.peaks.bf16.or(own.peaks.fp16)? * 1e12;
        Some(peak / (f64::from(own.memory_gb_per_s?) * 1e9))
    };
    let rows = side.class.batches.filter(|_| side.class.stage == Stage::Decode).map(|(_, rows)| f64::from(rows));
    rows.zip(ridge()).is_some_and(|(rows, ridge)| rows < BELOW * ridge)
}

/// Probes of a side, and the threads of its run on processors.
type Probed<'a> = (&'a ProbeRun, Option<i64>);

/// The least cost by the rows of a probe on each side, given by its number to `fits`.
fn best(runs: &[Probed<'_>; 2], probe: &str, metric: &str, fits: &dyn Fn(usize, &Setting) -> bool) -> Cost {
    spread(runs, probe, metric, fits).map(told_apart)
}

/// Costs that are no farther apart than their repeats are the same: the one side can do what the other can.
fn told_apart([a, b]: [Spread; 2]) -> [f64; 2] {
    if (a.0 - b.0).abs() > APART * a.1.hypot(b.1) {
        return [a.0, b.0];
    }
    [f64::midpoint(a.0, b.0); 2]
}

fn spread(
    runs: &[Probed<'_>; 2],
    probe: &str,
    metric: &str,
    fits: &dyn Fn(usize, &Setting) -> bool,
) -> Option<[Spread; 2]> {
    let of = |number: usize, (run, own): &Probed<'_>| {
        let rows =
            run.rows.iter().filter(|row| row.probe == probe && row.metric == metric && fits(number, &row.setting));
        // What another number of threads can do says nothing of the run.
        let rows = rows.filter(|row| {
            let probed = row.setting.number(Setting::THREADS);
            own.zip(probed).is_none_or(|(own, probed)| own == probed)
        });
        let costs = rows.filter_map(|row| {
            let (value, mad) = row.statistic().map(|own| (own.median, own.mad))?;
            let cost = if row.unit.less_is_better() { value } else { 1.0 / value };
            (cost.is_finite() && cost > 0.0).then(|| (cost.ln(), OF_MAD * mad / value))
        });
        costs.min_by(|one, other| one.0.total_cmp(&other.0))
    };
    let [a, b] = runs;
    Some([of(0, a)?, of(1, b)?])
}

/// Time to read a byte. Products of one row do little else than read: where their kernel reads faster than that of the probe of
/// reading, the memory can do it, and what is slower is the other kernel.
fn memory(runs: &[Probed<'_>; 2]) -> Cost {
    let read = spread(runs, "read", "bandwidth", &|_, setting| setting.get("in") == Some("memory"));
    let gemm = spread(runs, "gemv", "bandwidth", &|_, _| true);
    let less = |one: Spread, other: Spread| if other.0 < one.0 { other } else { one };
    let both = read.into_iter().chain(gemm);
    both.reduce(|one, other| [less(one[0], other[0]), less(one[1], other[1])]).map(told_apart)
}

/// Threads of a run on processors; `None` of other devices.
fn threads(side: &Chosen<'_>) -> Option<i64> {
    let trace = side.trace;
    let own = |device: &&model::Device| device.process == side.rank.process && device.ordinal == side.rank.device;
    let device = trace.devices.iter().find(own)?;
    (trace.strings.get(device.vendor?) == "cpu").then_some(i64::from(device.cores?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use model::{ProbeRow, ProbeUnit, Reading, Statistic};

    use super::*;

    /// Bytes per second that one side reads, alone and by a product, the hundredth part of it more or less.
    fn probed(read: f64, gemm: Option<f64>) -> ProbeRun {
        let row = |probe: &str, setting, value| ProbeRow {
            probe: probe.to_owned(),
            metric: "bandwidth".to_owned(),
            setting,
            unit: ProbeUnit::BytesPerSecond,
            value: Reading::Value(Statistic { median: value, min: value, max: value, mad: value / 100.0, repeats: 3 }),
        };
        let read = row("read", Setting::new().with("in", "memory"), read);
        let gemm = gemm.map(|value| row("gemv", Setting::new(), value));
        ProbeRun { rows: [read].into_iter().chain(gemm).collect(), ..ProbeRun::default() }
    }

    /// How often as long B reads a byte.
    fn ratio(a: &ProbeRun, b: &ProbeRun) -> f64 {
        let [a, b] = memory(&[(a, None), (b, None)]).unwrap();
        (b - a).exp()
    }

    /// Three standard deviations of both together are 6.3 %.
    #[test]
    fn devices_that_differ_by_less_than_a_probe_does_can_do_the_same() {
        let own = probed(4e10, None);
        assert_eq!(ratio(&own, &probed(3.8e10, None)), 1.0);
        assert!((ratio(&own, &probed(3.7e10, None)) - 4.0 / 3.7).abs() < 1e-9);
    }

    #[test]
    fn what_a_product_reads_the_memory_can_do() {
        let fast = probed(4e10, Some(3e10));
        assert!((ratio(&fast, &probed(2e10, Some(4e10))) - 1.0).abs() < 1e-9);
        assert!((ratio(&fast, &probed(2e10, Some(1e10))) - 2.0).abs() < 1e-9);
        // A probe that one side alone has is compared with nothing.
        assert!((ratio(&probed(2e10, None), &probed(1e10, Some(4e10))) - 2.0).abs() < 1e-9);
    }
}
