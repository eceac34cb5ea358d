//! Passes that give a step another form and the same result: operators that run as several simpler ones, and inputs that are
//! turned into another layout and back.

use super::{BufDesc, BufId, Level, Matrix, OpCall, OpKind, OpName, Program};
use crate::Config;

/// A change of form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// An operator runs as several simpler ones; of those that can not, nothing changes.
    Unfuse(OpName),
    /// The input of an operator is transposed and transposed back before it.
    CastBefore(OpName),
}

impl Change {
    /// Operators that can run as simpler ones, in an order in which what one leaves can be taken apart further.
    pub const UNFUSABLE: [OpName; 6] =
        [OpName::QkvProj, OpName::GateUpProj, OpName::AddRmsNorm, OpName::RmsNorm, OpName::FinalNorm, OpName::SiluMul];
}

impl Program {
    /// Changes the form of the step; `part` is the shape of the rank's part of the model.
    pub(crate) fn change(&mut self, change: Change, part: &Config) {
        let ops = std::mem::take(&mut self.ops);
        for op in ops {
            match change {
                Change::Unfuse(name) if name == op.name => {
                    let simpler = self.simpler(&op, part);
                    self.ops.extend(simpler.into_iter().map(|(name, kind)| OpCall { id: op.id, name, kind }));
                }
                Change::CastBefore(name) if name == op.name => {
                    if let Some((x, rows, width)) = op.kind.input().and_then(|x| {
                        let buffer = self.buffer(x)?;
                        Some((x, buffer.rows, buffer.width))
                    }) {
                        let turned = self.scratch("turned", width, rows);
                        for kind in [OpKind::Transpose { x, out: turned }, OpKind::Transpose { x: turned, out: x }] {
                            self.ops.push(OpCall { id: op.id, name: OpName::LayoutCast, kind });
                        }
                    }
                    self.ops.push(op);
                }
                _ => self.ops.push(op),
            }
        }
        super::shard::number(&mut self.ops);
    }

    /// Takes everything apart where the level is [`Level::Composite`].
    pub(super) fn composed(mut self, part: &Config) -> Self {
        if self.shape.level == Level::Composite {
            Change::UNFUSABLE.into_iter().for_each(|op| self.change(Change::Unfuse(op), part));
        }
        self
    }

    /// A buffer of that name and shape, made where there is none.
    fn scratch(&mut self, name: &'static str, rows: usize, width: usize) -> BufId {
        let wanted = BufDesc { name, rows, width };
        let at = self.buffers.iter().position(|buffer| *buffer == wanted).unwrap_or_else(|| {
            self.buffers.push(wanted);
            self.buffers.len() - 1
        });
        BufId(u16::try_from(at).unwrap_or(u16::MAX))
    }

    fn simpler(&mut self, op: &OpCall, part: &Config) -> Vec<(OpName, OpKind)> {
        match &op.kind {
            OpKind::AddRmsNorm { x, delta, weight, out } => vec![
                (OpName::ResidualAdd, OpKind::Add { x: *x, delta: *delta }),
                (OpName::RmsNorm, OpKind::RmsNorm { x: *x, weight: *weight, out: *out }),
            ],
            OpKind::RmsNorm { x, weight, out } => {
                let (rows, width) = self.buffer(*x).map_or((0, 0), |x| (x.rows, x.width));
                let mean = self.scratch("mean", rows, 1);
                let squared = self.scratch("squared", rows, width);
                vec![
                    (OpName::Square, OpKind::Square { x: *x, out: squared }),
                    (OpName::Mean, OpKind::Mean { x: squared, out: mean }),
                    (OpName::Rsqrt, OpKind::Rsqrt { x: mean }),
                    (OpName::Mul, OpKind::ScaleRows { x: *x, by: mean, out: *out }),
                    (OpName::Mul, OpKind::ScaleColumns { x: *out, weight: *weight }),
                ]
            }
            OpKind::SiluMul { gate_up, out } => vec![
                (OpName::Silu, OpKind::Silu { gate_up: *gate_up, out: *out }),
                (OpName::Mul, OpKind::MulUp { gate_up: *gate_up, out: *out }),
            ],
            OpKind::Linear { x, matrix: matrix @ Matrix::Qkv(_), out, .. } => {
                let (q, kv) = (part.q_width(), part.kv_width());
                [(OpName::QProj, 0..q), (OpName::KProj, q..q + kv), (OpName::VProj, q + kv..q + 2 * kv)]
                    .map(|(name, rows)| (name, OpKind::Linear { x: *x, matrix: *matrix, rows, out: *out }))
                    .to_vec()
            }
            OpKind::Linear { x, matrix: matrix @ Matrix::GateUp(_), out, .. } => {
                let width = part.intermediate;
                [(OpName::GateProj, 0..width), (OpName::UpProj, width..2 * width)]
                    .map(|(name, rows)| (name, OpKind::Linear { x: *x, matrix: *matrix, rows, out: *out }))
                    .to_vec()
            }
            other => vec![(op.name, other.clone())],
        }
    }
}

impl OpKind {
    /// The activations that an operator reads, of those that write another buffer.
    fn input(&self) -> Option<BufId> {
        match self {
            Self::RmsNorm { x, .. }
            | Self::AddRmsNorm { x, .. }
            | Self::Linear { x, .. }
            | Self::SiluMul { gate_up: x, .. }
            | Self::KvAppend { qkv: x, .. }
            | Self::Attention { qkv: x, .. } => Some(*x),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::{
        Shard, preset,
        program::{Logits, Shape},
    };

    #[test]
    fn a_composite_layer_has_the_operators_of_a_framework_without_fused_kernels() {
        let config = preset("tiny").unwrap();
        let shape = Shape { tokens: 2, sequences: 2, logits: Logits::Last, level: Level::Composite };
        let program = Program::of_rank(&config, shape, Shard::WHOLE).unwrap();
        program.check(&config).unwrap();
        let layer: Vec<&str> =
            program.ops.iter().filter(|op| op.id.layer == Some(1)).map(|op| op.name.text()).collect();
        assert_eq!(layer.len(), 15 + 2 * 4 + 1);
        assert_eq!(layer[..6], ["square", "mean", "rsqrt", "mul", "mul", "q_proj"]);
    }

    #[test]
    fn every_change_leaves_a_program_that_fits() {
        for of in [1, 2] {
            let config = preset("tiny").unwrap();
            let shape = Shape { tokens: 6, sequences: 2, logits: Logits::Last, level: Level::Fused };
            let mut program = Program::of_rank(&config, shape, Shard { rank: of - 1, of }).unwrap();
            let part = config.part(program.shard).unwrap();
            let before = program.ops.len();
            program.change(Change::CastBefore(OpName::DownProj), &part);
            assert_eq!(program.ops.len(), before + 2 * config.layers);
            for op in Change::UNFUSABLE {
                program.change(Change::Unfuse(op), &part);
                program.check(&config).unwrap();
            }
            assert!(!program.ops.iter().any(|op| Change::UNFUSABLE.contains(&op.name)));
        }
    }
}
