//! How the steps were found, which of them count, and how long they took.

use model::Ns;

use super::{Page, job, words};
use crate::{
    cells,
    document::{Align, Document, Inlines, Table},
    inlines, kernel_name,
    model::{ClassPart, P95_STEPS, P99_STEPS, RankPart},
    units,
    workload::{self, WorkloadPart},
};
use diagnosis::{
    analysis::AnchorKind,
    i18n::{Text, Value},
};

/// Ranges of steps that are listed; the rest is counted.
const RANGES: usize = 8;
/// Least ratio of slow steps to the median at which what makes them slow is listed; own value: below, it is noise.
const UNEVEN: f64 = 1.1;
/// Classes that are listed; the rest is counted.
const CLASSES: usize = 24;

/// Writes both sections.
pub(super) fn write(page: &mut Page<'_>) {
    page.heading(Text::new("How the steps were found", "如何划分步"));
    if page.capture.ranks.is_empty() {
        page.paragraph(
            page.get(Text::new("No device work was found, so there are no steps.", "没有找到设备执行，因此没有步。")),
        );
        return;
    }
    // Ranks of one job mostly say the same.
    let mut groups: Vec<(Vec<&RankPart>, Document)> = Vec::new();
    for rank in &page.capture.ranks {
        let before = std::mem::take(&mut page.out);
        found(page, rank);
        let text = std::mem::replace(&mut page.out, before);
        match groups.iter_mut().find(|(_, known)| *known == text) {
            Some((ranks, _)) => ranks.push(rank),
            None => groups.push((vec![rank], text)),
        }
    }
    for (ranks, mut text) in groups {
        text.begin_with(who(page, &ranks) + page.colon());
        page.out.append(text);
    }
    let marked = |rank: &RankPart| rank.anchor.kind != AnchorKind::WholeCapture;
    if page.capture.ranks.iter().any(marked) {
        page.paragraph(page.get(Text::new(
            "A step lasts from the start of its first device operation to the start of the next step's first one, the last step to the end of its last one. The host range is what the mark itself spans; what the host does before the first operation or after the last belongs to no step.",
            "一个步从其第一个设备操作开始，到下一步的第一个设备操作开始为止；最后一步到其最后一个设备操作结束为止。主机区间是标志本身覆盖的时间；首个操作之前与最后一个操作之后的主机时间不属于任何步。",
        )));
    }
    page.heading(Text::new("Steps", "步"));
    table(page);
    for rank in &page.capture.ranks {
        attended(page, rank);
        mean(page, rank);
        slow(page, rank);
    }
}

/// `Rank 0 (device 0)` or `Ranks 0–7`.
fn who(page: &Page<'_>, ranks: &[&RankPart]) -> Inlines {
    match ranks {
        [rank] => page.fill(
            Text::new("Rank {rank} (device {device})", "rank {rank}（设备 {device}）"),
            [("rank", Value::Count(u64::from(rank.rank))), ("device", Value::Number(f64::from(rank.device)))],
        ),
        ranks => {
            inlines![page.get(Text::new("Ranks", "rank")), " ", job::ranges(ranks.iter().map(|r| r.rank))]
        }
    }
}

