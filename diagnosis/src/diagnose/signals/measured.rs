//! What a profiler measured of single kernels, apart from the run, as evidence for rules about them.

use std::collections::HashMap;

use model::{KernelSummary, Metric, Ns, StringId};

use super::reading;
use crate::{
    analysis::{DeviceOp, Rank},
    diagnose::{Evidence, Finding, rule::Context},
    i18n::{Message, Text, Value},
};

/// Use of the memory system from which a kernel is near its limit (Nsight Compute's speed-of-light texts).
pub const NEAR_LIMIT: f64 = 0.8;
/// Use of every unit below which a kernel waits more than it works (the same texts; the Ascend advisor's "no bound").
pub const LATENCY: f64 = 0.6;

/// The measurement of an operation.
pub fn of<'t>(cx: &Context<'t>, op: &DeviceOp) -> Option<&'t KernelSummary> {
    cx.analysis.measured.of(cx.trace, op)
}

/// Whether any kernel of the capture was measured in a way that `says` something.
pub fn any(cx: &Context<'_>, says: impl Fn(&KernelSummary) -> bool) -> bool {
    cx.analysis.measured.joined.matched > 0 && cx.trace.summaries.iter().any(says)
}

fn highest(summary: &KernelSummary, metrics: &[Metric]) -> Option<f64> {
    metrics.iter().filter_map(|metric| summary.metric(*metric)).map(|percent| percent / 100.0).reduce(f64::max)
}

/// Use of the busiest part of the memory system, in 0..=1.
pub fn memory(summary: &KernelSummary) -> Option<f64> {
    highest(summary, &[Metric::Memory, Metric::Dram])
}

/// Use of the busiest unit that computes, in 0..=1.
pub fn compute(summary: &KernelSummary) -> Option<f64> {
    highest(summary, &[Metric::Compute, Metric::Scalar])
}

/// Use of the busiest unit, where both kinds were measured: one alone proves nothing of the other.
pub fn busiest(summary: &KernelSummary) -> Option<f64> {
    Some(memory(summary)?.max(compute(summary)?))
}

/// The operations that a finding is about, each with its measurement if there is one.
fn operations<'a>(
    cx: &Context<'a>,
    rank: &'a Rank,
    finding: &Finding,
) -> Vec<(&'a DeviceOp, Option<&'a KernelSummary>)> {
    let mut changed: Vec<u32> =
        finding.changes.iter().flat_map(|(_, c)| &c.edits).flat_map(|e| e.operations()).collect();
    changed.sort_unstable();
    changed.dedup();
    let ops = changed.iter().filter_map(|op| rank.timeline.ops.get(*op as usize));
    ops.map(|op| (op, of(cx, op))).collect()
}

/// Whether the use of memory was measured of every operation that a finding is about.
pub fn covers(cx: &Context<'_>, rank: &Rank, finding: &Finding) -> bool {
    let ops = operations(cx, rank, finding);
    !ops.is_empty() && ops.iter().all(|(_, summary)| summary.and_then(memory).is_some())
}

/// What measurements of its operations add to a finding: the use of the busiest unit, what warps waited for, and, where
/// every operation was measured, that the competing explanation `rival` is ruled out.
pub fn witness(cx: &Context<'_>, rank: &Rank, mut finding: Finding, rival: Option<(usize, Text)>) -> Finding {
    let all = covers(cx, rank, &finding);
    let measured: Vec<(&DeviceOp, &KernelSummary)> =
        operations(cx, rank, &finding).into_iter().filter_map(|(op, summary)| Some((op, summary?))).collect();
    let rows = || reading::sample(measured.iter().map(|(op, _)| op.slice));
    let used = mean(measured.iter().filter_map(|(op, summary)| Some((op.dur(), busiest(summary)?))));
    if let Some(used) = used {
        let what = Text::new(
            "use of the busiest unit by these kernels, each measured alone, mean over their time",
            "这些内核中最忙单元的利用率（逐个单独测量，按耗时加权平均）",
        );
        finding = finding.with(Evidence::new(what, Value::Share(used), rows()));
    }
    let occupancy = mean(measured.iter().filter_map(|(op, s)| Some((op.dur(), s.metric(Metric::Occupancy)? / 100.0))));
    if let Some(occupancy) = occupancy {
        let what = Text::new("achieved occupancy, mean over their time", "实际占用率（按耗时加权平均）");
        finding = finding.with(Evidence::new(what, Value::Share(occupancy), rows()));
    }
    if let Some((reason, cycles)) = longest_stall(&measured) {
        let text = Text::new(
            "what their warps wait for longest is {reason}: cycles per instruction issued",
            "其 warp 等待最久的原因是 {reason}：每条发射指令的等待周期数",
        );
        let what = Message::new(text, [("reason", Value::Raw(cx.trace.strings.get(reason).to_owned()))]);
        finding = finding.with(Evidence { what, value: Value::Number(cycles), rows: rows() });
    }
    if let Some((at, why)) = rival.filter(|_| all)
        && let Some(competing) = finding.competing.get_mut(at)
    {
        (competing.refuted, competing.why) = (true, Message::plain(why));
    }
    finding
}

/// Mean of values weighted by time.
fn mean(values: impl Iterator<Item = (Ns, f64)>) -> Option<f64> {
    let (time, sum) = values.fold((0.0, 0.0), |(time, sum), (ns, value)| (time + ns as f64, sum + ns as f64 * value));
    (time > 0.0).then(|| sum / time)
}

/// The reason that most time goes to, and its mean cycles. What the scheduler merely did not pick is no wait.
fn longest_stall(measured: &[(&DeviceOp, &KernelSummary)]) -> Option<(StringId, f64)> {
    let mut reasons: HashMap<StringId, f64> = HashMap::new();
    let mut time = 0.0;
    for (op, summary) in measured.iter().filter(|(_, summary)| !summary.stalls.is_empty()) {
        time += op.dur() as f64;
        for (reason, cycles) in &summary.stalls {
            *reasons.entry(*reason).or_default() += op.dur() as f64 * cycles;
        }
    }
    let longest = reasons.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
    (time > 0.0).then(|| (longest.0, longest.1 / time))
}
