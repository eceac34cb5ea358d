//! `strato view`: the terminal interface on captures.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
};

use model::Trace;

use super::{
    Global,
    diff::{self, Terms},
    examine::{DIAGNOSING, Examine},
    exit::{Exit, Usage},
    interface::Interface,
    progress::Bar,
    ranks,
};
use crate::tui::{
    self, App, Job, Left, Opened, Opening, Session, Settings, Sketch, job::Broken, opened::Pair, opening::Over,
};
use diagnosis::{
    analysis::Analysis,
    diagnose::{self, Diagnosis},
    i18n::Text,
    platform::Packs,
};

/// Look at captures in the terminal: the verdict, the findings and their evidence in the timeline.
///
/// The timeline is there as soon as the captures are read; two that are compared are shown when that is done.
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
        global.print(&super::output::Output::Data(tui::keymap::DEFAULTS.to_owned()))?;
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
    let (early, arrived) = channel();
    let job = Job::start(move |progress| opened(&own, (&examine, &terms), &packs, (&Bar::of(progress), &early)))?;
    let left = open(&mut session, (job, arrived), settings)?;
    end(session, left);
    Ok(Exit::Done)
}

/// Captures that can be looked at before they are diagnosed, on their way to who shows them.
pub(super) type Early = Sender<Arc<Sketch>>;

/// Reads captures, lets them be looked at, and diagnoses them.
fn each(global: &Global, examine: &Examine, packs: &Packs, (bar, early): (&Bar, &Early)) -> anyhow::Result<Opened> {
    let traces = examine.read(global.lang(), packs, true, bar)?;
    let sketch = sketched(&traces, packs, early);
    Ok(Opened::after(&sketch, examine.diagnose(global, packs, traces, bar)?))
}

/// Indexes the lanes of captures and sends them to who shows them.
pub(super) fn sketched(traces: &[Trace], packs: &Packs, early: &Early) -> Arc<Sketch> {
    let sketch = Arc::new(Sketch::of(traces, packs));
    // Who has left does not look any more, and the job ends when it next says how far it is.
    drop(early.send(Arc::clone(&sketch)));
    sketch
}

/// Reads and diagnoses the captures; where they are two sides, these are held against each other. Those are seen only then:
/// what is asked of them is their difference, and which steps lie beside each other is known last.
fn opened(
    global: &Global,
    (examine, terms): (&Examine, &Terms),
    packs: &Packs,
    (bar, early): (&Bar, &Early),
) -> anyhow::Result<Opened> {
    let Some(two) = examine.two() else { return each(global, examine, packs, (bar, early)) };
    let paths = |path: &Path| path.to_str().map_or_else(|| Ok(vec![path.to_owned()]), diff::paths);
    let inputs: [Vec<PathBuf>; 2] = [paths(two[0])?, paths(two[1])?];
    let sides = diff::read(&inputs, terms, &examine.how(packs, global.lang(), bar))?;
    let one_job = match [sides[0].captures.as_slice(), sides[1].captures.as_slice()] {
        [[(a, _)], [(b, _)]] => ranks::are_one_job(a, b),
        _ => false,
    };
    if one_job && !terms.is_given() {
        return each(global, examine, packs, (bar, early));
    }
    bar.doing(Text::new("comparing", "对比").get(global.lang()));
    let compared = diff::compare(&sides, terms, Default::default);
    let places = [sides[0].chosen, sides[0].captures.len() + sides[1].chosen];
    let mut said: Vec<String> =
        sides.iter().flat_map(|runs| &runs.twice).map(|source| diff::twice(source, global.lang())).collect();
    let diagnosed = |(trace, analysis): (Trace, Analysis)| -> (Trace, Analysis, Diagnosis) {
        bar.stage(DIAGNOSING.get(global.lang()), &trace.source);
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

/// Shows how far a job is, its captures as soon as they can be looked at, and what it opened.
///
/// # Errors
/// What stopped the job, and those of the terminal.
pub(super) fn open(
    session: &mut Session,
    (job, early): (Job<anyhow::Result<Opened>>, Receiver<Arc<Sketch>>),
    settings: Settings,
) -> anyhow::Result<Left> {
    let mut opening = Opening::new(job, early, settings);
    let left = session.show(&mut opening)?;
    match opening.finish() {
        Some(Over::Failed(error)) if left == Left::Done => Err(error),
        Some(Over::Broken(Broken::Panicked(_))) if left == Left::Done => {
            Err(anyhow::anyhow!("the captures could not be read: the importer panicked"))
        }
        _ => Ok(if left == Left::Done { Left::Quit } else { left }),
    }
}

/// Gives the terminal back, and ends by the signal that ended the session.
pub(super) fn end(session: Session, left: Left) {
    drop(session.give_back());
    if let Left::Signal(signal) = left {
        tui::terminal::end_by(signal);
    }
}
