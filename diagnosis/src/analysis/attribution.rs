//! The sweep that gives every nanosecond of every step exactly one bucket (method §2.3 and §2.15).
//!
//! Between two neighbouring starts or ends the set of active operations is constant, and the interval goes to the kind of
//! work with the highest precedence: compute, transfer, copy, wait. Several operations of that kind share it equally; of two
//! kernels of one queue the time is the earlier one's, for which the later one waits (programmatic dependent launch). Shares
//! are summed as exact fractions and turned into nanoseconds once per step by largest remainder, so that the buckets of a
//! step add up to its window and cutting an operation in two changes nothing.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use model::{Ns, Span, Trace};
use rustc_hash::FxHashMap;

use super::{
    bucket::{Bucket, Shadow},
    collective::Split,
    idle::{Explainer, Gap},
    segments::Segments,
    timeline::{DeviceOp, OpKind, Timeline},
};

/// What one device operation is accountable for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exclusive {
    /// Time that is attributed to the operation and to nothing else, ns (its share where several run at once).
    pub busy: Ns,
    /// Of that, the wait of a collective for its other ranks.
    pub waiting: Ns,
    /// Idle time before it that it owns, ns.
    pub idle: Ns,
}

/// Parts into which a nanosecond is divided: all of 1…16 divide it, so that shares of up to 16 operations are exact.
const PARTS: i128 = 720_720;

/// Precedence of the kinds of work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Compute,
    Transfer,
    Copy,
    Wait,
}

const KINDS: usize = 4;

struct Interval {
    span: Span,
    kind: Kind,
    bucket: Bucket,
    op: u32,
}

/// Buckets and shadow of one step.
#[derive(Clone, Debug, Default)]
pub struct Partition {
    /// Nanoseconds by bucket, in bucket order; they add up to the window exactly.
    pub buckets: Vec<(Bucket, Ns)>,
    /// Time of work hidden under other work, by pair.
    pub shadow: Vec<(Shadow, Ns)>,
}

/// The result of the sweep over one rank.
pub struct Attribution {
    /// One partition per window.
    pub partitions: Vec<Partition>,
    /// Gaps in time order.
    pub gaps: Vec<Gap>,
    /// Per device operation.
    pub exclusive: Vec<Exclusive>,
    /// The same time once more, between the cuts that were asked for.
    pub(super) segments: Segments,
}

/// Sweeps over windows, which are in time order and do not overlap. `cuts` are starts and ends of operations.
pub fn attribute(
    trace: &Trace,
    timeline: &Timeline,
    split: &Split,
    explainer: &Explainer<'_>,
    windows: &[Span],
    cuts: Vec<Ns>,
) -> Attribution {
    let intervals = intervals(trace, timeline, split);
    let mut sweep = Sweep {
        timeline,
        explainer,
        intervals: &intervals,
        next: 0,
        ends: BinaryHeap::new(),
        active: Default::default(),
        share: [0; KINDS],
        entered: vec![0; intervals.len()],
        exclusive: vec![0; timeline.ops.len()],
        waiting: FxHashMap::default(),
        idle: vec![0; timeline.ops.len()],
        gaps: Vec::new(),
        segments: Segments::new(cuts),
        since: Since::default(),
    };
    let partitions =
        windows.iter().enumerate().map(|(i, w)| sweep.window(i as u32, *w, i + 1 < windows.len())).collect();
    sweep.drain(Ns::MAX);
    sweep.cut(Ns::MAX);
    let exclusive = |(op, (parts, idle)): (u32, (&i128, &Ns))| Exclusive {
        busy: (parts / PARTS) as Ns,
        waiting: sweep.waiting.get(&op).map_or(0, |parts| (parts / PARTS) as Ns),
        idle: *idle,
    };
    let exclusive = (0..).zip(sweep.exclusive.iter().zip(&sweep.idle)).map(exclusive).collect();
    Attribution { partitions, gaps: sweep.gaps, exclusive, segments: sweep.segments }
}

