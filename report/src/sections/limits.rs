//! How far the computing is from what the device can do: the floor of the step, and the rates of the operators.

use super::Page;
use crate::{
    cells,
    document::{Align, Inlines, Table},
    inlines, kernel_name, text, units,
};
use diagnosis::{
    diagnose::limits::{Basis, Bound, Floor, PeakSource, Rate, RateUnit},
    i18n::{Text, Value},
};
use model::ProbeUnit;

/// Operators in the table; the JSON report has all.
const ROWS: usize = 8;

/// Writes what is known.
pub(super) fn write(page: &mut Page<'_>) {
    let limits = &page.capture.limits;
    if limits.floor.is_none() && limits.rates.is_empty() {
        return;
    }
    page.heading(Text::new("How far from the limit", "距离上限多远"));
    if let Some(floor) = &limits.floor {
        let line = floor_line(page, floor);
        page.paragraph(line);
    }
    if limits.rates.is_empty() {
        return;
    }
    let shown: Vec<&Rate> = limits.rates.iter().take(ROWS).collect();
    let kernels: Vec<&str> = shown.iter().map(|rate| rate.kernel.as_str()).collect();
    let kernels = kernel_name::short_all(&kernels);
    let mut table = Table::new([
        (page.get(Text::new("operator", "算子")), Align::Left),
        (page.get(Text::new("kernel", "内核")), Align::Left),
        (page.get(Text::new("per step", "每步")), Align::Right),
        (page.get(Text::new("achieved", "达到")), Align::Right),
        (page.get(Text::new("of peak", "占峰值")), Align::Right),
        (page.get(Text::new("bound by", "受限于")), Align::Left),
    ]);
    for (rate, kernel) in shown.iter().zip(&kernels) {
        let share = rate.share().map_or_else(|| "–".to_owned(), units::share);
        table.row(cells![
            named(rate),
            Inlines::name(kernel),
            units::time(rate.per_step),
            per_second(rate.achieved, rate.unit),
            share,
            rate.bound_by.map_or_else(|| "–".into(), |bound| page.get(bound_word(bound))),
        ]);
    }
    let published = shown.iter().any(|rate| rate.peak_source == Some(PeakSource::Published));
    page.table(
        page.get(if published {
            Text::new("Rates beside published peaks", "与公布峰值对比的速率")
        } else {
            Text::new("Rates beside measured peaks", "与实测峰值对比的速率")
        }),
        table,
    );
    let reasons: Vec<Inlines> =
        shown.iter().filter(|rate| !rate.why.is_empty()).map(|rate| reason(page, rate)).collect();
    page.list(reasons);
    if published {
        page.paragraph(page.get(Text::new(
            "Published peaks are upper bounds of what is possible: good kernels of large products reach about three quarters of \
             the arithmetic, and nine tenths of the bandwidth.",
            "公布的峰值是可能达到的上界：优秀的大矩阵乘内核约达算力的四分之三，访存约达带宽的九成。",
        )));
    }
    let attends = |rate: &Rate| rate.operator.starts_with("attn") && rate.unit == RateUnit::Flops;
    if shown.iter().any(|rate| attends(rate)) {
        page.paragraph(page.get(Text::new(
            "Attention is counted without a mask, which captures do not record: under a causal one the rate of a prompt is half \
             of what stands here.",
            "注意力按无掩码计算，因为采集不记录掩码：若为因果掩码，prompt 的速率只有表中的一半。",
        )));
    }
}

fn reason(page: &Page<'_>, rate: &Rate) -> Inlines {
    let why = page.join_long(rate.why.iter().map(|why| page.message(why)));
    inlines![named(rate), page.colon(), why]
}

/// The operator with its sizes.
fn named(rate: &Rate) -> Inlines {
    let slot = rate.slot.map(|slot| format!(" {slot}")).unwrap_or_default();
    Inlines::name(&format!("{}{slot} {}", rate.operator, text::cut(&rate.shape, 40)))
}

fn per_second(rate: f64, unit: RateUnit) -> String {
    units::probed(
        rate,
        match unit {
            RateUnit::Flops => ProbeUnit::FlopsPerSecond,
            RateUnit::Bytes => ProbeUnit::BytesPerSecond,
        },
    )
}

fn bound_word(bound: Bound) -> Text {
    match bound {
        Bound::Memory => Text::new("memory", "访存"),
        Bound::Compute => Text::new("compute", "计算"),
        Bound::Latency => Text::new("latency", "延迟"),
        Bound::Link => Text::new("link", "互联"),
    }
}

/// How many times its floor a step takes, or what would say it.
fn floor_line(page: &Page<'_>, floor: &Floor) -> Inlines {
    let needs = match &floor.basis {
        Basis::Nothing(needs) => Some(*needs),
        _ => None,
    };
    let (Some(ns), Some(ratio), Some(peak)) = (floor.ns, floor.ratio(), floor.peak) else {
        let needs = needs.unwrap_or(Text::new("nothing says what it must read", "不知道其必须读取的数据"));
        return page.fill(
            Text::new("The floor of a step of {class} is not known: {needs}.", "{class} 一步的下限未知：{needs}。"),
            [("class", Value::Raw(floor.class.clone())), ("needs", Value::Text(needs))],
        );
    };
    let what = match floor.bound_by {
        Some(Bound::Compute) => Text::new("the arithmetic of its matrix products", "其矩阵乘的运算"),
        _ if floor.cache.is_some() => {
            Text::new("reading this rank's weights and cache once", "读取一遍本 rank 的权重与缓存")
        }
        _ if floor.moves_operands() => {
            Text::new("moving the operands and results of its matrix products once", "搬运一遍其矩阵乘的操作数与结果")
        }
        _ => Text::new("reading this rank's weights once", "读取一遍本 rank 的权重"),
    };
    let source = match floor.peak_source {
        Some(PeakSource::Measured) => Text::new("measured", "实测"),
        _ => Text::new("published", "公布"),
    };
    let basis = match &floor.basis {
        Basis::Model(name) => page
            .fill(Text::new("by the shape of {model}", "依据 {model} 的形状"), [("model", Value::Raw(name.clone()))]),
        Basis::Shapes(share) => page.fill(
            Text::new(
                "by recorded shapes, which cover {share} of the time of matrix products",
                "依据记录的形状，覆盖矩阵乘耗时的 {share}",
            ),
            [("share", Value::Share(*share))],
        ),
        Basis::Nothing(_) => Inlines::new(),
    };
    page.compose(
        Text::new(
            "A step of {class} takes {ratio} its floor: {step}, where {what} takes at least {ns} at the {source} {peak} ({basis}).",
            "{class} 的一步耗时为其下限的 {ratio}：{step}，而{what}按{source}的 {peak} 至少需要 {ns}（{basis}）。",
        ),
        [
            ("class", Inlines::name(&floor.class)),
            ("ratio", Inlines::strong(units::ratio(ratio))),
            ("step", units::time(floor.step).into()),
            ("what", page.get(what)),
            ("ns", units::time(ns).into()),
            ("source", page.get(source)),
            ("peak", per_second(peak, floor.unit).into()),
            ("basis", basis),
        ],
    )
}
