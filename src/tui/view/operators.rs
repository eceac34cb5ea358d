//! Which operators and kernels take the time of the main class, as the report counts them.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Effect, Place, Point, Scene, View, page::clean};
use crate::{
    i18n::Text,
    report::{kernel_name, table::Align, units, work::Work},
    tui::{
        action::{Action, Scope},
        export::csv,
        text,
        theme::Role,
        widget::{
            rows::Rows,
            table::{self, Cell, Column},
        },
    },
};

/// By what the rows are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum By {
    #[default]
    Busy,
    Count,
    Idle,
    Name,
}

/// The table of operators, or of kernels.
#[derive(Default)]
pub struct Operators {
    rows: Rows,
    kernels: bool,
    by: By,
    inverted: bool,
    body: Rect,
}

impl Operators {
    /// The works in their order.
    fn works<'a>(&self, scene: &Scene<'a>) -> Vec<&'a Work> {
        let Some(part) = scene.part() else { return Vec::new() };
        let mut works: Vec<&Work> = if self.kernels { &part.kernels } else { &part.operators }.iter().collect();
        works.sort_by(|a, b| match self.by {
            By::Busy => b.busy.cmp(&a.busy),
            By::Count => b.count.cmp(&a.count),
            By::Idle => b.idle.cmp(&a.idle),
            By::Name => a.name.cmp(&b.name),
        });
        if self.inverted {
            works.reverse();
        }
        works
    }

    /// The first operation of the selected work in the steps that count.
    fn instance(&self, scene: &Scene<'_>) -> Effect {
        let works = self.works(scene);
        let Some((work, rank)) = works.get(self.rows.at).zip(scene.rank()) else { return Effect::None };
        let name = |op: &crate::analysis::DeviceOp| scene.look.trace.strings.get(op.name);
        let steps = rank.main_class().map(|class| rank.steady_steps(class).flat_map(|step| rank.ops_of(step)));
        let found = steps.into_iter().flatten().find(|op| match self.kernels {
            true => name(op) == work.name,
            false => op.op.name() == work.name,
        });
        match found {
            Some(op) => Effect::ShowNamed(Place::Slice(op.slice), name(op).to_owned()),
            None => Effect::Say(scene.get(REST).to_owned()),
        }
    }

    /// How much of its measured ceiling a row reaches, where that is known of its products.
    fn reached(&self, scene: &Scene<'_>, work: &Work) -> Option<f64> {
        let held = scene.look.capture()?.held.as_ref()?;
        let part = scene.part()?;
        if held.rank != part.rank || part.main_class()?.key != held.class {
            return None;
        }
        held.reached(|kernel| if self.kernels { kernel.name == work.name } else { kernel.op == work.op })
    }
}

const REST: Text =
    Text::new("these are several names; the timeline has them all", "该行包含多个名称；请在时间线中查看");

impl View for Operators {
    fn scope(&self) -> Scope {
        Scope::List
    }

