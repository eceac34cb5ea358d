//! An operator as one kernel: which, on which memory, by how many work-items.

#![allow(unsafe_code)]

use opencl3::{kernel::Kernel, types::cl_mem};

use super::{
    Flavour,
    inputs::Inputs,
    memory::{Memory, Place},
    refused,
    source::Source,
    staged::Staged,
};
use crate::{
    Config, Error,
    device_model::Model,
    faults::Faults,
    kv::KvPlan,
    program::{BufId, Heads, Matrix, OpCall, OpKind, Program},
};

/// Flags of `linear.cl`.
const BIAS: u32 = 1;
const SPOIL: u32 = 2;
/// Elements below which another work-item of a CPU costs more than it brings.
const PIECE: usize = 2048;
/// Rows of a matrix that a work-item of a CPU has at most, and work-items for each core at least: fewer would leave cores
/// idle at the end of a product.
const MOST_ROWS: usize = 64;
const ITEMS_PER_CORE: usize = 8;
/// Most work-groups of an operator that goes element by element elsewhere than on a CPU.
const MOST_GROUPS: usize = 4096;
/// Tokens that share a widened weight in `matrix_product`.
const TILE_TOKENS: usize = 4;

/// What an operator becomes.
pub(super) enum Work {
    Kernel(Launch),
    Staged(Staged),
    /// Nothing, where a run suffers that it is left out.
    LeftOut,
}

/// A kernel with its arguments, ready to be launched.
pub(super) struct Launch {
    pub kernel: Kernel,
    pub global: [usize; 2],
    pub local: [usize; 2],
    /// Whether it gives the same when it runs again: it does not change what it reads.
    pub is_repeatable: bool,
}

/// What operators are lowered with.
pub(super) struct Lowering<'l> {
    pub source: &'l Source,
    pub model: &'l Model<Place>,
    /// The shape of the rank's part.
    pub config: &'l Config,
    /// The first token of the rank's part of the vocabulary.
    pub first_token: usize,
    pub plan: &'l KvPlan,
    pub flavour: Flavour,
    pub units: usize,
    pub program: &'l Program,
    pub buffers: &'l [Memory<f32>],
    pub inputs: &'l Inputs,
    pub chosen: cl_mem,
    pub faults: &'l Faults,
}

