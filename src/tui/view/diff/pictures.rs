//! Each side by itself, where the contract refuses to set one beside the other: the verdict, both steps apart from each other,
//! each on a scale of its own, and the smallest change. Nothing here is a ratio of anything.

use model::Ns;

use super::{
    super::Scene,
    ladders::{TIME, mark, padded, right},
    named, parts,
};
use crate::tui::{
    text,
    theme::Role,
    widget::prose::{Line, piece},
};
use diagnosis::{analysis::Layer, compare::Side, i18n::Text};
use report::{
    diff::sections::Part,
    model::{Capture, ClassPart},
    sections::words as common,
    units,
};

/// Cells of a name.
const NAME: usize = 26;
/// Buckets that stand for themselves.
const BUCKETS: usize = 6;
/// Classes of steps that are named.
const CLASSES: usize = 4;

pub(super) fn lines(scene: &Scene<'_>, width: usize) -> Vec<Line> {
    let Some(beside) = scene.beside else { return Vec::new() };
    let mut out = parts(scene, &[Part::Verdict, Part::Answer, Part::Change], width);
    for ((side, look), head) in Side::BOTH.into_iter().zip(beside.sides).zip(&beside.report.heads) {
        let Some(capture) = look.capture() else { continue };
        out.extend(picture(scene, side, (capture, named(head)), width));
        out.push(Line::new());
    }
    out
}

fn picture(scene: &Scene<'_>, side: Side, (capture, name): (&Capture, String), width: usize) -> Vec<Line> {
    let mut title = vec![
        piece(format!("{} ", side.letter()), Role::Strong),
        piece(scene.get(Text::new("by itself: ", "单独：")), Role::Title),
        piece(name, Role::Name),
    ];
    if capture.simulated {
        title.push(piece(scene.get(Text::new(" simulated", " 模拟数据")), Role::Warn));
    }
    let mut out = vec![title];
    let rank = capture.leading_rank();
    let Some(class) = rank.and_then(|rank| rank.main_class()).filter(|class| class.used > 0) else {
        let none = Text::new("No step that counts was found.", "没有找到可计入统计的步。");
        out.push(vec![piece(scene.get(none), Role::Dim)]);
        return out;
    };
    for class in rank.iter().flat_map(|rank| &rank.classes).take(CLASSES) {
        let steps = scene.get(Text::new("steps that count", "采用的步"));
        let of = scene.get(Text::new("of", "/"));
        let median = scene.get(Text::new("median", "中位数"));
        out.push(vec![
            piece(text::safe(&class.key), Role::Name),
            piece(
                format!(" · {steps}: {} {of} {} · {median} {}", class.used, class.count, units::exact_ns(class.median)),
                Role::Dim,
            ),
        ]);
    }
    out.extend(ladder(scene, class, width));
    out
}

/// Layers of a step with the largest buckets of each.
fn ladder(scene: &Scene<'_>, class: &ClassPart, width: usize) -> Vec<Line> {
    let steps = class.used.max(1) as Ns;
    let mean = |ns: Ns| ns.saturating_add(steps / 2).div_euclid(steps);
    let bar = width.saturating_sub(NAME + TIME + 2);
    let line = |name: &str, role: Role, layer: Layer, ns: Ns| {
        let cells = (i128::from(ns.max(0)) * bar as i128 / i128::from(class.total.max(1))) as usize;
        vec![
            piece(padded(name, NAME), role),
            piece(right(&units::exact_ns(mean(ns)), TIME), Role::Text),
            piece(format!(" {}", mark(scene, layer).repeat(cells.min(bar))), Role::Layer(layer)),
        ]
    };
    let mut out = Vec::new();
    for (layer, ns) in Layer::ALL.into_iter().zip(class.layers()) {
        out.push(line(scene.get(common::layer(layer)), Role::Layer(layer), layer, ns));
        let mut buckets: Vec<_> = class.buckets.iter().filter(|row| row.layer == layer && row.ns != 0).collect();
        buckets.sort_by_key(|row| std::cmp::Reverse(row.ns));
        for row in buckets.into_iter().take(BUCKETS) {
            out.push(line(&format!("  {}", text::safe(&row.name)), Role::Dim, layer, row.ns));
        }
    }
    let sum = scene.get(Text::new("a step, mean", "一步，均值"));
    out.push(vec![
        piece(padded(sum, NAME), Role::Strong),
        piece(right(&units::exact_ns(mean(class.total)), TIME), Role::Strong),
    ]);
    out
}
