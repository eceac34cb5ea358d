//! The CPU as a device: workers run the operators that the host launches, one by one or a whole step at once, while the host
//! goes on.

use std::sync::{Arc, Mutex};

use crate::{
    Batch, Buffer, Config, Error, KvLayout, Shard, Weights,
    faults::Faults,
    hook::HostHook,
    kv::KvPlan,
    options::Sync,
    program::{BufId, Program},
    record::Log,
    rope,
};

mod attention;
mod backend;
mod collectives;
mod experts;
mod inspect;
mod kernels;
mod launch;
mod linear;
mod memory;
mod ops;
mod pool;
mod queue;
mod stamps;
mod step;

pub use crate::comm::{Communicator, LOADING, PATIENCE, Region, World};
pub(crate) use backend::OnCpu;
pub use kernels::{Isa, Kernels};

use launch::{Driver, Record};
use memory::Rows;
use pool::Pool;
use stamps::Stamps;
use step::Step;

/// How a device is set up.
#[derive(Clone, Copy, Debug)]
pub struct CpuOptions {
    /// Workers; the host is a thread of its own.
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
    /// The other ranks.
    ranks: Option<Communicator>,
    /// When the host waits for a step under way.
    sync: Sync,
    faults: Faults,
    /// What holds up the host.
    hook: Option<HostHook>,
}

/// A program with memory of its own.
pub struct Prepared {
    /// Fingerprint of the shape that the program was found to fit.
    model: u64,
    program: Program,
    buffers: Vec<Buffer>,
    /// Collectives up to and with each operator.
    collectives: Vec<u32>,
    record: Record,
}

impl Prepared {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The most likely token of each row of logits after a step.
    pub fn most_likely(&self) -> Vec<u32> {
        let width = self.program.buffer(self.program.logits).map_or(1, |logits| logits.width.max(1));
        most_likely(self.values(self.program.logits), width)
    }

    /// Content of a buffer after a step, (rows, width).
    pub fn values(&self, id: BufId) -> &[f32] {
        self.buffers.get(usize::from(id.0)).map_or(&[], |buffer| buffer.as_slice())
    }
}

/// The greatest logit of each row.
pub(crate) fn most_likely(logits: &[f32], width: usize) -> Vec<u32> {
    logits.chunks_exact(width.max(1)).map(ops::argmax).collect()
}

impl Cpu {
    /// A device with the weights of a model and an empty cache.
    ///
    /// # Errors
    /// [`Error::Request`] when the processor has not the instruction set asked for, or memory runs out.
    pub fn new(config: Config, weights: Arc<Weights>, options: CpuOptions) -> Result<Self, Error> {
        Self::of_rank(config, weights, options, None)
    }

    /// A device with a rank's part of the weights of a model, and the way to the other ranks.
    ///
    /// # Errors
    /// Those of [`Cpu::new`], and [`Error::Request`] when the ranks are others than those of the weights or have other
    /// numbers of workers.
    pub fn of_rank(
        config: Config,
        weights: Arc<Weights>,
        options: CpuOptions,
        ranks: Option<Communicator>,
    ) -> Result<Self, Error> {
        let kernels = Kernels::of(options.isa).ok_or_else(|| {
            Error::Request(format!("this processor has no {}; leave the choice out", options.isa.name()))
        })?;
        if weights.model != config.fingerprint() {
            return Err(Error::Request("the weights are those of another model; load them for this one".to_owned()));
        }
        if weights.shard != ranks.as_ref().map_or(Shard::WHOLE, Communicator::shard) {
            return Err(Error::Request("the weights are those of another rank; load this one's part".to_owned()));
        }
        if let Some(world) = ranks.as_ref().map(Communicator::world).filter(|world| world.workers != options.threads) {
            let (all, own) = (world.workers, options.threads);
            return Err(Error::Request(format!("ranks have {all} workers each, not {own}; give all the same threads")));
        }
        let plan = KvPlan::new(&config.part(weights.shard)?, options.layout, options.sequences, options.context)?;
        let half = || Buffer::zeroed(plan.elements() * 4);
        let cache = (0..config.layers).map(|_| Ok([half()?, half()?])).collect::<Result<_, Error>>()?;
        Ok(Self {
            config,
            weights,
            kernels,
            pool: Pool::new(options.threads)?,
            plan,
            cache,
            ranks,
            sync: Sync::default(),
            faults: Faults::default(),
            hook: None,
        })
    }

