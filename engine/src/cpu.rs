//! The CPU as a device: a program runs operator by operator, or the whole step at once on threads that meet at barriers.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    Buffer, Config, Error, KvLayout, Weights,
    kv::KvPlan,
    program::{BufId, Matrix, OpCall, OpKind, Program, Vector},
    record::{Kind, Log, Span},
    rope,
};

mod attention;
mod kernels;
mod memory;
mod ops;
mod pool;

pub use kernels::{Isa, Kernels};

use memory::Rows;
use ops::Part;
use pool::{Barrier, Pool};

/// What a step computes on: tokens of one or more sequences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Token ids.
    pub tokens: Vec<u32>,
    /// Position of each token in its sequence.
    pub positions: Vec<u32>,
    /// Sequence of each token.
    pub sequences: Vec<u32>,
}

impl Batch {
    /// The tokens of one sequence from position `first` on.
    pub fn prefill(tokens: &[u32], first: u32) -> Self {
        Self {
            tokens: tokens.to_vec(),
            positions: (first..).take(tokens.len()).collect(),
            sequences: vec![0; tokens.len()],
        }
    }

    /// Row of the last token of each sequence, in the order of the sequences.
    fn last_rows(&self) -> Vec<usize> {
        let mut last = std::collections::BTreeMap::new();
        for (row, (sequence, position)) in self.sequences.iter().zip(&self.positions).enumerate() {
            let entry = last.entry(*sequence).or_insert((*position, row));
            *entry = (*entry).max((*position, row));
        }
        last.into_values().map(|(_, row)| row).collect()
    }
}

/// How a device is set up.
#[derive(Clone, Copy, Debug)]
pub struct CpuOptions {
    /// Threads.
    pub threads: usize,
    /// Instruction set.
    pub isa: Isa,
    /// Division of the cache.
    pub layout: KvLayout,
    /// Sequences.
    pub sequences: usize,
    /// Most tokens of a sequence.
    pub context: usize,
}

impl CpuOptions {
    /// One sequence of up to `context` tokens on every core, with the best instruction set.
    pub fn new(context: usize) -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            isa: Isa::available().first().copied().unwrap_or(Isa::Portable),
            layout: KvLayout::Contiguous,
            sequences: 1,
            context,
        }
    }
}

/// The CPU with a model in its memory.
pub struct Cpu {
    config: Config,
    weights: Arc<Weights>,
    kernels: Kernels,
    pool: Pool,
    plan: KvPlan,
    /// Keys and values of each layer.
    cache: Vec<[Buffer; 2]>,
}

/// A program with memory of its own.
pub struct Prepared {
    /// Fingerprint of the shape that the program was found to fit.
    model: u64,
    program: Program,
    buffers: Vec<Buffer>,
}

impl Prepared {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Content of a buffer after a step, (rows, width).
    pub fn values(&self, id: BufId) -> &[f32] {
        self.buffers.get(usize::from(id.0)).map_or(&[], |buffer| buffer.as_slice())
    }
}

impl Cpu {
    /// A device with the weights of a model and an empty cache.
    ///
    /// # Errors
    /// [`Error::Request`] when the processor has not the instruction set asked for, or memory runs out.
    pub fn new(config: Config, weights: Arc<Weights>, options: CpuOptions) -> Result<Self, Error> {
        let kernels = Kernels::of(options.isa).ok_or_else(|| {
            Error::Request(format!("this processor has no {}; leave the choice out", options.isa.name()))
        })?;
        if weights.model != config.fingerprint() {
            return Err(Error::Request("the weights are those of another model; load them for this one".to_owned()));
        }
        let plan = KvPlan::new(&config, options.layout, options.sequences, options.context)?;
        let half = || Buffer::zeroed(plan.elements() * 4);
        let cache = (0..config.layers).map(|_| Ok([half()?, half()?])).collect::<Result<_, Error>>()?;
        Ok(Self { config, weights, kernels, pool: Pool::new(options.threads), plan, cache })
    }

    /// Gives a program its memory.
    ///
    /// # Errors
    /// [`Error::Request`] when the program does not fit the model, or memory runs out.
    pub fn prepare(&self, program: Program) -> Result<Prepared, Error> {
        program.check(&self.config)?;
        let size =
            |rows: usize, width: usize| rows.checked_mul(width).and_then(|n| n.checked_mul(4)).unwrap_or(usize::MAX);
        let buffers =
            program.buffers.iter().map(|b| Buffer::zeroed(size(b.rows, b.width))).collect::<Result<_, _>>()?;
        Ok(Prepared { model: self.config.fingerprint(), program, buffers })
    }

    /// Runs a step operator by operator and returns the most likely next token of every row of logits. `log` gets every
    /// operator.
    ///
    /// # Errors
    /// [`Error::Request`] when the batch does not fit the program, the vocabulary or the cache.
    pub fn run(&mut self, prepared: &mut Prepared, batch: &Batch, log: &mut Log) -> Result<Vec<u32>, Error> {
        let (step, pool) = self.step(prepared, batch)?;
        let threads = pool.threads();
        for (number, op) in (0..).zip(step.ops) {
            let called = log.now();
            let mut began = 0;
            pool.run_from(&|number| step.execute(op, Part { number, of: threads }), &mut || began = log.now());
            let ended = log.now();
            log.push(Kind::Op(number), Span { start: called, end: log.now() }, Span { start: began, end: ended });
        }
        Ok(step.chosen())
    }

