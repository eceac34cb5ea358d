//! Programs of one kind of operator on a device of the engine: what is timed is what a decode step runs.

use engine::{
    Backend, Batch, Config, Dtype, Error, PlanId, Shard, Source,
    cpu::Communicator,
    open, preset,
    program::{BufDesc, BufId, Level, Logits, OpCall, OpId, OpKind, OpName, Program, Shape},
    record::Log,
    run::{Mode, RunOptions},
};

use crate::Setup;

/// Elements of an operator that a backend does not divide any further, and most compute units that get one each.
const PIECE: usize = 2048;
const MOST_UNITS: usize = 64;

/// Weights that are all the same small number: filling them takes no time worth speaking of, and no kernel is faster for it.
struct Same(Vec<f32>);

impl Source for Same {
    fn rows(&mut self, _: &str, rows: usize, width: usize, each: &mut dyn FnMut(usize, &[f32])) -> Result<(), Error> {
        self.0.resize(width, 0.0625);
        self.0.fill(0.0625);
        (0..rows).for_each(|row| each(row, &self.0));
        Ok(())
    }
}

/// The smallest model of which everything but `shape` is next to nothing.
pub fn model(shape: impl FnOnce(&mut Config)) -> Result<Config, String> {
    let mut config = preset("tiny").ok_or("the engine has no tiny model")?;
    config.vocab = 2;
    (config.hidden, config.intermediate, config.layers) = (2, 2, 1);
    (config.heads, config.kv_heads, config.head_dim) = (1, 1, 2);
    (config.tied, config.qkv_bias, config.qk_norm) = (true, false, false);
    shape(&mut config);
    Ok(config)
}

/// A model on a device and one program on it.
pub struct Device {
    backend: Box<dyn Backend>,
    plan: PlanId,
    batch: Batch,
    ops: usize,
    kernel: String,
}

impl Device {
    /// `tokens` tokens at `position` of one sequence each, with buffers of (rows, width) and these operators.
    pub fn new(
        setup: &Setup,
        config: Config,
        dtype: Dtype,
        (tokens, position): (usize, usize),
        buffers: &[(usize, usize)],
        ops: Vec<(OpName, OpKind)>,
    ) -> Result<Self, String> {
        Self::of_rank(setup, config, dtype, (tokens, position), buffers, ops, None)
    }

    /// The same of a rank; `ranks` is the way to the others, who all make theirs at the same time.
    pub fn of_rank(
        setup: &Setup,
        config: Config,
        dtype: Dtype,
        (tokens, position): (usize, usize),
        buffers: &[(usize, usize)],
        ops: Vec<(OpName, OpKind)>,
        ranks: Option<Communicator>,
    ) -> Result<Self, String> {
        let said = |error: Error| error.to_string();
        let shard = ranks.as_ref().map_or(Shard::WHOLE, Communicator::shard);
        let options = RunOptions {
            target: setup.target.clone(),
            dtype,
            threads: setup.threads,
            isa: setup.isa,
            batch: tokens,
            prompt: position + 1,
            steps: 0,
            ..RunOptions::default()
        };
        let mut backend = open(&config, &mut Same(Vec::new()), &options, ranks, &mut Log::off()).map_err(said)?;
        let call =
            |(slot, (name, kind)): (u16, (OpName, OpKind))| OpCall { id: OpId { layer: None, slot }, name, kind };
        let none = BufId(0);
        let program = Program {
            shape: Shape { tokens, sequences: tokens, logits: Logits::Last, level: Level::Fused },
            buffers: buffers
                .iter()
                .map(|(rows, width)| BufDesc { name: "probe", rows: *rows, width: *width })
                .collect(),
            ops: (0..).zip(ops).map(call).collect(),
            residual: none,
            normed: none,
            logits: none,
            shard,
        };
        let ops = program.ops.len();
        let library = program.ops.first().and_then(|op| setup.target.library(&program, op, dtype));
        let kernel = library.map_or_else(|| backend.device().kernels.clone(), ToOwned::to_owned);
        let plan = backend.prepare(program, &mut Log::off()).map_err(said)?;
        backend.meet().map_err(said)?;
        let sequences = 0..u32::try_from(tokens).unwrap_or(u32::MAX);
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        let vocab = u32::try_from(config.vocab).unwrap_or(u32::MAX).max(1);
        let sequences: Vec<u32> = sequences.collect();
        // No two tokens are the same as long as there are others.
        let of_vocab = sequences.iter().map(|sequence| sequence % vocab).collect();
        let batch = Batch { tokens: of_vocab, positions: vec![position; tokens], sequences };
        Ok(Self { backend, plan, batch, ops, kernel })
    }

    /// A chain of `n` operators with as good as nothing to do.
    pub fn empty(setup: &Setup, n: usize) -> Result<Self, String> {
        let add = (OpName::ResidualAdd, OpKind::Add { x: BufId(0), delta: BufId(1) });
        Self::new(setup, model(|_| ())?, Dtype::F32, (1, 0), &[(1, 2), (1, 2)], vec![add; n])
    }

    /// The same of which every compute unit of a processor has a part, so that all of them have to be told and waited for.
    pub fn nearly_empty(setup: &Setup, n: usize) -> Result<Self, String> {
        let units = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_UNITS);
        let width = units * PIECE;
        let add = (OpName::ResidualAdd, OpKind::Add { x: BufId(0), delta: BufId(1) });
        Self::new(setup, model(|_| ())?, Dtype::F32, (1, 0), &[(1, width), (1, width)], vec![add; n])
    }

    /// Allocates memory of the device and gives it back.
    pub fn allocate(&mut self, bytes: usize) -> Result<(), String> {
        self.backend.allocate(bytes).map_err(|error| error.to_string())
    }

    /// Copies from the first buffer to the host, and waits for it.
    pub fn read(&mut self) -> Result<(), String> {
        let values = self.backend.values(self.plan, BufId(0), &mut Log::off()).map_err(|error| error.to_string())?;
        std::hint::black_box(values.as_ref());
        Ok(())
    }

    /// Copies to the first buffer from the host, and waits for it.
    pub fn write(&mut self, values: &[f32]) -> Result<(), String> {
        self.backend.set_values(self.plan, BufId(0), values).map_err(|error| error.to_string())
    }

    /// What the kernel of the first operator was built for, or the library that has it: how the names of a run's kernels end.
    pub fn kernel(&self) -> &str {
        &self.kernel
    }

    /// Operators of the program.
    pub fn ops(&self) -> usize {
        self.ops
    }

    /// Runs the program operator by operator.
    pub fn run(&mut self, log: &mut Log) -> Result<(), String> {
        self.start(Mode::Eager, log)
    }

    /// Runs the program in one go.
    pub fn replay(&mut self, log: &mut Log) -> Result<(), String> {
        self.start(Mode::Graph, log)
    }

    fn start(&mut self, mode: Mode, log: &mut Log) -> Result<(), String> {
        let said = |error: Error| error.to_string();
        self.backend.check_mode(mode).map_err(said)?;
        let tokens = self.backend.run(self.plan, &self.batch, mode, log).map_err(said)?;
        std::hint::black_box(tokens);
        self.backend.drain(self.plan, log);
        Ok(())
    }
}
