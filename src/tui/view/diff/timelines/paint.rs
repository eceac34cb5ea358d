//! How both steps look: a ruler, the lanes of A over those of B, and what is selected below.

use model::{Span, TrackId, TrackKind};
use ratatui::{buffer::Buffer, layout::Rect};
use rustc_hash::FxHashSet;

use super::{super::named, Timelines};
use crate::tui::{
    glyph,
    lane::{Kind, Lane, LaneIndex, Of},
    text,
    theme::Role,
    view::{
        Scene,
        timeline::{detail, paint::Brush, window::tick_labels},
    },
    widget::prose::{self, Line, piece},
};
use diagnosis::{compare::Side, i18n::Text};
use report::{diff::words, kernel_name, units};

/// Cells between two ticks of the ruler.
const APART: u16 = 14;
/// Lines that tell what is selected, with the line above them.
const BELOW: u16 = 4;
/// Operations of a slot that are named.
const NAMED: usize = 2;

/// Whether anything of a lane lies in a stretch of time.
fn touches(index: &LaneIndex, span: Span) -> bool {
    let last = index.first_from(span.end).checked_sub(1);
    last.and_then(|slot| index.span(slot)).is_some_and(|found| found.end > span.start || found.start >= span.start)
}

/// Slices of a host lane that are looked at for calls.
const LOOKED: usize = 2_000;

/// Calls of the runtime on a lane in a stretch of time, as far as they are counted.
fn calls(index: &LaneIndex, span: Span) -> usize {
    let inside = (index.first_from(span.start)..index.first_from(span.end)).take(LOOKED);
    inside.filter(|slot| matches!(index.kind(*slot), Some(Kind::Launch | Kind::Sync))).count()
}

/// The lanes of a rank in a step: what the device does, why it does nothing, and where the host calls it. Frames around these
/// calls say nothing of the difference of two steps and stand behind them; threads that never call are left out.
fn lanes<'a>(scene: &Scene<'a>, rank: usize, step: Span) -> Vec<&'a Lane> {
    let set = scene.look.lanes;
    let group = set.groups.iter().find(|group| group.rank.is_some_and(|(at, _)| at == rank));
    let own = group.and_then(|group| set.lanes.get(group.lanes.clone())).unwrap_or(&[]);
    let seen = own.iter().filter(|lane| lane.slices().is_some_and(|index| touches(index, step)));
    let counted: Vec<(&Lane, usize)> =
        seen.map(|lane| (lane, lane.slices().map_or(0, |index| calls(index, step)))).collect();
    let callers: FxHashSet<TrackId> = counted
        .iter()
        .filter_map(|(lane, calls)| match lane.of {
            Of::Track(track, _) if *calls > 0 => Some(track),
            _ => None,
        })
        .collect();
    let order = |lane: &Lane, calls: usize| match lane.of {
        Of::Track(track, depth) => {
            let kind = scene.look.trace.tracks.get(track.0 as usize).map(|track| track.key.kind);
            match kind {
                Some(TrackKind::DeviceQueue) if depth == 0 => Some((0, 0)),
                Some(TrackKind::HostThread) if calls > 0 => Some((4, LOOKED.saturating_sub(calls))),
                Some(TrackKind::HostThread) if callers.contains(&track) => Some((5, usize::from(depth))),
                _ => None,
            }
        }
        Of::Idle(_) => Some((1, 0)),
        Of::Replays(_) => Some((2, 0)),
        Of::Collectives(_) => Some((2, 1)),
        Of::Copies(_) => Some((3, 0)),
        Of::Steps(_) | Of::Counter(_) => None,
    };
    let mut lanes: Vec<((u8, usize), &Lane)> =
        counted.iter().filter_map(|(lane, calls)| Some((order(lane, *calls)?, *lane))).collect();
    lanes.sort_by_key(|(order, _)| *order);
    lanes.into_iter().map(|(_, lane)| lane).collect()
}

