//! `strato run`: the reference decode engine on a device of this machine, and a capture of what it did.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::ValueEnum;
use collectors::{engine_run, host::Host};
use engine::{
    Checkpoint, Config, Dtype, KvLayout, PRESETS, Source, Synthetic,
    cpu::Isa,
    preset,
    program::Level,
    record::Log,
    run::{Engine, Mode, RunOptions, StepDone},
};
use model::{Trace, TraceBuilder};
use serde_json::json;

use super::{
    Global,
    exit::{Exit, Missing, Usage},
    say, target,
};
use crate::store;

/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(2);

/// Run the reference decode engine and leave a capture of it.
///
/// The model is a named shape with weights made from the names of its tensors, or the directory of a Hugging Face
/// checkpoint of Llama, Qwen2 or Qwen3. The same command gives the same tokens.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Device to run on.
    #[arg(long, value_enum, default_value_t = Backend::Cpu)]
    backend: Backend,
    #[command(flatten)]
    pub(super) what: What,
    /// Capture file to write; an earlier capture file of that name is replaced.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
    /// Print nothing but errors.
    #[arg(short, long)]
    quiet: bool,
}

/// What is run.
#[derive(Debug, clap::Args)]
pub struct What {
    /// Named shape, or directory of a checkpoint.
    #[arg(long, default_value = "qwen2.5-0.5b", value_name = "NAME|DIR")]
    model: String,
    /// Type of the weights.
    #[arg(long, value_enum, default_value_t = Weights::Bf16)]
    dtype: Weights,
    /// Sequences that are decoded together.
    #[arg(long, default_value_t = 1, value_name = "N")]
    batch: usize,
    /// Tokens of the prompt.
    #[arg(long, default_value_t = 64, value_name = "N")]
    prompt_len: usize,
    /// Tokens to generate.
    #[arg(long, default_value_t = 64, value_name = "N")]
    r#gen: usize,
    /// How a decode step is started: operator by operator, or all at once.
    #[arg(long, value_enum, default_value_t = Start::Eager)]
    mode: Start,
    /// How operators are divided.
    #[arg(long, value_enum, default_value_t = Division::Canonical)]
    level: Division,
    /// Tokens of a block of the KV cache; without it the cache of a sequence is one block.
    #[arg(long, value_name = "TOKENS")]
    kv_block: Option<usize>,
    /// Threads [default: one per core].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Instruction set of the kernels [default: the best of this processor].
    #[arg(long, value_enum)]
    isa: Option<Instructions>,
}

