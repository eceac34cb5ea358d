//! `strato diagnose`: from traces to a report that says which layer takes the time of a step, and why.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use clap::ValueEnum;

use super::{
    Global,
    examine::Examine,
    exit::{Exit, Usage},
    fail_on::FailOn,
    output::Output,
    page,
    progress::Bar,
    results, say, target,
};
use diagnosis::{diagnose::Severity, i18n::Lang};
use report::{Report, json, screen};

/// Say which layer takes the time of a decode step, and why.
///
/// Without PATH the reference engine runs on this machine's CPU, after probes of the machine, and that run is diagnosed.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Form of the report [default: term on a terminal, else md].
    #[arg(long, value_enum)]
    format: Option<Form>,
    /// Show the whole report: also the capture, operators and kernels, the replay, readiness, missing evidence, the import ledger.
    #[arg(long)]
    full: bool,
    /// Write the report to this file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write the captures with steps, attribution and findings to this capture file, for 'strato sql'.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// End with exit code 1 when a finding is at least this severe, with 6 when too much of a capture is lost to judge it.
    #[arg(long, value_enum, value_name = "SEVERITY")]
    fail_on: Option<FailOn>,
    /// Print nothing; the exit code says it, and --output is still written.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    examine: Examine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// One screen of a terminal: the answer, the costs, what takes the most time.
    Term,
    /// Markdown, for people.
    Md,
    /// JSON, for scripts.
    Json,
    /// One page for a browser: the report, its figures, and a timeline of the steps.
    Html,
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    let lang = global.lang();
    arguments.output.as_deref().map_or(Ok(()), refuse_trace)?;
    if let Some(save) = &arguments.save {
        for files in arguments.examine.files() {
            target::check(save, files)?;
        }
        if arguments.output.as_ref().is_some_and(|report| target::is_same(report, save)) {
            return Err(Usage(format!("--output and --save both name '{}'; choose two names", save.display())).into());
        }
    }
    let (report, inputs, done) = build(global, &arguments, lang)?;
    let unjudged = inputs.iter().any(|(_, analysis, _)| analysis.loss.forbids_causes());
    let screen = arguments.output.is_none() && io::stdout().is_terminal();
    let usual = if screen { Form::Term } else { Form::Md };
    let text = match arguments.format.unwrap_or(usual) {
        Form::Term if arguments.full => Output::Data(screen::page::render(&report.document(lang), global.look())),
        Form::Term => Output::Data(screen::render(&report, lang, global.look())),
        Form::Md if arguments.full => Output::Markdown(report.document(lang)),
        Form::Md => Output::Markdown(report.brief(lang)),
        Form::Json => Output::Data(json::render(&report, lang)?),
        Form::Html => {
            let mut page = Vec::new();
            page::write(&mut page, inputs, lang)?;
            Output::Data(String::from_utf8(page)?)
        }
    };
    if arguments.output.is_some() || !arguments.quiet {
        global.deliver(&text, arguments.output.as_deref())?;
    }
    if unjudged && arguments.fail_on.is_some() {
        say("strato: gate: cannot be judged, because too much of the capture is lost");
        return Ok(Exit::Unjudged);
    }
    let gravest = arguments.fail_on.map(Severity::from).zip(report.gravest());
    let grave = gravest.is_some_and(|(limit, found)| found >= limit);
    // What was not read may hold a graver one, so that a gate must not take the findings for all there are.
    Ok(if grave && done == Exit::Done { Exit::Findings } else { done })
}

/// A slip of the pen must not cost a trace: a report never replaces one.
fn refuse_trace(output: &Path) -> Result<(), Usage> {
    if store::is_capture(output).unwrap_or(false)
        || parsers::detect::detect(output, &parsers::ReadOptions::default()).is_ok()
    {
        let output = output.display();
        return Err(Usage(format!(
            "will not replace '{output}', which is a trace; choose another name for the report"
        )));
    }
    Ok(())
}

fn build(global: &Global, arguments: &Arguments, lang: Lang) -> anyhow::Result<(Report, Vec<page::Input>, Exit)> {
    let (diagnosed, done) = arguments.examine.run(global, arguments.quiet)?;
    let report = diagnosed.report();
    if let Some(save) = &arguments.save {
        let bar = Bar::new(lang);
        bar.stage("writing", save.display());
        results::save(save, &diagnosed.captures, &report, &arguments.examine.reading().packs()?, lang)?;
    }
    Ok((report, diagnosed.captures, done))
}
