//! Measurements of kernels, run alone or counted in the run, joined to the kernels of a capture: by name, then by the shape of the
//! launch, then by order. The run's own durations stay what they are; a measurement says what a kernel used of the device.

use model::{Conditions, Detail, KernelSummary, Ns, SliceId, StringId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

use super::timeline::{DeviceOp, OpKind, Timeline};

mod identity;

use identity::Identity;

/// How many times as many blocks a launch may have as the measured one, or as few, to be the same work: a kernel keeps its
/// use of the device while it has waves to fill. Own value.
const NEAREST: f64 = 2.0;

/// Measurements of one kernel that are told apart; profilers are told to measure a few launches of each.
const MOST: usize = 256;

/// How much of the capture was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Joined {
    /// Measurements there are.
    pub measurements: u64,
    /// Of those, measurements of a kernel that the capture holds.
    pub matched: u64,
    /// Executions that a measurement speaks of.
    pub executions: u64,
    /// Their time, ns.
    pub time: Ns,
    /// Time of all kernels that compute, ns.
    pub of: Ns,
}

/// Which measurement speaks of which kernel.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// How much of the capture was measured.
    pub joined: Joined,
    of: FxHashMap<SliceId, u32>,
}

/// A launch as far as a measurement can be told by it.
type Launch = (StringId, Option<[u32; 3]>, Option<[u32; 3]>);

impl Measured {
    /// The measurement that speaks of an operation.
    pub fn of<'t>(&self, trace: &'t Trace, op: &DeviceOp) -> Option<&'t KernelSummary> {
        trace.summaries.get(*self.of.get(&op.slice)? as usize)
    }

    /// Joins what the capture holds.
    pub(super) fn join(trace: &Trace, timelines: &[&Timeline]) -> Self {
        let candidates = Candidates::of(trace, timelines);
        let mut measured = Self::default();
        measured.joined.measurements = candidates.all.len() as u64;
        let mut matched: FxHashSet<u32> = FxHashSet::default();
        for timeline in timelines.iter().filter(|_| !candidates.all.is_empty()) {
            let mut launches: FxHashMap<Launch, Vec<&DeviceOp>> = FxHashMap::default();
            for op in timeline.ops.iter().filter(|op| op.kind == OpKind::Compute) {
                launches.entry(launch(trace, op)).or_default().push(op);
                measured.joined.of = measured.joined.of.saturating_add(op.dur());
            }
            for (launch, ops) in launches {
                let fitting = candidates.of_launch(trace, &launch);
                for (i, op) in ops.iter().enumerate() {
                    let Some(summary) = in_order(trace, &fitting, i, ops.len()) else { continue };
                    matched.insert(summary);
                    measured.of.insert(op.slice, summary);
                    measured.joined.executions += 1;
                    measured.joined.time = measured.joined.time.saturating_add(op.dur());
                }
            }
        }
        measured.joined.matched = matched.len() as u64;
        measured
    }
}

/// The measurement of the `i`-th of `n` executions of one launch: in turn where the executions are whole rounds of what was
/// measured, else the one of median duration.
fn in_order(trace: &Trace, fitting: &[u32], i: usize, n: usize) -> Option<u32> {
    if fitting.len() <= 1 || n.is_multiple_of(fitting.len()) {
        return fitting.get(i % fitting.len().max(1)).copied();
    }
    let mut sorted = fitting.to_vec();
    sorted.sort_by_key(|at| trace.summaries.get(*at as usize).and_then(|summary| summary.total));
    sorted.get((sorted.len() - 1) / 2).copied()
}

fn launch(trace: &Trace, op: &DeviceOp) -> Launch {
    let shape = || {
        let (track, row) = trace.locate(op.slice)?;
        match trace.detail(trace.lanes.get(track.0 as usize)?, row)? {
            Detail::Kernel(kernel) => Some((kernel.grid, kernel.block)),
            _ => None,
        }
    };
    let (grid, block) = shape().unwrap_or_default();
    (op.name, grid, block)
}

