//! The aligned slots of a step with the kernels of both sides: which stand for each other, which do together what others do
//! together, and which only one side has.

use ratatui::{buffer::Buffer, layout::Rect};

use super::super::{Effect, Place, Point, Scene, View, page::clean};
use crate::tui::{
    action::{Action, Scope},
    export::csv,
    text,
    theme::Role,
    widget::{
        prose::{self, Line, piece},
        rows::Rows,
        table::{self, Cell, Column},
    },
};
use diagnosis::{
    compare::{
        align::{Move, Part},
        waterfall::Kernel,
    },
    i18n::Text,
};
use report::{
    diff::{Kernels, kernels, words},
    document::Align,
    kernel_name, units,
};

/// Cells of a time to the nanosecond.
const TIME: u16 = 15;
/// Cells of a slot's name, and of how its sides correspond.
const SLOT: u16 = 18;
const HOW: u16 = 6;
/// Lines that tell of the selected slot.
const BELOW: u16 = 6;
/// Width below which a slot's name is cut further.
const NARROW: u16 = 72;
/// Width from which the times of both sides have room.
const WIDE: u16 = 120;

/// The table of slots.
#[derive(Default)]
pub struct Layer {
    rows: Rows,
    /// Whether the first slot of a layer was selected, where the table begins.
    began: bool,
    body: Rect,
}

fn slots<'a>(scene: &Scene<'a>) -> Vec<Kernels<'a>> {
    scene.beside.and_then(|beside| beside.report.difference.as_ref()).map(kernels).unwrap_or_default()
}

/// How the two sides of a slot correspond, in a few letters: `3:1` is a group.
fn how(kernels: &Kernels<'_>) -> (String, Role) {
    let count = |ops: &[diagnosis::compare::align::Op]| ops.len();
    match (kernels.slot.by, kernels.of.map(<[Kernel]>::is_empty)) {
        (_, [false, true]) => ("A –".to_owned(), Role::Warn),
        (_, [true, false]) => ("– B".to_owned(), Role::Warn),
        (Some(Move::Match), _) => ("=".to_owned(), Role::Dim),
        (Some(Move::Substitute), _) => ("~".to_owned(), Role::Strong),
        (Some(Move::Group), _) => (format!("{}:{}", count(&kernels.slot.a), count(&kernels.slot.b)), Role::Strong),
        (Some(Move::Gap) | None, _) => ("·".to_owned(), Role::Dim),
    }
}

/// The longest kernel of a side, and how many other names there are.
fn longest(list: &[Kernel]) -> String {
    match list {
        [] => "–".to_owned(),
        [one] => text::safe(&kernel_name::short(&one.name)),
        [first, rest @ ..] => format!("{} +{}", text::safe(&kernel_name::short(&first.name)), rest.len()),
    }
}

impl Layer {
    fn follow(&self, scene: &Scene<'_>) -> Effect {
        slots(scene).get(self.rows.at).map_or(Effect::None, |kernels| Effect::Show(Place::Slot(kernels.index)))
    }

    /// What is known of the selected slot: how it corresponds, and every kernel of both sides as far as there is room.
    fn below(&self, scene: &Scene<'_>, selected: &Kernels<'_>, room: usize) -> Vec<Line> {
        let marks = scene.get(Text::new(
            "= same  ~ of the family  m:n groups  A – / – B on one side only",
            "= 相同  ~ 同族  m:n 分组  A – / – B 仅一侧有",
        ));
        let mut out = vec![
            vec![piece(marks, Role::Dim)],
            vec![
                piece(format!("{} ", text::safe(&selected.slot.key())), Role::Name),
                piece(scene.get(words::moved(selected.slot.by)), Role::Strong),
                piece(
                    format!("  A {}  B {}", units::exact_ns(selected.ns[0]), units::exact_ns(selected.ns[1])),
                    Role::Text,
                ),
            ],
        ];
        let each = (room.saturating_sub(2) / 2).max(1);
        for (letter, list) in ["A", "B"].into_iter().zip(selected.of) {
            for kernel in list.iter().take(each) {
                let count = units::number((kernel.count * 10.0).round() / 10.0);
                let per = scene.get(Text::new("per step", "每步"));
                out.push(vec![
                    piece(format!("{letter} {count} × "), Role::Dim),
                    piece(text::safe(&kernel_name::short(&kernel.name)), Role::Name),
                    piece(format!("  {} {per}", units::exact_ns(kernel.ns.round() as i64)), Role::Text),
                ]);
            }
            if list.is_empty() {
                let none = scene.get(Text::new("has nothing here", "此处没有内核"));
                out.push(vec![piece(format!("{letter} {none}"), Role::Warn)]);
            }
        }
        out
    }
}

impl View for Layer {
    fn scope(&self) -> Scope {
        Scope::List
    }

