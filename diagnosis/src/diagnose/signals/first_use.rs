//! Calls that are slow because they are the first of their kind: the context of the device is made, and the code of a kernel
//! is loaded when it is launched for the first time. The same run a second time has none of them.

use model::{Ns, SliceId, Span};
use rustc_hash::FxHashSet;

use super::reading;
use crate::{
    analysis::{Bucket, Call, Class, Rank, idle::Gap},
    platform::HostCall,
};

/// A first launch of a kernel takes at least so long where it loads the kernel's code; later ones take microseconds (5 to 20 in
/// the HTA documentation); own value.
pub(super) const LOADS: Ns = 1_000_000;
/// A first allocator call takes at least so long where it makes the context; own value, far beyond an allocation.
const MAKES_CONTEXT: Ns = 100_000_000;

/// The calls of the steps of a class that make the context or load code.
pub struct FirstUses<'a> {
    /// The calls, in order of time.
    pub calls: Vec<&'a Call>,
    /// When any of them runs, on the device's clock; disjoint, in order of time.
    spans: Vec<Span>,
}

impl<'a> FirstUses<'a> {
    /// Finds them. What is not slow is never looked up, so a run that has none pays one pass over its calls.
    pub fn of(rank: &'a Rank, class: &Class) -> Self {
        let timeline = &rank.timeline;
        let steps: Vec<Span> = rank.steady_steps(class).map(|step| step.window).collect();
        let on_device = |call: &Call| Span::new(call.start - timeline.lag, call.end - timeline.lag);
        let counts = |call: &Call| {
            let span = on_device(call);
            steps.get(steps.partition_point(|step| step.end <= span.start)).is_some_and(|step| step.start < span.end)
        };
        let mut allocators = FxHashSet::default();
        let mut slow: Vec<(usize, &Call)> = Vec::new();
        for (at, call) in timeline.calls.iter().enumerate() {
            let took = call.end - call.start;
            let may = match call.kind {
                HostCall::Alloc | HostCall::Free => allocators.insert(call.name) && took >= MAKES_CONTEXT,
                kind => kind.is_launch() && took >= LOADS,
            };
            if may && counts(call) {
                slow.push((at, call));
            }
        }
        if slow.iter().any(|(_, call)| call.kind.is_launch()) {
            let first = first_launches(rank);
            slow.retain(|(at, call)| !call.kind.is_launch() || first.contains(at));
        }
        let calls: Vec<&Call> = slow.into_iter().map(|(_, call)| call).collect();
        let spans = reading::merged(calls.iter().map(|call| on_device(call)).collect());
        Self { calls, spans }
    }

    /// Idle time of a gap inside some of these calls, in the buckets that `pick` takes, ns.
    pub fn idle(&self, gap: &Gap, pick: impl Fn(Bucket) -> bool) -> Ns {
        let parts = gap.parts.iter().filter(|(bucket, _)| pick(*bucket));
        parts.map(|(_, part)| reading::overlap(&self.spans, &[*part])).sum()
    }

    /// Idle time of a class inside them, ns.
    pub fn all_idle(&self, rank: &Rank, class: &Class) -> Ns {
        let gaps = rank.steady_steps(class).flat_map(|step| reading::gaps(rank, step));
        gaps.map(|gap| self.idle(gap, |_| true)).sum()
    }

    /// The records of the calls.
    pub fn slices(&self) -> FxHashSet<SliceId> {
        self.calls.iter().map(|call| call.slice).collect()
    }
}

/// The calls, by index, that launched each kernel for the first time. Operations come in order of their start, which of one
/// name is that of their launches.
fn first_launches(rank: &Rank) -> FxHashSet<usize> {
    let mut names = FxHashSet::default();
    let named = rank.timeline.ops.iter().filter(|op| names.insert(op.name));
    named.filter_map(|op| op.call).map(|call| call as usize).collect()
}