impl Timelines {
    pub(super) fn paint(&mut self, scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
        let (Some(pair), Some(window)) = (&self.pair, self.window) else {
            let none = Text::new("No step of both sides counts.", "两侧没有可采用的步。");
            text::put(buf, (area.x + 1, area.y), scene.get(none), area.width, scene.theme.style(Role::Dim));
            return;
        };
        if area.height < 3 {
            return;
        }
        let labels = (area.width / 5).clamp(8, 24).min(area.width / 2);
        let below = if area.height >= 12 { BELOW } else { 0 };
        let plot =
            Rect { x: area.x + labels, y: area.y + 1, width: area.width - labels, height: area.height - 1 - below };
        let dim = scene.theme.style(Role::Dim);
        let range = units::time(window.span.len());
        text::put(buf, (area.x + 1, area.y), &range, labels.saturating_sub(2), scene.theme.style(Role::Strong));
        let ticks = window.ticks(plot.width, APART);
        for (t, label) in ticks.iter().copied().zip(tick_labels(&ticks)) {
            if let Some(column) = window.column(t, plot.width) {
                let label = format!("{}{label}", glyph::BAR);
                let most = plot.width.saturating_sub(column).min(APART - 1);
                text::put(buf, (plot.x + column, area.y), &label, most, dim);
            }
        }
        let shifts = self.shifts();
        let half = plot.height.div_ceil(2);
        self.plot = plot;
        self.split = plot.y + half;
        for (side, shift) in shifts.into_iter().enumerate() {
            let (y, height) = if side == 0 { (plot.y, half) } else { (plot.y + half, plot.height - half) };
            let part = Rect { x: area.x, y, width: area.width, height };
            let of = pair.side(side);
            let start = of.window.start.saturating_add(shift);
            let seen = Span::new(window.span.start.saturating_add(start), window.span.end.saturating_add(start));
            self.side(scene, side, (part, labels), seen, buf);
        }
        if below > 0 {
            let line = Rect { y: area.bottom() - below, height: below, ..area };
            text::fill(buf, (line.x, line.y), line.width, glyph::LINE, dim);
            let inner = Rect { x: line.x + 1, y: line.y + 1, width: line.width.saturating_sub(2), height: below - 1 };
            prose::draw(&self.told(scene), 0, scene.theme, inner, buf);
        }
    }

    /// The step of one side: its head and as many lanes as there is room for.
    fn side(&self, scene: &Scene<'_>, side: usize, (part, labels): (Rect, u16), seen: Span, buf: &mut Buffer) {
        let (Some(pair), Some(beside)) = (&self.pair, scene.beside) else { return };
        let Some(look) = beside.sides.get(side).copied() else { return };
        if part.height == 0 {
            return;
        }
        let of = pair.side(side);
        let own = Scene { look, rank: of.rank, ..*scene };
        let lanes = lanes(&own, of.rank, of.window);
        let letter = Side::BOTH.get(side).map_or("", |side| side.letter());
        let mark = if side == self.side { glyph::POINTER } else { " " };
        let name = beside.report.heads.get(side).map_or(String::new(), named);
        let place = format!("{}/{}", pair.at + 1, pair.count);
        let step = scene.get(Text::new("step", "步"));
        let head =
            format!("{mark}{letter} {step} {} ({place}) · {} · {name}", of.index, units::exact_ns(of.window.len()));
        let style = scene.theme.style(if side == self.side { Role::Strong } else { Role::Title });
        text::put(buf, (part.x, part.y), &head, part.width, style);
        let room = usize::from(part.height - 1);
        if lanes.len() > room {
            let more = format!(" ↓ {} ", lanes.len() - room);
            text::put_right(buf, (part.x, part.right(), part.y), &more, scene.theme.style(Role::Dim));
        }
        let marked: Vec<usize> = match side == self.side {
            true => self.op.into_iter().chain(self.counterparts(side)).collect(),
            false => self.counterparts(side),
        };
        for (lane, y) in lanes.into_iter().zip(part.y + 1..part.bottom()) {
            let label = label(&own, lane);
            text::put(buf, (part.x + 1, y), &label, labels.saturating_sub(2), scene.theme.style(Role::Text));
            let row = Rect { x: part.x + labels, y, width: part.width - labels, height: 1 };
            let Some(index) = lane.slices() else { continue };
            let brush = Brush { theme: scene.theme, window: seen, selected: None };
            brush.slices(index, |slot| detail::name(&own, lane, slot), row, buf);
            bounds(scene, of.window, seen, row, buf);
            for op in &marked {
                if let Some(span) = self.on(&own, side, *op, lane) {
                    brush.select(span, row, buf);
                }
            }
        }
    }