/// The measurements of a capture by the names of its kernels.
struct Candidates {
    all: Vec<u32>,
    by_name: FxHashMap<StringId, Vec<u32>>,
}

impl Candidates {
    fn of(trace: &Trace, timelines: &[&Timeline]) -> Self {
        let single = |s: &KernelSummary| matches!(s.conditions, Conditions::Isolated | Conditions::Counted);
        let all: Vec<u32> = (0..).zip(&trace.summaries).filter(|(_, s)| single(s)).map(|(at, _)| at).collect();
        let mut whole: FxHashMap<String, Vec<u32>> = FxHashMap::default();
        let mut functions: FxHashMap<String, (FxHashSet<String>, Vec<u32>)> = FxHashMap::default();
        let mut identities: FxHashMap<StringId, Identity> = FxHashMap::default();
        for (at, summary) in all.iter().filter_map(|at| Some((*at, trace.summaries.get(*at as usize)?))) {
            let identity =
                identities.entry(summary.kernel).or_insert_with(|| Identity::of(trace.strings.get(summary.kernel)));
            let (spellings, by_function) = functions.entry(identity.function.clone()).or_default();
            spellings.insert(identity.whole.clone());
            for same in [whole.entry(identity.whole.clone()).or_default(), by_function] {
                if same.len() < MOST {
                    same.push(at);
                }
            }
        }
        if all.is_empty() {
            return Self { all, by_name: FxHashMap::default() };
        }
        let compute = |op: &&DeviceOp| op.kind == OpKind::Compute;
        let names: FxHashSet<StringId> =
            timelines.iter().flat_map(|timeline| &timeline.ops).filter(compute).map(|op| op.name).collect();
        let names: Vec<(StringId, Identity)> =
            names.into_iter().map(|name| (name, Identity::of(trace.strings.get(name)))).collect();
        let mut variants: FxHashMap<&str, FxHashSet<&str>> = FxHashMap::default();
        for (_, identity) in &names {
            variants.entry(&identity.function).or_default().insert(&identity.whole);
        }
        // A tool that was asked for short names says which function it measured and not which variant of it: that is enough
        // where there is only one.
        let by_function = |identity: &Identity| {
            let (spellings, same) = functions.get(&identity.function)?;
            let single = spellings.len() == 1 && variants.get(identity.function.as_str()).is_some_and(|v| v.len() == 1);
            let short = identity.is_short() || spellings.contains(&identity.function);
            (single && short).then(|| same.clone())
        };
        let fitting = |identity: &Identity| whole.get(&identity.whole).cloned().or_else(|| by_function(identity));
        let by_name = names.iter().filter_map(|(name, identity)| Some((*name, fitting(identity)?))).collect();
        Self { all, by_name }
    }

    /// The measurements that fit a launch best, in the order they were taken.
    fn of_launch(&self, trace: &Trace, launch: &Launch) -> Vec<u32> {
        let Some(named) = self.by_name.get(&launch.0) else { return Vec::new() };
        let fits = named.iter().filter_map(|at| {
            let summary = trace.summaries.get(*at as usize)?;
            Some((distance(launch, summary)?, *at))
        });
        let fits: Vec<(f64, u32)> = fits.collect();
        let least = fits.iter().map(|(distance, _)| *distance).fold(f64::INFINITY, f64::min);
        fits.into_iter().filter(|(distance, _)| *distance <= least).map(|(_, at)| at).collect()
    }
}