    /// Runs a step in one go: threads meet at barriers and do not come back between operators. `log` gets the call and
    /// every operator.
    ///
    /// # Errors
    /// Those of [`Cpu::run`].
    pub fn replay(&mut self, prepared: &mut Prepared, batch: &Batch, log: &mut Log) -> Result<Vec<u32>, Error> {
        let (step, pool) = self.step(prepared, batch)?;
        let threads = pool.threads();
        let barrier = Barrier::new(threads);
        let called = log.now();
        // When the first thread passed each barrier; written by that thread alone.
        let passed = Mutex::new(Vec::with_capacity(step.ops.len() + 1));
        let (clock, is_on) = (log.clock, log.is_on());
        pool.run(&|number| {
            let mut stamps = (number == 0 && is_on).then(|| passed.lock().unwrap_or_else(PoisonError::into_inner));
            let mut stamp = || {
                if let Some(stamps) = &mut stamps {
                    stamps.push(clock.now());
                }
            };
            stamp();
            for op in step.ops {
                step.execute(op, Part { number, of: threads });
                barrier.wait();
                stamp();
            }
        });
        let returned = log.now();
        let passed = passed.into_inner().unwrap_or_else(PoisonError::into_inner);
        let whole = Span { start: passed.first().copied().unwrap_or(0), end: passed.last().copied().unwrap_or(0) };
        log.push(Kind::Replay, Span { start: called, end: returned }, whole);
        for (number, pair) in (0..).zip(passed.windows(2)) {
            let device = Span { start: pair[0], end: pair[1] };
            log.push(Kind::ReplayedOp(number), Span::default(), device);
        }
        Ok(step.chosen())
    }

    fn step<'a>(&'a mut self, prepared: &'a mut Prepared, batch: &'a Batch) -> Result<(Step<'a>, &'a mut Pool), Error> {
        if prepared.model != self.config.fingerprint() {
            return Err(Error::Request(
                "the program was prepared for another model; prepare it for this one".to_owned(),
            ));
        }
        self.check(&prepared.program, batch)?;
        let Self { config, weights, kernels, pool, plan, cache } = self;
        let longest = batch.positions.iter().max().map_or(0, |position| *position as usize + 1);
        let frequencies = rope::frequencies(config, longest);
        let mut turns = Vec::with_capacity(batch.tokens.len() * config.head_dim);
        for position in &batch.positions {
            let angles = || frequencies.iter().map(|frequency| frequency * *position as f32);
            turns.extend(angles().map(f32::cos));
            turns.extend(angles().map(f32::sin));
        }
        let widths = prepared.program.buffers.iter().map(|buffer| buffer.width);
        let buffers = prepared.buffers.iter_mut().zip(widths).map(|(b, width)| Rows::new(b.as_mut_slice(), width));
        let whole = |buffer: &mut Buffer| {
            let memory = buffer.as_mut_slice();
            Rows::new(memory, memory.len())
        };
        let step = Step {
            config,
            weights,
            kernels: *kernels,
            plan,
            ops: &prepared.program.ops,
            buffers: buffers.collect(),
            cache: cache.iter_mut().map(|[keys, values]| [whole(keys), whole(values)]).collect(),
            batch,
            last: batch.last_rows(),
            turns,
            chosen: Mutex::new(Vec::new()),
        };
        Ok((step, pool))
    }

    fn check(&self, program: &Program, batch: &Batch) -> Result<(), Error> {
        let refuse = |what: String| Err(Error::Request(what));
        let tokens = batch.tokens.len();
        if tokens != program.shape.tokens || batch.positions.len() != tokens || batch.sequences.len() != tokens {
            return refuse(format!("the program is for {} tokens and got {tokens}", program.shape.tokens));
        }
        if batch.last_rows().len() != program.shape.sequences {
            return refuse(format!("the program is for {} sequences", program.shape.sequences));
        }
        // Two tokens of one place would be written to one slot of the cache by two threads.
        let mut places: Vec<(u32, u32)> =
            batch.sequences.iter().copied().zip(batch.positions.iter().copied()).collect();
        places.sort_unstable();
        if let Some([(sequence, position), _]) = places.array_windows().find(|[a, b]| a == b) {
            return refuse(format!("two tokens are at position {position} of sequence {sequence}"));
        }
        if let Some(token) = batch.tokens.iter().find(|token| **token as usize >= self.config.vocab) {
            return refuse(format!("token {token} is not in the vocabulary of {}", self.config.vocab));
        }
        if let Some(position) = batch.positions.iter().find(|position| **position as usize >= self.plan.context) {
            return refuse(format!("position {position} is beyond the context of {}", self.plan.context));
        }
        if let Some(sequence) = batch.sequences.iter().find(|sequence| **sequence as usize >= self.plan.sequences) {
            return refuse(format!("sequence {sequence} is not one of {}", self.plan.sequences));
        }
        Ok(())
    }
}

