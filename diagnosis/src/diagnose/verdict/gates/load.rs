//! For more of the time than anything would gain the engine has no request: the run is load-limited.

use super::{Case, Ruling, VerdictLayer, step_args};
use crate::{
    diagnose::relations::Role,
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "{subject} ({class}): {lasts} {step}, and for {share} of the time the engine has no request to work on: the run is load-limited, and that is not a bottleneck of the stack.",
    "{subject}（{class}）：{lasts} {step}，其中 {share} 的时间引擎没有请求可处理：该运行受负载限制，并非软件栈的瓶颈。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let (rank, class) = case.longest?;
    let best = case.best();
    let limits = |f: &&_| case.plays(f, Role::LoadLimited) && f.trigger.value >= best;
    let limited = case.findings.iter().find(limits)?;
    let args = step_args(rank, class).into_iter().chain([("share", Value::Share(limited.trigger.value))]);
    Some(Ruling {
        layer: VerdictLayer::Load,
        headline: Message::new(SENTENCE, args),
        confidence: limited.confidence,
        because: vec![limited.rule],
    })
}
