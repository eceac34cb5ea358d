//! Other processes had so much of the machine that the run says little of itself.

use super::{Case, Ruling, step_args};
use crate::{
    diagnose::{relations::Role, signals::machine},
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "{subject} ({class}): {lasts} {step}; other processes had {others} of the processors' time meanwhile and no core was free, so the steps show what was left of the machine and the capture allows no verdict: run again on a quiet one.",
    "{subject}（{class}）：{lasts} {step}；期间其他进程占用了 {others} 的处理器时间且没有空闲核心，各步只反映机器的余力，该采集不足以下结论：请在空闲时重跑。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let (rank, class) = case.longest?;
    let shared = machine::starved(case.cx, rank, class)?;
    let args = step_args(rank, class).into_iter().chain([("others", Value::Share(shared.others))]);
    Some(Ruling::undecided(Message::new(SENTENCE, args), case.rules.with(Role::SharedMachine)))
}
