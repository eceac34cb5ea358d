//! What a step gets from the host, in one copy: token ids, places in the cache, rows of last tokens, cosines and sines, and
//! the mask of those kinds of attention that have one.

use std::rc::Rc;

use super::{
    calls::{Api, Handle, Status},
    memory::{Argument, Memory, Pinned, Shape, Type},
};
use crate::{Batch, Config, Error, Shard, kv::KvPlan, program, rope};

/// Parts of the inputs begin at multiples of this, bytes: as memory of the device itself does.
const ALIGN: usize = 512;

/// The inputs of a program.
pub(super) struct Inputs {
    memory: Rc<Memory>,
    staged: Pinned,
    /// Bytes that are in use of what is staged.
    used: usize,
    shape: program::Shape,
    dtype: Type,
    masked: bool,
    /// Token ids, (tokens).
    pub ids: Argument,
    /// Places in the cache, (tokens).
    pub slots: Argument,
    /// Rows of last tokens, (sequences).
    pub last: Argument,
    /// Cosines and sines, (1, tokens, 1, width of a head).
    pub cos: Argument,
    pub sin: Argument,
    /// What is hidden, (sequences, 1, tokens of each, positions).
    pub mask: Option<Argument>,
    starts: [usize; 6],
}

impl Inputs {
    pub(super) fn new(
        api: &'static Api,
        shape: program::Shape,
        config: &Config,
        cache: &KvPlan,
        dtype: Type,
        masked: bool,
    ) -> Result<Self, Error> {
        let turns = shape.tokens * config.head_dim * dtype.size();
        let mask = if masked { shape.tokens * cache.context } else { 0 };
        let sizes = [shape.tokens * 4, shape.tokens * 4, shape.sequences * 4, turns, turns, mask];
        let mut starts = [0; 6];
        let mut used = 0usize;
        for (start, size) in starts.iter_mut().zip(sizes) {
            *start = used;
            used = (used + size).next_multiple_of(ALIGN);
        }
        let (memory, staged) = (Memory::zeroed(api, used)?, Pinned::new(api, used)?);
        let part = |number: usize, dtype: Type, dims: &[usize]| {
            let start = starts.get(number).copied().unwrap_or(0) / dtype.size();
            api.tensor(&memory, dtype, &Shape::of(dims).at(start))
        };
        let each = shape.tokens / shape.sequences.max(1);
        let turned = [1, shape.tokens, 1, config.head_dim];
        Ok(Self {
            ids: part(0, Type::I32, &[shape.tokens])?,
            slots: part(1, Type::I32, &[shape.tokens])?,
            last: part(2, Type::I32, &[shape.sequences])?,
            cos: part(3, dtype, &turned)?,
            sin: part(4, dtype, &turned)?,
            mask: masked.then(|| part(5, Type::Bool, &[shape.sequences, 1, each, cache.context])).transpose()?,
            memory,
            staged,
            used,
            shape,
            dtype,
            masked,
            starts,
        })
    }

    /// Bytes of the copy.
    pub(super) fn bytes(&self) -> usize {
        self.used
    }

    /// Puts the copy into a stream.
    pub(super) fn send(&self, stream: Handle) -> Status {
        self.staged.send(&self.memory, self.used, stream)
    }

    /// Puts a batch in place of the last one; `turned` is the shape by which angles are computed. No copy of an earlier
    /// batch may be under way. Of a rank's part of the vocabulary, tokens that are another's have the row after the last.
    pub(super) fn stage(&mut self, batch: &Batch, turned: &Config, cache: &KvPlan, shard: Shard) -> Result<(), Error> {
        let (tokens, sequences) = (self.shape.tokens, self.shape.sequences);
        let each = tokens / sequences.max(1);
        let in_order =
            batch.sequences.chunks(each.max(1)).all(|own| own.windows(2).all(|pair| pair.first() == pair.last()))
                && batch
                    .positions
                    .chunks(each.max(1))
                    .all(|own| own.windows(2).all(|pair| matches!(pair, [a, b] if a + 1 == *b)));
        let numbered = batch.sequences.iter().step_by(each.max(1)).enumerate().all(|(at, own)| at == *own as usize);
        if !in_order || !numbered || tokens != each * sequences {
            return Err(Error::Request(
                "an Ascend device takes equally many tokens of each sequence, sequence by sequence; divide the batch so"
                    .to_owned(),
            ));
        }
        let own = shard.range(turned.vocab);
        let id = |token: &u32| {
            let token = *token as usize;
            (if own.contains(&token) { token - own.start } else { own.len() }) as i32
        };
        let slot = |(sequence, position): (&u32, &u32)| cache.slot(*sequence as usize, *position as usize) as i32;
        let ids: Vec<u8> = batch.tokens.iter().map(id).flat_map(i32::to_ne_bytes).collect();
        let slots: Vec<u8> =
            batch.sequences.iter().zip(&batch.positions).map(slot).flat_map(i32::to_ne_bytes).collect();
        let last: Vec<u8> = batch.last_rows().into_iter().flat_map(|row| (row as i32).to_ne_bytes()).collect();
        let (mut cos, mut sin) = (Vec::new(), Vec::new());
        for row in rope::turns(turned, &batch.positions).chunks_exact(turned.head_dim.max(1)) {
            let (cosines, sines) = row.split_at(turned.head_dim / 2);
            // Both halves of a head turn by the same angles.
            for _ in 0..2 {
                self.dtype.bytes(cosines, &mut cos);
                self.dtype.bytes(sines, &mut sin);
            }
        }
        let mask = if self.masked {
            let row =
                |position: &u32| (0..cache.context).map(|at| u8::from(at > *position as usize)).collect::<Vec<_>>();
            batch.positions.iter().flat_map(row).collect()
        } else {
            Vec::new()
        };
        let bytes = self.staged.bytes_mut();
        for (start, part) in self.starts.into_iter().zip([ids, slots, last, cos, sin, mask]) {
            if let Some(to) = bytes.get_mut(start..start + part.len()) {
                to.copy_from_slice(&part);
            }
        }
        Ok(())
    }

    /// Lengths of the sequences after a batch.
    pub(super) fn lengths(&self, batch: &Batch) -> Vec<i64> {
        let each = (self.shape.tokens / self.shape.sequences.max(1)).max(1);
        batch.positions.chunks(each).map(|own| own.last().map_or(1, |position| i64::from(*position) + 1)).collect()
    }
}
