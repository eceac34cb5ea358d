//! An operator as calls of aclnn or HCCL: which, on which tensors. Where the interface has several ways, the reason for the
//! one that is taken stands there.

#![allow(unsafe_code)]

use std::{cell::RefCell, collections::HashMap, ops::Range, rc::Rc};

use super::{
    AscendOptions,
    calls::Api,
    comm::{Comm, Exchange},
    inputs::Inputs,
    launch::{Call, Work},
    memory::{Argument, Memory, Owned, Shape, Type},
    model::{Model, no_experts},
};
use crate::{
    Config, Error,
    faults::Faults,
    kv::KvPlan,
    program::{BufId, Heads, Matrix, OpCall, OpKind, Program},
};

/// `cubeMathType` 0: products keep the type of their operands.
const KEEP_TYPE: i8 = 0;
/// Mode 0 of the rotary embedding: the halves of a head turn into each other.
const HALVES: i64 = 0;

/// What operators are lowered with.
pub(super) struct Lowering<'l> {
    pub api: &'static Api,
    pub options: &'l AscendOptions,
    pub model: &'l Model,
    /// The shape of the rank's part.
    pub config: &'l Config,
    pub plan: &'l KvPlan,
    pub program: &'l Program,
    pub buffers: &'l [Rc<Memory>],
    pub inputs: &'l Inputs,
    pub chosen: &'l Argument,
    pub comm: Option<&'l Rc<Comm>>,
    pub faults: &'l Faults,
    /// Lengths of the sequences, which the host gives attention at every step.
    pub lengths: &'l Rc<RefCell<Argument>>,
    /// The mask that stands for a causal one of any size.
    pub causal: Option<&'l Argument>,
    pub stream: &'l Owned,
    /// Memory between the calls of an operator, by what it holds; operators share it, one after the other.
    pub scratch: RefCell<HashMap<(&'static str, usize), Rc<Memory>>>,
}

/// A buffer of activations.
pub(super) struct Buffer<'l> {
    pub memory: &'l Rc<Memory>,
    pub rows: usize,
    pub width: usize,
}

/// A call with arguments that are all tensors, arrays or scalars, and then others.
macro_rules! call {
    ($own:expr, $operator:ident, [$($argument:expr),*], |$first:ident, $handles:pat_param, $ws:ident, $ex:ident| $do:expr) => {
        Work::Call(Call::new($own.api, &$own.api.operators.$operator, [$($argument),*], move |$first, $handles, $ws, $ex| {
            // SAFETY: arguments live as long as the call, and there are places for what is given back.
            unsafe { $do }
        }))
    };
}