/// A step under way: what every thread sees.
struct Step<'a> {
    config: &'a Config,
    weights: &'a Weights,
    kernels: Kernels,
    plan: &'a KvPlan,
    ops: &'a [OpCall],
    buffers: Vec<Rows>,
    cache: Vec<[Rows; 2]>,
    batch: &'a Batch,
    last: Vec<usize>,
    turns: Vec<f32>,
    chosen: Mutex<Vec<(usize, u32)>>,
}

impl<'a> Step<'a> {
    fn chosen(self) -> Vec<u32> {
        let mut chosen = self.chosen.into_inner().unwrap_or_else(PoisonError::into_inner);
        chosen.sort_unstable();
        chosen.into_iter().map(|(_, token)| token).collect()
    }

    fn rows(&self, id: BufId) -> Rows {
        self.buffers[usize::from(id.0)]
    }

    fn matrix(&self, matrix: Matrix) -> (&'a crate::Tensor, Option<&'a [f32]>) {
        let layer = |layer: u16| &self.weights.layers[usize::from(layer)];
        match matrix {
            Matrix::Head => (self.weights.head(), None),
            Matrix::Qkv(l) => (&layer(l).qkv, layer(l).qkv_bias.as_deref()),
            Matrix::O(l) => (&layer(l).o, None),
            Matrix::GateUp(l) => (&layer(l).gate_up, None),
            Matrix::Down(l) => (&layer(l).down, None),
        }
    }

    fn vector(&self, vector: Vector) -> &'a [f32] {
        let layer = |layer: u16| &self.weights.layers[usize::from(layer)];
        let of_heads = |l: u16, which: usize| layer(l).qk_norm.as_ref().map_or(&[][..], |norms| &norms[which][..]);
        match vector {
            Vector::InputNorm(l) => &layer(l).input_norm,
            Vector::PostNorm(l) => &layer(l).post_norm,
            Vector::FinalNorm => &self.weights.final_norm,
            Vector::QNorm(l) => of_heads(l, 0),
            Vector::KNorm(l) => of_heads(l, 1),
        }
    }

    fn heads(&self) -> attention::Heads<'_> {
        attention::Heads {
            plan: self.plan,
            heads: self.config.heads,
            kv_heads: self.config.kv_heads,
            head_dim: self.config.head_dim,
            sequence: &self.batch.sequences,
            position: &self.batch.positions,
        }
    }

    /// This thread's share of an operator.
    fn execute(&self, op: &OpCall, part: Part) {
        let (kernels, eps) = (&self.kernels, self.config.norm_eps);
        match &op.kind {
            OpKind::Embed { out } => ops::embed(part, &self.weights.embed, &self.batch.tokens, self.rows(*out)),
            OpKind::RmsNorm { x, weight, out } => {
                ops::rms_norm(part, kernels, self.rows(*x), self.vector(*weight), eps, self.rows(*out));
            }
            OpKind::AddRmsNorm { x, delta, weight, out } => {
                // The same rows are this thread's in both.
                ops::add(part, kernels, self.rows(*x), self.rows(*delta));
                ops::rms_norm(part, kernels, self.rows(*x), self.vector(*weight), eps, self.rows(*out));
            }
            OpKind::Linear { x, matrix, rows, out } => {
                let (weights, bias) = self.matrix(*matrix);
                ops::linear(part, kernels, self.rows(*x), weights, bias, rows.clone(), self.rows(*out));
            }
            OpKind::HeadNorm { x, heads, weight } => {
                ops::head_norm(part, kernels, self.rows(*x), heads.at, heads.count, self.vector(*weight), eps);
            }
            OpKind::Rope { x, heads } => {
                ops::rope(part, self.rows(*x), heads.at, heads.count, self.config.head_dim, &self.turns);
            }
            OpKind::KvAppend { qkv, layer } => {
                let [keys, values] = self.cache[usize::from(*layer)];
                attention::append(part, self.heads(), self.rows(*qkv), keys, values);
            }
            OpKind::Attention { qkv, layer, out } => {
                let [keys, values] = self.cache[usize::from(*layer)];
                attention::attend(part, kernels, self.heads(), self.rows(*qkv), keys, values, self.rows(*out));
            }
            OpKind::Add { x, delta } => ops::add(part, kernels, self.rows(*x), self.rows(*delta)),
            OpKind::SiluMul { gate_up, out } => ops::silu_mul(part, self.rows(*gate_up), self.rows(*out)),
            OpKind::LastToken { x, out } => ops::select(part, self.rows(*x), &self.last, self.rows(*out)),
            OpKind::Argmax { logits } => self.argmax(self.rows(*logits), part),
        }
    }

    #[allow(unsafe_code)]
    fn argmax(&self, logits: Rows, part: Part) {
        for row in part.of(logits.rows, 1) {
            // SAFETY: the operator before wrote the logits, and nobody does now.
            let token = ops::argmax(unsafe { logits.row(row) });
            self.chosen.lock().unwrap_or_else(PoisonError::into_inner).push((row, token));
        }
    }
}
