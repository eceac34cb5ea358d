//! Most of the steps is compilation or graph capture: a start-up and no decode step.

use model::{Ns, Span};

use super::{Case, Ruling, step_args};
use crate::{
    analysis::{Bucket, Call},
    diagnose::signals::start_up::{before_first, first_uses, prepared, preparing_gap, records_graphs},
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "{subject} ({class}): {share} of {step} is compilation or graph capture, so this is a start-up and no decode step.",
    "{subject}（{class}）：{step} 中有 {share} 是编译或图捕获，属于启动阶段而非解码步。",
);
/// What it says of steps in which graphs are recorded: what the device does then is no work of a step.
const RECORDED: Text = Text::new(
    "{subject} ({class}): {lasts} {step}, and during most of that the host records graphs, so this is a start-up and no decode step; record what replays them.",
    "{subject}（{class}）：{lasts} {step}，其中大部分时间主机在录制图，属于启动阶段而非解码步；请采集重放这些图的步。",
);
/// What it says of a single gap.
const GAP: Text = Text::new(
    "{subject} ({class}): {lasts} {step}, {share} of it a single idle gap of {gap} in which the host prepared code or graphs, so this is a start-up and no decode step.",
    "{subject}（{class}）：{lasts} {step}，其中 {share} 是一个 {gap} 的空闲间隙，其间主机在准备代码或图，属于启动阶段而非解码步。",
);

/// What it says of a run in which everything happens for the first time.
const FIRST_USE: Text = Text::new(
    "{subject} ({class}): {lasts} {step}, for {share} of it the device waits for calls that were the first of their kind ({n} of them, {call} alone for {longest}): the device's context is made and the code of kernels is loaded, so this is a start-up; run the same work once before recording.",
    "{subject}（{class}）：{lasts} {step}，其中 {share} 设备在等待 {n} 次首次调用（仅 {call} 就有 {longest}）：正在创建设备上下文并加载内核代码，属于启动阶段；请先运行一次相同的工作再采集。",
);

/// The same where the context of the device was made before.
const FIRST_LAUNCH: Text = Text::new(
    "{subject} ({class}): {lasts} {step}, for {share} of it the device waits for calls that were the first of their kind ({n} of them, {call} alone for {longest}): the code of kernels or of a library is loaded, so this is a start-up; run the same work once before recording.",
    "{subject}（{class}）：{lasts} {step}，其中 {share} 设备在等待 {n} 次首次调用（仅 {call} 就有 {longest}）：正在加载内核或库的代码，属于启动阶段；请先运行一次相同的工作再采集。",
);

/// What it says where no call shows what made the host slow, and everything happens for the first time.
const BEFORE_FIRST: Text = Text::new(
    "{subject} ({class}): {lasts} {step}, for {share} of it the device waits before operations whose kernels run for the first time ({n} such pauses, the longest {longest}): that is where libraries and the code of kernels are loaded as a rule, so this is most likely a start-up; run the same work once before recording.",
    "{subject}（{class}）：{lasts} {step}，其中 {share} 设备在等待首次运行的内核（{n} 次停顿，最长 {longest}）：通常是在加载库与内核代码，很可能属于启动阶段；请先运行一次相同的工作再采集。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let (rank, class) = case.longest?;
    let headline = if prepared(rank, class) {
        let share = class.share(|b| b == Bucket::Compile);
        Message::new(SENTENCE, step_args(rank, class).into_iter().chain([("share", Value::Share(share))]))
    } else if records_graphs(rank, class) {
        Message::new(RECORDED, step_args(rank, class))
    } else if let Some((gap, share)) = preparing_gap(rank, class) {
        let args = [("share", Value::Share(share)), ("gap", Value::Ns(gap))];
        Message::new(GAP, step_args(rank, class).into_iter().chain(args))
    } else if let Some((calls, share)) = first_uses(rank, class) {
        // Of a call that began before the steps only what lies in them.
        let lag = rank.timeline.lag;
        let inside = |call: &Call| -> Ns {
            let span = Span::new(call.start.saturating_sub(lag), call.end.saturating_sub(lag));
            rank.steady_steps(class).map(|step| step.window.clip(span).len()).sum()
        };
        let longest = calls.iter().max_by_key(|call| inside(call))?;
        let begun = rank.timeline.ops.first().is_some_and(|op| {
            rank.timeline.call(op).is_none_or(|first| calls.iter().all(|call| call.start > first.start))
        });
        let says = if begun { FIRST_LAUNCH } else { FIRST_USE };
        let args = [
            ("share", Value::Share(share)),
            ("n", Value::Count(calls.len() as u64)),
            ("call", Value::Raw(case.cx.trace.strings.get(longest.name).to_owned())),
            ("longest", Value::Ns(inside(longest))),
        ];
        Message::new(says, step_args(rank, class).into_iter().chain(args))
    } else {
        let (n, longest, share) = before_first(rank, class).filter(|(.., share)| !is_explained(case, *share))?;
        let args = [("share", Value::Share(share)), ("n", Value::Count(n as u64)), ("longest", Value::Ns(longest))];
        Message::new(BEFORE_FIRST, step_args(rank, class).into_iter().chain(args))
    };
    Some(Ruling::undecided(headline, []))
}

/// Whether a finding names a cause for at least half of what such pauses take; those of launching and of other code name none.
fn is_explained(case: &Case<'_>, share: f64) -> bool {
    let named = case.weighty().filter(|finding| !["RT-14", "RT-26"].contains(&finding.rule));
    named.map(|finding| finding.estimate.max_gain_share()).any(|gain| 2.0 * gain >= share)
}
