//! From A to B: what makes the difference, the largest first, and what it comes from. Both tables add up.

use super::{
    super::{Mover, movers::movers, words},
    A, B, DELTA, DiffPage, answer, head, micros, signed,
};
use crate::{
    cells,
    document::{Align, Inlines, Table},
    inlines,
    sections::words as common,
    units,
};
use diagnosis::{
    compare::{Difference, align::Part, waterfall::Cause},
    i18n::{Text, Value},
};

/// Rows listed; all others are one row.
const TOP: usize = 16;

/// Writes the waterfall, its causes, and the layers of the model.
pub(super) fn write(page: &mut DiffPage<'_>, difference: &Difference) {
    let waterfall = &difference.waterfall;
    page.heading(Text::new("From A to B", "从 A 到 B"));
    let movers = movers(difference);
    let mut table = Table::new([
        (page.get(Text::new("what", "项目")), Align::Left),
        (page.get(Text::new("layer", "层")), Align::Left),
        (head(page, difference, A), Align::Right),
        (head(page, difference, B), Align::Right),
        (head(page, difference, DELTA), Align::Right),
        (page.get(Text::new("which comes from", "来源")), Align::Left),
    ]);
    let listed = if movers.len() > TOP + 1 { TOP } else { movers.len() };
    for mover in movers.iter().take(listed) {
        table.row(cells![
            answer::name(page, mover),
            page.get(common::layer(mover.layer)),
            micros(mover.sides[0]),
            micros(mover.sides[1]),
            signed(mover.delta()),
            causes(page, mover),
        ]);
    }
    if let Some(rest) = movers.get(listed..).filter(|rest| !rest.is_empty()) {
        let sum = |n: usize| rest.iter().map(|m| m.sides[n]).sum::<i64>();
        let name = page.fill(Text::new("all {n} others", "其余 {n} 项"), [("n", Value::Count(rest.len() as u64))]);
        table.row(cells![name, "", micros(sum(0)), micros(sum(1)), signed(sum(1) - sum(0)), ""]);
    }
    table.row(cells![
        inlines![Inlines::strong(page.get(Text::new("sum", "合计"))), " = ", units::exact_ns(waterfall.delta())],
        "",
        micros(waterfall.from),
        micros(waterfall.to),
        signed(waterfall.delta()),
        "",
    ]);
    page.table(page.get(Text::new("The difference, the largest first", "差异，从大到小")), table);
    by_cause(page, difference);
    by_part(page, difference);
}

fn causes(page: &DiffPage<'_>, mover: &Mover) -> Inlines {
    match mover.causes.as_slice() {
        [] => "–".into(),
        [(cause, ns)] => page.get(words::caused(*cause, *ns)),
        several => page
            .join(several.iter().map(|(cause, ns)| inlines![page.get(words::caused(*cause, *ns)), " ", signed(*ns)])),
    }
}

fn by_cause(page: &mut DiffPage<'_>, difference: &Difference) {
    let waterfall = &difference.waterfall;
    let mut table = Table::new([
        (page.get(Text::new("cause", "原因")), Align::Left),
        (page.get(Text::new("what it means", "含义")), Align::Left),
        (head(page, difference, DELTA), Align::Right),
    ]);
    for (cause, ns) in waterfall.causes() {
        let unexplained = cause == Cause::Unexplained;
        if ns != 0 || unexplained {
            let words = [words::caused(cause, ns), words::cause_meaning(cause, waterfall.setup.ceilings.published)]
                .map(|text| page.get(text));
            let [name, meaning] = words;
            table.row(cells![name, meaning, signed(ns)]);
        }
    }
    table.row(cells![Inlines::strong(page.get(Text::new("sum", "合计"))), "", signed(waterfall.delta())]);
    page.table(page.get(Text::new("What it comes from", "差异来源")), table);
}

/// Parts of the step, and of the layers of the model the one that differs most.
fn by_part(page: &mut DiffPage<'_>, difference: &Difference) {
    let waterfall = &difference.waterfall;
    let mut table = Table::new([
        (page.get(Text::new("part of the step", "步的部分")), Align::Left),
        (head(page, difference, A), Align::Right),
        (head(page, difference, B), Align::Right),
        (head(page, difference, DELTA), Align::Right),
    ]);
    for part in Part::ALL {
        let own: Vec<_> = waterfall.parts.iter().filter(|(p, ..)| *p == part).collect();
        if own.is_empty() {
            continue;
        }
        let sum = |n: usize| own.iter().map(|(.., sides)| sides[n]).sum::<i64>();
        let name = match part {
            Part::Layer => page.fill(
                Text::new("{n} layers of the model", "模型的 {n} 层"),
                [("n", Value::Count(difference.alignment.layers as u64))],
            ),
            part => page.get(words::part(part)),
        };
        table.row(cells![name, micros(sum(0)), micros(sum(1)), signed(sum(1) - sum(0))]);
        let layers = own.iter().filter_map(|(_, layer, sides)| layer.map(|layer| (layer, sides)));
        let most = layers.max_by_key(|(layer, sides)| ((sides[1] - sides[0]).abs(), std::cmp::Reverse(*layer)));
        let mut order: Vec<&[i64; 2]> = own.iter().filter(|(_, layer, _)| layer.is_some()).map(|(.., s)| s).collect();
        order.sort_by_key(|sides| sides[1] - sides[0]);
        let median = order.get(order.len() / 2).copied();
        if let Some(((layer, most), median)) = most.filter(|(_, sides)| sides[0] != sides[1]).zip(median) {
            let differs = page.fill(
                Text::new("– of these layer {n}, which differs most", "– 其中差异最大的第 {n} 层"),
                [("n", Value::Count(u64::from(layer)))],
            );
            let usual = page.get(Text::new("– of these the median layer", "– 其中的中位层"));
            for (name, [a, b]) in [(differs, most), (usual, median)] {
                table.row(cells![name, micros(*a), micros(*b), signed(b - a)]);
            }
        }
    }
    page.table(page.get(Text::new("Where in the step", "位于步的何处")), table);
}
