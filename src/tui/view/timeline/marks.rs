//! Marks between which time is measured, and bookmarks to come back to.

use super::Timeline;
use crate::tui::view::Scene;

impl Timeline {
    /// Sets a mark at the cursor, or takes away the one that is there.
    pub(super) fn mark(&mut self) {
        if let Some(at) = self.marks.iter().position(|mark| *mark == self.cursor) {
            self.marks.remove(at);
            return;
        }
        if self.marks.len() > 1 {
            self.marks.clear();
        }
        self.marks.push(self.cursor);
    }

    /// Keeps the place of the cursor, or forgets it.
    pub(super) fn bookmark(&mut self) {
        match self.bookmarks.binary_search(&(self.cursor, self.lane)) {
            Ok(at) => drop(self.bookmarks.remove(at)),
            Err(at) => self.bookmarks.insert(at, (self.cursor, self.lane)),
        }
    }

    /// Goes to the bookmark after the cursor or before it, and round.
    pub(super) fn go_to_bookmark(&mut self, scene: &Scene<'_>, forward: bool) {
        let here = (self.cursor, self.lane);
        let found = if forward {
            self.bookmarks.iter().find(|place| **place > here).or(self.bookmarks.first())
        } else {
            self.bookmarks.iter().rev().find(|place| **place < here).or(self.bookmarks.last())
        };
        if let Some((t, lane)) = found.copied() {
            self.cursor = t;
            self.window(scene).reveal(t);
            self.enter(scene, lane);
        }
    }
}