    fn actions(&self, scene: &Scene<'_>) -> Vec<Action> {
        let len = slots(scene).len();
        let mut actions = Vec::new();
        if len > 0 {
            actions.extend([Action::Open, Action::Copy]);
        }
        if !scene.search.is_empty() {
            actions.extend([Action::SearchNext, Action::SearchPrevious]);
        }
        actions.extend(Rows::actions(len));
        actions
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Effect {
        match action {
            Action::Open => return self.follow(scene),
            Action::Copy => {
                let slots = slots(scene);
                let Some(selected) = slots.get(self.rows.at) else { return Effect::None };
                let lines = self.below(scene, selected, usize::MAX);
                let text = lines.iter().skip(1).map(prose::plain).collect::<Vec<_>>().join("\n");
                return Effect::Copy(clean(&text));
            }
            Action::SearchNext | Action::SearchPrevious => {
                let slots = slots(scene);
                let wanted = scene.search.to_lowercase();
                let holds = |at: &usize| {
                    slots.get(*at).is_some_and(|kernels| {
                        let names = kernels.of.iter().flat_map(|list| list.iter()).map(|kernel| kernel.name.as_str());
                        let key = kernels.slot.key();
                        names.chain([key.as_str()]).any(|name| name.to_lowercase().contains(&wanted))
                    })
                };
                let found = match action {
                    Action::SearchNext => (self.rows.at + 1..slots.len()).find(holds),
                    _ => (0..self.rows.at).rev().find(holds),
                };
                match found {
                    Some(at) => self.rows.at = at,
                    None => return Effect::Say(scene.get(super::super::timeline::NOT_FOUND).to_owned()),
                }
            }
            action => {
                let len = slots(scene).len();
                self.rows.act(action, len);
            }
        }
        Effect::None
    }

    fn point(&mut self, point: Point, scene: &Scene<'_>) -> Effect {
        let len = slots(scene).len();
        match point {
            Point::Click(x, y) if self.body.contains((x, y).into()) => {
                let before = self.rows.at;
                if self.rows.point(usize::from(y - self.body.y), len) && before == self.rows.at {
                    return self.follow(scene);
                }
            }
            Point::Wheel(_, _, up) => self.rows.act(if up { Action::Up } else { Action::Down }, len),
            _ => {}
        }
        Effect::None
    }

    fn export(&self, scene: &Scene<'_>) -> Vec<(&'static str, String)> {
        let head = ["slot", "how", "a_kernels", "b_kernels", "a_ns", "b_ns", "delta_ns"].map(str::to_owned).to_vec();
        let row = |kernels: Kernels<'_>| {
            let names =
                kernels.of.map(|list| list.iter().map(|kernel| clean(&kernel.name)).collect::<Vec<_>>().join(" | "));
            let [a, b] = kernels.ns;
            let by = kernels.slot.by.map_or("operator", Move::key).to_owned();
            let about = [kernels.slot.key(), by].into_iter().chain(names);
            about.chain([a, b, b - a].map(|ns| ns.to_string())).collect()
        };
        vec![("csv", csv(std::iter::once(head).chain(slots(scene).into_iter().map(row))))]
    }

    fn draw(&mut self, scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
        let slots = slots(scene);
        if slots.is_empty() {
            let none = Text::new("No slot holds a kernel.", "没有包含内核的槽位。");
            text::put(buf, (area.x + 1, area.y), scene.get(none), area.width, scene.theme.style(Role::Dim));
            return;
        }
        if !self.began {
            self.rows.at = slots.iter().position(|kernels| kernels.slot.part == Part::Layer).unwrap_or(0);
            self.began = true;
        }
        let wide = area.width >= WIDE;
        let slot = if area.width < NARROW { SLOT - 6 } else { SLOT };
        let taken = slot + HOW + TIME + 2 + 4 * 2 + if wide { 2 * (TIME + 2) } else { 0 };
        let name = (area.width.saturating_sub(taken) / 2).max(8);
        let column = |title: &str, align, width| Column { title: title.to_owned(), align, width };
        let mut columns = vec![
            column(scene.get(Text::new("slot", "槽位")), Align::Left, slot),
            column(scene.get(Text::new("kernels of A", "A 的内核")), Align::Left, name),
            column("", Align::Left, HOW),
            column(scene.get(Text::new("kernels of B", "B 的内核")), Align::Left, name),
            column("B − A", Align::Right, TIME),
        ];
        if wide {
            columns.extend([column("A", Align::Right, TIME), column("B", Align::Right, TIME)]);
        }
        let row = |at: usize| -> Vec<Cell> {
            let Some(kernels) = slots.get(at) else { return Vec::new() };
            let [a, b] = kernels.ns;
            vec![
                (text::safe(&kernels.slot.key()), Role::Name),
                (longest(kernels.of[0]), Role::Text),
                how(kernels),
                (longest(kernels.of[1]), Role::Text),
                (units::signed_ns(b - a), Role::Strong),
                (units::exact_ns(a), Role::Text),
                (units::exact_ns(b), Role::Text),
            ]
        };
        let below = if area.height > BELOW + 4 { BELOW } else { 0 };
        let above = Rect { height: area.height - below, ..area };
        self.body = table::draw(&columns, (&mut self.rows, slots.len()), row, scene.theme, above, buf);
        if let Some(selected) = slots.get(self.rows.at).filter(|_| below > 0) {
            let inner = Rect {
                x: area.x + 2.min(area.width),
                y: above.bottom(),
                width: area.width.saturating_sub(3),
                height: below,
            };
            prose::draw(&self.below(scene, selected, usize::from(below)), 0, scene.theme, inner, buf);
        }
    }
}
