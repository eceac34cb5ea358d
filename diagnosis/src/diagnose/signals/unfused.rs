//! Composites of a step that run kernel by kernel.

use std::collections::HashMap;

use model::{SliceId, StringId, Trace};

use super::{
    composite,
    fine_op::{FineOp, fine_op},
    matrix_units::is_without_units,
    reading,
};
use crate::{
    analysis::{Bucket, CopyDir, DeviceOp, OpKind, Rank, Step, op_shapes},
    platform::OpClass,
};

/// What a fused kernel reaches of the time of its longest member (fusion estimator of TraceLens).
pub const FUSION_EFFICIENCY: f64 = 0.85;

/// Share of the rate of the capture's best products that a fused attention reaches, at worst and at best: between its products
/// it computes exponentials (FlashAttention papers, on H100: version 2 reaches 35 %, version 3 up to 75 % of peak, where
/// library products reach 70 to 80 %; narrow heads and odd lengths less).
const ATTENTION_REACHES: (f64, f64) = (1.0 / 3.0, 0.75);
/// The same where the ordinary units compute the products: they do 128 operations of a product for every 16 exponentials of a
/// core and cycle (CUDA C++ Programming Guide, throughput of native arithmetic), so that with heads of 64 the exponentials of an
/// attention take a sixteenth of its time. At worst: own value.
const ORDINARY_REACHES: (f64, f64) = (0.6, 0.9);
/// Arithmetic of a fused backward pass for that of its four products: it computes the scores once more, which is a fifth one
/// (FlashAttention paper, section 3.1).
const RECOMPUTED: f64 = 5.0 / 4.0;
/// Least operations of a product whose rate tells what the device computes; smaller ones are all start and end.
const LEAST_OPERATIONS: f64 = 1e9;

/// A composite of one step.
pub struct Composite {
    /// What it computes.
    pub name: &'static str,
    /// The row of its first kernel.
    pub first: SliceId,
    /// How many kernels make it up.
    pub kernels: usize,
    /// The kernels.
    pub ops: Vec<u32>,
    /// Time of the fused kernel, as modelled, ns.
    pub fused: i64,
    /// Time of the fused kernel at best, ns.
    pub best: i64,
    /// Share of the best rate of products at which the fused operation's arithmetic is counted at worst, where both times follow
    /// from that and not from the longest kernel.
    pub computed: Option<f64>,
    /// Whether both times follow from what a fused kernel reads once.
    pub reads: bool,
    /// What a fused kernel would save, ns.
    pub saved: i64,
}

