//! What several ranks tell together: who is missing, waits with what caused them, and how far the clocks can be trusted.

use model::{Ns, StepPart};

use super::{Page, words};
use crate::{
    cells,
    document::{Align, Inlines, Table},
    inlines,
    job::Moved,
    model::ClassPart,
    units,
};
use diagnosis::{
    analysis::Layer,
    i18n::{Text, Value},
};

/// Causes that are listed; the rest is in the JSON report.
const CAUSES: usize = 8;
/// Groups and clocks that are listed.
const LISTED: usize = 16;

/// Ranks of the capture, and those of the job that are not in it.
pub(super) fn present(page: &Page<'_>) -> Inlines {
    let capture = page.capture;
    let mut ranks: Vec<u32> = capture.ranks.iter().map(|r| r.rank).collect();
    ranks.sort_unstable();
    let mut summed: Vec<u32> = capture.job_sums.ranks.iter().map(|total| total.rank).collect();
    summed.sort_unstable();
    summed.dedup();
    if ranks.is_empty() && !summed.is_empty() {
        let args = [("n", Value::Count(summed.len() as u64)), ("ranks", Value::Raw(ranges(summed.into_iter())))];
        let text = Text::new(
            "sums of {n} (rank {ranks}), no single operation of any",
            "{n} 个的合计（rank {ranks}），没有单个操作",
        );
        return page.fill(text, args);
    }
    if ranks.is_empty() {
        return page.get(Text::new("none with device work", "无（没有设备执行）"));
    }
    let listed = format!("rank {}", ranges(ranks.iter().copied()));
    let count = Inlines::from(units::count(ranks.len() as u64));
    let Some(world) = capture.world_size else { return count + page.aside(listed) };
    let n = [("n", Value::Count(u64::from(world)))];
    let missing = ranges((0..world).filter(|r| ranks.binary_search(r).is_err()));
    let job = if ranks.last().is_some_and(|last| *last >= world) || (missing.is_empty() && ranks.len() < 2) {
        page.fill(Text::new("the job has {n}", "作业共 {n} 个"), n)
    } else if missing.is_empty() {
        page.fill(Text::new("all {n} of the job", "作业的全部 {n} 个"), n)
    } else {
        let [n] = n;
        let args = [n, ("missing", Value::Raw(missing))];
        page.fill(Text::new("the job has {n}; missing: {missing}", "作业共 {n} 个；缺少：{missing}"), args)
    };
    count + page.aside(inlines![listed, page.get(Text::new("; ", "；")), job])
}

/// Numbers in order as ranges, such as `0, 2–5`.
pub(super) fn ranges(numbers: impl Iterator<Item = u32>) -> String {
    let mut out: Vec<(u32, u32)> = Vec::new();
    for n in numbers {
        match out.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(n) => *last = n,
            _ => out.push((n, n)),
        }
    }
    let range = |(a, b): &(u32, u32)| match b - a {
        0 => a.to_string(),
        1 => format!("{a}, {b}"),
        _ => format!("{a}–{b}"),
    };
    let mut parts: Vec<String> = out.iter().take(LISTED).map(range).collect();
    if out.len() > LISTED {
        parts.push("…".to_owned());
    }
    parts.join(", ")
}

/// Writes the layers with waits moved to what caused them.
pub(super) fn reassigned(page: &mut Page<'_>, class: &ClassPart) {
    let Some(moved) = &class.reassigned else { return };
    let mut table = Table::new([
        (page.get(Text::new("layer", "层")), Align::Left),
        (page.get(Text::new("as measured, µs per step", "实测，µs/步")), Align::Right),
        (page.get(Text::new("waits with their cause, µs per step", "等待归于原因后，µs/步")), Align::Right),
    ]);
    let total = units::mean_tenths(class.total, class.used);
    let raw: Vec<i64> = class.layers().into_iter().chain([0]).collect();
    let after: Vec<i64> = moved.layers.into_iter().chain([moved.unassigned]).collect();
    let names = Layer::ALL.map(|layer| page.get(words::layer(layer)));
    let names = names.into_iter().chain([page.get(Text::new("waits without known cause", "原因未知的等待"))]);
    let shown = |ns: Ns| units::tenths(units::mean_tenths(ns, class.used));
    for ((name, before), after) in names.zip(raw).zip(after) {
        table.row(cells![name, shown(before), shown(after)]);
    }
    let mean = Inlines::strong(units::tenths(total));
    table.row(cells![Inlines::strong(page.get(Text::new("sum", "合计"))), mean.clone(), mean]);
    page.table(
        page.get(Text::new("Waits for late ranks moved to their cause", "将等待迟到 rank 的时间归于其原因")),
        table,
    );
    causes(page, class, moved);
    if let Some((n, median, most)) = moved.residual {
        page.paragraph(page.fill(
            Text::new(
                "What the late ranks spent longer explains {n} of {all} waits but for {median} in the median and {most} at most; more than 5 µs and a tenth of the wait is a doubt.",
                "迟到 rank 多花的时间解释了 {all} 次等待中的 {n} 次，未解释部分中位数为 {median}，最大为 {most}；超过 5 µs 且超过等待十分之一者存疑。",
            ),
            [
                ("n", Value::Count(n as u64)),
                ("all", Value::Count(moved.waits.0 as u64)),
                ("median", Value::Ns(median)),
                ("most", Value::Ns(most)),
            ],
        ));
    }
    if moved.waits.1 > 0 {
        page.paragraph(page.fill(
            Text::new(
                "In {n} of {all} waits the ranks left the collective too far apart to be sure of the cause.",
                "{all} 次等待中有 {n} 次：各 rank 离开集合通信的时刻相差过大，原因不确定。",
            ),
            [("n", Value::Count(moved.waits.1 as u64)), ("all", Value::Count(moved.waits.0 as u64))],
        ));
    }
}

