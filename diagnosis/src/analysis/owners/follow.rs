//! Threads that launch for others, or have others launch for them.

use model::{Category, Trace, TrackId};
use rustc_hash::FxHashMap;

use super::Timeline;

/// Threads that are looked at in place of one that does nothing of its own: the busiest ones.
const MOST: usize = 4;

/// The threads of a process that have something to say, the one with the most launches first.
pub(super) struct Threads(Vec<TrackId>);

impl Threads {
    pub(super) fn of(trace: &Trace, timeline: &Timeline) -> Self {
        let mut launches: FxHashMap<TrackId, usize> = FxHashMap::default();
        for call in timeline.calls.iter().filter(|call| call.ops > 0) {
            *launches.entry(call.track).or_default() += 1;
        }
        let says = |track: &&TrackId| {
            launches.contains_key(track)
                || trace.lanes.get(track.0 as usize).is_some_and(|lane| {
                    let own =
                        |c: &Category| matches!(c, Category::FrameworkOp | Category::PythonFrame | Category::UserRange);
                    lane.category.iter().any(own)
                })
        };
        let mut threads: Vec<TrackId> = timeline.threads.iter().filter(says).copied().collect();
        threads.sort_by_key(|track| (std::cmp::Reverse(launches.get(track).copied().unwrap_or(0)), *track));
        threads.truncate(MOST);
        Self(threads)
    }

    /// The threads to ask in place of `taker`: the one that hands it its work, else the others in order of their launches.
    pub(super) fn instead_of(&self, taker: TrackId, feeder: Option<TrackId>) -> Vec<TrackId> {
        match feeder {
            Some(feeder) => vec![feeder],
            None => self.0.iter().copied().filter(|track| *track != taker).collect(),
        }
    }
}