fn found(page: &mut Page<'_>, rank: &RankPart) {
    let name = match rank.anchor.kind {
        AnchorKind::WholeCapture | AnchorKind::Log => Inlines::new(),
        AnchorKind::UserRange if matches!(&*rank.anchor.name, "torch" | "torch_optimizer" | "generic") => {
            Inlines::new()
        }
        _ => page.join([Inlines::new(), Inlines::name(&kernel_name::short(&rank.anchor.name))]),
    };
    let mark = page.get(Text::new("What marks a step", "步的标志"));
    let mark = inlines![mark, page.colon(), page.get(words::anchor(rank.anchor.kind, &rank.anchor.name))];
    let stop = page.get(Text::new(". ", "。"));
    let (count, sure) = (page.steps(rank.steps as u64), page.sure(rank.anchor.confidence));
    page.paragraph(inlines![count, stop, mark, name, sure]);
    let items: Vec<Inlines> = rank
        .selections
        .iter()
        .map(|(selection, ranges)| indices(page, ranges) + page.colon() + page.get(words::selection(*selection)))
        .collect();
    page.list(items);
    if rank.outside.iter().any(|ns| *ns > 0) {
        let [before, after] = rank.outside.map(Value::Ns);
        page.paragraph(page.fill(
            Text::new(
                "In no step: {before} of device work before the first one and {after} after the last one. Nothing below counts them.",
                "不属于任何步的设备工作：第一步之前 {before}，最后一步之后 {after}。以下统计均不包含它们。",
            ),
            [("before", before), ("after", after)],
        ));
    }
    if let Some((call, ns)) = &rank.awaited {
        page.paragraph(page.fill(
            Text::new(
                "Before the first step the host waits {ns} in {call}, and the capture holds only {before} of device work before that step: what it waited for was not recorded.",
                "第一步之前主机在 {call} 中等待 {ns}，而采集中该步之前的设备工作只有 {before}：所等待的工作没有被记录。",
            ),
            [("ns", Value::Ns(*ns)), ("call", Value::Raw(call.clone())), ("before", Value::Ns(rank.outside[0]))],
        ));
    }
    if rank.anchor.without_work > 0 {
        page.paragraph(page.fill(
            Text::new(
                "{n} further marks began no step, because no device operation followed from them.",
                "另有 {n} 个标志没有开始任何步，因为其后没有由它引发的设备操作。",
            ),
            [("n", Value::Count(u64::from(rank.anchor.without_work)))],
        ));
    }
}

/// `0–2, 5 (4 steps)`.
fn indices(page: &Page<'_>, ranges: &[(u32, u32)]) -> Inlines {
    let shown = ranges.iter().take(RANGES).map(|(a, b)| if a == b { a.to_string() } else { format!("{a}–{b}") });
    let list = page.join(shown);
    let steps: u64 = ranges.iter().map(|(a, b)| u64::from(b - a) + 1).sum();
    let more = if ranges.len() > RANGES { ", …" } else { "" };
    inlines![list, more, page.aside(page.steps(steps))]
}

/// A column of step times: its name and the value of a class.
type Column = (Inlines, fn(&ClassPart) -> Option<Ns>);

fn table(page: &mut Page<'_>) {
    let ranks = &page.capture.ranks;
    let classes = || ranks.iter().flat_map(|rank| &rank.classes);
    let times: [Column; 4] = [
        ("p50".into(), |c| Some(c.median)),
        ("p95".into(), |c| c.p95),
        ("p99".into(), |c| c.p99),
        (page.get(Text::new("host range p50", "主机区间 p50")), |c| c.host),
    ];
    // A column that no class has a value for is left out.
    let times: Vec<_> = times.into_iter().filter(|(_, of)| classes().any(|c| of(c).is_some())).collect();
    let mut columns = vec![
        ("rank".into(), Align::Right),
        (page.get(Text::new("class", "类别")), Align::Left),
        (page.get(Text::new("steps", "步数")), Align::Right),
        (page.get(Text::new("used", "采用")), Align::Right),
    ];
    columns.extend(times.iter().map(|(name, _)| (name.clone(), Align::Right)));
    let mut table = Table::new(columns);
    for rank in ranks {
        for class in rank.classes.iter().take(CLASSES) {
            let counts = [class.count, class.used].map(|n| units::count(n as u64));
            let cells = times.iter().map(|(_, of)| of(class).map_or_else(|| "–".to_owned(), units::micros));
            let names = cells![rank.rank.to_string(), Inlines::name(&class.key)];
            table.row(names.into_iter().chain(counts.into_iter().chain(cells).map(Inlines::from)));
        }
    }
    page.table(page.get(Text::new("Step times (nearest-rank percentiles)", "步时间（最近秩百分位）")), table);
    if let Some(more) = ranks.iter().filter_map(|r| r.classes.len().checked_sub(CLASSES)).max().filter(|n| *n > 0) {
        page.paragraph(page.fill(
            Text::new("{n} further classes are in the JSON report.", "另有 {n} 个类别见 JSON 报告。"),
            [("n", Value::Count(more as u64))],
        ));
    }
    if classes().any(|c| c.used > 1 && c.p99.is_none()) {
        page.paragraph(page.fill(
            Text::new(
                "A p95 is given from {p95} steps on and a p99 from {p99}: with fewer they are hardly more than the slowest step.",
                "p95 至少需要 {p95} 步，p99 至少需要 {p99} 步：步数更少时它们几乎就是最慢的一步，因此不给出。",
            ),
            [("p95", Value::Count(P95_STEPS as u64)), ("p99", Value::Count(P99_STEPS as u64))],
        ));
    }
    if classes().any(|c| c.used == 0) {
        page.paragraph(page.get(Text::new(
            "Where no step of a class is used, its percentiles are over all its steps and its time is attributed to nothing.",
            "若某类别没有被采用的步，其百分位取自全部步，其时间不参与归因。",
        )));
    }
}

