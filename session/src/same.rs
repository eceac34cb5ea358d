//! Captures that are one run read twice: a copied file, a trace next to its compressed self, the database and the JSON that a
//! profiler makes of one run. The same kernels by the same clock never are two runs.

use std::{
    collections::{BTreeSet, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

use model::{Category, ImportStat, Severity, StringId, Trace};

/// Kernels from which equal times prove that two captures are of one run: a single one can take the same time twice.
const LEAST: u64 = 2;
/// Statistic of what was left out.
const SAME: &str = "import.same_capture";

/// What two readings of one run share.
#[derive(PartialEq, Eq)]
struct Mark {
    /// Kernels, and a number made of the names, places in time and durations of all of them in any order.
    kernels: (u64, u64),
    /// The same of sums, where a capture has no kernels.
    sums: (u64, u64),
    /// Wall clock of the capture's zero, Unix ns.
    clock: Option<i64>,
    /// Ranks and process ids, as far as they are known.
    processes: BTreeSet<(Option<u32>, Option<i64>)>,
    /// Whether it is simulated.
    simulated: bool,
}

fn number(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Mark {
    fn of(trace: &Trace) -> Self {
        let names: Vec<u64> = trace.strings.iter().map(|(_, text)| number(&text)).collect();
        let name = |id: StringId| names.get(id.0 as usize).copied().unwrap_or(0);
        let is_kernel = |category: &Category| matches!(category, Category::Kernel | Category::GraphExec);
        let lanes = || trace.lanes.iter().filter(|lane| lane.category.iter().any(is_kernel));
        let rows = || {
            lanes().flat_map(|lane| {
                let rows = lane.category.iter().zip(&lane.start).zip(lane.dur.iter().zip(&lane.name));
                rows.filter(|((category, _), _)| is_kernel(category))
                    .map(|((_, start), (dur, name))| (*start, *dur, *name))
            })
        };
        let first = rows().map(|(start, ..)| start).min().unwrap_or(0);
        let add = |(n, sum): (u64, u64), row: u64| (n + 1, sum.wrapping_add(row));
        let kernels = rows().map(|(start, dur, id)| number(&(start.saturating_sub(first), dur, name(id))));
        let sums = trace.summaries.iter().map(|s| number(&(name(s.kernel), s.count, s.total, s.conditions)));
        let own = trace.processes.iter().filter(|process| process.rank.is_some() || process.pid.is_some());
        Self {
            kernels: kernels.fold((0, 0), add),
            sums: sums.fold((0, 0), add),
            clock: trace.start_unix_ns,
            processes: own.map(|process| (process.rank, process.pid)).collect(),
            simulated: trace.simulated,
        }
    }

    /// Whether both are of one run.
    fn is(&self, other: &Self) -> bool {
        let known = |a: &BTreeSet<_>, b: &BTreeSet<_>| a == b || a.is_empty() || b.is_empty();
        let clock = self.clock.zip(other.clock).is_none_or(|(a, b)| a == b);
        let alike = match (self.kernels.0, other.kernels.0) {
            (0, 0) => self.sums.0 > 0 && self.sums == other.sums,
            (n, _) => n >= LEAST && self.kernels == other.kernels,
        };
        alike && clock && self.simulated == other.simulated && known(&self.processes, &other.processes)
    }
}

/// Leaves one capture of each run, the one that holds most, and notes in it what was left out.
pub(crate) fn once(traces: Vec<Trace>) -> Vec<Trace> {
    if traces.len() < 2 {
        return traces;
    }
    let mut kept: Vec<(Mark, Trace)> = Vec::new();
    for trace in traces {
        let mark = Mark::of(&trace);
        let Some((own, known)) = kept.iter_mut().find(|(known, _)| known.is(&mark)) else {
            kept.push((mark, trace));
            continue;
        };
        let mut left = trace;
        if left.slice_count() > known.slice_count() {
            std::mem::swap(known, &mut left);
            *own = mark;
            // What was noted of others holds of the one that takes its place.
            known.stats.extend(left.stats.extract_if(.., |stat| stat.name == SAME));
        }
        known.stats.push(ImportStat {
            name: SAME.to_owned(),
            severity: Severity::Notice,
            count: 1,
            example: Some(format!("'{}' holds the same kernels by the same clock: one run, counted once", left.source)),
        });
    }
    kept.into_iter().map(|(_, trace)| trace).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use model::{Category, Slice, Trace, TraceBuilder, TraceSink, TrackKey, TrackKind};

    use super::*;

    fn run(source: &str, rank: Option<u32>, starts: &[i64], calls: usize) -> Trace {
        let mut builder = TraceBuilder::new(source, "t");
        let process = builder.process(0);
        builder.describe_process(process, Some(7), None, rank);
        let queue = TrackKey { kind: TrackKind::DeviceQueue, process, device: Some(0), context: None, id: 1 };
        let thread = TrackKey { kind: TrackKind::HostThread, process, device: None, context: None, id: 1 };
        let (queue, thread) = (builder.track(queue), builder.track(thread));
        let name = builder.intern("gemm");
        let mut add = |track, start, category| {
            builder.slice(Slice { track, start, dur: 5, name, category, correlation: None, detail: None });
        };
        starts.iter().for_each(|start| add(queue, *start, Category::Kernel));
        (0..calls).for_each(|_| add(thread, 0, Category::HostApi));
        builder.finish()
    }

    fn sources(traces: Vec<Trace>) -> Vec<(String, u64)> {
        once(traces).into_iter().map(|trace| (trace.source.clone(), trace.stat(SAME))).collect()
    }

    /// A copied file, and x.json next to x.json.gz, were two runs.
    #[test]
    fn the_same_kernels_by_the_same_clock_are_one_run() {
        let twice = vec![run("a", None, &[10, 20], 0), run("b", None, &[110, 120], 3), run("c", None, &[10, 20], 0)];
        assert_eq!(sources(twice), [("b".to_owned(), 2)], "the one that holds most, and what it stands for");
        let other = vec![run("a", None, &[10, 20], 0), run("b", None, &[10, 21], 0)];
        assert_eq!(sources(other).len(), 2);
        let ranks = vec![run("a", Some(0), &[10, 20], 0), run("b", Some(1), &[10, 20], 0)];
        assert_eq!(sources(ranks).len(), 2, "ranks that work alike");
        assert_eq!(
            sources(vec![run("a", None, &[10], 0), run("b", None, &[10], 0)]).len(),
            2,
            "one kernel proves nothing"
        );
    }
}
