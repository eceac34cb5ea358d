//! Products of one shape, their weights as cold as in a decode step: what the engine's best kernels make of the very shapes
//! of a run. Without a run these are the shapes of one layer of the smallest usual model.

use engine::{
    Dtype,
    program::{BufId, Matrix, OpKind, OpName},
    record::Log,
};
use model::{ProbeRow, ProbeUnit, Setting, Statistic};

use crate::{
    Of, Probe, Product, Setup, caches,
    device::{self, Device},
    repeat::repeat,
    row,
};

pub const PROBE: Probe = Probe {
    name: "product",
    about: ["matrix products of the shapes of a model, cold weights", "模型各形状的矩阵乘（权重不在缓存）"],
    of: Of::Engine,
    run,
};

/// Outputs and inputs of the matrices of a layer of Qwen2.5-0.5B: queries, keys and values; output; gate and up; down.
const USUAL: [(usize, usize); 4] = [(1152, 896), (896, 896), (9728, 896), (896, 4864)];
/// Matrices that are multiplied in turn at most; even the smallest then fill a cache of usual size.
const MATRICES: usize = 64;
/// Largest matrix that is measured, bytes: it is made twice, and the machine has other things to do.
const LARGEST: usize = 1 << 30;
/// Most products that are measured in one run.
const MOST: usize = 32;

/// Bytes of a matrix.
pub fn bytes(product: &Product) -> usize {
    product.dtype.row_bytes(product.inputs).saturating_mul(product.outputs)
}

/// The conditions of a product.
pub fn setting(setup: &Setup, product: &Product) -> Setting {
    setup
        .setting(setup.threads)
        .with(Setting::DTYPE, product.dtype.name())
        .with(Setting::ROWS, product.rows)
        .with(Setting::OUTPUTS, product.outputs)
        .with(Setting::INPUTS, product.inputs)
}

fn run(setup: &Setup) -> Vec<ProbeRow> {
    let usual = USUAL.map(|(outputs, inputs)| Product { rows: 1, outputs, inputs, dtype: Dtype::Bf16 });
    let chosen = if setup.products.is_empty() { &usual[..] } else { &setup.products };
    let part = setup.part(chosen.len().min(MOST));
    let row = |product: &Product| {
        // Half of what is beyond every cache: the matrix beside the one that is timed is as large again.
        let matrices = (caches::beyond_of(&setup.target) / 2 / bytes(product).max(1)).clamp(1, MATRICES);
        let device = prepared(setup, product, matrices);
        let kernel = device.as_ref().ok().map(|device| device.kernel().to_owned());
        let setting = setting(setup, product);
        let setting = kernel.into_iter().fold(setting, |setting, kernel| setting.with(Setting::KERNEL, kernel));
        row(PROBE.name, "time", ProbeUnit::Ns, setting, device.and_then(|device| timed(device, part)))
    };
    chosen.iter().take(MOST).map(row).collect()
}

/// Time of a product over `matrices` of its shape in turn, ns.
pub fn time(setup: &Setup, product: &Product, matrices: usize, part: std::time::Duration) -> Result<Statistic, String> {
    timed(prepared(setup, product, matrices)?, part)
}

/// A product with each of `matrices` of its shape in turn.
fn prepared(setup: &Setup, product: &Product, matrices: usize) -> Result<Device, String> {
    let Product { rows, outputs, inputs, dtype } = *product;
    if rows == 0 || outputs == 0 || inputs == 0 {
        return Err("a product of no rows or columns".to_owned());
    }
    if bytes(product) > LARGEST || rows.saturating_mul(inputs.max(outputs)) > LARGEST / 4 {
        return Err(format!("more than {} MiB, which no probe measures", LARGEST >> 20));
    }
    // Gate and up projections are one matrix of any even number of outputs; the last of an odd number is one too many.
    let config = device::model(|config| {
        (config.hidden, config.intermediate, config.layers) = (inputs, outputs.div_ceil(2), matrices);
    })?;
    let op = |layer: u16| {
        let matrix = Matrix::GateUp(layer);
        (OpName::GateUpProj, OpKind::Linear { x: BufId(0), matrix, rows: 0..outputs, out: BufId(1) })
    };
    let layers = u16::try_from(matrices).unwrap_or(u16::MAX);
    let buffers = [(rows, inputs), (rows, outputs)];
    Device::new(setup, config, dtype, (rows, 0), &buffers, (0..layers).map(op).collect())
}

/// Mean time of its operators, ns.
fn timed(mut device: Device, part: std::time::Duration) -> Result<Statistic, String> {
    repeat(part, || {
        let began = std::time::Instant::now();
        device.run(&mut Log::off())?;
        Ok(began.elapsed().as_nanos() as f64 / device.ops().max(1) as f64)
    })
}
