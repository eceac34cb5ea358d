//! Kernels of which the capture holds sums or measurements and no times.

use model::{Conditions, Metric};

use super::Page;
use crate::{
    cells,
    document::{Align, Inlines, Table},
    kernel_name,
    summaries::Summary,
    units,
};
use diagnosis::{
    analysis::Joined,
    diagnose::kernel_sums::OperatorSum,
    i18n::{Text, Value},
};

/// Kernels listed.
const TOP: usize = 20;

/// Writes a table for each kind that the capture holds.
pub(super) fn write(page: &mut Page<'_>) {
    let summaries = page.capture.summaries.clone();
    if summaries.is_empty() {
        return;
    }
    page.heading(Text::new("Kernels without a timeline", "没有时间线的内核"));
    page.paragraph(page.get(Text::new(
        "These numbers say how long kernels took, not when they ran. Kernels overlap and the device waits between them, so neither \
         a sum of them nor a share of such a sum says anything of wall time (CP-07).",
        "这些数字说明内核耗时，但不说明何时执行。内核可能重叠，设备在其间也可能等待，因此它们之和或占比都不能说明墙钟时间（CP-07）。",
    )));
    operators(page, &summaries.operators, summaries.total());
    let title = Text::new("Sums over the run", "运行期间的总和");
    sums(page, (title, Text::new("kernel", "内核")), &summaries.run, summaries.total());
    for (of, rows) in &summaries.further {
        let total = rows.iter().try_fold(0i64, |all, row| Some(all.saturating_add(row.total?)));
        sums(page, words(*of), rows, total);
    }
    measurements(page, &summaries.isolated);
    rate(page, summaries.joined);
}

/// How much of a capture with a timeline was measured.
fn rate(page: &mut Page<'_>, joined: Joined) {
    if joined.measurements == 0 || joined.of == 0 {
        return;
    }
    let text = Text::new(
        "{matched} of {measurements} measurements are of kernels of this capture, told by name, launch shape and order; they speak of {executions} executions, {share} of the kernel time.",
        "{measurements} 个测量值中有 {matched} 个对应本采集的内核（按名称、启动形状与顺序对应），涉及 {executions} 次执行，占内核时间的 {share}。",
    );
    let args = [
        ("matched", Value::Count(joined.matched)),
        ("measurements", Value::Count(joined.measurements)),
        ("executions", Value::Count(joined.executions)),
        ("share", Value::Share(joined.time as f64 / joined.of as f64)),
    ];
    page.paragraph(page.fill(text, args));
}

fn operators(page: &mut Page<'_>, rows: &[OperatorSum], total: Option<i64>) {
    let mut table = Table::new([
        (page.get(Text::new("operator", "算子")), Align::Left),
        (page.get(Text::new("count", "次数")), Align::Right),
        (page.get(Text::new("sum", "总和")), Align::Right),
        (page.get(Text::new("share of all sums", "占总和")), Align::Right),
        (page.get(Text::new("its longest kernel", "其最长的内核")), Align::Left),
    ]);
    for row in rows {
        let share = total.map_or_else(String::new, |all| units::share_of(row.total, all));
        let longest = Inlines::name(&kernel_name::short(&row.kernel));
        table.row(cells![
            Inlines::name(row.op.name()),
            row.count.to_string(),
            units::exact_ns(row.total),
            share,
            longest
        ]);
    }
    if !table.is_empty() {
        page.table(page.get(Text::new("Sums by operator", "按算子的总和")), table);
    }
}

/// Title and name of a row of sums of what is no kernel.
fn words(of: Conditions) -> (Text, Text) {
    match of {
        Conditions::Operators => (
            Text::new("Sums of operators, by the device's work that they launched", "按算子下发的设备工作的总和"),
            Text::new("operator", "算子"),
        ),
        Conditions::Host => (Text::new("Sums of the host's calls", "主机调用的总和"), Text::new("call", "调用")),
        _ => (Text::new("Sums by class of record", "按记录类别的总和"), Text::new("class", "类别")),
    }
}

fn sums(page: &mut Page<'_>, (title, of): (Text, Text), rows: &[Summary], total: Option<i64>) {
    let mut table = Table::new([
        (page.get(of), Align::Left),
        (page.get(Text::new("count", "次数")), Align::Right),
        (page.get(Text::new("sum", "总和")), Align::Right),
        (page.get(Text::new("share of all sums", "占总和")), Align::Right),
        (page.get(Text::new("mean", "平均")), Align::Right),
        (page.get(Text::new("longest", "最长")), Align::Right),
    ]);
    let names: Vec<&str> = rows.iter().map(|row| row.kernel.as_str()).collect();
    for (row, name) in rows.iter().zip(kernel_name::short_all(&names)).take(TOP) {
        let share = row.total.zip(total).map_or_else(String::new, |(part, all)| units::share_of(part, all));
        let [sum, mean, longest] =
            [row.total, row.mean(), row.longest].map(|ns| ns.map_or_else(String::new, units::exact_ns));
        table.row(cells![Inlines::name(&name), row.count.to_string(), sum, share, mean, longest]);
    }
    if !table.is_empty() {
        page.table(page.get(title), table);
    }
}

