//! A step as plain data: the operators in order, each with the buffers it reads and writes. Every backend runs the same
//! program, which is what makes runs on different platforms comparable operator by operator.

use std::ops::Range;

use crate::{Config, Error, Shard};

mod change;
mod check;
mod effect;
mod name;
mod plan;
mod shard;

pub use change::Change;
pub use effect::Written;
pub use name::OpName;

/// How operators are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// What an eager framework without fused kernels runs: norms and activations are several operators.
    Composite,
    /// One operator per name of the field: what an eager framework with fused kernels runs.
    Canonical,
    /// Neighbours that read one input are one operator: queries, keys and values; gate and up; addition and norm.
    Fused,
}

/// A buffer of activations, one row per token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufId(pub u16);

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
    /// Scores of the experts of a layer.
    Router(u16),
}

/// A matrix of which each expert has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExpertMatrix {
    /// Gate and up projections of a layer.
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
    /// out = the experts of each token, as numbers, and then what each counts for: the largest shares of e^score.
    Route {
        /// (tokens, experts)
        scores: BufId,
        /// (tokens, 2 active)
        out: BufId,
    },
    /// out = x · matrix of the expert, for each token and each of its experts.
    ExpertLinear {
        /// (tokens, inputs), or (tokens · active, inputs)
        x: BufId,
        /// (tokens, 2 active)
        routes: BufId,
        /// (outputs, inputs) of each expert
        matrix: ExpertMatrix,
        /// (tokens · active, outputs)
        out: BufId,
    },
    /// out = sum of what the experts of each token made, by what each counts for.
    Combine {
        /// (tokens · active, width)
        x: BufId,
        /// (tokens, 2 active)
        routes: BufId,
        /// (tokens, width)
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
    /// x = sum of x of all ranks.
    AllReduce {
        /// Any buffer.
        x: BufId,
    },
    /// out = x².
    Square {
        /// (tokens, width)
        x: BufId,
        /// (tokens, width)
        out: BufId,
    },
    /// out = mean of each row of x.
    Mean {
        /// (tokens, width)
        x: BufId,
        /// (tokens, 1)
        out: BufId,
    },
    /// x = 1 / √(x + ε), the model's ε.
    Rsqrt {
        /// Any buffer.
        x: BufId,
    },
    /// out = x · by, row by row.
    ScaleRows {
        /// (tokens, width)
        x: BufId,
        /// (tokens, 1)
        by: BufId,
        /// (tokens, width)
        out: BufId,
    },
    /// x = x · weight, column by column.
    ScaleColumns {
        /// (tokens, width)
        x: BufId,
        /// (width)
        weight: Vector,
    },
    /// out = silu(gate).
    Silu {
        /// Gate, up: (tokens, 2 width)
        gate_up: BufId,
        /// (tokens, width)
        out: BufId,
    },
    /// out = out · up.
    MulUp {
        /// Gate, up: (tokens, 2 width)
        gate_up: BufId,
        /// (tokens, width)
        out: BufId,
    },
    /// out = x, rows as columns.
    Transpose {
        /// (rows, columns)
        x: BufId,
        /// (columns, rows)
        out: BufId,
    },
    /// out = the parts of all ranks, side by side.
    AllGather {
        /// (rows, this rank's part of the width)
        part: BufId,
        /// (rows, width)
        out: BufId,
    },
}

impl OpKind {
    /// What a rank brings to a collective and what it has afterwards; `None` of an operator that is none.
    pub fn exchanged(&self) -> Option<(BufId, BufId)> {
        match self {
            Self::AllReduce { x } => Some((*x, *x)),
            Self::AllGather { part, out } => Some((*part, *out)),
            _ => None,
        }
    }
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
    /// Which part of the model it computes.
    pub shard: Shard,
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
        plan::Planner::new(config, shape).plan().composed(config)
    }

    /// The step of a rank that has a part of a model.
    ///
    /// # Errors
    /// [`Error::Request`] when the ranks cannot have equal parts.
    pub fn of_rank(config: &Config, shape: Shape, shard: Shard) -> Result<Self, Error> {
        Ok(shard::pass(Self::plan(&config.part(shard)?, shape), config.vocab, shard))
    }

    /// Elements of the largest part that a rank brings to a collective.
    pub fn largest_exchange(&self) -> usize {
        let parts = self.ops.iter().filter_map(|op| self.buffer(op.kind.exchanged()?.0));
        parts.map(|part| part.rows.saturating_mul(part.width)).max().unwrap_or(0)
    }

    /// Makes sure that every operator can run on a model: its buffers are there and of the widths and rows that it needs,
    /// and nothing that it writes is also something else that it reads or writes. Threads of a backend rely on that.
    ///
    /// # Errors
    /// [`Error::Request`], which names the first operator that does not fit.
    pub fn check(&self, config: &Config) -> Result<(), Error> {
        check::check(self, config)
    }

    /// A buffer; `None` for an id of another program.
    pub fn buffer(&self, id: BufId) -> Option<&BufDesc> {
        self.buffers.get(usize::from(id.0))
    }
}
