//! The weights and the cache of a model in the memory of a device.

#![allow(unsafe_code)]

use std::{cell::RefCell, collections::HashMap, ops::Range, rc::Rc};

use super::{
    calls::Api,
    launch::Call,
    memory::{Argument, Memory, NZ, Owned, Shape, Type},
    refused,
};
use crate::{
    Error, LayerWeights, Tensor, Weights,
    kv::KvPlan,
    program::{self, Vector},
};

/// `additionalDtype` that names none.
const TYPE_OF_ITS_OWN: i32 = -1;

/// Weights in NZ, by matrix and rows.
type Squares = HashMap<(program::Matrix, Range<usize>), Argument>;

/// A matrix as it lies in main memory, row by row.
struct Matrix {
    memory: Rc<Memory>,
    /// Rows.
    rows: usize,
    /// Elements of a row.
    width: usize,
}

struct Layer {
    input_norm: Argument,
    qkv: Matrix,
    qkv_bias: Option<Rc<Memory>>,
    qk_norm: Option<[Argument; 2]>,
    o: Matrix,
    post_norm: Argument,
    gate_up: Matrix,
    down: Matrix,
    /// Keys, and values: places, each with all heads side by side.
    cache: [Rc<Memory>; 2],
}

/// The weights and the cache.
pub(super) struct Model {
    api: &'static Api,
    /// Type of weights and activations.
    pub dtype: Type,
    /// The embedding table, with a row of zeros at its end for tokens of another rank.
    embed: Matrix,
    head: Option<Matrix>,
    final_norm: Argument,
    layers: Vec<Layer>,
    /// Blocks of the cache by sequence.
    pub table: Argument,
    /// Weights that were laid out in NZ; absent where they stay as they are.
    squares: Option<RefCell<Squares>>,
}

