//! `strato manifest`: what captures say of themselves, and what a person adds to that.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::{
    Global,
    exit::{Exit, Usage},
    output::Output,
    progress::Bar,
    source::Source,
    target,
};
use diagnosis::platform::Packs;
use report::manifest;
use session::{Declaration, Session};
use tracing::info;

/// Show what a capture says of itself, field by field, or declare what it does not say.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Show(Show),
    Edit(Edit),
}

/// Show every field of the manifest: its value, and whether that was observed, declared, simulated or is unknown.
#[derive(Debug, clap::Args)]
struct Show {
    /// Trace files, profiler output directories or capture files.
    #[arg(required = true, value_name = "CAPTURE")]
    paths: Vec<PathBuf>,
    /// Form of the report.
    #[arg(long, value_enum, default_value_t = Form::Md)]
    format: Form,
    /// Write it to this file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    source: Source,
}

/// Write declared fields into a capture file. What the capture shows of itself stays; saying otherwise is an error.
#[derive(Debug, clap::Args)]
struct Edit {
    /// Capture file; what it declared of these fields before is replaced, in every capture that it holds.
    #[arg(value_name = "CAPTURE")]
    path: PathBuf,
    /// Declaration file: a TOML file whose table [both] has fields of the manifest as its keys.
    #[arg(long, value_name = "FILE")]
    declare: PathBuf,
    /// Take the table of this side of a comparison too.
    #[arg(long, value_enum)]
    side: Option<DeclaredSide>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Markdown, for people.
    Md,
    /// JSON, for scripts.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DeclaredSide {
    /// Table [a].
    A,
    /// Table [b].
    B,
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    match arguments.action {
        Action::Show(show) => self::show(global, &show),
        Action::Edit(edit) => self::edit(&edit),
    }
}

fn show(global: &Global, arguments: &Show) -> anyhow::Result<Exit> {
    if let Some(output) = &arguments.output {
        target::check(output, &arguments.paths)?;
    }
    let bar = Bar::new(global.lang());
    let captures = Session::open(&arguments.paths, &arguments.source.reading())?.manifests();
    drop(bar);
    let text = match arguments.format {
        Form::Md => Output::Document(manifest::document(&captures, global.lang())),
        Form::Json => Output::Data(manifest::json(&captures)?),
    };
    global.deliver(&text, arguments.output.as_deref())?;
    Ok(Exit::Done)
}

fn edit(arguments: &Edit) -> anyhow::Result<Exit> {
    let declared = Declaration::read(&arguments.declare)?;
    if arguments.side.is_none() && !declared.is_same_for_both() {
        return Err(Usage(format!(
            "'{}' says different things of two sides; choose one for this capture with --side a or --side b",
            arguments.declare.display()
        ))
        .into());
    }
    let side = usize::from(arguments.side == Some(DeclaredSide::B));
    // Refuses what a capture contradicts before anything is written.
    let packs = Packs::embedded().map_err(|e| Usage(e.to_string()))?;
    let shown = Session::of(store::load(&arguments.path)?, packs).manifests();
    shown.into_iter().try_for_each(|(mut trace, _)| declared.apply(side, &mut trace))?;
    let fields = declared.of(side);
    store::declare(&arguments.path, &fields)?;
    info!(target: "strato", "{} fields declared in {}", fields.len(), arguments.path.display());
    Ok(Exit::Done)
}