impl Default for What {
    /// What the command line gives without options.
    fn default() -> Self {
        Self {
            model: "qwen2.5-0.5b".to_owned(),
            dtype: Weights::Bf16,
            batch: 1,
            prompt_len: 64,
            r#gen: 64,
            mode: Start::Eager,
            level: Division::Canonical,
            kv_block: None,
            threads: None,
            isa: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Backend {
    Cpu,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Weights {
    F32,
    F16,
    Bf16,
    Q8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Start {
    Eager,
    Graph,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Division {
    Canonical,
    Fused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Instructions {
    Portable,
    Avx2,
}

impl What {
    fn options(&self) -> RunOptions {
        let default = RunOptions::default();
        RunOptions {
            dtype: match self.dtype {
                Weights::F32 => Dtype::F32,
                Weights::F16 => Dtype::F16,
                Weights::Bf16 => Dtype::Bf16,
                Weights::Q8 => Dtype::Q8,
            },
            mode: if self.mode == Start::Graph { Mode::Graph } else { Mode::Eager },
            level: if self.level == Division::Fused { Level::Fused } else { Level::Canonical },
            layout: self.kv_block.map_or(KvLayout::Contiguous, KvLayout::Paged),
            batch: self.batch,
            prompt: self.prompt_len,
            // The prompt's own pass gives the first token.
            steps: self.r#gen.saturating_sub(1),
            threads: self.threads.unwrap_or(default.threads),
            isa: match self.isa {
                Some(Instructions::Portable) => Isa::Portable,
                Some(Instructions::Avx2) => Isa::Avx2,
                None => default.isa,
            },
        }
    }

    fn source(&self) -> anyhow::Result<(Config, Box<dyn Source>)> {
        if let Some(config) = preset(&self.model) {
            return Ok((config, Box::new(Synthetic)));
        }
        let directory = Path::new(&self.model);
        if !directory.is_dir() {
            return Err(Usage(format!(
                "'{}' is neither a directory nor a named shape; the shapes are {}",
                self.model,
                PRESETS.join(", ")
            ))
            .into());
        }
        Ok((Config::read(&directory.join("config.json"))?, Box::new(Checkpoint::open(directory)?)))
    }
}

/// What a run gave.
pub(super) struct Done {
    /// The capture.
    pub trace: Trace,
    /// Every step; the prompt is the first.
    pub steps: Vec<StepDone>,
    /// Bytes of weights that a decode step reads.
    pub bytes: usize,
}

/// Runs the engine and records it; `tell` is told of every step.
pub(super) fn capture(what: &What, mut tell: impl FnMut(&StepDone)) -> anyhow::Result<Done> {
    let (config, mut source) = what.source()?;
    let options = what.options();
    if options.threads == 0 || what.r#gen == 0 {
        return Err(Usage("a run needs at least one thread and one token to generate".to_owned()).into());
    }
    if !Isa::available().contains(&options.isa) {
        let isa = options.isa.name();
        return Err(Missing(format!("this processor has no {isa}; leave --isa out to use what it has")).into());
    }
    let bytes = options.dtype.row_bytes(config.hidden) * (config.step_parameters() / config.hidden);
    // The log's size depends on the programs, which exist only when the engine does.
    let ops = 32 * config.layers + 64;
    let mut log = Log::with_capacity(ops.saturating_mul(options.steps + 2).min(1 << 24), options.threads);
    let mut engine = Engine::new(config, &mut *source, options, &mut log)?;
    let mut steps = Vec::new();
    engine.run(&mut log, |step| {
        tell(step);
        steps.push(step.clone());
        true
    })?;
    let mut builder = TraceBuilder::new(format!("{} on this CPU", what.model), "strato");
    let facts = engine_run::Facts { model: &what.model, synthetic: preset(&what.model).is_some(), host: &Host::read() };
    engine_run::collect(&engine, &log, facts, &mut builder);
    Ok(Done { trace: builder.finish(), steps, bytes })
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    let Arguments { backend: Backend::Cpu, what, output, json, quiet } = arguments;
    if let Some(output) = &output {
        target::check(output, &[])?;
    }
    let loud = !quiet && !json;
    if loud {
        say(&format!("strato: making the weights of {} ready", what.model));
    }
    let mut told = Instant::now();
    let done = capture(&what, |step| {
        if loud && told.elapsed() > PROGRESS {
            told = Instant::now();
            say(&format!("step {}: {}", step.number, milliseconds(step.span.end - step.span.start)));
        }
    })?;
    if let Some(output) = &output {
        store::save(output, std::slice::from_ref(&done.trace))?;
        global.note(|| format!("wrote {}", output.display()));
    }
    if quiet {
        return Ok(Exit::Done);
    }
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{}", summary(&what, &done))?;
    } else {
        lines(&mut out, &what, &done, output.as_deref())?;
    }
    Ok(Exit::Done)
}

fn durations(done: &Done) -> Vec<i64> {
    let mut decode: Vec<i64> = done.steps.iter().skip(1).map(|step| step.span.end - step.span.start).collect();
    decode.sort_unstable();
    decode
}

/// The value below which so many percent lie, the lower of two.
fn percentile(sorted: &[i64], percent: usize) -> Option<i64> {
    sorted.get(sorted.len().checked_sub(1)? * percent / 100).copied()
}

fn summary(what: &What, done: &Done) -> serde_json::Value {
    let decode = durations(done);
    let sequences = 0..what.batch;
    let tokens: Vec<Vec<u32>> =
        sequences.map(|s| done.steps.iter().filter_map(|step| step.tokens.get(s).copied()).collect()).collect();
    let total: i64 = decode.iter().sum();
    let per_second = (total > 0).then(|| (decode.len() * what.batch) as f64 * 1e9 / total as f64);
    json!({
        "model": what.model,
        "backend": "cpu",
        "dtype": what.options().dtype.name(),
        "isa": what.options().isa.name(),
        "threads": what.options().threads,
        "tokens": tokens,
        "prefill_ns": done.steps.first().map(|step| step.span.end - step.span.start),
        "step_ns": { "p50": percentile(&decode, 50), "p90": percentile(&decode, 90), "p99": percentile(&decode, 99) },
        "tokens_per_second": per_second,
        "weight_bytes_per_step": done.bytes,
    })
}

fn lines(out: &mut dyn Write, what: &What, done: &Done, output: Option<&Path>) -> io::Result<()> {
    let decode = durations(done);
    let options = what.options();
    writeln!(
        out,
        "{}, {} weights, {} kernels, {} threads",
        what.model,
        options.dtype.name(),
        options.isa.name(),
        options.threads
    )?;
    if let Some(prefill) = done.steps.first().map(|step| step.span.end - step.span.start) {
        let tokens = what.batch * what.prompt_len;
        let rate = tokens as f64 * 1e9 / prefill.max(1) as f64;
        writeln!(out, "prefill  {tokens} tokens in {} ({rate:.0} tokens/s)", milliseconds(prefill))?;
    }
    let ends = (percentile(&decode, 50), percentile(&decode, 90), percentile(&decode, 99));
    if let (Some(p50), Some(p90), Some(p99)) = ends {
        let rate = what.batch as f64 * 1e9 / p50.max(1) as f64;
        let bandwidth = done.bytes as f64 / p50.max(1) as f64;
        writeln!(
            out,
            "decode   {} steps, p50 {}, p90 {}, p99 {} ({rate:.1} tokens/s, weights at {bandwidth:.1} GB/s)",
            decode.len(),
            milliseconds(p50),
            milliseconds(p90),
            milliseconds(p99)
        )?;
    }
    match output {
        Some(path) => writeln!(out, "wrote {}", super::terminal_text::plain(&path.display().to_string())),
        None => Ok(()),
    }
}

fn milliseconds(ns: i64) -> String {
    format!("{:.2} ms", ns as f64 / 1e6)
}
