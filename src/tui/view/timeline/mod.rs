//! The timeline: every lane of the capture over one stretch of time. It holds what is seen, where the cursor is and which
//! slice is selected; [`window`] does the arithmetic of time, [`paint`] draws lanes, [`detail`] says what is selected, [`seek`]
//! finds what comes next, [`evidence`] walks through what a finding rests on with the lanes that [`focus`] chooses, `marks` measures,
//! and [`stay`] keeps the place when lanes are added.

pub(super) mod detail;
mod evidence;
pub mod focus;
mod link;
mod marks;
mod matches;
pub(super) mod paint;
pub mod rows;
mod seek;
mod stay;
pub mod window;

use model::{Ns, Span, TrackId};
use ratatui::{buffer::Buffer, layout::Rect};
use rustc_hash::FxHashSet;

use super::{Effect, Place, Point, Scene, View, page::clean};
use crate::tui::{
    action::{Action, Scope},
    export::picture,
    lane::{Lane, LaneIndex, Of},
    opened::Look,
    widget::prose::{self, Line},
};
use diagnosis::i18n::Text;
use evidence::Evidence;
use report::svg;
use rows::Row;
use window::Window;

/// Said when a search finds nothing further.
pub const NOT_FOUND: Text = Text::new("no further match", "没有更多匹配");

/// State of the timeline.
#[derive(Default)]
pub struct Timeline {
    window: Option<Window>,
    cursor: Ns,
    /// The lane that is selected, by its position in the set, and its slice.
    lane: usize,
    slot: Option<usize>,
    /// Tracks whose nested lanes are all shown.
    open: FxHashSet<TrackId>,
    marks: Vec<Ns>,
    /// Places to come back to: the lane and the time of the cursor, in the order of time.
    bookmarks: Vec<(Ns, usize)>,
    top: usize,
    /// Where the lanes were drawn, without their labels, and what each row was.
    plot: Rect,
    drawn: Vec<Row>,
    named: matches::Named,
    /// What is walked through, while only its lanes are shown.
    evidence: Option<Evidence>,
}

