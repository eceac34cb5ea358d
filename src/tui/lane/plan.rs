//! Which lanes a capture has: rank by rank the steps, the idle time with its cause, replays of graphs, the queues of the device,
//! collectives and copies drawn together, host threads, counters; then what belongs to no rank.

use std::cmp::Reverse;

use model::{Columns, Trace, TrackId, TrackKind};
use rustc_hash::FxHashSet;

use diagnosis::analysis::{Place, Rank};

/// The rank that lanes belong to, as an index into [`Analysis::ranks`](diagnosis::analysis::Analysis::ranks), and where it is; `None`
/// for what belongs to none.
pub type Belongs = Option<(usize, Place)>;

/// What lanes are made from.
#[derive(Clone, Copy)]
pub enum Source {
    /// The steps of a rank.
    Steps(usize),
    /// Its idle time.
    Idle(usize),
    /// Its replays of graphs.
    Replays(usize),
    /// Its collectives.
    Collectives(usize),
    /// Its copies.
    Copies(usize),
    /// A track.
    Track(TrackId),
    /// A counter.
    Counter(usize),
}

/// Which sources each group has.
#[derive(Default)]
pub struct Plan {
    /// The rank of each group, and what its lanes are made from.
    pub groups: Vec<(Belongs, Vec<Source>)>,
    taken: FxHashSet<TrackId>,
}

impl Plan {
    /// A rank that was analysed.
    pub fn rank(&mut self, trace: &Trace, i: usize, rank: &Rank) {
        let place = Place { rank: rank.rank, process: rank.process, device: rank.device };
        let mut sources = vec![Source::Steps(i), Source::Idle(i), Source::Replays(i)];
        sources.extend(rank.timeline.queues.iter().map(|track| Source::Track(*track)));
        sources.extend([Source::Collectives(i), Source::Copies(i)]);
        self.group(trace, (i, place), sources, rank.timeline.threads.clone());
    }

    /// One of which only the place is known.
    pub fn place(&mut self, trace: &Trace, i: usize, place: Place) {
        let own = |kind: TrackKind, device: Option<i32>| {
            let tracks = (0..).map(TrackId).zip(&trace.tracks).filter(move |(_, track)| {
                let of_device = device.is_none_or(|device| track.key.device == Some(device));
                track.key.process == place.process && track.key.kind == kind && of_device
            });
            tracks.map(|(id, _)| id)
        };
        let queues = own(TrackKind::DeviceQueue, Some(place.device)).map(Source::Track).collect();
        self.group(trace, (i, place), queues, own(TrackKind::HostThread, None).collect());
    }

    fn group(
        &mut self,
        trace: &Trace,
        (i, place): (usize, Place),
        mut sources: Vec<Source>,
        mut threads: Vec<TrackId>,
    ) {
        let size = |track: &TrackId| trace.lanes.get(track.0 as usize).map_or(0, Columns::len);
        // The threads that do the most stand first.
        threads.sort_by_key(|track| Reverse(size(track)));
        let beside = (0..).map(TrackId).zip(&trace.tracks).filter(|(_, track)| {
            let of_device = track.key.device == Some(place.device);
            track.key.process == place.process && track.key.kind != TrackKind::HostThread && of_device
        });
        let beside: Vec<TrackId> = beside.map(|(id, _)| id).collect();
        sources.extend(threads.into_iter().chain(beside).map(Source::Track));
        let counters = trace.counters.iter().enumerate().filter(|(_, counter)| {
            counter.process == place.process && counter.device.is_none_or(|device| device == place.device)
        });
        sources.extend(counters.map(|(counter, _)| Source::Counter(counter)));
        // Several devices of one process share its threads, which the first of them shows.
        sources.retain(|source| match source {
            Source::Track(track) => self.taken.insert(*track),
            _ => true,
        });
        self.groups.push((Some((i, place)), sources));
    }

    /// What belongs to none.
    pub fn rest(&mut self, trace: &Trace) {
        let left = (0..trace.tracks.len() as u32).map(TrackId).filter(|track| !self.taken.contains(track));
        let sources = left.map(Source::Track).collect();
        self.groups.push((None, sources));
    }
}
