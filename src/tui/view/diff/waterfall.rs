//! From A to B: what makes the difference, in whole nanoseconds that add up, and what it comes from. Each bar begins where
//! the one above it ends.

use model::Ns;
use ratatui::{buffer::Buffer, layout::Rect};

use super::super::{Effect, Place, Point, Scene, View, page::clean};
use crate::tui::{
    action::{Action, Scope},
    export::csv,
    glyph,
    lane::Kind,
    text,
    theme::Role,
    widget::{
        prose::{self, Line, piece},
        rows::Rows,
        table::{self, Cell, Column},
    },
};
use diagnosis::{
    compare::{Difference, align::Part},
    i18n::Text,
};
use report::{
    diff::{Mover, What, movers, words},
    document::Align,
    sections::words as common,
    units,
};

/// Cells of a time to the nanosecond.
const TIME: u16 = 15;
/// Width below which the times of both sides have no room.
const NARROW: u16 = 76;
/// Cells of a bar.
const BAR: u16 = 24;
/// Lines below the table: the sum, what it comes from, and what is selected.
const BELOW: u16 = 5;

/// By what the rows are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum By {
    #[default]
    Delta,
    A,
    B,
    Name,
}

/// The table of what differs.
#[derive(Default)]
pub struct Waterfall {
    rows: Rows,
    by: By,
    inverted: bool,
    body: Rect,
}

impl Waterfall {
    fn movers(&self, scene: &Scene<'_>) -> Vec<Mover> {
        let difference = scene.beside.and_then(|beside| beside.report.difference.as_ref());
        let mut movers = difference.map(movers).unwrap_or_default();
        match self.by {
            By::Delta => {}
            By::A => movers.sort_by_key(|mover| std::cmp::Reverse(mover.sides[0])),
            By::B => movers.sort_by_key(|mover| std::cmp::Reverse(mover.sides[1])),
            By::Name => movers.sort_by(|x, y| (&x.what, x.layer, x.waited).cmp(&(&y.what, y.layer, y.waited))),
        }
        if self.inverted {
            movers.reverse();
        }
        movers
    }

    /// The first slot of what is selected.
    fn slot(&self, scene: &Scene<'_>) -> Effect {
        let movers = self.movers(scene);
        let slots = scene.beside.and_then(|beside| Some(&beside.report.difference.as_ref()?.alignment.slots));
        let Some((mover, slots)) = movers.get(self.rows.at).zip(slots) else { return Effect::None };
        let found = match &mover.what {
            What::Operator(part, operator) => {
                slots.iter().position(|slot| slot.part == *part && slot.operator() == operator)
            }
            What::Bucket(_) | What::Replayed => None,
        };
        match found {
            Some(slot) => Effect::Show(Place::Slot(slot as u32)),
            None => {
                let none =
                    Text::new("this lies in no slot: it is idle time of the step", "这不在任何槽位内：属于步中的空闲");
                Effect::Say(scene.get(none).to_owned())
            }
        }
    }
}

/// What a row is called.
fn name(scene: &Scene<'_>, mover: &Mover) -> String {
    let what = match &mover.what {
        What::Operator(Part::Step, _) => scene.get(words::part(Part::Step)).to_owned(),
        What::Operator(part, operator) => format!("{} {}", text::safe(operator), scene.get(words::part(*part))),
        What::Bucket(bucket) => text::safe(bucket),
        What::Replayed => scene.get(words::REPLAYED).to_owned(),
    };
    match mover.waited {
        true => format!("{}{what}", scene.get(Text::new("waiting: ", "等待："))),
        false => what,
    }
}

