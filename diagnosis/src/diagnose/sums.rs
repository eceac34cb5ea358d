//! What can be said of a capture that holds no timeline but sums or measurements, and what cannot.

use model::{Ns, StepPart, Trace};

use super::kernel_sums;
use crate::{
    analysis::job_sums::{JobTotals, SlowestLink},
    i18n::{Message, Text, Value},
    platform::Packs,
};

/// The headline of such a capture; `None` where it holds none of that either.
pub(super) fn headline(trace: &Trace, packs: &Packs) -> Option<Message> {
    if trace.summaries.is_empty() && !trace.job_sums.is_empty() {
        return Some(of_job(&JobTotals::of(trace)));
    }
    if let Some(headline) = of_links(trace).or_else(|| of_batches(trace)).filter(|_| trace.summaries.is_empty()) {
        return Some(headline);
    }
    kernel_sums::headline(trace, packs)
}

/// The headline of a capture that holds sums of a job's steps or links only.
fn of_job(totals: &JobTotals) -> Message {
    let link = match slowest_link(totals) {
        Some(link) => link.within(),
        None => Value::Text(Text::new("", "")),
    };
    let Some((exposed, all)) = totals.exposed() else {
        return Message::new(
            Text::new(
                "The capture holds only sums of collectives or links between ranks: no layer can be blamed.{link}",
                "采集仅含集合通信或 rank 间链路的总和：无法判定瓶颈层。{link}",
            ),
            [("link", link)],
        );
    };
    let bubble = bubble(totals);
    let text = if bubble.is_some() {
        Text::new(
            "The capture holds only sums of the steps of {n} ranks: {share} of them is communication that no computation hides{bubble}. What it waited for besides does not follow from a sum, so no layer can be blamed.{link}",
            "采集仅含 {n} 个 rank 的步内总和：其中 {share} 是没有被计算掩盖的通信{bubble}。总和不能说明其余部分在等什么，因此无法判定瓶颈层。{link}",
        )
    } else {
        Text::new(
            "The capture holds only sums of the steps of {n} ranks: {share} of them is communication that no computation hides. {parts} What it waited for does not follow from a sum, so no layer can be blamed.{link}",
            "采集仅含 {n} 个 rank 的步内总和：其中 {share} 是没有被计算掩盖的通信。{parts}总和不能说明它在等什么，因此无法判定瓶颈层。{link}",
        )
    };
    Message::new(
        text,
        [
            ("n", Value::Count(totals.ranks.len() as u64)),
            ("share", Value::Share(exposed as f64 / all as f64)),
            ("bubble", bubble.unwrap_or(Value::Text(Text::new("", "")))),
            ("link", link),
            ("parts", parts(totals)),
        ],
    )
}

/// What the steps of all ranks consist of, as a sentence: the time of the device without work is what the host may be late for.
fn parts(totals: &JobTotals) -> Value {
    const PARTS: Text = Text::new(
        " A step of {step} is computing for {computing} and free time, in which the device has no work, for {free}.",
        "一步 {step} 中计算占 {computing}，设备无工作的空闲时间占 {free}。",
    );
    let sum = |part| {
        let means = totals.ranks.iter().filter_map(|rank| rank.mean(part));
        means.fold((0, 0), |(sum, n): (Ns, i64), mean| (sum.saturating_add(mean), n + 1))
    };
    let mean = |part| sum(part).0.checked_div(sum(part).1);
    let (Some(computing), Some(free)) = (mean(StepPart::Computing), mean(StepPart::Free)) else {
        return Value::Text(Text::new("", ""));
    };
    let step = computing.saturating_add(free).saturating_add(mean(StepPart::ExposedCommunication).unwrap_or(0));
    let share = |part: Ns| Value::Share(part as f64 / step.max(1) as f64);
    let args = [("step", Value::Ns(step)), ("computing", share(computing)), ("free", share(free))];
    Message::new(PARTS, args).within()
}

/// The stage that waits longest for what another one sends, as the end of a sentence on communication.
pub(super) fn bubble(totals: &JobTotals) -> Option<Value> {
    const TEXT: Text = Text::new(
        "; the ranks of stage {stage} wait for what another stage of the pipeline sends for {wait} of each step of {step}",
        "；stage {stage} 的各 rank 每步 {step} 中有 {wait} 在等流水线其他 stage 的数据",
    );
    let bubble = totals.longest_bubble()?;
    let args = [
        ("stage", Value::Count(u64::from(bubble.stage))),
        ("wait", Value::Ns(bubble.wait)),
        ("step", Value::Ns(bubble.step)),
    ];
    Some(Message::new(TEXT, args).within())
}

/// Of the transports with comparable links the one whose slowest is furthest behind the middle one.
fn slowest_link(totals: &JobTotals) -> Option<Message> {
    let behind = |slowest: &&SlowestLink| slowest.link.rate().map_or(0.0, |rate| slowest.median / rate);
    let slowest = totals.slowest_links.iter().max_by(|a, b| behind(a).total_cmp(&behind(b)))?;
    let link = &slowest.link;
    let text = if behind(&slowest) > SlowestLink::EVEN {
        Text::new(
            " The slowest of {n} links over {transport} that moved alike much, rank {from} to rank {to}, moves {rate}; the middle one moves {median}.",
            "{transport} 上数据量相近的 {n} 条链路中最慢的是 rank {from} 到 rank {to}，速率 {rate}，居中者为 {median}。",
        )
    } else {
        Text::new(
            " The {n} links over {transport} that moved alike much are even: the slowest moves {rate}, the middle one {median}.",
            "{transport} 上数据量相近的 {n} 条链路快慢相当：最慢者速率 {rate}，居中者 {median}。",
        )
    };
    Some(Message::new(
        text,
        [
            ("n", Value::Count(slowest.links)),
            ("transport", Value::Raw(link.transport.clone())),
            ("from", Value::Count(u64::from(link.from))),
            ("to", Value::Count(u64::from(link.to))),
            ("rate", Value::BytesPerSecond(link.rate()?)),
            ("median", Value::BytesPerSecond(slowest.median)),
        ],
    ))
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