    fn actions(&self, scene: &Scene<'_>) -> Vec<Action> {
        let len = self.works(scene).len();
        let mut actions = Vec::new();
        if len > 0 {
            actions.extend([Action::Open, Action::Regroup, Action::Sort, Action::Invert, Action::Copy]);
        }
        actions.extend(Rows::actions(len));
        actions
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Effect {
        match action {
            Action::Open => return self.instance(scene),
            Action::Regroup => (self.kernels, self.rows) = (!self.kernels, Rows::default()),
            Action::Invert => self.inverted = !self.inverted,
            Action::Sort => {
                self.by = match self.by {
                    By::Busy => By::Count,
                    By::Count => By::Idle,
                    By::Idle => By::Name,
                    By::Name => By::Busy,
                }
            }
            Action::Copy => {
                let works = self.works(scene);
                let Some(work) = works.get(self.rows.at) else { return Effect::None };
                return Effect::Copy(clean(&work.name));
            }
            action => {
                let len = self.works(scene).len();
                self.rows.act(action, len);
            }
        }
        Effect::None
    }

    fn point(&mut self, point: Point, scene: &Scene<'_>) -> Effect {
        let len = self.works(scene).len();
        match point {
            Point::Click(x, y) if self.body.contains((x, y).into()) => {
                let before = self.rows.at;
                if self.rows.point(usize::from(y - self.body.y), len) && before == self.rows.at {
                    return self.instance(scene);
                }
            }
            Point::Wheel(_, _, up) => self.rows.act(if up { Action::Up } else { Action::Down }, len),
            _ => {}
        }
        Effect::None
    }

    fn export(&self, scene: &Scene<'_>) -> Vec<(&'static str, String)> {
        let steps = scene.part().and_then(|part| part.main_class()).map_or(0, |class| class.used);
        let head = ["name", "operator", "busy_ns", "count", "idle_before_ns", "steps", "of_ceiling"]
            .map(str::to_owned)
            .to_vec();
        let row = |work: &Work| {
            let reached = self.reached(scene, work).map_or(String::new(), |reached| format!("{reached:.4}"));
            let numbers =
                [work.busy.to_string(), work.count.to_string(), work.idle.to_string(), steps.to_string(), reached];
            [clean(&work.name), work.op.to_owned()].into_iter().chain(numbers).collect()
        };
        let rows = self.works(scene).into_iter().map(row);
        vec![("csv", csv(std::iter::once(head).chain(rows)))]
    }

    fn draw(&mut self, scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
        let works = self.works(scene);
        let Some(class) = scene.part().and_then(|part| part.main_class()).filter(|_| !works.is_empty()) else {
            let none = Text::new("No step that counts was found.", "没有找到可计入统计的步。");
            text::put(buf, (area.x + 1, area.y), scene.get(none), area.width, scene.theme.style(Role::Dim));
            return;
        };
        let what =
            if self.kernels { Text::new("kernels of", "内核：") } else { Text::new("operators of", "算子：") };
        let mean = scene.get(Text::new("times are per step", "时间为每步均值"));
        let head = format!("{} {} · {mean}", scene.get(what), class.key);
        text::put(buf, (area.x + 2, area.y), &text::safe(&head), area.width, scene.theme.style(Role::Dim));
        let mark = |by: By| match (self.by == by, self.inverted) {
            (false, _) => "",
            (true, false) => "▾",
            (true, true) => "▴",
        };
        let number = |title: Text, by: By| Column {
            title: format!("{}{}", scene.get(title), mark(by)),
            align: Align::Right,
            width: 12,
        };
        let mut columns = vec![
            Column {
                title: format!("{}{}", scene.get(Text::new("name", "名称")), mark(By::Name)),
                align: Align::Left,
                width: 0,
            },
            number(Text::new("busy", "执行时间"), By::Busy),
            Column { title: scene.get(Text::new("share", "占比")).to_owned(), align: Align::Right, width: 7 },
            number(Text::new("count", "次数"), By::Count),
            number(Text::new("idle before", "之前空闲"), By::Idle),
            Column { title: scene.get(Text::new("operator", "算子")).to_owned(), align: Align::Left, width: 14 },
        ];
        // Only where something was measured: an empty column would say that nothing was reached.
        let reached: Vec<Option<f64>> = works.iter().map(|work| self.reached(scene, work)).collect();
        let is_held = reached.iter().any(Option::is_some);
        if is_held {
            let title = scene.get(Text::new("of ceiling", "达上限")).to_owned();
            columns.insert(3, Column { title, align: Align::Right, width: 10 });
        }
        let names: Vec<&str> = works.iter().map(|work| work.name.as_str()).collect();
        let short = kernel_name::short_all(&names);
        let steps = class.used.max(1) as i64;
        let row = |at: usize| -> Vec<Cell> {
            let Some((work, short)) = works.get(at).zip(short.get(at)) else { return Vec::new() };
            let name = match work.name.as_str() {
                "" => (scene.get(Text::new("all others", "其余")).to_owned(), Role::Dim),
                _ => (text::safe(short), Role::Name),
            };
            let mut cells = vec![
                name,
                (units::time(work.busy / steps), Role::Text),
                (units::share_of(work.busy, class.total), Role::Text),
                (units::tenths(work.count as i64 * 10 / steps), Role::Text),
                (units::time(work.idle / steps), Role::Text),
                (work.op.to_owned(), Role::Dim),
            ];
            if is_held {
                let share = reached.get(at).copied().flatten().map_or(String::new(), units::share);
                cells.insert(3, (share, Role::Text));
            }
            cells
        };
        let below = Rect { y: area.y.saturating_add(1), height: area.height.saturating_sub(1), ..area };
        self.body = table::draw(&columns, (&mut self.rows, works.len()), row, scene.theme, below, buf);
    }
}
