//! An operator as one kernel, or as commands of the vendor's libraries: which, on which memory, by how many threads.

use std::rc::Rc;

use super::{
    cublaslt::{CublasLt, Factors, Product},
    inputs::Inputs,
    launch::{Arguments, Blocks, WARP},
    memory::Memory,
    nccl::{Comm, Exchange},
    platform::Address,
    queue::Queue,
    source::Source,
    takes,
    work::{Command, Work},
};
use crate::{
    Config, Dtype, Error,
    device_model::Model,
    faults::Faults,
    kv::KvPlan,
    program::{BufId, Heads, Matrix, OpCall, OpKind, Program},
};

/// Flags of `linear.cu`.
pub(super) const BIAS: u32 = 1;
pub(super) const SPOIL: u32 = 2;
/// Threads that look for the greatest of a row of logits.
pub(super) const ARGMAX: usize = 1024;
/// Threads of `strato_attention`, and the largest head that it has room for.
pub(super) const ATTENTION: usize = 8 * WARP;
pub(super) const MOST_HEAD: usize = 256;

/// What operators are lowered with.
pub(super) struct Lowering<'l> {
    pub source: &'l Source,
    pub model: &'l Model<Queue>,
    /// The shape of this rank's part of the model, and the first token whose row of the embedding table it has.
    pub config: &'l Config,
    pub first_token: usize,
    /// The vendor's products, of runs that ask for them.
    pub products: Option<&'l Rc<CublasLt>>,
    /// The other ranks, where there are any.
    pub comm: Option<&'l Rc<Comm>>,
    pub dtype: Dtype,
    pub plan: &'l KvPlan,
    pub program: &'l Program,
    pub buffers: &'l [Memory<f32>],
    pub inputs: &'l Inputs,
    pub chosen: Address,
    /// Memory between the commands of an operator, as much as [`scratch`] says.
    pub scratch: Address,
    pub faults: &'l Faults,
}

/// Bytes between the commands of an operator that has several.
pub(super) fn scratch(program: &Program, products: bool, dtype: Dtype) -> usize {
    let elements = |id: &BufId| program.buffer(*id).map_or(0, |buffer| buffer.rows.saturating_mul(buffer.width));
    let bytes = |op: &OpCall| match &op.kind {
        OpKind::Linear { x, .. } if products && dtype != Dtype::F32 => elements(x).saturating_mul(2),
        OpKind::AllGather { out, .. } => elements(out).saturating_mul(4),
        _ => 0,
    };
    program.ops.iter().map(bytes).max().unwrap_or(0)
}

impl<'l> Lowering<'l> {
    /// Memory, rows and width of a buffer of activations.
    fn buffer(&self, id: BufId) -> Result<(Address, usize, usize), Error> {
        let found = self.buffers.get(usize::from(id.0)).zip(self.program.buffer(id));
        let (memory, shape) =
            found.ok_or_else(|| Error::Request(format!("the program has no buffer {}; plan it anew", id.0)))?;
        Ok((memory.address(), shape.rows, shape.width))
    }

    fn start(&self, kernel: &'l str, blocks: Blocks) -> Arguments<'l> {
        Arguments::of(self.source, kernel, blocks)
    }

    /// A kernel of which there is one for every type of weights.
    fn start_weighted(&self, kernel: &str, blocks: Blocks) -> Arguments<'l> {
        Arguments::of(self.source, format!("{kernel}_{}", self.dtype.name()), blocks)
    }

