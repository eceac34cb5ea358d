//! Products of replayed layers: a graph's kernels carry no shapes, but a known model has known ones, slot by slot. They are
//! believed only where kernels were launched with as many blocks as such a product has tiles.

use model::Ns;

use super::{
    floor::{Parts, weight_bytes},
    rates::{self, Rate},
    tile::Tile,
    work::Work,
};
use crate::{
    analysis::{Class, DeviceOp, OpKind, Rank, launch_shape, op_shapes::Gemm},
    diagnose::{rule::Context, signals::ceilings::Ceilings},
    platform::{CanonicalOp, ModelShape, OpClass},
};

/// The products of a dense layer in order, from the one before attention.
const SLOTS: [&str; 4] = ["qkv", "o", "gate_up", "down"];

/// A slot of a layer: its name, its product on this rank, and its place in the body.
struct Slot {
    name: &'static str,
    gemm: Gemm,
    at: usize,
}

/// Outputs and inputs of the products of a layer on one of so many ranks.
fn shapes(model: &ModelShape, parts: u64) -> [(u64, u64); 4] {
    let queries = model.heads * model.head_dim / parts;
    let keys = (model.kv_heads / parts).max(1) * model.head_dim;
    let inner = model.intermediate / parts;
    let wide = if model.plain_mlp { inner } else { 2 * inner };
    [(queries + 2 * keys, model.hidden), (model.hidden, queries), (wide, model.hidden), (model.hidden, inner)]
}

/// Kernels of a step in the order in which layers were looked for.
fn kernels(rank: &Rank, ops: std::ops::Range<usize>) -> Vec<&DeviceOp> {
    let ops = rank.timeline.ops.get(ops).unwrap_or(&[]);
    ops.iter().filter(|op| matches!(op.kind, OpKind::Compute | OpKind::Comm)).collect()
}

/// The products of each slot, where a dense model, the layers and the launches agree.
pub(super) fn of(cx: &Context<'_>, rank: &Rank, class: &Class, ceilings: &Ceilings<'_>) -> Vec<Rate> {
    placed(cx, rank, class).map(|slots| of_slots(cx, rank, class, ceilings, &slots)).unwrap_or_default()
}

