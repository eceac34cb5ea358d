//! One clock for all ranks: how far the times of each rank are moved, so that a collective is at one time on all of them.

use model::{Ns, ProcessId, Trace, TrackId};

use diagnosis::analysis::Analysis;

/// What is added to recorded times, ns.
pub struct Clocks {
    ranks: Vec<Ns>,
    tracks: Vec<Ns>,
    processes: Vec<Ns>,
}

impl Clocks {
    /// The clocks of a capture, all on that of its first rank; ranks whose clock is not known keep theirs.
    pub fn of(trace: &Trace, analysis: &Analysis) -> Self {
        let ahead = |rank: usize| analysis.job.clocks.get(rank).copied().flatten().map_or(0, |clock| clock.ahead);
        let ranks: Vec<Ns> = (0..analysis.ranks.len()).map(|rank| ahead(rank).saturating_neg()).collect();
        let of = |process: ProcessId, device: Option<i32>| {
            let mut own = analysis.ranks.iter().zip(&ranks).filter(|(rank, _)| rank.process == process);
            let first = own.clone().next();
            let same = own.find(|(rank, _)| device.is_none_or(|device| device == rank.device));
            same.or(first).map_or(0, |(_, by)| *by)
        };
        let tracks = trace.tracks.iter().map(|track| of(track.key.process, track.key.device)).collect();
        let processes = (0..trace.processes.len() as u32).map(|process| of(ProcessId(process), None)).collect();
        Self { ranks, tracks, processes }
    }

    /// That of a rank, by its index.
    pub fn rank(&self, rank: usize) -> Ns {
        self.ranks.get(rank).copied().unwrap_or(0)
    }

    /// That of a track.
    pub fn track(&self, track: TrackId) -> Ns {
        self.tracks.get(track.0 as usize).copied().unwrap_or(0)
    }

    /// That of a process.
    pub fn process(&self, process: ProcessId) -> Ns {
        self.processes.get(process.0 as usize).copied().unwrap_or(0)
    }

    /// Time before the capture's zero once all are moved, ns.
    pub fn before_zero(&self, trace: &Trace) -> Ns {
        let slices =
            trace.lanes.iter().zip(&self.tracks).filter_map(|(lane, by)| Some(lane.start.first()?.saturating_add(*by)));
        let samples = trace
            .counters
            .iter()
            .filter_map(|counter| Some(counter.t.iter().min()?.saturating_add(self.process(counter.process))));
        slices.chain(samples).min().map_or(0, |first| first.min(0).saturating_neg())
    }
}
