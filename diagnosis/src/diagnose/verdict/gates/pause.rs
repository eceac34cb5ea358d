//! For more of the time than anything would gain the host does nothing known between steps, and nothing recorded says whether
//! it had requests to work on.

use super::{Case, RIVAL, Ruling, awaited, doubtful_idle, step_args};
use crate::{
    analysis::{Bucket, Class, Rank},
    diagnose::{relations::Role, rule::Context, signals::reading},
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "{subject} ({class}): {lasts} {step}; for {share} of it the host does nothing known between steps, which is more than what was found would gain ({gain} at most), and nothing recorded says whether it had requests to work on: record the engine's counters of running and waiting requests, or ranges around its scheduling.",
    "{subject}（{class}）：{lasts} {step}；其中 {share} 的时间主机在步间没有任何已知活动，多于已发现问题的最大收益（{gain}），也没有任何记录能说明是否有请求可处理：请记录引擎的运行与等待请求计数，或标注其调度区间。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let (rank, class) = case.longest?;
    let (pause, best) = (pause_without_demand(case.cx, rank, class), case.best());
    if pause < RIVAL || pause <= best {
        return None;
    }
    let args = [("share", Value::Share(pause)), ("gain", Value::Share(best))];
    let headline = Message::new(SENTENCE, step_args(rank, class).into_iter().chain(args));
    Some(Ruling::undecided(headline, case.rules.with(Role::LoadLimited)))
}

/// Share of a class in which the host does nothing known between steps, while nothing says whether it had anything to do.
fn pause_without_demand(cx: &Context<'_>, rank: &Rank, class: &Class) -> f64 {
    let unknown = |b: Bucket| reading::is_host(cx.analysis, b, "unknown");
    doubtful_idle(cx, rank, class) - awaited(cx, rank, class, unknown)
}
