//! Captures on their way from columns to a report.

use std::{path::PathBuf, sync::Arc};

use diagnosis::{
    analysis::{self, Analysis, Options, manifest_inference::Inferred},
    compare::second_run,
    diagnose::{self, Diagnosis},
    platform::{ModelShape, Packs},
    serving::Slo,
};
use model::{Category, EvidenceClass, Provenance, StringId, Trace};
use report::Report;
use rustc_hash::FxHashMap;
use tracing::{info, info_span};

use crate::{Cancel, Error, Reading, open::Importer, progress::Stage, serving};

/// Ranks of one capture that are diagnosed together. A file holds one rank, at most those of a machine; a report on many
/// thousand has no reader and takes a time that grows with their square.
const MAX_RANKS: usize = 1024;

/// Captures that were opened.
pub struct Session {
    captures: Vec<Trace>,
    /// What could not be read of inputs of which something could.
    unread: Vec<String>,
    packs: Packs,
    model: Option<Arc<ModelShape>>,
    cancel: Cancel,
}

impl Session {
    /// Opens trace files, output directories of profilers and capture files, with what belongs to them. Ranks of one job are one
    /// capture.
    ///
    /// # Errors
    /// The first path that gives nothing, and what `reading` names and does not fit; [`Error::Cancelled`].
    pub fn open(paths: &[PathBuf], reading: &Reading) -> Result<Self, Error> {
        let packs = reading.packs()?;
        let model = reading.model(&packs)?;
        let (captures, unread) = reading.cancel.watch(|| {
            let importer = Importer::new(reading, &packs)?;
            let captures = importer.open(paths)?;
            Ok((captures, importer.into_unread()))
        })?;
        Ok(Self { captures, unread, packs, model, cancel: reading.cancel.clone() })
    }

    /// A session on captures that are in memory, such as those of a run that has just ended.
    pub fn of(captures: Vec<Trace>, packs: Packs) -> Self {
        Self { captures, unread: Vec::new(), packs, model: None, cancel: Cancel::default() }
    }

    /// The session, called off by `cancel`.
    #[must_use]
    pub fn cancelled_by(self, cancel: Cancel) -> Self {
        Self { cancel, ..self }
    }

    /// Adds what `reading` names beside the captures: measurements of kernels, ceilings.
    ///
    /// # Errors
    /// A file that cannot be read or fits none of the captures.
    pub fn attach(mut self, reading: &Reading) -> Result<Self, Error> {
        let beside = Reading { graph_capture: None, ..reading.clone() };
        beside.cancel.watch(|| {
            let importer = Importer::new(&beside, &self.packs)?;
            crate::attach::kernel_metrics(&beside.kernel_metrics, &mut self.captures, &importer)?;
            crate::attach::probes(beside.probes.as_deref(), &mut self.captures, &importer)
        })?;
        Ok(Self { cancel: reading.cancel.clone(), ..self })
    }

