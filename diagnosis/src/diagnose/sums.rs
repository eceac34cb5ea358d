//! What can be said of a capture that holds no timeline but sums or measurements, and what cannot.

use model::{Conditions, Ns, Trace};

use crate::{
    analysis::job_sums::JobTotals,
    i18n::{Message, Text, Value},
};

/// The headline of such a capture; `None` where it holds none of that either.
pub(super) fn headline(trace: &Trace) -> Option<Message> {
    if trace.summaries.is_empty() && !trace.job_sums.is_empty() {
        return Some(of_job(&JobTotals::of(trace)));
    }
    let run = || trace.summaries.iter().filter(|s| s.conditions == Conditions::Run);
    let Some(longest) = run().max_by_key(|s| s.total) else {
        let n = trace.summaries.len() as u64;
        return (n > 0).then(|| {
            Message::new(
                Text::new(
                    "The capture holds measurements of kernels that were run alone ({n}), and no timeline: nothing can be said of the time of a run.",
                    "采集仅含 {n} 个单独执行的内核的测量值，没有时间线：无法说明一次运行的时间。",
                ),
                [("n", Value::Count(n))],
            )
        });
    };
    let total: Ns = run().filter_map(|s| s.total).fold(0, Ns::saturating_add);
    let share = longest.total.unwrap_or(0) as f64 / total.max(1) as f64;
    Some(Message::new(
        Text::new(
            "The capture holds only sums: {kernel} has {share} of {total} of kernel time. No wall time follows from a sum, so no layer can be blamed.",
            "采集仅含总和：{kernel} 占内核总时间 {total} 的 {share}。总和不能说明墙钟时间，因此无法判定瓶颈层。",
        ),
        [
            ("kernel", Value::Raw(trace.strings.get(longest.kernel).to_owned())),
            ("share", Value::Share(share)),
            ("total", Value::Ns(total)),
        ],
    ))
}

/// The headline of a capture that holds sums of a job's steps or links only.
fn of_job(totals: &JobTotals) -> Message {
    let Some((exposed, all)) = totals.exposed() else {
        return Message::plain(Text::new(
            "The capture holds only sums of collectives or links between ranks: no layer can be blamed.",
            "采集仅含集合通信或 rank 间链路的总和：无法判定瓶颈层。",
        ));
    };
    Message::new(
        Text::new(
            "The capture holds only sums of the steps of {n} ranks: {share} of them is communication that no computation hides. What it waited for does not follow from a sum, so no layer can be blamed.",
            "采集仅含 {n} 个 rank 的步内总和：其中 {share} 是没有被计算掩盖的通信。总和不能说明它在等什么，因此无法判定瓶颈层。",
        ),
        [("n", Value::Count(totals.ranks.len() as u64)), ("share", Value::Share(exposed as f64 / all as f64))],
    )
}
