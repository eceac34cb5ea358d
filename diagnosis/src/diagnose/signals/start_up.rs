//! Whether what was recorded is a start-up: code is compiled or loaded, graphs are captured, everything happens for the first
//! time.

use model::Ns;

use super::{first_use::FirstUses, reading};
use crate::analysis::{Bucket, Call, Class, Rank, Step, idle::Gap};

/// Share of the step from which preparing is what it is; own value.
const MOST: f64 = 0.50;
/// Steps that a run in which everything is the first time has at most: of more the later ones show what is usual; own value.
const FEW: usize = 2;

/// Whether most of a class is compilation or graph capture, one gap that holds it, or calls that are slow because they are the
/// first.
pub fn is_start_up(rank: &Rank, class: &Class) -> bool {
    prepared(rank, class) || preparing_gap(rank, class).is_some() || first_uses(rank, class).is_some()
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