    /// The session with its captures changed by what somebody knows of them.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn edit(mut self, change: impl FnOnce(&mut Vec<Trace>) -> Result<(), Error>) -> Result<Self, Error> {
        change(&mut self.captures)?;
        Ok(self)
    }

    /// The session with targets of times declared of its serving results.
    #[must_use]
    pub fn with_targets(mut self, slo: &Slo) -> Self {
        for trace in self.captures.iter_mut().filter(|trace| serving::is_result(trace)) {
            trace.manifest.set("service.slo", slo.text(), Provenance::Declared);
        }
        self
    }

    /// The results of serving benchmarks among the captures, and the session without them.
    pub fn split_serving(mut self) -> (Vec<Trace>, Self) {
        let (results, others) = self.captures.into_iter().partition(serving::is_result);
        self.captures = others;
        (results, self)
    }

    /// Whether all captures are link tests: they have no steps.
    pub fn is_of_link_tests(&self) -> bool {
        !self.captures.is_empty() && self.captures.iter().all(diagnosis::link_test::is_test)
    }

    /// The captures as they were opened.
    pub fn captures(&self) -> &[Trace] {
        &self.captures
    }

    /// What could not be read of inputs of which something could, each a sentence with the file: a rank of a job, a file of
    /// which nothing could be kept.
    pub fn unread(&self) -> &[String] {
        &self.unread
    }

    /// The captures, given away as they were opened.
    pub fn into_captures(self) -> Vec<Trace> {
        self.captures
    }

    /// The knowledge that the captures are read by.
    pub fn packs(&self) -> &Packs {
        &self.packs
    }

    /// Analyses every capture and adds to its manifest what it shows of its run.
    ///
    /// # Errors
    /// A capture of more ranks than a report has room for, and a rank or steps that no capture has; [`Error::Cancelled`].
    pub fn examine(self, options: &Options) -> Result<Examined, Error> {
        let Self { captures, packs, model, cancel, .. } = self;
        let options = &Options { model: model.or_else(|| options.model.clone()), ..options.clone() };
        cancel.clone().watch(|| {
            let captures = captures.into_iter().map(|trace| {
                cancel.check();
                examine(trace, &packs, options)
            });
            let captures = captures.collect::<Result<Vec<_>, _>>()?;
            let found = captures.iter().any(|capture| !capture.analysis.ranks.is_empty());
            match options.rank.filter(|_| !found) {
                Some(rank) => Err(Error::Request(format!(
                    "no capture has device work of rank {rank}; leave --rank out to see the ranks"
                ))),
                None if let Some(why) = options.steps.and_then(|asked| no_such_steps(&captures, asked)) => {
                    Err(Error::Request(why))
                }
                None if let Some(why) =
                    options.step_mark.as_deref().and_then(|mark| no_such_marks(&captures, mark)) =>
                {
                    Err(Error::Request(why))
                }
                None => Ok(Examined { captures, packs: packs.clone(), cancel: cancel.clone() }),
            }
        })
    }

    /// The captures with what their manifests show and nobody said; one of more ranks than are analysed stays as it is.
    pub fn manifests(self) -> Vec<(Trace, Inferred)> {
        let packs = self.packs;
        let complete = |trace: Trace| {
            if analysis::rank_count(&trace) > MAX_RANKS {
                return (trace, Inferred::default());
            }
            let capture = analyzed(trace, &packs, &Options::default());
            (capture.trace, capture.shown)
        };
        self.captures.into_iter().map(complete).collect()
    }
}

/// Why none of the steps that were asked for is there, where captures have steps at all.
fn no_such_steps(captures: &[Capture], (from, to): (u32, u32)) -> Option<String> {
    let steps = || captures.iter().flat_map(|capture| &capture.analysis.ranks).flat_map(|rank| &rank.steps);
    let (first, last) = (steps().map(|step| step.index).min()?, steps().map(|step| step.index).max()?);
    let asked = if from == to { format!("step {from}") } else { format!("step {from} to {to}") };
    let source = captures.first().map(|capture| capture.trace.source.as_str()).unwrap_or_default();
    (from > last || to < first)
        .then(|| format!("'{source}' has no {asked}; it has the steps {first} to {last}, so choose among these"))
}

/// Why the steps of a rank are not the ranges that were asked for.
fn no_such_marks(captures: &[Capture], mark: &str) -> Option<String> {
    let asked = |rank: &analysis::Rank| rank.anchor.kind == analysis::AnchorKind::Asked;
    let lacks = |capture: &&Capture| !capture.analysis.ranks.iter().all(asked);
    let Capture { trace, analysis, .. } = captures.iter().find(lacks)?;
    let rank = analysis.ranks.iter().find(|rank| !asked(rank)).map_or(0, |rank| rank.rank);
    let mut counts: FxHashMap<StringId, usize> = FxHashMap::default();
    for lane in &trace.lanes {
        let ranges = lane.name.iter().zip(&lane.category).filter(|(_, kind)| **kind == Category::UserRange);
        ranges.for_each(|(name, _)| *counts.entry(*name).or_default() += 1);
    }
    let mut names: Vec<(usize, &str)> = counts.into_iter().map(|(name, n)| (n, trace.strings.get(name))).collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    let known: Vec<String> = names.iter().take(RANGES).map(|(_, name)| format!("'{name}'")).collect();
    let next = match known.is_empty() {
        true => "it has no ranges; leave --step-mark out".to_owned(),
        false => format!("it has ranges such as {}, so choose among these", known.join(", ")),
    };
    Some(format!("'{}' has no range '{mark}' with device work of rank {rank}; {next}", trace.source))
}