    /// Gives a program its memory.
    ///
    /// # Errors
    /// [`Error::Request`] when the program does not fit the model, or memory runs out.
    pub fn prepare(&self, program: Program) -> Result<Prepared, Error> {
        program.check(&self.config)?;
        let (needed, slot) = (program.largest_exchange(), self.ranks.as_ref().map_or(0, |ranks| ranks.world().slot));
        if program.shard != self.weights.shard || needed > slot {
            return Err(Error::Request(format!(
                "the program is for rank {} of {} and exchanges {needed} elements; plan it for this rank, and memory for it",
                program.shard.rank, program.shard.of
            )));
        }
        let size =
            |rows: usize, width: usize| rows.checked_mul(width).and_then(|n| n.checked_mul(4)).unwrap_or(usize::MAX);
        let buffers =
            program.buffers.iter().map(|b| Buffer::zeroed(size(b.rows, b.width))).collect::<Result<_, _>>()?;
        let ops = program.ops.len();
        let record = Record { stamps: Stamps::new(ops, self.pool.workers()), calls: Vec::with_capacity(ops) };
        let mut count = 0;
        let counted = program.ops.iter().map(|op| {
            count += u32::from(op.kind.exchanged().is_some());
            count
        });
        let collectives = counted.collect();
        Ok(Prepared { model: self.config.fingerprint(), program, buffers, collectives, record })
    }

    /// Runs a step operator by operator and returns the most likely next token of every row of logits. `log` gets every
    /// operator.
    ///
    /// # Errors
    /// [`Error::Request`] when the batch does not fit the program, the vocabulary or the cache.
    pub fn run(&mut self, prepared: &mut Prepared, batch: &Batch, log: &mut Log) -> Result<Vec<u32>, Error> {
        self.launch(prepared, batch, log, false)
    }

    /// Runs a step that is launched as a whole. `log` gets the call and every operator.
    ///
    /// # Errors
    /// Those of [`Cpu::run`].
    pub fn replay(&mut self, prepared: &mut Prepared, batch: &Batch, log: &mut Log) -> Result<Vec<u32>, Error> {
        self.launch(prepared, batch, log, true)
    }

    /// Says when the host waits for a step under way, and what the run suffers.
    ///
    /// # Errors
    /// [`Error::Request`] when there is no memory for that.
    pub fn suffer(&mut self, sync: Sync, faults: Faults) -> Result<(), Error> {
        self.hook = HostHook::new(&faults.host)?;
        (self.sync, self.faults) = (sync, faults);
        Ok(())
    }

    /// Waits for the other ranks, where there are any, before the first step.
    ///
    /// # Errors
    /// [`Error::Lost`] when one does not come.
    pub fn meet(&mut self) -> Result<(), Error> {
        self.ranks.as_mut().map_or(Ok(()), |ranks| ranks.meet(LOADING))
    }

    /// Whether the run ends after `step`. Alone, a rank ends when it does not want to go on; of several the first decides, and
    /// the step after its decision is the last of all.
    pub(crate) fn ends(&self, step: u32, goes_on: bool) -> bool {
        self.ranks.as_ref().map_or(!goes_on, |ranks| ranks.ends(step, goes_on))
    }

    /// Says to the other ranks that this one is done.
    pub fn leave(&mut self) {
        self.ranks.iter_mut().for_each(Communicator::leave);
    }

    /// Which rank of how many this is.
    pub fn shard(&self) -> Shard {
        self.weights.shard
    }

    fn step<'a>(&'a mut self, prepared: &'a mut Prepared, batch: &'a Batch) -> Result<(Step<'a>, Driver<'a>), Error> {
        if prepared.model != self.config.fingerprint() {
            return Err(Error::Request(
                "the program was prepared for another model; prepare it for this one".to_owned(),
            ));
        }
        batch.check(&prepared.program, &self.config, &self.plan)?;
        let Self { config, weights, kernels, pool, plan, cache, ranks, sync, faults, hook } = self;
        let turns = rope::turns(&faults.numeric.turned(config), &batch.positions);
        let widths = prepared.program.buffers.iter().map(|buffer| buffer.width);
        let buffers = prepared.buffers.iter_mut().zip(widths).map(|(b, width)| Rows::new(b.as_mut_slice(), width));
        let whole = |buffer: &mut Buffer| {
            let memory = buffer.as_mut_slice();
            Rows::new(memory, memory.len())
        };
        let step = Step {
            config,
            heads: (config.heads / weights.shard.of, config.kv_heads / weights.shard.of),
            weights,
            slow: faults.rank.factor(weights.shard.rank),
            faults,
            ranks: ranks.as_ref(),
            collectives: &prepared.collectives,
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
        Ok((step, Driver { pool, record: &mut prepared.record, sync: *sync, hook: hook.as_mut() }))
    }
}
