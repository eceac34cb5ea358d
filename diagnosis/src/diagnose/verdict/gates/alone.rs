//! Kernels that ran one after the other for the sake of counters: how long each took is known, and not how a run went.

use model::ImportStat;

use super::{Case, Ruling};
use crate::{
    diagnose::{relations::Role, rule::Context},
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "The {n} kernels ran one after the other, once for each set of counters: how long each took holds, and no step, no idle time and no share of either is that of a run. Record a trace without counters beside it.",
    "这 {n} 个内核为采集计数器逐个运行，每组计数器一遍：每个内核的耗时成立，而步、空闲时间及其占比都不是实际运行的。请另采集一次不带计数器的 trace。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let alone = Value::Count(case.cx.trace.stat(ImportStat::RUN_ALONE));
    let sentence = || Message::new(SENTENCE, [("n", alone)]);
    ran_alone(case.cx).then(|| Ruling::undecided(sentence(), case.rules.with(Role::Unexplained)))
}

/// Whether at least half of the kernels ran so.
pub fn ran_alone(cx: &Context<'_>) -> bool {
    let alone = cx.trace.stat(ImportStat::RUN_ALONE);
    alone > 0 && alone.saturating_mul(2) >= cx.analysis.integrity.device_ops
}
