//! Which idle time is the host's way from one launch to the next.

use super::reading;
use crate::analysis::{Analysis, Bucket, idle::Gap};

/// Labels of host work that is the way from one launch to the next: the framework's and the model's own code, and time of which
/// nothing is recorded. What else packs have a name for is a cause of its own.
const LAUNCHING: [&str; 13] = [
    "unknown",
    "framework",
    "python",
    "range",
    "library",
    "runtime_call",
    "other",
    "forward",
    "compiled_glue",
    "triton_launch",
    "collective_call",
    "enqueue",
    "dequeue",
];

/// Whether a part of a gap is the host's way from one launch to the next: launch calls, launch latency, and code between them, in
/// a pause that is short enough.
pub fn is_launching(analysis: &Analysis, gap: &Gap, bucket: Bucket) -> bool {
    is_between(analysis, bucket) && gap.span.len() < reading::LONG
}

/// Whether a bucket is what the host does on its way from one launch to the next.
pub fn is_between(analysis: &Analysis, bucket: Bucket) -> bool {
    match bucket {
        Bucket::LaunchApi | Bucket::LaunchLatency => true,
        Bucket::Host(_) => LAUNCHING.iter().any(|label| reading::is_host(analysis, bucket, label)),
        _ => false,
    }
}

/// Whether most of a pause is something else that the host does: a pause that no graph takes away.
pub fn is_other_work(analysis: &Analysis, gap: &Gap) -> bool {
    let other = |bucket: Bucket| matches!(bucket, Bucket::Host(_)) && !is_launching(analysis, gap, bucket);
    2 * reading::time_in(gap, other) > gap.span.len()
}
