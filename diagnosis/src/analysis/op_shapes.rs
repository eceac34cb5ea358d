//! Shapes of the framework operator behind a device operation, and what follows from them: rows, bytes, rates.

use std::sync::Arc;

use model::{Detail, Trace};

pub use super::launching::{Operator, Tensor, tensors};
use super::{CopyDir, DeviceOp, OpKind, Rank, graph_capture};

/// Most rows of a product that memory bounds on every device: the ridges of today's lie above a hundred rows.
pub const MEMORY_BOUND_ROWS: u32 = 16;

/// The tensors that went into the innermost operator around the launch of `op`; empty where nothing was recorded. The launch
/// of a graph stands for all its nodes; what each of them worked on only the capture of the graph can tell.
pub fn inputs(trace: &Trace, rank: &Rank, op: &DeviceOp) -> Arc<[Tensor]> {
    operator(trace, rank, op).map(|operator| operator.inputs).unwrap_or_default()
}

/// The innermost operator around the launch of `op` of which tensors were recorded, else what the profiler's table says of
/// `op` itself.
pub fn operator(trace: &Trace, rank: &Rank, op: &DeviceOp) -> Option<Operator> {
    let launching = || rank.launching.of(trace, op.call?);
    let beside = || {
        let track = rank.timeline.operators.get(op.queue as usize).copied().flatten()?;
        let (lane, row) = graph_capture::range_at(trace, track, op.start)?;
        rank.launching.at(lane, row)
    };
    if op.in_graph { beside() } else { launching().or_else(beside) }
}

/// Whether an operator of this name convolves; one that converts types does not.
pub fn is_convolution(name: &str) -> bool {
    ["convolution", "conv1d", "conv2d", "conv3d", "conv_transpose"].iter().any(|part| name.contains(part))
}

/// A matrix product as its operator describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gemm {
    /// Rows of the activations: tokens of the step.
    pub rows: i64,
    /// Columns of the result.
    pub outputs: i64,
    /// Columns of the activations.
    pub inputs: i64,
    /// Bytes of both operands, if their types are known.
    pub bytes: Option<i64>,
    /// Bytes of an element of the operands, if known.
    pub element: Option<i64>,
    /// Number formats of activations and weights, if known.
    pub types: Option<[&'static str; 2]>,
    /// Whether both operands are batches of matrices, as queries and keys are, and none of them weights.
    pub batched: bool,
}

impl Gemm {
    /// The same product of another number of rows.
    pub fn of_rows(self, rows: i64) -> Self {
        let fewer = (self.rows - rows).saturating_mul(self.inputs);
        let bytes = self.bytes.zip(self.element).map(|(bytes, element)| bytes - fewer.saturating_mul(element));
        Self { rows, bytes: bytes.or(self.bytes), ..self }
    }
}

/// The product that `inputs` describe: the first two of at least two dimensions whose sizes fit each other.
pub fn gemm(inputs: &[Tensor]) -> Option<Gemm> {
    let wide: Vec<&Tensor> = inputs.iter().filter(|t| t.dims.len() >= 2).collect();
    wide.windows(2).find_map(|pair| {
        let [a, b] = pair else { return None };
        let inner = *a.dims.last()?;
        let weight = b.dims.get(b.dims.len() - 2..)?;
        if inner <= 0 || !weight.contains(&inner) {
            return None;
        }
        // A batch of products has as many on both sides.
        let batch = |t: &Tensor| t.dims.get(..t.dims.len() - 2).map(<[i64]>::to_vec);
        if a.dims.len() > 2 && b.dims.len() > 2 && batch(a) != batch(b) {
            return None;
        }
        // Square weights read the same in both orders.
        let outputs = weight.iter().copied().find(|side| *side != inner).unwrap_or(inner);
        let bytes = a.bytes().zip(b.bytes()).map(|(a, b)| a.saturating_add(b));
        let types = a.dtype.zip(b.dtype).map(|(a, b)| [a, b]);
        let batched = a.dims.len() > 2 && b.dims.len() > 2;
        Some(Gemm { rows: a.elements() / inner, outputs, inputs: inner, bytes, element: b.element, types, batched })
    })
}

/// The highest rate at which anything on the rank moved bytes that are known, in bytes per ns: copies inside the device's
/// memory read and write theirs, matrix products read their operands. What so little bytes were that they may have lain in
/// a cache does not count.
pub fn fastest(trace: &Trace, rank: &Rank) -> Option<f64> {
    let moved = |op: &DeviceOp| match op.kind {
        OpKind::Copy(CopyDir::DtoD) => {
            let (track, row) = trace.locate(op.slice)?;
            let Some(Detail::Copy(copy)) = trace.detail(trace.lanes.get(track.0 as usize)?, row) else { return None };
            copy.bytes.map(|b| b.saturating_mul(2))
        }
        OpKind::Compute if op.op == crate::platform::CanonicalOp::Gemm => gemm(&inputs(trace, rank, op))?.bytes,
        _ => None,
    };
    rank.timeline
        .ops
        .iter()
        .filter(|op| op.dur() > 0)
        .filter_map(|op| Some(moved(op).filter(|b| *b >= UNCACHED)? as f64 / op.dur() as f64))
        .reduce(f64::max)
}

/// Bytes from which a transfer tells of memory and not of a cache: a quarter of the last-level cache of today's devices
/// (50 MB on H100), which the rest of the step shares.
const UNCACHED: i64 = 12 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(dims: &[i64]) -> Tensor {
        Tensor { dims: dims.to_vec(), element: Some(2), dtype: None }
    }

    #[test]
    fn products_in_both_weight_orders_with_and_without_bias() {
        let rows = |inputs: &[Tensor]| gemm(inputs).map(|p| p.rows);
        assert_eq!(rows(&[tensor(&[4, 4096]), tensor(&[4096, 512])]), Some(4));
        assert_eq!(rows(&[tensor(&[512]), tensor(&[4, 4096]), tensor(&[4096, 512])]), Some(4));
        assert_eq!(rows(&[tensor(&[2, 8, 4096]), tensor(&[512, 4096])]), Some(16));
        assert_eq!(rows(&[tensor(&[4, 4096]), tensor(&[100, 512])]), None);
        assert_eq!(rows(&[tensor(&[4096])]), None);
        let sides = |inputs: &[Tensor]| gemm(inputs).map(|p| (p.outputs, p.inputs));
        assert_eq!(sides(&[tensor(&[4, 8]), tensor(&[2, 8])]), Some((2, 8)));
        assert_eq!(sides(&[tensor(&[4, 8]), tensor(&[8, 8])]), Some((8, 8)));
        assert_eq!(gemm(&[tensor(&[4, 8]), tensor(&[8, 2])]).and_then(|p| p.bytes), Some(2 * (32 + 16)));
        assert_eq!(
            gemm(&[tensor(&[i64::MAX, i64::MAX]), tensor(&[i64::MAX, 2])]).and_then(|p| p.bytes),
            Some(i64::MAX)
        );
    }
}
