//! The steps one by one: a curve of their times over a table, to pick the slow ones from, and what the selected one took more
//! or less than the median one.

mod against;

use model::Ns;
use ratatui::{buffer::Buffer, layout::Rect};

use super::{Effect, Place, Point, Scene, View, overview::initial, page::clean};
use crate::tui::{
    action::{Action, Scope},
    export::csv,
    glyph,
    lane::{CounterIndex, Kind},
    text,
    theme::Role,
    widget::{
        rows::Rows,
        table::{self, Cell, Column},
    },
};
use against::Against;
use diagnosis::{
    analysis::{Bucket, Layer, Rank, Selection, Step},
    i18n::Text,
};
use report::{document::Align, sections::words, units};

/// Rows of the curve.
const CURVE: u16 = 3;
/// Width from which there is room to say why a step does not count.
const WIDE: u16 = 110;
/// Width from which the selected step is taken apart beside the table, and height from which it is below it.
const BESIDE: u16 = 194;
const TALL: u16 = 16;
/// Cells beside the table.
const PANEL: u16 = 84;
/// Cells of a step's bar of layers.
const BAR: usize = 16;

/// By what the rows are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum By {
    #[default]
    Index,
    Time,
}

/// What the order of the rows was made for.
type Key = (usize, By, bool, Option<usize>);

/// The table of the steps of a rank.
#[derive(Default)]
pub struct Steps {
    rows: Rows,
    by: By,
    inverted: bool,
    /// The class whose steps alone are shown; all for none.
    class: Option<usize>,
    /// Positions of the steps in the order of the rows, and for which rank, order and class they were made.
    order: Option<(Key, Vec<usize>)>,
    body: Rect,
}

impl Steps {
    fn sort(&mut self, scene: &Scene<'_>, rank: &Rank) {
        self.class = self.class.filter(|class| *class < rank.classes.len());
        let key = (scene.rank, self.by, self.inverted, self.class);
        if self.order.as_ref().is_some_and(|(made, _)| *made == key) {
            return;
        }
        let mut order: Vec<usize> = self.of_class(rank).map(|(at, _)| at).collect();
        if self.by == By::Time {
            let time = |at: &usize| rank.steps.get(*at).map_or(0, |step| step.window.len());
            order.sort_by_key(|at| std::cmp::Reverse(time(at)));
        }
        if self.inverted {
            order.reverse();
        }
        self.order = Some((key, order));
    }

    /// The steps that are shown, with their positions.
    fn of_class<'a>(&self, rank: &'a Rank) -> impl Iterator<Item = (usize, &'a Step)> + use<'a> {
        let class = self.class;
        rank.steps.iter().enumerate().filter(move |(_, step)| class.is_none_or(|class| step.class == class))
    }

    /// Number of rows.
    fn len(&self, scene: &Scene<'_>) -> usize {
        scene.rank().map_or(0, |rank| self.of_class(rank).count())
    }

    fn selected<'a>(&self, scene: &Scene<'a>) -> Option<&'a Step> {
        let (_, order) = self.order.as_ref()?;
        scene.rank()?.steps.get(*order.get(self.rows.at)?)
    }

    /// Draws the selected step against the median one where there is room for it, and returns what room is left.
    fn take_apart(&self, scene: &Scene<'_>, rank: &Rank, area: Rect, buf: &mut Buffer) -> Rect {
        let against = self.selected(scene).and_then(|step| Against::of(rank, step));
        let Some(against) = against.filter(|_| area.height >= TALL) else { return area };
        let (table, panel) = if area.width >= BESIDE {
            let width = area.width - PANEL;
            (Rect { width, ..area }, Rect { x: area.x + width, width: PANEL, ..area })
        } else {
            let height = against.height().min(area.height / 2);
            let table = Rect { height: area.height - height, ..area };
            (table, Rect { y: area.bottom() - height, height, ..area })
        };
        against.draw(scene, panel, buf);
        table
    }

    fn go(&self, scene: &Scene<'_>) -> Effect {
        self.selected(scene).map_or(Effect::None, |step| Effect::Show(Place::Time(step.window)))
    }
}

