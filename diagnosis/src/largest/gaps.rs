//! Idle time of the device by what the host did meanwhile, and the longest pauses.

use std::cmp::Reverse;

use model::{Category, Ns, SliceId, Span, StringId, Trace};
use rustc_hash::FxHashMap;

use super::{
    ROWS,
    cover::Cover,
    row::{Kind, Row, Sum, largest},
};
use crate::analysis::{Analysis, Bucket, Rank, idle::Gap, nest::Nests};

/// A pause of the device.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct LongGap {
    /// When it begins, ns from the zero of the capture.
    pub start: Ns,
    /// Its length, ns.
    pub ns: Ns,
    /// Step that it lies in.
    pub step: u32,
    /// The record of the host that owns it; absent where none covers half of it.
    pub owner: Option<String>,
    /// Category of the owner, or the bucket of most of the gap.
    pub of: String,
    /// The kernel or copy that ends it.
    pub ended_by: Option<String>,
    /// The owner's record, else the operation that ends the gap.
    pub slice: Option<SliceId>,
}

/// What a gap is charged to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Charge {
    /// The innermost record of the launching thread that covers at least half of it.
    Record(StringId, Category),
    /// The bucket that most of it is in.
    Bucket(Bucket),
}

/// The idle time of a rank by owner, and its longest gaps.
pub(super) fn of(
    trace: &Trace,
    analysis: &Analysis,
    rank: &Rank,
    windows: &Cover,
    stated: &Cover,
) -> (Vec<Row>, Vec<LongGap>) {
    let mut search = Search { trace, rank, nests: Nests::new(trace) };
    let mut sums: FxHashMap<Charge, Sum> = FxHashMap::default();
    let mut long: Vec<(Ns, usize, Charge, SliceId)> = Vec::new();
    for (index, gap) in rank.gaps.iter().enumerate().filter(|(_, gap)| windows.contains(gap.span.start)) {
        let Some((charge, slice)) = search.charge(index, gap) else { continue };
        sums.entry(charge).or_default().add(gap.span.len(), (gap.span.len(), stated.within(gap.span)), slice);
        if long.len() < ROWS || long.last().is_some_and(|(ns, ..)| gap.span.len() > *ns) {
            long.push((gap.span.len(), index, charge, slice));
            long.sort_by_key(|(ns, index, ..)| (Reverse(*ns), *index));
            long.truncate(ROWS);
        }
    }
    let text = |id: StringId| trace.strings.get(id);
    let said = |charge: Charge| match charge {
        Charge::Record(name, category) => (text(name).to_owned(), category.name().to_owned()),
        Charge::Bucket(bucket) => (String::new(), bucket.name(&analysis.host_labels)),
    };
    let rows = largest(sums, said, |charge, sum| {
        let (name, of) = said(charge);
        sum.row(Kind::Idle, name, of)
    });
    let gap = |(ns, index, charge, slice): (Ns, usize, Charge, SliceId)| {
        let gap = rank.gaps.get(index)?;
        let (owner, of) = said(charge);
        let ended_by = gap.owner.and_then(|op| rank.timeline.ops.get(op as usize)).map(|op| text(op.name).to_owned());
        let (start, step, owner) = (gap.span.start, gap.step, Some(owner).filter(|owner| !owner.is_empty()));
        Some(LongGap { start, ns, step, owner, of, ended_by, slice: Some(slice) })
    };
    (rows, long.into_iter().filter_map(gap).collect())
}

struct Search<'a> {
    trace: &'a Trace,
    rank: &'a Rank,
    nests: Nests<'a>,
}

impl Search<'_> {
    /// What a gap is charged to, and a slice that shows it.
    fn charge(&mut self, index: usize, gap: &Gap) -> Option<(Charge, SliceId)> {
        let op = self.rank.timeline.ops.get(gap.owner? as usize)?;
        let (bucket, part) = gap.parts.iter().max_by_key(|(bucket, part)| (part.len(), Reverse(*bucket)))?;
        let device = (Charge::Bucket(*bucket), op.slice);
        if !bucket.is_host_side() {
            return Some(device);
        }
        if let Some(owner) = self.rank.owners.of(index).filter(|_| matches!(bucket, Bucket::Host(_))) {
            let (track, row) = self.trace.locate(owner.slice)?;
            let category = self.trace.lanes.get(track.0 as usize)?.category.get(row)?;
            return Some((Charge::Record(owner.name, *category), owner.slice));
        }
        Some(self.record(op.call, *part).unwrap_or(device))
    }

    /// The innermost record of the thread that launched the operation that covers at least half of a stretch.
    fn record(&mut self, call: Option<u32>, part: Span) -> Option<(Charge, SliceId)> {
        let call = self.rank.timeline.calls.get(call? as usize)?;
        let lag = self.rank.timeline.lag;
        let part = Span::new(part.start.saturating_add(lag), part.end.saturating_add(lag));
        let lane = self.nests.lane(call.track)?;
        let half = |row: &usize| {
            let own = Span::new(lane.start.get(*row).copied().unwrap_or(0), lane.end(*row));
            own.clip(part).len().saturating_mul(2) >= part.len()
        };
        let row = self.nests.around(call.track, part.start.midpoint(part.end)).into_iter().find(half)?;
        Some((Charge::Record(*lane.name.get(row)?, *lane.category.get(row)?), lane.id(row)))
    }
}
