//! The weights and the cache of a model in the memory of a device.

use super::{driver::Address, memory::Memory, queue::Queue};
use crate::{
    Error, LayerWeights, Tensor, Weights,
    kv::KvPlan,
    program::{self, Vector},
};

/// A matrix as it lies in main memory, row by row.
pub(super) struct Matrix {
    memory: Memory<u8>,
    /// Elements of a row.
    pub width: usize,
    /// Bytes of a row.
    pub stride: usize,
}

impl Matrix {
    pub(super) fn address(&self) -> Address {
        self.memory.address()
    }
}

struct Layer {
    input_norm: Memory<f32>,
    qkv: Matrix,
    qkv_bias: Option<Memory<f32>>,
    qk_norm: Option<[Memory<f32>; 2]>,
    o: Matrix,
    post_norm: Memory<f32>,
    gate_up: Matrix,
    down: Matrix,
    /// Keys, and values.
    cache: [Memory<f32>; 2],
}

/// The weights and the cache.
pub(super) struct Model {
    /// Embedding table.
    pub embed: Matrix,
    head: Option<Matrix>,
    final_norm: Memory<f32>,
    layers: Vec<Layer>,
    /// Blocks of the cache by sequence.
    pub table: Memory<u32>,
}

impl Model {
    /// Copies the weights to the device and makes an empty cache there.
    pub(super) fn load(queue: &Queue, weights: &Weights, plan: &KvPlan) -> Result<Self, Error> {
        let matrix = |tensor: &Tensor| -> Result<Matrix, Error> {
            let (width, stride) = (tensor.width, tensor.dtype.row_bytes(tensor.width));
            Ok(Matrix { memory: Memory::of(queue, tensor.raw())?, width, stride })
        };
        let vector = |values: &[f32]| Memory::of(queue, values);
        let cache = || Memory::zeroed(queue, plan.elements());
        let layer = |layer: &LayerWeights| -> Result<Layer, Error> {
            Ok(Layer {
                input_norm: vector(&layer.input_norm)?,
                qkv: matrix(&layer.qkv)?,
                qkv_bias: layer.qkv_bias.as_deref().map(vector).transpose()?,
                qk_norm: match &layer.qk_norm {
                    Some([q, k]) => Some([vector(q)?, vector(k)?]),
                    None => None,
                },
                o: matrix(&layer.o)?,
                post_norm: vector(&layer.post_norm)?,
                gate_up: matrix(&layer.gate_up)?,
                down: matrix(&layer.down)?,
                cache: [cache()?, cache()?],
            })
        };
        Ok(Self {
            embed: matrix(&weights.embed)?,
            head: weights.head.as_ref().map(matrix).transpose()?,
            final_norm: vector(&weights.final_norm)?,
            layers: weights.layers.iter().map(layer).collect::<Result<_, _>>()?,
            table: Memory::of(queue, plan.table())?,
        })
    }

    fn layer(&self, layer: u16) -> Result<&Layer, Error> {
        let layers = self.layers.len();
        self.layers
            .get(usize::from(layer))
            .ok_or_else(|| Error::Request(format!("the program has a layer {layer}, the model {layers}")))
    }

    /// A matrix and its biases, if it has any.
    pub(super) fn matrix(&self, matrix: program::Matrix) -> Result<(&Matrix, Option<Address>), Error> {
        Ok(match matrix {
            program::Matrix::Head => (self.head.as_ref().unwrap_or(&self.embed), None),
            program::Matrix::Qkv(l) => {
                let layer = self.layer(l)?;
                (&layer.qkv, layer.qkv_bias.as_ref().map(Memory::address))
            }
            program::Matrix::O(l) => (&self.layer(l)?.o, None),
            program::Matrix::GateUp(l) => (&self.layer(l)?.gate_up, None),
            program::Matrix::Down(l) => (&self.layer(l)?.down, None),
            program::Matrix::Router(_) => return Err(no_experts()),
        })
    }

    /// A vector.
    pub(super) fn vector(&self, vector: Vector) -> Result<Address, Error> {
        let of_heads = |l: u16, which: usize| -> Result<Address, Error> {
            let norms = self.layer(l)?.qk_norm.as_ref().and_then(|norms| norms.get(which));
            let none = || Error::Request("the program norms heads, the model does not".to_owned());
            norms.map(Memory::address).ok_or_else(none)
        };
        Ok(match vector {
            Vector::InputNorm(l) => self.layer(l)?.input_norm.address(),
            Vector::PostNorm(l) => self.layer(l)?.post_norm.address(),
            Vector::FinalNorm => self.final_norm.address(),
            Vector::QNorm(l) => of_heads(l, 0)?,
            Vector::KNorm(l) => of_heads(l, 1)?,
        })
    }

    /// Keys and values of a layer.
    pub(super) fn cache(&self, layer: u16) -> Result<[Address; 2], Error> {
        let [keys, values] = &self.layer(layer)?.cache;
        Ok([keys.address(), values.address()])
    }
}

/// Why a model of experts does not run.
pub(super) fn no_experts() -> Error {
    let what = "it has no kernels for a mixture of experts; run --backend cpu".to_owned();
    Error::Unavailable { backend: "cuda", what }
}