fn intervals(trace: &Trace, timeline: &Timeline, split: &Split) -> Vec<Interval> {
    let mut out = Vec::with_capacity(timeline.ops.len());
    let mut ended: FxHashMap<u32, Ns> = FxHashMap::default();
    for (i, op) in timeline.ops.iter().enumerate() {
        let mut add = |span: Span, kind, bucket| {
            if !span.is_empty() {
                out.push(Interval { span, kind, bucket, op: i as u32 });
            }
        };
        let whole = Span::new(op.start, op.end);
        match op.kind {
            OpKind::Compute => {
                let ended = ended.entry(op.queue).or_insert(op.start);
                add(Span::new(op.start.max(*ended).min(op.end), op.end), Kind::Compute, Bucket::Compute(op.op));
                *ended = op.end.max(*ended);
            }
            OpKind::Opaque => add(whole, Kind::Compute, Bucket::GraphOpaque),
            OpKind::Copy(dir) => add(whole, Kind::Copy, Bucket::Copy(dir)),
            OpKind::Comm => {
                let transfer = op.end - split.transfer_of(trace, op);
                add(Span::new(op.start, transfer), Kind::Wait, Bucket::CommWait);
                add(Span::new(transfer, op.end), Kind::Transfer, Bucket::CommTransfer);
            }
        }
    }
    out.sort_by_key(|i| i.span.start);
    out
}

/// What was charged since the last cut.
#[derive(Default)]
struct Since {
    parts: BTreeMap<Bucket, i128>,
    busy: Ns,
    idle: BTreeMap<Bucket, Ns>,
}

struct Sweep<'a> {
    timeline: &'a Timeline,
    explainer: &'a Explainer<'a>,
    intervals: &'a [Interval],
    next: usize,
    ends: BinaryHeap<Reverse<(Ns, u32)>>,
    /// Active operations by kind and bucket.
    active: [BTreeMap<Bucket, u32>; KINDS],
    /// Per kind: parts of time that one operation active since the beginning would have been given.
    share: [i128; KINDS],
    /// Value of `share` when each interval became active.
    entered: Vec<i128>,
    exclusive: Vec<i128>,
    /// Of `exclusive`, the waits of collectives.
    waiting: FxHashMap<u32, i128>,
    idle: Vec<Ns>,
    gaps: Vec<Gap>,
    segments: Segments,
    since: Since,
}

