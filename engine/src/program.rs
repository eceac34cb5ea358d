//! A step as plain data: the operators in order, each with the buffers it reads and writes. Every backend runs the same
//! program, which is what makes runs on different platforms comparable operator by operator.

use std::ops::Range;

use crate::Config;

/// How operators are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// One operator per name of the field: what an eager framework with fused kernels runs.
    Canonical,
    /// Neighbours that read one input are one operator: queries, keys and values; gate and up; addition and norm.
    Fused,
}

/// A buffer of activations, one row per token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufId(pub u16);

/// What an operator computes, in the field's words; stable across platforms and versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the field's own
pub enum OpName {
    Embed,
    RmsNorm,
    AddRmsNorm,
    QkvProj,
    QProj,
    KProj,
    VProj,
    QkNorm,
    Rope,
    KvCacheAppend,
    AttentionPrefill,
    AttentionDecode,
    OProj,
    ResidualAdd,
    GateUpProj,
    GateProj,
    UpProj,
    SiluMul,
    DownProj,
    LastToken,
    FinalNorm,
    LmHead,
    Argmax,
}

impl OpName {
    /// The name as it stands in captures.
    pub fn text(self) -> &'static str {
        match self {
            Self::Embed => "embed",
            Self::RmsNorm => "rms_norm",
            Self::AddRmsNorm => "add_rms_norm",
            Self::QkvProj => "qkv_proj",
            Self::QProj => "q_proj",
            Self::KProj => "k_proj",
            Self::VProj => "v_proj",
            Self::QkNorm => "qk_norm",
            Self::Rope => "rope",
            Self::KvCacheAppend => "kv_cache_append",
            Self::AttentionPrefill => "attention_prefill",
            Self::AttentionDecode => "attention_decode",
            Self::OProj => "o_proj",
            Self::ResidualAdd => "residual_add",
            Self::GateUpProj => "gate_up_proj",
            Self::GateProj => "gate_proj",
            Self::UpProj => "up_proj",
            Self::SiluMul => "silu_mul",
            Self::DownProj => "down_proj",
            Self::LastToken => "last_token",
            Self::FinalNorm => "final_norm",
            Self::LmHead => "lm_head",
            Self::Argmax => "argmax",
        }
    }
}

/// A matrix of the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Matrix {
    /// Output head.
    Head,
    /// Queries, keys and values of a layer.
    Qkv(u16),
    /// Output projection of attention.
    O(u16),
    /// Gate and up projections.
    GateUp(u16),
    /// Down projection.
    Down(u16),
}

/// A vector of the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vector {
    /// Norm before attention.
    InputNorm(u16),
    /// Norm before the feed-forward block.
    PostNorm(u16),
    /// Last norm.
    FinalNorm,
    /// Norm of query heads.
    QNorm(u16),
    /// Norm of key heads.
    KNorm(u16),
}

/// Neighbouring heads of a row: where they begin and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// Column of the first.
    pub at: usize,
    /// Number of heads.
    pub count: usize,
}

