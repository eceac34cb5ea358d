//! Which tensors of a source make up each matrix and vector of a rank's part, and how they are put together: in main memory, or
//! one by one for a device, which then needs no copy of the model beside its own.

use std::{cell::RefCell, ops::Range};

use super::{LayerWeights, Sequence, Source, Weights};
use crate::{Config, Dtype, Error, Shard, Tensor};

/// What is taken of a tensor of the source.
#[derive(Debug)]
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

    fn read(&self, source: &mut dyn Source, mut each: impl FnMut(usize, &[f32])) -> Result<(), Error> {
        let (rows, width) = self.shape;
        source.rows(&self.name, rows, width, &mut |row, values| {
            if let Some(row) = row.checked_sub(self.rows.start).filter(|row| *row < self.rows.len()) {
                each(row, values.get(self.columns.clone()).unwrap_or_default());
            }
        })
    }
}

/// Pieces of one width, one below the other; those of a vector have one row each and lie one after the other.
#[derive(Debug)]
pub(crate) struct Recipe(Vec<Piece>);

impl Recipe {
    /// Rows of the matrix.
    pub(crate) fn rows(&self) -> usize {
        self.0.iter().map(|piece| piece.rows.len()).sum()
    }

    /// Elements of all pieces: those of a vector are as long as they are, each in one row.
    pub(crate) fn elements(&self) -> usize {
        self.0.iter().map(|piece| piece.rows.len() * piece.columns.len()).sum()
    }

    /// Elements of a row of the matrix.
    pub(crate) fn width(&self) -> usize {
        self.0.first().map_or(0, |piece| piece.columns.len())
    }

    /// The matrix in main memory.
    ///
    /// # Errors
    /// Those of the source, and [`Error::Request`] when memory runs out.
    pub(crate) fn matrix(&self, dtype: Dtype, source: &mut dyn Source) -> Result<Tensor, Error> {
        let mut tensor = Tensor::zeroed(dtype, self.rows(), self.width())?;
        let mut at = 0;
        for piece in &self.0 {
            piece.read(source, |row, values| tensor.set_row(at + row, values))?;
            at += piece.rows.len();
        }
        Ok(tensor)
    }

    /// The vector in main memory.
    ///
    /// # Errors
    /// Those of the source.
    pub(crate) fn vector(&self, source: &mut dyn Source) -> Result<Vec<f32>, Error> {
        let mut vector = Vec::new();
        for piece in &self.0 {
            piece.read(source, |_, values| vector.extend_from_slice(values))?;
        }
        Ok(vector)
    }

    /// The matrix as its pieces follow from their places; `None` where one of them does not.
    pub(crate) fn made(&self, source: &dyn Source) -> Option<Vec<Made>> {
        let made = |piece: &Piece| {
            let first = (piece.rows.start, piece.columns.start);
            let sequence = source.sequence(&piece.name)?;
            Some(Made { sequence, width: piece.shape.1, first, rows: piece.rows.len() })
        };
        self.0.iter().map(made).collect()
    }
}

impl Weights<Recipe, Recipe> {
    /// Of a rank's part.
    ///
    /// # Errors
    /// [`Error::Request`] when the ranks cannot have equal parts.
    pub(crate) fn of(config: &Config, shard: Shard) -> Result<Self, Error> {
        config.part(shard)?;
        let (hidden, q, kv, width) = (config.hidden, config.q_width(), config.kv_width(), config.intermediate);
        // Ranks have whole heads, of which queries have several per key.
        let heads = |width: usize| {
            let own = shard.range(width / config.head_dim);
            own.start * config.head_dim..own.end * config.head_dim
        };
        let one = |piece| Recipe(vec![piece]);
        let table = |name: &str| one(Piece::rows(name.to_owned(), config.vocab, hidden, shard.range(config.vocab)));
        let layer = |layer: usize| {
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
            let down = blocks.iter().map(|block| {
                Piece::columns(name(&format!("{block}.down_proj.weight")), hidden, width, shard.range(width))
            });
            let whole = |rest: &str, width| one(Piece::columns(name(rest), 1, width, 0..width));
            let router = || one(Piece::rows(name("mlp.gate.weight"), experts, hidden, 0..experts));
            let of_heads = |of: &str| whole(&format!("self_attn.{of}.weight"), config.head_dim);
            LayerWeights {
                input_norm: whole("input_layernorm.weight", hidden),
                qkv: Recipe(qkv.into()),
                qkv_bias: config.qkv_bias.then(|| Recipe(bias.into())),
                qk_norm: config.qk_norm.then(|| ["q_norm", "k_norm"].map(of_heads)),
                o: one(Piece::columns(name("self_attn.o_proj.weight"), hidden, q, heads(q))),
                post_norm: whole("post_attention_layernorm.weight", hidden),
                router: config.experts.is_some().then(router),
                gate_up: Recipe(gate_up.collect()),
                down: Recipe(down.collect()),
            }
        };
        Ok(Self {
            model: config.fingerprint(),
            shard,
            embed: table("model.embed_tokens.weight"),
            layers: (0..config.layers).map(layer).collect(),
            final_norm: one(Piece::columns("model.norm.weight".to_owned(), 1, hidden, 0..hidden)),
            head: (!config.tied).then(|| table("lm_head.weight")),
        })
    }
}

/// A piece of a matrix that follows from its places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Made {
    pub sequence: Sequence,
    /// Elements of a row of the whole tensor.
    pub width: usize,
    /// The first row and the first column that are taken, and how many rows are.
    pub first: (usize, usize),
    pub rows: usize,
}

/// A rank's part of a model whose numbers are still with their source.
pub(crate) struct Supply<'s> {
    pub recipes: Weights<Recipe, Recipe>,
    /// Type of the matrices.
    pub dtype: Dtype,
    pub source: &'s mut dyn Source,
}

impl<'s> Supply<'s> {
    /// # Errors
    /// [`Error::Request`] when the ranks cannot have equal parts.
    pub(crate) fn new(config: &Config, shard: Shard, dtype: Dtype, source: &'s mut dyn Source) -> Result<Self, Error> {
        Ok(Self { recipes: Weights::of(config, shard)?, dtype, source })
    }

    /// All of it in main memory.
    ///
    /// # Errors
    /// Those of the source, and [`Error::Request`] when memory runs out.
    pub(crate) fn load(self) -> Result<Weights, Error> {
        let (dtype, source) = (self.dtype, RefCell::new(self.source));
        let matrix = |recipe: &Recipe| recipe.matrix(dtype, &mut **source.borrow_mut());
        self.recipes.map(matrix, |recipe| recipe.vector(&mut **source.borrow_mut()))
    }
}
