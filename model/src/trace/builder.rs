//! The builder that every source writes into: it collects in order of arrival and settles the whole at the end.

mod doubled;
mod sink;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::{Columns, NO_CORRELATION, NONE, Trace};
use crate::{
    ceiling::{Ceiling, Meter},
    sink::{Clock, TraceSink},
    slice::{Category, Detail},
    stat::{ImportStat, Severity},
    strings::StringId,
    time::{Ns, Span},
    track::{ProcessId, TrackId, TrackKey, TrackKind},
};

/// Deepest nesting that is told apart; what lies deeper shares this depth, so that a hostile file cannot make the search
/// for a free depth quadratic.
const MAX_DEPTH: usize = 1024;

/// Slices of one track, in order of arrival until they are sorted.
#[derive(Default)]
struct Arrivals {
    start: Vec<Ns>,
    dur: Vec<Ns>,
    name: Vec<StringId>,
    category: Vec<Category>,
    correlation: Vec<i64>,
    detail: Vec<u32>,
}

/// Collects what a source says and settles it into a [`Trace`].
#[derive(Default)]
pub struct TraceBuilder {
    trace: Trace,
    clock: Option<Clock>,
    process_ids: FxHashMap<u64, ProcessId>,
    track_ids: FxHashMap<TrackKey, TrackId>,
    detail_ids: FxHashMap<Detail, u32>,
    device_ids: FxHashMap<(ProcessId, i32), usize>,
    counter_ids: FxHashMap<(ProcessId, Option<i32>, StringId), usize>,
    stat_ids: FxHashMap<String, usize>,
    ledger_ids: FxHashMap<String, usize>,
    arrivals: Vec<Arrivals>,
    slices: u32,
    meter: Meter,
    /// Values of counters of kernels kept so far.
    counters_of_kernels: usize,
    /// Durations of all slices, ns.
    time: Ns,
    /// From the source's clock to the Unix epoch, where whoever recorded the source knows it.
    unix_offset: Option<Ns>,
}

impl TraceBuilder {
    /// A builder for the source at `path`, read as `format`.
    pub fn new(source: impl Into<String>, format: impl Into<String>) -> Self {
        let mut builder = Self::default();
        builder.trace.source = source.into();
        builder.trace.format = format.into();
        builder
    }

    /// Says what is to be added to a time of the source to have Unix nanoseconds, for sources that do not say it themselves.
    pub fn assume_unix_offset(&mut self, offset: Option<Ns>) {
        self.unix_offset = offset;
    }

    /// Keeps what fits below a ceiling and nothing beyond it. A capture that has come to it is a part of what the source holds,
    /// so whoever set the ceiling asks whether it [was reached](Ceiling::is_reached).
    pub fn limit(&mut self, ceiling: Ceiling) {
        self.meter = Meter::new(ceiling);
    }

    /// Slices kept so far.
    pub fn kept(&self) -> u32 {
        self.slices
    }

    /// Settles everything: one clock, sorted tracks, nesting depths, launch links and the statistics of all that.
    pub fn finish(mut self) -> Trace {
        let earliest = self.arrivals.iter().flat_map(|a| &a.start).min().copied();
        let (zero, unix) = match self.clock.unwrap_or(Clock::FromFirstSlice { unix_offset: None }) {
            Clock::FromFirstSlice { unix_offset } => {
                let zero = earliest.unwrap_or(0);
                (zero, unix_offset.or(self.unix_offset).and_then(|offset| offset.checked_add(zero)))
            }
            Clock::AsIs { unix_zero } => (0, unix_zero),
        };
        self.trace.start_unix_ns = unix;
        let mut overlapping = 0;
        let arrivals = std::mem::take(&mut self.arrivals);
        let mut sorted: Vec<Arrivals> = arrivals.into_par_iter().map(Arrivals::sorted).collect();
        let doubled = doubled::take_out(&mut sorted);
        self.trace.lanes = sorted.into_par_iter().map(|a| settle_lane(a, zero)).collect::<Vec<Columns>>().into();
        if doubled > 0 {
            let why = "rows that the source holds again, every row or calls under their ids with their work";
            self.stat(ImportStat::DOUBLED_ROWS, Severity::Notice, doubled, Some(why));
        }
        for (track, lane) in self.trace.tracks.iter().zip(&self.trace.lanes) {
            if track.key.kind == TrackKind::DeviceQueue {
                overlapping += lane.depth.iter().filter(|d| **d > 0).count() as u64;
            }
        }
        self.trace.number_slices();
        self.settle_times(zero);
        if overlapping > 0 {
            self.stat("trace.overlapping_device_slices", Severity::Info, overlapping, None);
        }
        self.link_launches();
        let cut = self.trace.strings.cut;
        if cut > 0 {
            self.stat("trace.long_text_cut", Severity::Notice, cut, None);
        }
        self.trace.simulated |= self.trace.manifest.get("simulated").is_some_and(|e| e.value == "true");
        self.trace.ledger.sort_by(|a, b| a.category.cmp(&b.category));
        self.trace
    }

