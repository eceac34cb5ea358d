//! What a step gets from the host: token ids, positions, sequences, the rows of last tokens, and the cosines and sines of the
//! positions, all in one buffer, so that a step begins with one copy.

use opencl3::types::cl_mem;

use super::memory::{Memory, Place};
use crate::{Batch, Config, Error, program::Shape, rope};

/// The inputs of a program.
pub(super) struct Inputs {
    memory: Memory<u32>,
    /// What the copy under way reads.
    staged: Vec<u32>,
    shape: Shape,
}

impl Inputs {
    pub(super) fn new(place: &Place, shape: Shape, head_dim: usize) -> Result<Self, Error> {
        let count = shape.tokens.checked_mul(3 + head_dim).and_then(|n| n.checked_add(shape.sequences));
        let memory = Memory::new(place, count.unwrap_or(usize::MAX))?;
        Ok(Self { memory, staged: Vec::new(), shape })
    }

    pub(super) fn handle(&self) -> cl_mem {
        self.memory.handle()
    }

    /// Where the cosines and sines begin.
    pub(super) fn turns_at(&self) -> usize {
        3 * self.shape.tokens + self.shape.sequences
    }

    /// Puts a batch in place of the last one; `turned` is the shape by which angles are computed. Gives the memory and what
    /// is to be copied into it. No copy of an earlier batch may be under way.
    pub(super) fn stage(&mut self, batch: &Batch, turned: &Config) -> (&mut Memory<u32>, &[u32]) {
        self.staged.clear();
        for part in [&batch.tokens, &batch.positions, &batch.sequences] {
            self.staged.extend_from_slice(part);
        }
        self.staged.extend(batch.last_rows().into_iter().map(|row| row as u32));
        self.staged.extend(rope::turns(turned, &batch.positions).into_iter().map(f32::to_bits));
        (&mut self.memory, &self.staged)
    }
}
