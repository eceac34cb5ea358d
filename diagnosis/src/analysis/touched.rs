//! A capture in which the device was hardly touched: a copy or a fill ran and no kernel, while a host worked for long.

use model::{Ns, Trace, TrackKind};

use super::{OpKind, Rank};

/// One part in so many of what the host recorded up to which the work of a device is no run; heuristic.
const LEAST: Ns = 100;

/// Whether no kernel ran, and what did reaches over less than a hundredth of a host thread.
pub fn hardly(trace: &Trace, ranks: &[Rank]) -> bool {
    let mut ops = ranks.iter().flat_map(|rank| &rank.timeline.ops).peekable();
    if ops.peek().is_none() || !ops.all(|op| matches!(op.kind, OpKind::Copy(_))) {
        return false;
    }
    let of_rank = |rank: &Rank| {
        let ends = rank.timeline.ops.iter().map(|op| op.end).max().zip(rank.timeline.ops.first().map(|op| op.start));
        ends.map_or(0, |(end, start)| end.saturating_sub(start))
    };
    let device = ranks.iter().map(of_rank).max().unwrap_or(0);
    let threads = trace.tracks.iter().zip(&trace.lanes).filter(|(track, _)| track.key.kind == TrackKind::HostThread);
    let reaches = threads.filter_map(|(_, lane)| {
        let last = (0..lane.len()).map(|row| lane.end(row)).max()?;
        Some(last.saturating_sub(*lane.start.first()?))
    });
    device.saturating_mul(LEAST) < reaches.max().unwrap_or(0)
}
