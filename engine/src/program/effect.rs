//! What an operator reads and writes, so that the numbers of two runs can be compared where they come into being.

use std::ops::Range;

use super::{BufId, OpCall, OpKind, Program};
use crate::Config;

/// Where an operator writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// Columns of every row of a buffer.
    Columns(BufId, Range<usize>),
    /// Slots of the step's tokens in the cache of a layer.
    Cache(u16),
}

impl Program {
    /// Where an operator of this program writes; the tokens that are chosen lie in no buffer.
    pub fn writes(&self, op: &OpCall, config: &Config) -> Vec<Written> {
        let whole = |id: BufId| Written::Columns(id, 0..self.buffer(id).map_or(0, |buffer| buffer.width));
        match &op.kind {
            OpKind::Embed { out }
            | OpKind::RmsNorm { out, .. }
            | OpKind::Attention { out, .. }
            | OpKind::SiluMul { out, .. }
            | OpKind::LastToken { out, .. }
            | OpKind::AllGather { out, .. }
            | OpKind::Route { out, .. }
            | OpKind::ExpertLinear { out, .. }
            | OpKind::Combine { out, .. }
            | OpKind::Square { out, .. }
            | OpKind::Mean { out, .. }
            | OpKind::ScaleRows { out, .. }
            | OpKind::Silu { out, .. }
            | OpKind::MulUp { out, .. }
            | OpKind::Transpose { out, .. } => vec![whole(*out)],
            OpKind::AddRmsNorm { x, out, .. } => vec![whole(*x), whole(*out)],
            OpKind::Linear { rows, out, .. } => vec![Written::Columns(*out, rows.clone())],
            OpKind::HeadNorm { x, heads, .. } | OpKind::Rope { x, heads } => {
                let end = heads.at.saturating_add(heads.count.saturating_mul(config.head_dim));
                vec![Written::Columns(*x, heads.at..end)]
            }
            OpKind::KvAppend { layer, .. } => vec![Written::Cache(*layer)],
            OpKind::Add { x, .. } | OpKind::AllReduce { x } | OpKind::Rsqrt { x } | OpKind::ScaleColumns { x, .. } => {
                vec![whole(*x)]
            }
            OpKind::Argmax { .. } => Vec::new(),
        }
    }
}

impl OpKind {
    /// Buffers that an operator reads.
    pub fn reads(&self) -> Vec<BufId> {
        match self {
            Self::Embed { .. } => Vec::new(),
            Self::AddRmsNorm { x, delta, .. } | Self::Add { x, delta } => vec![*x, *delta],
            Self::RmsNorm { x, .. }
            | Self::Linear { x, .. }
            | Self::HeadNorm { x, .. }
            | Self::Rope { x, .. }
            | Self::LastToken { x, .. }
            | Self::AllReduce { x }
            | Self::Square { x, .. }
            | Self::Mean { x, .. }
            | Self::Rsqrt { x }
            | Self::ScaleColumns { x, .. }
            | Self::Transpose { x, .. } => vec![*x],
            Self::KvAppend { qkv: x, .. } | Self::Attention { qkv: x, .. } => vec![*x],
            Self::Argmax { logits: x } | Self::AllGather { part: x, .. } | Self::Silu { gate_up: x, .. } => vec![*x],
            Self::SiluMul { gate_up: x, .. } => vec![*x],
            Self::ScaleRows { x, by, .. } => vec![*x, *by],
            Self::Route { scores, .. } => vec![*scores],
            Self::ExpertLinear { x, routes, .. } | Self::Combine { x, routes, .. } => vec![*x, *routes],
            Self::MulUp { gate_up, out } => vec![*gate_up, *out],
        }
    }

    /// Whether an operator only moves numbers, which must come through unchanged.
    pub fn is_move(&self) -> bool {
        matches!(
            self,
            Self::Embed { .. }
                | Self::KvAppend { .. }
                | Self::LastToken { .. }
                | Self::Transpose { .. }
                | Self::AllGather { .. }
        )
    }
}
