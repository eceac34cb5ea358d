//! `strato view`: the terminal interface on captures.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use model::Trace;

use super::{
    Global,
    diff::{self, Terms},
    examine::Examine,
    exit::{Exit, Usage},
    interface::Interface,
    progress::Bar,
    ranks,
};
use crate::{
    analysis::Analysis,
    diagnose::{self, Diagnosis},
    i18n::Text,
    platform::Packs,
    tui::{self, App, Job, Left, Opened, Opening, Session, Settings, job::Broken, opened::Pair},
};

/// Look at captures in the terminal: the verdict, the findings and their evidence in the timeline.
///
/// Without PATH the reference engine runs on this machine's CPU, and that run is shown. Two PATHs are compared, B against A, as
/// 'strato diff' compares them; several runs of one side are given with commas between them. Press '?' for the keys.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    examine: Examine,
    #[command(flatten)]
    terms: Terms,
    #[command(flatten)]
    interface: Interface,
    /// Print the keymap of the program, to be changed, and end.
    #[arg(long)]
    print_keys: bool,
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    if arguments.print_keys {
        global.print(tui::keymap::DEFAULTS, super::output::Kind::Data)?;
        return Ok(Exit::Done);
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Usage(
            "the interface needs a terminal on its input and output; use 'strato diagnose' for a report".to_owned(),
        )
        .into());
    }
    if arguments.terms.is_given() && arguments.examine.two().is_none() {
        return Err(Usage(
            "a comparison is of two paths and takes ceilings with --probe-a and --probe-b; name A and B".to_owned(),
        )
        .into());
    }
    // A keymap that cannot be used is told before anything long is done.
    let settings = arguments.interface.settings(global)?;
    let packs = arguments.examine.packs()?;
    // What has no path measures this machine, and says on stderr what it does; so does -v.
    if global.verbose || !arguments.examine.reads_files() {
        let opened = Opened::new(arguments.examine.run(global, &packs, false)?);
        let mut session = Session::take(settings.mouse)?;
        let left = session.show(&mut App::new(opened, settings))?;
        end(session, left);
        return Ok(Exit::Done);
    }
    let mut session = Session::take(settings.mouse)?;
    let (own, examine, terms) = (global.clone(), arguments.examine, arguments.terms);
    let job = Job::start(move |progress| opened(&own, (&examine, &terms), &packs, &Bar::of(progress)))?;
    let left = open(&mut session, job, settings)?;
    end(session, left);
    Ok(Exit::Done)
}

/// Reads and diagnoses the captures; where they are two sides, these are held against each other.
fn opened(global: &Global, (examine, terms): (&Examine, &Terms), packs: &Packs, bar: &Bar) -> anyhow::Result<Opened> {
    let Some(two) = examine.two() else { return Ok(Opened::new(examine.run_on(global, packs, true, bar)?)) };
    let paths = |path: &Path| path.to_str().map_or_else(|| Ok(vec![path.to_owned()]), diff::paths);
    let inputs: [Vec<PathBuf>; 2] = [paths(two[0])?, paths(two[1])?];
    let sides = diff::read(&inputs, terms, &examine.how(packs, global.lang(), bar))?;
    let one_job = match [sides[0].captures.as_slice(), sides[1].captures.as_slice()] {
        [[(a, _)], [(b, _)]] => ranks::are_one_job(a, b),
        _ => false,
    };
    if one_job && !terms.is_given() {
        return Ok(Opened::new(examine.run_on(global, packs, true, bar)?));
    }
    bar.doing(Text::new("comparing", "对比").get(global.lang()));
    let compared = diff::compare(&sides, terms, Default::default);
    let places = [sides[0].chosen, sides[0].captures.len() + sides[1].chosen];
    let mut said: Vec<String> =
        sides.iter().flat_map(|runs| &runs.twice).map(|source| diff::twice(source, global.lang())).collect();
    let diagnosed = |(trace, analysis): (Trace, Analysis)| -> (Trace, Analysis, Diagnosis) {
        bar.doing(&format!("{} {}", Text::new("diagnosing", "诊断").get(global.lang()), trace.source));
        let diagnosis = diagnose::diagnose(&trace, &analysis, packs);
        (trace, analysis, diagnosis)
    };
    let inputs: Vec<(Trace, Analysis, Diagnosis)> =
        sides.into_iter().flat_map(|runs| runs.captures).map(diagnosed).collect();
    let readiness = places.map(|at| inputs.get(at).map(|(.., found)| found.readiness.clone()).unwrap_or_default());
    let mut opened = match compared {
        Ok(report) => {
            let report = report.with_readiness(readiness);
            Opened::compared(inputs, Pair { report, sides: places })
        }
        Err(error) if terms.is_given() => return Err(error),
        // Who only names two directories may want to look at all that is in them.
        Err(error) => {
            let apart = Text::new("shown one by one, not compared", "逐个显示，未作对比");
            said.push(format!("{}: {error}", apart.get(global.lang())));
            Opened::new(inputs)
        }
    };
    said.into_iter().for_each(|note| opened.say(note));
    Ok(opened)
}

/// Shows how far a job is, and then what it opened.
///
/// # Errors
/// What stopped the job, and those of the terminal.
pub(super) fn open(
    session: &mut Session,
    job: Job<anyhow::Result<Opened>>,
    settings: Settings,
) -> anyhow::Result<Left> {
    let mut opening = Opening::new(job, settings);
    let left = session.show(&mut opening)?;
    let (job, settings) = opening.finish();
    if left != Left::Done {
        job.cancel();
        return Ok(left);
    }
    match job.finish() {
        Ok(opened) => Ok(session.show(&mut App::new(opened?, settings))?),
        Err(Broken::Cancelled) => Ok(Left::Quit),
        Err(Broken::Panicked(_)) => Err(anyhow::anyhow!("the captures could not be read: the importer panicked")),
    }
}

/// Gives the terminal back, and ends by the signal that ended the session.
pub(super) fn end(session: Session, left: Left) {
    drop(session.give_back());
    if let Left::Signal(signal) = left {
        tui::terminal::end_by(signal);
    }
}