/// How far a launch is from a measured one, 0 where they have the same shape; `None` where they are other work.
fn distance((_, grid, block): &Launch, summary: &KernelSummary) -> Option<f64> {
    if let (Some(own), Some(measured)) = (block, &summary.block)
        && own != measured
    {
        return None;
    }
    let (Some(own), Some(measured)) = (grid, &summary.grid) else { return Some(NEAREST) };
    if own == measured {
        return Some(0.0);
    }
    let blocks = |sides: &[u32; 3]| sides.iter().map(|n| f64::from(*n)).product::<f64>().max(1.0);
    let (own, measured) = (blocks(own), blocks(measured));
    let ratio = own.max(measured) / own.min(measured);
    (ratio <= NEAREST).then_some(ratio)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use model::{Metric, TraceSink};

    use super::*;
    use crate::analysis::script::Script;

    const IN_RUN: &str = "void at::native::foo<(int)4, at::native::Add<int>>(int, T2)";
    const APART: &str = "void at::native::foo<4, at::native::Add<int> >(int, at::native::Add<int>)";

    /// Launches of so many blocks, 10 ns each, and measurements: name, blocks, occupancy; their occupancy in time order.
    fn joined(launches: &[(&str, u32)], measured: &[(&str, u32, f64)]) -> (Vec<Option<f64>>, Joined) {
        let mut script = Script::default();
        for (i, (name, blocks)) in (0..).zip(launches) {
            let at = 100 * i;
            script.launch_blocks((at, at + 5), name, (at + 10, at + 20), *blocks);
        }
        for (name, blocks, occupancy) in measured {
            let kernel = script.builder.intern(name);
            script.builder.summary(KernelSummary {
                grid: Some([*blocks, 1, 1]),
                metrics: vec![(Metric::Occupancy, *occupancy)],
                ..KernelSummary::of(kernel, Conditions::Isolated)
            });
        }
        let (trace, analysis) = script.analyze();
        let ops = &analysis.ranks[0].timeline.ops;
        let of = |op| analysis.measured.of(&trace, op).and_then(|s| s.metric(Metric::Occupancy));
        (ops.iter().map(of).collect(), analysis.measured.joined)
    }

    #[test]
    fn names_then_shapes_decide() {
        let launches = [(IN_RUN, 8), (IN_RUN, 100), (IN_RUN, 150), (IN_RUN, 900), ("bar", 8)];
        let (found, joined) = joined(&launches, &[(APART, 8, 1.0), (APART, 100, 2.0), ("baz", 8, 3.0)]);
        assert_eq!(found, [Some(1.0), Some(2.0), Some(2.0), None, None]);
        let expected = Joined { measurements: 3, matched: 2, executions: 3, time: 30, of: 50 };
        assert_eq!(joined, expected);
    }

    #[test]
    fn executions_take_their_measurements_in_turn() {
        let launches = [(IN_RUN, 8); 4];
        let (found, _) = joined(&launches, &[(APART, 8, 1.0), (APART, 8, 2.0)]);
        assert_eq!(found, [1.0, 2.0, 1.0, 2.0].map(Some));
        let (found, _) = joined(&launches[..3], &[(APART, 8, 1.0), (APART, 8, 2.0)]);
        assert_eq!(found, [1.0; 3].map(Some), "no whole rounds");
    }

    #[test]
    fn a_short_name_is_enough_only_where_there_is_one_variant() {
        let other = "void at::native::foo<(int)4, at::native::Add<float>>(int, T2)";
        assert_eq!(joined(&[(IN_RUN, 8)], &[("foo", 8, 1.0)]).0, [Some(1.0)]);
        assert_eq!(joined(&[(IN_RUN, 8), (other, 8)], &[("foo", 8, 1.0)]).0, [None, None]);
        assert_eq!(joined(&[(IN_RUN, 8)], &[(other, 8, 1.0)]).0, [None], "another type is another kernel");
    }

    #[test]
    fn sums_over_the_run_measure_nothing() {
        let mut script = Script::default();
        script.launch((0, 5), "foo", (10, 20));
        let kernel = script.builder.intern("foo");
        script.builder.summary(KernelSummary::of(kernel, Conditions::Run));
        assert_eq!(script.analyze().1.measured.joined, Joined::default());
    }
}
