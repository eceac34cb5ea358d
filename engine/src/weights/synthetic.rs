//! Weights made from their names, so that a model of any size needs no file and has the same bits on every platform.
//!
//! An element is the sum of the four 16-bit quarters of SplitMix64 (Steele et al., OOPSLA 2014) at its index: an integer
//! that any device computes exactly, near enough to normal for activations to behave. One multiplication scales it.

use super::Source;
use crate::{Error, hash::hash};

/// Standard deviation of projections and biases, the `initializer_range` of the families.
const SIGMA: f64 = 0.02;
/// Mean of the sum of four numbers below 2^16.
const MEAN: i32 = 2 * 65_535;

/// A source that has every tensor in every shape.
#[derive(Clone, Copy, Debug, Default)]
pub struct Synthetic;

/// As [`Synthetic`], with other weights for every seed; those of seed 0 are its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seeded(pub u64);

/// SplitMix64 at an index.
pub(crate) fn split_mix(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The elements of a tensor by their places, row by row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sequence {
    /// Of SplitMix64.
    pub seed: u64,
    /// What the sum of the quarters, less their mean, is multiplied by.
    pub scale: f32,
}

impl Sequence {
    /// That of the tensor `name` of a seed; `None` of norms, which are ones.
    fn of(name: &str, seed: u64) -> Option<Self> {
        let other = if seed == 0 { 0 } else { split_mix(seed, 0) };
        // The variance of a number below 2^16 is 2^32 / 12, and four are added.
        let scale = (SIGMA / (4.0 * 65_536f64.powi(2) / 12.0).sqrt()) as f32;
        (!name.contains("norm")).then(|| Self { seed: hash(name) ^ other, scale })
    }

    /// The element of a place.
    pub fn element(&self, index: u64) -> f32 {
        let bits = split_mix(self.seed, index);
        let sum: i32 = (0..4).map(|quarter| i32::from((bits >> (16 * quarter)) as u16)).sum();
        (sum - MEAN) as f32 * self.scale
    }
}

impl Source for Synthetic {
    fn rows(
        &mut self,
        name: &str,
        rows: usize,
        width: usize,
        each: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<(), Error> {
        Seeded(0).rows(name, rows, width, each)
    }

    fn sequence(&self, name: &str) -> Option<Sequence> {
        Seeded(0).sequence(name)
    }
}

impl Source for Seeded {
    fn rows(
        &mut self,
        name: &str,
        rows: usize,
        width: usize,
        each: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<(), Error> {
        let sequence = Sequence::of(name, self.0);
        let mut values = vec![1.0; width];
        for row in 0..rows {
            if let Some(sequence) = sequence {
                let first = row as u64 * width as u64;
                for (value, index) in values.iter_mut().zip(first..) {
                    *value = sequence.element(index);
                }
            }
            each(row, &values);
        }
        Ok(())
    }

    fn sequence(&self, name: &str) -> Option<Sequence> {
        Sequence::of(name, self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn values(name: &str, rows: usize, width: usize) -> Vec<f32> {
        let mut all = Vec::new();
        Synthetic.rows(name, rows, width, &mut |_, row| all.extend_from_slice(row)).unwrap();
        all
    }

    #[test]
    fn the_first_numbers_of_split_mix_are_the_published_ones() {
        // Seed 1234567, from the reference implementation at https://prng.di.unimi.it/splitmix64.c.
        let first: Vec<u64> = (0..3).map(|index| split_mix(1_234_567, index)).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn every_seed_has_weights_of_its_own() {
        let of = |seed| {
            let mut all = Vec::new();
            Seeded(seed).rows("model.embed_tokens.weight", 2, 8, &mut |_, row| all.extend_from_slice(row)).unwrap();
            all
        };
        assert_eq!(of(0), values("model.embed_tokens.weight", 2, 8));
        assert_eq!(of(7), of(7));
        assert!(of(0) != of(1) && of(1) != of(2));
    }

    #[test]
    fn elements_depend_on_name_and_place_only_and_spread_as_they_should() {
        let all = values("model.layers.0.mlp.up_proj.weight", 100, 128);
        assert_eq!(values("model.layers.0.mlp.up_proj.weight", 50, 256), all);
        assert_ne!(values("model.layers.1.mlp.up_proj.weight", 100, 128), all);
        let mean = all.iter().sum::<f32>() / all.len() as f32;
        let deviation = (all.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / all.len() as f32).sqrt();
        assert!(mean.abs() < 1e-3 && (deviation / 0.02 - 1.0).abs() < 0.05, "{mean} {deviation}");
        assert_eq!(values("model.norm.weight", 1, 3), [1.0; 3]);
    }
}
