//! The step of each side beside the other's: which steps, and how their time divides over the layers of the stack.

use super::{A, B, DELTA, DiffPage, head, micros, signed};
use crate::{
    cells,
    document::{Align, Inlines, Table},
    inlines,
    sections::words as common,
    units,
};
use diagnosis::{
    compare::{Difference, difference::Compared},
    i18n::{Text, Value},
};

/// How far apart mean and median of a side may be before it is said, as a share of the median: as far as a difference of the two
/// sides is none.
const PULLED: f64 = 0.01;

/// Where single steps pull the mean, which adds up, away from the median, which most steps are near: both. A difference of the
/// means is then not that of usual steps.
fn pulled(page: &DiffPage<'_>, side: &Compared) -> Inlines {
    let away = (side.mean - side.median) as f64;
    if away.abs() <= PULLED * side.median as f64 {
        return Inlines::new();
    }
    let text = match away > 0.0 {
        true => Text::new(
            "; the median step takes {median}, slow ones pull the mean {by} above it",
            "；中位步为 {median}，少数慢步把均值拉高了 {by}",
        ),
        false => Text::new(
            "; the median step takes {median}, quick ones pull the mean {by} below it",
            "；中位步为 {median}，少数快步把均值拉低了 {by}",
        ),
    };
    page.fill(text, [("median", Value::Ns(side.median)), ("by", Value::Ns((side.mean - side.median).abs()))])
}

/// Writes both ladders.
pub(super) fn write(page: &mut DiffPage<'_>, difference: &Difference) {
    page.heading(Text::new("The two steps", "两侧的步"));
    let statistics = page.capture.statistics.as_ref();
    for (n, (letter, side)) in ["A", "B"].into_iter().zip(&difference.sides).enumerate() {
        let of = page.fill(
            Text::new("class {class} of rank {rank}, mean over ", "rank {rank} 的类别 {class}，取平均的步数："),
            [("class", Value::Raw(side.class.clone())), ("rank", Value::Count(u64::from(side.rank)))],
        );
        let line = inlines![Inlines::strong(letter), page.colon(), of, page.steps(side.steps as u64)];
        let middle = match statistics.map_or(0, |statistics| statistics.repeats[n].len()) {
            0 | 1 => Inlines::new(),
            n => page.aside(page.fill(
                Text::new("the middle one of {n} launches", "{n} 次启动的中间一次"),
                [("n", Value::Count(n as u64))],
            )),
        };
        page.paragraph(line + middle + pulled(page, side));
    }
    let waterfall = &difference.waterfall;
    let mut table = Table::new([
        (page.get(Text::new("layer", "层")), Align::Left),
        (head(page, difference, A), Align::Right),
        (page.get(Text::new("of A", "占 A")), Align::Right),
        (head(page, difference, B), Align::Right),
        (page.get(Text::new("of B", "占 B")), Align::Right),
        (head(page, difference, DELTA), Align::Right),
    ]);
    for (layer, [a, b]) in waterfall.ladder() {
        table.row(cells![
            page.get(common::layer(layer)),
            micros(a),
            units::share_of(a, waterfall.from),
            micros(b),
            units::share_of(b, waterfall.to),
            signed(b - a),
        ]);
    }
    let (from, to) = (waterfall.from, waterfall.to);
    table.row(cells![
        Inlines::strong(page.get(Text::new("sum", "合计"))),
        micros(from),
        units::share_of(from, from),
        micros(to),
        units::share_of(to, to),
        signed(to - from),
    ]);
    page.table(
        page.get(Text::new(
            "By layer, waits in collectives with what the late rank did meanwhile",
            "按层；集合通信中的等待归入较慢 rank 当时所做之事",
        )),
        table,
    );
}
