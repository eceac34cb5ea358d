//! Which rows the timeline has, and how they are laid out on the screen: a ruler with the steps, groups of lanes under their
//! heads, and what is selected below.

use model::{Span, TrackId};
use ratatui::{buffer::Buffer, layout::Rect};
use rustc_hash::FxHashSet;

use super::{Timeline, detail, paint::Brush, window::tick_labels};
use crate::tui::{
    glyph,
    lane::{Kind, Lane, LaneSet, Of, Shape},
    text,
    theme::Role,
    view::Scene,
    widget::prose,
};
use diagnosis::i18n::Text;
use report::{timeline::aligned, units};

/// Nested lanes that a track shows while it is not expanded.
pub const COLLAPSED: u16 = 2;
/// Lines that say what is selected, with the line above them.
const DETAIL: u16 = 4;
/// Cells between two ticks of the ruler.
const APART: u16 = 14;

/// A row of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// The head of a group.
    Head(usize),
    /// A lane.
    Lane(usize),
    /// Frames around the window, under the name of a thread's first lane.
    Outer(usize),
}

impl Row {
    /// The lane, if it is one.
    pub fn lane(&self) -> Option<usize> {
        match self {
            Self::Lane(lane) => Some(*lane),
            Self::Head(_) | Self::Outer(_) => None,
        }
    }
}

/// Nested lanes of it that are shown.
pub fn shown_depths(track: TrackId, open: &FxHashSet<TrackId>) -> u16 {
    if open.contains(&track) { u16::MAX } else { COLLAPSED }
}

/// All rows in their order.
pub fn all(set: &LaneSet, open: &FxHashSet<TrackId>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (group, head) in set.groups.iter().zip(0..) {
        rows.push(Row::Head(head));
        let shown = group.lanes.clone().filter(|i| match set.lanes.get(*i).map(|lane| lane.of) {
            Some(Of::Track(track, depth)) => depth < shown_depths(track, open),
            _ => true,
        });
        rows.extend(shown.map(Row::Lane));
    }
    rows
}

impl Timeline {
    /// The rows that are shown.
    pub(super) fn rows(&self, scene: &Scene<'_>) -> Vec<Row> {
        self.evidence.as_ref().map_or_else(|| all(scene.look.lanes, &self.open), |evidence| evidence.focus.rows.clone())
    }

    pub(super) fn paint(&mut self, scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
        let Some(window) = self.window.filter(|_| !scene.look.lanes.lanes.is_empty()) else {
            let none = Text::new("The capture holds no slices.", "采集中没有切片。");
            text::put(buf, (area.x + 1, area.y), scene.get(none), area.width, scene.theme.style(Role::Dim));
            return;
        };
        let labels = (area.width / 4).clamp(10, 28).min(area.width / 2);
        let detail = if area.height >= 14 { DETAIL } else { 0 };
        let plot_x = area.x + labels;
        let width = area.width.saturating_sub(labels);
        let ruler = Rect { x: plot_x, width, height: 1, ..area };
        self.ruler(scene, ruler, buf);
        let top = area.y.saturating_add(2).min(area.bottom());
        self.plot = Rect { x: plot_x, y: top, width, height: area.bottom().saturating_sub(top + detail) };
        self.steps(scene, Rect { y: area.y + 1, height: 1, x: area.x, width: area.width }, labels, buf);
        // Who leaves the lanes of the evidence sees all lanes.
        let here = Row::Lane(self.lane);
        self.evidence.take_if(|evidence| !evidence.focus.rows.contains(&here));
        let rows = self.rows(scene);
        let at = rows.iter().position(|row| row.lane() == Some(self.lane)).unwrap_or(0);
        let height = usize::from(self.plot.height);
        // The head of the first group stays in sight as long as its first lane is selected.
        self.top =
            self.top.clamp((at + 1).saturating_sub(height), at.saturating_sub(1).max((at + 1).saturating_sub(height)));
        self.top = self.top.min(rows.len().saturating_sub(height));
        self.drawn = rows.iter().skip(self.top).take(height).copied().collect();
        for (row, y) in self.drawn.iter().zip(self.plot.y..) {
            let line = Rect { x: area.x, y, width: area.width, height: 1 };
            match row {
                Row::Head(group) => self.head(scene, *group, line, buf),
                Row::Lane(lane) => self.row(scene, *lane, window.span, (line, labels), buf),
                Row::Outer(lane) => self.outer(scene, *lane, (line, labels), buf),
            }
        }
        let hidden = rows.len().saturating_sub(self.top + height);
        if detail > 0 {
            let below = Rect { y: area.bottom() - detail, height: detail, ..area };
            self.below(scene, below, hidden, buf);
        }
    }

