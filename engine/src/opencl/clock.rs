//! The device's clock on the host's time.
//!
//! A driver stamps a command as queued while the call that enqueues it is under way, and a command has ended before the wait
//! for it returns. So every command says from where to where the difference of the clocks can be, and a step of hundreds of
//! them narrows it down to less than the shortest call took: no command is needed that a run without a record has not.

use opencl3::event::Event;

use crate::{
    clock::Offset,
    record::{Ns, Span},
};

/// The four stamps of a command, by the device's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamps {
    pub queued: Ns,
    pub submitted: Ns,
    pub start: Ns,
    pub end: Ns,
}

impl Stamps {
    /// Those of a command that has ended; `None` where the driver has none, or none in their order.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let ns = |stamp: opencl3::Result<u64>| stamp.ok().and_then(|stamp| Ns::try_from(stamp).ok());
        let stamps = Self {
            queued: ns(event.profiling_command_queued())?,
            submitted: ns(event.profiling_command_submit())?,
            start: ns(event.profiling_command_start())?,
            end: ns(event.profiling_command_end())?,
        };
        stamps.are_ordered().then_some(stamps)
    }

    fn are_ordered(&self) -> bool {
        self.queued <= self.submitted && self.submitted <= self.start && self.start <= self.end
    }
}

/// Narrows the difference of the clocks by a command that was enqueued by this call of the host.
pub(super) fn queued(offset: &mut Offset, call: Span, stamps: &Stamps) {
    offset.not_before(call.start, stamps.queued);
    offset.not_after(call.end, stamps.queued);
}

/// Stamps on the host's clock: when the driver had the command, and when it ran.
pub(super) fn on_host(stamps: &Stamps, ahead: Ns) -> (Span, Span) {
    let at = |ns: Ns| ns.saturating_add(ahead);
    (
        Span { start: at(stamps.queued), end: at(stamps.submitted) },
        Span { start: at(stamps.start), end: at(stamps.end) },
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn stamps(queued: Ns) -> Stamps {
        Stamps { queued, submitted: queued + 1, start: queued + 10, end: queued + 100 }
    }

    #[test]
    fn every_command_narrows_the_difference_of_the_clocks_down() {
        let mut offset = Offset::default();
        assert_eq!(offset.middle(), None);
        // The device's clock is 5000 behind.
        queued(&mut offset, Span { start: 6000, end: 6040 }, &stamps(1010));
        assert_eq!(offset.middle(), Some((5010, 20)));
        queued(&mut offset, Span { start: 7000, end: 7010 }, &stamps(2004));
        assert_eq!(offset.middle(), Some((5001, 5)));
        // It cannot have ended after it was seen to have.
        offset.not_after(7106, stamps(2004).end);
        let (ahead, uncertainty) = offset.middle().unwrap();
        assert_eq!((ahead, uncertainty), (4999, 3));
        let (submit, run) = on_host(&stamps(2004), ahead);
        assert!(submit.start <= submit.end && submit.end <= run.start && run.start <= run.end);
    }

    #[test]
    fn contradictions_are_uncertain_and_not_hidden() {
        let mut offset = Offset::default();
        queued(&mut offset, Span { start: 6000, end: 6010 }, &stamps(1000));
        queued(&mut offset, Span { start: 7000, end: 7010 }, &stamps(2200));
        let (_, uncertainty) = offset.middle().unwrap();
        assert_eq!(uncertainty, 95);
        assert!(!Stamps { queued: 2, submitted: 1, start: 3, end: 4 }.are_ordered());
    }
}
