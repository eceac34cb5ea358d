//! Launch geometry of kernels and the shapes of their inputs, of a piece with the durations that were drawn.

use crate::{
    config::Config,
    kernel::{Class, Slot},
    serving::geometry,
};

/// Cores of the simulated device, where no real one is meant.
const CORES: i64 = 132;
/// Bytes that a healthy matrix product reads per nanosecond: 84 % of 3.35 TB/s.
const BYTES_PER_NS: i64 = 2_800;
/// Key and value heads of a rank.
const KV_HEADS: i64 = 8;
/// Longest context that one block per head reads fast enough.
const SHORT_CONTEXT: i64 = 1_024;

/// Thread blocks of a healthy kernel.
pub(crate) fn blocks(config: &Config, slot: Slot, rows: i64) -> i64 {
    if let Some(serving) = &config.serving {
        return geometry::blocks(config, serving, slot, rows);
    }
    match slot.card().class {
        None => 16,
        // Persistent kernels fill the device once.
        Some(Class::Gemm) => CORES,
        Some(Class::Attention) if config.context_tokens < SHORT_CONTEXT => rows * KV_HEADS,
        // Split until full waves are filled.
        Some(Class::Attention) => whole_waves(rows),
        Some(Class::Elementwise | Class::Format | Class::Fill | Class::Act) => (rows * config.hidden / 1024).max(1),
        Some(_) => rows.max(1),
    }
}

/// Blocks of attention over `rows` sequences whose contexts are split so that no wave is left half empty.
fn whole_waves(rows: i64) -> i64 {
    (rows * KV_HEADS + CORES - 1) / CORES * CORES
}

/// Blocks of attention that gives each head of each sequence one block.
pub(crate) fn unsplit(config: &Config, rows: i64) -> i64 {
    let served = |serving: &crate::Serving| (serving.model.kv_heads / config.tensor_parallel.max(1)).max(1);
    rows * config.serving.as_ref().map_or(KV_HEADS, served)
}

/// Cores of the device.
pub(crate) fn cores(config: &Config) -> i64 {
    config.serving.map_or(CORES, |serving| serving.accelerator.ability().cores)
}

/// Threads of a block.
pub(crate) fn threads(class: Option<Class>) -> i64 {
    match class {
        Some(Class::Gemm) => 384,
        Some(Class::Attention) => 128,
        None => 512,
        _ => 256,
    }
}

/// Shared memory of a block in bytes; that of matrix products leaves room for one block per core.
pub(crate) fn shared_memory(class: Option<Class>) -> i64 {
    match class {
        Some(Class::Gemm) => 213_000,
        Some(Class::Attention) => 164_000,
        _ => 0,
    }
}

/// Inner and outer size of a matrix product's weight, from the time that reading it takes.
pub(crate) fn weight(config: &Config, slot: Slot) -> Option<(i64, i64)> {
    if let Some(serving) = &config.serving {
        return geometry::weight(config, serving, slot);
    }
    if slot.card().class != Some(Class::Gemm) {
        return None;
    }
    let outer = config.kernel(slot) * BYTES_PER_NS / (2 * config.hidden.max(1)) / 64 * 64;
    Some((config.hidden, outer.max(64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_attention_leaves_no_wave_half_empty() {
        for rows in 1..300 {
            assert_eq!(whole_waves(rows) % CORES, 0);
            assert!(whole_waves(rows) >= rows * KV_HEADS);
        }
    }
}