/// Ranges that are named where one was asked for that is not there.
const RANGES: usize = 3;

fn examine(trace: Trace, packs: &Packs, options: &Options) -> Result<Capture, Error> {
    let ranks = analysis::rank_count(&trace);
    if ranks > MAX_RANKS && options.rank.is_none() {
        return Err(Error::Request(format!(
            "'{}' holds {ranks} ranks, a report has room for {MAX_RANKS}; choose one with --rank N",
            trace.source
        )));
    }
    Ok(analyzed(trace, packs, options))
}

/// The only place that analyses a capture, so that no report, view or test sees one whose manifest is not complete.
fn analyzed(mut trace: Trace, packs: &Packs, options: &Options) -> Capture {
    let _stage = Stage::Analysing.span(&trace.source).entered();
    let analysis = analysis::analyze(&trace, packs, options);
    let mut shown = Inferred::of(&trace, &analysis);
    shown.complete(&mut trace);
    Capture { trace, analysis, shown }
}

/// A capture that was analysed.
pub struct Capture {
    /// The capture; its manifest holds what it shows of its run.
    pub trace: Trace,
    /// Its steps, buckets and gaps.
    pub analysis: Analysis,
    /// What its manifest holds because the capture shows it.
    pub shown: Inferred,
}

/// Captures that were analysed.
pub struct Examined {
    pub(crate) captures: Vec<Capture>,
    packs: Packs,
    cancel: Cancel,
}

impl Examined {
    /// The captures.
    pub fn captures(&self) -> &[Capture] {
        &self.captures
    }

    /// The captures, given away.
    pub fn into_captures(self) -> Vec<Capture> {
        self.captures
    }

    /// Looks for what costs the time of their steps.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn diagnose(mut self) -> Result<Diagnosed, Error> {
        let pairs: Vec<_> = self.captures.iter().map(|capture| (&capture.trace, &capture.analysis)).collect();
        let held = second_run::held(&pairs);
        for (capture, _) in self.captures.iter_mut().zip(held).filter(|(_, held)| *held) {
            capture.analysis.evidence.insert(EvidenceClass::SecondRun);
        }
        let Self { captures, packs, cancel } = self;
        cancel.clone().watch(|| {
            let diagnosed = captures.into_iter().map(|Capture { trace, analysis, .. }| {
                cancel.check();
                let diagnosis = judge(&trace, &analysis, &packs);
                (trace, analysis, diagnosis)
            });
            Ok(Diagnosed { captures: diagnosed.collect() })
        })
    }
}

/// The only place that diagnoses.
pub(crate) fn judge(trace: &Trace, analysis: &Analysis, packs: &Packs) -> Diagnosis {
    let _stage = Stage::Diagnosing.span(&trace.source).entered();
    let diagnosis = diagnose::diagnose(trace, analysis, packs);
    info!(
        target: "strato::session",
        source = %trace.source,
        device_operations = analysis.integrity.device_ops,
        findings = diagnosis.findings.len(),
        "diagnosed"
    );
    diagnosis
}

/// Captures that were diagnosed.
pub struct Diagnosed {
    /// Each with what was found in it.
    pub captures: Vec<(Trace, Analysis, Diagnosis)>,
}

impl Diagnosed {
    /// What the reports, pages and views show.
    pub fn report(&self) -> Report {
        let _span = info_span!(target: "strato::session", "reporting").entered();
        Report::build(&self.captures)
    }
}
