//! Weights that the device makes where they lie, so that a model needs no copy in main memory and no way over the bus.

use super::{
    launch::{Arguments, Blocks},
    memory::Memory,
    queue::Queue,
    source::Source,
};
use crate::{Dtype, Error, weights::Made};

/// A matrix of rows of `width` elements, its pieces one below the other; `None` of a type that no kernel makes.
pub(super) fn make(
    queue: &Queue,
    source: &Source,
    pieces: &[Made],
    dtype: Dtype,
    width: usize,
) -> Result<Option<Memory<u8>>, Error> {
    // The scale of a block of 8 bits follows from all its elements: the host makes these.
    if dtype == Dtype::Q8 {
        return Ok(None);
    }
    let (driver, stride) = (queue.context.driver, dtype.row_bytes(width));
    let rows: usize = pieces.iter().map(|piece| piece.rows).sum();
    let memory = Memory::new(&queue.context, rows.saturating_mul(stride))?;
    let mut at = memory.address();
    for piece in pieces {
        let (row, column) = piece.first;
        let kernel = format!("strato_synthetic_{}", dtype.name());
        let arguments = Arguments::of(source, kernel, Blocks::elements(piece.rows, width)).memory(&[at]);
        let arguments = arguments.number(piece.sequence.seed).sizes(&[row, column, piece.width, width]);
        let mut launch = arguments.real(piece.sequence.scale).launch()?;
        driver.check("make weights on the CUDA device", launch.enqueue(queue))?;
        at += (piece.rows * stride) as u64;
    }
    queue.settle("make weights on the CUDA device")?;
    Ok(Some(memory))
}
