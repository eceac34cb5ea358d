//! `strato diff`: two captures of the same work beside each other, or the reason why they may not be.

mod gate;

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
};

use clap::ValueEnum;

use diagnosis::{analysis::Options, i18n::Lang};
use report::{
    diff::{
        Compared, DiffReport,
        ci::{self, Check},
        declaration, json,
    },
    html, screen,
};
use session::{Pair, Reading};

use super::{
    Global,
    comparison::{Terms, paths, twice},
    examine::Narrowed,
    exit::{Exit, Usage},
    output::Output,
    page,
    progress::Bar,
    say,
    source::Source,
    target,
    targets::Targets,
    unread,
};

/// Say whether two captures may be compared, and which part of the step makes the difference.
///
/// A and B are trace files, profiler output directories or capture files; several runs of one side are given with commas
/// between them. B is held against A: what B takes longer is positive.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// What is compared from.
    #[arg(value_name = "A")]
    a: String,
    /// What is compared to.
    #[arg(value_name = "B")]
    b: String,
    #[command(flatten)]
    terms: Terms,
    #[command(flatten)]
    targets: Targets,
    /// Form of the report [default: term on a terminal, else md].
    #[arg(long, value_enum)]
    format: Option<Form>,
    /// Write the report to this file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    gate: gate::Gate,
    /// Print nothing; the exit code says it, and --output is still written.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    narrowed: Narrowed,
    /// Only this step of both sides.
    #[arg(long, value_name = "N", conflicts_with = "steps")]
    iteration: Option<u32>,
    /// Model that ran on both sides: the name of a known one, or its config.json.
    #[arg(long, value_name = "NAME|PATH")]
    model: Option<String>,
    #[command(flatten)]
    source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// One screen of a terminal: which is slower, whether both did the same work, and a waterfall.
    Term,
    /// Markdown, for people.
    Md,
    /// JSON, for scripts.
    Json,
    /// A page for a browser, with the timelines of both sides.
    Html,
    /// A JUnit report of the gate, for build pipelines.
    Junit,
    /// Annotations of GitHub workflows.
    Github,
    /// A declaration file with what is known of the two and what is still open.
    Toml,
}

impl Form {
    /// The gate in the words of a build pipeline.
    fn checks(self, check: &Check) -> String {
        if self == Self::Junit { ci::junit(check) } else { ci::github(check) }
    }
}

impl Arguments {
    /// The form that was asked for, else what fits where it goes.
    fn form(&self) -> Form {
        let screen = self.output.is_none() && io::stdout().is_terminal();
        self.format.unwrap_or(if screen { Form::Term } else { Form::Md })
    }

    /// Says what two results without steps say of each other.
    fn results(&self, global: &Global, report: &dyn Compared) -> anyhow::Result<Exit> {
        let text = match self.form() {
            Form::Term => {
                let whole = "strato diff A B --format md";
                Output::Data(screen::page::first(&report.document(global.lang()), global.lang(), global.look(), whole))
            }
            Form::Md => Output::Markdown(report.document(global.lang())),
            Form::Json => Output::Data(report.json(self.gate.results_asked(report))?),
            Form::Html => {
                let document = report.document(global.lang());
                let simulated = report.heads().iter().any(|head| head.simulated);
                Output::Data(html::document(&document, "A and B", simulated, global.lang()))
            }
            Form::Junit | Form::Github => Output::Data(self.form().checks(&self.gate.results_check(report))),
            Form::Toml => {
                return Err(Usage(
                    "a declaration to fill in is written for captures; for results give --declare with [both] or [a] and [b]".into(),
                )
                .into());
            }
        };
        if self.output.is_some() || !self.quiet {
            global.deliver(&text, self.output.as_deref())?;
        }
        Ok(self.gate.judge_results(report))
    }
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    let inputs = [paths(&arguments.a)?, paths(&arguments.b)?];
    if let Some(output) = &arguments.output {
        inputs.iter().try_for_each(|inputs| target::check(output, inputs))?;
    }
    let baseline = arguments.gate.baseline()?;
    let bar = Bar::new(global.lang());
    let terms = session::Terms { slo: arguments.targets.slo.clone(), ..arguments.terms.read()? };
    let reading = Reading { model: arguments.model.clone(), ..arguments.source.reading() };
    let narrowed = arguments.narrowed.options();
    let options = Options { steps: arguments.iteration.map(|n| (n, n)).or(narrowed.steps), ..narrowed };
    let [a, b] = Pair::sessions(&inputs, &reading, &terms)?;
    let read = unread::tell(&[a.unread(), b.unread()].concat());
    // What the gate says goes first: whoever asked waits for it.
    let ends = |judged| if judged == Exit::Done { read } else { judged };
    let ((mut results_a, a), (mut results_b, b)) = (a.split_serving(), b.split_serving());
    let both = !results_a.is_empty() && !results_b.is_empty();
    let serving = both.then(|| session::serving::compare([&mut results_a, &mut results_b], &terms)).transpose()?;
    let captures = [&a, &b].map(|side| !side.captures().is_empty());
    if captures != [true; 2] {
        let Some(serving) = serving else {
            return Err(Usage(
                "a result of a serving benchmark has no steps; give a result, or a capture with steps, of both sides"
                    .into(),
            )
            .into());
        };
        drop(bar);
        return arguments.results(global, &serving).map(ends);
    }
    match [&a, &b].map(session::Session::is_of_link_tests) {
        [true, true] => {
            let report = session::link_test::compare([a.captures(), b.captures()], a.packs());
            drop(bar);
            return arguments.results(global, &report).map(ends);
        }
        [false, false] => {}
        _ => {
            return Err(Usage(
                "a link test has no steps, and the other side is none; give a link test, or a capture with steps, of both sides".into(),
            )
            .into());
        }
    }
    let pair = Pair::of([a, b], &options, &terms)?;
    for source in pair.twice() {
        say(&format!("strato: {}", twice(source, Lang::En)));
    }
    let report = DiffReport { serving, ..pair.compare(&terms)? };
    let report = arguments.gate.ask(report, &baseline)?;
    drop(bar);
    let lang = global.lang();
    let text = match arguments.form() {
        Form::Term => Output::Data(screen::diff::render(&report, [&arguments.a, &arguments.b], lang, global.look())),
        Form::Md => Output::Markdown(report.document(lang)),
        Form::Json => Output::Data(json::render(&report, lang)?),
        Form::Html => Output::Data(page::comparison(&report, pair.into_chosen(), lang)),
        Form::Junit | Form::Github => Output::Data(arguments.form().checks(&Check::of(&report, lang))),
        Form::Toml => Output::Data(declaration::render(&report, lang)),
    };
    if arguments.output.is_some() || !arguments.quiet {
        global.deliver(&text, arguments.output.as_deref())?;
    }
    Ok(ends(gate::Gate::judge(&report)))
}
