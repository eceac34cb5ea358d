//! The operators and kernels that take the most time of the main class.

use super::Page;
use crate::{
    cells,
    document::{Align, Inlines, Table},
    kernel_name,
    model::{ClassPart, Copies},
    units,
    work::Work,
};
use diagnosis::i18n::Text;

/// Writes both tables.
pub(super) fn write(page: &mut Page<'_>) {
    page.heading(Text::new("What the device worked on", "设备在做什么"));
    let main = page.capture.leading_rank().and_then(|rank| Some((rank, rank.main_class()?)));
    let Some((rank, class)) = main.filter(|(rank, class)| class.used > 0 && !rank.kernels.is_empty()) else {
        page.paragraph(
            page.get(Text::new("No step counts, so no work is listed.", "没有可采用的步，因此不列出设备工作。")),
        );
        return;
    };
    page.paragraph(page.get(Text::new(
        "Exclusive time is the time that belongs to an operation and to nothing else: where several run at once they share it. \
         The idle column is the time the device waited before these operations; the bucket table says why.",
        "独占时间是只属于该操作的时间：多个操作同时执行时由它们均分。空闲列是设备在这些操作之前等待的时间，原因见上面的分类表。",
    )));
    works(page, Text::new("Operators by exclusive time", "按独占时间排序的算子"), &rank.operators, class, false);
    works(page, Text::new("Kernels by exclusive time", "按独占时间排序的内核"), &rank.kernels, class, true);
    copies(page, &rank.copies, class);
}

fn copies(page: &mut Page<'_>, copies: &[Copies], class: &ClassPart) {
    let mut table = Table::new([
        (page.get(Text::new("copies", "拷贝")), Align::Left),
        (page.per(Text::new("per step", "每步次数"), Text::new("count", "次数")), Align::Right),
        (page.per(Text::new("bytes per step", "每步字节"), Text::new("bytes", "字节")), Align::Right),
        (page.get(Text::new("bytes over their time", "字节/耗时")), Align::Right),
    ]);
    let steps = class.used.max(1) as f64;
    for row in copies.iter().filter(|row| row.bytes > 0 && row.time > 0) {
        // Bytes per nanosecond are GB per second.
        let rate = row.bytes as f64 / row.time as f64;
        let rate = if rate < 1.0 { format!("{:.1} MB/s", 1000.0 * rate) } else { format!("{rate:.1} GB/s") };
        let count = units::number((row.count as f64 / steps * 10.0).round() / 10.0);
        table.row(cells![Inlines::name(row.name), count, units::bytes((row.bytes as f64 / steps) as i64), rate]);
    }
    if !table.is_empty() {
        page.table(page.get(Text::new("Bytes that copies moved", "拷贝搬运的字节数")), table);
        page.paragraph(page.get(Text::new(
            "The direction is the one that the call asked for, where it says so; the profiler may name the copy otherwise.",
            "方向以调用所请求的为准（若有记录）；剖析器给拷贝起的名称可能不同。",
        )));
    }
}

fn works(page: &mut Page<'_>, title: Text, works: &[Work], class: &ClassPart, kernels: bool) {
    let numbers = [
        (page.per(Text::new("per step", "每步次数"), Text::new("count", "次数")), Align::Right),
        (
            page.per(Text::new("exclusive µs per step", "独占 µs/步"), Text::new("exclusive µs", "独占 µs")),
            Align::Right,
        ),
        (page.per(Text::new("share of step", "占步时间"), Text::new("share", "占比")), Align::Right),
        (
            page.per(
                Text::new("idle before, µs per step", "之前空闲 µs/步"),
                Text::new("idle before, µs", "之前空闲 µs"),
            ),
            Align::Right,
        ),
    ];
    let [count, busy, share, idle] = numbers;
    let operator = (page.get(Text::new("operator", "算子")), Align::Left);
    let mut table = if kernels {
        Table::new([(page.get(Text::new("kernel", "内核")), Align::Left), operator, count, busy, share, idle])
    } else {
        Table::new([operator, count, busy, share, idle])
    };
    let names: Vec<&str> = works.iter().map(|work| work.name.as_str()).collect();
    for (work, short) in works.iter().zip(kernel_name::short_all(&names)) {
        let rest = work.name.is_empty();
        let name = match rest {
            true => page.get(Text::new("all others", "其余")),
            false => Inlines::name(&short),
        };
        let operator = kernels.then(|| if rest { Inlines::new() } else { Inlines::name(work.op) });
        let steps = class.used.max(1) as u64;
        let numbers = [
            units::number((work.count as f64 / steps as f64 * 10.0).round() / 10.0),
            units::tenths(units::mean_tenths(work.busy, class.used)),
            units::share_of(work.busy, class.total),
            units::tenths(units::mean_tenths(work.idle, class.used)),
        ];
        table.row([name].into_iter().chain(operator).chain(numbers.map(Inlines::from)));
    }
    page.table(page.get(title), table);
}
