//! How much of the device a matrix product fills, and what it would take at best and at worst if it filled it.

use model::{Ns, SliceId};
use rustc_hash::FxHashMap;

use super::{
    ceilings::{Ceilings, NEAR},
    launch_shape::{cores, tile},
    reading,
};
use crate::{
    analysis::{
        Class, DeviceOp, OpKind, Rank,
        launch_shape::blocks,
        op_shapes::{self, Gemm},
    },
    diagnose::rule::Context,
    platform::CanonicalOp,
};

/// Share of the rate of memory from which a product keeps up with it whatever its blocks; own value.
const KEEPS_UP: f64 = 0.5;
/// So many times its part of the device's rate one core reaches at most; own value, generous: on today's devices a quarter of
/// the cores can saturate memory.
const ALONE: f64 = 4.0;
/// Bytes of an element of operands of 16 bits, the widest that products of serving read.
const ELEMENT: f64 = 2.0;

/// The cores that a product has blocks for, of those that there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filled {
    /// Blocks it was launched with.
    pub blocks: u64,
    /// Cores of the device.
    pub cores: u64,
}

/// What products of a class are held against.
pub struct Products<'c, 'a> {
    cx: &'c Context<'a>,
    rank: &'c Rank,
    /// Rate at which operands can be read, bytes per ns: the best of the capture, else what memory reaches.
    rate: Option<f64>,
    /// Columns of the widest product of a layer: no activation is wider.
    widest: Option<f64>,
    /// Columns of the product whose halves a gated activation multiplies, by the product that reads their result.
    gated: FxHashMap<SliceId, f64>,
}

impl<'c, 'a> Products<'c, 'a> {
    /// Of a class of a rank.
    pub fn of(cx: &'c Context<'a>, rank: &'c Rank, class: &Class) -> Self {
        let memory = Ceilings::of(cx, rank).bandwidth().map(|bandwidth| bandwidth.usual);
        let rate = memory.or_else(|| op_shapes::fastest(cx.trace, rank));
        let widest = rank.steady_steps(class).next().and_then(|step| {
            let gemms: Vec<&DeviceOp> = rank.ops_of(step).iter().filter(|op| is_product(op)).collect();
            // The last one is that of the vocabulary.
            let layers = gemms.get(..gemms.len().saturating_sub(1))?.iter();
            layers.filter_map(|op| columns(cx, op)).reduce(f64::max)
        });
        let gated = rank.steady_steps(class).flat_map(|step| gated(cx, rank.ops_of(step))).collect();
        Self { cx, rank, rate, widest, gated }
    }

    /// How much of the device a product fills.
    pub fn filled(&self, op: &DeviceOp) -> Option<Filled> {
        let cores = cores(self.cx.trace, self.rank)?;
        Some(Filled { blocks: blocks(self.cx.trace, op)?, cores })
    }

    /// The product that an operation's inputs describe.
    pub fn shape(&self, op: &DeviceOp) -> Option<Gemm> {
        op_shapes::gemm(&op_shapes::inputs(self.cx.trace, self.rank, op))
    }

    /// Time that a product takes at best and at worst once its blocks fill the device, ns; `None` where it keeps up with memory
    /// all the same, or where nothing tells how much it reads at most. Without recorded sizes it reads at most its columns,
    /// which blocks and tile give, times its input: half of what a gated activation was given, else the widest activation of a
    /// layer.
    pub fn filling(&self, op: &DeviceOp) -> Option<(Ns, Ns)> {
        let Filled { blocks, cores } = self.filled(op).filter(|filled| filled.blocks < filled.cores)?;
        let took = op.dur() as f64;
        let bytes = match self.shape(op).map(|gemm| gemm.bytes) {
            Some(bytes) => bytes? as f64,
            None => {
                let halves = self.gated.get(&op.slice).map(|columns| columns / 2.0);
                columns(self.cx, op)? * halves.or(self.widest)? * ELEMENT
            }
        };
        let rate = self.rate?;
        if bytes >= KEEPS_UP * rate * took {
            return None;
        }
        let part = blocks as f64 / cores as f64;
        let best = (took * part).max(self.shape(op).map_or(0.0, |_| bytes / rate));
        let read = bytes / (NEAR * rate);
        // Arithmetic, of which nothing is known here, scales with the cores.
        let worst = read.max(took * (ALONE * part).min(1.0)).max(best);
        (worst < took).then_some((best as Ns, worst as Ns))
    }
}

