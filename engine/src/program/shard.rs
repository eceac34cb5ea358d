//! The pass that makes a step of a part of a model a rank's step: the ranks add up what each has a part of.

use super::{BufDesc, BufId, Matrix, OpCall, OpId, OpKind, OpName, Program};
use crate::Shard;

/// Puts the collectives into the program of a part and splits the head by rows of the vocabulary.
pub(super) fn pass(mut program: Program, vocab: usize, shard: Shard) -> Program {
    if shard.of < 2 {
        return program;
    }
    program.shard = shard;
    let rows = program.buffer(program.logits).map_or(0, |logits| logits.rows);
    let own = shard.range(vocab);
    let part = BufId(u16::try_from(program.buffers.len()).unwrap_or(u16::MAX));
    program.buffers.push(BufDesc { name: "logits_part", rows, width: own.len() });
    let mut ops = Vec::with_capacity(program.ops.len() * 5 / 4);
    for mut op in std::mem::take(&mut program.ops) {
        let after = match &mut op.kind {
            OpKind::Embed { out }
            | OpKind::Combine { out, .. }
            | OpKind::Linear { matrix: Matrix::O(_) | Matrix::Down(_), out, .. } => {
                Some((OpName::AllReduce, OpKind::AllReduce { x: *out }))
            }
            OpKind::Linear { matrix: Matrix::Head, rows, out, .. } => {
                let logits = std::mem::replace(out, part);
                *rows = 0..own.len();
                Some((OpName::AllGather, OpKind::AllGather { part, out: logits }))
            }
            _ => None,
        };
        let id = op.id;
        ops.push(op);
        ops.extend(after.map(|(name, kind)| OpCall { id, name, kind }));
    }
    program.ops = ops;
    number(&mut program.ops);
    program
}

/// Numbers the operators of each layer anew.
pub(super) fn number(ops: &mut [OpCall]) {
    let mut outside = 0;
    let mut last = None;
    let mut within = 0;
    for op in ops {
        let slot = if op.id.layer.is_none() {
            &mut outside
        } else {
            if op.id.layer != last {
                (last, within) = (op.id.layer, 0);
            }
            &mut within
        };
        op.id = OpId { slot: *slot, ..op.id };
        *slot += 1;
    }
}
