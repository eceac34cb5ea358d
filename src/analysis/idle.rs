//! Idle gaps: the operation that ends a gap owns it, and its launch call says why the gap was there.

use model::Span;

use super::bucket::Bucket;

/// A maximal interval in which the device did nothing.
#[derive(Clone, Debug)]
pub struct Gap {
    /// When.
    pub span: Span,
    /// The operation that ends it, as an index into the timeline's operations.
    pub owner: Option<u32>,
    /// Step it lies in.
    pub step: u32,
    /// What it is attributed to, in time order; the parts tile the gap.
    pub parts: Vec<(Bucket, Span)>,
    /// A blocking synchronisation covered the moment the device drained: the rest of the host part is restart work.
    pub after_sync: bool,
    /// It ends with the first operation of the next step: scheduling cadence, not launch rate.
    pub between_steps: bool,
}
