//! Ranks and links of which the capture holds sums and no times.

use model::StepPart;

use super::Page;
use crate::{
    cells,
    document::{Align, Inlines, Table},
    units,
};
use diagnosis::{
    analysis::job_sums::{LinkTotal, RankTotal, SlowestLink},
    i18n::{Text, Value},
};

/// Ranks and links listed; the rest is in the JSON report.
const LISTED: usize = 64;
/// Share by which ranks of a stage may differ and count as even (msprof-analyze, cluster analysis guide).
const EVEN: f64 = 0.05;

/// Parts that a column stands for.
const COLUMNS: [(StepPart, Text); 8] = [
    (StepPart::Computing, Text::new("computing", "计算")),
    (StepPart::ExposedCommunication, Text::new("exposed communication", "未掩盖通信")),
    (StepPart::Free, Text::new("free", "空闲")),
    (StepPart::Overlapped, Text::new("hidden communication", "被掩盖通信")),
    (StepPart::Bubble, Text::new("bubble", "气泡")),
    (StepPart::Preparing, Text::new("preparing", "准备")),
    (StepPart::Transfer, Text::new("transfer in collectives", "集合通信中的传输")),
    (StepPart::Wait, Text::new("wait in collectives", "集合通信中的等待")),
];

/// What the sums are, where nothing of the ranks has times.
const ALONE: Text = Text::new(
    "These are sums that another tool made. Computing, exposed communication and free fill a rank's step; the bubble is part of the exposed communication. \
     Times in collectives may run side by side, and neither they nor sums over ranks say anything of wall time (CP-07). Which operation or call a sum is made of, and who waited for whom, needs the captures of the ranks.",
    "这些是其他工具给出的总和。计算、未掩盖通信与空闲三者填满一个 rank 的一步；气泡属于未掩盖通信。\
     集合通信中的时间可能并行，这些时间以及跨 rank 的总和都不能说明墙钟时间（CP-07）。总和由哪些算子或调用构成、谁在等谁，需要各 rank 的采集。",
);
/// The same, where their collectives have times.
const JOINED: Text = Text::new(
    "These are sums that another tool made. Computing, exposed communication and free fill a rank's step; the bubble is part of the exposed communication. \
     Times in collectives may run side by side, and neither they nor sums over ranks say anything of wall time (CP-07). Who waited for whom follows from the times of the collectives and stands above; which operation or call a sum is made of needs the captures of these ranks.",
    "这些是其他工具给出的总和。计算、未掩盖通信与空闲三者填满一个 rank 的一步；气泡属于未掩盖通信。\
     集合通信中的时间可能并行，这些时间以及跨 rank 的总和都不能说明墙钟时间（CP-07）。谁在等谁由集合通信的时间得出，见上文；总和由哪些算子或调用构成，需要这些 rank 的采集。",
);

/// Writes what is known of ranks and links.
pub(super) fn write(page: &mut Page<'_>) {
    let totals = &page.capture.job_sums;
    if totals.is_empty() || beside_a_timeline(page) {
        return;
    }
    page.heading(Text::new("Ranks and links without a timeline", "没有时间线的 rank 与链路"));
    page.paragraph(page.get(if are_joined(page) { JOINED } else { ALONE }));
    ranks(page, &totals.ranks);
    links(page, &totals.links);
    observations(page);
}

/// Whether the collectives of these ranks are known with their times and were joined with those of others.
fn are_joined(page: &Page<'_>) -> bool {
    page.capture.job.is_some() && page.capture.ranks.iter().any(|rank| rank.only_collectives)
}

/// Whether the sums are those of the links of ranks whose steps the capture holds itself.
fn beside_a_timeline(page: &Page<'_>) -> bool {
    page.capture.job_sums.ranks.is_empty() && !page.capture.ranks.is_empty()
}

/// Writes what moved between the ranks of a capture with a timeline.
pub(super) fn write_links(page: &mut Page<'_>) {
    let totals = &page.capture.job_sums;
    if totals.is_empty() || !beside_a_timeline(page) {
        return;
    }
    page.heading(Text::new("Links between ranks", "rank 之间的链路"));
    page.paragraph(page.get(Text::new(
        "These are sums that the profiler made of the transfers of each pair of ranks. They do not say when a transfer ran, and \
         transfers run side by side: neither a sum nor its bandwidth says anything of wall time (CP-07).",
        "这些是分析器对每对 rank 之间传输的总和，不说明传输何时进行；传输可能并行，因此总和与带宽都不能说明墙钟时间（CP-07）。",
    )));
    links(page, &totals.links);
    observations(page);
}

fn ranks(page: &mut Page<'_>, ranks: &[RankTotal]) {
    let used: Vec<_> =
        COLUMNS.iter().filter(|(part, _)| ranks.iter().any(|rank| rank.parts.contains_key(part))).collect();
    let staged = ranks.iter().any(|rank| rank.stage.is_some());
    let fixed = [
        Some((Inlines::from("rank"), Align::Right)),
        staged.then(|| (page.get(Text::new("stage", "流水级")), Align::Right)),
        Some((page.get(Text::new("steps", "步数")), Align::Right)),
    ];
    let parts = used.iter().map(|(_, text)| (page.get(*text), Align::Right));
    let mut table = Table::new(fixed.into_iter().flatten().chain(parts));
    for rank in ranks.iter().take(LISTED) {
        let steps = rank.parts.values().map(|(_, steps)| *steps).max().unwrap_or(0);
        let stage = staged.then(|| rank.stage.map_or_else(String::new, |stage| stage.to_string()));
        let cells = used.iter().map(|(part, _)| rank.mean(*part).map_or_else(String::new, units::time));
        table.row([Some(rank.rank.to_string()), stage, Some(units::count(steps))].into_iter().flatten().chain(cells));
    }
    if !table.is_empty() {
        page.table(page.get(Text::new("Mean step of each rank", "各 rank 的平均步")), table);
    }
    more(page, ranks.len());
}

