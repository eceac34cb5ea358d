//! `strato diagnose`: from traces to a report that says which layer takes the time of a step, and why.

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::ValueEnum;

use super::{
    Global,
    exit::{Exit, Usage},
    first_run,
    kernel_metrics::KernelMetrics,
    output::Kind,
    probed::Probed,
    progress::Bar,
    results, samples, say, source, target,
    terminal_text::plain,
};
use crate::{
    analysis::{self, Options},
    diagnose::{self, Severity},
    i18n::{Lang, Text},
    platform::Packs,
    report::{Report, json, markdown},
    store,
};

/// Ranks of one capture that are diagnosed together. A file holds one rank, at most those of a machine; a report on many
/// thousand has no reader and takes a time that grows with their square.
const MAX_RANKS: usize = 1024;

/// Say which layer takes the time of a decode step, and why.
///
/// Without PATH the reference engine runs on this machine's CPU, after probes of the machine, and that run is diagnosed.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Trace files, profiler output directories or capture files.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Diagnose the simulated samples that come with the program.
    #[arg(long, conflicts_with = "paths")]
    samples: bool,
    /// Model that the engine runs where no PATH is given: a named shape or the directory of a checkpoint [default: what fits
    /// the memory].
    #[arg(long, value_name = "NAME|DIR", conflicts_with_all = ["paths", "samples"])]
    model: Option<String>,
    /// Form of the report.
    #[arg(long, value_enum, default_value_t = Form::Md)]
    format: Form,
    /// Write the report to this file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write the captures with steps, attribution and findings to this capture file, for 'strato sql'.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Only the steps A to B, both included.
    #[arg(long, value_name = "A..B", value_parser = range)]
    steps: Option<(u32, u32)>,
    /// Only this rank.
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
    /// End with exit code 1 when a finding is at least this severe.
    #[arg(long, value_enum, value_name = "SEVERITY")]
    fail_on: Option<FailOn>,
    /// Print nothing; the exit code says it, and --output is still written.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    source: source::Reading,
    #[command(flatten)]
    kernel_metrics: KernelMetrics,
    #[command(flatten)]
    probed: Probed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Markdown, for people.
    Md,
    /// JSON, for scripts.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Low,
    Medium,
    High,
    Critical,
}

impl From<FailOn> for Severity {
    fn from(level: FailOn) -> Self {
        match level {
            FailOn::Low => Self::Low,
            FailOn::Medium => Self::Medium,
            FailOn::High => Self::High,
            FailOn::Critical => Self::Critical,
        }
    }
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    let lang = global.lang();
    arguments.output.as_deref().map_or(Ok(()), refuse_trace)?;
    if let Some(save) = &arguments.save {
        target::check(save, &arguments.paths)?;
        target::check(save, arguments.kernel_metrics.files())?;
        target::check(save, arguments.probed.files())?;
        if arguments.output.as_ref().is_some_and(|report| target::is_same(report, save)) {
            return Err(Usage(format!("--output and --save both name '{}'; choose two names", save.display())).into());
        }
    }
    let packs = arguments.source.packs()?;
    let report = build(global, &arguments, &packs, lang)?;
    let (text, kind) = match arguments.format {
        Form::Md => (markdown::render(&report, lang), Kind::Markdown),
        Form::Json => (json::render(&report, lang)?, Kind::Data),
    };
    if arguments.output.is_some() || !arguments.quiet {
        global.deliver(&text, kind, arguments.output.as_deref())?;
    }
    let gravest = arguments.fail_on.map(Severity::from).zip(report.gravest());
    Ok(if gravest.is_some_and(|(limit, found)| found >= limit) { Exit::Findings } else { Exit::Done })
}

/// A slip of the pen must not cost a trace: a report never replaces one.
fn refuse_trace(output: &Path) -> Result<(), Usage> {
    if store::is_capture(output).unwrap_or(false) || parsers::detect::detect(output).is_ok() {
        let output = output.display();
        return Err(Usage(format!(
            "will not replace '{output}', which is a trace; choose another name for the report"
        )));
    }
    Ok(())
}

fn build(global: &Global, arguments: &Arguments, packs: &Packs, lang: Lang) -> anyhow::Result<Report> {
    let bar = Bar::new();
    let refused = |e: io::Error| {
        Usage(format!("cannot write to '{}': {e}; set TMPDIR to a writable directory", std::env::temp_dir().display()))
    };
    let unpacked = tempfile::tempdir().map_err(refused)?;
    let mut traces = if arguments.samples {
        if !arguments.quiet {
            let text = Text::new(
                "strato: these are the simulated samples that come with the program",
                "strato：以下是程序自带的模拟样例",
            );
            say(text.get(lang));
        }
        let samples = samples::unpack(unpacked.path()).map_err(refused)?;
        source::open_with(&samples, &arguments.source, packs, &bar)?
    } else if arguments.paths.is_empty() {
        vec![first_run::capture(arguments.model.as_deref(), arguments.quiet, lang)?]
    } else {
        source::open_with(&arguments.paths, &arguments.source, packs, &bar)?
    };
    arguments.kernel_metrics.attach(&mut traces, &bar)?;
    arguments.probed.attach(&mut traces, &bar)?;
    drop(bar);
    let options = Options { steps: arguments.steps, rank: arguments.rank };
    let mut inputs = Vec::with_capacity(traces.len());
    for trace in traces {
        let ranks = analysis::rank_count(&trace);
        if ranks > MAX_RANKS && options.rank.is_none() {
            return Err(Usage(format!(
                "'{}' holds {ranks} ranks, a report has room for {MAX_RANKS}; choose one with --rank N",
                trace.source
            ))
            .into());
        }
        let analysis = analysis::analyze(&trace, packs, &options);
        let diagnosis = diagnose::diagnose(&trace, &analysis, packs);
        global.note(|| {
            format!(
                "{}: {} device operations, {} findings",
                plain(&trace.source),
                analysis.integrity.device_ops,
                diagnosis.findings.len()
            )
        });
        inputs.push((trace, analysis, diagnosis));
    }
    if let Some(rank) = arguments.rank.filter(|_| inputs.iter().all(|(_, analysis, _)| analysis.ranks.is_empty())) {
        return Err(
            Usage(format!("no capture has device work of rank {rank}; leave --rank out to see the ranks")).into()
        );
    }
    let report = Report::build(&inputs);
    if let Some(save) = &arguments.save {
        let bar = Bar::new();
        bar.stage("writing", save);
        results::save(save, &inputs, &report, packs, lang)?;
    }
    Ok(report)
}

/// `A..B`, both included.
fn range(text: &str) -> Result<(u32, u32), String> {
    let step = |text: &str| text.trim().parse::<u32>().map_err(|_| format!("'{text}' is not a step number"));
    let (from, to) = text.split_once("..").ok_or("write the first and the last step as A..B, such as 10..20")?;
    match (step(from)?, step(to.trim_start_matches('='))?) {
        (from, to) if from <= to => Ok((from, to)),
        (from, to) => Err(format!("step {from} comes after step {to}; write the earlier step first")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_names_its_first_and_last_step() {
        assert_eq!(range("3..5"), Ok((3, 5)));
        assert_eq!(range("7..7"), Ok((7, 7)));
        for bad in ["", "3", "5..3", "a..4", "-1..4", "1..", "0..4294967296"] {
            assert!(range(bad).is_err(), "{bad}");
        }
    }
}
