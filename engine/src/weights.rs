//! The weights of a model, from whatever source holds them.
//!
//! Projections that read the same input are one matrix: queries, keys and values, and the two halves of the feed-forward
//! block. A fused operator reads all of it and an unfused one its rows, so both compute with the same bits.

use crate::{
    Config, Dtype, Error, Shard, Tensor,
    program::{Matrix, Vector},
};

mod checkpoint;
mod recipe;
mod synthetic;

pub use checkpoint::Checkpoint;
pub(crate) use recipe::{Made, Recipe, Supply};
pub(crate) use synthetic::split_mix;
pub use synthetic::{Seeded, Sequence, Synthetic};

/// Where weights come from. Names are those of Hugging Face checkpoints.
pub trait Source {
    /// Gives the rows of the matrix `name`, which must have `rows` of `width`, in order, as single precision.
    ///
    /// # Errors
    /// [`Error::Tensor`] when there is none of that name and shape, or it cannot be read.
    fn rows(&mut self, name: &str, rows: usize, width: usize, each: &mut dyn FnMut(usize, &[f32]))
    -> Result<(), Error>;

    /// How every element of the tensor `name` follows from its place, so that a device can make it where it lies; `None`
    /// where only [`Source::rows`] has it.
    fn sequence(&self, _name: &str) -> Option<Sequence> {
        None
    }

    /// Names of what it has that nobody has asked for, in order.
    fn unused(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The weights of a decoder layer, wherever matrices and vectors lie. A matrix is `(outputs, inputs)`.
#[derive(Debug)]
pub struct LayerWeights<M = Tensor, V = Vec<f32>> {
    /// Of the norm before attention, `(hidden)`.
    pub input_norm: V,
    /// Queries, keys, values, `(q_width + 2 kv_width, hidden)`.
    pub qkv: M,
    /// Their biases, `(q_width + 2 kv_width)`.
    pub qkv_bias: Option<V>,
    /// Of the norms of query and key heads, `(head_dim)` each.
    pub qk_norm: Option<[V; 2]>,
    /// Output projection of attention, `(hidden, q_width)`.
    pub o: M,
    /// Of the norm before the feed-forward block, `(hidden)`.
    pub post_norm: V,
    /// Scores of the experts, `(experts, hidden)`, of a mixture of them.
    pub router: Option<M>,
    /// Gate and up projections, `(2 intermediate, hidden)`; of a mixture those of all experts, one below the other.
    pub gate_up: M,
    /// Down projection, `(hidden, intermediate)`; of a mixture as above.
    pub down: M,
}

/// The weights of a model, wherever matrices and vectors lie.
#[derive(Debug)]
pub struct Weights<M = Tensor, V = Vec<f32>> {
    /// Fingerprint of the shape that they were loaded for.
    pub(crate) model: u64,
    /// Which part of the model they are; all sizes below are those of the part.
    pub(crate) shard: Shard,
    /// Embedding table, `(vocab, hidden)`.
    pub embed: M,
    /// Layers.
    pub layers: Vec<LayerWeights<M, V>>,
    /// Of the last norm, `(hidden)`.
    pub final_norm: V,
    /// Output head, `(vocab, hidden)`; absent where the embedding table serves.
    pub head: Option<M>,
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
        Supply::new(config, shard, dtype, source)?.load()
    }
}

impl<M, V> Weights<M, V> {
    /// The same with every matrix and every vector in another form, in the order of the model.
    pub(crate) fn map<N, W>(
        &self,
        mut matrix: impl FnMut(&M) -> Result<N, Error>,
        mut vector: impl FnMut(&V) -> Result<W, Error>,
    ) -> Result<Weights<N, W>, Error> {
        let embed = matrix(&self.embed)?;
        let mut layers = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            layers.push(LayerWeights {
                input_norm: vector(&layer.input_norm)?,
                qkv: matrix(&layer.qkv)?,
                qkv_bias: layer.qkv_bias.as_ref().map(&mut vector).transpose()?,
                qk_norm: match &layer.qk_norm {
                    Some([q, k]) => Some([vector(q)?, vector(k)?]),
                    None => None,
                },
                o: matrix(&layer.o)?,
                post_norm: vector(&layer.post_norm)?,
                router: layer.router.as_ref().map(&mut matrix).transpose()?,
                gate_up: matrix(&layer.gate_up)?,
                down: matrix(&layer.down)?,
            });
        }
        let (final_norm, head) = (vector(&self.final_norm)?, self.head.as_ref().map(&mut matrix).transpose()?);
        Ok(Weights { model: self.model, shard: self.shard, embed, layers, final_norm, head })
    }

    /// Output head, `(vocab, hidden)`.
    pub fn head(&self) -> &M {
        self.head.as_ref().unwrap_or(&self.embed)
    }

    fn layer(&self, layer: u16) -> Result<&LayerWeights<M, V>, Error> {
        let layers = self.layers.len();
        let found = self.layers.get(usize::from(layer));
        found.ok_or_else(|| Error::Request(format!("the program has a layer {layer}, the model {layers}")))
    }

    /// A matrix and its biases, if it has any.
    ///
    /// # Errors
    /// [`Error::Request`] when the model has none of that name.
    pub(crate) fn matrix(&self, matrix: Matrix) -> Result<(&M, Option<&V>), Error> {
        Ok(match matrix {
            Matrix::Head => (self.head(), None),
            Matrix::Qkv(layer) => (&self.layer(layer)?.qkv, self.layer(layer)?.qkv_bias.as_ref()),
            Matrix::O(layer) => (&self.layer(layer)?.o, None),
            Matrix::GateUp(layer) => (&self.layer(layer)?.gate_up, None),
            Matrix::Down(layer) => (&self.layer(layer)?.down, None),
            Matrix::Router(layer) => {
                let none = || Error::Request("the program routes to experts, the model does not".to_owned());
                (self.layer(layer)?.router.as_ref().ok_or_else(none)?, None)
            }
        })
    }

    /// A vector.
    ///
    /// # Errors
    /// As [`Weights::matrix`].
    pub(crate) fn vector(&self, vector: Vector) -> Result<&V, Error> {
        let of_heads = |layer: u16, which: usize| -> Result<&V, Error> {
            let norms = self.layer(layer)?.qk_norm.as_ref().and_then(|norms| norms.get(which));
            norms.ok_or_else(|| Error::Request("the program norms heads, the model does not".to_owned()))
        };
        Ok(match vector {
            Vector::InputNorm(layer) => &self.layer(layer)?.input_norm,
            Vector::PostNorm(layer) => &self.layer(layer)?.post_norm,
            Vector::FinalNorm => &self.final_norm,
            Vector::QNorm(layer) => of_heads(layer, 0)?,
            Vector::KNorm(layer) => of_heads(layer, 1)?,
        })
    }
}
