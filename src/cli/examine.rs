//! From what the command line names to captures that were analysed and diagnosed: the same for the report and for the
//! terminal interface.

use std::{
    io,
    path::{Path, PathBuf},
};

use model::{EvidenceClass, Trace};

use super::{
    Global, diff::How, exit::Usage, first_run, kernel_metrics::KernelMetrics, probed::Probed, progress::Bar, samples,
    say, source, terminal_text::plain,
};
use diagnosis::{
    analysis::{self, Analysis, Options, shown::Shown},
    compare::second_run,
    diagnose::{self, Diagnosis},
    i18n::{Lang, Text},
    platform::Packs,
};

/// Ranks of one capture that are diagnosed together. A file holds one rank, at most those of a machine; a report on many
/// thousand has no reader and takes a time that grows with their square.
const MAX_RANKS: usize = 1024;

/// Options of every subcommand that diagnoses captures.
#[derive(Debug, clap::Args)]
pub struct Examine {
    /// Trace files, profiler output directories or capture files.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Look at the simulated samples that come with the program.
    #[arg(long, conflicts_with = "paths")]
    samples: bool,
    /// Model that the engine runs where no PATH is given: a named shape or the directory of a checkpoint [default: what fits
    /// the memory].
    #[arg(long, value_name = "NAME|DIR", conflicts_with_all = ["paths", "samples"])]
    model: Option<String>,
    #[command(flatten)]
    narrowed: Narrowed,
    #[command(flatten)]
    source: source::Reading,
    #[command(flatten)]
    kernel_metrics: KernelMetrics,
    #[command(flatten)]
    probed: Probed,
}

/// Options of the subcommands that may look at a part of a run.
#[derive(Debug, clap::Args)]
pub struct Narrowed {
    /// Only the steps A to B, both included.
    #[arg(long, value_name = "A..B", value_parser = range)]
    steps: Option<(u32, u32)>,
    /// Only this rank.
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
}

impl Narrowed {
    /// Analyses captures, and adds to the manifest of each what it shows of its run; `tell` gets the name of each before.
    ///
    /// # Errors
    /// A capture of more ranks than a report has room for, and a rank that no capture has.
    pub fn analyze(
        &self,
        traces: Vec<Trace>,
        packs: &Packs,
        tell: impl Fn(&str),
    ) -> Result<Vec<(Trace, Analysis)>, Usage> {
        let options = Options { steps: self.steps, rank: self.rank };
        let mut inputs = Vec::with_capacity(traces.len());
        for mut trace in traces {
            let ranks = analysis::rank_count(&trace);
            if ranks > MAX_RANKS && options.rank.is_none() {
                return Err(Usage(format!(
                    "'{}' holds {ranks} ranks, a report has room for {MAX_RANKS}; choose one with --rank N",
                    trace.source
                )));
            }
            tell(&trace.source);
            let analysis = analysis::analyze(&trace, packs, &options);
            Shown::of(&trace, &analysis).complete(&mut trace);
            inputs.push((trace, analysis));
        }
        match self.rank.filter(|_| inputs.iter().all(|(_, analysis)| analysis.ranks.is_empty())) {
            Some(rank) => {
                Err(Usage(format!("no capture has device work of rank {rank}; leave --rank out to see the ranks")))
            }
            None => Ok(inputs),
        }
    }
}

/// Adds to the manifest of a capture what it shows of its run; that, with where it is seen.
pub fn shown(trace: &mut Trace, packs: &Packs) -> Shown {
    if analysis::rank_count(trace) > MAX_RANKS {
        return Shown::default();
    }
    let mut shown = Shown::of(trace, &analysis::analyze(trace, packs, &Options::default()));
    shown.complete(trace);
    shown
}

impl Examine {
    /// The packs to read by.
    ///
    /// # Errors
    /// When a pack cannot be used.
    pub fn packs(&self) -> Result<Packs, Usage> {
        self.source.packs()
    }

    /// All files that are read.
    pub fn files(&self) -> [&[PathBuf]; 3] {
        [&self.paths, self.kernel_metrics.files(), self.probed.files()]
    }