/// What the shapes of attention tell of a class whose stage nothing else tells.
fn attended(page: &mut Page<'_>, rank: &RankPart) {
    let Some((queries, keys)) = rank.main_class().and_then(|class| class.attended) else { return };
    let text = if queries == keys && keys > 1 {
        Text::new(
            "Attention of the main class has {queries} queries for {keys} keys per sequence: it works on whole sequences, as prefill or an encoder does, and is no decode step.",
            "主类别的注意力每序列有 {queries} 个查询、{keys} 个键：处理的是整段序列（如预填充或编码器），并非解码步。",
        )
    } else {
        Text::new(
            "Attention of the main class has {queries} queries for {keys} keys per sequence.",
            "主类别的注意力每序列有 {queries} 个查询、{keys} 个键。",
        )
    };
    page.paragraph(page.fill(text, [("queries", Value::Count(queries)), ("keys", Value::Count(keys))]));
}

/// That the mean is not what most steps take, and what the slow ones have more.
fn mean(page: &mut Page<'_>, rank: &RankPart) {
    let uneven = |w: &&WorkloadPart| w.mean as f64 > workload::APART * w.median as f64 && w.slow.0 > 0;
    let Some(of) = rank.workload.as_ref().filter(uneven) else { return };
    let parts = of.slow.1.iter().take(3).map(|(name, ns)| inlines![Inlines::name(name), " +", units::time(*ns)]);
    let parts = page.join(parts);
    let text = page.fill(
        Text::new(
            "The mean step of rank {rank} takes {mean}, the median one {median}: {slow} of the {all} steps that count are slow. What each of these has more than the median step: ",
            "rank {rank} 的平均步时为 {mean}，中位步时为 {median}：计入统计的 {all} 步中有 {slow} 个慢步，每个比中位步平均多出：",
        ),
        [
            ("rank", Value::Count(u64::from(rank.rank))),
            ("mean", Value::Ns(of.mean)),
            ("median", Value::Ns(of.median)),
            ("slow", Value::Count(of.slow.0 as u64)),
            ("all", Value::Count(of.steps as u64)),
        ],
    );
    let nothing = page.get(Text::new("nothing", "无"));
    page.paragraph(text + if parts.is_empty() { nothing } else { parts });
}

fn slow(page: &mut Page<'_>, rank: &RankPart) {
    let Some(slow) = rank.main_class().and_then(|c| c.slow.as_ref()).filter(|s| s.ratio >= UNEVEN) else { return };
    let parts = slow.excess.iter().filter(|(_, ns)| *ns > 0).take(3);
    let parts = page.join(parts.map(|(name, ns)| inlines![Inlines::name(name), " +", units::time(*ns)]));
    let text = page.fill(
        if slow.slowest {
            Text::new(
                "Slow steps of rank {rank}: the slowest takes {ratio} the median. What the slowest have more than the median step, on average (steps compared: {n}): ",
                "rank {rank} 的慢步：最慢的一步为中位数的 {ratio}。最慢的 {n} 个步相对中位步平均多出：",
            )
        } else {
            Text::new(
                "Slow steps of rank {rank}: p99 is {ratio} the median. What the slowest have more than the median step, on average (steps compared: {n}): ",
                "rank {rank} 的慢步：p99 为中位数的 {ratio}。最慢的 {n} 个步相对中位步平均多出：",
        )},
        [
            ("rank", Value::Count(u64::from(rank.rank))),
            ("ratio", Value::Ratio(slow.ratio)),
            ("n", Value::Count(slow.steps as u64)),
        ],
    );
    let nothing = page.get(Text::new("nothing", "无"));
    page.paragraph(text + if parts.is_empty() { nothing } else { parts });
}