fn causes(page: &mut Page<'_>, class: &ClassPart, moved: &Moved) {
    let mut table = Table::new([
        (page.get(Text::new("waited for rank", "等待的 rank")), Align::Right),
        (page.get(Text::new("which spent longer on", "其多花时间的分类")), Align::Left),
        (page.get(Text::new("layer", "层")), Align::Left),
        (page.get(Text::new("µs per step", "µs/步")), Align::Right),
    ]);
    for (rank, bucket, layer, ns) in moved.causes.iter().filter(|(.., ns)| *ns > 0).take(CAUSES) {
        let mean = units::tenths(units::mean_tenths(*ns, class.used));
        table.row(cells![rank.to_string(), Inlines::name(bucket), page.get(words::layer(*layer)), mean]);
    }
    if !table.is_empty() {
        page.table(page.get(Text::new("What this rank waited for", "该 rank 在等待什么")), table);
    }
    let mut of_sums: Vec<u32> = moved.causes.iter().filter(|(.., ns)| *ns > 0).map(|(rank, ..)| *rank).collect();
    of_sums.sort_unstable();
    of_sums.dedup();
    for rank in page.capture.ranks.iter().filter(|of| of.only_collectives && of_sums.contains(&of.rank)) {
        let total = page.capture.job_sums.ranks.iter().find(|total| total.rank == rank.rank);
        let part = |part| total.and_then(|total| total.mean(part));
        let sums = part(StepPart::Computing).zip(part(StepPart::Free));
        let text = match sums {
            Some(_) => Text::new(
                "Of rank {rank} only its collectives were kept: `unseen` is what it did between them. By the sums of its steps it computes for {computing} and is free for {free} of each.",
                "rank {rank} 只保留了集合通信：`unseen` 是其间的活动。按其步内合计，每步计算 {computing}，空闲 {free}。",
            ),
            None => Text::new(
                "Of rank {rank} only its collectives were kept: `unseen` is what it did between them, which nothing here divides.",
                "rank {rank} 只保留了集合通信：`unseen` 是其间的活动，无从细分。",
            ),
        };
        let (computing, free) = sums.unwrap_or_default();
        let args = [
            ("rank", Value::Count(u64::from(rank.rank))),
            ("computing", Value::Ns(computing)),
            ("free", Value::Ns(free)),
        ];
        page.paragraph(page.fill(text, args));
    }
}

/// Writes which ranks communicate and how far their clocks agree.
pub(super) fn groups(page: &mut Page<'_>) {
    let Some(job) = &page.capture.job else { return };
    let mut items = Vec::new();
    for group in job.groups.iter().take(LISTED) {
        let name = match &group.name {
            Some(name) => Value::Raw(name.clone()),
            None => Value::Text(Text::new("without name", "（无名称）")),
        };
        let size = match group.size {
            Some(size) => Value::Count(u64::from(size)),
            None => Value::Text(Text::new("an unknown number", "未知数量")),
        };
        items.push(page.fill(
            Text::new(
                "Group {name}: ranks {ranks} of {size}, {n} collectives matched",
                "通信组 {name}：rank {ranks}（共 {size} 个），匹配 {n} 次集合通信",
            ),
            [
                ("name", name),
                ("ranks", Value::Raw(ranges(group.ranks.iter().copied()))),
                ("size", size),
                ("n", Value::Count(group.collectives as u64)),
            ],
        ));
    }
    if job.unmatched + job.one_sided > 0 {
        items.push(page.fill(
            Text::new(
                "Not matched: {n} collectives without a partner in the capture, {one} one-sided operations",
                "未匹配：{n} 次集合通信在采集中没有对应方，{one} 次单边操作",
            ),
            [("n", Value::Count(job.unmatched)), ("one", Value::Count(job.one_sided))],
        ));
    }
    for (rank, clock) in job.clocks.iter().filter(|(_, c)| c.collectives > 0).take(LISTED) {
        items.push(page.fill(
            Text::new(
                "Clock of rank {rank}: {ahead} against the first rank, ± {by} (for display only, from {n} collectives)",
                "rank {rank} 的时钟：相对首个 rank 偏移 {ahead}，± {by}（仅用于显示，依据 {n} 次集合通信）",
            ),
            [
                ("rank", Value::Count(u64::from(*rank))),
                ("ahead", Value::Ns(clock.ahead)),
                ("by", Value::Ns(clock.uncertainty)),
                ("n", Value::Count(clock.collectives as u64)),
            ],
        ));
    }
    page.list(items);
    let mut table = Table::new([
        (page.get(Text::new("rank", "rank")), Align::Right),
        (page.get(Text::new("waited for rank", "等待的 rank")), Align::Right),
        (page.get(Text::new("time", "时间")), Align::Right),
    ]);
    for (rank, peer, ns) in page.capture.job.iter().flat_map(|job| &job.notified).take(CAUSES) {
        table.row(cells![rank.to_string(), peer.to_string(), units::time(*ns)]);
    }
    if !table.is_empty() {
        page.table(
            page.get(Text::new(
                "Waits inside collectives, as the profiler recorded them (waits for several ranks run side by side)",
                "集合通信内部的等待（由采集工具记录；对多个 rank 的等待可并行）",
            )),
            table,
        );
    }
}