/// An operator with its operands.
#[derive(Clone, Debug, PartialEq)]
pub enum OpKind {
    /// out = rows of the embedding table.
    Embed {
        /// (tokens, hidden)
        out: BufId,
    },
    /// out = norm of x.
    RmsNorm {
        /// (tokens, width)
        x: BufId,
        /// (width)
        weight: Vector,
        /// (tokens, width)
        out: BufId,
    },
    /// x += delta; out = norm of x.
    AddRmsNorm {
        /// (tokens, width)
        x: BufId,
        /// (tokens, width)
        delta: BufId,
        /// (width)
        weight: Vector,
        /// (tokens, width)
        out: BufId,
    },
    /// out\[.., at ..\] = x · rows of the matrix, plus their biases where the matrix has any.
    Linear {
        /// (tokens, inputs)
        x: BufId,
        /// (outputs, inputs)
        matrix: Matrix,
        /// Rows of the matrix that are computed; they go to the columns of the same numbers.
        rows: Range<usize>,
        /// (tokens, outputs)
        out: BufId,
    },
    /// Norms each head in place.
    HeadNorm {
        /// (tokens, width)
        x: BufId,
        /// The heads.
        heads: Heads,
        /// (`head_dim`)
        weight: Vector,
    },
    /// Turns queries and keys by their positions, in place.
    Rope {
        /// (tokens, width)
        x: BufId,
        /// The heads.
        heads: Heads,
    },
    /// Puts keys and values of this step's tokens into the cache.
    KvAppend {
        /// Queries, keys, values.
        qkv: BufId,
        /// Layer.
        layer: u16,
    },
    /// Causal attention of the queries over the cache.
    Attention {
        /// Queries, keys, values.
        qkv: BufId,
        /// Layer.
        layer: u16,
        /// (tokens, `q_width`)
        out: BufId,
    },
    /// x += delta.
    Add {
        /// (tokens, width)
        x: BufId,
        /// (tokens, width)
        delta: BufId,
    },
    /// out = silu(gate) · up.
    SiluMul {
        /// Gate, up: (tokens, 2 width)
        gate_up: BufId,
        /// (tokens, width)
        out: BufId,
    },
    /// out = rows of x that are the last of their sequence.
    LastToken {
        /// (tokens, width)
        x: BufId,
        /// (sequences, width)
        out: BufId,
    },
    /// The most likely token of each row, to the step's output.
    Argmax {
        /// (sequences, vocab)
        logits: BufId,
    },
}

/// Which operator of a step: the layer, `None` outside the layers, and the place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpId {
    /// Layer.
    pub layer: Option<u16>,
    /// Place among the operators of the layer.
    pub slot: u16,
}

/// One operator of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct OpCall {
    /// Place.
    pub id: OpId,
    /// Name.
    pub name: OpName,
    /// Operands.
    pub kind: OpKind,
}

/// A buffer of activations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufDesc {
    /// What it holds.
    pub name: &'static str,
    /// Rows: tokens or sequences.
    pub rows: usize,
    /// Elements of a row, single precision.
    pub width: usize,
}

/// Which rows of logits a step needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logits {
    /// Those of the last token of each sequence.
    Last,
    /// Those of every token.
    All,
}

/// What a program is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Tokens of all sequences together.
    pub tokens: usize,
    /// Sequences.
    pub sequences: usize,
    /// Rows of logits.
    pub logits: Logits,
    /// How operators are divided.
    pub level: Level,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// What it was made for.
    pub shape: Shape,
    /// Buffers of activations; a [`BufId`] is an index into them.
    pub buffers: Vec<BufDesc>,
    /// Operators in order.
    pub ops: Vec<OpCall>,
    /// Residual stream, (tokens, hidden).
    pub residual: BufId,
    /// Output of the last norm, (rows of logits, hidden).
    pub normed: BufId,
    /// Logits, (rows of logits, vocab).
    pub logits: BufId,
}

impl Program {
    /// The step of a model.
    pub fn plan(config: &Config, shape: Shape) -> Self {
        Planner::new(config, shape).plan()
    }

    /// A buffer; `None` for an id of another program.
    pub fn buffer(&self, id: BufId) -> Option<&BufDesc> {
        self.buffers.get(usize::from(id.0))
    }
}

struct Planner<'c> {
    config: &'c Config,
    shape: Shape,
    buffers: Vec<BufDesc>,
    ops: Vec<OpCall>,
    layer: Option<u16>,
    slot: u16,
}

impl<'c> Planner<'c> {
    fn new(config: &'c Config, shape: Shape) -> Self {
        Self { config, shape, buffers: Vec::new(), ops: Vec::new(), layer: None, slot: 0 }
    }

    fn buffer(&mut self, name: &'static str, rows: usize, width: usize) -> BufId {
        self.buffers.push(BufDesc { name, rows, width });
        BufId(u16::try_from(self.buffers.len() - 1).unwrap_or(u16::MAX))
    }

    fn op(&mut self, name: OpName, kind: OpKind) {
        self.ops.push(OpCall { id: OpId { layer: self.layer, slot: self.slot }, name, kind });
        self.slot += 1;
    }

