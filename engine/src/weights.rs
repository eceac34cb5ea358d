//! The weights of a model, from whatever source holds them.
//!
//! Projections that read the same input are one matrix: queries, keys and values, and the two halves of the feed-forward
//! block. A fused operator reads all of it and an unfused one its rows, so both compute with the same bits.

use std::ops::Range;

use crate::{Config, Dtype, Error, Tensor};

mod checkpoint;
mod synthetic;

pub use checkpoint::Checkpoint;
pub use synthetic::Synthetic;
pub(crate) use synthetic::hash;

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
    /// Gate and up projections, `(2 intermediate, hidden)`.
    pub gate_up: Tensor,
    /// Down projection, `(hidden, intermediate)`.
    pub down: Tensor,
}

/// The weights of a model.
#[derive(Debug)]
pub struct Weights {
    /// Fingerprint of the shape that they were loaded for.
    pub(crate) model: u64,
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
        let mut load = Loader { source, dtype };
        let (hidden, q, kv) = (config.hidden, config.q_width(), config.kv_width());
        let embed = load.matrix(config.vocab, hidden, &[("model.embed_tokens.weight".to_owned(), 0..config.vocab)])?;
        let mut layers = Vec::with_capacity(config.layers);
        for layer in 0..config.layers {
            let name = |rest: &str| format!("model.layers.{layer}.{rest}");
            let parts = |what: &str| {
                let part =
                    |projection: &str, rows: Range<usize>| (name(&format!("self_attn.{projection}.{what}")), rows);
                [part("q_proj", 0..q), part("k_proj", q..q + kv), part("v_proj", q + kv..q + 2 * kv)]
            };
            let norms = if config.qk_norm {
                let mut norm = |of: &str| load.vector(&[(name(&format!("self_attn.{of}.weight")), 0..config.head_dim)]);
                Some([norm("q_norm")?, norm("k_norm")?])
            } else {
                None
            };
            let width = config.intermediate;
            layers.push(LayerWeights {
                input_norm: load.vector(&[(name("input_layernorm.weight"), 0..hidden)])?,
                qkv: load.matrix(q + 2 * kv, hidden, &parts("weight"))?,
                qkv_bias: if config.qkv_bias { Some(load.vector(&parts("bias"))?) } else { None },
                qk_norm: norms,
                o: load.matrix(hidden, q, &[(name("self_attn.o_proj.weight"), 0..hidden)])?,
                post_norm: load.vector(&[(name("post_attention_layernorm.weight"), 0..hidden)])?,
                gate_up: load.matrix(
                    2 * width,
                    hidden,
                    &[(name("mlp.gate_proj.weight"), 0..width), (name("mlp.up_proj.weight"), width..2 * width)],
                )?,
                down: load.matrix(hidden, width, &[(name("mlp.down_proj.weight"), 0..hidden)])?,
            });
        }
        let final_norm = load.vector(&[("model.norm.weight".to_owned(), 0..hidden)])?;
        let head = if config.tied {
            None
        } else {
            Some(load.matrix(config.vocab, hidden, &[("lm_head.weight".to_owned(), 0..config.vocab)])?)
        };
        Ok(Self { model: config.fingerprint(), embed, layers, final_norm, head })
    }

    /// Output head, `(vocab, hidden)`.
    pub fn head(&self) -> &Tensor {
        self.head.as_ref().unwrap_or(&self.embed)
    }
}

struct Loader<'s> {
    source: &'s mut dyn Source,
    dtype: Dtype,
}

impl Loader<'_> {
    /// A matrix of which each part is a tensor of the source.
    fn matrix(&mut self, rows: usize, width: usize, parts: &[(String, Range<usize>)]) -> Result<Tensor, Error> {
        let mut tensor = Tensor::zeroed(self.dtype, rows, width)?;
        for (name, range) in parts {
            let write = &mut |row: usize, values: &[f32]| tensor.set_row(range.start + row, values);
            self.source.rows(name, range.len(), width, write)?;
        }
        Ok(tensor)
    }

    /// A vector of which each part is a tensor of the source.
    fn vector(&mut self, parts: &[(String, Range<usize>)]) -> Result<Vec<f32>, Error> {
        let mut vector = Vec::new();
        for (name, range) in parts {
            self.source.rows(name, 1, range.len(), &mut |_, values| vector.extend_from_slice(values))?;
        }
        Ok(vector)
    }
}
