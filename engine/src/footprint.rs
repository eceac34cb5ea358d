//! Memory that a run takes on the host, from the shape of its model alone: before the first byte of it is there.

use crate::{Config, Error, KvLayout, Shard, Weights, run::RunOptions, weights::Recipe};

/// Bytes that the ranks of a run hold together where the host is the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Weights, as the run has them.
    pub weights: u64,
    /// Cache of keys and values, single precision.
    pub cache: u64,
    /// Activations of the prompt's pass and of a decode step, single precision.
    pub buffers: u64,
}

/// Tokens at once beyond which there is nothing to add up: 4 bytes of each are 4 TiB. Own value; sums of what is below cannot
/// overflow.
const MOST_TOKENS: usize = 1 << 40;

impl Footprint {
    /// Of a run on so many ranks of one machine.
    ///
    /// # Errors
    /// [`Error::Request`] when the ranks cannot have equal parts, and of more tokens than any machine holds.
    pub fn of(config: &Config, options: &RunOptions, ranks: usize) -> Result<Self, Error> {
        let (sequences, context) = (options.sequences(), options.prompt.saturating_add(options.steps));
        if sequences.saturating_mul(context) > MOST_TOKENS {
            return Err(Error::Request(format!(
                "{sequences} sequences of {context} tokens are more than any machine holds; choose a smaller --batch, a shorter --prompt-len or fewer tokens with --gen"
            )));
        }
        let mut sum = Self::default();
        for rank in 0..ranks.max(1) {
            let shard = Shard { rank, of: ranks.max(1) };
            let part = config.part(shard)?;
            sum.weights = sum.weights.saturating_add(weights(config, options, shard)?);
            let context = options.prompt.saturating_add(options.steps) as u64;
            let block = match options.layout {
                KvLayout::Contiguous => context,
                KvLayout::Paged(block) => block as u64,
            };
            let slots = context.div_ceil(block.max(1)).saturating_mul(block);
            // Keys and values of every layer.
            let of_slot = 2 * 4 * (part.layers * part.kv_width()) as u64;
            let cache = slots.saturating_mul(options.sequences() as u64).saturating_mul(of_slot);
            sum.cache = sum.cache.saturating_add(cache);
            for buffer in options.programs(config, shard)?.iter().flat_map(|program| &program.buffers) {
                let bytes = (buffer.rows as u64).saturating_mul(buffer.width as u64).saturating_mul(4);
                sum.buffers = sum.buffers.saturating_add(bytes);
            }
        }
        Ok(sum)
    }

    /// All of it.
    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.cache).saturating_add(self.buffers)
    }
}

/// Bytes of a rank's part of the weights: matrices in the type of the run, vectors in single precision.
fn weights(config: &Config, options: &RunOptions, shard: Shard) -> Result<u64, Error> {
    let (mut matrices, mut vectors) = (0u64, 0u64);
    let row = |width: usize| options.dtype.row_bytes(width) as u64;
    Weights::<Recipe, Recipe>::of(config, shard)?.map(
        |matrix| {
            matrices = matrices.saturating_add((matrix.rows() as u64).saturating_mul(row(matrix.width())));
            Ok(())
        },
        |vector| {
            vectors = vectors.saturating_add(4 * vector.elements() as u64);
            Ok(())
        },
    )?;
    Ok(matrices.saturating_add(vectors))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::{Dtype, Seeded, preset};

    #[test]
    fn the_weights_are_as_large_as_those_that_are_loaded() {
        let config = preset("tiny").unwrap();
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::Q8] {
            let options = RunOptions { dtype, prompt: 5, steps: 3, batch: 2, ..RunOptions::default() };
            let said = Footprint::of(&config, &options, 1).unwrap();
            let loaded = Weights::load(&config, dtype, &mut Seeded(0)).unwrap();
            let bytes = std::cell::Cell::new(0);
            loaded
                .map(
                    |matrix| {
                        bytes.set(bytes.get() + dtype.row_bytes(matrix.width) * matrix.rows);
                        Ok(())
                    },
                    |vector| {
                        bytes.set(bytes.get() + 4 * vector.len());
                        Ok(())
                    },
                )
                .unwrap();
            assert_eq!(said.weights, bytes.get() as u64, "{dtype:?}");
            // Two sequences of eight tokens, keys and values of two layers, two heads of 16 in single precision.
            assert_eq!(said.cache, (2 * 8 * 2 * config.layers * config.kv_width() * 4) as u64);
            let two = Footprint::of(&config, &options, 2).unwrap();
            assert_eq!(two.cache, said.cache, "each rank has its heads");
            assert!(two.weights >= said.weights && two.weights < said.weights + 8192, "{two:?} {said:?}");
        }
    }

    #[test]
    fn a_published_model_is_as_large_as_its_parameters() {
        let config = preset("llama-3.1-8b").unwrap();
        let of = |dtype| Footprint::of(&config, &RunOptions { dtype, ..RunOptions::default() }, 1).unwrap().weights;
        // 8.03 billion parameters.
        assert_eq!((of(Dtype::F32) / 100_000_000, of(Dtype::Bf16) / 100_000_000), (321, 160));
    }
}