    fn linear(&mut self, name: OpName, x: BufId, matrix: Matrix, rows: Range<usize>, out: BufId) {
        self.op(name, OpKind::Linear { x, matrix, rows, out });
    }

    fn plan(mut self) -> Program {
        let Shape { tokens, sequences, logits, .. } = self.shape;
        let (hidden, q, kv) = (self.config.hidden, self.config.q_width(), self.config.kv_width());
        let logit_rows = if logits == Logits::All { tokens } else { sequences };
        let buffers = Buffers {
            residual: self.buffer("residual", tokens, hidden),
            normed: self.buffer("normed", tokens, hidden),
            qkv: self.buffer("qkv", tokens, q + 2 * kv),
            attended: self.buffer("attended", tokens, q),
            delta: self.buffer("delta", tokens, hidden),
            gate_up: self.buffer("gate_up", tokens, 2 * self.config.intermediate),
            activated: self.buffer("activated", tokens, self.config.intermediate),
        };
        let last = self.buffer("last", logit_rows, hidden);
        let normed_last = self.buffer("normed_last", logit_rows, hidden);
        let out = self.buffer("logits", logit_rows, self.config.vocab);

        self.op(OpName::Embed, OpKind::Embed { out: buffers.residual });
        for layer in 0..u16::try_from(self.config.layers).unwrap_or(u16::MAX) {
            (self.layer, self.slot) = (Some(layer), 0);
            self.attention(layer, &buffers);
            self.feed_forward(layer, &buffers);
        }
        (self.layer, self.slot) = (None, 1);
        if self.shape.level == Level::Fused {
            // The addition that the last layer left to the norm after it.
            self.op(OpName::ResidualAdd, OpKind::Add { x: buffers.residual, delta: buffers.delta });
        }
        let x = match logits {
            Logits::All => buffers.residual,
            Logits::Last => {
                self.op(OpName::LastToken, OpKind::LastToken { x: buffers.residual, out: last });
                last
            }
        };
        self.op(OpName::FinalNorm, OpKind::RmsNorm { x, weight: Vector::FinalNorm, out: normed_last });
        self.linear(OpName::LmHead, normed_last, Matrix::Head, 0..self.config.vocab, out);
        self.op(OpName::Argmax, OpKind::Argmax { logits: out });
        Program {
            shape: self.shape,
            buffers: self.buffers,
            ops: self.ops,
            residual: buffers.residual,
            normed: normed_last,
            logits: out,
        }
    }

    fn attention(&mut self, layer: u16, b: &Buffers) {
        let (heads, kv_heads) = (self.config.heads, self.config.kv_heads);
        let (q, kv) = (self.config.q_width(), self.config.kv_width());
        let fused = self.shape.level == Level::Fused;
        let norm = Vector::InputNorm(layer);
        if fused && layer > 0 {
            let kind = OpKind::AddRmsNorm { x: b.residual, delta: b.delta, weight: norm, out: b.normed };
            self.op(OpName::AddRmsNorm, kind);
        } else {
            self.op(OpName::RmsNorm, OpKind::RmsNorm { x: b.residual, weight: norm, out: b.normed });
        }
        let parts: &[(OpName, Range<usize>)] = if fused {
            &[(OpName::QkvProj, 0..q + 2 * kv)]
        } else {
            &[(OpName::QProj, 0..q), (OpName::KProj, q..q + kv), (OpName::VProj, q + kv..q + 2 * kv)]
        };
        for (name, rows) in parts {
            self.linear(*name, b.normed, Matrix::Qkv(layer), rows.clone(), b.qkv);
        }
        let (queries, keys) = (Heads { at: 0, count: heads }, Heads { at: q, count: kv_heads });
        if self.config.qk_norm {
            for (heads, weight) in [(queries, Vector::QNorm(layer)), (keys, Vector::KNorm(layer))] {
                self.op(OpName::QkNorm, OpKind::HeadNorm { x: b.qkv, heads, weight });
            }
        }
        // Keys follow queries in the row, so one call turns both.
        let both = Heads { at: 0, count: heads + kv_heads };
        self.op(OpName::Rope, OpKind::Rope { x: b.qkv, heads: both });
        self.op(OpName::KvCacheAppend, OpKind::KvAppend { qkv: b.qkv, layer });
        let decode = self.shape.tokens == self.shape.sequences;
        let name = if decode { OpName::AttentionDecode } else { OpName::AttentionPrefill };
        self.op(name, OpKind::Attention { qkv: b.qkv, layer, out: b.attended });
        self.linear(OpName::OProj, b.attended, Matrix::O(layer), 0..self.config.hidden, b.delta);
    }

