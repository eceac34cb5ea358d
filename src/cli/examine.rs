//! From what the command line names to captures that were analysed and diagnosed: the same for the report and for the
//! terminal interface.

use std::{
    io,
    path::{Path, PathBuf},
};

use diagnosis::i18n::{Lang, Text};
use model::Work;
use session::{Cancel, Diagnosed, Options, Reading, Session};

use super::{
    Global,
    exit::{Exit, Usage},
    first_run,
    progress::Bar,
    samples, say,
    scratch::Scratch,
    source::{KernelMetrics, Probed, Source},
    targets::Targets,
    unread,
};

/// Options of every subcommand that diagnoses captures.
#[derive(Debug, clap::Args)]
pub struct Examine {
    /// Trace files, profiler output directories or capture files.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Look at the simulated samples that come with the program.
    #[arg(long, conflicts_with = "paths")]
    samples: bool,
    /// Model that ran: the name of a known one, its config.json, or the directory that holds it; says what a step must read.
    /// Where no PATH is given, the model that the engine runs: a named shape or the directory of a checkpoint [default: what
    /// fits the memory].
    #[arg(long, value_name = "NAME|PATH")]
    model: Option<String>,
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    narrowed: Narrowed,
    #[command(flatten)]
    source: Source,
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
    /// The steps are the ranges of this name, alone or with a number behind it, instead of those that are found.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    step_mark: Option<String>,
}

impl Narrowed {
    /// What a session is told of it.
    pub fn options(&self) -> Options {
        let step_mark = self.step_mark.as_deref().map(Into::into);
        Options { steps: self.steps, rank: self.rank, step_mark, ..Options::default() }
    }
}

impl Examine {
    /// How the captures are read.
    pub fn reading(&self) -> Reading {
        Reading {
            kernel_metrics: self.kernel_metrics.files.clone(),
            probes: self.probed.file.clone(),
            model: self.model.clone().filter(|_| self.reads_files()),
            ..self.source.reading()
        }
    }

    /// What of them is looked at.
    pub fn options(&self) -> Options {
        self.narrowed.options()
    }

    /// All files that are read.
    pub fn files(&self) -> [&[PathBuf]; 3] {
        [&self.paths, &self.kernel_metrics.files, self.probed.file.as_slice()]
    }

    /// Whether it reads files, and measures nothing.
    pub fn reads_files(&self) -> bool {
        self.samples || !self.paths.is_empty()
    }

    /// The paths as a shell reads them, for a command that opens them again.
    pub fn named(&self) -> String {
        let plain = |path: &str| path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+:,=@".contains(c));
        let quoted = |path: &PathBuf| {
            let path = path.display().to_string();
            if plain(&path) { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
        };
        if self.samples { "--samples".to_owned() } else { self.paths.iter().map(quoted).collect::<Vec<_>>().join(" ") }
    }

    /// The two paths, where there are two and nothing is read beside them that belongs to one capture alone.
    pub fn two(&self) -> Option<[&Path; 2]> {
        let alone = self.kernel_metrics.files.is_empty() && self.probed.file.is_none();
        match self.paths.as_slice() {
            [a, b] if alone => Some([a, b]),
            _ => None,
        }
    }

    /// Reads the captures and diagnoses them, and says how that ends: what could not be read of an input is told on stderr. Without a path the reference engine runs here, and what is being done is told
    /// unless the run is to be `quiet`.
    ///
    /// # Errors
    /// What cannot be read, and a rank that no capture has.
    pub fn run(&self, global: &Global, quiet: bool) -> anyhow::Result<(Diagnosed, Exit)> {
        let bar = Bar::new(global.lang());
        let session = self.open(global.lang(), quiet, Cancel::default(), Work::Diagnose)?;
        let mut unread = session.unread().to_vec();
        let diagnosed = session.examine(&self.options())?.diagnose()?;
        drop(bar);
        for (trace, analysis, _) in &diagnosed.captures {
            unread.extend(unread::of_capture(&trace.source, &analysis.loss, global.lang()));
        }
        Ok((diagnosed, unread::tell(&unread)))
    }

    /// Reads the captures.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn open(&self, lang: Lang, quiet: bool, cancel: Cancel, work: Work) -> anyhow::Result<Session> {
        let reading = Reading { cancel, memory: self.source.memory(work), ..self.reading() };
        if self.samples {
            if !quiet {
                say(SAMPLES.get(lang));
            }
            let refused = |e: io::Error| {
                let directory = std::env::temp_dir();
                Usage(format!("cannot write to '{}': {e}; set TMPDIR to a writable directory", directory.display()))
            };
            let unpacked = Scratch::make().map_err(refused)?;
            let samples = samples::unpack(unpacked.path()).map_err(refused)?;
            return Ok(Session::open(&samples, &reading)?);
        }
        if self.paths.is_empty() {
            let packs = reading.packs()?;
            let capture = first_run::capture(self.model.as_deref(), quiet, lang)?;
            return Ok(Session::of(vec![capture], packs).attach(&reading)?);
        }
        let session = Session::open(&self.paths, &reading)?;
        Ok(match &self.targets.slo {
            Some(slo) => session.with_targets(slo),
            None => session,
        })
    }
}

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
