//! An operator as one kernel: which, on which memory, by how many threads.

#![allow(unsafe_code)]

use std::{
    ffi::{c_int, c_uint, c_void},
    ptr,
};

use super::{
    driver::{Address, Handle},
    inputs::Inputs,
    memory::Memory,
    model::Model,
    queue::Queue,
    signature::Kind,
    source::Source,
};
use crate::{
    Config, Dtype, Error,
    inject::Faults,
    kv::KvPlan,
    program::{BufId, Heads, Matrix, OpCall, OpKind, Program},
};

/// Flags of `linear.cu`.
const BIAS: u32 = 1;
const SPOIL: u32 = 2;
/// Threads of a warp, on every device so far.
const WARP: usize = 32;
/// Threads of a block of operators that go element by element, and most blocks of a row.
const ELEMENTS: usize = 256;
const MOST_PIECES: usize = 4096;
/// Most threads of a block that has a row, or a head of one.
const MOST_OF_ROW: usize = 256;
/// Threads that look for the greatest of a row of logits.
const ARGMAX: usize = 1024;
/// Rows of a matrix for a block, each with a warp.
const ROWS: usize = 4;
/// Tokens that `strato_gemv_batch` takes, and both sides of a tile of `strato_gemm` with its threads.
const MOST_TOKENS: usize = 8;
const TILE: usize = 64;
const TILE_THREADS: usize = 256;
/// Threads of `strato_attention`, and the largest head that it has room for.
const ATTENTION: usize = 8 * WARP;
const MOST_HEAD: usize = 256;

/// Blocks in two dimensions, and threads of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Blocks {
    grid: [usize; 2],
    threads: usize,
}

impl Blocks {
    /// Every row with `count` elements of its own.
    fn elements(rows: usize, count: usize) -> Self {
        Self { grid: [rows, count.div_ceil(ELEMENTS).min(MOST_PIECES)], threads: ELEMENTS }
    }

    /// A block for each of `grid`, with as many threads as suit a row of `width`.
    fn rows(grid: [usize; 2], width: usize) -> Self {
        Self { grid, threads: width.next_multiple_of(WARP).clamp(WARP, MOST_OF_ROW) }
    }

    /// The product of so many rows of a matrix and so many tokens: the kernel, and its blocks.
    fn product(rows: usize, tokens: usize) -> (&'static str, Self) {
        match tokens {
            0..=MOST_TOKENS => {
                let name = if tokens > 1 { "strato_gemv_batch" } else { "strato_gemv" };
                (name, Self { grid: [rows.div_ceil(ROWS), 1], threads: ROWS * WARP })
            }
            _ => {
                let grid = [rows.div_ceil(TILE), tokens.div_ceil(TILE)];
                ("strato_gemm", Self { grid, threads: TILE_THREADS })
            }
        }
    }

    /// As the driver takes it. An operator without elements has one block, which finds nothing to do.
    fn checked(self) -> Result<([c_uint; 2], c_uint), Error> {
        /// Most blocks of the two dimensions and threads of a block, of every compute capability since 3.0 (CUDA C++
        /// Programming Guide, technical specifications).
        const MOST: [usize; 3] = [(1 << 31) - 1, 65_535, 1024];
        let [x, y] = self.grid.map(|count| count.max(1));
        let all = [x, y, self.threads];
        if all.iter().zip(MOST).any(|(count, most)| *count > most) {
            return Err(Error::Request(format!(
                "an operator would need {x} × {y} blocks of {} threads, a CUDA device starts {} × {} of {}; run fewer tokens",
                self.threads, MOST[0], MOST[1], MOST[2]
            )));
        }
        let [x, y, threads] = all.map(|count| c_uint::try_from(count).unwrap_or(c_uint::MAX));
        Ok(([x, y], threads))
    }
}

/// An argument as the driver copies it: its own bytes first.
#[repr(C, align(8))]
struct Slot([u8; 8]);

impl Slot {
    fn of<const N: usize>(bytes: [u8; N]) -> Self {
        let mut slot = [0; 8];
        slot.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        Self(slot)
    }
}

/// A kernel with its arguments, ready to be launched.
pub(super) struct Launch {
    function: Handle,
    grid: [c_uint; 2],
    threads: c_uint,
    /// What `pointers` point to.
    _slots: Vec<Slot>,
    pointers: Vec<*mut c_void>,
}