/// The products that read what a gated activation made of the halves of one product, with the columns of that one. Two products
/// in a row give it a half each.
fn gated(cx: &Context<'_>, ops: &[DeviceOp]) -> Vec<(SliceId, f64)> {
    let computed: Vec<&DeviceOp> = ops.iter().filter(|op| op.kind == OpKind::Compute).collect();
    let read = |window: &[&DeviceOp]| {
        let [earlier, halves, act, reader] = window else { return None };
        let gate = act.op == CanonicalOp::Act && is_gated(cx.trace.strings.get(act.name));
        let fits = gate && is_product(halves) && is_product(reader) && !is_product(earlier);
        Some((reader.slice, columns(cx, halves).filter(|_| fits)?))
    };
    computed.windows(4).filter_map(read).collect()
}

/// Whether an activation multiplies one half of its input with the other, by its name.
fn is_gated(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["glu", "gated", "and_mul", "mul_silu", "silu_mul", "mul_gelu", "gelu_mul"].iter().any(|part| name.contains(part))
}

/// Whether an operation is a dense product.
pub fn is_product(op: &DeviceOp) -> bool {
    op.kind == OpKind::Compute && op.op == CanonicalOp::Gemm
}

/// The most columns that a product's blocks can cover, one row of tiles each.
pub fn columns(cx: &Context<'_>, op: &DeviceOp) -> Option<f64> {
    let (a, b) = tile(cx.trace.strings.get(op.name))?;
    Some(blocks(cx.trace, op)? as f64 * f64::from(a.max(b)))
}

/// How many blocks the tile of a product's name cuts its recorded size into, with the parts that it is split into: what a launch
/// of which the source says nothing must have had at most.
pub fn tiles(cx: &Context<'_>, rank: &Rank, at: usize) -> Option<u64> {
    let op = rank.timeline.ops.get(at)?;
    let gemm = op_shapes::gemm(&op_shapes::inputs(cx.trace, rank, op))?;
    let name = cx.trace.strings.get(op.name);
    let (a, b) = tile(name)?;
    let count = |rows: i64, tile: u32| u64::try_from(rows).unwrap_or(0).div_ceil(u64::from(tile.max(1)));
    let either = (count(gemm.rows, a) * count(gemm.outputs, b)).max(count(gemm.rows, b) * count(gemm.outputs, a));
    let next = rank.timeline.ops.get(at + 1).map_or("", |op| cx.trace.strings.get(op.name));
    Some(either.saturating_mul(split(name).or_else(|| split(next)).unwrap_or(1)))
}

/// Parts of the inner dimension that a name of Tensile's says the work is split into.
fn split(name: &str) -> Option<u64> {
    let (_, after) = name.split_once("GSU")?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|n| *n > 0)
}

/// Steps' operations that are dense products, with their indices.
pub fn of_step<'a>(
    rank: &'a Rank,
    step: &crate::analysis::Step,
) -> impl Iterator<Item = (usize, &'a DeviceOp, crate::analysis::attribution::Exclusive)> {
    reading::accounted(rank, step).filter(|(_, op, _)| is_product(op))
}

#[cfg(test)]
mod tests {
    use super::{is_gated, split};

    #[test]
    fn a_name_tells_the_gate() {
        for (name, gate) in [
            ("void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>>", true),
            ("triton_poi_fused_mul_silu_slice_1", true),
            ("aclnnSwiGlu_SwiGluAiCore_SwiGlu", true),
            ("void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>", false),
        ] {
            assert_eq!(is_gated(name), gate, "{name}");
        }
    }

    #[test]
    fn a_name_tells_the_split() {
        assert_eq!(split("Cijk_B_PostGSU2"), Some(2));
        assert_eq!(split("Cijk_Ailk_Bljk_GSU0_x"), None);
        assert_eq!(split("Cijk_Ailk_Bljk"), None);
    }
}
