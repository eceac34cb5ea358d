//! Tiles and grids that follow from the shapes: a product has a block per tile, a norm and a write to the cache one per
//! token, attention one per head and sequence.

use super::Serving;
use crate::{
    config::Config,
    kernel::{Class, Slot},
};

/// Tile of a product: rows and columns of the result that one block computes.
pub(crate) fn tile(rows: i64) -> (i64, i64) {
    match rows {
        ..=16 => (16, 64),
        17..=32 => (32, 64),
        33..=64 => (64, 64),
        65..=128 => (128, 64),
        _ => (128, 128),
    }
}

/// Width between the products of the feed-forward part on one rank.
pub(crate) fn inner(config: &Config, serving: &Serving) -> i64 {
    serving.model.inner / config.tensor_parallel.max(1)
}

/// Inner and outer size of the weight of a product on one rank.
pub(crate) fn weight(config: &Config, serving: &Serving, slot: Slot) -> Option<(i64, i64)> {
    let (model, ranks) = (serving.model, config.tensor_parallel.max(1));
    let heads = (model.heads / ranks).max(1) * model.head;
    let keys = 2 * (model.kv_heads / ranks).max(1) * model.head;
    match slot {
        Slot::Qkv => Some((model.hidden, heads + keys)),
        Slot::OutProj => Some((heads, model.hidden)),
        Slot::GateUp => Some((model.hidden, 2 * inner(config, serving))),
        Slot::Down => Some((inner(config, serving), model.hidden)),
        Slot::LmHead => Some((model.hidden, model.vocab / ranks)),
        Slot::SideProjection => Some((model.hidden, model.hidden / 4)),
        _ => None,
    }
}

/// Parts that the sum of a product is split in so that the device is filled.
pub(crate) fn split(serving: &Serving, rows: i64, outer: i64) -> i64 {
    let ((high, wide), cores) = (tile(rows), serving.accelerator.ability().cores);
    let tiles = ((rows + high - 1) / high * ((outer + wide - 1) / wide)).max(1);
    (cores / tiles).clamp(1, 4)
}

/// Thread blocks of a healthy kernel over `rows`.
pub(crate) fn blocks(config: &Config, serving: &Serving, slot: Slot, rows: i64) -> i64 {
    let (model, ranks) = (serving.model, config.tensor_parallel.max(1));
    let cores = serving.accelerator.ability().cores;
    let Some(class) = slot.card().class else { return if rows < 512 { 16 } else { 24 } };
    match class {
        Class::Gemm => {
            let (high, wide) = tile(rows);
            let Some((_, outer)) = weight(config, serving, slot) else { return 2 * cores };
            let blocks = (rows + high - 1) / high * ((outer + wide - 1) / wide) * split(serving, rows, outer);
            // Hopper's kernels stay on the device and fetch tile after tile.
            if serving.accelerator.is_hopper() { blocks.min(cores) } else { blocks }
        }
        Class::Attention => {
            let heads = rows * (model.kv_heads / ranks).max(1);
            if config.split_attention { heads * (cores / heads.max(1)).max(1) } else { heads }
        }
        Class::Act if serving.inductor => (rows * inner(config, serving) / 1024).max(1),
        Class::Rope if serving.inductor => (rows * model.heads / ranks * model.head / 1024).max(1),
        Class::Elementwise | Class::Format | Class::Fill => (rows * model.hidden / 1024).max(1),
        _ => rows.max(1),
    }
}
