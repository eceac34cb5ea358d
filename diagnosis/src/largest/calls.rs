//! Calls of the runtime, the driver and the operating system.

use model::{Category, Columns, Ns, ProcessId, Span, StringId, Trace, TrackId};
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
    /// The threads that launch its work; none where that is not known.
    pub threads: &'a [TrackId],
    /// The time of the tables.
    pub windows: &'a Cover,
    /// The part of it in which the device was idle.
    pub idle: &'a Cover,
    /// The part of that which a finding is about.
    pub stated: &'a Cover,
}

impl<'a> Host<'a> {
    /// The threads of the process, each with whether it launches work; where nobody knows who does, all of them may.
    pub fn lanes<'t>(&'a self, trace: &'t Trace) -> impl Iterator<Item = (&'t Columns, bool)> + use<'t, 'a> {
        let own = trace.tracks.iter().zip(&trace.lanes).zip(0u32..);
        let own = own.filter(|((track, _), _)| is_thread(track) && track.key.process == self.process);
        own.map(|((_, lane), at)| (lane, self.threads.is_empty() || self.threads.contains(&TrackId(at))))
    }
}

/// Whether records of a category stand in the table of calls.
pub(super) fn tells(category: Category) -> bool {
    matches!(category, Category::HostApi | Category::OsApi)
}

/// The calls with the most time: those of the runtime on all threads of the process, those of the operating system on the
/// threads that launch.
pub(super) fn of(trace: &Trace, host: &Host<'_>) -> Vec<Row> {
    let mut sums: FxHashMap<(StringId, &'static str), Sum> = FxHashMap::default();
    for (lane, launches) in host.lanes(trace) {
        let mut of_thread: FxHashMap<(StringId, &'static str), Sum> = FxHashMap::default();
        for i in 0..lane.len() {
            let category = lane.category[i];
            if category == Category::HostApi || (category == Category::OsApi && launches) {
                let span = Span::new(lane.start[i], lane.end(i));
                // Of a call that reaches into the time or out of it only what lies inside.
                let own = host.windows.within(span);
                if own > 0 || span.is_empty() && host.windows.contains(span.start) {
                    let idle = (host.idle.within(span), host.stated.within(span));
                    of_thread.entry((lane.name[i], category.name())).or_default().add(own, idle, lane.id(i));
                }
            }
        }
        row::join(&mut sums, of_thread);
    }
    let name = |id: StringId| trace.strings.get(id);
    let mut rows = largest(
        sums,
        |(id, of)| (name(id), of),
        |(id, of), sum| Row { exposed: Some(sum.exposed), ..sum.row(Kind::Call, name(id), of) },
    );
    // Several threads may make a call at once, or by turns.
    for row in &mut rows {
        row.exposed = Some(exposed(trace, host, row));
    }
    rows
}

/// The time in which the device was idle and any thread was in a call of this name.
fn exposed(trace: &Trace, host: &Host<'_>, row: &Row) -> Ns {
    let mut spans = Vec::new();
    for (lane, launches) in host.lanes(trace) {
        let own = |i: &usize| {
            let category = lane.category[*i];
            (category == Category::HostApi || (category == Category::OsApi && launches))
                && category.name() == row.of
                && trace.strings.get(lane.name[*i]) == row.name
        };
        spans.extend((0..lane.len()).filter(own).map(|i| Span::new(lane.start[i], lane.end(i))));
    }
    host.idle.and(&Cover::of(spans)).len()
}