/// Where the slots of a layer lie in its body.
fn placed(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Vec<Slot>> {
    let model = cx.analysis.model.as_deref()?;
    let period = rank.period.as_ref()?;
    if model.moe.is_some() || model.mla.is_some() || model.linear.is_some() || model.gated_attention {
        return None;
    }
    let symbol = |at: usize| period.body.get(at).copied();
    let products: Vec<usize> = (0..period.len).filter(|at| symbol(*at) == Some(CanonicalOp::Gemm as u32)).collect();
    let is_attention = |at: &usize| {
        CanonicalOp::ALL.iter().any(|op| Some(*op as u32) == symbol(*at) && op.class() == OpClass::Attention)
    };
    let attention = (0..period.len).find(is_attention)?;
    // One layer in a body, and as many bodies as the model has layers, but for one that differs at either end.
    let layers = usize::try_from(model.layers).ok()?;
    if products.len() != SLOTS.len() || period.repeats > layers || period.repeats + 2 < layers {
        return None;
    }
    let parts = Parts::of(cx, rank)?.tensor as u64;
    if model.heads % parts != 0 || model.intermediate % parts != 0 {
        return None;
    }
    let first = rank.steady_steps(class).next()?;
    let rows = first.rows.or(class.batch.map(u64::from)).filter(|rows| (1..=1 << 20).contains(rows))?;
    // The last product before attention makes queries, keys and values; the others follow in turn.
    let before = products.iter().rposition(|at| *at < attention).unwrap_or(products.len() - 1);
    let element = weight_bytes(model, cx);
    let slots = SLOTS.iter().zip(shapes(model, parts)).enumerate().filter_map(|(turn, (name, (outputs, inputs)))| {
        let at = *products.get((before + turn) % products.len())?;
        let bytes = (outputs * inputs) as f64 * element + (rows * inputs * 2) as f64;
        let gemm = Gemm {
            rows: i64::try_from(rows).ok()?,
            outputs: i64::try_from(outputs).ok()?,
            inputs: i64::try_from(inputs).ok()?,
            bytes: Some(bytes as i64),
            element: Some(element.ceil() as i64),
            types: None,
            batched: false,
        };
        Some(Slot { name, gemm, at })
    });
    let slots: Vec<Slot> = slots.collect();
    (slots.len() == SLOTS.len() && agree(cx, rank, class, &slots)).then_some(slots)
}

/// Whether at least one slot was launched with the blocks of its product, and none with others.
fn agree(cx: &Context<'_>, rank: &Rank, class: &Class, slots: &[Slot]) -> bool {
    let Some((step, period)) = rank.steady_steps(class).next().zip(rank.period.as_ref()) else { return false };
    let kernels = kernels(rank, step.ops.clone());
    let mut confirmed = 0;
    for slot in slots {
        let Some(op) = kernels.get(period.start + slot.at) else { return false };
        let Some(tile) = Tile::of(cx.trace.strings.get(op.name)) else { continue };
        let Some(blocks) = launch_shape::blocks(cx.trace, op) else { continue };
        let [rows, outputs] = [slot.gemm.rows, slot.gemm.outputs].map(i64::unsigned_abs);
        let laid = |x: u64, y: u64| rows.div_ceil(x).saturating_mul(outputs.div_ceil(y)).max(1);
        let [a, b] = tile.sides;
        let fits = [laid(a, b), laid(b, a)].iter().any(|tiles| blocks % tiles == 0);
        // A kernel that takes its tiles in turn is launched with no more blocks than there are cores.
        let in_turn = op_cores(cx).is_some_and(|cores| blocks <= cores) && laid(a, b).min(laid(b, a)) > blocks;
        match (fits, in_turn) {
            (true, _) => confirmed += 1,
            (false, true) => {}
            (false, false) => return false,
        }
    }
    confirmed > 0
}

fn op_cores(cx: &Context<'_>) -> Option<u64> {
    cx.analysis.chips.values().find_map(|chip| chip.cores).map(u64::from)
}

fn of_slots(cx: &Context<'_>, rank: &Rank, class: &Class, ceilings: &Ceilings<'_>, slots: &[Slot]) -> Vec<Rate> {
    let Some(period) = rank.period.as_ref() else { return Vec::new() };
    let Some(len) = rank.steady_steps(class).next().map(|step| kernels(rank, step.ops.clone()).len()) else {
        return Vec::new();
    };
    let steps: Vec<Vec<&DeviceOp>> = rank
        .steady_steps(class)
        .map(|step| kernels(rank, step.ops.clone()))
        .filter(|kernels| kernels.len() == len)
        .collect();
    let dtype = cx.trace.manifest.value("precision.weights").and_then(rates::dtype_of);
    let rate = |slot: &Slot| {
        let (mut time, mut count, mut first): (Ns, u64, Option<&DeviceOp>) = (0, 0, None);
        for kernels in &steps {
            for copy in 0..period.repeats {
                let op = kernels.get(period.start + copy * period.len + slot.at).copied();
                let Some(op) = op.filter(|op| op.op == CanonicalOp::Gemm) else { continue };
                time = time.saturating_add(op.dur());
                count += 1;
                first = first.or(Some(op));
            }
        }
        let first = first?;
        let [rows, outputs, inner] = [slot.gemm.rows, slot.gemm.outputs, slot.gemm.inputs].map(|n| n as f64);
        let work = Work {
            flops: 2.0 * rows * outputs * inner,
            bytes: slot.gemm.bytes? as f64 + 2.0 * rows * outputs,
            operands: slot.gemm.bytes? as f64 - 2.0 * rows * inner,
            dtype,
            shape: format!("{}×{}×{}", slot.gemm.rows, slot.gemm.outputs, slot.gemm.inputs),
            gemm: Some(slot.gemm),
            done_by: |_| true,
        };
        let sums = rates::Sums { time, count, kernel: first.name, blocks: launch_shape::blocks(cx.trace, first) };
        let steps = steps.len().max(1) as Ns;
        let rate = rates::rate(cx, ceilings, (CanonicalOp::Gemm, &work), sums, steps);
        Some(Rate { slot: Some(slot.name), ..rate })
    };
    slots.iter().filter_map(rate).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::platform::Packs;

    #[test]
    fn a_layer_is_divided_as_tensor_parallelism_divides_it() {
        let packs = Packs::embedded().unwrap();
        let model = packs.model("Meta-Llama-3.1-70B").unwrap();
        assert_eq!(shapes(model, 1), [(10_240, 8192), (8192, 8192), (57_344, 8192), (8192, 28_672)]);
        assert_eq!(shapes(model, 4), [(2560, 8192), (8192, 2048), (14_336, 8192), (8192, 7168)]);
        // More ranks than heads of keys: each keeps one.
        assert_eq!(shapes(model, 16)[0], (64 * 128 / 16 + 2 * 128, 8192));
    }
}
