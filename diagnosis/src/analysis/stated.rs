//! What the profiler itself summed, held against what its rows add up to, or where a rank has none against its other sums. A table
//! of which rows are missing, or one of another run, looks like any other: only a sum tells.

use std::collections::BTreeMap;

use model::{Category, Ns, Span, Stated, StatedSum, StringId, Trace, TrackKind};
use rustc_hash::FxHashSet;

mod beside;

use super::{
    contradiction::{Against, Contradiction},
    model::Rank,
    spans::union,
    timeline::{DeviceOp, OpKind},
};

/// How far both sums may lie apart, as a share of the larger: what profilers round, and what of a step's edge one counts and
/// the other cuts; own value, the largest difference of whole captures of the corpus is a hundredth of it.
pub const AGREE: f64 = 0.02;
/// Sums that lie less apart are rounded, ns.
const ROUNDING: Ns = 1_000;

/// Every sum that the rows contradict, in order of ranks and sources. What the capture holds no rows of at all, or a rank
/// without device work, is not contradicted: it is not there.
pub fn contradictions(trace: &Trace, ranks: &[Rank]) -> Vec<Contradiction> {
    let mut sums: BTreeMap<(u32, usize), Vec<&StatedSum>> = BTreeMap::new();
    for sum in &trace.stated {
        let of = ranks.iter().enumerate().filter(|(_, rank)| sum.process.is_none_or(|process| process == rank.process));
        if let Some((index, rank)) = of.clone().next().filter(|_| sum.process.is_some() || of.count() == 1) {
            sums.entry((rank.rank, index)).or_default().push(sum);
        }
    }
    let found = sums.into_iter().filter_map(|((_, index), sums)| {
        let rank = ranks.get(index)?;
        Some(match rank.timeline.collectives_only {
            true => beside::contradictions(trace, rank, &sums),
            false => with_rows(trace, rank, &sums),
        })
    });
    found.flatten().collect()
}

/// The sums of a rank that its rows contradict, in order of their sources.
fn with_rows(trace: &Trace, rank: &Rank, sums: &[&StatedSum]) -> Vec<Contradiction> {
    let mut told: BTreeMap<(&str, Stated), Vec<&StatedSum>> = BTreeMap::new();
    for sum in sums {
        told.entry((trace.strings.get(sum.source), sum.what)).or_default().push(sum);
    }
    let found = told.into_iter().filter_map(|((source, what), sums)| {
        let stated = sums.iter().map(|sum| sum.time).fold(0, Ns::saturating_add);
        let counted = sums.iter().map(|sum| sum.count).sum::<Option<u64>>();
        let (read, rows) = match what {
            Stated::HostCalls => calls(trace, rank, &sums)?,
            Stated::Kernels => kernels(rank)?,
            Stated::Computing | Stated::Communication | Stated::ExposedCommunication => {
                (nearest(rank, what, stated)?, None)
            }
            // Steps of other edges say nothing of these.
            _ => return None,
        };
        let counts = counted.zip(rows);
        let apart = differ(stated, read) || counts.is_some_and(|(a, b)| far(a as f64, b as f64));
        let (source, against) = (source.to_owned(), Against::Rows);
        apart.then_some(Contradiction { rank: rank.rank, source, what, counts, stated, read, against })
    });
    found.collect()
}

fn differ(stated: Ns, read: Ns) -> bool {
    stated.abs_diff(read) > ROUNDING.unsigned_abs() && far(stated as f64, read as f64)
}

fn far(a: f64, b: f64) -> bool {
    (a - b).abs() > AGREE * a.max(b)
}

fn is_kernel(op: &DeviceOp) -> bool {
    op.kind == OpKind::Compute
}

fn is_collective(op: &DeviceOp) -> bool {
    op.kind == OpKind::Comm
}

/// Time and number of a rank's kernels.
fn kernels(rank: &Rank) -> Option<(Ns, Option<u64>)> {
    let of = || rank.timeline.ops.iter().filter(|op| is_kernel(op));
    let rows = of().count() as u64;
    (rows > 0).then(|| (of().map(DeviceOp::dur).fold(0, Ns::saturating_add), Some(rows)))
}

/// Time and number of the calls that were summed, by their names.
fn calls(trace: &Trace, rank: &Rank, sums: &[&StatedSum]) -> Option<(Ns, Option<u64>)> {
    let names: FxHashSet<StringId> = sums.iter().filter_map(|sum| sum.name).collect();
    let (mut time, mut rows): (Ns, u64) = (0, 0);
    for (track, lane) in trace.tracks.iter().zip(&trace.lanes) {
        if track.key.kind != TrackKind::HostThread || track.key.process != rank.process {
            continue;
        }
        let is_call = |i: &usize| {
            matches!(lane.category[*i], Category::HostApi | Category::CollectiveCall) && names.contains(&lane.name[*i])
        };
        for i in (0..lane.len()).filter(is_call) {
            time = time.saturating_add(lane.dur[i]);
            rows += 1;
        }
    }
    (rows > 0).then_some((time, Some(rows)))
}

/// A part of the device's time: that of the whole capture, or that of its steps where the profiler's sum lies nearer, or what
/// it says itself where it lies between the two: profilers sum steps, of which they know other edges than we do.
fn nearest(rank: &Rank, what: Stated, stated: Ns) -> Option<Ns> {
    let ops = &rank.timeline.ops;
    (!ops.is_empty()).then_some(())?;
    let spans = |is: fn(&DeviceOp) -> bool| {
        union(ops.iter().filter(|op| is(op)).map(|op| Span::new(op.start, op.end)).collect())
    };
    let (computing, communication) = (spans(is_kernel), spans(is_collective));
    let part = match what {
        Stated::Computing => computing,
        Stated::Communication => communication,
        _ => without(&communication, &computing),
    };
    let windows = union(rank.steps.iter().map(|step| step.window).collect());
    let all = length(&part);
    let outside = length(&without(&part, &windows));
    Some(stated.clamp(all - outside, all))
}

fn length(spans: &[Span]) -> Ns {
    spans.iter().map(|span| span.len()).fold(0, Ns::saturating_add)
}

/// What of `spans` no span of `others` covers; both are in order and apart.
fn without(spans: &[Span], others: &[Span]) -> Vec<Span> {
    let mut rest = Vec::new();
    let mut first = 0;
    for span in spans {
        let mut from = span.start;
        while others.get(first).is_some_and(|other| other.end <= span.start) {
            first += 1;
        }
        for other in others.iter().skip(first).take_while(|other| other.start < span.end) {
            if other.start > from {
                rest.push(Span::new(from, other.start));
            }
            from = from.max(other.end);
        }
        if from < span.end {
            rest.push(Span::new(from, span.end));
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_covered_is_left() {
        let spans = |list: &[(Ns, Ns)]| list.iter().map(|(a, b)| Span::new(*a, *b)).collect::<Vec<_>>();
        let left = without(&spans(&[(0, 10), (20, 30), (40, 50)]), &spans(&[(5, 22), (24, 26), (40, 60)]));
        assert_eq!(left, spans(&[(0, 5), (22, 24), (26, 30)]));
    }

    #[test]
    fn two_percent_and_a_microsecond_are_no_contradiction() {
        assert!(!differ(1_000_000, 981_000) && differ(1_000_000, 970_000));
        assert!(!differ(900, 0) && !differ(0, 0) && differ(75_174_574, 27_101_000));
    }
}