/// ns of each layer of a step, in the order of [`Layer::ALL`].
fn layers(step: &Step) -> [Ns; 4] {
    Layer::ALL.map(|layer| step.buckets.iter().filter(|(b, _)| Bucket::layer(*b) == layer).map(|(_, ns)| ns).sum())
}

/// A bar of letters, each layer with its share.
fn bar(step: &Step) -> String {
    let total: Ns = step.window.len().max(1);
    let (mut sum, mut out) = (0, String::new());
    for (layer, ns) in Layer::ALL.into_iter().zip(layers(step)) {
        sum += ns;
        let end = (i128::from(sum) * BAR as i128 / i128::from(total)) as usize;
        out.extend(std::iter::repeat_n(initial(layer), end.saturating_sub(out.len())));
    }
    out
}

impl View for Steps {
    fn scope(&self) -> Scope {
        Scope::List
    }

    fn actions(&self, scene: &Scene<'_>) -> Vec<Action> {
        let len = self.len(scene);
        let mut actions = Vec::new();
        if len > 0 {
            actions.extend([Action::Open, Action::Sort, Action::Invert, Action::Copy]);
        }
        if scene.rank().is_some_and(|rank| rank.classes.len() > 1) {
            actions.push(Action::Regroup);
        }
        actions.extend(Rows::actions(len));
        actions
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Effect {
        match action {
            Action::Open => return self.go(scene),
            Action::Invert => self.inverted = !self.inverted,
            Action::Regroup => {
                let classes = scene.rank().map_or(0, |rank| rank.classes.len());
                let next = self.class.map_or(0, |class| class + 1);
                (self.class, self.rows) = ((next < classes).then_some(next), Rows::default());
            }
            Action::Sort => {
                self.by = match self.by {
                    By::Index => By::Time,
                    By::Time => By::Index,
                }
            }
            Action::Copy => {
                let against = scene.rank().zip(self.selected(scene)).and_then(|(rank, step)| Against::of(rank, step));
                let Some((against, analysis)) = against.zip(scene.look.analysis()) else { return Effect::None };
                return Effect::Copy(clean(&against.text(&analysis.host_labels)));
            }
            action => {
                let len = self.len(scene);
                self.rows.act(action, len);
            }
        }
        Effect::None
    }

    fn point(&mut self, point: Point, scene: &Scene<'_>) -> Effect {
        let len = self.len(scene);
        match point {
            Point::Click(x, y) if self.body.contains((x, y).into()) => {
                let before = self.rows.at;
                if self.rows.point(usize::from(y - self.body.y), len) && before == self.rows.at {
                    return self.go(scene);
                }
            }
            Point::Wheel(_, _, up) => self.rows.act(if up { Action::Up } else { Action::Down }, len),
            _ => {}
        }
        Effect::None
    }

    fn export(&self, scene: &Scene<'_>) -> Vec<(&'static str, String)> {
        let Some(rank) = scene.rank() else { return Vec::new() };
        let mut head = vec!["step".to_owned(), "class".to_owned(), "start_ns".to_owned(), "ns".to_owned()];
        head.extend(Layer::ALL.map(|layer| format!("{}_ns", layer.key())));
        head.extend(["to_median_ns".to_owned(), "selection".to_owned()]);
        let median = |class| against::median(rank, class).map(|step| step.window.len());
        let medians: Vec<Option<Ns>> = (0..rank.classes.len()).map(median).collect();
        let row = |step: &Step| {
            let class = rank.classes.get(step.class).map_or(String::new(), |class| clean(&class.key));
            let mut row =
                vec![step.index.to_string(), class, step.window.start.to_string(), step.window.len().to_string()];
            row.extend(layers(step).map(|ns| ns.to_string()));
            let to_median = medians.get(step.class).copied().flatten().map(|median| step.window.len() - median);
            row.extend([to_median.map_or(String::new(), |ns| ns.to_string()), step.selection.key().to_owned()]);
            row
        };
        vec![("csv", csv(std::iter::once(head).chain(rank.steps.iter().map(row))))]
    }

    fn draw(&mut self, scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
        let Some(rank) = scene.rank().filter(|rank| !rank.steps.is_empty()) else {
            let none = Text::new("No device work was found, so there are no steps.", "没有找到设备执行，因此没有步。");
            text::put(buf, (area.x + 1, area.y), scene.get(none), area.width, scene.theme.style(Role::Dim));
            return;
        };
        self.sort(scene, rank);
        let curve_height = if area.height >= 12 { CURVE } else { 0 };
        let times: Vec<f64> = self.of_class(rank).map(|(_, step)| step.window.len() as f64).collect();
        curve(scene, &times, Rect { height: curve_height, ..area }, buf);
        let below = Rect { y: area.y + curve_height, height: area.height - curve_height, ..area };
        let below = self.take_apart(scene, rank, below, buf);
        let mark = |by: By| match (self.by == by, self.inverted) {
            (false, _) => "",
            (true, false) => "▾",
            (true, true) => "▴",
        };
        let column = |title: &str, align, width| Column { title: title.to_owned(), align, width };
        // With several classes the title says whether all are shown: a curve over all is flat where one is slow.
        let class = scene.get(Text::new("class", "类别"));
        let class = match self.class {
            _ if rank.classes.len() < 2 => class.to_owned(),
            None => format!("{class}: {}", scene.get(Text::new("all", "全部"))),
            Some(at) => format!("{class}: {} / {}", at + 1, rank.classes.len()),
        };
        let letters = scene.get(Text::new("layers ORCM", "各层 ORCM"));
        let columns = [
            column(&format!("#{}", mark(By::Index)), Align::Right, 6),
            column(&format!("{}{}", scene.get(Text::new("time", "时间")), mark(By::Time)), Align::Right, 12),
            column(scene.get(Text::new("to median", "相对中位")), Align::Right, 9),
            column(letters, Align::Left, BAR as u16),
            column(&class, Align::Left, 0),
            column(scene.get(Text::new("used", "采用")), Align::Left, if below.width >= WIDE { 43 } else { 24 }),
        ];
        let order = self.order.as_ref().map_or(&[][..], |(_, order)| order);
        let row = |at: usize| -> Vec<Cell> {
            let Some(step) = order.get(at).and_then(|at| rank.steps.get(*at)) else { return Vec::new() };
            let class = rank.classes.get(step.class);
            let median = class.map_or(0, |class| class.p50);
            let ratio = if median > 0 { units::ratio(step.window.len() as f64 / median as f64) } else { "–".into() };
            let steady = step.selection == Selection::Steady;
            let slow = steady && median > 0 && step.window.len() > median + median / 10;
            let role = if steady { Role::Text } else { Role::Dim };
            vec![
                (step.index.to_string(), role),
                (units::time(step.window.len()), role),
                (ratio, if slow { Role::Warn } else { role }),
                (bar(step), role),
                (class.map_or(String::new(), |class| text::safe(&class.key)), role),
                (scene.get(words::selection(step.selection)).to_owned(), role),
            ]
        };
        self.body = table::draw(&columns, (&mut self.rows, order.len()), row, scene.theme, below, buf);
    }
}

/// The times of steps in their order, each column with the slowest of its steps.
fn curve(scene: &Scene<'_>, times: &[f64], area: Rect, buf: &mut Buffer) {
    let index = CounterIndex::new((0..).zip(times.iter().copied()));
    let Some(range) = index.range().filter(|range| area.height > 0 && range.most > 0.0) else { return };
    let width = area.width.min(u16::try_from(times.len()).unwrap_or(u16::MAX)).max(1);
    let mut columns = Vec::new();
    index.columns(model::Span::new(0, times.len() as Ns), width, &mut columns);
    let style = scene.theme.style(Role::Kind(Kind::Matrix));
    for (x, column) in (area.left()..).zip(&columns) {
        let Some(column) = column else { continue };
        let eighths = (column.most / range.most * f64::from(area.height) * 8.0) as i64;
        for line in 0..area.height {
            let part = eighths - i64::from(area.height - 1 - line) * 8;
            let mark = glyph::eighth(part, 8);
            text::put(buf, (x, area.y + line), mark, 1, style);
        }
    }
    let most = units::time(range.most as Ns);
    text::put_right(buf, (area.left(), area.right(), area.y), &most, scene.theme.style(Role::Dim));
}
