//! The cache of keys and values: blocks of slots, and which blocks belong to which sequence.
//!
//! A contiguous cache is a paged one whose block is the whole context. Within a block the tokens of one head lie one
//! after the other, so that attention reads a head in one go.

use crate::{Config, Error};

/// How the cache is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KvLayout {
    /// One block per sequence.
    Contiguous,
    /// Blocks of so many tokens.
    Paged(usize),
}

/// Places of the cache, the same for every layer.
#[derive(Clone, Debug)]
pub struct KvPlan {
    /// Sequences.
    pub sequences: usize,
    /// Most tokens of a sequence.
    pub context: usize,
    /// Tokens of a block.
    pub block: usize,
    /// Blocks of each sequence in order, (sequences, `context / block`).
    table: Vec<u32>,
    kv_heads: usize,
    head_dim: usize,
}

impl KvPlan {
    /// Places for `sequences` of up to `context` tokens each.
    ///
    /// # Errors
    /// [`Error::Request`] when there are none, or so many that they cannot be counted.
    pub fn new(config: &Config, layout: KvLayout, sequences: usize, context: usize) -> Result<Self, Error> {
        let refuse = || Error::Request(format!("no cache of {sequences} sequences of {context} tokens can be made"));
        let block = match layout {
            KvLayout::Contiguous => context,
            KvLayout::Paged(block) => block,
        };
        if sequences == 0 || context == 0 || block == 0 {
            return Err(refuse());
        }
        let each = context.div_ceil(block);
        let blocks = each.checked_mul(sequences).and_then(|blocks| u32::try_from(blocks).ok()).ok_or_else(refuse)?;
        // Blocks of a sequence are spread over the cache as they are in a server that has run for a while.
        let table = (0..blocks).map(|i| i % each as u32 * sequences as u32 + i / each as u32).collect();
        let plan = Self { sequences, context, block, table, kv_heads: config.kv_heads, head_dim: config.head_dim };
        plan.elements_checked().map(|_| plan).ok_or_else(refuse)
    }

    fn elements_checked(&self) -> Option<usize> {
        let slots = self.table.len().checked_mul(self.block)?;
        slots.checked_mul(self.kv_heads)?.checked_mul(self.head_dim)
    }

    /// Elements of the keys of one layer, and of its values.
    pub fn elements(&self) -> usize {
        self.elements_checked().unwrap_or(0)
    }

    /// Where the head of a token lies: index of its first element.
    pub fn place(&self, sequence: usize, position: usize, head: usize) -> usize {
        let slot = self.slot(sequence, position);
        ((slot / self.block * self.kv_heads + head) * self.block + slot % self.block) * self.head_dim
    }

    /// Where a token lies in a cache whose tokens have all heads side by side: its number among them.
    pub(crate) fn slot(&self, sequence: usize, position: usize) -> usize {
        let each = self.context.div_ceil(self.block);
        let block = self.table.get(sequence * each + position / self.block).copied().unwrap_or(0) as usize;
        block * self.block + position % self.block
    }

    /// Blocks of each sequence in order, (sequences, blocks of a sequence).
    pub(crate) fn table(&self) -> &[u32] {
        &self.table
    }

    /// Tokens from `position` on that lie one after the other.
    pub fn run(&self, position: usize) -> usize {
        self.block - position % self.block
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::preset;

    #[test]
    fn every_head_of_every_token_has_a_place_of_its_own() {
        let config = preset("tiny").unwrap();
        for (layout, context) in [(KvLayout::Contiguous, 37), (KvLayout::Paged(16), 37), (KvLayout::Paged(1), 5)] {
            let plan = KvPlan::new(&config, layout, 3, context).unwrap();
            let mut places: Vec<usize> = (0..3)
                .flat_map(|s| (0..context).flat_map(move |t| (0..config.kv_heads).map(move |h| (s, t, h))))
                .map(|(s, t, h)| plan.place(s, t, h))
                .collect();
            places.sort_unstable();
            assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= config.head_dim), "{layout:?}");
            assert!(places.last().unwrap() + config.head_dim <= plan.elements());
        }
        assert!(KvPlan::new(&config, KvLayout::Paged(0), 1, 1).is_err());
        assert!(KvPlan::new(&config, KvLayout::Contiguous, usize::MAX, 16).is_err());
    }
}
