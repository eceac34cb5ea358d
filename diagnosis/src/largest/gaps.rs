//! Idle time of the device by what the host did at each instant, and the longest pauses.

use std::cmp::Reverse;

use model::{Category, Ns, SliceId, StringId, Trace};
use rustc_hash::FxHashMap;

use super::{
    ROWS,
    cover::Cover,
    row::{Kind, Row, Sum, largest},
};
use crate::{
    analysis::{Analysis, Bucket, Rank, Step, idle::Gap},
    ledger::idle::{self, Idle, Part},
};

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
    /// The operation that ends the gap.
    pub slice: Option<SliceId>,
}

/// What a part of a gap is charged to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Charge {
    /// The innermost record of the thread that kept the device waiting.
    Record(StringId, Category),
    /// Where none covers it, the bucket that most of the part is in.
    Bucket(Bucket),
}

/// The idle time of a rank in `steps` by owner, and its longest gaps.
pub(super) fn of(
    trace: &Trace,
    analysis: &Analysis,
    rank: &Rank,
    steps: &[&Step],
    stated: &Cover,
) -> (Vec<Row>, Vec<LongGap>) {
    let idle = idle::of(trace, rank, steps);
    let mut sums: FxHashMap<Charge, Sum> = FxHashMap::default();
    let mut long: Vec<(Ns, &Gap, Option<Charge>, SliceId)> = Vec::new();
    for parts in idle.parts.chunk_by(|a, b| a.gap == b.gap) {
        let Some(gap) = parts.first().and_then(|part| rank.gaps.get(part.gap as usize)) else { continue };
        let Some(op) = gap.owner.and_then(|op| rank.timeline.ops.get(op as usize)) else { continue };
        let charges = charges(&idle, gap, parts, stated);
        for (charge, ns, stated) in charges {
            sums.entry(charge).or_default().add(ns, (ns, stated), op.slice);
        }
        if long.len() < ROWS || long.last().is_some_and(|(ns, ..)| gap.span.len() > *ns) {
            long.push((gap.span.len(), gap, holder(&idle, gap, parts), op.slice));
            long.sort_by_key(|(ns, gap, ..)| (Reverse(*ns), gap.span.start));
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
    let gap = |(ns, gap, charge, slice): (Ns, &Gap, Option<Charge>, SliceId)| {
        let largest = || gap.parts.iter().max_by_key(|(_, span)| span.len()).map(|(bucket, _)| Charge::Bucket(*bucket));
        let (owner, of) = charge.or_else(largest).map(said)?;
        let ended_by = gap.owner.and_then(|op| rank.timeline.ops.get(op as usize)).map(|op| text(op.name).to_owned());
        let (start, step, owner) = (gap.span.start, gap.step, Some(owner).filter(|owner| !owner.is_empty()));
        Some(LongGap { start, ns, step, owner, of, ended_by, slice: Some(slice) })
    };
    (rows, long.into_iter().filter_map(gap).collect())
}

/// The innermost record that holds at least half of a gap, what lies inside it included.
fn holder(idle: &Idle<'_>, gap: &Gap, parts: &[Part]) -> Option<Charge> {
    let mut held: FxHashMap<(StringId, Category), (Ns, usize)> = FxHashMap::default();
    for part in parts {
        let mut path: Vec<(StringId, Category)> = part
            .path
            .map(|path| idle.names.along(path).filter_map(|key| idle.names.told(key)).collect())
            .unwrap_or_default();
        // Own time stands below its record under the same name.
        path.dedup();
        for (depth, record) in path.iter().rev().enumerate() {
            let (ns, deepest) = held.entry(*record).or_default();
            (*ns, *deepest) = (*ns + part.span.len(), depth.max(*deepest));
        }
    }
    let half = held.into_iter().filter(|(_, (ns, _))| 2 * ns >= gap.span.len());
    let found = half.max_by_key(|((name, _), (ns, depth))| (*depth, *ns, Reverse(*name)));
    found.map(|((name, category), _)| Charge::Record(name, category))
}

/// What the parts of a gap are charged to, each with its time and what of it a finding is about, ns.
fn charges(idle: &Idle<'_>, gap: &Gap, parts: &[Part], stated: &Cover) -> Vec<(Charge, Ns, Ns)> {
    let mut out: Vec<(Charge, Ns, Ns)> = Vec::new();
    for part in parts {
        let record = part.path.and_then(|path| idle.names.innermost(path));
        let in_bucket = || {
            let buckets = gap.parts.iter().map(|(bucket, span)| (*bucket, span.clip(part.span).len()));
            buckets.max_by_key(|(bucket, ns)| (*ns, Reverse(*bucket))).map(|(bucket, _)| Charge::Bucket(bucket))
        };
        let charge = record.map(|(name, category)| Charge::Record(name, category)).or_else(in_bucket);
        let Some(charge) = charge else { continue };
        let (ns, stated) = (part.span.len(), stated.within(part.span));
        match out.iter_mut().find(|(known, ..)| *known == charge) {
            Some((_, sum, about)) => (*sum, *about) = (*sum + ns, *about + stated),
            None => out.push((charge, ns, stated)),
        }
    }
    out
}
