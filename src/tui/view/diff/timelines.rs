//! A step of both sides under each other, by the time since each began: one zoom, one place, and one slot that is marked on
//! both. A slot that is followed stands at the same column on both sides, however late it comes on one of them.

mod paint;
mod step;

use model::{Ns, Span};
use ratatui::{buffer::Buffer, layout::Rect};

use super::super::{Effect, Place, Point, Scene, View, page::clean, timeline::window::Window};
use crate::tui::{
    action::{Action, Scope},
    widget::prose,
};
use diagnosis::i18n::Text;
use step::Pair;

/// State of both timelines.
#[derive(Default)]
pub struct Timelines {
    /// The steps that are seen, by their place among those that count.
    at: usize,
    pair: Option<Pair>,
    /// What is seen, since the start of the step.
    window: Option<Window>,
    /// The side that keys move on, 0 or 1, and its selected operation as a position in the step.
    side: usize,
    op: Option<usize>,
    /// Whether the selected slot is kept at one column.
    follows: bool,
    /// Where lanes were drawn in the last frame, and those of which side begin in which line.
    plot: Rect,
    split: u16,
}

impl Timelines {
    /// The steps that are seen, read when they are first asked for.
    fn pair(&mut self, scene: &Scene<'_>) -> Option<&Pair> {
        if self.pair.as_ref().is_none_or(|pair| pair.at != self.at) {
            let start = self.pair.is_none();
            self.pair = Pair::read(scene, if start { None } else { Some(self.at) });
            let pair = self.pair.as_ref()?;
            self.at = pair.at;
            self.op = self.op.filter(|_| start).or_else(|| pair.side(self.side).first());
            let length = pair.sides.iter().map(|side| side.window.len()).max().unwrap_or(1);
            let extent = Span::new(0, length.max(1));
            if self.window.is_none() {
                self.window = Some(Window::all(extent));
            }
        }
        self.pair.as_ref()
    }

    /// By how much later than on the other side the selected slot comes on each: nothing unless it is followed.
    fn shifts(&self) -> [Ns; 2] {
        let Some(pair) = self.pair.as_ref().filter(|_| self.follows) else { return [0, 0] };
        let here = self.op.and_then(|op| pair.since_start(self.side, op));
        let there = self.counterparts(1 - self.side).first().and_then(|op| pair.since_start(1 - self.side, *op));
        let mut shifts = [0, 0];
        if let (Some(here), Some(there), Some(shift)) = (here, there, shifts.get_mut(1 - self.side)) {
            *shift = there - here;
        }
        shifts
    }

    /// The operations of a side that lie where the selected one lies.
    fn counterparts(&self, side: usize) -> Vec<usize> {
        let place = self.pair.as_ref().zip(self.op).and_then(|(pair, op)| pair.side(self.side).place(op));
        place.zip(self.pair.as_ref()).map(|(place, pair)| pair.side(side).at(place)).unwrap_or_default()
    }

    /// Selects an operation, and shows where it begins.
    fn select(&mut self, op: usize) {
        self.op = Some(op);
        let shift = self.shifts()[self.side.min(1)];
        let begins = self.pair.as_ref().and_then(|pair| pair.since_start(self.side, op));
        if let (Some(begins), Some(window)) = (begins, &mut self.window) {
            window.reveal(begins - shift);
        }
    }

    fn step_op(&mut self, forward: bool) {
        let Some(side) = self.pair.as_ref().map(|pair| pair.side(self.side)) else { return };
        let next = match (self.op, forward) {
            (Some(op), true) => op + 1,
            (Some(op), false) => op.saturating_sub(1),
            (None, _) => 0,
        };
        if next < side.places.len() {
            self.select(next);
        }
    }

    /// The next operation in the same slot: of the next layer, or of the same one.
    fn step_same(&mut self, scene: &Scene<'_>, forward: bool) -> Effect {
        let Some((side, op)) = self.pair.as_ref().map(|pair| pair.side(self.side)).zip(self.op) else {
            return Effect::None;
        };
        let slot = side.place(op).map(|place| place.slot);
        let same = |at: &usize| side.place(*at).map(|place| place.slot) == slot;
        let found = match forward {
            true => (op + 1..side.places.len()).find(same),
            false => (0..op).rev().find(same),
        };
        match found {
            Some(op) => self.select(op),
            None => return Effect::Say(scene.get(super::super::timeline::NOT_FOUND).to_owned()),
        }
        Effect::None
    }

    /// Goes to what corresponds on the other side, or to what is nearest in time.
    fn cross(&mut self, to: usize) {
        if to == self.side {
            return;
        }
        let Some(pair) = &self.pair else { return };
        let found = self.counterparts(to).first().copied();
        let here = self.op.and_then(|op| pair.since_start(self.side, op)).unwrap_or(0);
        let near = found.or_else(|| pair.nearest(to, here));
        self.side = to;
        self.op = None;
        if let Some(op) = near {
            self.select(op);
        }
    }

    fn cursor(&self) -> Ns {
        let shift = self.shifts()[self.side.min(1)];
        let begins = self.pair.as_ref().zip(self.op).and_then(|(pair, op)| pair.since_start(self.side, op));
        let middle = self.window.map_or(0, |window| window.span.start + window.span.len() / 2);
        begins.map(|t| t - shift).filter(|t| self.window.is_some_and(|w| w.span.contains(*t))).unwrap_or(middle)
    }

    /// The length of the selected operation on the common axis.
    fn fit(&mut self) {
        let shift = self.shifts()[self.side.min(1)];
        let span = self.pair.as_ref().zip(self.op).and_then(|(pair, op)| pair.span(self.side, op));
        if let (Some(span), Some(window)) = (span, &mut self.window) {
            let around = span.len().saturating_mul(6).max(10_000);
            window.fit(Span::new(span.start - shift - around, span.end - shift + around));
        }
    }

