//! Kernels that ran one after the other for the sake of counters: how long each took is known, and not how a run went.

use std::cmp::Reverse;

use model::{ImportStat, Ns, StringId};
use rustc_hash::FxHashMap;

use super::{Case, Ruling};
use crate::{
    analysis::OpKind,
    diagnose::{kernel_sums::rate_of, relations::Role, rule::Context},
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "The {n} kernels ran one after the other, once for each set of counters: how long each took holds, and no step, no idle time and no share of either is that of a run. Of the {total} that they take together {kernel} has {share}{rate}. Record a trace without counters beside it.",
    "这 {n} 个内核为采集计数器逐个运行，每组计数器一遍：每个内核的耗时成立，而步、空闲时间及其占比都不是实际运行的。它们合计 {total}，其中 {kernel} 占 {share}{rate}。请另采集一次不带计数器的 trace。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    if !ran_alone(case.cx) {
        return None;
    }
    let mut kernels: FxHashMap<StringId, Ns> = FxHashMap::default();
    let ops = case.cx.analysis.ranks.iter().flat_map(|rank| &rank.timeline.ops);
    for op in ops.filter(|op| matches!(op.kind, OpKind::Compute | OpKind::Comm)) {
        let sum = kernels.entry(op.name).or_default();
        *sum = sum.saturating_add(op.end - op.start);
    }
    let total = kernels.values().fold(0, |all: Ns, ns| all.saturating_add(*ns));
    let name = |kernel: StringId| case.cx.trace.strings.get(kernel);
    let (kernel, most) = kernels.into_iter().max_by_key(|(kernel, ns)| (*ns, Reverse(name(*kernel))))?;
    // Of several tables with counters of the kernel the one that tells its rate.
    let counted = case.cx.trace.summaries.iter().filter(|s| s.kernel == kernel);
    let rates = counted.map(|s| rate_of(case.cx.trace, s)).find(|rate| !rate.args.is_empty());
    let args = [
        ("rate", rates.map_or(Value::Text(Text::new("", "")), Message::within)),
        ("n", Value::Count(case.cx.trace.stat(ImportStat::RUN_ALONE))),
        ("total", Value::Ns(total)),
        ("kernel", Value::Kernel(name(kernel).to_owned())),
        ("share", Value::Share(most as f64 / total.max(1) as f64)),
    ];
    Some(Ruling::undecided(Message::new(SENTENCE, args), case.rules.with(Role::Unexplained)))
}

/// Whether at least half of the kernels ran so.
pub fn ran_alone(cx: &Context<'_>) -> bool {
    let alone = cx.trace.stat(ImportStat::RUN_ALONE);
    alone > 0 && alone.saturating_mul(2) >= cx.analysis.integrity.device_ops
}
