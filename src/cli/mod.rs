//! The command line: one definition, from which help, man pages and completions are generated, and one file per
//! subcommand. A new subcommand is a file with `Arguments` and `run`, a line in `Command` and a line in [`run`].

pub mod exit;
pub mod feed;
pub mod output;
pub mod progress;
pub mod source;
pub mod target;
mod targets;
pub mod terminal_text;

mod backend;
mod bound;
mod ceilings;
mod comparison;
mod completions;
mod decide;
mod decode;
mod deviation;
mod device_counters;
mod devices;
mod diagnose;
mod diff;
mod doctor;
mod ended;
mod examine;
mod explain;
mod export;
mod fail_on;
mod first_run;
mod heap;
mod import;
mod interface;
mod logging;
mod man;
mod manifest;
mod memory;
mod numdiff;
mod page;
mod plan;
mod plan_file;
mod probe;
mod record;
mod recording;
mod results;
mod rules;
mod run;
mod samples;
mod scratch;
mod self_trace;
mod selftest;
mod showing;
mod sql;
mod top;
mod unread;
mod verify;
mod view;
mod whole_file;

use std::io::{self, IsTerminal, Write};

use clap::{
    Parser, Subcommand, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};

use exit::Exit;
pub use heap::give_memory_back;

use diagnosis::i18n::Lang;

/// Separates each LLM decode step on any accelerator into operator, runtime and communication time.
#[derive(Debug, Parser)]
#[command(name = "strato", version, max_term_width = 100, subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Options of every subcommand.
#[derive(Clone, Debug, clap::Args)]
pub struct Global {
    /// When to colour the output; the variable NO_COLOR counts as 'never' for 'auto'.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    color: Color,
    /// Language of reports [default: from LC_ALL, LC_MESSAGES or LANG].
    #[arg(long, global = true, value_parser = language())]
    lang: Option<Lang>,
    #[command(flatten)]
    logging: logging::Logging,
}

/// Reads the name of a language.
fn language() -> impl TypedValueParser<Value = Lang> {
    PossibleValuesParser::new([
        PossibleValue::new("en").help("English"),
        PossibleValue::new("zh").help("Simplified Chinese"),
    ])
    .map(|name| if name == "zh" { Lang::Zh } else { Lang::En })
}

/// Writes a line to stderr. That nobody reads it is no reason to stop.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{}", terminal_text::plain(line));
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

impl Global {
    /// Whether text for this stream is coloured.
    pub fn paints(&self, stream: &impl IsTerminal) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
                stream.is_terminal() && !refused && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
            }
        }
    }

    /// The language asked for, else that of the environment, else English.
    pub fn lang(&self) -> Lang {
        self.lang.unwrap_or_else(|| Lang::from_locale(|name| std::env::var(name).ok()))
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    Diagnose(diagnose::Arguments),
    Diff(diff::Arguments),
    Decide(decide::Arguments),
    View(view::Arguments),
    Export(export::Arguments),
    Run(run::Arguments),
    Record(record::Arguments),
    Top(top::Arguments),
    Numdiff(numdiff::Arguments),
    Plan(plan::Arguments),
    Probe(probe::Arguments),
    Import(import::Arguments),
    Manifest(manifest::Arguments),
    Sql(sql::Arguments),
    Verify(verify::Arguments),
    Explain(explain::Arguments),
    Rules(rules::Arguments),
    Doctor(doctor::Arguments),
    Selftest(selftest::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// Runs the subcommand that was asked for.
///
/// # Errors
/// Whatever stopped it; [`exit::code`] knows the exit code that belongs to it.
pub fn run(cli: Cli) -> anyhow::Result<Exit> {
    let ending = cli.global.logging.start()?;
    // The span is closed before the trace that holds it is written.
    let exit = tracing::info_span!(target: "strato", "command").in_scope(|| dispatch(&cli.global, cli.command));
    match (exit, ending.finish()) {
        // What stopped the command is told, not what became of the trace beside it.
        (Err(error), _) => Err(error),
        (exit, finished) => finished.and(exit),
    }
}

fn dispatch(global: &Global, command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Diagnose(arguments) => diagnose::run(global, arguments),
        Command::Diff(arguments) => diff::run(global, arguments),
        Command::Decide(arguments) => decide::run(global, arguments),
        Command::View(arguments) => view::run(global, arguments),
        Command::Export(arguments) => export::run(global, arguments),
        Command::Run(arguments) => run::run(global, arguments),
        Command::Record(arguments) => record::run(global, arguments),
        Command::Top(arguments) => top::run(global, arguments),
        Command::Numdiff(arguments) => numdiff::run(global, arguments),
        Command::Plan(arguments) => plan::run(global, arguments),
        Command::Probe(arguments) => probe::run(global, arguments),
        Command::Import(arguments) => import::run(global, arguments),
        Command::Manifest(arguments) => manifest::run(global, arguments),
        Command::Sql(arguments) => sql::run(arguments),
        Command::Verify(arguments) => verify::run(global, &arguments),
        Command::Explain(arguments) => explain::run(global, arguments),
        Command::Rules(arguments) => rules::run(global, arguments),
        Command::Doctor(arguments) => doctor::run(global, arguments),
        Command::Selftest(arguments) => selftest::run(global, arguments),
        Command::Completions(arguments) => completions::run(arguments),
        Command::Man(arguments) => man::run(arguments),
    }
}
