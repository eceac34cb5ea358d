//! What the operators of a program are called in a capture, and what they work on.

use engine::{
    Dtype,
    program::{OpCall, Program},
    run::Engine,
};
use model::{CollectiveCall, Detail, OpDetail, StringId, TraceSink};

use crate::op_shapes;

/// Names of the operators of a program, in its order.
pub(super) struct Names {
    /// As the host calls them, with their layer.
    pub ops: Vec<StringId>,
    /// The same without their layer.
    pub plain: Vec<StringId>,
    /// As the device runs them, with type and what they were built for.
    pub kernels: Vec<StringId>,
    pub shapes: Vec<Detail>,
    /// What a collective is, without its number.
    pub collectives: Vec<Option<CollectiveCall>>,
}

impl Names {
    pub fn of(program: &Program, engine: &Engine, sink: &mut dyn TraceSink) -> Self {
        let (options, built_for) = (engine.options(), &engine.device().kernels);
        let dtype = options.dtype.name();
        let activations = options.target.activations(options.dtype);
        let on_host = |op: &OpCall| match op.id.layer {
            Some(layer) => format!("layers.{layer}.{}", op.name.text()),
            None => op.name.text().to_owned(),
        };
        Self {
            ops: program.ops.iter().map(|op| sink.intern(&on_host(op))).collect(),
            plain: program.ops.iter().map(|op| sink.intern(op.name.text())).collect(),
            kernels: program
                .ops
                .iter()
                .map(|op| {
                    let built_for = options.target.library(program, op, options.dtype).unwrap_or(built_for);
                    sink.intern(&format!("strato_{}_{dtype}_{built_for}", op.name.text()))
                })
                .collect(),
            shapes: program
                .ops
                .iter()
                .map(|op| {
                    let (shapes, dtypes) = op_shapes::inputs(program, engine.config(), op, dtype, activations.name());
                    Detail::Op(OpDetail { shapes: Some(sink.intern(&shapes)), dtypes: Some(sink.intern(&dtypes)) })
                })
                .collect(),
            collectives: program.ops.iter().map(|op| collective(program, op, activations, sink)).collect(),
        }
    }
}

/// What an operator exchanges between ranks, in the words of the field.
fn collective(program: &Program, op: &OpCall, dtype: Dtype, sink: &mut dyn TraceSink) -> Option<CollectiveCall> {
    let result = program.buffer(op.kind.exchanged()?.1)?;
    let name = op.name.text().replace('_', "");
    Some(CollectiveCall {
        op: Some(sink.intern(&name)),
        group: Some(sink.intern("tp")),
        group_size: u32::try_from(program.shard.of).ok(),
        seq: None,
        bytes: i64::try_from(result.rows * dtype.row_bytes(result.width)).ok(),
        dtype: Some(sink.intern(dtype.name())),
    })
}
