//! Whether what was recorded is a start-up: code is compiled or loaded, graphs are captured, everything happens for the first
//! time.

use model::Ns;

use rustc_hash::FxHashSet;

use super::{
    first_use::{FirstUses, LOADS},
    reading,
};
use crate::analysis::{AnchorKind, Bucket, Call, Class, Rank, Step, idle::Gap};

/// Share of the step from which preparing is what it is; own value.
const MOST: f64 = 0.50;
/// Steps that a run in which everything is the first time has at most: of more the later ones show what is usual; own value.
pub const FEW: usize = 2;
/// Pauses before kernels that ran already count so many times against a start-up; own value.
const RECURRING: Ns = 4;
/// Gaps before first operations from which they are more than one pause; own value.
const SEVERAL: usize = 3;

/// Whether most of a class is compilation or graph capture, one gap that holds it, or calls that are slow because they are the
/// first.
pub fn is_start_up(rank: &Rank, class: &Class) -> bool {
    records_graphs(rank, class)
        || prepared(rank, class)
        || preparing_gap(rank, class).is_some()
        || first_uses(rank, class).is_some()
}

/// The first calls of their kind for which the device waits most of a class, and that share.
pub fn first_uses<'a>(rank: &'a Rank, class: &Class) -> Option<(Vec<&'a Call>, f64)> {
    if class.steady > FEW {
        return None;
    }
    let first = FirstUses::of(rank, class);
    let share = first.all_idle(rank, class) as f64 / class.total.max(1) as f64;
    (share > MOST).then_some((first.calls, share))
}

/// The gaps before operations whose kernels run for the first time, in a capture without steps: how many, the longest, and
/// their share of the class, if that is most of it and kernels that ran already do not wait so. What makes the host slow there need not be a call that was recorded.
pub fn before_first(rank: &Rank, class: &Class) -> Option<(usize, Ns, f64)> {
    if rank.anchor.kind != AnchorKind::WholeCapture {
        return None;
    }
    let mut names = FxHashSet::default();
    let first: FxHashSet<Ns> = rank.timeline.ops.iter().filter(|op| names.insert(op.name)).map(|op| op.start).collect();
    // What the host waits for or is held by has a cause of its own.
    let waits =
        |bucket: Bucket| matches!(bucket, Bucket::SyncTail | Bucket::SyncIdle | Bucket::DeviceDep | Bucket::Prof);
    let unowned = |gap: &Gap| !gap.parts.iter().any(|(bucket, _)| waits(*bucket));
    let gaps = rank.steady_steps(class).flat_map(|step| reading::gaps(rank, step));
    let (mut n, mut sum, mut longest, mut again): (usize, Ns, Ns, Ns) = (0, 0, 0, 0);
    for gap in gaps.filter(|gap| gap.span.len() >= LOADS) {
        let ns = gap.span.len();
        if !first.contains(&gap.span.end) {
            again = again.saturating_add(ns);
        } else if unowned(gap) {
            (n, sum, longest) = (n + 1, sum.saturating_add(ns), longest.max(ns));
        }
    }
    // A host that is slow before kernels that ran already is slow for another reason, and one pass of them tells neither.
    let recurring = rank.timeline.ops.len().saturating_sub(first.len());
    let passes = recurring >= n && RECURRING * again <= sum;
    let share = sum as f64 / class.total.max(1) as f64;
    (share > MOST && n >= SEVERAL && passes).then_some((n, longest, share))
}

/// Whether graphs are recorded during most of every step of a class.
pub fn records_graphs(rank: &Rank, class: &Class) -> bool {
    let captures = reading::merged(rank.timeline.capturing.clone());
    let recording = |step: &Step| 2 * reading::overlap(&captures, &[step.window]) > step.window.len();
    class.steady > 0 && rank.steady_steps(class).all(recording)
}

/// Whether most of a class is compilation or graph capture, and not only because some steps of a run that goes on stop for
/// it: half of its steps and more have it.
pub fn prepared(rank: &Rank, class: &Class) -> bool {
    let prepares = |step: &&Step| step.buckets.iter().any(|(b, ns)| *b == Bucket::Compile && *ns > 0);
    let preparing = rank.steady_steps(class).filter(prepares).count();
    class.share(|b| b == Bucket::Compile) > MOST && 2 * preparing >= class.steady
}

/// The one gap, and its share, that makes a class a start-up: it is most of the class, and in it the host loaded or
/// compiled code or made graphs.
pub fn preparing_gap(rank: &Rank, class: &Class) -> Option<(Ns, f64)> {
    let prepares = |gap: &Gap| gap.parts.iter().any(|(bucket, _)| *bucket == Bucket::Compile);
    let gaps = rank.steady_steps(class).flat_map(|step| reading::gaps(rank, step)).filter(|gap| prepares(gap));
    let gap = gaps.map(|gap| gap.span.len()).max()?;
    let share = gap as f64 / class.total.max(1) as f64;
    (share > MOST).then_some((gap, share))
}
