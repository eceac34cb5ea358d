//! What a step gets from the host: token ids, positions, sequences, the rows of last tokens, and the cosines and sines of the
//! positions, all in one memory, so that a step begins with one copy.

use std::rc::Rc;

use super::{
    device::Context,
    memory::{Memory, Staging},
    platform::{Address, Answer},
    queue::Queue,
};
use crate::{Batch, Config, Error, program::Shape, rope};

/// The inputs of a program.
pub(super) struct Inputs {
    memory: Memory<u32>,
    /// What the copy under way reads.
    staged: Staging<u32>,
    shape: Shape,
}

impl Inputs {
    pub(super) fn new(context: &Rc<Context>, shape: Shape, head_dim: usize, pageable: bool) -> Result<Self, Error> {
        let count = shape.tokens.checked_mul(3 + head_dim).and_then(|n| n.checked_add(shape.sequences));
        let memory = Memory::new(context, count.unwrap_or(usize::MAX))?;
        let staged = Staging::new(context, memory.count(), pageable)?;
        Ok(Self { memory, staged, shape })
    }

    pub(super) fn address(&self) -> Address {
        self.memory.address()
    }

    /// Where the cosines and sines begin.
    pub(super) fn turns_at(&self) -> usize {
        3 * self.shape.tokens + self.shape.sequences
    }

    /// Bytes of a copy.
    pub(super) fn bytes(&self) -> usize {
        self.memory.count() * size_of::<u32>()
    }

    /// Puts a batch in place of the last one; `turned` is the shape by which angles are computed. No copy of an earlier batch
    /// may be under way.
    pub(super) fn stage(&mut self, batch: &Batch, turned: &Config) {
        let numbers = [&batch.tokens, &batch.positions, &batch.sequences].into_iter().flatten().copied();
        let rows = batch.last_rows().into_iter().map(|row| row as u32);
        let turns = rope::turns(turned, &batch.positions).into_iter().map(f32::to_bits);
        for (to, number) in self.staged.elements().iter_mut().zip(numbers.chain(rows).chain(turns)) {
            *to = number;
        }
    }

    /// Enqueues the copy of what was staged, which stays until the queue was waited for.
    pub(super) fn write(&mut self, queue: &Queue) -> Answer {
        self.memory.write(queue, self.staged.elements())
    }
}