impl Timeline {
    fn lane<'a>(&self, scene: &Scene<'a>) -> Option<&'a Lane> {
        scene.look.lanes.lanes.get(self.lane)
    }

    fn slices<'a>(&self, scene: &Scene<'a>) -> Option<&'a LaneIndex> {
        self.lane(scene)?.slices()
    }

    /// The selected slice's time.
    fn selected(&self, scene: &Scene<'_>) -> Option<Span> {
        self.slices(scene)?.span(self.slot?)
    }

    /// Where the capture's time begins.
    fn zero(scene: &Scene<'_>) -> Ns {
        scene.look.lanes.extent.map_or(0, |extent| extent.start)
    }

    /// What is seen, all of the capture at first.
    fn window(&mut self, scene: &Scene<'_>) -> &mut Window {
        let extent = scene.look.lanes.extent.unwrap_or(Span::new(0, 1));
        if self.window.is_none() {
            self.cursor = extent.start;
            // Begins with work of the device, not with the first thread of the host.
            let device = scene.look.lanes.lanes.iter().position(|lane| match lane.of {
                Of::Track(track, _) => {
                    let tracks = &scene.look.trace.tracks;
                    tracks.get(track.0 as usize).is_some_and(|t| t.key.kind == model::TrackKind::DeviceQueue)
                }
                _ => false,
            });
            self.lane = device.unwrap_or(0);
            // Its first slice is looked at, so that there is something to read.
            if let Some(first) = self.slices(scene).and_then(|index| index.span(0)) {
                (self.slot, self.cursor) = (Some(0), first.start);
            }
        }
        self.window.get_or_insert_with(|| Window::all(extent))
    }

    /// Selects a slice and shows where it begins.
    fn select(&mut self, scene: &Scene<'_>, lane: usize, slot: usize) {
        let Some(span) = scene.look.lanes.lanes.get(lane).and_then(|l| l.slices()?.span(slot)) else { return };
        self.window(scene).reveal(span.start);
        (self.lane, self.slot, self.cursor) = (lane, Some(slot), span.start);
        if let Some(Of::Track(track, depth)) = scene.look.lanes.lanes.get(lane).map(|lane| lane.of)
            && depth >= rows::shown_depths(track, &self.open)
        {
            self.open.insert(track);
        }
    }

    /// Selects what lies at the cursor on another lane.
    fn enter(&mut self, scene: &Scene<'_>, lane: usize) {
        self.lane = lane;
        let near = self.slices(scene).and_then(|index| Some((index.near(self.cursor)?, index)));
        let seen = self.window(scene).span;
        self.slot = near
            .filter(|(slot, index)| index.span(*slot).is_some_and(|s| s.start < seen.end && s.end >= seen.start))
            .map(|(slot, _)| slot);
    }

    fn step_lane(&mut self, scene: &Scene<'_>, by: isize) {
        let lanes: Vec<usize> = self.rows(scene).iter().filter_map(Row::lane).collect();
        let at = lanes.iter().position(|lane| *lane == self.lane).unwrap_or(0);
        let next = at.saturating_add_signed(by).min(lanes.len().saturating_sub(1));
        if let Some(lane) = lanes.get(next) {
            self.enter(scene, *lane);
        }
    }

    fn step_group(&mut self, scene: &Scene<'_>, forward: bool) {
        let groups = &scene.look.lanes.groups;
        let at = groups.iter().position(|group| group.lanes.contains(&self.lane)).unwrap_or(0);
        let next = if forward { (at + 1).min(groups.len().saturating_sub(1)) } else { at.saturating_sub(1) };
        if let Some(first) = groups.get(next).map(|group| group.lanes.start) {
            self.enter(scene, first);
        }
    }

    fn step_slice(&mut self, scene: &Scene<'_>, forward: bool) -> Effect {
        let Some(index) = self.slices(scene) else { return Effect::None };
        let next = match (self.slot, forward) {
            (Some(slot), true) => slot + 1,
            (Some(slot), false) => match slot.checked_sub(1) {
                Some(before) => before,
                None => return Effect::None,
            },
            (None, true) => index.first_from(self.cursor),
            (None, false) => index.first_from(self.cursor).saturating_sub(1),
        };
        if next < index.len() {
            self.select(scene, self.lane, next);
        }
        Effect::None
    }

    fn show_span(&mut self, scene: &Scene<'_>, span: Span) {
        let span = scene.look.lanes.aligned(scene.rank, span);
        self.window(scene).fit(span);
        self.cursor = span.start;
        let lanes = &scene.look.lanes;
        if let Some(lane) = lanes.position(Of::Steps(scene.rank)) {
            self.enter(scene, lane);
            let slot = self.slices(scene).map(|index| index.first_from(span.start));
            self.slot = slot.or(self.slot);
        }
    }

    /// Text of the selected slice for the clipboard.
    fn text(&self, scene: &Scene<'_>) -> Option<String> {
        let lane = self.lane(scene)?;
        let lines = detail::lines(scene, lane, self.slot?, Self::zero(scene));
        Some(clean(&lines.iter().map(prose::plain).collect::<Vec<_>>().join("\n")))
    }

    fn follow(&mut self, scene: &Scene<'_>) -> Effect {
        let id = self.lane(scene).zip(self.slot).and_then(|(lane, slot)| detail::slice(scene, lane, slot));
        let found = id.and_then(|id| detail::linked(scene, id));
        match found.and_then(|id| scene.look.lanes.find(scene.look.trace, id)) {
            Some((lane, slot)) => {
                self.select(scene, lane, slot);
                Effect::None
            }
            None => {
                Effect::Say(scene.get(Text::new("no launch is recorded for it", "没有记录与之关联的下发")).to_owned())
            }
        }
    }

    fn pan(&mut self, scene: &Scene<'_>, parts: (i64, i64)) {
        let window = self.window(scene);
        window.pan(parts.0, parts.1);
        let seen = window.span;
        self.cursor = self.cursor.clamp(seen.start, seen.end.saturating_sub(1));
    }

    /// The lane and the time under a cell of the screen.
    fn under(&mut self, scene: &Scene<'_>, x: u16, y: u16) -> Option<(usize, Ns)> {
        let row = self.drawn.get(usize::from(y.checked_sub(self.plot.y)?))?.lane()?;
        let plot = self.plot;
        let column = x.checked_sub(plot.x)?;
        (column < plot.width).then(|| (row, self.window(scene).at(column, plot.width)))
    }
}

