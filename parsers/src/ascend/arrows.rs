//! Calls of tasks whose own calls were left out of a timeline: below some level of detail the exporter drops the lower layers
//! of CANN and keeps the arrows (`HostToDevice`) that began in them. An arrow begins on a thread at a time; the innermost call
//! there is the one that made the task, or the one within which it was made. At level 0 no call of CANN is left at all: then the
//! beginning of the arrow is all that is known of the launch, a moment on a thread.

use model::Ns;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    import::NONE,
    layer::{Event, Layer, Names},
};
use crate::json::Value;

/// Category of the arrows from calls to tasks.
pub(super) const CATEGORY: &[u8] = b"HostToDevice";
/// One of so many tasks must lack its call before arrows stand in: a few without, such as the marks of the profiler itself,
/// are usual.
const LACKING: usize = 2;
/// Most calls, tasks and arrows that are kept in mind; timelines from which layers were dropped are small.
const MOST: usize = 1 << 18;
/// Calls that may lie within each other.
const NESTED: usize = 64;

/// A process and one of its threads or streams.
type Thread = (i64, i64);

/// Calls, tasks and arrows of a timeline whose names are not known yet.
#[derive(Debug, Default)]
pub(super) struct Arrows {
    /// Thread, start, end and connection.
    events: Vec<(Thread, Ns, Ns, i64)>,
    begin: FxHashMap<u128, (Thread, Ns)>,
    end: Vec<(u128, Thread, Ns)>,
    /// Tasks of graphs that are replayed, by thread and start.
    replayed: FxHashSet<(Thread, Ns)>,
}

impl Arrows {
    /// Takes an event of the timeline.
    pub fn take(&mut self, event: &Event<'_>) {
        if self.events.len().max(self.begin.len()).max(self.end.len()) >= MOST {
            return;
        }
        let thread = (event.pid.unwrap_or(-1), event.tid.unwrap_or(0));
        match event.phase {
            b'X' => {
                let (mut connection, mut graph) = (None, None);
                event.each_arg(|key, value| match key {
                    b"connection_id" => connection = value.int(),
                    b"Model Id" | b"model id" => graph = value.int().filter(|graph| *graph != NONE),
                    _ => {}
                });
                let times = event.span().zip(connection);
                self.replayed.extend(graph.and_then(|_| Some((thread, event.time()?))));
                self.events.extend(times.map(|((start, end), id)| (thread, start, end, id)));
            }
            b's' | b'f' if event.category() == CATEGORY => {
                let (Some(id), Some(time)) = (event.id.and_then(number), event.time()) else { return };
                match event.phase {
                    b's' => drop(self.begin.insert(id, (thread, time))),
                    _ => self.end.push((id, thread, time)),
                }
            }
            _ => {}
        }
    }

    /// The connection of the call of each task, by the task's stream and start; none where tasks have their own calls.
    pub fn settle(self, names: &Names) -> Calls {
        let full = self.events.len().max(self.begin.len()).max(self.end.len()) >= MOST;
        let of = |layer| self.events.iter().filter(move |(thread, ..)| names.layer(thread.0) == layer);
        let called: FxHashSet<i64> = of(Layer::Cann).map(|(.., id)| *id).collect();
        let tasks = of(Layer::Hardware).count();
        let lacking = of(Layer::Hardware).filter(|(.., id)| !called.contains(id)).count();
        if full || lacking == 0 || lacking < tasks.div_ceil(LACKING) {
            return Calls::default();
        }
        if called.is_empty() {
            return self.moments();
        }
        let mut calls: Vec<_> = of(Layer::Cann).collect();
        calls.sort_unstable();
        let innermost = |(thread, time): (Thread, Ns)| {
            let after = calls.partition_point(|(other, start, ..)| (*other, *start) <= (thread, time));
            let before = calls.get(after.saturating_sub(NESTED)..after)?.iter().rev();
            before.take_while(|(other, ..)| *other == thread).find(|(_, _, end, _)| *end > time).map(|(.., id)| *id)
        };
        let call_of =
            |(id, task, start): &(u128, Thread, Ns)| Some(((*task, *start), innermost(*self.begin.get(id)?)?));
        Calls { of: self.end.iter().filter_map(call_of).collect(), moments: Vec::new() }
    }

    /// Every arrow as a launch of its own. Connections below zero are nobody else's.
    fn moments(self) -> Calls {
        let mut begun: Vec<(Ns, i64, u128)> = self.begin.iter().map(|(id, (thread, t))| (*t, thread.1, *id)).collect();
        begun.sort_unstable();
        let connection: FxHashMap<u128, i64> = begun.iter().zip(2..).map(|((.., id), n)| (*id, -n)).collect();
        let replays = self.end.iter().filter(|(_, task, start)| self.replayed.contains(&(*task, *start)));
        let graphs: FxHashSet<u128> = replays.map(|(id, ..)| *id).collect();
        let of =
            self.end.iter().filter_map(|(id, task, start)| Some(((*task, *start), *connection.get(id)?))).collect();
        let moment = |(start, thread, id): &(Ns, i64, u128)| {
            let connection = *connection.get(id)?;
            Some(Moment { thread: *thread, start: *start, connection, of_graph: graphs.contains(id) })
        };
        let moments = begun.iter().filter_map(moment);
        Calls { of, moments: moments.collect() }
    }
}

/// The number of an arrow. Early ones are connections shifted by 32 bits and more, beyond what 64 bits hold.
fn number(id: Value<'_>) -> Option<u128> {
    std::str::from_utf8(id.number()?).ok()?.trim().parse().ok()
}

/// Calls of tasks whose own calls were left out.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The connection of each task's call, by the task's stream and start.
    pub of: FxHashMap<(Thread, Ns), i64>,
    /// Launches of which only the moment is known.
    pub moments: Vec<Moment>,
}

/// The moment of a launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub thread: i64,
    pub start: Ns,
    pub connection: i64,
    /// Whether what was launched are tasks of a graph.
    pub of_graph: bool,
}