    fn feed_forward(&mut self, layer: u16, b: &Buffers) {
        let width = self.config.intermediate;
        let fused = self.shape.level == Level::Fused;
        let weight = Vector::PostNorm(layer);
        if fused {
            let kind = OpKind::AddRmsNorm { x: b.residual, delta: b.delta, weight, out: b.normed };
            self.op(OpName::AddRmsNorm, kind);
            self.linear(OpName::GateUpProj, b.normed, Matrix::GateUp(layer), 0..2 * width, b.gate_up);
        } else {
            self.op(OpName::ResidualAdd, OpKind::Add { x: b.residual, delta: b.delta });
            self.op(OpName::RmsNorm, OpKind::RmsNorm { x: b.residual, weight, out: b.normed });
            self.linear(OpName::GateProj, b.normed, Matrix::GateUp(layer), 0..width, b.gate_up);
            self.linear(OpName::UpProj, b.normed, Matrix::GateUp(layer), width..2 * width, b.gate_up);
        }
        self.op(OpName::SiluMul, OpKind::SiluMul { gate_up: b.gate_up, out: b.activated });
        self.linear(OpName::DownProj, b.activated, Matrix::Down(layer), 0..self.config.hidden, b.delta);
        if !fused {
            self.op(OpName::ResidualAdd, OpKind::Add { x: b.residual, delta: b.delta });
        }
    }
}

/// Buffers that every layer uses.
struct Buffers {
    residual: BufId,
    normed: BufId,
    qkv: BufId,
    attended: BufId,
    delta: BufId,
    gate_up: BufId,
    activated: BufId,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::preset;

    fn names(model: &str, level: Level, layer: Option<u16>) -> Vec<&'static str> {
        let shape = Shape { tokens: 1, sequences: 1, logits: Logits::Last, level };
        let program = Program::plan(&preset(model).unwrap(), shape);
        program.ops.iter().filter(|op| op.id.layer == layer).map(|op| op.name.text()).collect()
    }

    #[test]
    fn a_canonical_layer_has_one_operator_per_name_and_a_fused_one_half_of_them() {
        let canonical = names("qwen2.5-0.5b", Level::Canonical, Some(3));
        assert_eq!(canonical.len(), 15);
        assert_eq!(canonical[..5], ["rms_norm", "q_proj", "k_proj", "v_proj", "rope"]);
        assert_eq!(
            names("qwen2.5-0.5b", Level::Fused, Some(3)),
            [
                "add_rms_norm",
                "qkv_proj",
                "rope",
                "kv_cache_append",
                "attention_decode",
                "o_proj",
                "add_rms_norm",
                "gate_up_proj",
                "silu_mul",
                "down_proj"
            ]
        );
        assert_eq!(names("qwen3-0.6b", Level::Fused, Some(0))[..3], ["rms_norm", "qkv_proj", "qk_norm"]);
        assert_eq!(
            names("tiny", Level::Fused, None),
            ["embed", "residual_add", "last_token", "final_norm", "lm_head", "argmax"]
        );
    }

    #[test]
    fn places_are_unique_within_a_step() {
        for level in [Level::Canonical, Level::Fused] {
            let shape = Shape { tokens: 6, sequences: 2, logits: Logits::All, level };
            let program = Program::plan(&preset("qwen3-0.6b").unwrap(), shape);
            let mut ids: Vec<OpId> = program.ops.iter().map(|op| op.id).collect();
            let count = ids.len();
            ids.sort_by_key(|id| (id.layer, id.slot));
            ids.dedup();
            assert_eq!(ids.len(), count);
        }
    }
}
