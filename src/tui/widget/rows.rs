//! Which row of a list is selected, and which rows are seen.

use crate::tui::action::Action;

/// Selection and scroll position of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The selected row.
    pub at: usize,
    /// The first row that is seen.
    pub top: usize,
    /// Rows that were seen in the last frame.
    page: usize,
}

impl Rows {
    /// Movements that a list of `len` rows knows now.
    pub fn actions(len: usize) -> &'static [Action] {
        use Action::{Bottom, Down, PageDown, PageUp, Top, Up};
        if len > 1 { &[Down, Up, PageDown, PageUp, Top, Bottom] } else { &[] }
    }

    /// Moves the selection.
    pub fn act(&mut self, action: Action, len: usize) {
        let page = self.page.max(2) - 1;
        let last = len.saturating_sub(1);
        self.at = match action {
            Action::Up => self.at.saturating_sub(1),
            Action::Down => self.at + 1,
            Action::PageUp => self.at.saturating_sub(page),
            Action::PageDown => self.at + page,
            Action::Top => 0,
            Action::Bottom => last,
            _ => self.at,
        }
        .min(last);
    }

    /// Scrolls as little as shows the selection, and returns the first row of `height` that are seen.
    pub fn seen(&mut self, len: usize, height: usize) -> usize {
        self.page = height;
        self.at = self.at.min(len.saturating_sub(1));
        let lowest = (self.at + 1).saturating_sub(height);
        self.top = self.top.clamp(lowest, self.at.max(lowest)).min(len.saturating_sub(height));
        self.top
    }

    /// Scrolls a text of `len` lines, which has no selection.
    pub fn scroll(&mut self, action: Action, len: usize) {
        let page = self.page.max(2) - 1;
        let last = len.saturating_sub(self.page);
        self.top = match action {
            Action::Up => self.top.saturating_sub(1),
            Action::Down => self.top + 1,
            Action::PageUp => self.top.saturating_sub(page),
            Action::PageDown => self.top + page,
            Action::Top => 0,
            Action::Bottom => last,
            _ => self.top,
        }
        .min(last);
    }

    /// The first line of `height` that are seen of a text of `len` lines.
    pub fn scrolled(&mut self, len: usize, height: usize) -> usize {
        self.page = height;
        self.top = self.top.min(len.saturating_sub(height));
        self.top
    }

    /// Selects the row that is seen in line `line` of the list.
    pub fn point(&mut self, line: usize, len: usize) -> bool {
        let row = self.top + line;
        if row < len {
            self.at = row;
        }
        row < len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn the_selection_is_always_seen(moves in proptest::collection::vec((0usize..6, 0usize..30, 0usize..9), 0..60)) {
            let mut rows = Rows::default();
            let all = [Action::Up, Action::Down, Action::PageUp, Action::PageDown, Action::Top, Action::Bottom];
            for (action, len, height) in moves {
                rows.act(all.get(action).copied().unwrap_or(Action::Up), len);
                let top = rows.seen(len, height);
                proptest::prop_assert!(rows.at < len.max(1));
                if len > 0 && height > 0 {
                    proptest::prop_assert!(top <= rows.at && rows.at < top + height);
                    proptest::prop_assert!(len < height || top + height <= len);
                }
            }
        }
    }
}