fn links(page: &mut Page<'_>, links: &[LinkTotal]) {
    let mut table = Table::new([
        (page.get(Text::new("from rank", "源 rank")), Align::Right),
        (page.get(Text::new("to rank", "目的 rank")), Align::Right),
        (page.get(Text::new("over", "传输方式")), Align::Left),
        (page.get(Text::new("moved", "数据量")), Align::Right),
        (page.get(Text::new("time of the transfers", "传输时间")), Align::Right),
        (page.get(Text::new("bandwidth", "带宽")), Align::Right),
    ]);
    for link in links.iter().take(LISTED) {
        table.row(cells![
            link.from.to_string(),
            link.to.to_string(),
            Inlines::name(&link.transport),
            units::bytes(link.bytes),
            units::time(link.time),
            link.rate().map_or_else(String::new, bandwidth),
        ]);
    }
    if !table.is_empty() {
        page.table(page.get(Text::new("What moved between ranks", "rank 之间的传输")), table);
    }
    more(page, links.len());
}

fn more(page: &mut Page<'_>, rows: usize) {
    if let Some(n) = rows.checked_sub(LISTED).filter(|n| *n > 0) {
        let text = Text::new("{n} further rows are in the JSON report.", "另有 {n} 行见 JSON 报告。");
        page.paragraph(page.fill(text, [("n", Value::Count(n as u64))]));
    }
}

fn bandwidth(rate: f64) -> String {
    units::probed(rate, model::ProbeUnit::BytesPerSecond)
}

/// Writes which rank of a stage takes longest besides communicating, and which link of a transport is slowest.
fn observations(page: &mut Page<'_>) {
    let totals = &page.capture.job_sums;
    let mut items = Vec::new();
    for slowest in &totals.slowest_ranks {
        let excess = (slowest.own - slowest.least) as f64 / slowest.least.max(1) as f64;
        let text = if excess > EVEN && are_joined(page) {
            Text::new(
                "rank {rank} is the slowest of {n}: it computes or idles {own} per step, {excess} longer than the fastest one ({least}).",
                "{n} 个 rank 中 rank {rank} 最慢：每步计算与空闲共 {own}，比最快者（{least}）长 {excess}。",
            )
        } else if excess > EVEN {
            Text::new(
                "rank {rank} is the slowest of {n}: it computes or idles {own} per step, {excess} longer than the fastest one ({least}). The others may be waiting for it; sums cannot prove it.",
                "{n} 个 rank 中 rank {rank} 最慢：每步计算与空闲共 {own}，比最快者（{least}）长 {excess}。其他 rank 可能在等它，但总和无法证明。",
            )
        } else {
            Text::new(
                "the {n} ranks are even: rank {rank} computes or idles longest, {own} per step, {excess} longer than the fastest one ({least}); up to 5 % counts as even.",
                "{n} 个 rank 基本均衡：rank {rank} 计算与空闲最长，每步 {own}，比最快者（{least}）长 {excess}；5% 以内视为均衡。",
            )
        };
        let stage = slowest.stage.map_or_else(
            || {
                page.get(if are_joined(page) {
                    Text::new("These ranks: ", "这些 rank：")
                } else {
                    Text::new("All ranks: ", "全部 rank：")
                })
            },
            |stage| page.fill(Text::new("Stage {n}: ", "流水级 {n}："), [("n", Value::Count(stage.into()))]),
        );
        let filled = page.fill(
            text,
            [
                ("rank", Value::Count(u64::from(slowest.rank))),
                ("n", Value::Count(slowest.ranks)),
                ("own", Value::Ns(slowest.own)),
                ("excess", Value::Share(excess)),
                ("least", Value::Ns(slowest.least)),
            ],
        );
        items.push(stage + filled);
    }
    for slowest in &totals.slowest_links {
        let Some(rate) = slowest.link.rate() else { continue };
        let text = if slowest.median > SlowestLink::EVEN * rate {
            Text::new(
                "The link {from} → {to} is the slowest of {n} over {transport} that moved alike much: {rate}, where the middle one reaches {median}.",
                "{transport} 上数据量相近的 {n} 条链路中，{from} → {to} 最慢：{rate}，中位链路为 {median}。",
            )
        } else {
            Text::new(
                "{n} links over {transport} that moved alike much are even: the slowest is {from} → {to} with {rate}, the middle one reaches {median}; up to 1.5 times counts as even.",
                "{transport} 上数据量相近的 {n} 条链路基本均衡：最慢的 {from} → {to} 为 {rate}，中位链路为 {median}；1.5 倍以内视为均衡。",
            )
        };
        let filled = page.fill(
            text,
            [
                ("from", Value::Count(u64::from(slowest.link.from))),
                ("to", Value::Count(u64::from(slowest.link.to))),
                ("n", Value::Count(slowest.links)),
                ("transport", Value::Raw(slowest.link.transport.clone())),
                ("rate", Value::BytesPerSecond(rate)),
                ("median", Value::BytesPerSecond(slowest.median)),
            ],
        );
        items.push(filled);
    }
    if !totals.links.is_empty() && totals.slowest_links.is_empty() {
        items.push(page.get(Text::new(
            "No two links of one transport moved alike much, so that none can be called slow.",
            "没有两条同类链路的数据量相近，因此不能判断哪条链路慢。",
        )));
    }
    page.list(items);
}