    /// The commands of an operator; `None` where a run suffers that it is left out.
    pub(super) fn lower(&self, op: &OpCall) -> Result<Option<Work>, Error> {
        let (model, inputs, eps) = (self.model, self.inputs.address(), self.config.norm_eps);
        let (tokens, head_dim) = (self.program.shape.tokens, self.config.head_dim);
        let arguments = match &op.kind {
            OpKind::Embed { out } => {
                let (out, rows, width) = self.buffer(*out)?;
                let table = model.embed();
                let start = self.start_weighted("strato_embed", Blocks::elements(rows, width));
                start.memory(&[table.handle(), inputs, out]).sizes(&[
                    table.width,
                    table.stride,
                    self.first_token,
                    table.rows,
                ])
            }
            OpKind::LastToken { x, out } => {
                let ((x, ..), (out, rows, width)) = (self.buffer(*x)?, self.buffer(*out)?);
                let start = self.start("strato_last_token", Blocks::elements(rows, width));
                start.memory(&[x, inputs, out]).sizes(&[width, tokens])
            }
            OpKind::RmsNorm { x, weight, out } => {
                let ((x, rows, width), (out, ..)) = (self.buffer(*x)?, self.buffer(*out)?);
                let start = self.start("strato_rms_norm", Blocks::rows([rows, 1], width));
                start.memory(&[x, model.vector(*weight)?, out]).sizes(&[width]).real(eps)
            }
            OpKind::AddRmsNorm { x, delta, weight, out } => {
                let ((x, rows, width), (delta, ..), (out, ..)) =
                    (self.buffer(*x)?, self.buffer(*delta)?, self.buffer(*out)?);
                let start = self.start("strato_add_rms_norm", Blocks::rows([rows, 1], width));
                start.memory(&[x, delta, model.vector(*weight)?, out]).sizes(&[width]).real(eps)
            }
            OpKind::HeadNorm { x, heads: Heads { at, count }, weight } => {
                let (x, rows, width) = self.buffer(*x)?;
                let start = self.start("strato_head_norm", Blocks::rows([rows, *count], head_dim));
                start.memory(&[x, model.vector(*weight)?]).sizes(&[width, *at, head_dim]).real(eps)
            }
            OpKind::Mean { x, out } => {
                let ((x, rows, width), (out, ..)) = (self.buffer(*x)?, self.buffer(*out)?);
                self.start("strato_mean", Blocks::rows([rows, 1], width)).memory(&[x, out]).sizes(&[width])
            }
            OpKind::Linear { x, matrix, rows, out } => return self.linear(*x, *matrix, rows.clone(), *out).map(Some),
            OpKind::Rope { x, heads: Heads { at, count } } => {
                let (x, rows, width) = self.buffer(*x)?;
                let start = self.start("strato_rope", Blocks::elements(rows, count * (head_dim / 2)));
                start.memory(&[x, inputs]).sizes(&[self.inputs.turns_at(), width, *at, *count, head_dim])
            }
            OpKind::KvAppend { layer, .. }
                if self.faults.numeric.stale_kv == Some(*layer) && tokens == self.program.shape.sequences =>
            {
                return Ok(None);
            }
            OpKind::KvAppend { qkv, layer } => {
                let (qkv, rows, width) = self.buffer(*qkv)?;
                let [keys, values] = model.cache(*layer)?;
                let start = self.start("strato_kv_append", Blocks::elements(rows, self.config.kv_width()));
                let sizes = [self.config.kv_heads, head_dim, width, self.config.q_width(), tokens];
                let start = start.memory(&[qkv, keys, values, inputs, model.table()]);
                start.sizes(&[self.blocks(), self.plan.block]).sizes(&sizes)
            }
            OpKind::Attention { qkv, layer, out } => self.attention(*qkv, *layer, *out)?,
            OpKind::Add { x, delta } => {
                let ((x, rows, width), (delta, ..)) = (self.buffer(*x)?, self.buffer(*delta)?);
                self.start("strato_add", Blocks::elements(rows, width)).memory(&[x, delta]).sizes(&[width])
            }
            OpKind::Square { x, out } => self.by_element("strato_square", *x, *out)?,
            OpKind::SiluMul { gate_up, out } => self.by_element("strato_silu_mul", *gate_up, *out)?,
            OpKind::Silu { gate_up, out } => self.by_element("strato_silu", *gate_up, *out)?,
            OpKind::MulUp { gate_up, out } => self.by_element("strato_mul_up", *gate_up, *out)?,
            OpKind::Rsqrt { x } => {
                let (x, rows, width) = self.buffer(*x)?;
                self.start("strato_reciprocal_root", Blocks::elements(rows, width))
                    .memory(&[x])
                    .sizes(&[width])
                    .real(eps)
            }
            OpKind::ScaleRows { x, by, out } => {
                let ((x, ..), (by, ..), (out, rows, width)) = (self.buffer(*x)?, self.buffer(*by)?, self.buffer(*out)?);
                self.start("strato_scale_rows", Blocks::elements(rows, width)).memory(&[x, by, out]).sizes(&[width])
            }
            OpKind::ScaleColumns { x, weight } => {
                let (x, rows, width) = self.buffer(*x)?;
                let start = self.start("strato_scale_columns", Blocks::elements(rows, width));
                start.memory(&[x, model.vector(*weight)?]).sizes(&[width])
            }
            OpKind::Transpose { x, out } => {
                let ((x, rows, width), (out, ..)) = (self.buffer(*x)?, self.buffer(*out)?);
                self.start("strato_transpose", Blocks::elements(width, rows)).memory(&[x, out]).sizes(&[rows, width])
            }
            OpKind::Argmax { logits } => {
                let (logits, rows, width) = self.buffer(*logits)?;
                let blocks = Blocks { grid: [rows, 1], threads: ARGMAX };
                self.start("strato_argmax", blocks).memory(&[logits, self.chosen]).sizes(&[width])
            }
            OpKind::Route { .. } | OpKind::ExpertLinear { .. } | OpKind::Combine { .. } => {
                return Err(Model::<Queue>::no_experts());
            }
            OpKind::AllReduce { x } => return self.all_reduce(*x).map(Some),
            OpKind::AllGather { part, out } => return self.all_gather(*part, *out).map(Some),
        };
        Ok(Some(arguments.launch()?.into()))
    }

