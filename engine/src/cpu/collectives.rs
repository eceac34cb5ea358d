//! Collectives between the ranks of a run, in memory that they share: each rank shows its part in its slot, raises its
//! flag, waits for the flags of the others and reads their slots ("one-shot").
//!
//! Worker `w` of a rank exchanges its share of the elements with worker `w` of the others, so the workers of a rank need not
//! meet in between. Slots alternate: a worker that has seen everybody's flag of a collective knows that nobody reads the
//! slots of the one before any more.

#![allow(unsafe_code)]

use super::{
    Kernels,
    memory::{Rows, share},
    ops::Part,
};
use crate::{
    Error,
    comm::{Communicator, Lost},
};

impl Communicator {
    /// x = sum of x of all ranks, added in the order of the ranks, so that all get the same bits.
    pub(super) fn all_reduce(&self, seq: u32, part: Part, kernels: &Kernels, x: Rows) -> Result<(), Lost> {
        let mine = part.of(x.rows * x.width, 16);
        // SAFETY: this worker alone has its share of `x`, and of its rank's slot (see the module), which is large enough:
        // programs are checked against the world before they run.
        let (x, slot) = unsafe {
            let slot = self.slot(self.shard().rank, seq).add(mine.start);
            (x.elements_mut(mine.clone()), std::slice::from_raw_parts_mut(slot, mine.len()))
        };
        slot.copy_from_slice(x);
        self.exchange(seq, part.number)?;
        for other in self.shard().ranks() {
            // SAFETY: everybody has written this share, and nobody does until all have seen the next collective's flags.
            let theirs = unsafe {
                let slot = self.slot(other.rank, seq).add(mine.start);
                std::slice::from_raw_parts(slot, mine.len())
            };
            if other.rank == 0 { x.copy_from_slice(theirs) } else { kernels.axpy(1.0, theirs, x) }
        }
        Ok(())
    }

    /// out\[.., columns of a rank\] = piece of that rank, for all ranks.
    pub(super) fn all_gather(&self, seq: u32, part: Part, piece: Rows, out: Rows) -> Result<(), Lost> {
        let share_of = |width: usize| share(width, 16, part.number, part.of);
        let mine = share_of(piece.width);
        for row in 0..piece.rows {
            // SAFETY: as in `all_reduce`; `piece` was written by the operator before.
            unsafe {
                let slot = self.slot(self.shard().rank, seq).add(row * piece.width + mine.start);
                std::slice::from_raw_parts_mut(slot, mine.len()).copy_from_slice(piece.part(row, mine.clone()));
            }
        }
        self.exchange(seq, part.number)?;
        for other in self.shard().ranks() {
            let columns = other.range(out.width);
            let share = share_of(columns.len());
            for row in 0..out.rows {
                // SAFETY: as in `all_reduce`; this worker alone writes its share of the rank's columns.
                unsafe {
                    let slot = self.slot(other.rank, seq).add(row * columns.len() + share.start);
                    let to = columns.start + share.start..columns.start + share.end;
                    out.part_mut(row, to).copy_from_slice(std::slice::from_raw_parts(slot, share.len()));
                }
            }
        }
        Ok(())
    }

    /// x = sum of x of all ranks, of ranks of one worker each whose parts lie anywhere in memory of the host.
    ///
    /// # Errors
    /// [`Error::Lost`] when another rank does not take part any more.
    pub(crate) fn sum(&mut self, kernels: &Kernels, x: &mut [f32]) -> Result<(), Error> {
        self.count = self.count.wrapping_add(1);
        let rows = Rows::new(x, x.len());
        let done = self.all_reduce(self.count, Part { number: 0, of: 1 }, kernels, rows);
        done.or_else(|Lost| self.check())
    }

    /// out\[.., columns of a rank\] = piece of that rank, of ranks as in [`Communicator::sum`]; `widths` are those of both.
    ///
    /// # Errors
    /// Those of [`Communicator::sum`].
    pub(crate) fn gather(&mut self, piece: &mut [f32], out: &mut [f32], widths: [usize; 2]) -> Result<(), Error> {
        self.count = self.count.wrapping_add(1);
        let (piece, out) = (Rows::new(piece, widths[0]), Rows::new(out, widths[1]));
        let done = self.all_gather(self.count, Part { number: 0, of: 1 }, piece, out);
        done.or_else(|Lost| self.check())
    }
}

#[cfg(test)]
mod tests;
