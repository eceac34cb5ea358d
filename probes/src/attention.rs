//! Attention of a decode step: bytes of keys and values read per second, by sequences and context.

use engine::{
    Dtype,
    program::{BufId, OpKind, OpName},
    record::Log,
};
use model::{ProbeRow, ProbeUnit, Setting, Statistic};

use crate::{
    Of, Probe, Setup, caches,
    device::{self, Device},
    repeat::{per_second, repeat},
    row,
};

pub const PROBE: Probe = Probe {
    name: "attention",
    about: ["keys and values read by decode attention", "解码注意力读取 KV 的带宽"],
    of: Of::Engine,
    run,
};

/// Query heads, key heads and width of a head of Qwen2.5-0.5B.
const HEADS: (usize, usize, usize) = (14, 2, 64);
/// Sequences, and context of each.
const CASES: [(usize, usize); 4] = [(1, 1024), (1, 8192), (8, 1024), (8, 4096)];
/// Layers that are read in turn at most.
const LAYERS: usize = 24;

fn run(setup: &Setup) -> Vec<ProbeRow> {
    let row = |(sequences, context): (usize, usize)| {
        let setting = setup
            .setting(setup.threads)
            .with("sequences", sequences)
            .with(Setting::CONTEXT, context)
            .with("heads", HEADS.0)
            .with("kv_heads", HEADS.1)
            .with("head_dim", HEADS.2);
        let value = measure(setup, sequences, context);
        row(PROBE.name, "bandwidth", ProbeUnit::BytesPerSecond, setting, value)
    };
    CASES.into_iter().map(row).collect()
}

fn measure(setup: &Setup, sequences: usize, context: usize) -> Result<Statistic, String> {
    let (heads, kv_heads, head_dim) = HEADS;
    // Keys and values in single precision.
    let bytes = 2 * sequences * context * kv_heads * head_dim * 4;
    let layers = (caches::beyond() / 2 / bytes).clamp(1, LAYERS);
    let config = device::model(|config| {
        (config.heads, config.kv_heads, config.head_dim, config.layers) = (heads, kv_heads, head_dim, layers);
        config.max_positions = context;
    })?;
    let q = heads * head_dim;
    let buffers = [(sequences, q + 2 * kv_heads * head_dim), (sequences, q)];
    let op = |layer: u16| (OpName::AttentionDecode, OpKind::Attention { qkv: BufId(0), layer, out: BufId(1) });
    let ops = (0..u16::try_from(layers).unwrap_or(u16::MAX)).map(op).collect();
    let mut device = Device::new(setup, config, Dtype::F32, (sequences, context - 1), &buffers, ops)?;
    let time = repeat(setup.part(CASES.len()), || {
        let began = std::time::Instant::now();
        device.run(&mut Log::off())?;
        Ok(began.elapsed().as_nanos() as f64 / device.ops().max(1) as f64)
    })?;
    Ok(per_second(bytes as f64, &time))
}