    fn blocks(&self) -> usize {
        self.plan.context.div_ceil(self.plan.block)
    }

    /// An operator whose result has an element for each of its own.
    fn by_element(&self, kernel: &'l str, x: BufId, out: BufId) -> Result<Arguments<'l>, Error> {
        let ((x, ..), (out, rows, width)) = (self.buffer(x)?, self.buffer(out)?);
        Ok(self.start(kernel, Blocks::elements(rows, width)).memory(&[x, out]).sizes(&[width]))
    }

    fn attention(&self, qkv: BufId, layer: u16, out: BufId) -> Result<Arguments<'l>, Error> {
        let ((qkv, rows, width), (out, ..)) = (self.buffer(qkv)?, self.buffer(out)?);
        let [keys, values] = self.model.cache(layer)?;
        let (heads, kv_heads, head_dim) = (self.config.heads, self.config.kv_heads, self.config.head_dim);
        if head_dim > MOST_HEAD {
            return Err(Error::Request(format!(
                "heads of {head_dim} elements are larger than the {MOST_HEAD} of the CUDA kernel; run --backend cpu"
            )));
        }
        let start = self.start("strato_attention", Blocks { grid: [rows, heads], threads: ATTENTION });
        let start = start.memory(&[qkv, keys, values, out, self.inputs.address(), self.model.table()]);
        let sizes = [heads, kv_heads, head_dim, width, self.program.shape.tokens];
        Ok(start.sizes(&[self.blocks(), self.plan.block]).sizes(&sizes))
    }

    fn linear(&self, x: BufId, matrix: Matrix, rows: std::ops::Range<usize>, out: BufId) -> Result<Work, Error> {
        let ((x, tokens, width), (out, _, out_width)) = (self.buffer(x)?, self.buffer(out)?);
        let (weights, bias) = self.model.matrix(matrix)?;
        if let Some(library) = self.products.filter(|_| takes(self.dtype, tokens)) {
            let behind = |address: Address, bytes: usize| address + (rows.start * bytes) as u64;
            let factors = Factors {
                dtype: self.dtype,
                weights: behind(weights.handle(), weights.stride),
                bias: bias.map(|bias| behind(bias, size_of::<f32>())),
                x: if self.dtype == Dtype::F32 { x } else { self.scratch },
                out: behind(out, size_of::<f32>()),
                rows: rows.len(),
                width,
                tokens,
                out_width,
            };
            let mut work = Vec::new();
            if self.dtype != Dtype::F32 {
                let cast = self.start_weighted("strato_cast", Blocks::elements(tokens, width));
                work.push(Command::Kernel(cast.memory(&[x, self.scratch]).sizes(&[width]).launch()?));
            }
            work.push(Command::Product(Product::new(library, factors)?));
            return Ok(Work(work));
        }
        let is_spoilt = matches!(matrix, Matrix::Down(layer) if self.faults.numeric.nan_at == Some(layer));
        let flags = if bias.is_some() { BIAS } else { 0 } | if is_spoilt { SPOIL } else { 0 };
        let (name, blocks) = Blocks::product(rows.len(), tokens);
        // A matrix without biases has some memory in their place, which nobody reads.
        let start = self.start_weighted(name, blocks).memory(&[x, weights.handle(), bias.unwrap_or(x), out]);
        let start = start.sizes(&[width, weights.stride, rows.start, rows.len(), out_width, tokens]).flags(flags);
        Ok(start.launch()?.into())
    }

    fn comm(&self) -> Result<Rc<Comm>, Error> {
        let none =
            || Error::Request("the program is that of a rank, and there are no others; plan the whole".to_owned());
        self.comm.map(Rc::clone).ok_or_else(none)
    }

    fn all_reduce(&self, x: BufId) -> Result<Work, Error> {
        let (part, rows, width) = self.buffer(x)?;
        Ok(Work(vec![Command::Exchange(Exchange { comm: self.comm()?, part, count: rows * width, gathered: None })]))
    }

    /// Ranks come one after the other, each with all rows of its part; of several rows a kernel puts these side by side.
    fn all_gather(&self, part: BufId, out: BufId) -> Result<Work, Error> {
        let ((part, rows, width), (out, _, whole)) = (self.buffer(part)?, self.buffer(out)?);
        let gathered = Some(if rows > 1 { self.scratch } else { out });
        let mut work = vec![Command::Exchange(Exchange { comm: self.comm()?, part, count: rows * width, gathered })];
        if rows > 1 {
            let start = self.start("strato_side_by_side", Blocks::elements(rows, whole));
            let start = start.memory(&[self.scratch, out]).sizes(&[rows, width, whole]);
            work.push(Command::Kernel(start.launch()?));
        }
        Ok(Work(work))
    }
}