    fn turn(&mut self, scene: &Scene<'_>, forward: bool) {
        let last = self.pair.as_ref().map_or(0, |pair| pair.count.saturating_sub(1));
        let next = if forward { (self.at + 1).min(last) } else { self.at.saturating_sub(1) };
        if next != self.at {
            let place = self.pair.as_ref().zip(self.op).and_then(|(pair, op)| pair.side(self.side).place(op));
            self.at = next;
            self.op = None;
            self.pair(scene);
            // The same slot of the other step.
            let same =
                self.pair.as_ref().zip(place).and_then(|(pair, place)| pair.side(self.side).at(place).first().copied());
            self.op = same.or(self.op);
        }
    }
}

impl View for Timelines {
    fn scope(&self) -> Scope {
        Scope::Timeline
    }

    fn actions(&self, _: &Scene<'_>) -> Vec<Action> {
        use Action::*;
        let mut actions = vec![NextSlice, PreviousSlice, Down, Up, FollowSlot, ZoomIn, ZoomOut, Left, Right, NextSame];
        actions.extend([PreviousSame, ZoomFit, ZoomAll, NextStep, PreviousStep, Open, Copy, FarLeft, FarRight]);
        actions.extend([Top, Bottom]);
        if self.pair.as_ref().is_some_and(Pair::is_empty) { Vec::new() } else { actions }
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Effect {
        self.pair(scene);
        let (cursor, width) = (self.cursor(), self.plot.width.max(1));
        let last = self.pair.as_ref().map_or(0, |pair| pair.side(self.side).places.len().saturating_sub(1));
        let window = self.window.as_mut();
        match (action, window) {
            (Action::ZoomIn, Some(window)) => window.zoom(cursor, (1, 2), width),
            (Action::ZoomOut, Some(window)) => window.zoom(cursor, (2, 1), width),
            (Action::Left, Some(window)) => window.pan(-1, 4),
            (Action::Right, Some(window)) => window.pan(1, 4),
            (Action::FarLeft, Some(window)) => window.pan(-1, 1),
            (Action::FarRight, Some(window)) => window.pan(1, 1),
            (Action::ZoomAll, _) => {
                let length = self.pair.iter().flat_map(|pair| &pair.sides).map(|side| side.window.len()).max();
                self.window = Some(Window::all(Span::new(0, length.unwrap_or(1).max(1))));
            }
            (Action::ZoomFit, _) => self.fit(),
            (Action::NextSlice, _) => self.step_op(true),
            (Action::PreviousSlice, _) => self.step_op(false),
            (Action::Top, _) => self.select(0),
            (Action::Bottom, _) => self.select(last),
            (Action::NextSame | Action::PreviousSame, _) => {
                return self.step_same(scene, action == Action::NextSame);
            }
            (Action::NextStep | Action::PreviousStep, _) => self.turn(scene, action == Action::NextStep),
            (Action::Up, _) => self.cross(0),
            (Action::Down, _) => self.cross(1),
            (Action::FollowSlot, _) => {
                self.follows = !self.follows;
                let says = match self.follows {
                    true => Text::new("the selected slot is kept at one column", "所选槽位在两侧对齐到同一列"),
                    false => Text::new("both steps begin at one column", "两侧的步从同一列开始"),
                };
                return Effect::Say(scene.get(says).to_owned());
            }
            (Action::Open, _) => {
                let slice = self.pair.as_ref().zip(self.op).and_then(|(pair, op)| pair.slice(scene, self.side, op));
                let capture = scene.beside.and_then(|beside| beside.at.get(self.side).copied());
                if let (Some(slice), Some(capture)) = (slice, capture) {
                    return Effect::ShowOf(capture, Place::Slice(slice));
                }
            }
            (Action::Copy, _) => {
                let lines: Vec<String> = self.told(scene).iter().map(prose::plain).collect();
                return Effect::Copy(clean(&lines.join("\n")));
            }
            _ => {}
        }
        Effect::None
    }

    fn point(&mut self, point: Point, scene: &Scene<'_>) -> Effect {
        self.pair(scene);
        let plot = self.plot;
        let shifts = self.shifts();
        let Some(window) = self.window.as_mut().filter(|_| plot.width > 0) else { return Effect::None };
        match point {
            Point::Click(x, y) if plot.contains((x, y).into()) => {
                let side = usize::from(y >= self.split);
                let t = window.at(x - plot.x, plot.width) + shifts[side];
                let near = self.pair.as_ref().and_then(|pair| pair.nearest(side, t));
                self.side = side;
                self.op = near;
            }
            Point::Wheel(x, _, up) if x >= plot.x => {
                let t = window.at((x - plot.x).min(plot.width - 1), plot.width);
                window.zoom(t, if up { (2, 3) } else { (3, 2) }, plot.width);
            }
            Point::Drag((from, _), (to, _)) => window.pan(i64::from(from) - i64::from(to), i64::from(plot.width)),
            _ => {}
        }
        Effect::None
    }

    fn draw(&mut self, scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
        self.pair(scene);
        self.paint(scene, area, buf);
    }

    /// Shows the first operation of a slot, of the side that has it.
    fn show(&mut self, place: Place, scene: &Scene<'_>) {
        let Place::Slot(slot) = place else { return };
        let Some(pair) = self.pair(scene) else { return };
        let first = |side: usize| pair.side(side).places.iter().position(|place| place.slot == slot);
        let found = [0, 1].into_iter().find_map(|side| Some((side, first(side)?)));
        if let Some((side, op)) = found {
            self.side = side;
            self.follows = true;
            self.select(op);
            self.fit();
        }
    }
}
