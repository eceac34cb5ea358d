//! Which operators, slots and kernels take the time of the main class, all of them, as the report counts them.

use std::cmp::Reverse;

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Effect, Place, Point, Scene, View, page::clean};
use crate::tui::{
    action::{Action, Scope},
    export::csv,
    text,
    theme::Role,
    widget::{
        rows::Rows,
        table::{self, Cell, Column},
    },
    works::Row,
};
use diagnosis::i18n::{Lang, Text};
use report::{
    document::Align,
    units,
    work::{Group, Work},
};

/// Times its median from which a place of a layer stands out; heuristic.
const FAR: f64 = 1.2;

/// By what the rows are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum By {
    #[default]
    Busy,
    Count,
    Idle,
    Name,
}

/// The table of operators, slots or kernels.
#[derive(Default)]
pub struct Operators {
    rows: Rows,
    group: Group,
    by: By,
    inverted: bool,
    /// What was searched for here, in lower case: only rows whose names hold it are shown while it is searched for.
    filter: String,
    body: Rect,
}

impl Operators {
    /// What rows are left out by; nothing once the search is left or another one is made elsewhere.
    fn filter<'a>(&'a self, scene: &Scene<'_>) -> &'a str {
        if scene.search.to_lowercase() == self.filter { &self.filter } else { "" }
    }

    /// The rows that are shown, in their order.
    fn shown<'a>(&self, scene: &Scene<'a>) -> Vec<&'a Row> {
        let filter = self.filter(scene);
        let all = scene.look.works(scene.rank, self.group);
        let mut rows: Vec<&Row> = all.iter().filter(|row| row.holds(filter)).collect();
        match (self.by, self.group) {
            // What takes the most beyond its usual time comes first.
            (By::Busy, Group::Layer) => {}
            (By::Busy, _) => rows.sort_by_key(|row| Reverse(row.work.busy)),
            (By::Count, _) => rows.sort_by_key(|row| Reverse(row.work.count)),
            (By::Idle, _) => rows.sort_by_key(|row| Reverse(row.work.idle)),
            // A slot's place says more than its name.
            (By::Name, Group::Slot) => {}
            (By::Name, _) => rows.sort_by(|a, b| a.work.name.cmp(&b.work.name)),
        }
        if self.inverted {
            rows.reverse();
        }
        rows
    }

    /// The first operation of the selected row in the steps that count, and the name that leads to the next ones.
    fn instance(&self, scene: &Scene<'_>) -> Effect {
        let rows = self.shown(scene);
        let first = rows.get(self.rows.at).and_then(|row| row.work.first);
        let name = first.and_then(|first| {
            let (track, row) = scene.look.trace.locate(first)?;
            Some(scene.look.trace.strings.get(*scene.look.trace.lanes.get(track.0 as usize)?.name.get(row)?))
        });
        match first.zip(name) {
            Some((first, name)) => Effect::ShowNamed(Place::Slice(first), name.to_owned()),
            None => Effect::None,
        }
    }

    /// Shows what holds what was searched for, or goes from row to row of it.
    fn seek(&mut self, scene: &Scene<'_>, forward: bool) -> Effect {
        let wanted = scene.search.to_lowercase();
        if self.filter == wanted {
            let len = self.shown(scene).len();
            self.rows.act(if forward { Action::Down } else { Action::Up }, len);
        } else if scene.look.works(scene.rank, self.group).iter().any(|row| row.holds(&wanted)) {
            (self.filter, self.rows) = (wanted, Rows::default());
        } else {
            return Effect::Say(scene.get(super::timeline::NOT_FOUND).to_owned());
        }
        Effect::None
    }

    /// How much of its measured ceiling a row reaches, where that is known of its products.
    fn reached(scene: &Scene<'_>, group: Group, work: &Work) -> Option<f64> {
        let held = scene.look.capture()?.held.as_ref()?;
        let part = scene.part()?;
        if held.rank != part.rank || part.main_class()?.key != held.class {
            return None;
        }
        match group {
            Group::Operator => held.reached(|kernel| kernel.op == work.op),
            Group::Kernel => held.reached(|kernel| kernel.name == work.name),
            // Products are held against their ceiling by kernel, which several slots may share.
            Group::Slot | Group::Layer => None,
        }
    }

    /// What the rows are, of which class, and which of them are shown.
    fn head(&self, scene: &Scene<'_>, class: &str, shown: usize) -> String {
        let what = match self.group {
            Group::Operator => Text::new("operators of", "算子："),
            Group::Slot => Text::new("slots of", "槽位："),
            Group::Layer => Text::new(
                "slots by layer, the furthest above their median first, of",
                "各层槽位（超出中位数最多者在前）：",
            ),
            Group::Kernel => Text::new("kernels of", "内核："),
        };
        let mean = scene.get(Text::new("times are per step", "时间为每步均值"));
        let all = scene.look.works(scene.rank, self.group).len();
        let filter = self.filter(scene);
        let narrowed = match (filter.is_empty(), scene.lang) {
            (true, _) => String::new(),
            (false, Lang::En) => format!(" · {shown} of {all} hold \u{201c}{filter}\u{201d}"),
            (false, Lang::Zh) => format!(" · {all} 项中 {shown} 项含“{filter}”"),
        };
        text::safe(&format!("{} {class} · {mean}{narrowed}", scene.get(what)))
    }
}

impl View for Operators {
    fn scope(&self) -> Scope {
        Scope::List
    }

