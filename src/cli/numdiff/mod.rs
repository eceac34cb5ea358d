//! `strato numdiff`: two runs of the reference engine, operator by operator, and the first operator that makes a difference
//! which neither its input nor its precision explains.

use std::path::PathBuf;

use clap::ValueEnum;
use engine::{
    inject::REGISTRY,
    numdiff::{Comparison, Verdict},
    run::RunOptions,
};

use super::{
    Global,
    decode::DecodeArgs,
    deviation::compared,
    exit::{Exit, Usage},
    memory,
    output::Output,
    say, target,
};

mod json;
mod page;

/// Compare the numbers of two runs of the reference engine, operator by operator.
///
/// A and B are each described by words with commas between them: the type of the weights (f32, f16, bf16, q8), how operators
/// are divided (composite, canonical, fused), the instruction set, how steps start (eager, graph), kv-block=N, threads=N,
/// model=NAME|DIR. A is the reference: both get its tokens. Ends with code 1 when the runs diverge, or when either gives NaN
/// or infinity.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The reference.
    #[arg(default_value = "f32")]
    a: String,
    /// What is held against it.
    #[arg(default_value = "bf16")]
    b: String,
    /// Named shape, or directory of a checkpoint.
    #[arg(long, default_value = "tiny", value_name = "NAME|DIR")]
    model: String,
    /// Sequences that are decoded together.
    #[arg(long, default_value_t = 1, value_name = "N")]
    batch: usize,
    /// Tokens of the prompt.
    #[arg(long, default_value_t = 16, value_name = "N")]
    prompt_len: usize,
    /// The prompt itself, as token ids or a file of them; see 'strato run'.
    #[arg(long, value_name = "IDS|FILE", conflicts_with = "prompt_len")]
    prompt_ids: Option<String>,
    /// Tokens to generate.
    #[arg(long, default_value_t = 9, value_name = "N")]
    r#gen: usize,
    /// What the weights of named shapes and made prompts begin with.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Put a fault into B, NAME or NAME:key=value,…; 'strato run --inject help' lists them. Can be given several times.
    #[arg(long, value_name = "NAME")]
    inject: Vec<String>,
    /// Bytes that the comparison may take of this machine's memory, such as 8G; one that needs more is refused before it begins
    /// [default: what is free].
    #[arg(long, value_name = "SIZE", value_parser = memory::size)]
    max_memory: Option<u64>,
    /// List every operator of every layer.
    #[arg(long)]
    all: bool,
    /// Form of the output.
    #[arg(long, value_enum, default_value_t = Form::Md)]
    format: Form,
    /// Write the output to this file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print nothing but the comparison and errors.
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Markdown, for people.
    Md,
    /// JSON, for scripts.
    Json,
}

/// A comparison with what was compared.
struct Done {
    model: String,
    seed: u64,
    sides: [RunOptions; 2],
    comparison: Comparison,
}

/// Words for a side, the same whatever order they were given in.
fn described(options: &RunOptions) -> String {
    let mut words = vec![options.dtype.name().to_owned(), format!("{:?}", options.level).to_lowercase()];
    words.push(options.isa.name().to_owned());
    words.push(format!("{:?}", options.mode).to_lowercase());
    if let engine::KvLayout::Paged(block) = options.layout {
        words.push(format!("kv-block={block}"));
    }
    words.extend(options.faults.asked.iter().cloned());
    words.join(", ")
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    let Arguments { a, b, model, batch, prompt_len, prompt_ids, r#gen, seed, inject, .. } = arguments;
    if let Some(output) = &arguments.output {
        target::check(output, &[])?;
    }
    let mut common = DecodeArgs::plain(model, seed);
    (common.batch, common.prompt_len, common.prompt_ids, common.r#gen) = (batch, prompt_len, prompt_ids, r#gen);
    common.max_memory = arguments.max_memory;
    let mut sides = [common.side(&a)?, common.side(&b)?];
    for text in &inject {
        let name = text.split(':').next().unwrap_or_default();
        if REGISTRY.iter().any(|injection| injection.is_timing && injection.name == name) {
            let why = "it changes times, and numbers are compared here; leave it out, or give it to 'strato run'";
            return Err(Usage(format!("injection '{name}' changes nothing in this comparison: {why}")).into());
        }
    }
    sides[1].inject = inject;
    if !arguments.quiet {
        say(&format!("strato: making the weights of {} ready", sides[0].model));
    }
    let (options, comparison) =
        compared(&sides, |step, of| tracing::info!(target: "strato", "step {step} of {of} is compared"))?;
    let verdict = comparison.verdict();
    let done = Done { model: common.model, seed, sides: options, comparison };
    let text = match arguments.format {
        Form::Md => Output::Document(page::document(&done, global.lang(), arguments.all)),
        Form::Json => Output::Data(format!("{:#}\n", json::document(&done))),
    };
    global.deliver(&text, arguments.output.as_deref())?;
    Ok(match verdict {
        Verdict::Equal | Verdict::WithinPrecision => Exit::Done,
        Verdict::Grown | Verdict::Faulty | Verdict::NotFinite => Exit::Findings,
    })
}
