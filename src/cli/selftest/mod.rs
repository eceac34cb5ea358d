//! `strato selftest`: how often the diagnosis is right, measured on simulated runs whose truth is known.
//!
//! | module | owns |
//! | --- | --- |
//! | [`plan`] | which runs |
//! | [`subject`] | one run, simulated, written and read back |
//! | [`worth`] | what following a finding would really bring |
//! | [`deprive`] | the same capture with evidence taken away |
//! | [`answer`] | what was said, beside the truth |
//! | [`examine`] | one run from simulation to answer |
//! | [`score`] | scores of many runs |
//! | [`miss`] | what was said that is not so |
//! | [`calibrate`] | false alarms of each rule as its threshold rises |
//! | [`serving`] | runs that serve, with churn and without |
//! | [`figures`] | scores by name, and what changed since a file of them |
//! | [`page`], [`json`] | the two forms |

mod answer;
mod calibrate;
mod deprive;
mod examine;
mod figures;
mod json;
mod miss;
mod page;
mod plan;
mod score;
mod serving;
mod subject;
mod worth;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Instant, SystemTime},
};

use clap::ValueEnum;
use rayon::prelude::*;
use simulator::FaultKind;

use super::{
    Global,
    exit::{Exit, Usage},
    output::{self, Output},
    say,
};
use diagnosis::platform::Packs;
use examine::{Depth, Examined};
use plan::{Case, Wish};
use report::units;
use score::Score;

/// Rounds of serving: a hundred healthy runs and more. And those with `--full`.
const SERVING: usize = 2;
const FULL_SERVING: usize = 20;
/// What stands for serving alone.
const SERVING_KEY: &str = "serving";

/// Rounds without `--full`.
const ROUNDS: usize = 1;
/// Runs when nothing else is asked for: what two cores examine within a minute.
const RUNS: usize = 120;
/// Rounds with `--full`: every fault at every magnitude with each number of ranks from ten seeds that issue eagerly and ten
/// that use graphs, where the fault leaves the choice.
const FULL_ROUNDS: usize = 60;
/// Evidence is taken away in every so manieth run: those runs take several times as long.
const POORER: usize = 5;
/// The run without its faults is read too beside every so manieth run.
const TWIN: usize = 2;
/// How many times rarer both are with `--full`, which has enough of them then.
const RARER: usize = 4;

/// Show how often the diagnosis is right, on simulated runs whose truth is known.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Examine many more runs; takes some 90 times as long.
    #[arg(long)]
    full: bool,
    /// Seed of the first round; round n uses the n-th seed after it.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Rounds: each has every fault at every magnitude once [default: 1, with --full 60].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
    /// Only this fault, such as layer_sync, these together, such as gc+full_sort, 'healthy', or 'serving' for the runs with
    /// requests that come and go and nothing else (may be given several times).
    #[arg(long, value_name = "FAULT", value_parser = only)]
    only: Vec<Only>,
    /// Rounds of serving, each with every kind of healthy serving and every fault of it, with churn and without [default: 2,
    /// with --full 20, none with --runs, --rounds or a fault in --only].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    serving: Option<u32>,
    /// Of the runs that serve, only those with this in their name, such as low_clock-medium-ampere or healthy.
    #[arg(long, value_name = "TEXT")]
    named: Option<String>,
    /// Ranks of every run [default: 1, 2 and 4 in turn].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    ranks: Option<u16>,
    /// Examine only so many of these runs, evenly chosen [default: 120, all with --full, --rounds or --only].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Write every run in this format, as a run of a platform that the format knows [default: Kineto files, and some exports of
    /// Nsight Systems].
    #[arg(long, value_enum, value_name = "FORMAT")]
    captures: Option<subject::Form>,
    /// Keep the captures in this directory, for 'strato diagnose'.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Form of the report.
    #[arg(long, value_enum, default_value_t = Form::Md)]
    format: Form,
    /// Write the report to this file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write how often each rule is wrong as its threshold rises to this CSV file.
    #[arg(long, value_name = "FILE")]
    calibrate: Option<PathBuf>,
    /// Compare with the JSON report of an earlier version; end with exit code 1 when a figure fell.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Markdown, for people.
    Md,
    /// JSON, for scripts.
    Json,
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    let lang = global.lang();
    let before = arguments.against.as_deref().map(baseline).transpose()?;
    let packs = Packs::embedded().map_err(|e| Usage(e.to_string()))?;
    let only: Vec<Vec<FaultKind>> = arguments.only.iter().filter_map(Only::faults).collect();
    let serving_alone = arguments.only.contains(&Only::Serving) && only.is_empty();
    let cases = plan::rounds(&Wish {
        only,
        seed: arguments.seed,
        ranks: arguments.ranks.map(usize::from),
        rounds: arguments.rounds.map_or(if arguments.full { FULL_ROUNDS } else { ROUNDS }, |n| n as usize),
        in_turn: arguments.full,
    });
    let chosen = arguments.full || arguments.rounds.is_some() || !arguments.only.is_empty();
    let runs = arguments.runs.map_or(if chosen { usize::MAX } else { RUNS }, |n| n as usize);
    let cases = if serving_alone { Vec::new() } else { evenly(cases, runs) };
    let start = Instant::now();
    let runs = examine_all(&cases, &arguments, &packs)?;
    let served = serve(&arguments, &packs)?;
    tracing::info!(target: "strato", "{} runs in {:.1} s", runs.len(), start.elapsed().as_secs_f64());
    let score = Score::of(&runs);
    let mut figures = figures::of(&score);
    figures.extend(served.as_ref().map(figures::of_serving).unwrap_or_default());
    let text = match (arguments.format, &served) {
        (Form::Md, Some(served)) if serving_alone => {
            Output::Document(serving::page::alone(served, arguments.seed, lang))
        }
        (Form::Md, served) => {
            let mut document = page::document(&score, arguments.seed, lang);
            if let Some(served) = served {
                serving::page::write(&mut document, served, lang);
            }
            Output::Document(document)
        }
        (Form::Json, served) => Output::Data(json::render(&score, served.as_ref(), &figures, arguments.seed)?),
    };
    if let Some(path) = &arguments.calibrate {
        output::write(path, &calibrate::curves(&runs, arguments.seed, &today()))?;
    }
    global.deliver(&text, arguments.output.as_deref())?;
    let changes = before.map_or_else(Vec::new, |before| figures::changes(&before, &figures));
    for change in &changes {
        let now = change.now.map_or_else(|| "gone".to_owned(), |now| format!("{now:.4}"));
        let how = if change.fell {
            "FELL"
        } else if change.worse {
            "worse"
        } else {
            "better"
        };
        say(&format!("{how:6} {} {:.4} -> {now}", change.name, change.before));
    }
    Ok(if changes.iter().any(|change| change.fell) { Exit::Findings } else { Exit::Done })
}