impl Launch {
    /// Enqueues it.
    pub(super) fn enqueue(&mut self, queue: &Queue) -> c_int {
        let ([x, y], threads) = (self.grid, self.threads);
        // SAFETY: a function of a module that is loaded as long as the plan that has this, whose arguments are as many and of
        // the kinds that its text says; they name memory that lives as long.
        unsafe {
            (queue.context.driver.calls.launch)(
                self.function,
                x,
                y,
                1,
                threads,
                1,
                1,
                0,
                queue.stream,
                self.pointers.as_mut_ptr(),
                ptr::null_mut(),
            )
        }
    }
}

/// What operators are lowered with.
pub(super) struct Lowering<'l> {
    pub source: &'l Source,
    pub model: &'l Model,
    pub config: &'l Config,
    pub dtype: Dtype,
    pub plan: &'l KvPlan,
    pub program: &'l Program,
    pub buffers: &'l [Memory<f32>],
    pub inputs: &'l Inputs,
    pub chosen: Address,
    pub faults: &'l Faults,
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
        Arguments { source: self.source, kernel: kernel.into(), blocks, slots: Vec::new(), kinds: Vec::new() }
    }

    /// A kernel of which there is one for every type of weights.
    fn start_weighted(&self, kernel: &str, blocks: Blocks) -> Arguments<'l> {
        Arguments { kernel: format!("{kernel}_{}", self.dtype.name()).into(), ..self.start("", blocks) }
    }

    /// The kernel of an operator; `None` where a run suffers that it is left out.
    pub(super) fn lower(&self, op: &OpCall) -> Result<Option<Launch>, Error> {
        let (model, inputs, eps) = (self.model, self.inputs.address(), self.config.norm_eps);
        let (tokens, head_dim) = (self.program.shape.tokens, self.config.head_dim);
        let arguments = match &op.kind {
            OpKind::Embed { out } => {
                let (out, rows, width) = self.buffer(*out)?;
                let table = &model.embed;
                let start = self.start_weighted("strato_embed", Blocks::elements(rows, width));
                start.memory(&[table.address(), inputs, out]).sizes(&[table.width, table.stride])
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
            OpKind::Linear { x, matrix, rows, out } => self.linear(*x, *matrix, rows.clone(), *out)?,
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
                let start = start.memory(&[qkv, keys, values, inputs, model.table.address()]);
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
                return Err(super::model::no_experts());
            }
            OpKind::AllReduce { .. } | OpKind::AllGather { .. } => {
                return Err(Error::Unavailable {
                    backend: "cuda",
                    what: "it has no collectives; leave --tp out, or run --backend cpu".to_owned(),
                });
            }
        };
        arguments.launch().map(Some)
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
        let start = start.memory(&[qkv, keys, values, out, self.inputs.address(), self.model.table.address()]);
        let sizes = [heads, kv_heads, head_dim, width, self.program.shape.tokens];
        Ok(start.sizes(&[self.blocks(), self.plan.block]).sizes(&sizes))
    }

    fn linear(
        &self,
        x: BufId,
        matrix: Matrix,
        rows: std::ops::Range<usize>,
        out: BufId,
    ) -> Result<Arguments<'l>, Error> {
        let ((x, tokens, width), (out, _, out_width)) = (self.buffer(x)?, self.buffer(out)?);
        let (weights, bias) = self.model.matrix(matrix)?;
        let is_spoilt = matches!(matrix, Matrix::Down(layer) if self.faults.numeric.nan_at == Some(layer));
        let flags = if bias.is_some() { BIAS } else { 0 } | if is_spoilt { SPOIL } else { 0 };
        let (name, blocks) = Blocks::product(rows.len(), tokens);
        // A matrix without biases has some memory in their place, which nobody reads.
        let start = self.start_weighted(name, blocks).memory(&[x, weights.address(), bias.unwrap_or(x), out]);
        Ok(start.sizes(&[width, weights.stride, rows.start, rows.len(), out_width, tokens]).flags(flags))
    }
}

/// A kernel whose arguments are being set, one after the other.
struct Arguments<'l> {
    source: &'l Source,
    kernel: std::borrow::Cow<'l, str>,
    blocks: Blocks,
    slots: Vec<Slot>,
    kinds: Vec<Kind>,
}

