//! What the host does alone around a step that no other step precedes: before its first device operation and after its last.
//!
//! Steps go from first operation to first operation, so the host's work before a step lies in the step before it. Where one
//! step alone is marked there is none before it, and a minute of preparation would leave no trace in any share.

use model::{Ns, Span};

use super::{
    owners::Owner,
    timeline::{Call, Timeline},
};

/// A wait of the host that is longer than this is one for work which the capture does not hold; shorter ones are calls on an
/// idle device; own value.
const WAITED: Ns = 100_000;
/// A first operation that starts later than this after its launch waited for work that the capture does not hold; own value.
const QUEUED: Ns = 1_000_000;

/// Time of a marked step in which only the host works, outside the step's window.
#[derive(Clone, Debug)]
pub struct Lead {
    /// From the start of the mark, or from when the device is known to be idle, to the first device operation.
    pub before: Span,
    /// Time from the last device operation to the end of the mark, ns.
    pub after: Ns,
    /// Length of the mark, ns.
    pub mark: Ns,
    /// The record of the host that covers most of what comes before.
    pub owner: Option<Owner>,
}

impl Lead {
    /// Time in which only the host works, ns.
    pub fn alone(&self) -> Ns {
        self.before.len().saturating_add(self.after)
    }

    /// Finds it for the only step of a rank, whose first device operation is `first`, whose mark is on the host's clock and whose
    /// window is on the device's, with the launch of that operation; the owner is not known yet.
    pub(super) fn of(timeline: &Timeline, first: usize, mark: Span, window: Span) -> Option<(Self, &Call)> {
        let op = timeline.ops.get(first)?;
        let call = timeline.call(op)?;
        let earlier = timeline.ops.get(..first).unwrap_or(&[]).iter().map(|op| op.end).max();
        let launched = call.start - timeline.lag;
        let waits = timeline.calls_between(mark.start, call.start).iter();
        let waits = waits.filter(|c| (c.blocking || c.kind.is_blocking()) && c.end - c.start >= WAITED);
        let idle_from = waits.map(|c| c.end.min(call.start) - timeline.lag).max();
        let from = (mark.start - timeline.lag).max(earlier.unwrap_or(Ns::MIN)).max(idle_from.unwrap_or(Ns::MIN));
        let queued = op.start - (call.end - timeline.lag) > QUEUED;
        if queued || from >= launched {
            return None;
        }
        let after = (mark.end - timeline.lag - window.end).max(0);
        Some((Self { before: Span::new(from, op.start), after, mark: mark.len(), owner: None }, call))
    }
}