impl Lowering<'_> {
    /// Memory, rows and width of a buffer of activations.
    pub(super) fn buffer(&self, id: BufId) -> Result<Buffer<'_>, Error> {
        let found = self.buffers.get(usize::from(id.0)).zip(self.program.buffer(id));
        let (memory, shape) =
            found.ok_or_else(|| Error::Request(format!("the program has no buffer {}; plan it anew", id.0)))?;
        Ok(Buffer { memory, rows: shape.rows, width: shape.width })
    }

    pub(super) fn dtype(&self) -> Type {
        self.model.dtype
    }

    pub(super) fn tensor(&self, memory: &Rc<Memory>, shape: &Shape) -> Result<Argument, Error> {
        self.api.tensor(memory, self.dtype(), shape)
    }

    /// A buffer as a matrix.
    fn whole(&self, id: BufId) -> Result<Argument, Error> {
        let Buffer { memory, rows, width } = self.buffer(id)?;
        self.tensor(memory, &Shape::of(&[rows, width]))
    }

    /// Columns of a buffer.
    fn columns(&self, id: BufId, columns: &Range<usize>) -> Result<Argument, Error> {
        let Buffer { memory, rows, width } = self.buffer(id)?;
        self.tensor(memory, &Shape::of(&[rows, columns.len()]).stepping(&[width, 1]).at(columns.start))
    }

    /// Heads of a buffer: (1, tokens, heads, width of a head).
    fn heads(&self, id: BufId, Heads { at, count }: Heads) -> Result<(Argument, [usize; 4]), Error> {
        let Buffer { memory, rows, width } = self.buffer(id)?;
        let dims = [1, rows, count, self.config.head_dim];
        let strides = [rows * width, width, self.config.head_dim, 1];
        Ok((self.tensor(memory, &Shape::of(&dims).stepping(&strides).at(at))?, dims))
    }

    /// Memory that holds `what` between calls.
    pub(super) fn scratch(&self, what: &'static str, bytes: usize) -> Result<Rc<Memory>, Error> {
        if let Some(known) = self.scratch.borrow().get(&(what, bytes)) {
            return Ok(Rc::clone(known));
        }
        let memory = Memory::new(self.api, bytes)?;
        self.scratch.borrow_mut().insert((what, bytes), Rc::clone(&memory));
        Ok(memory)
    }

    /// What norms leave beside their result: a number in single precision for every row of `dims`.
    fn roots(&self, dims: &[usize]) -> Result<Argument, Error> {
        let count: usize = dims.iter().product();
        self.api.tensor(&self.scratch("roots", count * 4)?, Type::F32, &Shape::of(dims))
    }

    /// The calls of an operator; none where a run suffers that it is left out.
    pub(super) fn lower(&self, op: &OpCall) -> Result<Vec<Work>, Error> {
        let (model, eps) = (self.model, f64::from(self.config.norm_eps));
        Ok(match &op.kind {
            OpKind::Embed { out } => {
                let (table, out) = (model.table()?, self.whole(*out)?);
                vec![call!(self, embedding, [&table, &self.inputs.ids, &out], |f, [t, i, o], w, e| f(t, i, o, w, e))]
            }
            OpKind::LastToken { x, out } => {
                let (x, out) = (self.whole(*x)?, self.whole(*out)?);
                vec![call!(self, index_select, [&x, &self.inputs.last, &out], |f, [x, i, o], w, e| f(x, 0, i, o, w, e))]
            }
            OpKind::RmsNorm { x, weight, out } => {
                let roots = self.roots(&[self.buffer(*x)?.rows, 1])?;
                let (x, gamma, out) = (self.whole(*x)?, model.vector(*weight)?, self.whole(*out)?);
                vec![call!(self, rms_norm, [&x, gamma, &out, &roots], |f, [x, g, o, r], w, e| f(x, g, eps, o, r, w, e))]
            }
            OpKind::AddRmsNorm { x, delta, weight, out } => {
                let roots = self.roots(&[self.buffer(*x)?.rows, 1])?;
                // The sum goes where the first summand is: every row is read before its sum is written.
                let (x, delta, out) = (self.whole(*x)?, self.whole(*delta)?, self.whole(*out)?);
                let gamma = model.vector(*weight)?;
                vec![call!(self, add_rms_norm, [&x, &delta, gamma, &out, &roots, &x], |f, [x, d, g, o, r, s], w, e| {
                    f(x, d, g, eps, o, r, s, w, e)
                })]
            }
            OpKind::HeadNorm { x, heads, weight } => {
                let (x, dims) = self.heads(*x, *heads)?;
                let (roots, gamma) = (self.roots(&[dims[0], dims[1], dims[2], 1])?, model.vector(*weight)?);
                vec![call!(self, rms_norm, [&x, gamma, &x, &roots], |f, [x, g, o, r], w, e| f(x, g, eps, o, r, w, e))]
            }
            OpKind::Linear { x, matrix, rows, out } => self.linear(*x, *matrix, rows, *out)?,
            OpKind::Rope { x, heads } => self.rope(*x, *heads)?,
            OpKind::KvAppend { layer, .. }
                if self.faults.numeric.stale_kv == Some(*layer)
                    && self.program.shape.tokens == self.program.shape.sequences =>
            {
                Vec::new()
            }
            OpKind::KvAppend { qkv, layer } => {
                let (q, kv) = (self.config.q_width(), self.config.kv_width());
                let places = self.plan.elements() / kv.max(1);
                let mut work = Vec::new();
                for (memory, at) in model.cache(*layer)?.iter().zip([q, q + kv]) {
                    let cache = self.tensor(memory, &Shape::of(&[places, kv]))?;
                    let new = self.columns(*qkv, &(at..at + kv))?;
                    work.push(call!(self, index_copy, [&cache, &self.inputs.slots, &new], |f, [c, s, n], w, e| {
                        f(c, 0, s, n, w, e)
                    }));
                }
                work
            }
            OpKind::Attention { qkv, layer, out } => self.attention(*qkv, *layer, *out)?,
            OpKind::Add { x, delta } => {
                let (x, delta, one) = (self.whole(*x)?, self.whole(*delta)?, self.api.scalar(1.0)?);
                vec![call!(self, inplace_add, [&x, &delta, &one], |f, [x, d, a], w, e| f(x, d, a, w, e))]
            }
            OpKind::SiluMul { gate_up, out } => {
                let (x, out) = (self.whole(*gate_up)?, self.whole(*out)?);
                vec![call!(self, swiglu, [&x, &out], |f, [x, o], w, e| f(x, -1, o, w, e))]
            }
            OpKind::Silu { gate_up, out } => {
                let width = self.buffer(*out)?.width;
                let (gate, out) = (self.columns(*gate_up, &(0..width))?, self.whole(*out)?);
                vec![call!(self, silu, [&gate, &out], |f, [x, o], w, e| f(x, o, w, e))]
            }
            OpKind::MulUp { gate_up, out } => {
                let width = self.buffer(*out)?.width;
                let (up, out) = (self.columns(*gate_up, &(width..2 * width))?, self.whole(*out)?);
                vec![call!(self, inplace_mul, [&out, &up], |f, [o, x], w, e| f(o, x, w, e))]
            }
            OpKind::Square { x, out } => {
                let (x, out) = (self.whole(*x)?, self.whole(*out)?);
                vec![call!(self, mul, [&x, &x, &out], |f, [a, b, o], w, e| f(a, b, o, w, e))]
            }
            OpKind::Mean { x, out } => {
                let (x, out, last) = (self.whole(*x)?, self.whole(*out)?, self.api.ints(&[-1])?);
                let dtype = self.dtype() as i32;
                vec![call!(self, mean, [&x, &last, &out], |f, [x, l, o], w, e| f(x, l, true, dtype, o, w, e))]
            }
            OpKind::Rsqrt { x } => {
                let (x, small, one) = (self.whole(*x)?, self.api.scalar(self.config.norm_eps)?, self.api.scalar(1.0)?);
                vec![
                    call!(self, inplace_adds, [&x, &small, &one], |f, [x, s, a], w, e| f(x, s, a, w, e)),
                    call!(self, inplace_rsqrt, [&x], |f, [x], w, e| f(x, w, e)),
                ]
            }
            OpKind::ScaleRows { x, by, out } => {
                let (x, by, out) = (self.whole(*x)?, self.whole(*by)?, self.whole(*out)?);
                vec![call!(self, mul, [&x, &by, &out], |f, [x, b, o], w, e| f(x, b, o, w, e))]
            }
            OpKind::ScaleColumns { x, weight } => {
                let (x, weight) = (self.whole(*x)?, model.vector(*weight)?);
                vec![call!(self, inplace_mul, [&x, weight], |f, [x, b], w, e| f(x, b, w, e))]
            }
            OpKind::Transpose { x, out } => {
                let Buffer { memory, rows, width } = self.buffer(*x)?;
                let turned = self.tensor(memory, &Shape::of(&[width, rows]).stepping(&[1, width]))?;
                vec![self.copy(&self.whole(*out)?, &turned)]
            }
            OpKind::Argmax { logits } => {
                let x = self.whole(*logits)?;
                vec![call!(self, argmax, [&x, self.chosen], |f, [x, o], w, e| f(x, -1, false, o, w, e))]
            }
            OpKind::Route { .. } | OpKind::ExpertLinear { .. } | OpKind::Combine { .. } => return Err(no_experts()),
            OpKind::AllReduce { x } => {
                let Buffer { memory, rows, width } = self.buffer(*x)?;
                vec![self.exchange(memory, rows * width, None)?]
            }
            OpKind::AllGather { part, out } => self.all_gather(*part, *out)?,
        })
    }

    /// to = from.
    pub(super) fn copy(&self, to: &Argument, from: &Argument) -> Work {
        call!(self, inplace_copy, [to, from], |f, [t, x], w, e| f(t, x, w, e))
    }

    fn linear(&self, x: BufId, matrix: Matrix, rows: &Range<usize>, out: BufId) -> Result<Vec<Work>, Error> {
        let (weight, bias, in_squares) = self.model.weight(matrix, rows, self.stream)?;
        let (x, out) = (self.whole(x)?, self.columns(out, rows)?);
        let product = match (in_squares, &self.api.nz) {
            (true, Ok((operators, _))) => {
                Work::Call(Call::new(self.api, &operators.matmul, [&x, &weight, &out], |f, [x, m, o], w, e| {
                    // SAFETY: arguments live as long as the call, and there are places for what is given back.
                    unsafe { f(x, m, o, KEEP_TYPE, w, e) }
                }))
            }
            _ => call!(self, matmul, [&x, &weight, &out], |f, [x, m, o], w, e| f(x, m, o, KEEP_TYPE, w, e)),
        };
        let mut work = vec![product];
        if let Some(bias) = bias {
            // The product of weights in NZ takes no bias, so neither does the other: both are the same two calls.
            let one = self.api.scalar(1.0)?;
            work.push(call!(self, inplace_add, [&out, &bias, &one], |f, [o, b, a], w, e| f(o, b, a, w, e)));
        }
        Ok(work)
    }

    /// The documentation does not say that queries may be turned in place, so they are copied back.
    fn rope(&self, x: BufId, heads: Heads) -> Result<Vec<Work>, Error> {
        let (x, dims) = self.heads(x, heads)?;
        let turned = self.scratch("turned", dims.iter().product::<usize>() * self.dtype().size())?;
        let turned = self.tensor(&turned, &Shape::of(&dims))?;
        let Inputs { cos, sin, .. } = self.inputs;
        let turn = call!(self, rotary, [&x, cos, sin, &turned], |f, [x, c, s, o], w, e| f(x, c, s, HALVES, o, w, e));
        Ok(vec![turn, self.copy(&x, &turned)])
    }

    fn exchange(&self, part: &Rc<Memory>, count: usize, gathered: Option<Rc<Memory>>) -> Result<Work, Error> {
        let alone = || Error::Request("the program exchanges with other ranks, and there are none".to_owned());
        let comm = Rc::clone(self.comm.ok_or_else(alone)?);
        Ok(Work::Exchange(Exchange { comm, dtype: self.dtype(), part: Rc::clone(part), count, gathered }))
    }

    /// Parts come one after the other, and lie side by side in the result.
    fn all_gather(&self, part: BufId, out: BufId) -> Result<Vec<Work>, Error> {
        let (Buffer { memory, rows, width }, all) = (self.buffer(part)?, self.buffer(out)?);
        let ranks = self.comm.map_or(1, |comm| comm.count);
        if width * ranks != all.width {
            return Err(Error::Request(format!(
                "a vocabulary of {} cannot be gathered from equal parts of {ranks} ranks; choose a divisor",
                all.width
            )));
        }
        let gathered = self.scratch("gathered", rows * all.width * self.dtype().size())?;
        let shape = Shape::of(&[rows, ranks, width]).stepping(&[width, rows * width, 1]);
        let (from, to) = (self.tensor(&gathered, &shape)?, self.tensor(all.memory, &Shape::of(&[rows, ranks, width]))?);
        Ok(vec![self.exchange(memory, rows * width, Some(gathered))?, self.copy(&to, &from)])
    }
}
