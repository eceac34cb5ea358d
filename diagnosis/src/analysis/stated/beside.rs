//! Sums of a rank of which nothing else was kept, held against each other: the same truth stands in several files, as parts of
//! steps and as collectives. What these must add up to is told by the profiler's own analysis (torch_npu,
//! `profiler/analysis/prof_view/_trace_step_time_parser.py`, 2025); of whole captures of the corpus they differ by at most a hundredth.

use std::collections::BTreeMap;

use model::{Ns, Span, Stated, StatedSum, Trace};

use super::{differ, far, is_collective, length};
use crate::analysis::{
    contradiction::{Against, Contradiction},
    model::Rank,
    spans::union,
};

/// Name of collectives that wait for what another stage sends and do not send themselves: what a bubble is the sum of.
const RECEIVE: &str = "hcom_receive";

/// A sum, and how many were summed where the source says it.
type Sum = (Ns, Option<u64>);

/// Every sum of the rank that another one contradicts.
pub(super) fn contradictions(trace: &Trace, rank: &Rank, sums: &[&StatedSum]) -> Vec<Contradiction> {
    let source = |sum: &StatedSum| trace.strings.get(sum.source).to_owned();
    // The file whose collectives lie on the time axis is told first.
    let Some(placed) = sums.iter().find(|sum| sum.what == Stated::Collectives).map(|sum| source(sum)) else {
        return Vec::new();
    };
    let mut files: BTreeMap<String, BTreeMap<Stated, Sum>> = BTreeMap::new();
    for sum in sums {
        let known = files.entry(source(sum)).or_default().entry(sum.what).or_insert((0, Some(0)));
        *known = (known.0.saturating_add(sum.time), known.1.zip(sum.count).map(|(a, b)| a.saturating_add(b)));
    }
    let collectives = Collectives::of(trace, rank);
    let mut found = Found { rank: rank.rank, list: Vec::new() };
    for (file, parts) in &files {
        let part = |what| parts.get(&what).map(|(time, _)| *time);
        found.compare(file, &placed, Stated::Communication, part(Stated::Communication), Some(collectives.spanned));
        found.compare(file, &placed, Stated::Receives, part(Stated::Receives), Some(collectives.received));
        let exposed = part(Stated::OverlappedCommunication).map(|hidden| collectives.spanned.saturating_sub(hidden));
        found.compare(file, &placed, Stated::ExposedCommunication, part(Stated::ExposedCommunication), exposed);
        if let Some((time, count)) = parts.get(&Stated::Collectives) {
            let counts = count.map(|count| (count, collectives.count));
            found.count(file, &placed, Stated::Collectives, (*time, collectives.all), counts);
        }
        let own = [Stated::Computing, Stated::ExposedCommunication, Stated::Free].map(part);
        let own = own.into_iter().try_fold(0, |sum: Ns, part| Some(sum.saturating_add(part?)));
        let whole = part(Stated::Stage).zip(part(Stated::Receives)).map(|(stage, bubble)| stage.saturating_add(bubble));
        found.compare(file, file, Stated::Stage, whole, own);
    }
    // What kernels took one by one is no less than the time in which any of them ran.
    let kernels = files.iter().find_map(|(file, parts)| Some((file, parts.get(&Stated::Kernels)?.0)));
    for what in [Stated::Computing, Stated::Free] {
        let mut told = files.iter().filter_map(|(file, parts)| Some((file, parts.get(&what)?.0)));
        let Some((first, time)) = told.next() else { continue };
        for (other, read) in told {
            found.compare(first, other, what, Some(time), Some(read));
        }
    }
    for (file, parts) in &files {
        let computing = parts.get(&Stated::Computing).map(|(time, _)| *time);
        if let Some((other, most)) = kernels.filter(|(_, most)| computing.is_some_and(|time| time > *most)) {
            found.compare(file, other, Stated::Computing, computing, Some(most));
        }
    }
    found.list
}

/// What the collectives that lie on the time axis add up to.
struct Collectives {
    count: u64,
    /// The time in which any ran.
    spanned: Ns,
    /// Their durations.
    all: Ns,
    /// Those of receives.
    received: Ns,
}

impl Collectives {
    fn of(trace: &Trace, rank: &Rank) -> Self {
        let ops = || rank.timeline.ops.iter().filter(|op| is_collective(op));
        let sum = |receives: bool| {
            let of = ops().filter(|op| !receives || trace.strings.get(op.name).starts_with(RECEIVE));
            of.map(|op| op.dur()).fold(0, Ns::saturating_add)
        };
        let spans = ops().map(|op| Span::new(op.start, op.end)).collect();
        Self { count: ops().count() as u64, spanned: length(&union(spans)), all: sum(false), received: sum(true) }
    }
}

struct Found {
    rank: u32,
    list: Vec<Contradiction>,
}

impl Found {
    /// Adds two sums that are there and lie apart: what `file` says, and what follows from `other`.
    fn compare(&mut self, file: &str, other: &str, what: Stated, stated: Option<Ns>, read: Option<Ns>) {
        if let Some((stated, read)) = stated.zip(read) {
            self.count(file, other, what, (stated, read), None);
        }
    }

    fn count(&mut self, file: &str, other: &str, what: Stated, (stated, read): (Ns, Ns), counts: Option<(u64, u64)>) {
        if differ(stated, read) || counts.is_some_and(|(a, b)| far(a as f64, b as f64)) {
            let (rank, source, against) = (self.rank, file.to_owned(), Against::Sums(other.to_owned()));
            self.list.push(Contradiction { rank, source, what, counts, stated, read, against });
        }
    }
}