impl Lowering<'_> {
    /// Memory, rows and width of a buffer of activations.
    fn buffer(&self, id: BufId) -> Result<(cl_mem, usize, usize), Error> {
        let found = self.buffers.get(usize::from(id.0)).zip(self.program.buffer(id));
        let (memory, shape) =
            found.ok_or_else(|| Error::Request(format!("the program has no buffer {}; plan it anew", id.0)))?;
        Ok((memory.handle(), shape.rows, shape.width))
    }

    /// Work-items for `count` elements of each of `rows`.
    fn elements(&self, count: usize, rows: usize) -> ([usize; 2], [usize; 2]) {
        let lanes = self.flavour.lanes();
        let groups = match self.flavour {
            Flavour::Cpu => (count / PIECE).clamp(1, self.units),
            Flavour::Gpu => count.div_ceil(lanes).clamp(1, MOST_GROUPS),
        };
        ([groups * lanes, rows], [lanes, 1])
    }

    /// `count` work-groups for each of `rows`.
    fn groups(&self, count: usize, rows: usize) -> ([usize; 2], [usize; 2]) {
        let lanes = self.flavour.lanes();
        ([count * lanes, rows], [lanes, 1])
    }

    fn start(&self, kernel: &str, (global, local): ([usize; 2], [usize; 2])) -> Result<Arguments, Error> {
        Ok(Arguments {
            launch: Launch { kernel: self.source.kernel(kernel)?, global, local, is_repeatable: false },
            next: 0,
        })
    }

    /// What an operator becomes.
    pub(super) fn lower(&self, op: &OpCall) -> Result<Work, Error> {
        if let Some(staged) = Staged::of(op, self.program, self.faults) {
            return Ok(Work::Staged(staged));
        }
        let (model, inputs, eps) = (self.model, self.inputs.handle(), self.config.norm_eps);
        let tokens = self.program.shape.tokens;
        let launch = match &op.kind {
            OpKind::Embed { out } => {
                let (out, rows, width) = self.buffer(*out)?;
                let table = model.embed();
                self.start("embed", self.elements(width, rows))?
                    .memory(table.handle())?
                    .memory(inputs)?
                    .memory(out)?
                    .sizes(&[table.width, table.stride, self.first_token, table.rows])?
            }
            OpKind::LastToken { x, out } => {
                let ((x, ..), (out, rows, width)) = (self.buffer(*x)?, self.buffer(*out)?);
                let start = self.start("last_token", self.elements(width, rows))?;
                start.memory(x)?.memory(inputs)?.memory(out)?.sizes(&[width, tokens])?
            }
            OpKind::RmsNorm { x, weight, out } => {
                let ((x, rows, width), (out, ..)) = (self.buffer(*x)?, self.buffer(*out)?);
                let start = self.start("rms_norm", self.groups(rows, 1))?.memory(x)?;
                start.memory(model.vector(*weight)?)?.memory(out)?.sizes(&[width])?.real(eps)?
            }
            OpKind::AddRmsNorm { x, delta, weight, out } => {
                let ((x, rows, width), (delta, ..), (out, ..)) =
                    (self.buffer(*x)?, self.buffer(*delta)?, self.buffer(*out)?);
                let start = self.start("add_rms_norm", self.groups(rows, 1))?.memory(x)?.memory(delta)?;
                start.memory(model.vector(*weight)?)?.memory(out)?.sizes(&[width])?.real(eps)?
            }
            OpKind::HeadNorm { x, heads: Heads { at, count }, weight } => {
                let (x, rows, width) = self.buffer(*x)?;
                let start = self.start("head_norm", self.groups(rows * count, 1))?.memory(x)?;
                start.memory(model.vector(*weight)?)?.sizes(&[width, *at, *count])?.real(eps)?
            }
            OpKind::Mean { x, out } => {
                let ((x, rows, width), (out, ..)) = (self.buffer(*x)?, self.buffer(*out)?);
                self.start("mean", self.groups(rows, 1))?.memory(x)?.memory(out)?.sizes(&[width])?
            }
            OpKind::Linear { x, matrix, rows, out } => self.linear(*x, *matrix, rows.clone(), *out)?,
            OpKind::Rope { x, heads: Heads { at, count } } => {
                let (x, rows, width) = self.buffer(*x)?;
                let pairs = count * (self.config.head_dim / 2);
                let start = self.start("rope", self.elements(pairs, rows))?;
                start.memory(x)?.memory(inputs)?.sizes(&[self.inputs.turns_at(), width, *at, *count])?
            }
            OpKind::KvAppend { layer, .. }
                if self.faults.numeric.stale_kv == Some(*layer) && tokens == self.program.shape.sequences =>
            {
                return Ok(Work::LeftOut);
            }
            OpKind::KvAppend { qkv, layer } => {
                let (qkv, rows, width) = self.buffer(*qkv)?;
                let [keys, values] = model.cache(*layer)?;
                let kv = self.config.kv_width();
                self.start("kv_append", self.elements(kv, rows))?
                    .memory(qkv)?
                    .memory(keys)?
                    .memory(values)?
                    .memory(inputs)?
                    .memory(model.table())?
                    .sizes(&[
                        self.blocks(),
                        self.plan.block,
                        self.config.kv_heads,
                        width,
                        self.config.q_width(),
                        tokens,
                    ])?
            }
            OpKind::Attention { qkv, layer, out } => {
                let ((qkv, rows, width), (out, ..)) = (self.buffer(*qkv)?, self.buffer(*out)?);
                let [keys, values] = model.cache(*layer)?;
                let (heads, kv_heads) = (self.config.heads, self.config.kv_heads);
                self.start("attention", self.groups(heads, rows))?
                    .memory(qkv)?
                    .memory(keys)?
                    .memory(values)?
                    .memory(out)?
                    .memory(inputs)?
                    .memory(model.table())?
                    .sizes(&[self.blocks(), self.plan.block, heads, kv_heads, width, tokens])?
            }
            OpKind::Add { x, delta } => {
                let ((x, rows, width), (delta, ..)) = (self.buffer(*x)?, self.buffer(*delta)?);
                self.start("add", self.elements(width, rows))?.memory(x)?.memory(delta)?.sizes(&[width])?
            }
            OpKind::Square { x, out } => self.by_element("square", *x, *out)?,
            OpKind::SiluMul { gate_up, out } => self.by_element("silu_mul", *gate_up, *out)?,
            OpKind::Silu { gate_up, out } => self.by_element("silu", *gate_up, *out)?,
            OpKind::MulUp { gate_up, out } => self.by_element("mul_up", *gate_up, *out)?,
            OpKind::Rsqrt { x } => {
                let (x, rows, width) = self.buffer(*x)?;
                self.start("reciprocal_root", self.elements(width, rows))?.memory(x)?.sizes(&[width])?.real(eps)?
            }
            OpKind::ScaleRows { x, by, out } => {
                let ((x, ..), (by, ..), (out, rows, width)) = (self.buffer(*x)?, self.buffer(*by)?, self.buffer(*out)?);
                let start = self.start("scale_rows", self.elements(width, rows))?;
                start.memory(x)?.memory(by)?.memory(out)?.sizes(&[width])?
            }
            OpKind::ScaleColumns { x, weight } => {
                let (x, rows, width) = self.buffer(*x)?;
                let start = self.start("scale_columns", self.elements(width, rows))?;
                start.memory(x)?.memory(model.vector(*weight)?)?.sizes(&[width])?
            }
            OpKind::Transpose { x, out } => {
                let ((x, rows, width), (out, ..)) = (self.buffer(*x)?, self.buffer(*out)?);
                self.start("transpose", self.elements(rows, width))?.memory(x)?.memory(out)?.sizes(&[rows, width])?
            }
            OpKind::Argmax { logits } => {
                let (logits, rows, width) = self.buffer(*logits)?;
                self.start("argmax", self.groups(rows, 1))?.memory(logits)?.memory(self.chosen)?.sizes(&[width])?
            }
            OpKind::Route { .. } | OpKind::ExpertLinear { .. } | OpKind::Combine { .. } => {
                return Err(Model::<Place>::no_experts());
            }
            // Collectives are staged, all of them.
            OpKind::AllReduce { .. } | OpKind::AllGather { .. } => return Ok(Work::LeftOut),
        };
        Ok(Work::Kernel(Launch { is_repeatable: is_repeatable(&op.kind), ..launch.launch }))
    }

    fn blocks(&self) -> usize {
        self.plan.context.div_ceil(self.plan.block)
    }

    /// An operator whose result has an element for each of its own.
    fn by_element(&self, kernel: &str, x: BufId, out: BufId) -> Result<Arguments, Error> {
        let ((x, ..), (out, rows, width)) = (self.buffer(x)?, self.buffer(out)?);
        self.start(kernel, self.elements(width, rows))?.memory(x)?.memory(out)?.sizes(&[width])
    }

    fn linear(&self, x: BufId, matrix: Matrix, rows: std::ops::Range<usize>, out: BufId) -> Result<Arguments, Error> {
        let ((x, tokens, width), (out, _, out_width)) = (self.buffer(x)?, self.buffer(out)?);
        let (weights, bias) = self.model.matrix(matrix)?;
        let is_spoilt = matches!(matrix, Matrix::Down(layer) if self.faults.numeric.nan_at == Some(layer));
        let flags = if bias.is_some() { BIAS } else { 0 } | if is_spoilt { SPOIL } else { 0 };
        let name = if tokens > 1 { "matrix_product" } else { "vector_product" };
        let count = rows.len();
        let each = (count / (self.units * ITEMS_PER_CORE)).clamp(TILE_TOKENS, MOST_ROWS).next_multiple_of(4);
        let sizes = match self.flavour {
            Flavour::Cpu => self.groups(count.div_ceil(each), 1),
            Flavour::Gpu if tokens > 1 => self.groups(count, tokens.div_ceil(TILE_TOKENS)),
            Flavour::Gpu => self.groups(count, 1),
        };
        // A matrix without biases has some memory in their place, which nobody reads.
        self.start(name, sizes)?
            .memory(x)?
            .memory(weights.handle())?
            .memory(bias.unwrap_or(x))?
            .memory(out)?
            .sizes(&[width, weights.stride, rows.start, count, out_width, tokens, each])?
            .flags(flags)
    }
}

