//! Most of the steps is compilation or graph capture: a start-up and no decode step.

use model::Ns;

use super::{Case, OPAQUE, Ruling, step_args};
use crate::{
    analysis::{Bucket, Class, Rank, Step, idle::Gap},
    diagnose::signals::reading,
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "{subject} ({class}): {share} of {step} is compilation or graph capture, so this is a start-up and no decode step.",
    "{subject}（{class}）：{step} 中有 {share} 是编译或图捕获，属于启动阶段而非解码步。",
);
/// What it says of a single gap.
const GAP: Text = Text::new(
    "{subject} ({class}): {lasts} {step}, {share} of it a single idle gap of {gap} in which the host prepared code or graphs, so this is a start-up and no decode step.",
    "{subject}（{class}）：{lasts} {step}，其中 {share} 是一个 {gap} 的空闲间隙，其间主机在准备代码或图，属于启动阶段而非解码步。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let (rank, class) = case.longest?;
    let headline = if starts(rank, class) {
        let share = class.share(|b| b == Bucket::Compile);
        Message::new(SENTENCE, step_args(rank, class).into_iter().chain([("share", Value::Share(share))]))
    } else {
        let (gap, share) = start_up_gap(rank, class)?;
        let args = [("share", Value::Share(share)), ("gap", Value::Ns(gap))];
        Message::new(GAP, step_args(rank, class).into_iter().chain(args))
    };
    Some(Ruling::undecided(headline, []))
}

/// Whether most of a class is compilation or graph capture, or one gap that holds it.
pub(in crate::diagnose) fn is_start_up(rank: &Rank, class: &Class) -> bool {
    starts(rank, class) || start_up_gap(rank, class).is_some()
}

/// Whether most of a class is compilation or graph capture, and not only because some steps of a run that goes on stop for
/// it: half of its steps and more have it.
fn starts(rank: &Rank, class: &Class) -> bool {
    let prepares = |step: &&Step| step.buckets.iter().any(|(b, ns)| *b == Bucket::Compile && *ns > 0);
    let preparing = rank.steady_steps(class).filter(prepares).count();
    class.share(|b| b == Bucket::Compile) > OPAQUE && 2 * preparing >= class.steady
}

/// The one gap, and its share, that makes a class a start-up: it is most of the class, and in it the host loaded or
/// compiled code or made graphs.
fn start_up_gap(rank: &Rank, class: &Class) -> Option<(Ns, f64)> {
    let prepares = |gap: &Gap| gap.parts.iter().any(|(bucket, _)| *bucket == Bucket::Compile);
    let gaps = rank.steady_steps(class).flat_map(|step| reading::gaps(rank, step)).filter(|gap| prepares(gap));
    let gap = gaps.map(|gap| gap.span.len()).max()?;
    let share = gap as f64 / class.total.max(1) as f64;
    (share > OPAQUE).then_some((gap, share))
}