impl View for Timeline {
    fn scope(&self) -> Scope {
        Scope::Timeline
    }

    fn actions(&self, scene: &Scene<'_>) -> Vec<Action> {
        use Action::*;
        if scene.look.lanes.lanes.is_empty() {
            return Vec::new();
        }
        let mut actions = vec![ZoomIn, ZoomOut, Left, Right, Down, Up];
        if self.evidence.is_some() {
            actions.splice(0..0, [SearchNext, SearchPrevious, ZoomAll]);
        } else if !scene.search.is_empty() {
            actions.extend([SearchNext, SearchPrevious, Matches]);
        }
        if self.lane(scene).is_some_and(|lane| lane.slices().is_some()) {
            actions.extend([NextSlice, PreviousSlice]);
        }
        let of = self.lane(scene).map(|lane| lane.of);
        if self.slot.is_some() {
            actions.push(ZoomFit);
            if !matches!(of, Some(Of::Steps(_))) {
                actions.extend([Follow, NextSame, PreviousSame]);
            }
            actions.push(Copy);
        }
        actions.extend([ZoomAll, Costliest, CopyLink, Mark, NextGap, PreviousGap, NextStep, PreviousStep, Bookmark]);
        if !self.bookmarks.is_empty() {
            actions.extend([NextBookmark, PreviousBookmark]);
        }
        if let Some(Of::Track(track, _)) = of
            && scene.look.lanes.depths(track) > rows::COLLAPSED
        {
            actions.push(Expand);
        }
        actions.extend([FarLeft, FarRight, NextGroup, PreviousGroup, PageDown, PageUp, Top, Bottom]);
        actions
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Effect {
        let width = self.plot.width.max(1);
        let cursor = self.cursor;
        self.window(scene);
        match action {
            Action::Left => self.pan(scene, (-1, 4)),
            Action::Right => self.pan(scene, (1, 4)),
            Action::FarLeft => self.pan(scene, (-1, 1)),
            Action::FarRight => self.pan(scene, (1, 1)),
            Action::ZoomIn => self.window(scene).zoom(cursor, (1, 2), width),
            Action::ZoomOut => self.window(scene).zoom(cursor, (2, 1), width),
            Action::ZoomAll => {
                self.evidence = None;
                self.window = Some(Window::all(scene.look.lanes.extent.unwrap_or(Span::new(0, 1))));
            }
            Action::Matches => return self.list(scene),
            Action::CopyLink => return Effect::Link(self.here(scene)),
            Action::Costliest => return self.show_costliest(scene),
            Action::ZoomFit => {
                if let Some(span) = self.selected(scene) {
                    self.window(scene).fit(span);
                }
            }
            Action::Down => self.step_lane(scene, 1),
            Action::Up => self.step_lane(scene, -1),
            Action::PageDown => self.step_lane(scene, isize::from(self.plot.height as i16).max(2) - 1),
            Action::PageUp => self.step_lane(scene, 1 - isize::from(self.plot.height as i16).max(2)),
            Action::NextGroup => self.step_group(scene, true),
            Action::PreviousGroup => self.step_group(scene, false),
            Action::NextSlice => return self.step_slice(scene, true),
            Action::PreviousSlice => return self.step_slice(scene, false),
            Action::Top | Action::Bottom => {
                if let Some(last) = self.slices(scene).and_then(|index| index.len().checked_sub(1)) {
                    self.select(scene, self.lane, if action == Action::Top { 0 } else { last });
                }
            }
            Action::NextSame | Action::PreviousSame => return self.seek_same(scene, action == Action::NextSame),
            Action::SearchNext | Action::SearchPrevious if scene.search.is_empty() => {
                return self.walk(scene, action == Action::SearchNext);
            }
            Action::SearchNext | Action::SearchPrevious => return self.seek_named(scene, action == Action::SearchNext),
            Action::NextStep | Action::PreviousStep => return self.seek_step(scene, action == Action::NextStep),
            Action::NextGap | Action::PreviousGap => return self.seek_gap(scene, action == Action::NextGap),
            Action::Follow => return self.follow(scene),
            Action::Mark => self.mark(),
            Action::Bookmark => self.bookmark(),
            Action::NextBookmark | Action::PreviousBookmark => {
                self.go_to_bookmark(scene, action == Action::NextBookmark);
            }
            Action::Expand => {
                if let Some(Of::Track(track, depth)) = self.lane(scene).map(|lane| lane.of)
                    && !self.open.insert(track)
                {
                    self.open.remove(&track);
                    let back = usize::from(depth.saturating_sub(rows::COLLAPSED - 1));
                    self.lane -= back.min(self.lane);
                    self.enter(scene, self.lane);
                }
            }
            Action::Copy => return self.text(scene).map_or(Effect::None, Effect::Copy),
            _ => {}
        }
        Effect::None
    }

    fn point(&mut self, point: Point, scene: &Scene<'_>) -> Effect {
        let width = self.plot.width;
        match point {
            Point::Click(x, y) => {
                if let Some((lane, t)) = self.under(scene, x, y) {
                    self.cursor = t;
                    self.enter(scene, lane);
                }
            }
            Point::Wheel(x, y, up) => match self.under(scene, x, y) {
                Some((_, t)) => self.window(scene).zoom(t, if up { (2, 3) } else { (3, 2) }, width),
                None => self.step_lane(scene, if up { -1 } else { 1 }),
            },
            Point::Drag((from, _), (to, _)) if width > 0 => {
                self.pan(scene, (i64::from(from) - i64::from(to), i64::from(width)));
            }
            Point::Drag(..) => {}
        }
        Effect::None
    }

    fn draw(&mut self, scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
        self.window(scene);
        self.paint(scene, area, buf);
    }

    fn export(&self, scene: &Scene<'_>) -> Vec<(&'static str, String)> {
        let Some(window) = self.window.filter(|_| !self.drawn.is_empty()) else { return Vec::new() };
        let lanes: Vec<usize> = self.drawn.iter().filter_map(Row::lane).collect();
        let mut drawn = picture::of_lanes(&scene.look, &lanes, window.span, scene.lang);
        drawn.evidence = self.evidence.as_ref().and_then(|evidence| evidence.drawn(scene));
        vec![("svg", svg::render(&drawn, scene.lang))]
    }

    fn is_early(&self) -> bool {
        true
    }

    fn title(&self, scene: &Scene<'_>) -> Option<Line> {
        self.evidence.as_ref().map(|evidence| evidence.title(scene))
    }

    fn arrived(&mut self, before: &Look<'_>, after: &Look<'_>) {
        self.stay(before.lanes, after.lanes);
    }

    fn show(&mut self, place: Place, scene: &Scene<'_>) {
        self.evidence = None;
        match place {
            Place::Slot(_) => {}
            Place::Evidence(finding, stretch) => self.show_finding(scene, finding, stretch),
            Place::Time(span) => self.show_span(scene, span),
            Place::Window { window, cursor, lane } => self.show_window(scene, window, cursor, lane),
            Place::Slice(id) => {
                if let Some((lane, slot)) = scene.look.lanes.find(scene.look.trace, id) {
                    self.window(scene);
                    self.select(scene, lane, slot);
                    if let Some(span) = self.selected(scene) {
                        // Its neighbours say as much as the slice itself.
                        let around = span.len().saturating_mul(8).max(20_000);
                        let start = span.start.saturating_sub(around);
                        self.window(scene).fit(Span::new(start, span.end.saturating_add(around)));
                    }
                }
            }
        }
    }
}
