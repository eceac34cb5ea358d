//! How ready both platforms are, and the two together: lights in words side by side, what they rest on, and the next steps.
//! Where the contract refuses the pair the evidence, which counts and measures, stands in the report on each side.

use std::collections::BTreeMap;

use super::DiffPage;
use crate::{
    cells,
    document::{Align, Inlines, Table},
    inlines, readiness,
};
use diagnosis::{
    compare::{Side, readiness::together},
    diagnose::readiness::Readiness,
    i18n::Text,
};

/// Writes both boards beside each other.
pub(super) fn write(page: &mut DiffPage<'_>) {
    let report = page.capture;
    let Some([a, b]) = &report.readiness else { return };
    page.heading(Text::new("How ready the platforms are", "两侧平台就绪度"));
    page.paragraph(page.get(Text::new(
        "As far as the captures show it: what they show nothing of is not known, and never green. A pair stands as far as its weaker side.",
        "仅以采集所示为限：未显示的一律为未知，绝不默认为绿。两侧合计以较弱一侧为准。",
    )));
    let mut table = Table::new([
        (page.get(Text::new("area", "领域")), Align::Left),
        ("A".into(), Align::Left),
        ("B".into(), Align::Left),
        (page.get(Text::new("together", "合计")), Align::Left),
    ]);
    let lights = |of: &Readiness| of.board.iter().map(|cell| (cell.of, cell.light)).collect::<Vec<_>>();
    let (of_a, of_b) = (lights(a), lights(b));
    for (area, [a, b], both) in together([&of_a, &of_b], &report.contract, report.outcome()) {
        let word = |light| page.get(readiness::light(light));
        table.row(cells![page.get(readiness::area(area)), word(a), word(b), Inlines::strong(word(both))]);
    }
    page.table(page.get(readiness::BOARD), table);
    let mut table = Table::new([
        (page.get(Text::new("area", "领域")), Align::Left),
        ("A".into(), Align::Left),
        ("B".into(), Align::Left),
    ]);
    for (a, b) in a.matrix.iter().zip(&b.matrix) {
        let word = |light| page.get(readiness::light(light));
        table.row(cells![page.get(readiness::maturity(a.of)), word(a.light), word(b.light)]);
    }
    page.table(page.get(readiness::MATRIX), table);
    if report.difference.is_some() {
        for (side, of) in Side::BOTH.into_iter().zip([a, b]) {
            evidence(page, side, of);
        }
    }
    steps(page, [a, b]);
}

/// What the lights of a side rest on.
fn evidence(page: &mut DiffPage<'_>, side: Side, of: &Readiness) {
    let title = Text::new("What the lights of {side} rest on", "{side} 的依据");
    page.title(page.compose(title, [("side", side.letter().into())]));
    let mut lines = Vec::new();
    for (name, row) in readiness::rows(of).into_iter().flatten() {
        let facts = row.facts.iter().map(|fact| page.message(&readiness::fact(fact)));
        lines.push(inlines![page.get(name), page.colon(), page.join_long(facts)]);
    }
    page.list(lines);
}

/// The next steps, each once with the sides that it is for.
fn steps(page: &mut DiffPage<'_>, sides: [&Readiness; 2]) {
    let mut found: Vec<Inlines> = Vec::new();
    let mut of: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (side, readiness) in Side::BOTH.into_iter().zip(sides) {
        for (_, row) in readiness::rows(readiness).into_iter().flatten() {
            let Some(next) = row.next.map(|next| page.message(&readiness::next(next, row.vendor))) else { continue };
            let at = found.iter().position(|known| *known == next).unwrap_or_else(|| {
                found.push(next);
                found.len() - 1
            });
            let letters = of.entry(at).or_default();
            if !letters.contains(&side.letter()) {
                letters.push(side.letter());
            }
        }
    }
    if found.is_empty() {
        return;
    }
    page.title(page.get(Text::new("Next steps", "下一步")));
    let lines: Vec<Inlines> = found
        .into_iter()
        .enumerate()
        .map(|(at, next)| {
            let letters = page.join(of.get(&at).into_iter().flatten().copied());
            inlines![letters, page.colon(), next]
        })
        .collect();
    page.list(lines);
}
