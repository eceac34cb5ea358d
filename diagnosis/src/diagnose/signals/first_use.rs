//! Calls that are slow because they are the first of their kind: the context of the device is made, and the code of a kernel
//! is loaded when it is launched for the first time. The same run a second time has none of them.

use model::{Ns, Span};
use rustc_hash::FxHashSet;

use crate::{
    analysis::{Bucket, Call, Class, Rank, idle::Gap},
    diagnose::signals::reading,
    platform::HostCall,
};

/// A first launch of a kernel takes at least so long where it loads the kernel's code; later ones take microseconds (5 to 20 in
/// the HTA documentation); own value.
const LOADS: Ns = 1_000_000;
/// A first allocator call takes at least so long where it makes the context; own value, far beyond an allocation.
const MAKES_CONTEXT: Ns = 100_000_000;

/// The calls of the steps of a class that make the context or load code, in order of time.
pub fn calls<'a>(rank: &'a Rank, class: &Class) -> Vec<&'a Call> {
    let timeline = &rank.timeline;
    let mut names = FxHashSet::default();
    let mut first_launch: FxHashSet<u32> = FxHashSet::default();
    for op in &timeline.ops {
        // Operations come in order of their start, which of one name is that of their launches.
        if let Some(call) = op.call.filter(|_| names.insert(op.name)) {
            first_launch.insert(call);
        }
    }
    let mut allocators = FxHashSet::default();
    let steps: Vec<Span> = rank.steady_steps(class).map(|step| step.window).collect();
    let mut out = Vec::new();
    for (at, call) in timeline.calls.iter().enumerate() {
        let took = call.end - call.start;
        let slow = match call.kind {
            HostCall::Alloc | HostCall::Free => allocators.insert(call.name) && took >= MAKES_CONTEXT,
            _ if call.kind.is_launch() => took >= LOADS && first_launch.contains(&(at as u32)),
            _ => false,
        };
        let inside = |span: &Span| span.start < call.end && call.start < span.end;
        if slow && steps.iter().any(inside) {
            out.push(call);
        }
    }
    out
}

/// Idle time of a gap inside some of these calls, in the buckets that `pick` takes, ns.
pub fn idle(rank: &Rank, gap: &Gap, calls: &[&Call], pick: impl Fn(Bucket) -> bool) -> Ns {
    let lag = rank.timeline.lag;
    let spans = || calls.iter().map(|call| Span::new(call.start - lag, call.end - lag));
    let parts = gap.parts.iter().filter(|(bucket, _)| pick(*bucket));
    parts.map(|(_, part)| spans().map(|span| span.clip(*part).len()).sum::<Ns>()).sum()
}

/// Idle time of a class inside the calls that make the context or load code, ns.
pub fn all_idle(rank: &Rank, class: &Class, calls: &[&Call]) -> Ns {
    let gaps = rank.steady_steps(class).flat_map(|step| reading::gaps(rank, step));
    gaps.map(|gap| idle(rank, gap, calls, |_| true)).sum()
}