impl Sweep<'_> {
    fn window(&mut self, step: u32, window: Span, followed: bool) -> Partition {
        let mut parts: BTreeMap<Bucket, i128> = BTreeMap::new();
        let mut shadow: BTreeMap<Shadow, Ns> = BTreeMap::new();
        let (mut t, mut busy) = (window.start, 0);
        let first_gap = self.gaps.len();
        while t < window.end {
            self.cut(t);
            self.drain(t);
            self.admit(t);
            let next_end = self.ends.peek().map_or(Ns::MAX, |Reverse((end, _))| *end);
            let next_start = self.intervals.get(self.next).map_or(Ns::MAX, |i| i.span.start);
            let until = window.end.min(next_end).min(next_start);
            match (0..KINDS).find(|k| !self.active[*k].is_empty()) {
                Some(kind) => {
                    busy += until - t;
                    self.charge(kind, until - t, &mut parts);
                    self.charge_shadow(until - t, &mut shadow);
                }
                None => self.idle(step, Span::new(t, until), followed && until == window.end),
            }
            t = until;
        }
        let mut buckets: BTreeMap<Bucket, Ns> = round(parts, busy);
        for gap in &self.gaps[first_gap..] {
            for (bucket, span) in &gap.parts {
                *buckets.entry(*bucket).or_default() += span.len();
            }
        }
        Partition { buckets: buckets.into_iter().collect(), shadow: shadow.into_iter().collect() }
    }

    /// Closes what was charged up to the cuts that lie at or before `t`; every cut is a start or an end, so nothing was
    /// charged across one.
    fn cut(&mut self, t: Ns) {
        while self.segments.next_cut().is_some_and(|cut| cut <= t) {
            let since = std::mem::take(&mut self.since);
            let mut buckets = round(since.parts, since.busy);
            for (bucket, ns) in since.idle {
                *buckets.entry(bucket).or_default() += ns;
            }
            self.segments.close(buckets);
        }
    }

    /// Makes the intervals active that have begun by `t`.
    fn admit(&mut self, t: Ns) {
        while let Some(interval) = self.intervals.get(self.next).filter(|i| i.span.start <= t) {
            if interval.span.end > t {
                self.ends.push(Reverse((interval.span.end, self.next as u32)));
                *self.active[interval.kind as usize].entry(interval.bucket).or_default() += 1;
                self.entered[self.next] = self.share[interval.kind as usize];
            }
            self.next += 1;
        }
    }

    /// Ends the intervals that have ended by `t`.
    fn drain(&mut self, t: Ns) {
        while let Some(Reverse((_, index))) = self.ends.peek().filter(|Reverse((end, _))| *end <= t).copied() {
            self.ends.pop();
            let interval = &self.intervals[index as usize];
            let active = &mut self.active[interval.kind as usize];
            match active.get_mut(&interval.bucket) {
                Some(count) if *count > 1 => *count -= 1,
                _ => {
                    active.remove(&interval.bucket);
                }
            }
            let share = self.share[interval.kind as usize] - self.entered[index as usize];
            self.exclusive[interval.op as usize] += share;
            if interval.kind == Kind::Wait {
                *self.waiting.entry(interval.op).or_default() += share;
            }
        }
    }

    fn charge(&mut self, kind: usize, len: Ns, parts: &mut BTreeMap<Bucket, i128>) {
        let count: u32 = self.active[kind].values().sum();
        let each = i128::from(len) * PARTS / i128::from(count.max(1));
        self.share[kind] += each;
        let cutting = self.segments.next_cut().is_some();
        self.since.busy += if cutting { len } else { 0 };
        for (bucket, n) in &self.active[kind] {
            *parts.entry(*bucket).or_default() += each * i128::from(*n);
            if cutting {
                *self.since.parts.entry(*bucket).or_default() += each * i128::from(*n);
            }
        }
    }

    fn charge_shadow(&self, len: Ns, shadow: &mut BTreeMap<Shadow, Ns>) {
        let on = |kind: Kind| !self.active[kind as usize].is_empty();
        let several: u32 = self.active[Kind::Compute as usize].values().sum();
        let pairs = [
            (Shadow::ComputeTransfer, on(Kind::Compute) && on(Kind::Transfer)),
            (Shadow::ComputeCopy, on(Kind::Compute) && on(Kind::Copy)),
            (Shadow::ComputeWait, on(Kind::Compute) && on(Kind::Wait)),
            (Shadow::TransferCopy, on(Kind::Transfer) && on(Kind::Copy)),
            (Shadow::ComputeCompute, several > 1),
        ];
        for (pair, _) in pairs.into_iter().filter(|(_, together)| *together) {
            *shadow.entry(pair).or_default() += len;
        }
    }

    fn idle(&mut self, step: u32, span: Span, between_steps: bool) {
        let ops = &self.timeline.ops;
        let i = ops.partition_point(|op: &DeviceOp| op.start < span.end);
        let owner = ops.get(i).filter(|op| op.start == span.end).map(|_| i);
        let (mut parts, after_sync) = self.explainer.explain(span, owner);
        // An eager run has a gap before nearly every operation, and most have one or two parts.
        parts.shrink_to_fit();
        if let Some(idle) = owner.and_then(|i| self.idle.get_mut(i)) {
            *idle += span.len();
        }
        if self.segments.next_cut().is_some() {
            for (bucket, part) in &parts {
                *self.since.idle.entry(*bucket).or_default() += part.len();
            }
        }
        self.gaps.push(Gap { span, owner: owner.map(|i| i as u32), step, parts, after_sync, between_steps });
    }
}

/// Turns exact parts into nanoseconds that add up to `total`: floors first, then one more for the largest remainders.
fn round(parts: BTreeMap<Bucket, i128>, total: Ns) -> BTreeMap<Bucket, Ns> {
    let mut out: BTreeMap<Bucket, Ns> = parts.iter().map(|(b, p)| (*b, (p / PARTS) as Ns)).collect();
    let missing = total - out.values().sum::<Ns>();
    let mut order: Vec<(Reverse<i128>, Bucket)> = parts.iter().map(|(b, p)| (Reverse(p % PARTS), *b)).collect();
    order.sort();
    for (_, bucket) in order.iter().cycle().take(missing.max(0) as usize) {
        *out.entry(*bucket).or_default() += 1;
    }
    out
}
