//! Where work ran: the accelerators of each process.

use std::collections::BTreeMap;

use model::{ProcessId, Trace, TrackKind};

use super::timeline;

/// An accelerator that a process drives: what [`super::analyze`] makes a [`super::Rank`] of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Rank in the job if the source says it, else the position in the capture.
    pub rank: u32,
    /// Owning process.
    pub process: ProcessId,
    /// Device ordinal in that process.
    pub device: i32,
}

/// The devices that worked, process by process: the ranks that [`super::analyze`] finds by what devices did, in its order.
pub fn places(trace: &Trace) -> Vec<Place> {
    let mut places: BTreeMap<(ProcessId, i32), bool> = BTreeMap::new();
    let devices = timeline::Devices::of(trace);
    for (track, lane) in trace.tracks.iter().zip(&trace.lanes) {
        if track.key.kind == TrackKind::DeviceQueue {
            let work = lane.category.iter().any(|c| c.is_device_work());
            *places.entry((track.key.process, devices.of_queue(&track.key))).or_default() |= work;
        }
    }
    let working = places.into_iter().filter(|(_, work)| *work).enumerate();
    let place = |(position, ((process, device), _)): (usize, ((ProcessId, i32), bool))| {
        let said = trace.processes.get(process.0 as usize).and_then(|p| p.rank);
        Place { rank: said.unwrap_or(position as u32), process, device }
    };
    working.map(place).collect()
}

/// Their number.
pub fn rank_count(trace: &Trace) -> usize {
    places(trace).len()
}
