//! Frequencies of the rotary embedding, with the scalings of `transformers` (`modeling_rope_utils.py`, read for the
//! formulas; the papers are named at [`RopeScaling`]).

use std::f64::consts::TAU;

use crate::{Config, RopeScaling};

/// Angle per position of each pair of elements of a head, `(head_dim / 2)`, for sequences of `length` tokens.
pub fn frequencies(config: &Config, length: usize) -> Vec<f32> {
    let width = config.head_dim as f64;
    let theta = match config.rope.scaling {
        RopeScaling::Dynamic { factor } if length > config.max_positions => {
            let stretched = factor * length as f64 / config.max_positions as f64 - (factor - 1.0);
            config.rope.theta * stretched.powf(width / (width - 2.0))
        }
        _ => config.rope.theta,
    };
    let frequency = |pair: usize| {
        let plain = theta.powf(-2.0 * pair as f64 / width);
        match config.rope.scaling {
            RopeScaling::Default | RopeScaling::Dynamic { .. } => plain,
            RopeScaling::Linear { factor } => plain / factor,
            RopeScaling::Llama3 { factor, low, high, original } => {
                let wavelength = TAU / plain;
                if wavelength < original / high {
                    plain
                } else if wavelength > original / low {
                    plain / factor
                } else {
                    let smooth = (original / wavelength - low) / (high - low);
                    (1.0 - smooth) * plain / factor + smooth * plain
                }
            }
        }
    };
    (0..config.head_dim / 2).map(|pair| frequency(pair) as f32).collect()
}

/// Cosines and then sines of the angles of each position, (positions, `head_dim`).
pub fn turns(config: &Config, positions: &[u32]) -> Vec<f32> {
    let longest = positions.iter().max().map_or(0, |position| *position as usize + 1);
    let frequencies = frequencies(config, longest);
    let mut turns = Vec::with_capacity(positions.len() * config.head_dim);
    for position in positions {
        let angles = || frequencies.iter().map(|frequency| frequency * *position as f32);
        turns.extend(angles().map(f32::cos));
        turns.extend(angles().map(f32::sin));
    }
    turns
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::preset;

    fn with(scaling: RopeScaling) -> Config {
        let mut config = preset("llama-3.2-1b").unwrap();
        config.rope.scaling = scaling;
        config.max_positions = 8192;
        config
    }

    #[test]
    fn scalings_change_what_they_should() {
        let plain = frequencies(&with(RopeScaling::Default), 10);
        assert_eq!(plain[0], 1.0);
        assert!((plain[1] - 500_000f32.powf(-2.0 / 64.0)).abs() < 1e-6);
        let linear = frequencies(&with(RopeScaling::Linear { factor: 4.0 }), 10);
        assert!(plain.iter().zip(&linear).all(|(plain, linear)| (plain / linear - 4.0).abs() < 1e-5));

        let dynamic = with(RopeScaling::Dynamic { factor: 2.0 });
        assert_eq!(frequencies(&dynamic, 8192), plain);
        let longer = frequencies(&dynamic, 16_384);
        // The slowest frequency is divided by 2 · 2 - 1 = 3 when the length has doubled.
        assert!((plain[31] / longer[31] - 3.0).abs() < 1e-4 && longer[0] == 1.0);

        let llama3 = frequencies(&with(RopeScaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, original: 8192.0 }), 10);
        assert_eq!(llama3[0], 1.0);
        assert!((plain[31] / llama3[31] - 8.0).abs() < 1e-4);
        let between = plain.iter().zip(&llama3).filter(|(p, l)| (1.01..7.99).contains(&(*p / *l))).count();
        assert!((1..12).contains(&between), "{between} frequencies are blended");
    }
}
