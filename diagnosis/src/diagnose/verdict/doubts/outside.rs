//! Much of the recording lies outside of every step: no share and no gain counts it.

use model::{Ns, Span};

use super::{super::headline::begins_late, Case, Unjudged};
use crate::{
    analysis::{AnchorKind, DeviceOp},
    diagnose::signals::reading,
    i18n::{Message, Text, Value},
};

/// Part of the recording from which what lies outside the steps needs a word; own value: starts and ends of recordings are less.
const LEAST: f64 = 0.30;

/// What it says.
const SENTENCE: Text = Text::new(
    "what the {outside} of {span} were that lie outside of the device's work in every step of rank {rank}: no share and no gain counts them; the longest pause of the device there lasts {longest}",
    "rank {rank} 所有步的设备工作之外的 {outside}（采集共 {span}）：任何占比与收益都未计入；设备在其中最长的停顿为 {longest}",
);

/// What it says of a window that begins after loading.
const LOADED: Text = Text::new(
    "the first {outside} of {span} of the device's work on rank {rank}: the model is loaded or warmed up there, and no share and no gain counts them; the longest pause of the device there lasts {longest}",
    "rank {rank} 设备工作最初的 {outside}（采集共 {span}）：其间在加载模型或预热，任何占比与收益都未计入；设备在其中最长的停顿为 {longest}",
);
/// Part of the recording from which that needs a word; own value: it is work that a user may look for.
const LEAST_LOADED: f64 = 0.05;

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (rank, _) = case.longest?;
    // A whole window or a log has nothing outside of it.
    let window = rank.anchor.kind == AnchorKind::WholeCapture;
    if rank.anchor.kind == AnchorKind::Log || (window && !begins_late(rank)) {
        return None;
    }
    let (text, least) = if window { (LOADED, LEAST_LOADED) } else { (SENTENCE, LEAST) };
    let ops = &rank.timeline.ops;
    let (first, last) = (ops.iter().map(|op| op.start).min()?, ops.iter().map(|op| op.end).max()?);
    let steps = reading::merged(rank.steps.iter().map(|step| step.window).collect());
    let inside: Ns = steps.iter().map(|step| (step.end.min(last) - step.start.max(first)).max(0)).sum();
    let (span, outside) = (last - first, (last - first - inside).max(0));
    let longest = longest_pause(ops, &steps);
    let share = outside as f64 / span.max(1) as f64;
    let args = [
        ("outside", Value::Ns(outside)),
        ("span", Value::Ns(span)),
        ("rank", Value::Count(rank.rank.into())),
        ("longest", Value::Ns(longest)),
    ];
    let sentence = Message::new(text, args);
    (share >= least).then(|| Unjudged { share, sentence, because: Vec::new(), decides: false })
}

/// The longest time in which the device does nothing and no step is, ns; operations lie in order of start, steps are disjoint and in
/// order.
fn longest_pause(ops: &[DeviceOp], steps: &[Span]) -> Ns {
    let (mut longest, mut done, mut next) = (0, Ns::MAX, 0);
    for op in ops {
        let mut from = done.min(op.start);
        while let Some(step) = steps.get(next).filter(|step| step.start < op.start) {
            longest = longest.max(step.start - from);
            from = from.max(step.end);
            if step.end > op.start {
                break;
            }
            next += 1;
        }
        longest = longest.max(op.start - from);
        done = if done == Ns::MAX { op.end } else { done.max(op.end) };
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::script::Script;

    #[test]
    fn pauses_inside_steps_do_not_count() {
        let mut s = Script::default();
        for (start, end) in [(0, 10), (100, 110), (190, 200), (900, 950)] {
            s.launch((start, start + 1), "gemm", (start + 5, end + 5));
        }
        let (_, analysis) = s.analyze();
        let ops = &analysis.ranks[0].timeline.ops;
        assert_eq!(longest_pause(ops, &[]), 700);
        assert_eq!(longest_pause(ops, &[Span::new(200, 950)]), 90);
        assert_eq!(longest_pause(ops, &[Span::new(0, 120), Span::new(300, 310), Span::new(800, 950)]), 490);
    }
}
