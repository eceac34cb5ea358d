//! `strato diff`: two captures of the same work beside each other, or the reason why they may not be.

mod gate;

use std::path::PathBuf;

use clap::ValueEnum;

use diagnosis::{analysis::Options, i18n::Lang};
use report::diff::{declaration, json};
use session::{Pair, Reading};

use super::{
    Global,
    comparison::{Terms, paths, twice},
    examine::Narrowed,
    exit::Exit,
    output::Output,
    progress::Bar,
    say,
    source::Source,
    target,
};

/// Say whether two captures may be compared, and which part of the step makes the difference.
///
/// A and B are trace files, profiler output directories or capture files; several runs of one side are given with commas
/// between them. B is held against A: what B takes longer is positive.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// What is compared from.
    #[arg(value_name = "A")]
    a: String,
    /// What is compared to.
    #[arg(value_name = "B")]
    b: String,
    #[command(flatten)]
    terms: Terms,
    /// Form of the report.
    #[arg(long, value_enum, default_value_t = Form::Md)]
    format: Form,
    /// Write the report to this file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    gate: gate::Gate,
    /// Print nothing; the exit code says it, and --output is still written.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    narrowed: Narrowed,
    /// Only this step of both sides.
    #[arg(long, value_name = "N", conflicts_with = "steps")]
    iteration: Option<u32>,
    /// Model that ran on both sides: the name of a known one, or its config.json.
    #[arg(long, value_name = "NAME|PATH")]
    model: Option<String>,
    #[command(flatten)]
    source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Markdown, for people.
    Md,
    /// JSON, for scripts.
    Json,
    /// A declaration file with what is known of the two and what is still open.
    Toml,
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    let inputs = [paths(&arguments.a)?, paths(&arguments.b)?];
    if let Some(output) = &arguments.output {
        inputs.iter().try_for_each(|inputs| target::check(output, inputs))?;
    }
    let baseline = arguments.gate.baseline()?;
    let bar = Bar::new(global.lang());
    let terms = arguments.terms.read()?;
    let reading = Reading { model: arguments.model.clone(), ..arguments.source.reading() };
    let narrowed = arguments.narrowed.options();
    let options = Options { steps: arguments.iteration.map(|n| (n, n)).or(narrowed.steps), ..narrowed };
    let pair = Pair::open(&inputs, &reading, &options, &terms)?;
    for source in pair.twice() {
        say(&format!("strato: {}", twice(source, Lang::En)));
    }
    let report = arguments.gate.ask(pair.compare(&terms)?, &baseline)?;
    drop(bar);
    let lang = global.lang();
    let text = match arguments.format {
        Form::Md => Output::Document(report.document(lang)),
        Form::Json => Output::Data(json::render(&report, lang)?),
        Form::Toml => Output::Data(declaration::render(&report, lang)),
    };
    if arguments.output.is_some() || !arguments.quiet {
        global.deliver(&text, arguments.output.as_deref())?;
    }
    Ok(gate::Gate::judge(&report))
}
