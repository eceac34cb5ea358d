//! Most of the step is opaque to the capture.

use model::{Ns, StringId};

use super::{Case, OPAQUE, Ruling, opaque, step_args};
use crate::{
    analysis::{Class, Rank},
    diagnose::{relations::Role, signals::reading},
    i18n::{Message, Text, Value},
};

/// Share of the time that one pause takes from which it is what there is to say.
const PAUSE: f64 = 0.5;

/// What it says.
const SENTENCE: Text = Text::new(
    "{subject} ({class}): {lasts} {step}, and for {share} of it the capture does not show why the device waits or what it runs, so it allows no verdict.",
    "{subject}（{class}）：{lasts} {step}，其中 {share} 采集未显示设备为何等待或在运行什么，不足以下结论。",
);
/// The same where one pause is most of it.
const SINGLE: Text = Text::new(
    "{subject} ({class}): {lasts} {step}. One pause takes {share} of it: {pause} before {kernel}{first}. No recorded call says why, so the capture allows no verdict.",
    "{subject}（{class}）：{lasts} {step}，其中一次 {pause} 的停顿（{share}）在 {kernel}{first}之前。采集中没有能说明原因的调用，不足以下结论。",
);
const FIRST: Text = Text::new(
    ", which runs there for the first time: it may be compiled or loaded then",
    "（首次运行，可能正在编译或加载）",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let (rank, class) = case.longest.filter(|(_, class)| opaque(class) > OPAQUE)?;
    let message = match single(rank, class) {
        Some((pause, kernel, first)) => {
            let share = pause as f64 / class.total.max(1) as f64;
            let args = [
                ("pause", Value::Ns(pause)),
                ("share", Value::Share(share)),
                ("kernel", Value::Kernel(case.cx.trace.strings.get(kernel).to_owned())),
                ("first", Value::Text(if first { FIRST } else { Text::new("", "") })),
            ];
            Message::new(SINGLE, step_args(rank, class).into_iter().chain(args))
        }
        None => {
            Message::new(SENTENCE, step_args(rank, class).into_iter().chain([("share", Value::Share(opaque(class)))]))
        }
    };
    Some(Ruling::undecided(message, case.rules.with(Role::Unexplained)))
}

/// The pause that is most of the time, the operation that ends it, and whether nothing of that name ran before.
fn single(rank: &Rank, class: &Class) -> Option<(Ns, StringId, bool)> {
    let gap = rank.steady_steps(class).flat_map(|step| reading::gaps(rank, step)).max_by_key(|gap| gap.span.len())?;
    if (gap.span.len() as f64) < PAUSE * class.total as f64 {
        return None;
    }
    let at = gap.owner? as usize;
    let name = rank.timeline.ops.get(at)?.name;
    let before = rank.timeline.ops.get(..at).unwrap_or(&[]);
    Some((gap.span.len(), name, before.iter().all(|op| op.name != name)))
}
