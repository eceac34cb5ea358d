//! Where the time went: every nanosecond of the steps that count has one bucket and one layer, so both tables add up.

use super::{Page, job, words};
use crate::{
    analysis::Layer,
    i18n::{Text, Value},
    report::{
        model::{ClassPart, RankPart},
        table::{Align, Table},
        units,
    },
};

/// Shares are cut to tenths of a percent.
const WHOLE: i64 = 1000;

/// Writes the layers and buckets of the main class, and one row for every other class and rank.
pub(super) fn write(page: &mut Page<'_>) {
    page.heading(Text::new("Where the time went", "时间去向"));
    let leading = page.capture.leading_rank();
    let main = leading.and_then(|rank| rank.main_class().filter(|c| c.used > 0 && c.total > 0).map(|c| (rank, c)));
    let Some((rank, class)) = main else {
        page.paragraph(page.get(Text::new(
            "No step counts, so no time is attributed. The section above says why.",
            "没有可采用的步，因此没有时间归因，原因见上文。",
        )));
        return;
    };
    let about = page.fill(
        Text::new(
            "The tables are about class {class} of rank {rank}: mean over the steps that count ({n}), {ns} in all.",
            "以下各表针对 rank {rank} 的类别 {class}：取 {n} 个被采用的步的平均值，合计 {ns}。",
        ),
        [
            ("class", Value::Raw(class.key.clone())),
            ("rank", Value::Count(u64::from(rank.rank))),
            ("n", Value::Count(class.used as u64)),
            ("ns", Value::Ns(class.total)),
        ],
    );
    page.paragraph(&about);
    layers(page, class);
    job::reassigned(page, class);
    buckets(page, class);
    shadow(page, class);
    if rank.collectives.1 > 0 {
        page.paragraph(&page.fill(
            Text::new(
                "{n} of {all} collectives: transfer and wait could only be told apart by comparing with the fast ones of the same kind (modelled, low confidence).",
                "{all} 次集合通信中有 {n} 次：只能通过与同类较快者比较来区分传输与等待（建模值，置信度低）。",
            ),
            [("n", Value::Count(rank.collectives.1)), ("all", Value::Count(rank.collectives.0))],
        ));
    }
    others(page);
}

/// Means in tenths of a µs and shares in tenths of a percent, both adding up to what their sum row shows.
fn shown(parts: &[i64], class: &ClassPart) -> Vec<[String; 2]> {
    let means = units::apportion(parts, units::mean_tenths(class.total, class.used));
    let shares = units::apportion(parts, WHOLE);
    means.iter().zip(&shares).map(|(m, s)| [units::tenths(*m), format!("{} %", units::tenths(*s))]).collect()
}

fn sum_row(page: &Page<'_>, class: &ClassPart) -> [String; 3] {
    let total = format!("**{}** = {}", page.get(Text::new("sum", "合计")), units::exact_ns(class.total));
    let steps = format!("{}{}", page.get(Text::new(" over ", " / ")), page.steps(class.used as u64));
    let mean = units::tenths(units::mean_tenths(class.total, class.used));
    [total + &steps, format!("**{mean}**"), "**100.0 %**".into()]
}

fn layers(page: &mut Page<'_>, class: &ClassPart) {
    let mut table = Table::new([
        (page.get(Text::new("layer", "层")), Align::Left),
        (page.get(Text::new("what it holds", "含义")), Align::Left),
        (page.get(Text::new("µs per step", "µs/步")), Align::Right),
        (page.get(Text::new("share", "占比")), Align::Right),
    ]);
    for (layer, [mean, share]) in Layer::ALL.into_iter().zip(shown(&class.layers(), class)) {
        let words = [words::layer(layer), words::layer_meaning(layer)].map(|t| page.get(t).to_owned());
        table.row(words.into_iter().chain([mean, share]));
    }
    let [sum, mean, share] = sum_row(page, class);
    table.row([sum, String::new(), mean, share]);
    page.table(page.get(Text::new("By layer", "按层")), &table);
}

