//! Tensor parallelism after Megatron (arXiv 1909.08053): which part of a model a rank holds.
//!
//! Query, key and value projections and the gate and up projections are split by their outputs, the projections after them
//! by their inputs, whose sums the ranks then add. The vocabulary is split by rows, for the embedding and for the head.

use std::ops::Range;

use crate::{Config, Error};

/// One rank of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shard {
    /// The rank.
    pub rank: usize,
    /// Ranks.
    pub of: usize,
}

impl Shard {
    /// The whole model on one rank.
    pub const WHOLE: Self = Self { rank: 0, of: 1 };

    /// This rank's part of `count` things that lie one after the other.
    pub fn range(self, count: usize) -> Range<usize> {
        let bound = |rank: usize| count * rank / self.of.max(1);
        bound(self.rank)..bound(self.rank + 1)
    }

    /// All ranks.
    pub fn ranks(self) -> impl Iterator<Item = Self> {
        (0..self.of).map(move |rank| Self { rank, ..self })
    }
}

impl Config {
    /// The shape of a rank's part: its heads and its width of the feed-forward block; everything else is whole, the size of
    /// the vocabulary too.
    ///
    /// # Errors
    /// [`Error::Request`] when the ranks cannot have equal parts.
    pub fn part(&self, shard: Shard) -> Result<Self, Error> {
        let of = shard.of;
        let counts = [("key heads", self.kv_heads), ("width of the feed-forward block", self.intermediate)];
        if of == 0 || shard.rank >= of {
            return Err(Error::Request(format!("there is no rank {} of {of}", shard.rank)));
        }
        if let Some((what, count)) = counts.into_iter().find(|(_, count)| !count.is_multiple_of(of)) {
            return Err(Error::Request(format!(
                "the {what} of this model ({count}) cannot be split evenly between {of} ranks; choose a divisor"
            )));
        }
        Ok(Self {
            heads: self.heads / of,
            kv_heads: self.kv_heads / of,
            intermediate: self.intermediate / of,
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::preset;

    #[test]
    fn parts_cover_a_model_once_and_uneven_ones_are_refused() {
        let config = preset("qwen2.5-0.5b").unwrap();
        let whole = Shard { rank: 0, of: 2 };
        let parts: Vec<Config> = whole.ranks().map(|shard| config.part(shard).unwrap()).collect();
        assert!(parts.iter().all(|part| (part.heads, part.kv_heads, part.intermediate) == (7, 1, 2432)));
        let rows: Vec<Range<usize>> = Shard { rank: 0, of: 3 }.ranks().map(|shard| shard.range(512)).collect();
        assert_eq!(rows, [0..170, 170..341, 341..512]);
        assert!(config.part(Shard { rank: 0, of: 4 }).unwrap_err().to_string().contains("key heads"));
        assert!(config.part(Shard { rank: 2, of: 2 }).is_err());
    }
}
