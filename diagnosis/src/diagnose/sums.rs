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
    if let Some(headline) = of_links(trace).or_else(|| of_batches(trace)).filter(|_| trace.summaries.is_empty()) {
        return Some(headline);
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

/// The headline of a link test: what it says of all sizes, and of the links that the library found.
fn of_links(trace: &Trace) -> Option<Message> {
    const TOPOLOGY: &str = "link.topology.";
    const UNEVEN: Text = Text::new(
        "; links of one kind differ, and the slowest bounds every collective over them: {links}",
        "；同类链路快慢不一，最慢者限制经过它们的每次集合通信：{links}",
    );
    let busbw = trace.manifest.value("link.mean_busbw")?;
    let found = trace.manifest.iter().filter_map(|(key, entry)| Some((key.strip_prefix(TOPOLOGY)?, entry)));
    let uneven = found.filter(|(_, entry)| entry.value.contains(" to "));
    let uneven: Vec<String> = uneven.map(|(kind, entry)| format!("{kind} {}", entry.value)).collect();
    let links = match uneven.is_empty() {
        true => Value::Text(Text::new("", "")),
        false => Message::new(UNEVEN, [("links", Value::Raw(uneven.join(", ")))]).within(),
    };
    Some(Message::new(
        Text::new(
            "A test of the links: {busbw} of bus bandwidth, mean of its sizes{links}. No step is in it, so nothing says where a step's time goes.",
            "链路测试：各消息大小的平均总线带宽为 {busbw}{links}。其中没有步，不能说明一步的时间花在哪里。",
        ),
        [("busbw", Value::Raw(busbw.to_owned())), ("links", links)],
    ))
}

/// The headline of a latency benchmark: how long its client waited for a batch.
fn of_batches(trace: &Trace) -> Option<Message> {
    let seconds: f64 = trace.manifest.value("serving.avg_latency")?.parse().ok()?;
    let nanoseconds = seconds * 1e9;
    (nanoseconds.is_finite() && nanoseconds > 0.0).then(|| {
        Message::new(
            Text::new(
                "A benchmark of latency: a batch takes {latency} on average, as its client measured it. No step of the server is in it, so nothing says where that time goes.",
                "延迟基准：客户端测得一批请求平均耗时 {latency}。其中没有服务端的步，不能说明这些时间花在哪里。",
            ),
            [("latency", Value::Ns(nanoseconds as Ns))],
        )
    })
}