    /// Times over the lanes, the marks, and the cursor.
    fn ruler(&self, scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
        let Some(window) = &self.window else { return };
        let dim = scene.theme.style(Role::Dim);
        let cursor = window.column(self.cursor, area.width);
        let marked = self.bookmarks.iter().map(|(t, _)| t).chain(&self.marks);
        let standing: Vec<u16> = marked.filter_map(|t| window.column(*t, area.width)).chain(cursor).collect();
        let ticks = window.ticks(area.width, APART);
        let labels = tick_labels(&ticks.iter().map(|t| window.since_start(*t)).collect::<Vec<_>>());
        for (t, label) in ticks.into_iter().zip(labels) {
            if let Some(column) = window.column(t, area.width) {
                let label = format!("{}{label}", glyph::BAR);
                let most = area.width.saturating_sub(column).min(APART - 1);
                // A label that the cursor or a mark would stand in says a wrong time: its line alone is drawn.
                let covers = |at: &u16| *at > column && usize::from(*at - column) < text::width(&label);
                let covered = standing.iter().any(covers);
                let most = if covered { 1 } else { most };
                let label = if covered { glyph::BAR.to_owned() } else { label };
                text::put(buf, (area.x + column, area.y), &label, most, dim);
            }
        }
        for (t, _) in &self.bookmarks {
            if let Some(column) = window.column(*t, area.width) {
                text::put(buf, (area.x + column, area.y), "*", 1, scene.theme.style(Role::Warn));
            }
        }
        for (mark, name) in self.marks.iter().zip(["A", "B"]) {
            if let Some(column) = window.column(*mark, area.width) {
                text::put(buf, (area.x + column, area.y), name, 1, scene.theme.style(Role::Match));
            }
        }
        if let Some(column) = cursor {
            text::put(buf, (area.x + column, area.y), glyph::CURSOR, 1, scene.theme.style(Role::Strong));
        }
    }

    /// The steps of the selected lane's rank under the ruler, and what was measured beside them.
    fn steps(&self, scene: &Scene<'_>, line: Rect, labels: u16, buf: &mut Buffer) {
        let Some(window) = &self.window else { return };
        let label = match self.marks.as_slice() {
            [a, b] => format!("A→B {}", units::time(b.abs_diff(*a).min(i64::MAX as u64) as i64)),
            [_] => scene.get(Text::new("mark A is set", "已设标记 A")).to_owned(),
            _ => units::time(window.span.len()),
        };
        text::put(buf, (line.x + 1, line.y), &label, labels.saturating_sub(2), scene.theme.style(Role::Strong));
        let set = scene.look.lanes;
        let group = set.groups.iter().find(|group| group.lanes.contains(&self.lane));
        let rank = group.and_then(|group| group.rank).map_or(scene.rank, |(at, _)| at);
        let Some(lane) = set.position(Of::Steps(rank)).and_then(|at| set.lanes.get(at)) else { return };
        let row = Rect { x: line.x + labels, width: line.width.saturating_sub(labels), ..line };
        self.lane_row(scene, lane, None, window.span, row, buf);
    }

    fn head(&self, scene: &Scene<'_>, group: usize, line: Rect, buf: &mut Buffer) {
        let group = scene.look.lanes.groups.get(group);
        let clock = group.and_then(|group| group.clock).map_or(String::new(), |clock| aligned(&clock, scene.lang));
        let title = match group.and_then(|group| group.rank) {
            Some((_, rank)) => {
                let devices = scene.look.trace.devices.iter();
                let device =
                    devices.filter(|d| d.process == rank.process && d.ordinal == rank.device).find_map(|d| d.name);
                let name = device.map_or(String::new(), |name| format!(" · {}", scene.look.trace.strings.get(name)));
                let word = scene.get(Text::new("device", "设备"));
                format!("rank {} · {word} {}{}{clock}", rank.rank, rank.device, text::safe(&name))
            }
            None => scene.get(Text::new("of no rank", "不属于任何 rank")).to_owned(),
        };
        text::put(
            buf,
            (line.x, line.y),
            &format!("{} {title}", glyph::OPEN),
            line.width,
            scene.theme.style(Role::Title),
        );
    }

    fn row(&self, scene: &Scene<'_>, at: usize, window: Span, (line, labels): (Rect, u16), buf: &mut Buffer) {
        let Some(lane) = scene.look.lanes.lanes.get(at) else { return };
        let selected = at == self.lane;
        let style = scene.theme.style(if selected { Role::Strong } else { Role::Text });
        let label = self.label(scene, lane);
        if selected {
            text::put(buf, (line.x, line.y), glyph::POINTER, 1, style);
        }
        text::put(buf, (line.x + 1, line.y), &label, labels.saturating_sub(2), style);
        let row = Rect { x: line.x + labels, width: line.width.saturating_sub(labels), ..line };
        self.lane_row(scene, lane, self.slot.filter(|_| selected), window, row, buf);
        if selected {
            buf.set_style(Rect { width: labels.saturating_sub(1), ..line }, scene.theme.style(Role::Selected));
        }
    }