    /// When an operation is, if it is drawn on this lane.
    fn on(&self, scene: &Scene<'_>, side: usize, op: usize, lane: &Lane) -> Option<Span> {
        let pair = self.pair.as_ref()?;
        let of = pair.side(side);
        let rank = scene.look.analysis()?.ranks.get(of.rank)?;
        let found = rank.timeline.ops.get(of.ops.start.checked_add(op)?)?;
        let (track, _) = scene.look.trace.locate(found.slice)?;
        matches!(lane.of, Of::Track(of, 0) if of == track).then_some(Span::new(found.start, found.end))
    }

    /// What is selected, and what corresponds to it.
    pub(super) fn told(&self, scene: &Scene<'_>) -> Vec<Line> {
        let difference = scene.beside.and_then(|beside| beside.report.difference.as_ref());
        let Some(((pair, op), difference)) = self.pair.as_ref().zip(self.op).zip(difference) else {
            return Vec::new();
        };
        let Some(place) = pair.side(self.side).place(op) else { return Vec::new() };
        let slot = difference.alignment.slots.get(place.slot as usize);
        let mut head = vec![piece(format!("{} ", scene.get(Text::new("slot", "槽位"))), Role::Dim)];
        head.push(piece(slot.map_or(String::new(), |slot| text::safe(&slot.key())), Role::Name));
        if let Some(layer) = place.layer {
            head.push(piece(format!(" · {} {layer}", scene.get(Text::new("layer", "层"))), Role::Text));
        }
        head.push(piece(format!(" · {}", scene.get(words::moved(slot.and_then(|slot| slot.by)))), Role::Strong));
        if self.follows {
            head.push(piece(format!(" · {}", scene.get(Text::new("followed", "跟随"))), Role::Warn));
        }
        let mut out = vec![head];
        for side in [0, 1] {
            let ops = if side == self.side { vec![op] } else { self.counterparts(side) };
            out.push(self.told_of(scene, side, &ops));
        }
        out
    }

    /// The operations of one side in a line.
    fn told_of(&self, scene: &Scene<'_>, side: usize, ops: &[usize]) -> Line {
        let letter = Side::BOTH.get(side).map_or("", |side| side.letter());
        let mut line = vec![piece(format!("{letter} "), Role::Strong)];
        let (Some(pair), Some(look)) = (&self.pair, scene.beside.and_then(|beside| beside.sides.get(side).copied()))
        else {
            return line;
        };
        let from = scene.get(Text::new("from", "开始"));
        let lasts = scene.get(Text::new("for", "时长"));
        for op in ops.iter().take(NAMED) {
            let name = pair.slice(scene, side, *op).and_then(|id| detail::slice_name(look.trace, id)).unwrap_or("");
            line.push(piece(text::safe(&kernel_name::short(name)), Role::Name));
            if let Some(span) = pair.span(side, *op) {
                line.push(piece(
                    format!(" {from} {} {lasts} {}  ", units::exact_ns(span.start), units::exact_ns(span.len())),
                    Role::Text,
                ));
            }
        }
        match ops.len() {
            0 => line.push(piece(scene.get(Text::new("has nothing in this place", "该位置没有操作")), Role::Warn)),
            n if n > NAMED => line.push(piece(format!("+{}", n - NAMED), Role::Dim)),
            _ => {}
        }
        line
    }
}

/// Marks where a step begins and ends on a lane: what lies beside it is another step's, and stands back.
fn bounds(scene: &Scene<'_>, step: Span, seen: Span, row: Rect, buf: &mut Buffer) {
    let column = |t: i64| {
        let part = i128::from(t.saturating_sub(seen.start)) * i128::from(row.width);
        (part / i128::from(seen.len().max(1))).clamp(0, i128::from(row.width)) as u16
    };
    let (from, to) = (column(step.start), column(step.end));
    let dim = scene.theme.style(Role::Dim);
    buf.set_style(Rect { width: from, ..row }, dim);
    buf.set_style(Rect { x: row.x + to, width: row.width - to, ..row }, dim);
    if to < row.width {
        text::put(buf, (row.x + to, row.y), glyph::BAR, 1, scene.theme.style(Role::Strong));
    }
}

/// Name of a lane.
fn label(scene: &Scene<'_>, lane: &Lane) -> String {
    let what = lane.what.map_or("", |what| scene.get(what));
    if lane.depth() > 0 {
        return format!("  · {} {}", lane.depth(), text::safe(&lane.name));
    }
    if lane.name.starts_with("thread ") {
        return text::safe(&lane.name);
    }
    format!("{what} {}", text::safe(&lane.name)).trim_end().to_owned()
}
