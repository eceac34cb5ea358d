//! The weights of a model, from whatever source holds them.
//!
//! Projections that read the same input are one matrix: queries, keys and values, and the two halves of the feed-forward
//! block. A fused operator reads all of it and an unfused one its rows, so both compute with the same bits.

use std::ops::Range;

use crate::{Config, Dtype, Error, Shard, Tensor};

mod checkpoint;
mod synthetic;

pub use checkpoint::Checkpoint;
pub use synthetic::{Seeded, Synthetic};
pub(crate) use synthetic::{hash, split_mix};

/// Where weights come from. Names are those of Hugging Face checkpoints.
pub trait Source {
    /// Gives the rows of the matrix `name`, which must have `rows` of `width`, in order, as single precision.
    ///
    /// # Errors
    /// [`Error::Tensor`] when there is none of that name and shape, or it cannot be read.
    fn rows(&mut self, name: &str, rows: usize, width: usize, each: &mut dyn FnMut(usize, &[f32]))
    -> Result<(), Error>;
}

/// The weights of a decoder layer. A matrix is `(outputs, inputs)`.
#[derive(Debug)]
pub struct LayerWeights {
    /// Of the norm before attention, `(hidden)`.
    pub input_norm: Vec<f32>,
    /// Queries, keys, values, `(q_width + 2 kv_width, hidden)`.
    pub qkv: Tensor,
    /// Their biases, `(q_width + 2 kv_width)`.
    pub qkv_bias: Option<Vec<f32>>,
    /// Of the norms of query and key heads, `(head_dim)` each.
    pub qk_norm: Option<[Vec<f32>; 2]>,
    /// Output projection of attention, `(hidden, q_width)`.
    pub o: Tensor,
    /// Of the norm before the feed-forward block, `(hidden)`.
    pub post_norm: Vec<f32>,
    /// Scores of the experts, `(experts, hidden)`, of a mixture of them.
    pub router: Option<Tensor>,
    /// Gate and up projections, `(2 intermediate, hidden)`; of a mixture those of all experts, one below the other.
    pub gate_up: Tensor,
    /// Down projection, `(hidden, intermediate)`; of a mixture as above.
    pub down: Tensor,
}

/// The weights of a model.
#[derive(Debug)]
pub struct Weights {
    /// Fingerprint of the shape that they were loaded for.
    pub(crate) model: u64,
    /// Which part of the model they are; all sizes below are those of the part.
    pub(crate) shard: Shard,
    /// Embedding table, `(vocab, hidden)`.
    pub embed: Tensor,
    /// Layers.
    pub layers: Vec<LayerWeights>,
    /// Of the last norm, `(hidden)`.
    pub final_norm: Vec<f32>,
    /// Output head, `(vocab, hidden)`; absent where the embedding table serves.
    pub head: Option<Tensor>,
}

impl Weights {
    /// Loads all weights of the model, matrices as `dtype`, norms and biases as single precision.
    ///
    /// # Errors
    /// Those of the source, and [`Error::Request`] when memory runs out.
    pub fn load(config: &Config, dtype: Dtype, source: &mut dyn Source) -> Result<Self, Error> {
        Self::load_part(config, Shard::WHOLE, dtype, source)
    }

