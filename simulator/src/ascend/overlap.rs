//! What the exporter derives from the tasks: when the device computed, when it communicated, and when it did neither.

use super::device::{Device, What};

/// Disjoint intervals in the order of time.
type Intervals = Vec<(i64, i64)>;

/// The device's time by what it was for.
pub(super) struct Overlap {
    pub(super) computing: Intervals,
    pub(super) communication: Intervals,
    pub(super) exposed: Intervals,
    pub(super) free: Intervals,
}

impl Overlap {
    pub(super) fn of(device: &Device) -> Self {
        let kernels = device.tasks.iter().filter(|task| matches!(task.what, What::Kernel { .. }));
        let computing = union(kernels.map(|task| (task.start, task.end)));
        let communication = union(device.collectives.iter().map(|collective| (collective.start, collective.end)));
        let busy = union(computing.iter().chain(&communication).copied());
        let span = busy.first().zip(busy.last()).map(|(first, last)| (first.0, last.1));
        Self {
            exposed: without(&communication, &computing),
            free: without(&span.into_iter().collect::<Vec<_>>(), &busy),
            computing,
            communication,
        }
    }
}

/// Length of disjoint intervals (ns).
pub(super) fn length(intervals: &[(i64, i64)]) -> i64 {
    intervals.iter().map(|(start, end)| end - start).sum()
}

fn union(intervals: impl Iterator<Item = (i64, i64)>) -> Intervals {
    let mut sorted: Intervals = intervals.collect();
    sorted.sort_unstable();
    let mut out: Intervals = Vec::new();
    for (start, end) in sorted {
        match out.last_mut() {
            Some((_, last)) if *last >= start => *last = end.max(*last),
            _ => out.push((start, end)),
        }
    }
    out
}

/// The part of `all` that `taken` leaves; both disjoint and in order.
fn without(all: &[(i64, i64)], taken: &[(i64, i64)]) -> Intervals {
    let (mut out, mut next) = (Vec::new(), 0);
    for &(mut start, end) in all {
        while let Some(&(from, to)) = taken.get(next).filter(|(from, _)| *from < end) {
            if from > start {
                out.push((start, from));
            }
            start = start.max(to);
            if to > end {
                break;
            }
            next += 1;
        }
        if start < end {
            out.push((start, end));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_neither_lost_nor_counted_twice() {
        let all = union([(0, 10), (5, 20), (30, 40), (50, 60)].into_iter());
        assert_eq!(all, [(0, 20), (30, 40), (50, 60)]);
        assert_eq!(without(&all, &[(-5, 2), (8, 9), (18, 35), (55, 70)]), [(2, 8), (9, 18), (35, 40), (50, 55)]);
        assert_eq!(without(&all, &[(0, 60)]), []);
        assert_eq!(length(&all), 40);
    }
}
