//! Composites of a step that run kernel by kernel.

use std::collections::HashMap;

use model::{SliceId, StringId, Trace};

use super::{
    composite,
    fine_op::{FineOp, fine_op},
    reading,
};
use crate::analysis::{Bucket, CopyDir, DeviceOp, OpKind, Rank, Step};

/// What a fused kernel reaches of the time of its longest member (fusion estimator of TraceLens).
pub const FUSION_EFFICIENCY: f64 = 0.85;

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
    /// Time of the longest of the kernels, ns.
    pub longest: i64,
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
    let mut out = Vec::new();
    for ops in queues.values() {
        let fine: Vec<FineOp> = ops.iter().map(|(_, op, _)| fine(trace, op, names)).collect();
        for m in composite::find(&fine) {
            let Some(members) = ops.get(m.start..m.end) else { continue };
            let Some((_, first, _)) = members.first() else { continue };
            let busy: i64 = members.iter().map(|(.., ns)| ns).sum();
            let longest = members.iter().map(|(.., ns)| *ns).max().unwrap_or(0);
            let gaps: i64 = members.iter().skip(1).filter_map(|(i, ..)| device_gaps.get(&(*i as u32))).sum();
            let fused = (longest as f64 / FUSION_EFFICIENCY) as i64;
            let saved = (busy + gaps - fused).max(0);
            let ops = members.iter().map(|(i, ..)| *i as u32).collect();
            out.push(Composite {
                name: m.name,
                first: first.slice,
                kernels: members.len(),
                ops,
                fused,
                longest,
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

fn fine(trace: &Trace, op: &DeviceOp, names: &mut HashMap<StringId, FineOp>) -> FineOp {
    match op.kind {
        OpKind::Compute => *names.entry(op.name).or_insert_with(|| fine_op(trace.strings.get(op.name), op.op)),
        OpKind::Copy(CopyDir::DtoD) => FineOp::Copy,
        _ => FineOp::Other,
    }
}
