//! The sweep that gives every nanosecond of every step exactly one bucket.

use model::Ns;

/// What one device operation is accountable for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exclusive {
    /// Time that is attributed to the operation and to nothing else, ns (its share where several run at once).
    pub busy: Ns,
    /// Idle time before it that it owns, ns.
    pub idle: Ns,
}
