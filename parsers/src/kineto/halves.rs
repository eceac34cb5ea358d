//! Slices that are written as two events, one that begins and one that ends: paired on their thread, the last begun first, as
//! the Trace Event Format says.

use model::{Ns, StringId};
use rustc_hash::FxHashMap;

use super::merge::Owner;

/// Deepest nesting of a thread, and most slices that are open at once; real ones have some dozens.
const DEEPEST: usize = 1 << 9;
const MOST: usize = 1 << 18;

/// A slice that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open<R> {
    pub start: Ns,
    pub name: StringId,
    pub row: R,
}

/// The slices that have begun and not ended.
#[derive(Debug)]
pub(super) struct Halves<R> {
    open: FxHashMap<(Owner, Owner), Vec<Open<R>>>,
    count: usize,
    /// Beginnings that found no room.
    pub crowded: u64,
    /// Ends before which nothing began.
    pub ends: u64,
}

impl<R> Default for Halves<R> {
    fn default() -> Self {
        Self { open: FxHashMap::default(), count: 0, crowded: 0, ends: 0 }
    }
}

impl<R> Halves<R> {
    /// Takes a beginning.
    pub fn begin(&mut self, thread: (Owner, Owner), slice: Open<R>) {
        let open = self.open.entry(thread).or_default();
        if open.len() >= DEEPEST || self.count >= MOST {
            self.crowded += 1;
        } else {
            open.push(slice);
            self.count += 1;
        }
    }

    /// The slice that ends at `end`: the last of the name that the end has, or the last one where the end has none. What an end
    /// skips stays open.
    pub fn end(&mut self, thread: (Owner, Owner), name: Option<StringId>, end: Ns) -> Option<Open<R>> {
        let open = self.open.get_mut(&thread);
        let found = open.and_then(|open| {
            let at = open.iter().rposition(|slice| name.is_none_or(|name| slice.name == name) && slice.start <= end)?;
            Some(open.remove(at))
        });
        match found {
            Some(_) => self.count = self.count.saturating_sub(1),
            None => self.ends += 1,
        }
        found
    }

    /// Slices that never ended.
    pub fn unended(&self) -> u64 {
        self.count as u64
    }
}
