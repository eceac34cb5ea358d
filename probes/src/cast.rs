//! Conversions of type and layout at the size of a model's matrix: what a step pays for operators that compute nothing.
//!
//! On this machine they are those of loading weights. A device converts types where it looks up the rows of a table, and layout
//! where it turns a matrix, by the kernels of the engine.

use std::hint::black_box;

use engine::{
    Dtype, Target, Tensor,
    program::{BufId, OpKind, OpName},
    record::Log,
};
use model::{ProbeRow, ProbeUnit, Setting, Statistic};

use crate::{
    Of, Probe, Setup,
    device::{self, Device},
    repeat::{repeat, time},
    row,
};

pub const PROBE: Probe = Probe {
    name: "cast",
    about: ["conversion of type and layout of a matrix", "矩阵的类型与布局转换"],
    of: Of::Engine,
    run,
};

/// Rows and columns: the output projection of Qwen2.5-0.5B.
const SIDE: usize = 896;
/// Rows and columns of a block that is transposed at once: two blocks stay in a first-level cache.
const BLOCK: usize = 32;
const TYPES: [Dtype; 3] = [Dtype::Bf16, Dtype::F16, Dtype::Q8];

fn run(setup: &Setup) -> Vec<ProbeRow> {
    if setup.target == Target::Cpu { of_machine(setup) } else { of_device(setup) }
}

/// Operators of a run on a device: so many that starting it does not count.
const OPS: usize = 16;

fn of_device(setup: &Setup) -> Vec<ProbeRow> {
    // Where activations are of the weights' type, a lookup converts nothing.
    let converts = |dtype: &Dtype| setup.target.activations(*dtype) != *dtype;
    let types: Vec<Dtype> = TYPES.into_iter().filter(converts).collect();
    let part = setup.part(types.len() + 1);
    let measured = |dtype: Dtype, name: OpName, kind: OpKind| -> Result<Statistic, String> {
        let config = device::model(|config| (config.vocab, config.hidden) = (SIDE, SIDE))?;
        let buffers = [(SIDE, SIDE), (SIDE, SIDE)];
        let mut device = Device::new(setup, config, dtype, (SIDE, 0), &buffers, vec![(name, kind); OPS])?;
        repeat(part, || {
            let began = std::time::Instant::now();
            device.run(&mut Log::off())?;
            Ok(began.elapsed().as_nanos() as f64 / device.ops().max(1) as f64)
        })
    };
    let setting = |from: &str, to: &str| {
        let sides = setup.setting(setup.threads).with(Setting::OUTPUTS, SIDE).with(Setting::INPUTS, SIDE);
        sides.with("from", from).with("to", to)
    };
    let mut rows = Vec::new();
    for dtype in types {
        let value = measured(dtype, OpName::Embed, OpKind::Embed { out: BufId(1) });
        let to = setup.target.activations(dtype).name();
        rows.push(row(PROBE.name, "time", ProbeUnit::Ns, setting(dtype.name(), to), value));
    }
    let value = measured(Dtype::F32, OpName::LayoutCast, OpKind::Transpose { x: BufId(0), out: BufId(1) });
    rows.push(row(PROBE.name, "time", ProbeUnit::Ns, setting("rows", "columns"), value));
    rows
}

fn of_machine(setup: &Setup) -> Vec<ProbeRow> {
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