    /// The frames around the window: the innermost of them as far as there is room.
    fn outer(&self, scene: &Scene<'_>, at: usize, (line, labels): (Rect, u16), buf: &mut Buffer) {
        let dim = scene.theme.style(Role::Dim);
        if let Some(lane) = scene.look.lanes.lanes.get(at) {
            text::put(buf, (line.x + 1, line.y), &self.label(scene, lane), labels.saturating_sub(2), dim);
        }
        let room = usize::from(line.width.saturating_sub(labels));
        let names = self.evidence.as_ref().map_or(&[][..], |evidence| &evidence.focus.outer);
        let mut path = String::new();
        for (left, name) in (0..names.len()).zip(names).rev() {
            let name = text::safe(scene.look.trace.strings.get(*name));
            let longer = if path.is_empty() { name } else { format!("{name} › {path}") };
            if text::width(&longer) + if left > 0 { 4 } else { 0 } > room {
                path = if path.is_empty() { text::fit(&longer, room).into_owned() } else { format!("… › {path}") };
                break;
            }
            path = longer;
        }
        text::put(buf, (line.x + labels, line.y), &path, room as u16, dim);
    }

    /// Name of a lane; a nested one has none of its own.
    fn label(&self, scene: &Scene<'_>, lane: &Lane) -> String {
        let name = text::safe(&lane.name);
        match (lane.what, lane.depth()) {
            (_, depth @ 1..) => format!("  · {depth}"),
            (Some(what), _) if name.is_empty() => scene.get(what).to_owned(),
            (what, _) => {
                let hidden = match lane.of {
                    Of::Track(track, _) if !self.open.contains(&track) => {
                        scene.look.lanes.depths(track).saturating_sub(COLLAPSED)
                    }
                    _ => 0,
                };
                let more = if hidden > 0 { format!(" +{hidden}") } else { String::new() };
                let what = what.map_or("", |what| scene.get(what));
                format!("{what} {name}{more}").trim_start().to_owned()
            }
        }
    }

    fn lane_row(
        &self,
        scene: &Scene<'_>,
        lane: &Lane,
        selected: Option<usize>,
        window: Span,
        row: Rect,
        buf: &mut Buffer,
    ) {
        let brush = Brush { theme: scene.theme, window, selected };
        match &lane.shape {
            Shape::Slices(index) => brush.slices(index, |slot| detail::name(scene, lane, slot), row, buf),
            Shape::Samples(counter) => brush.samples(counter, row, buf),
        }
    }

    /// The legend, and what is selected.
    fn below(&self, scene: &Scene<'_>, area: Rect, hidden: usize, buf: &mut Buffer) {
        let dim = scene.theme.style(Role::Dim);
        text::fill(buf, (area.x, area.y), area.width, glyph::LINE, dim);
        let mut x = area.x + 1;
        for kind in Kind::ALL {
            let name = scene.get(kind.text());
            let needed = text::width(name) as u16 + 4;
            if x + needed > area.right().saturating_sub(10) {
                text::put(buf, (x, area.y), " …", 2, dim);
                x += 2;
                break;
            }
            let letter = kind.letter().to_string();
            let mark = if scene.theme.is_mono() { letter.as_str() } else { glyph::SOLID };
            x += text::put(buf, (x, area.y), &format!(" {mark}"), 2, scene.theme.style(Role::Kind(kind)));
            x += text::put(buf, (x, area.y), &format!(" {name}"), needed, dim);
        }
        if hidden > 0 {
            text::put_right(buf, (x, area.right(), area.y), &format!(" ↓ {hidden} "), dim);
        }
        let zero = Self::zero(scene);
        let inner = Rect { x: area.x + 1, y: area.y + 1, width: area.width.saturating_sub(2), height: area.height - 1 };
        let lane = self.lane(scene);
        let lines = match (lane, self.slot) {
            (Some(lane), Some(slot)) => Some(detail::lines(scene, lane, slot, zero)),
            (Some(lane), None) if lane.slices().is_none() => Some(detail::sample(scene, lane, self.cursor)),
            _ => None,
        };
        match lines {
            Some(lines) => prose::draw(&lines, 0, scene.theme, inner, buf),
            None => {
                let none = Text::new("No slice of this lane is near the cursor.", "该泳道在光标附近没有切片。");
                text::put(buf, (inner.x, inner.y), scene.get(none), inner.width, dim);
            }
        }
    }
}
