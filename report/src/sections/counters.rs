//! Counters of a kernel under the names that the source gives them, also those that no rule reads.

use super::Page;
use crate::{
    cells,
    document::{Align, Inlines, Table},
    text,
};
use diagnosis::i18n::{Text, Value};

/// Counters listed, more than any profiler counts; all of them stand in the capture file.
const TOP: usize = 512;

/// Writes the counters of the longest kernel that has any.
pub(super) fn write(page: &mut Page<'_>) {
    let summaries = &page.capture.summaries;
    let Some(counters) = summaries.counters.clone() else { return };
    let kernels = summaries.with_counters;
    page.heading(Text::new("Counters", "计数器"));
    let text = Text::new(
        "Counters of {kernel}, the longest of {kernels} measured kernels, under the names that the source gives them: means over its executions ({n}), the channels of a block added up. All of them stand in the view `measurements` of a capture file (`--save FILE`), under the metric `counter`.",
        "{kernel} 的计数器，名称与数据源一致；它是 {kernels} 个被测内核中耗时最长的一个。数值为 {n} 次执行的均值，同一模块的各通道已相加。全部计数器见采集文件（`--save FILE`）中的视图 `measurements`，指标名为 `counter`。",
    );
    let kernel = Value::Kernel(counters.kernel.clone());
    let args = [("kernel", kernel), ("kernels", Value::Count(kernels)), ("n", Value::Count(counters.count))];
    page.paragraph(page.fill(text, args));
    let mut table = Table::new([
        (page.get(Text::new("counter", "计数器")), Align::Left),
        (page.get(Text::new("channels", "通道")), Align::Right),
        (page.get(Text::new("mean", "均值")), Align::Right),
    ]);
    for (name, channels, mean) in counters.counters.iter().take(TOP) {
        let channels = if *channels > 1 { channels.to_string() } else { String::new() };
        table.row(cells![Inlines::name(&text::cut(name, text::PHRASE)), channels, number(*mean)]);
    }
    page.table(page.get(Text::new("Counters of this kernel", "该内核的计数器")), table);
    if let beyond @ 1.. = counters.counters.len().saturating_sub(TOP) {
        let text = Text::new("{n} further counters are not listed here.", "另有 {n} 个计数器未在此列出。");
        page.paragraph(page.fill(text, [("n", Value::Count(beyond as u64))]));
    }
}

/// A value as it is read: whole where it is large.
fn number(value: f64) -> String {
    if value.abs() >= 1e3 || value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}
