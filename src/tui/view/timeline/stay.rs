//! The place that is looked at, when the lanes of the capture become others: those that were there go on by what they show.

use model::Span;

use super::{Timeline, rows};
use crate::tui::lane::LaneSet;

impl Timeline {
    /// Stays where it is: the same time, the same lane on the same line of the screen, the same slice.
    pub(super) fn stay(&mut self, before: &LaneSet, after: &LaneSet) {
        self.evidence = None;
        let there = |lane: usize| after.position(before.lanes.get(lane)?.of);
        let line = |set: &LaneSet, lane: usize| {
            rows::all(set, &self.open).iter().position(|row| row.lane() == Some(lane)).unwrap_or(0)
        };
        let above = line(before, self.lane).saturating_sub(self.top);
        match there(self.lane) {
            Some(lane) => (self.top, self.lane) = (line(after, lane).saturating_sub(above), lane),
            // What is not there any more has no place.
            None => (self.top, self.lane, self.slot) = (0, 0, None),
        }
        self.bookmarks = self.bookmarks.iter().filter_map(|(t, lane)| Some((*t, there(*lane)?))).collect();
        self.bookmarks.sort_unstable();
        // Until the next frame there is nothing to click on.
        self.drawn.clear();
        if let Some(window) = &mut self.window {
            window.grow(after.extent.unwrap_or(Span::new(0, 1)));
        }
    }
}