    /// Whether it reads files, and measures nothing.
    pub fn reads_files(&self) -> bool {
        self.samples || !self.paths.is_empty()
    }

    /// The two paths, where there are two and nothing is read beside them that belongs to one capture alone.
    pub fn two(&self) -> Option<[&Path; 2]> {
        let alone = self.kernel_metrics.files().is_empty() && self.probed.files().is_empty();
        match self.paths.as_slice() {
            [a, b] if alone => Some([a, b]),
            _ => None,
        }
    }

    /// How captures are read and narrowed down.
    pub fn how<'a>(&'a self, packs: &'a Packs, lang: Lang, bar: &'a Bar) -> How<'a> {
        How { narrowed: &self.narrowed, reading: &self.source, packs, lang, bar }
    }

    /// Reads the captures and diagnoses them. Without a path the reference engine runs here, and what is being done is told
    /// unless the run is to be `quiet`.
    ///
    /// # Errors
    /// What cannot be read, and a rank that no capture has.
    pub fn run(
        &self,
        global: &Global,
        packs: &Packs,
        quiet: bool,
    ) -> anyhow::Result<Vec<(Trace, Analysis, Diagnosis)>> {
        let bar = Bar::new();
        let traces = self.read(global.lang(), packs, quiet, &bar)?;
        self.diagnose(global, packs, traces, &bar)
    }

    /// Analyses and diagnoses what was read.
    ///
    /// # Errors
    /// A rank that no capture has, and more ranks than a report has room for.
    pub fn diagnose(
        &self,
        global: &Global,
        packs: &Packs,
        traces: Vec<Trace>,
        bar: &Bar,
    ) -> anyhow::Result<Vec<(Trace, Analysis, Diagnosis)>> {
        let mut inputs = Vec::with_capacity(traces.len());
        let tell = |source: &str| bar.stage(ANALYSING.get(global.lang()), source);
        for (trace, analysis) in with_second_runs(self.narrowed.analyze(traces, packs, tell)?) {
            bar.stage(DIAGNOSING.get(global.lang()), &trace.source);
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
        Ok(inputs)
    }

    /// Reads the captures.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn read(&self, lang: Lang, packs: &Packs, quiet: bool, bar: &Bar) -> anyhow::Result<Vec<Trace>> {
        let refused = |e: io::Error| {
            Usage(format!(
                "cannot write to '{}': {e}; set TMPDIR to a writable directory",
                std::env::temp_dir().display()
            ))
        };
        let unpacked = tempfile::tempdir().map_err(refused)?;
        let mut traces = if self.samples {
            if !quiet {
                say(SAMPLES.get(lang));
            }
            let samples = samples::unpack(unpacked.path()).map_err(refused)?;
            source::open_with(&samples, &self.source, packs, bar)?
        } else if self.paths.is_empty() {
            vec![first_run::capture(self.model.as_deref(), quiet, lang)?]
        } else {
            source::open_with(&self.paths, &self.source, packs, bar)?
        };
        self.kernel_metrics.attach(&mut traces, bar)?;
        self.probed.attach(&mut traces, bar)?;
        Ok(traces)
    }
}

/// Notes in each capture that has a second run among them that it has one.
fn with_second_runs(mut inputs: Vec<(Trace, Analysis)>) -> Vec<(Trace, Analysis)> {
    let captures: Vec<_> = inputs.iter().map(|(trace, analysis)| (trace, analysis)).collect();
    let held = second_run::held(&captures);
    for ((_, analysis), _) in inputs.iter_mut().zip(held).filter(|(_, held)| *held) {
        analysis.evidence.insert(EvidenceClass::SecondRun);
    }
    inputs
}

/// Said while a capture is analysed.
pub const ANALYSING: Text = Text::new("analysing", "分析");
/// Said while it is diagnosed.
pub const DIAGNOSING: Text = Text::new("diagnosing", "诊断");
const SAMPLES: Text =
    Text::new("strato: these are the simulated samples that come with the program", "strato：以下是程序自带的模拟样例");

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