fn measurements(page: &mut Page<'_>, rows: &[Summary]) {
    let metrics = [
        (Metric::Compute, Text::new("compute", "计算")),
        (Metric::Memory, Text::new("memory", "访存")),
        (Metric::Dram, Text::new("device memory", "显存")),
        (Metric::DramBytesPerSecond, Text::new("moved per second", "显存传输速率")),
        (Metric::DramReadBytesPerSecond, Text::new("read per second", "显存读取速率")),
        (Metric::L2Hit, Text::new("L2 hits", "L2 命中")),
        (Metric::Occupancy, Text::new("occupancy", "占用率")),
        (Metric::Scalar, Text::new("scalar unit", "标量单元")),
        (Metric::VectorBusy, Text::new("vector units busy", "向量单元忙")),
        (Metric::LoadStoreBusy, Text::new("load and store units busy", "访存单元忙")),
    ];
    // No profiler and no chip tells of all of them.
    let told = |metric: Metric| rows.iter().any(|row| row.metrics.iter().any(|(known, _)| *known == metric));
    let metrics: Vec<(Metric, Text)> = metrics.into_iter().filter(|(metric, _)| told(*metric)).collect();
    let mut table = Table::new(
        [
            (page.get(Text::new("kernel", "内核")), Align::Left),
            (page.get(Text::new("duration alone", "单独执行时长")), Align::Right),
        ]
        .into_iter()
        .chain(metrics.iter().map(|(_, text)| (page.get(*text), Align::Right))),
    );
    let names: Vec<&str> = rows.iter().map(|row| row.kernel.as_str()).collect();
    let amount = |metric: Metric, value: f64| match metric.unit() {
        "B/s" => units::probed(value, model::ProbeUnit::BytesPerSecond),
        unit => format!("{value:.1} {unit}"),
    };
    for (row, name) in rows.iter().zip(kernel_name::short_all(&names)).take(TOP) {
        let value = |metric| row.metrics.iter().find(|(known, _)| *known == metric);
        let cells =
            metrics.iter().map(|(metric, _)| value(*metric).map_or(String::new(), |(_, v)| amount(*metric, *v)));
        let time = row.total.map_or_else(String::new, units::exact_ns);
        table.row(cells![Inlines::name(&name), time].into_iter().chain(cells.map(Inlines::from)));
    }
    if !table.is_empty() {
        let title = Text::new("Measured one by one, each kernel alone", "逐个测量，每个内核单独执行");
        page.table(page.get(title), table);
    }
    rates(page, rows);
}

/// What kernels do in a second, where their source counts it, and which of its peaks is the lower limit of that work.
fn rates(page: &mut Page<'_>, rows: &[Summary]) {
    let names: Vec<&str> = rows.iter().map(|row| row.kernel.as_str()).collect();
    let mut items = Vec::new();
    for (row, name) in rows.iter().zip(kernel_name::short_all(&names)).take(TOP) {
        let value = |metric| row.metrics.iter().find(|(known, _)| *known == metric).map(|(_, value)| *value);
        let rates = value(Metric::OperationsPerSecond).zip(value(Metric::DramBytesPerSecond));
        let Some((operations, bytes)) = rates.filter(|(_, bytes)| *bytes > 0.0) else { continue };
        let bound = value(Metric::Balance).zip(value(Metric::Dram));
        let (balance, share) = bound.unwrap_or_default();
        let args = [
            ("name", Value::Raw(name)),
            ("operations", Value::Number(operations / 1e12)),
            ("bytes", Value::BytesPerSecond(bytes)),
            ("each", Value::Number(operations / bytes)),
            ("balance", Value::Number(balance)),
            ("share", Value::Share(share / 100.0)),
        ];
        let text = match bound {
            None => RATES,
            Some(_) if operations / bytes < balance => BY_MEMORY,
            Some(_) => BY_ARITHMETIC,
        };
        items.push(page.fill(text, args));
    }
    if !items.is_empty() {
        page.list(items);
    }
}

/// Rates without a peak.
const RATES: Text = Text::new(
    "{name}: {operations} Top/s as the source counts operations, {bytes} of device memory: {each} operations per byte",
    "{name}：按来源计数为 {operations} Top/s，显存 {bytes}，即每字节 {each} 次运算",
);
/// Rates of what has less to compute than to move.
const BY_MEMORY: Text = Text::new(
    "{name}: {operations} Top/s as the source counts operations, {bytes} of device memory: {each} operations per byte, fewer than the {balance} at which arithmetic would be the limit. The peak of the memory is its lower limit, and it reaches {share} of that",
    "{name}：按来源计数为 {operations} Top/s，显存 {bytes}，即每字节 {each} 次运算，低于以算力为上限所需的 {balance} 次：显存峰值是其较低的上限，达到其 {share}",
);
/// Rates of what has more to compute than to move.
const BY_ARITHMETIC: Text = Text::new(
    "{name}: {operations} Top/s as the source counts operations, {bytes} of device memory ({share} of the peak): {each} operations per byte, more than the {balance} at which memory would be the limit. The peak of the arithmetic is its lower limit",
    "{name}：按来源计数为 {operations} Top/s，显存 {bytes}（峰值的 {share}），即每字节 {each} 次运算，高于以显存为上限的 {balance} 次：算力峰值是其较低的上限",
);
