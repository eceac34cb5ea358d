//! `strato decide`: which of two platforms to take, by what each does for what it costs.

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
};

use clap::ValueEnum;
use report::{decide::json, html, screen};
use session::{Pair, Reading};

use super::{
    Global,
    comparison::{Terms, paths},
    examine::Narrowed,
    exit::Exit,
    output::Output,
    progress::Bar,
    source::Source,
    target,
    targets::Targets,
};

/// Say which of two platforms gives more tokens for what it costs, and what would have to change for the other to win.
///
/// A and B are results of serving benchmarks, captures with decode steps, or both with commas between them. Prices are declared: a
/// table [price] of the file that --declare names.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// One platform.
    #[arg(value_name = "A")]
    a: String,
    /// The other one.
    #[arg(value_name = "B")]
    b: String,
    #[command(flatten)]
    terms: Terms,
    #[command(flatten)]
    targets: Targets,
    /// Form of the page [default: term on a terminal, else md].
    #[arg(long, value_enum)]
    format: Option<Form>,
    /// Write the page to this file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print nothing; --output is still written.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    narrowed: Narrowed,
    #[command(flatten)]
    source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// One screen of a terminal: the answer, and what it rests on.
    Term,
    /// Markdown, for people.
    Md,
    /// JSON, for scripts.
    Json,
    /// A page for a browser.
    Html,
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    let inputs = [paths(&arguments.a)?, paths(&arguments.b)?];
    if let Some(output) = &arguments.output {
        inputs.iter().try_for_each(|inputs| target::check(output, inputs))?;
    }
    let lang = global.lang();
    let bar = Bar::new(lang);
    let terms = session::Terms { slo: arguments.targets.slo.clone(), ..arguments.terms.read()? };
    let reading: Reading = arguments.source.reading();
    let sessions = Pair::sessions(&inputs, &reading, &terms)?;
    let decision = session::decide(sessions, &arguments.narrowed.options(), &terms)?;
    drop(bar);
    let terminal = arguments.output.is_none() && io::stdout().is_terminal();
    let text = match arguments.format.unwrap_or(if terminal { Form::Term } else { Form::Md }) {
        Form::Term => {
            let whole = "strato decide A B --format md";
            Output::Data(screen::page::first(&decision.document(lang), lang, global.look(), whole))
        }
        Form::Md => Output::Markdown(decision.document(lang)),
        Form::Json => Output::Data(json::render(&decision, lang)?),
        Form::Html => {
            let simulated = decision.heads.iter().any(|head| head.simulated);
            Output::Data(html::document(&decision.document(lang), "A or B", simulated, lang))
        }
    };
    if arguments.output.is_some() || !arguments.quiet {
        global.deliver(&text, arguments.output.as_deref())?;
    }
    // The command is the question, and it was not answered.
    Ok(if decision.refused.is_empty() { Exit::Done } else { Exit::Refused })
}
