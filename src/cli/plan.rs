//! `strato plan`: what to run on two platforms so that they can be compared, and whether captures are that.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::{Subcommand, ValueEnum};

use super::{
    Global,
    examine::{self, Narrowed},
    exit::{Exit, Usage},
    output::Output,
    progress::Bar,
    source, target, terminal_text,
};
use diagnosis::compare::plan::{self, Asked, Plan, SCHEMA, Sought};
use report::plan as page;

/// Write the plan of an experiment on two platforms, from a first capture of each.
///
/// The plan says which controls must be equal, how often to launch, and which probes tell most. As TOML it can be checked.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    /// A first capture of the one platform, whose settings the other is to have.
    #[arg(value_name = "A", required = true)]
    a: Option<PathBuf>,
    /// A first capture of the other platform.
    #[arg(value_name = "B", required = true)]
    b: Option<PathBuf>,
    /// Smallest difference of the step that must be found, in percent.
    #[arg(long, default_value_t = 5.0, value_name = "PERCENT", value_parser = percent)]
    effect: f64,
    /// Standard deviation of launches of one side, in percent.
    #[arg(long, default_value_t = 2.0, value_name = "PERCENT", value_parser = percent)]
    noise: f64,
    /// Form of the plan.
    #[arg(long, value_enum, default_value_t = Form::Md)]
    format: Form,
    /// Write it to this file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    narrowed: Narrowed,
    #[command(flatten)]
    source: source::Reading,
}

#[derive(Debug, Subcommand)]
enum Action {
    Check(Check),
}

/// Hold captures against a plan; ends with 1 when they lack something.
#[derive(Debug, clap::Args)]
struct Check {
    /// The plan, as 'strato plan --format toml' wrote it.
    #[arg(value_name = "FILE")]
    plan: PathBuf,
    /// The captures of both platforms.
    #[arg(required = true, value_name = "CAPTURE")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    source: source::Reading,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Markdown, for people.
    Md,
    /// TOML, for 'strato plan check'.
    Toml,
}

fn percent(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("'{text}' is no number of percent, such as 5"))?;
    if value > 0.0 && value <= 100.0 { Ok(value) } else { Err(format!("'{text}' is not above 0 and up to 100")) }
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    let (a, b) = match (&arguments.action, &arguments.a, &arguments.b) {
        (Some(Action::Check(wanted)), ..) => return check(global, wanted),
        (None, Some(a), Some(b)) => (a, b),
        (None, ..) => {
            return Err(Usage("a plan needs a first capture of each platform: strato plan A B".to_owned()).into());
        }
    };
    if let Some(output) = &arguments.output {
        target::check(output, &[a.clone(), b.clone()])?;
    }
    let packs = arguments.source.packs()?;
    let bar = Bar::new();
    let read = |path: &PathBuf| -> anyhow::Result<_> {
        let traces = source::open_with(std::slice::from_ref(path), &arguments.source, &packs, &bar)?;
        let first = arguments.narrowed.analyze(traces, &packs, |_| ())?.into_iter().next();
        first.ok_or_else(|| Usage(format!("'{}' holds no capture; name another", path.display())).into())
    };
    let ((trace_a, analysis_a), (trace_b, analysis_b)) = (read(a)?, read(b)?);
    drop(bar);
    let sought = Sought { effect: arguments.effect / 100.0, noise: arguments.noise / 100.0 };
    let plan = Plan::of((&trace_a, &analysis_a), (&trace_b, &analysis_b), sought).ok_or_else(|| {
        Usage("the two captures have no steps of one stage that count; record decode steps on both".to_owned())
    })?;
    let text = match arguments.format {
        Form::Md => Output::Document(page::document(&plan, global.lang())),
        Form::Toml => {
            let asked = Asked::of(&plan).ok_or_else(|| {
                Usage(format!(
                    "no number of launches that a plan asks for shows {} % where launches differ by {} %; seek a larger \
                     --effect, or make the machine quieter",
                    arguments.effect, arguments.noise
                ))
            })?;
            Output::Data(toml::to_string_pretty(&asked)?)
        }
    };
    global.deliver(&text, arguments.output.as_deref())?;
    Ok(Exit::Done)
}

/// Reads a plan.
///
/// # Errors
/// What is no plan, with the next step.
pub(super) fn read(plan: &Path) -> Result<Asked, Usage> {
    let file = plan.display();
    let text = std::fs::read_to_string(plan)
        .map_err(|e| Usage(format!("cannot read '{file}': {e}; name what 'strato plan --format toml' wrote")))?;
    let asked: Asked = toml::from_str(&text)
        .map_err(|e| Usage(format!("'{file}': {}; write it with 'strato plan --format toml'", e.message())))?;
    if asked.schema != SCHEMA {
        return Err(Usage(format!("'{file}' is no plan ('schema' is not {SCHEMA}); write one with 'strato plan'")));
    }
    if let Some(key) = asked.controls.keys().find(|key| model::manifest::field(key).is_none()) {
        return Err(Usage(format!(
            "'{file}': '{key}' is no field of the manifest; 'strato manifest show CAPTURE' lists them"
        )));
    }
    Ok(asked)
}

fn check(global: &Global, arguments: &Check) -> anyhow::Result<Exit> {
    let asked = read(&arguments.plan)?;
    let packs = arguments.source.packs()?;
    let mut traces = source::open_with(&arguments.paths, &arguments.source, &packs, &Bar::new())?;
    for trace in &mut traces {
        examine::shown(trace, &packs);
    }
    let unmet = plan::check(&asked, &traces);
    let mut out = io::stdout().lock();
    for lack in &unmet {
        writeln!(out, "{}", terminal_text::plain(&page::unmet(lack, global.lang())))?;
    }
    Ok(if unmet.is_empty() { Exit::Done } else { Exit::Findings })
}
