//! What the report rests on: names that were understood, and what the import read, kept and lost.

use super::{Page, words};
use crate::{
    cells,
    document::{Align, Inlines, Table},
    kernel_name, ledger_note, text, units,
};
use diagnosis::i18n::{Text, Value};

/// Writes both sections.
pub(super) fn write(page: &mut Page<'_>) {
    names(page);
    page.heading(Text::new("What was read", "导入情况"));
    ledger(page);
    stats(page);
}

fn names(page: &mut Page<'_>) {
    page.heading(Text::new("Operator names", "算子名称"));
    let mapping = &page.capture.mapping;
    let Some(coverage) = mapping.coverage else {
        page.paragraph(
            page.get(Text::new("No device time, so no names to map.", "没有设备时间，因此没有可映射的名称。")),
        );
        return;
    };
    page.paragraph(page.fill(
        Text::new(
            "{share} of device time carries a name whose operator is known.",
            "{share} 的设备时间所属的名称已识别为某个算子。",
        ),
        [("share", Value::Share(coverage))],
    ));
    if mapping.unmapped.is_empty() {
        return;
    }
    let mut table = Table::new([
        (page.get(Text::new("unknown name", "未识别的名称")), Align::Left),
        (page.get(Text::new("device time", "设备时间")), Align::Right),
    ]);
    let names: Vec<&str> = mapping.unmapped.iter().map(|(name, _)| name.as_str()).collect();
    for ((_, ns), short) in mapping.unmapped.iter().zip(kernel_name::short_all(&names)) {
        table.row(cells![Inlines::name(&short), units::time(*ns)]);
    }
    if mapping.more.0 > 0 {
        let more = page.fill(Text::new("{n} more", "另有 {n} 个"), [("n", Value::Count(mapping.more.0 as u64))]);
        table.row(cells![more, units::time(mapping.more.1)]);
    }
    page.table(
        page.get(Text::new(
            "Names that count as `compute.other`; a platform pack can name them",
            "计入 `compute.other` 的名称；可用平台知识包命名",
        )),
        table,
    );
}

fn ledger(page: &mut Page<'_>) {
    if page.capture.ledger.is_empty() {
        page.paragraph(page.get(Text::new("The capture holds no import ledger.", "采集中没有导入台账。")));
        return;
    }
    let mut table = Table::new([
        (page.get(Text::new("category of the source", "数据源类别")), Align::Left),
        (page.get(Text::new("read", "读取")), Align::Right),
        (page.get(Text::new("kept", "保留")), Align::Right),
        (page.get(Text::new("time kept", "保留的时间")), Align::Right),
        (page.get(Text::new("what became of it", "去向")), Align::Left),
    ]);
    for row in &page.capture.ledger {
        let note = text::cut(ledger_note::in_language(&row.note, page.lang), text::PHRASE);
        let [read, kept] = [row.read, row.kept].map(units::count);
        table.row(cells![Inlines::name(&row.category), read, kept, units::time(row.time_ns), note]);
    }
    page.table(page.get(Text::new("Import ledger", "导入台账")), table);
}

fn stats(page: &mut Page<'_>) {
    let capture = page.capture;
    let mut table = Table::new([
        (page.get(Text::new("severity", "级别")), Align::Left),
        (page.get(Text::new("what", "内容")), Align::Left),
        (page.get(Text::new("count", "次数")), Align::Right),
        (page.get(Text::new("for example", "示例")), Align::Left),
    ]);
    for stat in &capture.stats {
        let example = stat.example.as_deref().map(Inlines::name).unwrap_or_default();
        let severity = page.get(words::stat_severity(stat.severity));
        table.row(cells![severity, Inlines::name(&stat.name), units::count(stat.count), example]);
    }
    if table.is_empty() {
        page.paragraph(page.get(Text::new("The import met nothing unusual.", "导入过程没有异常。")));
    } else {
        page.table(page.get(Text::new("Import statistics, the worst first", "导入统计（严重者在前）")), table);
    }
    let integrity = &capture.integrity;
    page.paragraph(page.fill(
        Text::new(
            "Of {ops} device operations, {unlinked} have no launch call ({early} of them come, in their queue, before the first operation whose launch was recorded), {before} start before their launch call, and {overlap} overlap another one of their queue. Gaps between neighbours of at most 2 ns: {zero} of {gaps}.",
            "{ops} 个设备操作中，{unlinked} 个没有下发调用（其中 {early} 个在其队列中位于首个有下发记录的操作之前），{before} 个早于其下发调用开始，{overlap} 个与同一队列的其他操作重叠。相邻间隔不超过 2 ns 的有 {zero} 个，共 {gaps} 个。",
        ),
        [
            ("ops", Value::Count(integrity.device_ops)),
            ("unlinked", Value::Count(integrity.unlinked)),
            ("early", Value::Count(integrity.before_recording)),
            ("before", Value::Count(integrity.before_launch)),
            ("overlap", Value::Count(integrity.overlapping)),
            ("gaps", Value::Count(integrity.gaps)),
            ("zero", Value::Count(integrity.zero_gaps)),
        ],
    ));
    if integrity.lag > 0 {
        page.paragraph(page.fill(
            Text::new(
                "The device's clock lags behind the host's: only {lag} earlier do the launch calls come before their work. Idle time was explained with the host's times moved by that much; durations are not touched.",
                "设备时钟落后于主机时钟：下发调用提前 {lag} 后才都早于其工作。解释空闲时间时已将主机时间按此平移；时长不受影响。",
            ),
            [("lag", Value::Ns(integrity.lag))],
        ));
    }
}
