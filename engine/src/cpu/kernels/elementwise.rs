//! Functions of single elements, written so that compilers make vectors of them: no branches, no calls. Each instruction
//! set compiles them for itself.

use crate::Q8_BLOCK;

/// e to the power of `x`, within two units in the last place; 0 below −87.3, the least that is not subnormal.
///
/// x = n·ln 2 + r with |r| ≤ ln 2 / 2, ln 2 in two parts so that r is exact (Cody and Waite), and the Taylor series of
/// e^r, whose first term left out is below 2⁻²⁷.
#[inline(always)]
fn exp(x: f32) -> f32 {
    const LN2: [f32; 2] = [355.0 / 512.0, -2.121_944_4e-4];
    const LEAST: f32 = -87.336_54;
    let clamped = x.clamp(LEAST, 88.0);
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (clamped - n * LN2[0]) - n * LN2[1];
    let series = [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    let value = series.into_iter().fold(0.0, |sum, term| sum * r + term);
    // n is the low bits of the shifted number; put into the exponent it is 2^n.
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    // What is no number stays none.
    if x < LEAST { 0.0 } else { value * power + x * 0.0 }
}

/// Adding and subtracting it rounds to an integer: 1.5·2²³, above which singles have no fractions.
const ROUND: f32 = 12_582_912.0;

/// The bit of a single's sign.
const SIGN: u32 = 1 << 31;

/// Values as multiples of a scale per block of [`Q8_BLOCK`]: value ≈ scale × fixed, with 15 bits beside the sign. That is 256
/// times as fine as the weights of [`crate::Dtype::Q8`], so that their products in integers are as good as in singles.
/// Blocks that are not whole are left out. A block with something that is no number has a scale that is none.
#[inline(always)]
pub(super) fn fix(values: &[f32], fixed: &mut Vec<i16>, scales: &mut Vec<f32>) {
    let blocks = values.as_chunks::<Q8_BLOCK>().0;
    fixed.resize(blocks.len() * Q8_BLOCK, 0);
    scales.resize(blocks.len(), 0.0);
    for ((values, fixed), scale) in blocks.iter().zip(fixed.as_chunks_mut::<Q8_BLOCK>().0).zip(scales) {
        // Without their signs numbers are in the order of their bits, and what is none comes last: integers, because
        // compilers may compare those in any order.
        let most = values.iter().fold(0, |most: u32, value| most.max(value.to_bits() & !SIGN));
        let most = f32::from_bits(most);
        *scale = if most.is_finite() { most / f32::from(i16::MAX) } else { f32::NAN };
        let inverse = if most > 0.0 { f32::from(i16::MAX) / most } else { 0.0 };
        // The integer is in the low bits of the shifted number.
        fixed.iter_mut().zip(values).for_each(|(fixed, value)| *fixed = (value * inverse + ROUND).to_bits() as i16);
    }
}

/// Replaces each value by e^(value − `most`) and returns their sum.
#[inline(always)]
pub(super) fn exponentials(values: &mut [f32], most: f32) -> f32 {
    const LANES: usize = 32;
    // Two loops, because compilers make no vectors of one that does both.
    for value in &mut *values {
        *value = exp(*value - most);
    }
    let mut sums = [0.0; LANES];
    let (whole, rest) = values.as_chunks::<LANES>();
    for values in whole {
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    sums.iter().chain(rest).sum()
}

/// gate · sigmoid(gate) · up.
#[inline(always)]
pub(super) fn silu_mul(gate: &[f32], up: &[f32], out: &mut [f32]) {
    for ((out, gate), up) in out.iter_mut().zip(gate).zip(up) {
        *out = gate / (1.0 + exp(-gate)) * up;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_within_two_units_in_the_last_place() {
        for i in -870_000..=880_000 {
            let x = i as f32 / 10_000.0;
            let (ours, exact) = (exp(x), f64::from(x).exp());
            let unit = f64::from(f32::from_bits((exact as f32).to_bits() + 1)) - f64::from(exact as f32);
            assert!((f64::from(ours) - exact).abs() <= 2.0 * unit, "e^{x} = {ours}, not {exact}");
        }
    }

    #[test]
    fn fixed_point_is_within_half_a_step_and_tells_of_what_is_no_number() {
        let mut values: Vec<f32> = (0..2 * Q8_BLOCK).map(|i| ((i * 37) % 101) as f32 / 7.0 - 7.0).collect();
        values[Q8_BLOCK..].fill(0.0);
        let (mut fixed, mut scales) = (Vec::new(), Vec::new());
        fix(&values, &mut fixed, &mut scales);
        for ((value, fixed), i) in values.iter().zip(&fixed).zip(0..) {
            let scale = scales[i / Q8_BLOCK];
            assert!((value - scale * f32::from(*fixed)).abs() <= 0.5 * scale * 1.001, "{value} is {fixed} of {scale}");
        }
        assert_eq!(scales[1], 0.0);
        for spoilt in [f32::NAN, f32::INFINITY] {
            values[3] = spoilt;
            (fixed, scales) = (Vec::new(), Vec::new());
            fix(&values, &mut fixed, &mut scales);
            assert!(scales[0].is_nan() && scales[1] == 0.0);
        }
    }

    #[test]
    fn what_is_out_of_range_or_no_number_stays_so() {
        assert_eq!((exp(f32::NEG_INFINITY), exp(-100.0), exp(0.0)), (0.0, 0.0, 1.0));
        assert!(exp(f32::NAN).is_nan() && exp(f32::INFINITY).is_nan());
    }
}
