//! Every instruction set against sums in double precision.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use proptest::prelude::*;

use super::*;
use crate::Tensor;

fn expected(tensor: &Tensor, row: usize, x: &[f32]) -> (f64, f64) {
    let mut values = vec![0.0; tensor.width];
    tensor.read_row(row, &mut values);
    let products = values.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x));
    products.fold((0.0, 0.0), |(sum, size), product| (sum + product, size + product.abs()))
}

/// The activations that products of an instruction set are of.
fn taken(isa: Isa, dtype: Dtype, x: &[f32]) -> Vec<f32> {
    let value = |x: &f32| if isa.rounds(dtype) { half::bf16::from_f32(*x).to_f32() } else { *x };
    x.iter().map(value).collect()
}

proptest! {
    #[test]
    fn blocks_of_matrix_units_are_the_dot_products_of_rounded_numbers(
        width in 1usize..150,
        tokens in 1usize..70,
        rows in 1usize..70,
        seed in any::<u32>(),
    ) {
        let value = |i: usize| ((seed as usize).wrapping_add(i * 7919) % 2003) as f32 / 1000.0 - 1.0;
        let x: Vec<Vec<f32>> = (0..tokens).map(|t| (0..width).map(|i| value(i + 31 * t)).collect()).collect();
        let slices: Vec<&[f32]> = x.iter().map(Vec::as_slice).collect();
        let mut tensor = Tensor::zeroed(Dtype::Bf16, rows, width).unwrap();
        for row in 0..rows {
            let values: Vec<f32> = (0..width).map(|i| value(i * 3 + row * 17)).collect();
            tensor.set_row(row, &values);
        }
        let some = rows / 3..rows;
        for isa in Isa::available() {
            let Some(matrix) = Kernels::of(isa).unwrap().matrix(Dtype::Bf16) else { continue };
            let mut out = vec![vec![None; rows]; tokens];
            matrix(&tensor, some.clone(), &slices, &mut |rows, first, sums| {
                for (out, sums) in out.iter_mut().skip(first).zip(sums) {
                    rows.clone().zip(sums).for_each(|(row, sum)| out[row] = Some(*sum));
                }
            });
            for (x, out) in x.iter().zip(out) {
                let x = taken(isa, Dtype::Bf16, x);
                for (row, dot) in out.into_iter().enumerate() {
                    let (sum, size) = expected(&tensor, row, &x);
                    let is_right = dot.map(|dot| (f64::from(dot) - sum).abs() <= size * 1e-5);
                    prop_assert_eq!(is_right, some.contains(&row).then_some(true), "{:?} row {}: {:?}", isa, row, dot);
                }
            }
        }
    }

    #[test]
    fn tiles_of_every_instruction_set_and_type_are_the_dot_products(
        width in 1usize..150,
        tokens in 1usize..=TILE_TOKENS,
        rows in 1usize..6,
        seed in any::<u32>(),
    ) {
        let value = |i: usize| ((seed as usize).wrapping_add(i * 7919) % 2003) as f32 / 1000.0 - 1.0;
        let x: Vec<Vec<f32>> = (0..tokens).map(|t| (0..width).map(|i| value(i + 31 * t)).collect()).collect();
        let x: Vec<&[f32]> = x.iter().map(Vec::as_slice).collect();
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::Q8] {
            let mut tensor = Tensor::zeroed(dtype, rows, width).unwrap();
            for row in 0..rows {
                let values: Vec<f32> = (0..width).map(|i| value(i * 3 + row * 17)).collect();
                tensor.set_row(row, &values);
            }
            for isa in Isa::available() {
                let kernels = Kernels::of(isa).unwrap();
                let staged: Vec<Staged> = x.iter().map(|x| kernels.stage(dtype, x)).collect();
                let all: Vec<Activations<'_>> = staged.iter().zip(&x).map(|(staged, x)| staged.of(x)).collect();
                let tile = kernels.tile(rows_of(&tensor, 0), &all);
                for (row, dots) in tile.iter().enumerate().take(rows) {
                    for (token, dot) in dots.iter().enumerate() {
                        let (sum, size) = x.get(token).map_or((0.0, 0.0), |x| expected(&tensor, row, &taken(isa, dtype, x)));
                        prop_assert!(
                            (f64::from(*dot) - sum).abs() <= size * 1e-5 + if dtype == Dtype::Q8 { 1e-4 } else { 0.0 },
                            "{:?} {:?} row {} token {}: {} for {}", isa, dtype, row, token, dot, sum
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn panels_of_every_instruction_set_and_type_are_the_dot_products(
        width in 1usize..150,
        tokens in 1usize..=PANEL_TOKENS,
        seed in any::<u32>(),
    ) {
        let value = |i: usize| ((seed as usize).wrapping_add(i * 7919) % 2003) as f32 / 1000.0 - 1.0;
        let x: Vec<Vec<f32>> = (0..tokens).map(|t| (0..width).map(|i| value(i + 31 * t)).collect()).collect();
        let x: Vec<&[f32]> = x.iter().map(Vec::as_slice).collect();
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::Q8] {
            let mut tensor = Tensor::zeroed(dtype, PANEL_ROWS, width).unwrap();
            for row in 0..PANEL_ROWS {
                let values: Vec<f32> = (0..width).map(|i| value(i * 3 + row * 17)).collect();
                tensor.set_row(row, &values);
            }
            for isa in Isa::available() {
                let kernels = Kernels::of(isa).unwrap();
                let mut panel = vec![[0.0; PANEL_ROWS]; width];
                for first in (0..PANEL_ROWS).step_by(TILE_ROWS) {
                    kernels.widen(rows_of(&tensor, first), &mut panel, first);
                }
                let mut sums = [[7.0; PANEL_ROWS]; PANEL_TOKENS];
                kernels.panel(&panel, &x, &mut sums);
                for (token, sums) in sums.iter().enumerate() {
                    for (row, sum) in sums.iter().enumerate() {
                        let Some(x) = x.get(token) else {
                            prop_assert_eq!(*sum, 7.0);
                            continue;
                        };
                        let (exact, size) = expected(&tensor, row, x);
                        prop_assert!(
                            (f64::from(*sum) - exact).abs() <= size * 1e-5,
                            "{:?} {:?} row {} token {}: {} for {}", isa, dtype, row, token, sum, exact
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn weighed_sums_exponentials_and_gates_agree(width in 1usize..150, count in 0usize..9, most in -3.0f32..3.0) {
        let value = |i: usize| ((i * 7919) % 203) as f32 / 40.0 - 2.5;
        let rows: Vec<f32> = (0..width * count).map(value).collect();
        let weights: Vec<f32> = (0..count).map(|i| value(i + 5)).collect();
        let (gate, up): (Vec<f32>, Vec<f32>) = (0..width).map(|i| (value(3 * i), value(i + 9))).unzip();
        for isa in Isa::available() {
            let kernels = Kernels::of(isa).unwrap();
            let mut out = up.clone();
            kernels.weigh(&weights, &rows, &mut out);
            for (column, out) in out.iter().enumerate() {
                let sum: f32 = (0..count).map(|row| weights[row] * rows[row * width + column]).sum();
                prop_assert!((up[column] + sum - out).abs() <= 1e-4, "{isa:?} column {column}: {out}");
            }
            let mut powers = gate.clone();
            let sum = kernels.exponentials(&mut powers, most);
            let exact: Vec<f32> = gate.iter().map(|x| (x - most).exp()).collect();
            prop_assert!((sum - exact.iter().sum::<f32>()).abs() <= 1e-5 * sum);
            prop_assert!(powers.iter().zip(&exact).all(|(a, b)| (a - b).abs() <= 1e-6 * b));
            let mut gated = vec![0.0; width];
            kernels.silu_mul(&gate, &up, &mut gated);
            for ((gate, up), out) in gate.iter().zip(&up).zip(&gated) {
                prop_assert!((gate / (1.0 + (-gate).exp()) * up - out).abs() <= 1e-5);
            }
        }
    }

    #[test]
    fn dot_and_axpy_agree(length in 0usize..200, a in -2.0f32..2.0) {
        let x: Vec<f32> = (0..length).map(|i| (i % 13) as f32 - 6.0).collect();
        let y: Vec<f32> = (0..length).map(|i| (i % 7) as f32 - 3.0).collect();
        let dot: f32 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
        for isa in Isa::available() {
            let kernels = Kernels::of(isa).unwrap();
            prop_assert_eq!(kernels.dot(&x, &y), dot);
            let mut z = y.clone();
            kernels.axpy(a, &x, &mut z);
            for ((x, y), z) in x.iter().zip(&y).zip(&z) {
                prop_assert!((y + a * x - z).abs() <= 1e-5);
            }
        }
    }
}