/// The composites of a step, queue by queue.
pub fn composites(trace: &Trace, rank: &Rank, step: &Step, names: &mut HashMap<StringId, FineOp>) -> Vec<Composite> {
    let device_gaps: HashMap<u32, i64> = reading::gaps(rank, step)
        .iter()
        .filter_map(|g| {
            let own = |b: Bucket| matches!(b, Bucket::GraphInternal | Bucket::Dispatch);
            Some((g.owner?, g.parts.iter().filter(|(b, _)| own(*b)).map(|(_, s)| s.len()).sum()))
        })
        .collect();
    let mut queues: HashMap<u32, Vec<(usize, &DeviceOp, i64)>> = HashMap::new();
    for (i, op, x) in reading::accounted(rank, step) {
        queues.entry(op.queue).or_default().push((i, op, x.busy));
    }
    let rate = fastest_product(trace, rank, step);
    let mut out = Vec::new();
    for ops in queues.values() {
        let fine: Vec<FineOp> = ops.iter().map(|(_, op, _)| fine(trace, op, names)).collect();
        for m in composite::find(&fine) {
            let Some(members) = ops.get(m.start..m.end) else { continue };
            let Some((_, first, _)) = members.first() else { continue };
            let busy: i64 = members.iter().map(|(.., ns)| ns).sum();
            let longest = members.iter().map(|(.., ns)| *ns).max().unwrap_or(0);
            let gaps: i64 = members.iter().skip(1).filter_map(|(i, ..)| device_gaps.get(&(*i as u32))).sum();
            let of = |kind: FineOp| {
                let members = members.iter().zip(fine.get(m.start..m.end).unwrap_or(&[]));
                members.filter(move |(_, fine)| **fine == kind).map(|((_, op, _), _)| *op)
            };
            let products = of(FineOp::Matmul);
            let again = if m.name == composite::ATTENTION_BACKWARD { RECOMPUTED } else { 1.0 };
            let floor = rate.and_then(|rate| {
                // All of its arithmetic stays, and of its kernels only the products compute much.
                let all: Option<f64> = products.clone().map(|op| operations(trace, rank, op)).sum();
                Some(again * all.filter(|n| *n > 0.0)? / rate)
            });
            let ordinary = products.clone().all(|op| is_without_units(trace.strings.get(op.name)));
            let reaches = if ordinary { ORDINARY_REACHES } else { ATTENTION_REACHES };
            // What a fusion keeps is at best its longest product: the softmax goes with the fusion.
            let kept = products.map(DeviceOp::dur).max().map_or(longest, |product| product.min(longest));
            let modelled = (longest as f64 / FUSION_EFFICIENCY) as i64;
            let gathered: i64 = of(FineOp::Gather).map(DeviceOp::dur).sum();
            let reads = floor.is_none() && gathered > 0 && gathered >= kept;
            let (fused, best) = match floor {
                Some(floor) => ((floor / reaches.0) as i64, (floor / reaches.1) as i64),
                // Where gathering takes longer than a product, reading sets the pace: what is gathered is read and written, and a
                // fused kernel reads it once, as the two products do.
                None if reads => {
                    let most = gathered.min(of(FineOp::Matmul).map(DeviceOp::dur).sum());
                    ((most as f64 * FUSION_EFFICIENCY) as i64, kept.min(gathered / 2))
                }
                None => (modelled, kept),
            };
            let saved = (busy + gaps - fused).max(0);
            let ops = members.iter().map(|(i, ..)| *i as u32).collect();
            out.push(Composite {
                name: m.name,
                first: first.slice,
                kernels: members.len(),
                ops,
                fused,
                best: best.min(busy),
                computed: floor.map(|_| reaches.0),
                reads,
                saved,
            });
        }
    }
    // Queues come in no order of their own.
    out.sort_by_key(|c| c.first);
    out
}

/// How the operators of a step are realised: those that stand for themselves, and those that several kernels make up.
pub fn realised(trace: &Trace, rank: &Rank, step: &Step) -> [usize; 2] {
    let composites = composites(trace, rank, step, &mut HashMap::new());
    let inside: usize = composites.iter().map(|composite| composite.kernels).sum();
    let computes = reading::accounted(rank, step).filter(|(_, op, _)| op.kind == OpKind::Compute).count();
    [computes.saturating_sub(inside), composites.len()]
}

/// Floating-point operations of a product whose shape is recorded.
fn operations(trace: &Trace, rank: &Rank, op: &DeviceOp) -> Option<f64> {
    let gemm = op_shapes::gemm(&op_shapes::inputs(trace, rank, op))?;
    Some(2.0 * gemm.rows as f64 * gemm.outputs as f64 * gemm.inputs as f64)
}

/// The highest rate of a product of a step, operations per ns.
fn fastest_product(trace: &Trace, rank: &Rank, step: &Step) -> Option<f64> {
    let products = rank.ops_of(step).iter().filter(|op| op.op.class() == OpClass::Matrix && op.dur() > 0);
    let rates = products.filter_map(|op| {
        let operations = operations(trace, rank, op).filter(|n| *n >= LEAST_OPERATIONS)?;
        Some(operations / op.dur() as f64)
    });
    rates.reduce(f64::max)
}

fn fine(trace: &Trace, op: &DeviceOp, names: &mut HashMap<StringId, FineOp>) -> FineOp {
    match op.kind {
        OpKind::Compute => *names.entry(op.name).or_insert_with(|| fine_op(trace.strings.get(op.name), op.op)),
        OpKind::Copy(CopyDir::DtoD) => FineOp::Copy,
        _ => FineOp::Other,
    }
}
