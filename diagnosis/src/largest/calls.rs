//! Calls of the runtime, the driver and the operating system.

use model::{Category, Columns, ProcessId, Span, StringId, Trace, TrackId};
use rustc_hash::FxHashMap;

use super::{
    cover::Cover,
    is_thread,
    row::{self, Kind, Row, Sum, largest},
};

/// The host of a rank.
pub(super) struct Host<'a> {
    /// Its process.
    pub process: ProcessId,
    /// The threads that launch its work, in order; none where that is not known.
    pub threads: &'a [TrackId],
    /// The time of the tables.
    pub windows: &'a Cover,
    /// The part of it in which the device was idle.
    pub idle: &'a Cover,
    /// The part of that which a finding is about.
    pub stated: &'a Cover,
    /// Whether calls are no part of the records around them: without a device both stand in one list.
    pub apart: bool,
}

impl<'a> Host<'a> {
    /// The threads of the process, each with whether it launches work; where nobody knows who does, all of them may.
    pub fn lanes<'t>(&'a self, trace: &'t Trace) -> impl Iterator<Item = (&'t Columns, bool)> + use<'t, 'a> {
        let own = trace.tracks.iter().zip(&trace.lanes).zip(0u32..);
        let own = own.filter(|((track, _), _)| is_thread(track) && track.key.process == self.process);
        own.map(|((_, lane), at)| (lane, self.threads.is_empty() || self.threads.binary_search(&TrackId(at)).is_ok()))
    }
}

/// Whether records of a category stand in the table of calls.
pub(super) fn tells(category: Category) -> bool {
    matches!(category, Category::HostApi | Category::OsApi)
}

/// A call: its name, and the key of its category.
type Called = (StringId, &'static str);

/// Whether records of a category count on a thread.
fn counts(category: Category, launches: bool) -> bool {
    category == Category::HostApi || (category == Category::OsApi && launches)
}

/// Calls outside of the time that are named.
const OUTSIDE: usize = 2;

/// The calls of the runtime with the most time outside of the tables': what starts the device up stands there. Each row counts only
/// what lies outside.
pub(super) fn outside(trace: &Trace, host: &Host<'_>) -> Vec<Row> {
    let mut sums: FxHashMap<StringId, Sum> = FxHashMap::default();
    for (lane, _) in host.lanes(trace) {
        for i in (0..lane.len()).filter(|i| lane.category[*i] == Category::HostApi) {
            let span = Span::new(lane.start[i], lane.end(i));
            let own = span.len() - host.windows.within(span);
            if own > 0 {
                sums.entry(lane.name[i]).or_default().add(own, (0, 0), lane.id(i));
            }
        }
    }
    let name = |id: StringId| trace.strings.get(id);
    let mut rows =
        largest(sums, name, |id, sum| Row { exposed: None, ..sum.row(Kind::Call, name(id), Category::HostApi.name()) });
    rows.truncate(OUTSIDE);
    rows
}

/// The calls with the most time: those of the runtime on all threads of the process, those of the operating system on the
/// threads that launch.
pub(super) fn of(trace: &Trace, host: &Host<'_>) -> Vec<Row> {
    let mut sums: FxHashMap<Called, Sum> = FxHashMap::default();
    for (lane, launches) in host.lanes(trace) {
        let mut of_thread: FxHashMap<Called, Sum> = FxHashMap::default();
        let (mut windows, mut idle, mut stated) = (host.windows.walk(), host.idle.walk(), host.stated.walk());
        for i in 0..lane.len() {
            let category = lane.category[i];
            if counts(category, launches) {
                let span = Span::new(lane.start[i], lane.end(i));
                // Of a call that reaches into the time or out of it only what lies inside.
                let own = windows.around(span);
                if own > 0 || span.is_empty() && host.windows.contains(span.start) {
                    let idle = (idle.around(span), stated.around(span));
                    of_thread.entry((lane.name[i], category.name())).or_default().add(own, idle, lane.id(i));
                }
            }
        }
        row::join(&mut sums, of_thread);
    }
    let name = |id: StringId| trace.strings.get(id);
    let shown = largest(sums, |(id, of)| (name(id), of), |key, sum| (key, sum.row(Kind::Call, name(key.0), key.1)));
    // Several threads may make a call at once, or by turns: its time is counted once.
    let mut spans: FxHashMap<Called, Vec<Span>> = shown.iter().map(|(key, _)| (*key, Vec::new())).collect();
    for (lane, launches) in host.lanes(trace) {
        for i in (0..lane.len()).filter(|i| counts(lane.category[*i], launches)) {
            let span = Span::new(lane.start[i], lane.end(i));
            let spans = spans.get_mut(&(lane.name[i], lane.category[i].name()));
            if let Some(spans) = spans.filter(|_| host.idle.within(span) > 0) {
                spans.push(span);
            }
        }
    }
    let row = |(key, row): (Called, Row)| {
        let spans = spans.remove(&key).unwrap_or_default();
        Row { exposed: Some(host.idle.and(&Cover::of(spans)).len()), ..row }
    };
    shown.into_iter().map(row).collect()
}
