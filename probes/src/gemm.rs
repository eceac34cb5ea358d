//! Many rows of activations times a matrix: the arithmetic that the engine's kernels reach by type of the weights, which is
//! the ceiling of prompts and of large batches.

use engine::Dtype;
use model::{ProbeRow, ProbeUnit};

use crate::{Of, Probe, Product, Setup, product, repeat::per_second, row};

pub const PROBE: Probe = Probe {
    name: "gemm",
    about: ["arithmetic of products by rows and type", "按行数与类型的矩阵乘算力"],
    of: Of::Engine,
    run,
};

/// Tokens of a batch and of a prompt.
const ROWS: [usize; 2] = [16, 128];
/// Outputs and inputs: a matrix that stays in a second- or third-level cache, so that arithmetic is the limit.
const SIDE: usize = 1024;
const TYPES: [Dtype; 4] = [Dtype::F32, Dtype::Bf16, Dtype::F16, Dtype::Q8];

fn run(setup: &Setup) -> Vec<ProbeRow> {
    let cases: Vec<(Dtype, usize)> = TYPES.into_iter().flat_map(|dtype| ROWS.map(|rows| (dtype, rows))).collect();
    let part = setup.part(cases.len());
    let row = |(dtype, rows): (Dtype, usize)| {
        let product = Product { rows, outputs: SIDE, inputs: SIDE, dtype };
        let operations = 2.0 * (rows * SIDE * SIDE) as f64;
        let value = product::time(setup, &product, 1, part).map(|ns| per_second(operations, &ns));
        row(PROBE.name, "arithmetic", ProbeUnit::FlopsPerSecond, product::setting(setup, &product), value)
    };
    cases.into_iter().map(row).collect()
}
