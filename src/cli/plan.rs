//! `strato plan`: what to run on two platforms so that they can be compared, and whether captures are that.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::{Subcommand, ValueEnum};
use model::Trace;
use session::Session;

use super::{
    Global,
    examine::Narrowed,
    exit::{Exit, Usage},
    output::Output,
    plan_file,
    progress::Bar,
    say,
    source::Source,
    target, terminal_text,
};
use diagnosis::compare::{
    plan::{self, Asked, Plan, Sought},
    statistics::Floor,
};
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
    /// Standard deviation of launches of one side, in percent [default: what the captures say of their launches, the larger of
    /// the two; else 2].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    noise: Option<f64>,
    /// Form of the plan.
    #[arg(long, value_enum, default_value_t = Form::Md)]
    format: Form,
    /// Write it to this file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    narrowed: Narrowed,
    #[command(flatten)]
    source: Source,
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
    source: Source,
}

/// Standard deviation of launches where nobody has measured it, percent: what quiet machines show.
const NOISE: f64 = 2.0;

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
    let bar = Bar::new(global.lang());
    let read = |path: &PathBuf| -> anyhow::Result<_> {
        let session = Session::open(std::slice::from_ref(path), &arguments.source.reading())?;
        let first = session.examine(&arguments.narrowed.options())?.into_captures().into_iter().next();
        let first = first.map(|capture| (capture.trace, capture.analysis));
        first.ok_or_else(|| Usage(format!("'{}' holds no capture; name another", path.display())).into())
    };
    let ((trace_a, analysis_a), (trace_b, analysis_b)) = (read(a)?, read(b)?);
    drop(bar);
    let measured = [&trace_a, &trace_b].into_iter().filter_map(|trace| Floor::read(trace.manifest.value(Floor::FACT)?));
    let measured = measured
        .map(|floor| 100.0 * floor.deviation)
        .fold(None, |most: Option<f64>, one| Some(most.map_or(one, |most| most.max(one))));
    if let Some(measured) = measured.filter(|_| arguments.noise.is_none()) {
        say(&format!("strato: launches differ by {measured:.1} %, as the captures say; --noise sets another"));
    }
    let noise = arguments.noise.or(measured).unwrap_or(NOISE);
    let sought = Sought { effect: arguments.effect / 100.0, noise: noise / 100.0 };
    let plan = Plan::of((&trace_a, &analysis_a), (&trace_b, &analysis_b), sought).ok_or_else(|| {
        Usage("the two captures have no steps of one stage that count; record decode steps on both".to_owned())
    })?;
    let text = match arguments.format {
        Form::Md => Output::Document(page::document(&plan, global.lang())),
        Form::Toml => {
            let asked = Asked::of(&plan).ok_or_else(|| {
                Usage(format!(
                    "no number of launches that a plan asks for shows {} % where launches differ by {noise:.1} %; seek a larger \
                     --effect, or make the machine quieter",
                    arguments.effect
                ))
            })?;
            Output::Data(toml::to_string_pretty(&asked)?)
        }
    };
    global.deliver(&text, arguments.output.as_deref())?;
    Ok(Exit::Done)
}

fn check(global: &Global, arguments: &Check) -> anyhow::Result<Exit> {
    let asked = plan_file::read(&arguments.plan)?;
    let bar = Bar::new(global.lang());
    let captures = Session::open(&arguments.paths, &arguments.source.reading())?.manifests();
    drop(bar);
    let traces: Vec<Trace> = captures.into_iter().map(|(trace, _)| trace).collect();
    let unmet = plan::check(&asked, &traces);
    let mut out = io::stdout().lock();
    for lack in &unmet {
        writeln!(out, "{}", terminal_text::plain(&page::unmet(lack, global.lang())))?;
    }
    Ok(if unmet.is_empty() { Exit::Done } else { Exit::Findings })
}