impl Arguments<'_> {
    fn set(mut self, kind: Kind, slot: Slot) -> Self {
        self.slots.push(slot);
        self.kinds.push(kind);
        self
    }

    fn memory(self, addresses: &[Address]) -> Self {
        addresses.iter().fold(self, |own, address| own.set(Kind::Memory, Slot::of(address.to_ne_bytes())))
    }

    fn sizes(self, sizes: &[usize]) -> Self {
        sizes.iter().fold(self, |own, size| own.set(Kind::Size, Slot::of((*size as u64).to_ne_bytes())))
    }

    fn real(self, value: f32) -> Self {
        self.set(Kind::Real, Slot::of(value.to_ne_bytes()))
    }

    fn flags(self, flags: u32) -> Self {
        self.set(Kind::Flags, Slot::of(flags.to_ne_bytes()))
    }

    /// The kernel with all it takes.
    ///
    /// # Errors
    /// [`Error::Device`] when the kernel takes something else, which no program can bring about.
    fn launch(self) -> Result<Launch, Error> {
        let kernel = self.source.kernel(&self.kernel)?;
        if kernel.takes != self.kinds {
            return Err(Error::Device {
                doing: format!("launch the CUDA kernel '{}'", self.kernel),
                what: format!("it takes {:?} and would get {:?}", kernel.takes, self.kinds),
            });
        }
        let (grid, threads) = self.blocks.checked()?;
        let mut slots = self.slots;
        let pointers = slots.iter_mut().map(|slot| ptr::from_mut(slot).cast()).collect();
        Ok(Launch { function: kernel.function, grid, threads, _slots: slots, pointers })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn every_element_has_a_thread_and_no_grid_is_beyond_a_device() {
        for (rows, count) in [(1, 1), (1, 255), (3, 256), (3, 257), (70_000, 151_936), (1, 1 << 30)] {
            let blocks = Blocks::elements(rows, count);
            blocks.checked().unwrap();
            // Threads of a row go on where they end, so that fewer than elements are enough.
            assert!(blocks.grid[1] * blocks.threads >= count.min(MOST_PIECES * ELEMENTS), "{count}");
        }
        for width in [1, 31, 32, 33, 64, 255, 256, 8192] {
            let blocks = Blocks::rows([5, 7], width);
            assert!(blocks.threads.is_multiple_of(WARP) && blocks.threads >= width.min(MOST_OF_ROW), "{width}");
        }
        for rows in [0, 1, 4, 5, 63, 64, 65, 151_936] {
            for tokens in [1, 2, 8, 9, 64, 65, 4096] {
                let (name, blocks) = Blocks::product(rows, tokens);
                let ([x, y], threads) = blocks.checked().unwrap();
                let (x, y, warps) = (x as usize, y as usize, threads as usize / WARP);
                match name {
                    "strato_gemm" => assert!(tokens > MOST_TOKENS && x * TILE >= rows && y * TILE >= tokens),
                    _ => assert!(tokens <= MOST_TOKENS && y == 1 && x * warps >= rows),
                }
                assert_eq!(name == "strato_gemv", tokens == 1);
            }
        }
        let far = Blocks::product(64, 64 * 65_536).1.checked().unwrap_err().to_string();
        assert!(far.contains("1 × 65536 blocks of 256 threads") && far.contains("fewer tokens"), "{far}");
    }

    /// What both sides must say alike.
    #[test]
    fn numbers_of_the_kernels_are_those_of_their_launches() {
        let [prelude, linear, attention] = [
            include_str!("kernels/prelude.cu"),
            include_str!("kernels/linear.cu"),
            include_str!("kernels/attention.cu"),
        ];
        for (text, name, value) in [
            (prelude, "WARP_LANES", WARP),
            (linear, "MOST_TOKENS", MOST_TOKENS),
            (linear, "TILE", TILE),
            (attention, "ATTENTION_WARPS", ATTENTION / WARP),
            (attention, "MOST_OF_LANE", MOST_HEAD / WARP),
        ] {
            assert!(text.contains(&format!("#define {name} {value}\n")), "{name} is not {value}");
        }
        let share = |name: &str| linear.split_once(&format!("#define {name} ")).unwrap().1.lines().next().unwrap();
        let share: usize = share("SHARE").parse().unwrap();
        assert_eq!((TILE / share) * (TILE / share), TILE_THREADS, "every thread has a place in the tile");
        for most in [MOST_OF_ROW, ARGMAX, ELEMENTS, TILE_THREADS, ATTENTION] {
            assert!(most / WARP <= 32 && most.is_multiple_of(WARP), "as many sums as MOST_WARPS has room for");
        }
        assert!(linear.contains("#define BIAS 1u") && linear.contains("#define SPOIL 2u"));
        assert_eq!((BIAS, SPOIL), (1, 2));
    }

    #[test]
    fn arguments_lie_at_the_beginning_of_their_slots() {
        assert_eq!(Slot::of(1.5f32.to_ne_bytes()).0[..4], 1.5f32.to_ne_bytes());
        assert_eq!(Slot::of(0x0102_0304_0506_0708u64.to_ne_bytes()).0, 0x0102_0304_0506_0708u64.to_ne_bytes());
        assert_eq!((size_of::<Slot>(), align_of::<Slot>()), (8, 8));
    }
}
