//! One row of activations times a matrix far larger than the caches: the bandwidth at which the engine's kernels read
//! weights of each type, which is the ceiling of a decode step of one sequence.

use engine::Dtype;
use model::{ProbeRow, ProbeUnit};

use crate::{Of, Probe, Product, Setup, caches, product, repeat::per_second, row};

pub const PROBE: Probe = Probe {
    name: "gemv",
    about: ["weights read by a product of one row, by type", "单行矩阵乘读取权重的带宽（按类型）"],
    of: Of::Engine,
    run,
};

/// Inputs of the matrix: those of a model of eight billion parameters.
const INPUTS: usize = 4096;
const TYPES: [Dtype; 4] = [Dtype::F32, Dtype::Bf16, Dtype::F16, Dtype::Q8];

fn run(setup: &Setup) -> Vec<ProbeRow> {
    let row = |dtype: Dtype| {
        // Where it can be, twice the last-level cache: a sweep over it leaves nothing of it behind for the next.
        let outputs = (caches::beyond_of(&setup.target) / 2 / dtype.row_bytes(INPUTS)).next_multiple_of(2);
        let product = Product { rows: 1, outputs, inputs: INPUTS, dtype };
        let bytes = product::bytes(&product) as f64;
        let value = product::time(setup, &product, 1, setup.part(TYPES.len()));
        let setting = product::setting(setup, &product);
        row(PROBE.name, "bandwidth", ProbeUnit::BytesPerSecond, setting, value.map(|ns| per_second(bytes, &ns)))
    };
    TYPES.into_iter().map(row).collect()
}
