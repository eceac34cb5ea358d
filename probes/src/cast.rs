//! Conversions of type and layout at the size of a model's matrix: what a step pays for operators that compute nothing.

use std::hint::black_box;

use engine::{Dtype, Tensor};
use model::{ProbeRow, ProbeUnit, Setting, Statistic};

use crate::{
    Of, Probe, Setup,
    repeat::{repeat, time},
    row,
};

pub const PROBE: Probe = Probe {
    name: "cast",
    about: ["conversion of type and layout of a matrix, one thread", "矩阵的类型与布局转换（单线程）"],
    of: Of::Machine,
    run,
};

/// Rows and columns: the output projection of Qwen2.5-0.5B.
const SIDE: usize = 896;
/// Rows and columns of a block that is transposed at once: two blocks stay in a first-level cache.
const BLOCK: usize = 32;
const TYPES: [Dtype; 3] = [Dtype::Bf16, Dtype::F16, Dtype::Q8];

fn run(setup: &Setup) -> Vec<ProbeRow> {
    let part = setup.part(2 * TYPES.len() + 1);
    let setting = |from: &str, to: &str| {
        let sides = Setting::new().with(Setting::THREADS, 1).with(Setting::OUTPUTS, SIDE).with(Setting::INPUTS, SIDE);
        sides.with("from", from).with("to", to)
    };
    let mut rows = Vec::new();
    for dtype in TYPES {
        let name = dtype.name();
        for (setting, back) in [(setting("f32", name), false), (setting(name, "f32"), true)] {
            rows.push(row(PROBE.name, "time", ProbeUnit::Ns, setting, convert(dtype, back, part)));
        }
    }
    let from: Vec<f32> = vec![1.0; SIDE * SIDE];
    let mut to = vec![0.0; SIDE * SIDE];
    let turned = repeat(part, || Ok(time(|| transpose(black_box(&from), black_box(&mut to), SIDE))));
    rows.push(row(PROBE.name, "time", ProbeUnit::Ns, setting("rows", "columns"), turned));
    rows
}

fn convert(dtype: Dtype, back: bool, part: std::time::Duration) -> Result<Statistic, String> {
    let mut tensor = Tensor::zeroed(dtype, SIDE, SIDE).map_err(|error| error.to_string())?;
    let mut values = vec![0.5; SIDE];
    repeat(part, || {
        let ns = time(|| {
            for row in 0..SIDE {
                if back {
                    tensor.read_row(row, black_box(&mut values));
                } else {
                    tensor.set_row(row, black_box(&values));
                }
            }
        });
        black_box((&tensor, &values));
        Ok(ns)
    })
}

fn transpose(from: &[f32], to: &mut [f32], side: usize) {
    for top in (0..side).step_by(BLOCK) {
        for left in (0..side).step_by(BLOCK) {
            for row in top..side.min(top + BLOCK) {
                for column in left..side.min(left + BLOCK) {
                    if let (Some(value), Some(place)) = (from.get(row * side + column), to.get_mut(column * side + row))
                    {
                        *place = *value;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        let side = BLOCK + 3;
        let from: Vec<f32> = (0..side * side).map(|i| i as f32).collect();
        let mut to = vec![-1.0; side * side];
        transpose(&from, &mut to, side);
        assert!((0..side * side).all(|i| to[i % side * side + i / side] == from[i]));
    }
}
