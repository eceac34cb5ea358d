//! Activations in memory that several threads write at once, each its own part.
//!
//! An operator runs on all threads together; they share nothing but this view. It hands out rows and parts of rows by raw
//! pointers, and each operator says why no two threads get the same element while one of them writes it.

#![allow(unsafe_code)]

use std::ops::Range;

/// A matrix of activations, (rows, width).
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    start: *mut f32,
    pub rows: usize,
    pub width: usize,
}

// SAFETY: a view is an address; every access is unsafe and says why it is alone.
unsafe impl Send for Rows {}
// SAFETY: as above.
unsafe impl Sync for Rows {}

impl Rows {
    /// A view of `memory`, which must outlive it; less rows where it is too short.
    pub(super) fn new(memory: &mut [f32], width: usize) -> Self {
        Self { start: memory.as_mut_ptr(), rows: memory.len() / width.max(1), width }
    }

    /// Columns of a row.
    ///
    /// # Safety
    /// No thread writes them while the slice lives.
    pub(super) unsafe fn part<'a>(self, row: usize, columns: Range<usize>) -> &'a [f32] {
        assert!(row < self.rows && columns.start <= columns.end && columns.end <= self.width, "outside of a buffer");
        // SAFETY: within the view, which was made of memory that outlives it; unwritten by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.start.add(row * self.width + columns.start), columns.len()) }
    }

    /// A row.
    ///
    /// # Safety
    /// No thread writes it while the slice lives.
    pub(super) unsafe fn row<'a>(self, row: usize) -> &'a [f32] {
        // SAFETY: passed on.
        unsafe { self.part(row, 0..self.width) }
    }

    /// Columns of a row, to be written.
    ///
    /// # Safety
    /// No other slice of any of them lives meanwhile.
    pub(super) unsafe fn part_mut<'a>(self, row: usize, columns: Range<usize>) -> &'a mut [f32] {
        assert!(row < self.rows && columns.start <= columns.end && columns.end <= self.width, "outside of a buffer");
        // SAFETY: as in `part`; alone by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(row * self.width + columns.start), columns.len()) }
    }

    /// Elements of the whole, to be written.
    ///
    /// # Safety
    /// No other slice of any of them lives meanwhile.
    pub(super) unsafe fn elements_mut<'a>(self, elements: Range<usize>) -> &'a mut [f32] {
        assert!(elements.start <= elements.end && elements.end <= self.rows * self.width, "outside of a buffer");
        // SAFETY: as in `part`; alone by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(elements.start), elements.len()) }
    }

    /// A row, to be written.
    ///
    /// # Safety
    /// No other slice of any of it lives meanwhile.
    pub(super) unsafe fn row_mut<'a>(self, row: usize) -> &'a mut [f32] {
        // SAFETY: passed on.
        unsafe { self.part_mut(row, 0..self.width) }
    }
}

/// The share of `count` items of thread `part` of `parts`, in multiples of `unit`.
pub(super) fn share(count: usize, unit: usize, part: usize, parts: usize) -> Range<usize> {
    let units = count.div_ceil(unit);
    let bound = |part: usize| (units * part / parts * unit).min(count);
    bound(part)..bound(part + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_everything_once() {
        for (count, unit, parts) in [(0, 4, 2), (1, 4, 3), (10, 4, 2), (896, 4, 3), (7, 1, 8)] {
            let shares: Vec<Range<usize>> = (0..parts).map(|part| share(count, unit, part, parts)).collect();
            assert_eq!((shares[0].start, shares[parts - 1].end), (0, count));
            assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(shares.iter().all(|share| share.start % unit == 0));
        }
    }
}