    fn settle_times(&mut self, zero: Ns) {
        for counter in &mut self.trace.counters {
            let mut order: Vec<usize> = (0..counter.t.len()).collect();
            order.sort_by_key(|i| counter.t[*i]);
            counter.value = order.iter().map(|i| counter.value[*i]).collect();
            counter.t = order.iter().map(|i| counter.t[*i].saturating_sub(zero)).collect();
        }
        for flow in &mut self.trace.flows {
            flow.from.1 = flow.from.1.saturating_sub(zero);
            flow.to.1 = flow.to.1.saturating_sub(zero);
        }
        let extent =
            self.trace.lanes.iter().filter(|lane| !lane.is_empty()).fold(None, |extent: Option<Span>, lane| {
                let end = (0..lane.len()).map(|i| lane.end(i)).max().unwrap_or(lane.start[0]);
                let (s, e) = extent.map_or((lane.start[0], end), |x| (x.start.min(lane.start[0]), x.end.max(end)));
                Some(Span::new(s, e))
            });
        self.trace.window = match self.trace.window {
            Some(w) => Some(Span::new(w.start.saturating_sub(zero), w.end.saturating_sub(zero))),
            None => extent,
        };
    }

    fn link_launches(&mut self) {
        let mut launches: FxHashMap<(ProcessId, i64), u32> = FxHashMap::default();
        for (track, lane) in self.trace.tracks.iter().zip(&self.trace.lanes) {
            for i in 0..lane.len() {
                if lane.category[i].can_launch() && lane.correlation[i] != NO_CORRELATION {
                    // A driver call nested in a runtime call may share its id: the outer one came first.
                    launches.entry((track.key.process, lane.correlation[i])).or_insert(lane.first + i as u32);
                }
            }
        }
        let (mut without_id, mut orphans) = (0, 0);
        for (track, lane) in self.trace.tracks.iter().zip(&mut self.trace.lanes) {
            for i in 0..lane.len() {
                if !lane.category[i].is_device_work() {
                    continue;
                }
                if lane.correlation[i] == NO_CORRELATION {
                    without_id += 1;
                } else if let Some(launch) = launches.get(&(track.key.process, lane.correlation[i])) {
                    lane.link[i] = *launch;
                } else {
                    orphans += 1;
                }
            }
        }
        if without_id > 0 {
            self.stat("trace.device_work_without_correlation", Severity::Notice, without_id, None);
        }
        if orphans > 0 {
            self.stat("trace.device_work_without_launch", Severity::Notice, orphans, None);
        }
    }
}

impl Arrivals {
    /// By start, what is longer first: what is nested follows what holds it.
    fn sorted(self) -> Self {
        let n = self.start.len();
        let key = |i: usize| (self.start[i], std::cmp::Reverse(self.dur[i]));
        // Sources mostly write in order: then the columns are taken as they are.
        if (1..n).all(|i| key(i - 1) <= key(i)) {
            return self;
        }
        let mut order: Vec<u32> = (0..n as u32).collect();
        // A thread's slices come from a few tables, each in order: a stable sort merges such runs in one pass.
        order.sort_by_key(|i| key(*i as usize));
        self.picked(&order)
    }

    /// These rows alone, in this order.
    fn picked(self, rows: &[u32]) -> Self {
        Self {
            start: pick(self.start, rows),
            dur: pick(self.dur, rows),
            name: pick(self.name, rows),
            category: pick(self.category, rows),
            correlation: pick(self.correlation, rows),
            detail: pick(self.detail, rows),
        }
    }
}

/// Assigns depths to a sorted track: the lowest depth that is free, which for properly nested slices is their nesting.
fn settle_lane(mut a: Arrivals, zero: Ns) -> Columns {
    a.start.iter_mut().for_each(|s| *s = s.saturating_sub(zero));
    Columns {
        first: 0,
        depth: depths(&a.start, &a.dur),
        link: vec![NONE; a.start.len()],
        start: a.start,
        dur: a.dur,
        name: a.name,
        category: a.category,
        correlation: a.correlation,
        detail: a.detail,
    }
}

/// Rows of a column, in this order.
fn pick<T: Copy>(column: Vec<T>, rows: &[u32]) -> Vec<T> {
    rows.iter().map(|i| column[*i as usize]).collect()
}

fn depths(start: &[Ns], dur: &[Ns]) -> Vec<u16> {
    let mut ends: Vec<Ns> = Vec::new();
    let depth = |(start, dur): (&Ns, &Ns)| {
        let end = start.saturating_add(*dur);
        let free = ends.iter().position(|e| *e <= *start).unwrap_or(ends.len()).min(MAX_DEPTH);
        match ends.get_mut(free) {
            Some(slot) => *slot = end.max(if free == MAX_DEPTH { *slot } else { end }),
            None => ends.push(end),
        }
        free as u16
    };
    start.iter().zip(dur).map(depth).collect()
}