/// What a difference comes from, part by part.
fn causes(scene: &Scene<'_>, mover: &Mover) -> String {
    let word = |cause| scene.get(words::cause(cause));
    match mover.causes.as_slice() {
        [] => "–".to_owned(),
        [(cause, _)] => word(*cause).to_owned(),
        several => several
            .iter()
            .map(|(c, ns)| format!("{} {}", word(*c), units::signed_ns(*ns)))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// From where to where each bar goes, in the order of the rows: from A to B.
fn bars(difference: &Difference, movers: &[Mover]) -> Vec<(Ns, Ns)> {
    let mut at = difference.waterfall.from;
    movers
        .iter()
        .map(|mover| {
            let from = at;
            at += mover.delta();
            (from, at)
        })
        .collect()
}

/// A bar in `BAR` cells of the stretch that all bars lie in.
fn bar(scene: &Scene<'_>, (from, to): (Ns, Ns), (least, most): (Ns, Ns)) -> String {
    let cell = |t: Ns| (i128::from(t - least) * i128::from(BAR) / i128::from((most - least).max(1))) as usize;
    let (low, high) = (cell(from.min(to)), cell(from.max(to)));
    let mark = match (scene.theme.is_mono(), to >= from) {
        (true, true) => "+",
        (true, false) => "-",
        (false, _) => glyph::SOLID,
    };
    format!("{}{}", " ".repeat(low.min(usize::from(BAR) - 1)), mark.repeat((high - low).max(usize::from(from != to))))
}

impl View for Waterfall {
    fn scope(&self) -> Scope {
        Scope::List
    }

    fn actions(&self, scene: &Scene<'_>) -> Vec<Action> {
        let len = self.movers(scene).len();
        let mut actions = Vec::new();
        if len > 0 {
            actions.extend([Action::Open, Action::Sort, Action::Invert, Action::Copy]);
        }
        actions.extend(Rows::actions(len));
        actions
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Effect {
        match action {
            Action::Open => return self.slot(scene),
            Action::Invert => self.inverted = !self.inverted,
            Action::Sort => {
                self.by = match self.by {
                    By::Delta => By::A,
                    By::A => By::B,
                    By::B => By::Name,
                    By::Name => By::Delta,
                }
            }
            Action::Copy => {
                let movers = self.movers(scene);
                let Some(mover) = movers.get(self.rows.at) else { return Effect::None };
                let line = format!(
                    "{}\tA {}\tB {}\tB - A {}\t{}",
                    name(scene, mover),
                    units::exact_ns(mover.sides[0]),
                    units::exact_ns(mover.sides[1]),
                    units::signed_ns(mover.delta()),
                    causes(scene, mover)
                );
                return Effect::Copy(clean(&line));
            }
            action => {
                let len = self.movers(scene).len();
                self.rows.act(action, len);
            }
        }
        Effect::None
    }

    fn point(&mut self, point: Point, scene: &Scene<'_>) -> Effect {
        let len = self.movers(scene).len();
        match point {
            Point::Click(x, y) if self.body.contains((x, y).into()) => {
                let before = self.rows.at;
                if self.rows.point(usize::from(y - self.body.y), len) && before == self.rows.at {
                    return self.slot(scene);
                }
            }
            Point::Wheel(_, _, up) => self.rows.act(if up { Action::Up } else { Action::Down }, len),
            _ => {}
        }
        Effect::None
    }

    fn export(&self, scene: &Scene<'_>) -> Vec<(&'static str, String)> {
        let head = ["what", "layer", "waited", "a_ns", "b_ns", "delta_ns"].map(str::to_owned).to_vec();
        let row = |mover: Mover| {
            let name = clean(&name(scene, &mover));
            let numbers = [mover.sides[0], mover.sides[1], mover.delta()].map(|ns| ns.to_string());
            let about = [name, mover.layer.key().to_owned(), mover.waited.to_string()];
            about.into_iter().chain(numbers).collect()
        };
        vec![("csv", csv(std::iter::once(head).chain(self.movers(scene).into_iter().map(row))))]
    }

    fn draw(&mut self, scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
        let Some(difference) = scene.beside.and_then(|beside| beside.report.difference.as_ref()) else { return };
        let movers = self.movers(scene);
        let bars = bars(difference, &movers);
        let ends = || bars.iter().flat_map(|(from, to)| [*from, *to]);
        let reach = (ends().min().unwrap_or(0), ends().max().unwrap_or(1));
        let mark = |by: By| match (self.by == by, self.inverted) {
            (false, _) => "",
            (true, false) => "▾",
            (true, true) => "▴",
        };
        let column = |title: &str, align, width| Column { title: title.to_owned(), align, width };
        let titled = |title: &str, by: By| format!("{title}{}", mark(by));
        let mut columns = [
            column(&titled(scene.get(Text::new("what", "项目")), By::Name), Align::Left, 0),
            column(&titled("A", By::A), Align::Right, TIME),
            column(&titled("B", By::B), Align::Right, TIME),
            column(&titled("B − A", By::Delta), Align::Right, TIME),
            column(scene.get(Text::new("from A to B", "从 A 到 B")), Align::Left, BAR),
            column(scene.get(Text::new("comes from", "来源")), Align::Left, 16),
            column(scene.get(Text::new("layer", "层")), Align::Left, 13),
        ];
        // Where not all columns fit, the difference is the one that stays.
        let narrow = area.width < NARROW;
        if narrow {
            columns.swap(1, 3);
        }
        let row = |at: usize| -> Vec<Cell> {
            let Some((mover, span)) = movers.get(at).zip(bars.get(at)) else { return Vec::new() };
            let main = mover.causes.first().map_or("–", |(cause, _)| scene.get(words::cause(*cause)));
            let more = if mover.causes.len() > 1 { " +" } else { "" };
            let mut cells = vec![
                (name(scene, mover), Role::Name),
                (units::exact_ns(mover.sides[0]), Role::Text),
                (units::exact_ns(mover.sides[1]), Role::Text),
                (units::signed_ns(mover.delta()), Role::Strong),
                (bar(scene, *span, reach), Role::Kind(if mover.delta() > 0 { Kind::Launch } else { Kind::Matrix })),
                (format!("{main}{more}"), Role::Text),
                (scene.get(common::layer(mover.layer)).to_owned(), Role::Layer(mover.layer)),
            ];
            if narrow {
                cells.swap(1, 3);
            }
            cells
        };
        let below = if area.height > BELOW + 3 { BELOW } else { 1.min(area.height.saturating_sub(2)) };
        let above = Rect { height: area.height - below, ..area };
        self.body = table::draw(&columns, (&mut self.rows, movers.len()), row, scene.theme, above, buf);
        let inner = Rect {
            x: area.x + 2.min(area.width),
            width: area.width.saturating_sub(3),
            height: below,
            y: above.bottom(),
        };
        prose::draw(
            &sums(scene, difference, &movers, (self.rows.at, usize::from(inner.width))),
            0,
            scene.theme,
            inner,
            buf,
        );
    }
}

/// The sum, what it comes from, and what the selected row comes from.
fn sums(scene: &Scene<'_>, difference: &Difference, movers: &[Mover], (at, width): (usize, usize)) -> Vec<Line> {
    let waterfall = &difference.waterfall;
    let count = scene.get(Text::new("rows add up to it exactly", "行之和与之精确相等"));
    let total = vec![
        piece(format!("{} ", scene.get(Text::new("sum", "合计"))), Role::Title),
        piece(
            format!(
                "A {} {} = B {}",
                units::exact_ns(waterfall.from),
                plus(waterfall.delta()),
                units::exact_ns(waterfall.to)
            ),
            Role::Strong,
        ),
        piece(format!("  {} {count}", movers.len()), Role::Dim),
    ];
    let mut from = vec![piece(format!("{} ", scene.get(Text::new("comes from", "来源"))), Role::Title)];
    for (cause, ns) in waterfall.causes().into_iter().filter(|(_, ns)| *ns != 0) {
        from.push(piece(format!("{} ", scene.get(words::cause(cause))), Role::Dim));
        from.push(piece(format!("{}  ", units::signed_ns(ns)), Role::Text));
    }
    let mut selected = Line::new();
    if let Some(mover) = movers.get(at) {
        selected.push(piece(format!("{} ", name(scene, mover)), Role::Name));
        selected.push(piece(causes(scene, mover), Role::Text));
    }
    let mut out = vec![total];
    out.extend(prose::wrap(&from, width, ("", "  ")));
    out.extend(prose::wrap(&selected, width, ("", "  ")));
    out
}

/// A difference as it stands in a sum.
fn plus(ns: Ns) -> String {
    let sign = if ns < 0 { "−" } else { "+" };
    format!("{sign} {}", units::exact_ns(ns.abs()))
}