/// The date in UTC.
fn today() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    units::utc(i64::try_from(since.as_nanos()).unwrap_or(0)).chars().take("2000-01-01".len()).collect()
}

/// At most `most` of the runs, evenly chosen.
fn evenly(cases: Vec<Case>, most: usize) -> Vec<Case> {
    let (all, most) = (cases.len(), most.min(cases.len()));
    let chosen = |i: &usize| i * most / all != (i + 1) * most / all;
    cases.into_iter().enumerate().filter(|(i, _)| chosen(i)).map(|(_, case)| case).collect()
}

/// Examines every run, as many at a time as there are cores; at most that many captures are in memory.
fn examine_all(cases: &[Case], arguments: &Arguments, packs: &Packs) -> anyhow::Result<Vec<Examined>> {
    let (form, keep) = (arguments.captures, arguments.keep.as_deref());
    let rarer = if arguments.full { RARER } else { 1 };
    let one = |(i, case): (usize, &Case)| {
        let depth = Depth { twin: i % (rarer * TWIN) == 0, losses: i % (rarer * POORER) == 0, form };
        examine::examine(case, depth, keep, packs)
    };
    cases.par_iter().enumerate().map(one).collect()
}

/// Examines the runs that serve, if any are asked for.
fn serve(arguments: &Arguments, packs: &Packs) -> anyhow::Result<Option<serving::score::Score>> {
    let others = arguments.runs.is_some() || arguments.rounds.is_some() || !arguments.only.is_empty();
    let rounds = match arguments.serving {
        Some(rounds) => rounds as usize,
        None if others && !arguments.only.contains(&Only::Serving) => 0,
        None if arguments.full => FULL_SERVING,
        None => SERVING,
    };
    if rounds == 0 {
        return Ok(None);
    }
    let mut cases = serving::rounds(arguments.seed, rounds);
    if let Some(named) = &arguments.named {
        cases.retain(|case| case.name().contains(named.as_str()));
        if cases.is_empty() {
            let all = serving::rounds(arguments.seed, 1);
            let like = all.first().map(serving::Case::name).unwrap_or_default();
            return Err(Usage(format!("no run that serves has '{named}' in its name; names look like '{like}'")).into());
        }
    }
    let one = |case: &serving::Case| serving::examine::examine(case, arguments.keep.as_deref(), packs);
    let runs: Vec<_> = cases.par_iter().map(one).collect::<anyhow::Result<_>>()?;
    Ok(Some(serving::score::Score::of(&runs)))
}

/// The figures of an earlier report.
fn baseline(path: &Path) -> anyhow::Result<BTreeMap<String, f64>> {
    #[derive(serde::Deserialize)]
    struct Earlier {
        figures: BTreeMap<String, f64>,
    }
    let named = path.display();
    let text = input::text(path, input::DOCUMENT).map_err(|e| {
        Usage(format!("cannot read '{named}': {e}; name a report that 'strato selftest --format json' wrote"))
    })?;
    let earlier: Earlier = serde_json::from_str(&text)
        .map_err(|e| Usage(format!("'{named}' is no report of 'strato selftest --format json': {e}")))?;
    Ok(earlier.figures)
}

/// What is asked for alone.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Only {
    /// Faults that a run has together; none for healthy runs.
    Faults(Vec<FaultKind>),
    /// Runs that serve.
    Serving,
}

impl Only {
    fn faults(&self) -> Option<Vec<FaultKind>> {
        match self {
            Self::Faults(kinds) => Some(kinds.clone()),
            Self::Serving => None,
        }
    }
}

fn only(text: &str) -> Result<Only, String> {
    let known = || FaultKind::ALL.iter().map(|kind| plan::kind_key(*kind));
    let kind = |word: &str| {
        let found = FaultKind::ALL.iter().copied().find(|kind| plan::kind_key(*kind) == word);
        found.ok_or_else(|| format!("there is no fault '{word}'; known are {}", known().collect::<Vec<_>>().join(", ")))
    };
    match text {
        plan::HEALTHY_KEY => Ok(Only::Faults(Vec::new())),
        SERVING_KEY => Ok(Only::Serving),
        _ => text.split('+').map(kind).collect::<Result<_, _>>().map(Only::Faults),
    }
}