    fn actions(&self, scene: &Scene<'_>) -> Vec<Action> {
        let len = self.shown(scene).len();
        let mut actions = Vec::new();
        if len > 0 {
            actions.extend([Action::Open, Action::Regroup, Action::Sort, Action::Invert, Action::Copy]);
        } else if !self.filter(scene).is_empty() {
            // What no operator holds a kernel may.
            actions.push(Action::Regroup);
        }
        actions.extend(Rows::actions(len));
        if !scene.search.is_empty() {
            actions.extend([Action::SearchNext, Action::SearchPrevious]);
        }
        actions
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Effect {
        match action {
            Action::Open => return self.instance(scene),
            Action::Regroup => {
                self.rows = Rows::default();
                self.group = match self.group {
                    Group::Operator => Group::Slot,
                    Group::Slot => Group::Layer,
                    Group::Layer => Group::Kernel,
                    Group::Kernel => Group::Operator,
                }
            }
            Action::SearchNext | Action::SearchPrevious => return self.seek(scene, action == Action::SearchNext),
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
                let rows = self.shown(scene);
                let Some(row) = rows.get(self.rows.at) else { return Effect::None };
                return Effect::Copy(clean(&row.work.name));
            }
            action => {
                let len = self.shown(scene).len();
                self.rows.act(action, len);
            }
        }
        Effect::None
    }

    fn point(&mut self, point: Point, scene: &Scene<'_>) -> Effect {
        let len = self.shown(scene).len();
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
        let head = ["name", "operator", "kernel", "busy_ns", "count", "idle_before_ns", "steps", "of_ceiling"]
            .map(str::to_owned)
            .to_vec();
        let row = |row: &Row| {
            let work = &row.work;
            let reached =
                Self::reached(scene, self.group, work).map_or(String::new(), |reached| format!("{reached:.4}"));
            let numbers =
                [work.busy.to_string(), work.count.to_string(), work.idle.to_string(), steps.to_string(), reached];
            [clean(&work.name), work.op.to_owned(), clean(&row.kernel)].into_iter().chain(numbers).collect()
        };
        let rows = self.shown(scene).into_iter().map(row);
        vec![("csv", csv(std::iter::once(head).chain(rows)))]
    }

    fn draw(&mut self, scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
        if self.filter(scene).is_empty() {
            // A search that was left begins anew when it is made again.
            self.filter.clear();
        }
        let rows = self.shown(scene);
        let Some(class) = scene.part().and_then(|part| part.main_class()).filter(|class| class.used > 0) else {
            let none = Text::new("No step that counts was found.", "没有找到可计入统计的步。");
            text::put(buf, (area.x + 1, area.y), scene.get(none), area.width, scene.theme.style(Role::Dim));
            return;
        };
        let head = self.head(scene, &class.key, rows.len());
        text::put(buf, (area.x + 2, area.y), &head, area.width, scene.theme.style(Role::Dim));
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
        let left = |title: Text, width| Column { title: scene.get(title).to_owned(), align: Align::Left, width };
        let mut columns = vec![
            Column {
                title: format!("{}{}", scene.get(Text::new("name", "名称")), mark(By::Name)),
                align: Align::Left,
                // Slots have short names, and their kernels long ones.
                width: if matches!(self.group, Group::Slot | Group::Layer) { 22 } else { 0 },
            },
            number(Text::new("busy", "执行时间"), By::Busy),
            Column { title: scene.get(Text::new("share", "占比")).to_owned(), align: Align::Right, width: 7 },
            number(Text::new("count", "次数"), By::Count),
            number(Text::new("idle before", "之前空闲"), By::Idle),
        ];
        match self.group {
            // Beside the slot, so that it is seen where there is no room for all columns.
            Group::Slot => columns.insert(1, left(Text::new("kernel", "内核"), 0)),
            Group::Layer => {
                columns.insert(1, left(Text::new("kernel", "内核"), 0));
                let title = scene.get(Text::new("× median", "× 中位数")).to_owned();
                columns.insert(3, Column { title, align: Align::Right, width: 9 });
            }
            _ => columns.push(left(Text::new("operator", "算子"), 14)),
        }
        // Only where something was measured: an empty column would say that nothing was reached.
        let group = self.group;
        let is_held = rows.iter().any(|row| Self::reached(scene, group, &row.work).is_some());
        if is_held {
            let title = scene.get(Text::new("of ceiling", "达上限")).to_owned();
            columns.insert(3, Column { title, align: Align::Right, width: 10 });
        }
        let steps = class.used.max(1) as i64;
        let cells = |at: usize| -> Vec<Cell> {
            let Some(Row { work, short, kernel, ratio, .. }) = rows.get(at) else { return Vec::new() };
            let mut cells = vec![
                (text::safe(short), Role::Name),
                (units::time(work.busy / steps), Role::Text),
                (units::share_of(work.busy, class.total), Role::Text),
                (units::tenths(work.count as i64 * 10 / steps), Role::Text),
                (units::time(work.idle / steps), Role::Text),
            ];
            match group {
                Group::Slot => cells.insert(1, (text::safe(kernel), Role::Dim)),
                Group::Layer => {
                    cells.insert(1, (text::safe(kernel), Role::Dim));
                    let ratio = ratio.unwrap_or(1.0);
                    let role = if ratio >= FAR { Role::Warn } else { Role::Text };
                    cells.insert(3, (format!("{ratio:.2}×"), role));
                }
                _ => cells.push((work.op.to_owned(), Role::Dim)),
            }
            if is_held {
                let share = Self::reached(scene, group, work).map_or(String::new(), units::share);
                cells.insert(3, (share, Role::Text));
            }
            cells
        };
        let below = Rect { y: area.y.saturating_add(1), height: area.height.saturating_sub(1), ..area };
        self.body = table::draw(&columns, (&mut self.rows, rows.len()), cells, scene.theme, below, buf);
    }
}
