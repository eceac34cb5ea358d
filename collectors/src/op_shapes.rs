//! What the operators of a program work on: sizes and types of their inputs as JSON texts, the form in which profilers of
//! frameworks record them.

use engine::{
    Config,
    program::{BufId, OpCall, OpKind, Program},
};

/// Shapes and types of the inputs of an operator; `dtype` is that of the weights.
pub fn inputs(program: &Program, config: &Config, op: &OpCall, dtype: &str, activations: &str) -> (String, String) {
    let buffer = |id: BufId| program.buffer(id).map(|buffer| (buffer.rows, buffer.width));
    let (first, matrix) = match &op.kind {
        OpKind::Embed { .. } => (Some((program.shape.tokens, 1)), Some((config.vocab, config.hidden))),
        // Of a matrix that several operators share, each reads its rows.
        OpKind::Linear { x, rows, .. } => (buffer(*x), buffer(*x).map(|(_, inputs)| (rows.len(), inputs))),
        OpKind::RmsNorm { x, .. } | OpKind::AddRmsNorm { x, .. } | OpKind::HeadNorm { x, .. } => (buffer(*x), None),
        OpKind::Rope { x, .. } | OpKind::Add { x, .. } | OpKind::LastToken { x, .. } => (buffer(*x), None),
        OpKind::Square { x, .. } | OpKind::Mean { x, .. } | OpKind::Rsqrt { x } => (buffer(*x), None),
        OpKind::ScaleRows { x, .. } | OpKind::ScaleColumns { x, .. } | OpKind::Transpose { x, .. } => {
            (buffer(*x), None)
        }
        OpKind::Route { scores: x, .. } | OpKind::ExpertLinear { x, .. } | OpKind::Combine { x, .. } => {
            // Which experts' matrices are read, only the run itself knows.
            (buffer(*x), None)
        }
        OpKind::AllReduce { x } | OpKind::AllGather { part: x, .. } => (buffer(*x), None),
        OpKind::KvAppend { qkv, .. } | OpKind::Attention { qkv, .. } => (buffer(*qkv), None),
        OpKind::SiluMul { gate_up, .. } | OpKind::Silu { gate_up, .. } | OpKind::MulUp { gate_up, .. } => {
            (buffer(*gate_up), None)
        }
        OpKind::Argmax { logits } => (buffer(*logits), None),
    };
    let activations = if matches!(op.kind, OpKind::Embed { .. }) { "int" } else { activations };
    let tensors = [(first, activations), (matrix, dtype)].into_iter().filter_map(|(size, dtype)| Some((size?, dtype)));
    let (shapes, dtypes): (Vec<String>, Vec<String>) =
        tensors.map(|((rows, width), dtype)| (format!("[{rows}, {width}]"), format!("\"{dtype}\""))).unzip();
    (format!("[{}]", shapes.join(", ")), format!("[{}]", dtypes.join(", ")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use engine::{
        preset,
        program::{Level, Logits, OpName, Shape},
    };

    use super::*;

    #[test]
    fn products_name_both_operands_and_shared_matrices_only_the_rows_read() {
        let config = preset("qwen2.5-0.5b").unwrap();
        let of = |level, name: OpName| {
            let shape = Shape { tokens: 3, sequences: 3, logits: Logits::Last, level };
            let program = Program::plan(&config, shape);
            let op = program.ops.iter().find(|op| op.name == name).unwrap();
            inputs(&program, &config, op, "bf16", "f32")
        };
        let text = |shapes: &str, types: &str| (shapes.to_owned(), types.to_owned());
        assert_eq!(of(Level::Canonical, OpName::KProj), text("[[3, 896], [128, 896]]", r#"["f32", "bf16"]"#));
        assert_eq!(of(Level::Fused, OpName::QkvProj), text("[[3, 896], [1152, 896]]", r#"["f32", "bf16"]"#));
        assert_eq!(of(Level::Fused, OpName::DownProj), text("[[3, 4864], [896, 4864]]", r#"["f32", "bf16"]"#));
        assert_eq!(of(Level::Fused, OpName::SiluMul), text("[[3, 9728]]", r#"["f32"]"#));
        assert_eq!(of(Level::Fused, OpName::Embed), text("[[3, 1], [151936, 896]]", r#"["int", "bf16"]"#));
    }
}
