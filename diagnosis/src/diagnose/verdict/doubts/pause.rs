//! The host does nothing known between steps, and nothing recorded says whether it had requests to work on.

use super::{
    super::case::{RIVAL, awaited, doubtful_idle},
    Case, Unjudged,
};
use crate::{
    analysis::{Bucket, Class, Rank},
    diagnose::{relations::Role, rule::Context, signals::reading},
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "for {share} of the step the host does nothing known between steps, and nothing recorded says whether it had requests to work on: record the engine's counters of running and waiting requests, or ranges around its scheduling",
    "步时的 {share} 内主机在步间没有任何已知活动，也没有任何记录能说明是否有请求可处理：请记录引擎的运行与等待请求计数，或标注其调度区间",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (rank, class) = case.longest?;
    let share = pause_without_demand(case.cx, rank, class);
    let sentence = Message::new(SENTENCE, [("share", Value::Share(share))]);
    (share >= RIVAL && share > case.best()).then(|| Unjudged {
        share,
        sentence,
        because: case.rules.with(Role::LoadLimited).collect(),
        decides: true,
    })
}

/// Share of a class in which the host does nothing known between steps, while nothing says whether it had anything to do.
fn pause_without_demand(cx: &Context<'_>, rank: &Rank, class: &Class) -> f64 {
    let unknown = |b: Bucket| reading::is_host(cx.analysis, b, "unknown");
    doubtful_idle(cx, rank, class) - awaited(cx, rank, class, unknown)
}
