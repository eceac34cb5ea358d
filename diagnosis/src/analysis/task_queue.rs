//! Programs that hand their operators to a thread which launches them (the task queue of torch_npu). That thread idles while
//! nobody has come to the next operator, so that what the device waits for is what the program's own threads do then.

use model::{Category, Ns, ProcessId, StringId, Trace, TrackId, TrackKind};
use rustc_hash::FxHashMap;

use crate::platform::Packs;

/// Activity of a thread that hands over an operator.
const HANDS_OVER: &str = "enqueue";
/// Activity of a thread that launches what was handed over.
const TAKES: &str = "dequeue";

/// Who hands over work, and who takes it.
#[derive(Clone, Debug, Default)]
pub struct TaskQueue {
    /// When each operator had been handed over, and by which thread, in time order.
    handed: Vec<(Ns, TrackId)>,
    /// Threads that take.
    takers: Vec<TrackId>,
}

impl TaskQueue {
    /// The task queue of a process; empty where it has none.
    pub fn of(trace: &Trace, packs: &Packs, process: ProcessId) -> Self {
        let mut queue = Self::default();
        let mut activities: FxHashMap<StringId, Option<&str>> = FxHashMap::default();
        for (at, (track, lane)) in trace.tracks.iter().zip(&trace.lanes).enumerate() {
            if track.key.process != process || track.key.kind != TrackKind::HostThread {
                continue;
            }
            let track = TrackId(at as u32);
            for i in (0..lane.len()).filter(|i| lane.category[*i] == Category::HostOther) {
                let name = lane.name[i];
                match *activities.entry(name).or_insert_with(|| packs.host_activity(trace.strings.get(name))) {
                    Some(HANDS_OVER) => queue.handed.push((lane.end(i), track)),
                    Some(TAKES) if queue.takers.last() != Some(&track) => queue.takers.push(track),
                    _ => {}
                }
            }
        }
        queue.handed.sort_unstable();
        queue
    }

    /// The thread that hands over what `taker`, which has nothing to do at `from`, launches next.
    pub fn awaited(&self, taker: TrackId, from: Ns) -> Option<TrackId> {
        let next = self.handed.partition_point(|(at, _)| *at < from);
        let (_, thread) = self.handed.get(next).filter(|_| self.takers.contains(&taker))?;
        (*thread != taker).then_some(*thread)
    }

    /// Threads that hand over work: each launches by way of another one.
    pub fn feeders(&self) -> Vec<TrackId> {
        let mut feeders: Vec<TrackId> = self.handed.iter().map(|(_, thread)| *thread).collect();
        feeders.sort_unstable();
        feeders.dedup();
        feeders
    }
}
