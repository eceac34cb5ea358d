//! `strato view`: the terminal interface on captures.

use std::io::{self, IsTerminal};

use super::{
    Global,
    examine::Examine,
    exit::{Exit, Usage},
    interface::Interface,
    progress::Bar,
};
use crate::tui::{self, App, Job, Left, Opened, Opening, Session, Settings, job::Broken};

/// Look at captures in the terminal: the verdict, the findings and their evidence in the timeline.
///
/// Without PATH the reference engine runs on this machine's CPU, and that run is shown. Press '?' for the keys.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    examine: Examine,
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
    let (own, examine) = (global.clone(), arguments.examine);
    let job = Job::start(move |progress| {
        let inputs = examine.run_on(&own, &packs, true, &Bar::of(progress))?;
        Ok(Opened::new(inputs))
    })?;
    let left = open(&mut session, job, settings)?;
    end(session, left);
    Ok(Exit::Done)
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