    /// Loads a rank's part of the weights.
    ///
    /// # Errors
    /// Those of [`Weights::load`], and [`Error::Request`] when the ranks cannot have equal parts.
    pub fn load_part(config: &Config, shard: Shard, dtype: Dtype, source: &mut dyn Source) -> Result<Self, Error> {
        config.part(shard)?;
        let mut load = Loader { source, dtype };
        let (hidden, q, kv, width) = (config.hidden, config.q_width(), config.kv_width(), config.intermediate);
        // Ranks have whole heads, of which queries have several per key.
        let heads = |width: usize| {
            let own = shard.range(width / config.head_dim);
            own.start * config.head_dim..own.end * config.head_dim
        };
        let table = |name: &str| [Piece::rows(name.to_owned(), config.vocab, hidden, shard.range(config.vocab))];
        let embed = load.matrix(&table("model.embed_tokens.weight"))?;
        let mut layers = Vec::with_capacity(config.layers);
        for layer in 0..config.layers {
            let name = |rest: &str| format!("model.layers.{layer}.{rest}");
            let projections = [("q_proj", q), ("k_proj", kv), ("v_proj", kv)];
            let qkv = projections.map(|(of, outputs)| {
                Piece::rows(name(&format!("self_attn.{of}.weight")), outputs, hidden, heads(outputs))
            });
            let bias = projections
                .map(|(of, outputs)| Piece::columns(name(&format!("self_attn.{of}.bias")), 1, outputs, heads(outputs)));
            let experts = config.experts.map_or(0, |experts| experts.count);
            let blocks: Vec<String> = match config.experts {
                None => vec!["mlp".to_owned()],
                Some(_) => (0..experts).map(|expert| format!("mlp.experts.{expert}")).collect(),
            };
            let gate_up = blocks.iter().flat_map(|block| {
                ["gate_proj", "up_proj"]
                    .map(|of| Piece::rows(name(&format!("{block}.{of}.weight")), width, hidden, shard.range(width)))
            });
            let gate_up: Vec<Piece> = gate_up.collect();
            let down = |block: &String| {
                Piece::columns(name(&format!("{block}.down_proj.weight")), hidden, width, shard.range(width))
            };
            let down: Vec<Piece> = blocks.iter().map(down).collect();
            let router = Piece::rows(name("mlp.gate.weight"), experts, hidden, 0..experts);
            let mut whole = |rest: &str, width| load.vector(&[Piece::columns(name(rest), 1, width, 0..width)]);
            let input_norm = whole("input_layernorm.weight", hidden)?;
            let post_norm = whole("post_attention_layernorm.weight", hidden)?;
            let qk_norm = if config.qk_norm {
                let mut norm = |of: &str| whole(&format!("self_attn.{of}.weight"), config.head_dim);
                Some([norm("q_norm")?, norm("k_norm")?])
            } else {
                None
            };
            layers.push(LayerWeights {
                input_norm,
                qkv: load.matrix(&qkv)?,
                qkv_bias: if config.qkv_bias { Some(load.vector(&bias)?) } else { None },
                qk_norm,
                o: load.matrix(&[Piece::columns(name("self_attn.o_proj.weight"), hidden, q, heads(q))])?,
                post_norm,
                router: config.experts.is_some().then(|| load.matrix(&[router])).transpose()?,
                gate_up: load.matrix(&gate_up)?,
                down: load.matrix(&down)?,
            });
        }
        let final_norm = load.vector(&[Piece::columns("model.norm.weight".to_owned(), 1, hidden, 0..hidden)])?;
        let head = if config.tied { None } else { Some(load.matrix(&table("lm_head.weight"))?) };
        Ok(Self { model: config.fingerprint(), shard, embed, layers, final_norm, head })
    }

    /// Output head, `(vocab, hidden)`.
    pub fn head(&self) -> &Tensor {
        self.head.as_ref().unwrap_or(&self.embed)
    }
}

/// What is taken of a tensor of the source.
struct Piece {
    name: String,
    /// Of the whole tensor.
    shape: (usize, usize),
    rows: Range<usize>,
    columns: Range<usize>,
}

impl Piece {
    fn rows(name: String, rows: usize, width: usize, taken: Range<usize>) -> Self {
        Self { name, shape: (rows, width), rows: taken, columns: 0..width }
    }

    fn columns(name: String, rows: usize, width: usize, taken: Range<usize>) -> Self {
        Self { name, shape: (rows, width), rows: 0..rows, columns: taken }
    }
}

struct Loader<'s> {
    source: &'s mut dyn Source,
    dtype: Dtype,
}

impl Loader<'_> {
    fn read(&mut self, piece: &Piece, mut each: impl FnMut(usize, &[f32])) -> Result<(), Error> {
        let (rows, width) = piece.shape;
        self.source.rows(&piece.name, rows, width, &mut |row, values| {
            if let Some(row) = row.checked_sub(piece.rows.start).filter(|row| *row < piece.rows.len()) {
                each(row, values.get(piece.columns.clone()).unwrap_or_default());
            }
        })
    }

    /// A matrix of pieces of one width, one below the other.
    fn matrix(&mut self, pieces: &[Piece]) -> Result<Tensor, Error> {
        let rows = pieces.iter().map(|piece| piece.rows.len()).sum();
        let width = pieces.first().map_or(0, |piece| piece.columns.len());
        let mut tensor = Tensor::zeroed(self.dtype, rows, width)?;
        let mut at = 0;
        for piece in pieces {
            self.read(piece, |row, values| tensor.set_row(at + row, values))?;
            at += piece.rows.len();
        }
        Ok(tensor)
    }

    /// A vector of pieces, one after the other.
    fn vector(&mut self, pieces: &[Piece]) -> Result<Vec<f32>, Error> {
        let mut vector = Vec::new();
        for piece in pieces {
            self.read(piece, |_, values| vector.extend_from_slice(values))?;
        }
        Ok(vector)
    }
}