/// Whether an operator writes elsewhere than it reads.
fn is_repeatable(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::Embed { .. }
            | OpKind::LastToken { .. }
            | OpKind::RmsNorm { .. }
            | OpKind::Mean { .. }
            | OpKind::Linear { .. }
            | OpKind::KvAppend { .. }
            | OpKind::Attention { .. }
            | OpKind::Square { .. }
            | OpKind::SiluMul { .. }
            | OpKind::Silu { .. }
            | OpKind::ScaleRows { .. }
            | OpKind::Transpose { .. }
            | OpKind::Argmax { .. }
    )
}

/// A kernel whose arguments are being set, one after the other.
struct Arguments {
    launch: Launch,
    next: u32,
}

impl Arguments {
    fn set<T>(mut self, value: &T) -> Result<Self, Error> {
        // SAFETY: the driver copies the value, and refuses one of another size than the argument has. The memory that a
        // handle names lives as long as the plan that has the kernel, or the model.
        let set = unsafe { self.launch.kernel.set_arg(self.next, value) };
        set.map_err(|error| refused("set an argument of an OpenCL kernel", &error))?;
        self.next += 1;
        Ok(self)
    }

    fn memory(self, memory: cl_mem) -> Result<Self, Error> {
        self.set(&memory)
    }

    fn sizes(self, sizes: &[usize]) -> Result<Self, Error> {
        sizes.iter().try_fold(self, |own, size| own.set(&(*size as u64)))
    }

    fn real(self, value: f32) -> Result<Self, Error> {
        self.set(&value)
    }

    fn flags(self, flags: u32) -> Result<Self, Error> {
        self.set(&flags)
    }
}
