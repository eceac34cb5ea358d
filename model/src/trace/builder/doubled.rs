//! Rows that a source holds twice: a file that was appended to itself, a part of it that was written again.

use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::{super::NO_CORRELATION, Arrivals};

/// How many rows of the same start and duration are compared with one. Own value; it bounds the work.
const COMPARED: usize = 16;
/// Different rows that a source must have before "all of them stand twice" is no chance. Own value.
const FEWEST: usize = 8;

/// Takes repeated rows out of sorted tracks. Returns how many.
///
/// Equal values prove nothing: coarse clocks, and tables without numbers, have equal rows of different events. Rows are repeated
/// if all rows of the source stand equally often, or if a call stands again under its own id; then that call and its work are.
pub(super) fn take_out(sorted: &mut [Arrivals]) -> u64 {
    let mut twice: Vec<Vec<u32>> = sorted.par_iter().map(repeated).collect();
    if !is_whole(sorted, &twice) {
        let calls: FxHashSet<i64> =
            sorted.iter().zip(&twice).flat_map(|(rows, twice)| twice.iter().filter_map(|i| call(rows, *i))).collect();
        for (rows, twice) in sorted.iter().zip(&mut twice) {
            twice.retain(|i| id(rows, *i).is_some_and(|id| calls.contains(&id)));
        }
    }
    sorted.par_iter_mut().zip(&twice).filter(|(_, twice)| !twice.is_empty()).for_each(|(rows, twice)| {
        let mut out = twice.iter().copied().peekable();
        let kept: Vec<u32> = (0..rows.start.len() as u32).filter(|i| out.next_if_eq(i).is_none()).collect();
        *rows = std::mem::take(rows).picked(&kept);
    });
    twice.iter().map(|twice| twice.len() as u64).sum()
}

/// Rows that equal an earlier one in everything that is known of them.
fn repeated(rows: &Arrivals) -> Vec<u32> {
    let time = |i: usize| (rows.start[i], rows.dur[i]);
    let what = |i: usize| (rows.name[i], rows.category[i], rows.correlation[i], rows.detail[i]);
    let equals_earlier = |at: &usize| {
        let earlier = (at.saturating_sub(COMPARED)..*at).rev();
        earlier.take_while(|i| time(*i) == time(*at)).any(|i| what(i) == what(*at))
    };
    (1..rows.start.len()).filter(equals_earlier).map(|i| i as u32).collect()
}

/// Whether every row of every track stands equally often, more than once.
fn is_whole(sorted: &[Arrivals], twice: &[Vec<u32>]) -> bool {
    let counts = || {
        let lanes = sorted.iter().zip(twice).map(|(rows, twice)| (rows.start.len(), rows.start.len() - twice.len()));
        lanes.filter(|(all, _)| *all > 0)
    };
    let (all, different) = counts().fold((0, 0), |sum, lane| (sum.0 + lane.0, sum.1 + lane.1));
    let times = all.checked_div(different).unwrap_or(0);
    times > 1 && different >= FEWEST && counts().all(|(all, different)| all == times * different)
}

fn id(rows: &Arrivals, at: u32) -> Option<i64> {
    rows.correlation.get(at as usize).copied().filter(|id| *id != NO_CORRELATION)
}

/// The id of a row that is a call and lasts: one thread makes no two calls at once.
fn call(rows: &Arrivals, at: u32) -> Option<i64> {
    let is_call = rows.category.get(at as usize).is_some_and(|category| category.can_launch());
    let lasts = rows.dur.get(at as usize).is_some_and(|dur| *dur > 0);
    id(rows, at).filter(|_| is_call && lasts)
}

#[cfg(test)]
mod tests {
    use crate::{Category, ImportStat, Slice, TraceBuilder, TraceSink, TrackKey, TrackKind};

    /// Kernels and calls as (start, id); rows that are kept, and rows that were taken out.
    fn read(kernels: &[(i64, Option<i64>)], calls: &[(i64, Option<i64>)]) -> (usize, u64) {
        let mut builder = TraceBuilder::new("t", "t");
        let process = builder.process(0);
        let mut track = |kind| builder.track(TrackKey { kind, process, device: Some(0), context: None, id: 1 });
        let (host, queue) = (track(TrackKind::HostThread), track(TrackKind::DeviceQueue));
        let name = builder.intern("f");
        for (track, category, rows) in [(queue, Category::Kernel, kernels), (host, Category::HostApi, calls)] {
            for (start, correlation) in rows.iter().copied() {
                builder.slice(Slice { track, start, dur: 1, name, category, correlation, detail: None });
            }
        }
        let trace = builder.finish();
        (trace.slice_count(), trace.stat(ImportStat::DOUBLED_ROWS))
    }

    /// Task 13792 of a real table of Ascend stands four times to the nanosecond, and so do kernels of coarse clocks.
    #[test]
    fn equal_rows_of_a_device_are_no_repetition() {
        let kernels: Vec<_> = (0..20).map(|i| (i / 4, Some(7))).chain([(9, None)]).collect();
        assert_eq!(read(&kernels, &[]), (21, 0));
        assert_eq!(read(&[(5, None), (5, None)], &[]), (2, 0), "too few to say that all stand twice");
    }

    #[test]
    fn a_call_that_stands_again_under_its_id_is_repeated_and_so_is_its_work() {
        let calls: Vec<_> = (0..20).map(|i| (10 * i, Some(i))).collect();
        let kernels: Vec<_> = (0..20).map(|i| (10 * i + 5, Some(i))).chain([(999, None), (999, None)]).collect();
        assert_eq!(read(&kernels, &calls), (42, 0));
        let again = |rows: &[(i64, Option<i64>)]| [rows, &rows[5..9]].concat();
        assert_eq!(read(&again(&kernels), &again(&calls)), (42, 8));
        assert_eq!(read(&again(&kernels), &calls), (46, 0), "nothing that must be unique stands twice");
    }

    #[test]
    fn rows_that_all_stand_equally_often_are_repeated() {
        let rows: Vec<_> = (0..10).map(|i| (10 * i, None)).collect();
        assert_eq!(read(&rows.repeat(2), &rows.repeat(2)), (20, 20));
        assert_eq!(read(&rows.repeat(3), &[]), (10, 20));
        assert_eq!(read(&rows.repeat(2), &rows), (30, 0));
    }
}
