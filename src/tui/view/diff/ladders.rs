//! Where the time of a step of each side goes: both ladders side by side, on one scale, above the answer. Where the contract
//! refuses that, each side has a picture of its own.

use model::Ns;

use super::{super::Scene, named, parts, pictures};
use crate::tui::{
    text,
    theme::Role,
    view::overview::initial,
    widget::prose::{self, Line, piece},
};
use diagnosis::{
    analysis::Layer,
    compare::{Difference, Side},
    i18n::Text,
};
use report::{diff::sections::Part, sections::words as common, units};

/// Cells of a name.
const NAME: usize = 22;
/// Cells of a time to the nanosecond.
pub(super) const TIME: usize = 16;
/// Cells of a share.
const SHARE: usize = 8;
/// Classes of a layer that stand for themselves; the others are one line.
const CLASSES: usize = 5;

pub(super) fn lines(scene: &Scene<'_>, width: usize) -> Vec<Line> {
    let Some(beside) = scene.beside else { return Vec::new() };
    let Some(difference) = &beside.report.difference else { return pictures::lines(scene, width) };
    // Where each side spends its time comes before any ratio of the two.
    let mut out = heads(scene, difference, width);
    out.extend(ladder(scene, difference, width));
    out.push(Line::new());
    out.extend(parts(scene, &[Part::Answer, Part::Repeats, Part::Path, Part::Unknown], width));
    out
}

/// Which steps stand for each side.
fn heads(scene: &Scene<'_>, difference: &Difference, width: usize) -> Vec<Line> {
    let mut out = vec![vec![piece(scene.get(Text::new("The two ladders", "两侧阶梯")), Role::Title)]];
    let heads = scene.beside.map(|beside| &beside.report.heads).into_iter().flatten();
    for ((side, steps), head) in Side::BOTH.into_iter().zip(&difference.sides).zip(heads) {
        let counted = scene.get(match steps.steps {
            1 => Text::new("step", "步"),
            _ => Text::new("steps, mean of a step", "步，取步均值"),
        });
        let line = [
            piece(format!("{} ", side.letter()), Role::Strong),
            piece(text::safe(&steps.class), Role::Name),
            piece(format!(" · rank {} · {} {counted}", steps.rank, units::count(steps.steps as u64)), Role::Dim),
            piece(format!(" · {}", named(head)), Role::Dim),
        ];
        out.extend(prose::wrap(&line, width, ("", "  ")));
    }
    out
}

/// One rung: a layer, or a class of its time.
struct Rung {
    name: String,
    role: Role,
    layer: Layer,
    sides: [Ns; 2],
}

fn rungs(scene: &Scene<'_>, difference: &Difference) -> Vec<Rung> {
    let mut out = Vec::new();
    for (layer, sides) in difference.waterfall.ladder() {
        let name = scene.get(common::layer(layer)).to_owned();
        out.push(Rung { name, role: Role::Layer(layer), layer, sides });
        let mut classes: Vec<(&str, bool, [Ns; 2])> = Vec::new();
        for row in difference.waterfall.rows.iter().filter(|row| row.layer == layer) {
            let known = classes.iter_mut().find(|(name, waited, _)| *name == row.bucket && *waited == row.waited);
            match known {
                Some((.., sides)) => *sides = [sides[0] + row.a.ns, sides[1] + row.b.ns],
                None => classes.push((&row.bucket, row.waited, [row.a.ns, row.b.ns])),
            }
        }
        classes.retain(|(.., sides)| *sides != [0, 0]);
        classes.sort_by_key(|(.., sides)| std::cmp::Reverse(sides[0].max(sides[1])));
        let rest = classes.split_off(classes.len().min(CLASSES));
        out.extend(classes.into_iter().map(|(bucket, waited, sides)| {
            let waits = if waited { scene.get(Text::new("waiting: ", "等待：")) } else { "" };
            Rung { name: format!("  {waits}{}", text::safe(bucket)), role: Role::Text, layer, sides }
        }));
        if !rest.is_empty() {
            let sides = [0, 1].map(|n| rest.iter().map(|(.., sides)| sides[n]).sum());
            let others = scene.get(Text::new("others", "其余"));
            out.push(Rung { name: format!("  {} {others}", rest.len()), role: Role::Dim, layer, sides });
        }
    }
    out
}

fn ladder(scene: &Scene<'_>, difference: &Difference, width: usize) -> Vec<Line> {
    let waterfall = &difference.waterfall;
    let totals = [waterfall.from, waterfall.to];
    let most = totals[0].max(totals[1]).max(1);
    let of_side = width.saturating_sub(NAME) / 2;
    let bar = of_side.saturating_sub(TIME + SHARE + 2);
    let line = |name: &str, role: Role, layer: Option<Layer>, sides: [Ns; 2]| {
        let mut out = vec![piece(padded(name, NAME), role)];
        for (ns, total) in sides.into_iter().zip(totals) {
            out.push(piece(right(&units::exact_ns(ns), TIME), Role::Text));
            out.push(piece(right(&units::share_of(ns, total), SHARE), Role::Dim));
            // Both on one scale: what is longer is longer.
            let cells = (i128::from(ns.max(0)) * bar as i128 / i128::from(most)) as usize;
            let mark = layer.map_or(String::new(), |layer| mark(scene, layer).repeat(cells));
            out.push(piece(format!(" {}", padded(&mark, bar + 1)), layer.map_or(Role::Text, Role::Layer)));
        }
        out
    };
    let mut title = vec![piece(padded("", NAME), Role::Title)];
    for side in Side::BOTH {
        let head = format!("{}, ns", side.letter());
        title.push(piece(right(&head, TIME), Role::Title));
        let share = scene.get(match side {
            Side::A => Text::new("of A", "占 A"),
            Side::B => Text::new("of B", "占 B"),
        });
        title.push(piece(padded(&right(share, SHARE), SHARE + bar + 2), Role::Title));
    }
    let mut out = vec![title];
    out.extend(rungs(scene, difference).iter().map(|rung| line(&rung.name, rung.role, Some(rung.layer), rung.sides)));
    out.push(line(scene.get(Text::new("sum", "合计")), Role::Strong, None, totals));
    out
}

/// What a bar of a layer is drawn with.
pub(super) fn mark(scene: &Scene<'_>, layer: Layer) -> String {
    if scene.theme.is_mono() { initial(layer).to_string() } else { crate::tui::glyph::SOLID.to_owned() }
}

/// Text in `cells` cells, at their beginning.
pub(super) fn padded(text: &str, cells: usize) -> String {
    let fit = text::fit(text, cells);
    format!("{fit}{}", " ".repeat(cells.saturating_sub(text::width(&fit))))
}

/// Text in `cells` cells, at their end.
pub(super) fn right(text: &str, cells: usize) -> String {
    let fit = text::fit(text, cells);
    format!("{}{fit}", " ".repeat(cells.saturating_sub(text::width(&fit))))
}