fn buckets(page: &mut Page<'_>, class: &ClassPart) {
    let mut table = Table::new([
        (page.get(Text::new("bucket", "分类")), Align::Left),
        (page.get(Text::new("meaning", "含义")), Align::Left),
        (page.get(Text::new("layer", "层")), Align::Left),
        (page.get(Text::new("µs per step", "µs/步")), Align::Right),
        (page.get(Text::new("share", "占比")), Align::Right),
    ]);
    let mut rows: Vec<_> = class.buckets.iter().collect();
    rows.sort_by(|a, b| a.layer.cmp(&b.layer).then(b.ns.cmp(&a.ns)).then_with(|| a.name.cmp(&b.name)));
    let parts: Vec<i64> = rows.iter().map(|row| row.ns).collect();
    for (row, [mean, share]) in rows.into_iter().zip(shown(&parts, class)) {
        let meaning = page.get(words::bucket(&row.name)).to_owned();
        table.row([page.name(&row.name), meaning, page.get(words::layer(row.layer)).to_owned(), mean, share]);
    }
    let [sum, mean, share] = sum_row(page, class);
    table.row([sum, String::new(), String::new(), mean, share]);
    page.table(page.get(Text::new("By bucket", "按分类")), &table);
}

fn shadow(page: &mut Page<'_>, class: &ClassPart) {
    let rows: Vec<_> = class.shadow.iter().filter(|(_, ns)| *ns > 0).collect();
    if rows.is_empty() {
        page.paragraph(page.get(Text::new(
            "Hidden time: none. No two kinds of device work ran at the same time.",
            "被掩盖的时间：无。没有两类设备工作同时执行。",
        )));
        return;
    }
    let mut table = Table::new([
        (page.get(Text::new("what was hidden", "被掩盖的内容")), Align::Left),
        (page.get(Text::new("µs per step", "µs/步")), Align::Right),
    ]);
    for (shadow, ns) in rows {
        table.row([page.get(words::shadow(*shadow)).to_owned(), units::tenths(units::mean_tenths(*ns, class.used))]);
    }
    page.table(
        page.get(Text::new(
            "Hidden time (inside the buckets above, not on top of them)",
            "被掩盖的时间（已包含在上表中，不另计）",
        )),
        &table,
    );
}

/// Every other class that counts, one row each; the layers add up to the mean.
fn others(page: &mut Page<'_>) {
    let leading = page.capture.leading_rank().map(|r| (r.rank, r.main));
    let rest: Vec<(&RankPart, &ClassPart)> = page
        .capture
        .ranks
        .iter()
        .flat_map(|rank| rank.classes.iter().enumerate().map(move |(i, class)| (rank, i, class)))
        .filter(|(rank, i, class)| class.used > 0 && leading != Some((rank.rank, Some(*i))))
        .map(|(rank, _, class)| (rank, class))
        .collect();
    if rest.is_empty() {
        return;
    }
    let mut table = Table::new([
        ("rank", Align::Right),
        (page.get(Text::new("class", "类别")), Align::Left),
        (page.get(Text::new("steps used", "采用步数")), Align::Right),
        (page.get(words::layer(Layer::Operator)), Align::Right),
        (page.get(words::layer(Layer::Runtime)), Align::Right),
        (page.get(words::layer(Layer::Communication)), Align::Right),
        (page.get(words::layer(Layer::Measurement)), Align::Right),
        (page.get(Text::new("sum", "合计")), Align::Right),
    ]);
    for (rank, class) in rest {
        let mean = units::mean_tenths(class.total, class.used);
        let layers = units::apportion(&class.layers(), mean).into_iter().chain([mean]).map(units::tenths);
        let head = [rank.rank.to_string(), page.name(&class.key), units::count(class.used as u64)];
        table.row(head.into_iter().chain(layers));
    }
    page.table(page.get(Text::new("Other classes and ranks, µs per step", "其他类别与 rank，µs/步")), &table);
}
