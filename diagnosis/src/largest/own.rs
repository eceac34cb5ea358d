//! Own time of what the launching threads did: ranges, framework operators, frames. A record's own time is its time without the
//! records inside it that stand in this table too; the calls that it makes belong to it, unless they stand beside it.

use model::{Category, Columns, Ns, ProcessId, Span, StringId, Trace};
use rustc_hash::FxHashMap;

use super::{
    calls::Host,
    cover::Cover,
    row::{self, Kind, Row, Sum, largest},
};

/// Whether records of a category stand in this table.
pub(super) fn tells(category: Category) -> bool {
    matches!(
        category,
        Category::FrameworkOp
            | Category::UserRange
            | Category::PythonFrame
            | Category::LibraryApi
            | Category::CollectiveCall
            | Category::Gc
            | Category::Overhead
            | Category::HostOther
    )
}

/// The records with the most own time on the threads that launch.
pub(super) fn of(trace: &Trace, host: &Host<'_>) -> Vec<Row> {
    let mut sums: FxHashMap<(StringId, &'static str), Sum> = FxHashMap::default();
    for (lane, _) in host.lanes(trace).filter(|(_, launches)| *launches) {
        let mut of_thread: FxHashMap<(StringId, &'static str), Sum> = FxHashMap::default();
        each(lane, host, |row, own, idle| {
            let key = (lane.name[row], lane.category[row].name());
            of_thread.entry(key).or_default().add(own, idle, lane.id(row));
        });
        row::join(&mut sums, of_thread);
    }
    let name = |id: StringId| trace.strings.get(id);
    largest(
        sums,
        |(id, of)| (name(id), of),
        |(id, of), sum| Row { exposed: Some(sum.exposed), ..sum.row(Kind::Host, name(id), of) },
    )
}

/// Time of a thread in records of this table, without their own time where `waits` says of their name that the thread waits there, ns.
pub(super) fn worked(lane: &Columns, waits: impl Fn(StringId) -> bool) -> Ns {
    let everything = Cover::of(vec![Span::new(Ns::MIN / 2, Ns::MAX / 2)]);
    let nothing = Cover::default();
    let host = Host {
        process: ProcessId(0),
        threads: &[],
        windows: &everything,
        idle: &nothing,
        stated: &nothing,
        apart: false,
    };
    let mut known: FxHashMap<StringId, bool> = FxHashMap::default();
    let mut sum: Ns = 0;
    each(lane, &host, |row, own, _| {
        let name = lane.name[row];
        if !*known.entry(name).or_insert_with(|| waits(name)) {
            sum = sum.saturating_add(own);
        }
    });
    sum
}

/// A record that has not ended yet.
struct Open {
    row: usize,
    end: Ns,
    own: Ns,
    idle: Ns,
    stated: Ns,
}

/// Gives every record that has time in the tables' its own part of that, and for how much of it the device was idle and a finding
/// says so.
fn each(lane: &Columns, host: &Host<'_>, mut take: impl FnMut(usize, Ns, (Ns, Ns))) {
    let mut open: Vec<Open> = Vec::new();
    let mut at = Ns::MIN;
    let (mut windows, mut idle, mut stated) = (host.windows.walk(), host.idle.walk(), host.stated.walk());
    let mut spend = |top: &mut Open, span: Span| {
        if !span.is_empty() {
            top.own = top.own.saturating_add(windows.within(span));
            top.idle = top.idle.saturating_add(idle.within(span));
            top.stated = top.stated.saturating_add(stated.within(span));
        }
    };
    let stands = |i: &usize| tells(lane.category[*i]) || host.apart && lane.category[*i] == Category::HostApi;
    let rows = (0..lane.len()).filter(stands).map(Some).chain([None]);
    for row in rows {
        let start = row.and_then(|row| lane.start.get(row).copied()).unwrap_or(Ns::MAX);
        while let Some(mut top) = open.pop_if(|top| top.end <= start) {
            let end = top.end;
            spend(&mut top, Span::new(at, end));
            at = at.max(end);
            if top.own > 0 && tells(lane.category[top.row]) {
                take(top.row, top.own, (top.idle, top.stated));
            }
        }
        let Some(row) = row else { break };
        if let Some(top) = open.last_mut() {
            spend(top, Span::new(at, start));
        }
        at = at.max(start);
        open.push(Open { row, end: lane.end(row), own: 0, idle: 0, stated: 0 });
    }
}