impl Model {
    /// Copies the weights to the device and makes an empty cache there.
    pub(super) fn load(api: &'static Api, weights: &Weights, plan: &KvPlan, nz: bool) -> Result<Self, Error> {
        let dtype = Type::of(weights.embed.dtype)?;
        if weights.layers.iter().any(|layer| layer.router.is_some()) {
            return Err(no_experts());
        }
        let matrix = |tensor: &Tensor| -> Result<Matrix, Error> {
            Ok(Matrix { memory: Memory::of(api, tensor.raw())?, rows: tensor.rows, width: tensor.width })
        };
        let memory = |values: &[f32]| {
            let mut bytes = Vec::new();
            dtype.bytes(values, &mut bytes);
            Memory::of(api, &bytes)
        };
        let vector = |values: &[f32]| api.tensor(&memory(values)?, dtype, &Shape::of(&[values.len()]));
        let cache = || Memory::zeroed(api, plan.elements() * dtype.size());
        let layer = |layer: &LayerWeights| -> Result<Layer, Error> {
            Ok(Layer {
                input_norm: vector(&layer.input_norm)?,
                qkv: matrix(&layer.qkv)?,
                qkv_bias: layer.qkv_bias.as_deref().map(memory).transpose()?,
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
        let (rows, width) = (weights.embed.rows, weights.embed.width);
        let table = Memory::zeroed(api, (rows + 1) * width * dtype.size())?;
        table.set(0, weights.embed.raw())?;
        let blocks: Vec<u8> = plan.table().iter().flat_map(|block| block.to_ne_bytes()).collect();
        let each = plan.table().len() / plan.sequences.max(1);
        Ok(Self {
            api,
            dtype,
            embed: Matrix { memory: table, rows, width },
            head: weights.head.as_ref().map(matrix).transpose()?,
            final_norm: vector(&weights.final_norm)?,
            layers: weights.layers.iter().map(layer).collect::<Result<_, _>>()?,
            table: api.tensor(&Memory::of(api, &blocks)?, Type::I32, &Shape::of(&[plan.sequences, each]))?,
            squares: nz.then(RefCell::default),
        })
    }

    fn layer(&self, layer: u16) -> Result<&Layer, Error> {
        let layers = self.layers.len();
        let found = self.layers.get(usize::from(layer));
        found.ok_or_else(|| Error::Request(format!("the program has a layer {layer}, the model {layers}")))
    }

    /// The embedding table.
    pub(super) fn table(&self) -> Result<Argument, Error> {
        let Matrix { memory, rows, width } = &self.embed;
        self.api.tensor(memory, self.dtype, &Shape::of(&[rows + 1, *width]))
    }

    /// Rows of a matrix as the right side of a product, and their biases, if it has any; whether they lie in NZ.
    pub(super) fn weight(
        &self,
        matrix: program::Matrix,
        rows: &Range<usize>,
        stream: &Owned,
    ) -> Result<(Argument, Option<Argument>, bool), Error> {
        let (own, bias) = match matrix {
            program::Matrix::Head => (self.head.as_ref().unwrap_or(&self.embed), None),
            program::Matrix::Qkv(l) => (&self.layer(l)?.qkv, self.layer(l)?.qkv_bias.as_ref()),
            program::Matrix::O(l) => (&self.layer(l)?.o, None),
            program::Matrix::GateUp(l) => (&self.layer(l)?.gate_up, None),
            program::Matrix::Down(l) => (&self.layer(l)?.down, None),
            program::Matrix::Router(_) => return Err(no_experts()),
        };
        if rows.end > own.rows {
            return Err(Error::Request(format!("the program has rows {rows:?} of a matrix of {}", own.rows)));
        }
        // Rows of the matrix are columns of the product's right side.
        let turned = Shape::of(&[own.width, rows.len()]).stepping(&[1, own.width]);
        let tensor = match &self.squares {
            None => self.api.tensor(&own.memory, self.dtype, &turned.at(rows.start * own.width))?,
            Some(squares) => {
                let key = (matrix, rows.clone());
                let known = squares.borrow().get(&key).cloned();
                match known {
                    Some(known) => known,
                    None => {
                        let made = self.squared(own, rows, &turned, stream)?;
                        squares.borrow_mut().insert(key, Rc::clone(&made));
                        made
                    }
                }
            }
        };
        let part = |bias: &Rc<Memory>| self.api.tensor(bias, self.dtype, &Shape::of(&[rows.len()]).at(rows.start));
        Ok((tensor, bias.map(part).transpose()?, self.squares.is_some()))
    }

    /// A copy of rows in NZ, as the right side of a product. The rows stay where they are as well: another program may need
    /// others of them.
    fn squared(&self, own: &Matrix, rows: &Range<usize>, turned: &Shape, stream: &Owned) -> Result<Argument, Error> {
        let missing = |what: &String| Error::Unavailable { backend: "ascend", what: what.clone() };
        let (operators, shape) = self.api.nz.as_ref().map_err(missing)?;
        if self.dtype == Type::F32 {
            let what = "weights in NZ are of 16 bits; use --dtype bf16 or f16, or leave --nz out".to_owned();
            return Err(Error::Unavailable { backend: "ascend", what });
        }
        // As it is multiplied, not as it lies: the documentation turns no tensor after it was laid out.
        let plain = Shape::of(&[own.width, rows.len()]);
        let straight = Memory::new(self.api, own.width.saturating_mul(rows.len()).saturating_mul(self.dtype.size()))?;
        let from = self.api.tensor(&straight, self.dtype, &plain)?;
        let lying = self.api.tensor(&own.memory, self.dtype, &turned.clone().at(rows.start * own.width))?;
        let copy = &self.api.operators.inplace_copy;
        let copy = Call::new(self.api, copy, [&from, &lying], |first, [to, from], workspace, executor| {
            // SAFETY: tensors that live as long as the call, and places for what is given back.
            unsafe { first(to, from, workspace, executor) }
        });
        self.at_once(&copy, "turn a weight", stream)?;
        let (mut dims, mut count, mut format) = (std::ptr::null_mut(), 0u64, 0i32);
        let mut ask = |squares_of: i32| {
            // SAFETY: a tensor, and places for what is given back.
            unsafe { (shape.of)(from.handle, NZ, squares_of, &raw mut dims, &raw mut count, &raw mut format) }
        };
        // The Atlas A2 and A3 take no type for the squares, later devices must be told one.
        let status = Some(ask(TYPE_OF_ITS_OWN)).filter(|status| *status == 0).unwrap_or_else(|| ask(self.dtype as i32));
        self.api.check("ask for the shape of a weight in NZ", status)?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if dims.is_null() || !(1..=8).contains(&count) {
            return Err(refused(
                "lay a weight out in NZ",
                &format!("it is said to have {count} dimensions, which cannot be"),
            ));
        }
        // SAFETY: the library says that so many are there. They stay: it was C++ that made them, whose own call alone may give
        // them back, and they are some tens of bytes for a weight.
        let storage = unsafe { std::slice::from_raw_parts(dims, count) }.to_vec();
        let elements = storage.iter().map(|dim| usize::try_from(*dim).unwrap_or(usize::MAX));
        let bytes = elements.fold(self.dtype.size(), usize::saturating_mul);
        let memory = Memory::new(self.api, bytes)?;
        let to = self.api.formatted(&memory, self.dtype, &plain, (format, &storage))?;
        let call = Call::new(self.api, &operators.layout, [&from, &to], |first, [from, to], workspace, executor| {
            // SAFETY: tensors that live as long as the call, and places for what is given back.
            unsafe { first(from, to, workspace, executor) }
        });
        self.at_once(&call, "lay a weight out in NZ", stream)?;
        Ok(to)
    }

    /// Makes a call and waits for it.
    fn at_once(&self, call: &Call, doing: &str, stream: &Owned) -> Result<(), Error> {
        let ready = call.ready()?;
        let workspace = Memory::new(self.api, ready.workspace)?;
        call.launch(ready, &workspace, stream.handle)?;
        // SAFETY: a stream of ours.
        self.api.check(doing, unsafe { (self.api.runtime.synchronize)(stream.handle) })
    }

    /// A vector.
    pub(super) fn vector(&self, vector: Vector) -> Result<&Argument, Error> {
        let of_heads = |l: u16, which: usize| -> Result<&Argument, Error> {
            let norms = self.layer(l)?.qk_norm.as_ref().and_then(|norms| norms.get(which));
            norms.ok_or_else(|| Error::Request("the program norms heads, the model does not".to_owned()))
        };
        Ok(match vector {
            Vector::InputNorm(l) => &self.layer(l)?.input_norm,
            Vector::PostNorm(l) => &self.layer(l)?.post_norm,
            Vector::FinalNorm => &self.final_norm,
            Vector::QNorm(l) => of_heads(l, 0)?,
            Vector::KNorm(l) => of_heads(l, 1)?,
        })
    }

    /// Keys and values of a layer.
    pub(super) fn cache(&self, layer: u16) -> Result<&[Rc<Memory>; 2], Error> {
        Ok(&self.layer(layer)?.cache)
    }
}

/// Why a model of experts does not run.
pub(super) fn no_experts() -> Error {
    let what = "mixtures of experts are not lowered to its operators yet; run --backend cpu".to_owned();
    Error::Unavailable { backend: "ascend", what }
}
