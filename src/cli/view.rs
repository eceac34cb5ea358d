//! `strato view`: the terminal interface on captures.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    sync::mpsc::channel,
};

use diagnosis::i18n::{Lang, Text};
use model::Work;
use session::{Cancel, Pair, Reading, job};

use super::{
    Global,
    comparison::{self, Terms},
    examine::Examine,
    exit::{Exit, Usage},
    interface::Interface,
    progress::Bar,
    showing,
};
use crate::tui::{
    self, App, Job, Opened, Session,
    at::{At, Start},
    opened,
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
    /// Look at this place first: a step, a time from the beginning, how much time is seen, a rank, a lane.
    #[arg(long, value_name = "step=N,t=TIME,for=TIME,rank=N,lane=NAME")]
    at: Option<At>,
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
    let mut settings = arguments.interface.settings(global)?;
    settings.start = Start { paths: arguments.examine.named(), at: arguments.at };
    // What has no path measures this machine, and says on stderr what it does; so does -v.
    if global.logging.is_verbose() || !arguments.examine.reads_files() {
        let opened = Opened::new(arguments.examine.run(global, false)?.0.captures);
        let mut session = Session::take(settings.mouse)?;
        let left = session.show(&mut App::new(opened, settings))?;
        showing::end(session, left);
        return Ok(Exit::Done);
    }
    let mut session = Session::take(settings.mouse)?;
    let (lang, examine, terms) = (global.lang(), arguments.examine, arguments.terms);
    let (early, arrived) = channel();
    let job = Job::start(move |progress| {
        let _bar = Bar::of(progress, lang);
        Asked { examine: &examine, terms: &terms, lang, cancel: progress.cancel(), early: &early }.opened()
    })?;
    let left = showing::open(&mut session, (job, arrived), settings)?;
    showing::end(session, left);
    Ok(Exit::Done)
}

/// What was asked to be shown.
struct Asked<'a> {
    examine: &'a Examine,
    terms: &'a Terms,
    lang: Lang,
    cancel: Cancel,
    early: &'a showing::Early,
}

impl Asked<'_> {
    /// Reads captures, lets them be looked at, and diagnoses them.
    fn each(&self) -> anyhow::Result<Opened> {
        let session = self.examine.open(self.lang, true, self.cancel.clone(), Work::View)?;
        let sketch = showing::sketched(session.captures(), session.packs(), self.early);
        let diagnosed = session.examine(&self.examine.options())?.diagnose()?;
        Ok(Opened::after(&sketch, diagnosed.captures))
    }

    /// Reads and diagnoses the captures; where they are two sides, these are compared. Those are seen only then: what is asked of
    /// them is their difference, and which steps lie beside each other is known last.
    fn opened(&self) -> anyhow::Result<Opened> {
        let Some(two) = self.examine.two() else { return self.each() };
        let paths = |path: &Path| path.to_str().map_or_else(|| Ok(vec![path.to_owned()]), comparison::paths);
        let inputs: [Vec<PathBuf>; 2] = [paths(two[0])?, paths(two[1])?];
        let terms = self.terms.read()?;
        let reading = Reading { cancel: self.cancel.clone(), ..self.examine.reading() };
        let pair = Pair::open(&inputs, &reading, &self.examine.options(), &terms)?;
        let one_job = pair.singles().is_some_and(|[a, b]| job::are_one_job(a, b));
        if one_job && !self.terms.is_given() {
            return self.each();
        }
        let mut said: Vec<String> = pair.twice().map(|source| comparison::twice(source, self.lang)).collect();
        let compared = pair.compare(&terms);
        let (inputs, sides) = pair.diagnose();
        let mut opened = match compared {
            Ok(report) => Opened::compared(inputs, opened::Pair { report, sides }),
            Err(error) if self.terms.is_given() => return Err(error.into()),
            // Who only names two directories may want to look at all that is in them.
            Err(error) => {
                let apart = Text::new("shown one by one, not compared", "逐个显示，未作对比");
                said.push(format!("{}: {error}", apart.get(self.lang)));
                Opened::new(inputs)
            }
        };
        said.into_iter().for_each(|note| opened.say(note));
        Ok(opened)
    }
}
