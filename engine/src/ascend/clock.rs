//! The device's clock on the host's time, by events.
//!
//! An event has no time that means anything to the host, only one from another event on. But it is not reached before the call
//! that records it, and everything has been reached when the wait for a step returns: so every event of a step says from where
//! to where the difference of the clocks can be, and all of them narrow it down.

#![allow(unsafe_code)]

use super::{
    calls::{Api, Handle},
    memory::Owned,
};
use crate::{
    Error,
    record::{Kind, Log, Ns, Span},
};

/// `ACL_EVENT_TIME_LINE`.
const TIMED: u32 = 8;

/// Events of a step.
pub(super) struct Marks {
    api: &'static Api,
    /// Made once, recorded anew in each step.
    events: Vec<Owned>,
    /// When the host turned to the record of each, in this step.
    recorded: Vec<Ns>,
}

/// A command between two events.
pub(super) struct Noted {
    pub kind: Kind,
    /// When the host turned to it.
    pub from: Ns,
    /// The calls that enqueued it.
    pub host: Span,
    /// When the host began the call that the device can start with.
    pub called: Ns,
    /// The events before and after it.
    pub marks: [usize; 2],
}

impl Marks {
    pub(super) fn new(api: &'static Api) -> Self {
        Self { api, events: Vec::new(), recorded: Vec::new() }
    }

    /// Forgets what was recorded.
    pub(super) fn clear(&mut self) {
        self.recorded.clear();
    }

    /// Records the next event; gives its number.
    pub(super) fn record(&mut self, stream: Handle, log: &Log) -> Result<usize, Error> {
        let number = self.recorded.len();
        if number == self.events.len() {
            self.events.push(self.api.event(TIMED)?);
        }
        let at = log.now();
        let event = self.events.get(number).map_or(std::ptr::null_mut(), |event| event.handle);
        // SAFETY: an event and a stream of ours.
        let status = unsafe { (self.api.runtime.record_event)(event, stream) };
        self.api.check("record an event", status)?;
        self.recorded.push(at);
        Ok(number)
    }

    /// Nanoseconds from the first event to each, absent where the library does not say.
    fn elapsed(&self) -> Vec<Option<Ns>> {
        let Some(first) = self.events.first() else { return Vec::new() };
        let of = |event: &Owned| {
            let mut ms = 0f32;
            // SAFETY: events of ours that were recorded, and a place for the time.
            let status = unsafe { (self.api.runtime.elapsed)(&raw mut ms, first.handle, event.handle) };
            (status == 0 && ms.is_finite() && ms >= 0.0).then(|| (f64::from(ms) * 1e6) as Ns)
        };
        self.events.iter().take(self.recorded.len()).map(of).collect()
    }

    /// Writes commands of the step into a log, by the host's clock; everything had ended at `seen`.
    pub(super) fn tell(&self, noted: &[Noted], seen: Ns, log: &mut Log) {
        let times = self.elapsed();
        let Some((ahead, uncertainty)) = between(&self.recorded, &times, seen) else {
            log.unread += noted.len() as u64;
            return;
        };
        log.uncertainty = log.uncertainty.max(Some(uncertainty));
        let mut last = Ns::MIN;
        for Noted { kind, from, host, called, marks } in noted {
            let [start, end] = marks.map(|mark| times.get(mark).copied().flatten().map(|time| time + ahead));
            let (Some(start), Some(end)) = (start, end) else {
                log.unread += 1;
                continue;
            };
            // The event before a command of an idle device is reached before the call that launches the command.
            let start = start.max(*called).max(last);
            let device = Span { start, end: end.max(start) };
            last = device.end;
            log.push_command(*kind, *from, *host, None, device);
        }
    }
}

/// What is to be added to the device's time to have the host's, and how far that may be off: the middle of what is possible.
/// Bounds that contradict each other, because a library's times are rounded, are as uncertain as they are apart.
fn between(recorded: &[Ns], times: &[Option<Ns>], seen: Ns) -> Option<(Ns, Ns)> {
    let known = || recorded.iter().zip(times).filter_map(|(at, time)| Some((*at, (*time)?)));
    let low = known().map(|(at, time)| at - time).max()?;
    let high = known().map(|(_, time)| seen - time).min()?;
    let half = (high - low) / 2;
    Some((low + half, half.abs()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn events_bound_the_difference_of_the_clocks_from_both_sides() {
        // The device's clock began at 1000 of the host's: the host was early with every record but the second.
        let recorded = [900, 1195, 1290];
        let times = [Some(0), Some(200), Some(400)];
        assert_eq!(between(&recorded, &times, 1415), Some((1005, 10)));
        assert_eq!(between(&recorded, &[Some(0), None, Some(400)], 1415), Some((957, 57)));
        assert_eq!(between(&recorded, &[None, None, None], 1415), None);
        assert_eq!(between(&[], &[], 0), None);
    }
}
