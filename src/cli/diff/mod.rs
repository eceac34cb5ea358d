//! `strato diff`: two captures of the same work beside each other, or the reason why they may not be.

mod gate;
mod launches;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use model::{
    Ns, Trace,
    manifest::{self, Field},
};
use rustc_hash::FxHashSet;

use super::{
    Global,
    declaration::Declaration,
    examine::{ANALYSING, Narrowed},
    exit::{Exit, Usage},
    output::Output,
    probed,
    progress::Bar,
    say, source, target,
};
use diagnosis::{
    analysis::Analysis,
    compare::{
        Difference, Statistics,
        chosen::{self, Captured},
        contract::{self, Facts, Subject, claim},
        statistics::Floor,
    },
    diagnose::{self, Readiness},
    i18n::{Lang, Text},
    platform::Packs,
};
use report::{
    Report,
    diff::{DiffReport, Head, json},
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
    /// Form of the report.
    #[arg(long, value_enum, default_value_t = Form::Md)]
    format: Form,
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
    #[command(flatten)]
    source: source::Reading,
}

/// What a comparison rests on beside its captures.
#[derive(Debug, Default, clap::Args)]
pub struct Terms {
    /// What is known of the captures and they do not say: a TOML file with tables [both], [a] and [b], whose keys are fields
    /// of the manifest.
    #[arg(long, value_name = "FILE")]
    declare: Option<PathBuf>,
    /// Field that differs on purpose: what the pair was made to find out (may be given several times).
    #[arg(long, value_name = "FIELD", value_parser = studied)]
    study: Vec<&'static Field>,
    /// Measured ceilings of the machine of A: what 'strato probe --save' wrote there.
    #[arg(long, value_name = "FILE")]
    probe_a: Option<PathBuf>,
    /// Measured ceilings of the machine of B.
    #[arg(long, value_name = "FILE")]
    probe_b: Option<PathBuf>,
}

impl Terms {
    /// Whether any was given.
    pub fn is_given(&self) -> bool {
        !self.study.is_empty() || [&self.declare, &self.probe_a, &self.probe_b].into_iter().any(Option::is_some)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Markdown, for people.
    Md,
    /// JSON, for scripts.
    Json,
}

/// A field that may differ on purpose.
fn studied(key: &str) -> Result<&'static Field, String> {
    match manifest::field(key) {
        Some(field) if claim::may_be_studied(field) => Ok(field),
        Some(_) => Err(format!("runs that differ in '{key}' did different work; nothing can be studied by that")),
        None => Err(format!("'{key}' is no field of the manifest, such as software.graph_mode")),
    }
}

/// The runs of one side.
pub struct Runs {
    /// Its launches.
    pub captures: Vec<(Trace, Analysis)>,
    /// The one that stands for them: of which the main class has the median step.
    pub chosen: usize,
    /// Captures that were given twice.
    pub twice: Vec<String>,
}

impl Runs {
    fn chosen(&self) -> anyhow::Result<&(Trace, Analysis)> {
        self.captures
            .get(self.chosen)
            .ok_or_else(|| Usage("a side of the comparison is empty; name a capture".into()).into())
    }

    /// Makes sure that the launches of a side are launches of one run: one that did other work would stand in its numbers.
    fn check(&self) -> anyhow::Result<()> {
        let chosen = self.chosen()?;
        for launch in &self.captures {
            if let Some(why) = launches::differ(chosen, launch) {
                return Err(Usage(format!(
                    "'{}' and '{}' are no launches of one run: {why}; compare them as A and B",
                    chosen.0.source, launch.0.source
                ))
                .into());
            }
        }
        Ok(())
    }

    fn facts(&self, trace: &Trace, analysis: &Analysis) -> Facts {
        // A launch without steps of the kind that is compared is none for this comparison, whatever a manifest says of others.
        let runs = self.captures.iter().filter(|(_, other)| main_class(other) == main_class(analysis)).count() as u64;
        let noise = runs > 1 || trace.manifest.value(Floor::FACT).is_some_and(|text| Floor::read(text).is_some());
        Facts { runs: Some(runs), noise, ..Facts::of(trace, analysis) }
    }

    /// All of them, each another launch.
    fn captured(&self) -> Vec<Captured<'_>> {
        self.captures.iter().map(|(trace, analysis)| (trace, analysis)).collect()
    }

    fn report(&self, packs: &Packs) -> Report {
        let mut inputs = Vec::with_capacity(self.captures.len());
        for (trace, analysis) in &self.captures {
            inputs.push((trace, analysis, diagnose::diagnose(trace, analysis, packs)));
        }
        Report::of(inputs.iter().map(|(trace, analysis, diagnosis)| (*trace, *analysis, diagnosis)))
    }
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    let packs = arguments.source.packs()?;
    let inputs = [paths(&arguments.a)?, paths(&arguments.b)?];
    if let Some(output) = &arguments.output {
        inputs.iter().try_for_each(|inputs| target::check(output, inputs))?;
    }
    let baseline = arguments.gate.baseline()?;
    let how = How {
        narrowed: &arguments.narrowed,
        reading: &arguments.source,
        packs: &packs,
        lang: global.lang(),
        bar: &Bar::new(),
    };
    let sides = read(&inputs, &arguments.terms, &how)?;
    for source in sides.iter().flat_map(|runs| &runs.twice) {
        say(&format!("strato: {}", twice(source, Lang::En)));
    }
    let report = compare(&sides, &arguments.terms, || sides.each_ref().map(|runs| runs.report(&packs)))?;
    let readiness = [readiness(&report, &sides, 0, &packs)?, readiness(&report, &sides, 1, &packs)?];
    let report = report.with_readiness(readiness);
    let lang = global.lang();
    let text = match arguments.format {
        Form::Md => Output::Document(report.document(lang)),
        Form::Json => Output::Data(json::render(&report, lang)?),
    };
    if arguments.output.is_some() || !arguments.quiet {
        global.deliver(&text, arguments.output.as_deref())?;
    }
    Ok(arguments.gate.judge(&report, baseline))
}

/// Holds two sides against each other; `apart` gives the report on each by itself, where they may not be compared.
///
/// # Errors
/// A side whose captures are no launches of one run.
pub fn compare(sides: &[Runs; 2], terms: &Terms, apart: impl FnOnce() -> [Report; 2]) -> anyhow::Result<DiffReport> {
    sides.iter().try_for_each(Runs::check)?;
    let [a, b] = sides;
    let ((trace_a, analysis_a), (trace_b, analysis_b)) = (a.chosen()?, b.chosen()?);
    let (facts_a, facts_b) = (a.facts(trace_a, analysis_a), b.facts(trace_b, analysis_b));
    let contract = contract::judge(
        Subject { manifest: &trace_a.manifest, facts: &facts_a },
        Subject { manifest: &trace_b.manifest, facts: &facts_b },
        &terms.study,
    );
    let per_token = terms.study.iter().any(|field| field.key == "caps.batch");
    Ok(DiffReport::build(
        [head(trace_a), head(trace_b)],
        contract,
        || Difference::of((trace_a, analysis_a), (trace_b, analysis_b), per_token),
        |difference| Statistics::of(difference, [&a.captured(), &b.captured()]),
        apart,
    ))
}

/// How ready the platform of a side is: as its own report says, where there is one.
fn readiness(report: &DiffReport, sides: &[Runs; 2], side: usize, packs: &Packs) -> anyhow::Result<Readiness> {
    let Some(runs) = sides.get(side) else { return Ok(Readiness::default()) };
    let own = report.apart.as_ref().and_then(|apart| apart.get(side)?.captures.get(runs.chosen));
    if let Some(capture) = own {
        return Ok(capture.readiness.clone());
    }
    let (trace, analysis) = runs.chosen()?;
    Ok(diagnose::diagnose(trace, analysis, packs).readiness)
}

/// Said of a capture that was given twice.
pub fn twice(source: &str, lang: Lang) -> String {
    let text =
        Text::new("was given twice for one side; one launch counts once", "在同一侧给出了两次；同一次启动只计一次");
    format!("'{source}' {}", text.get(lang))
}

/// The key of the class that a capture is about.
fn main_class(analysis: &Analysis) -> Option<&str> {
    let main = analysis.ranks.iter().find_map(|rank| rank.main_class().filter(|class| class.steady > 0));
    main.map(|class| class.key.as_str())
}

/// The paths of one side, which stand with commas between them unless a file has a comma in its name.
///
/// # Errors
/// A side that names nothing.
pub fn paths(side: &str) -> Result<Vec<PathBuf>, Usage> {
    if Path::new(side).exists() {
        return Ok(vec![side.into()]);
    }
    let paths: Vec<PathBuf> = side.split(',').filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    if paths.is_empty() { Err(Usage("a side of the comparison is empty; name a capture".into())) } else { Ok(paths) }
}

/// How captures are read and narrowed down, and who is told.
pub struct How<'a> {
    /// What part of them is looked at.
    pub narrowed: &'a Narrowed,
    /// How they are read.
    pub reading: &'a source::Reading,
    /// By what knowledge.
    pub packs: &'a Packs,
    /// In which language it is told what is being done.
    pub lang: Lang,
    /// Who is told.
    pub bar: &'a Bar,
}

/// Reads the captures of both sides, with what their probes and a person say of them.
///
/// # Errors
/// What cannot be read, and a declaration that a capture contradicts.
pub fn read(inputs: &[Vec<PathBuf>; 2], terms: &Terms, how: &How<'_>) -> anyhow::Result<[Runs; 2]> {
    let declared = terms.declare.as_deref().map(Declaration::read).transpose()?.unwrap_or_default();
    let [a, b] = inputs;
    let of = |side: usize, paths: &[PathBuf], probe: Option<&Path>| -> anyhow::Result<Runs> {
        let mut traces = source::open_with(paths, how.reading, how.packs, how.bar)?;
        probe.map_or(Ok(()), |file| probed::attach(file, &mut traces, how.bar))?;
        traces.iter_mut().try_for_each(|trace| declared.apply(side, trace))?;
        let mut runs = runs(traces, how)?;
        // What a capture shows of its run is known only now, and nothing may be declared against that either.
        runs.captures.iter_mut().try_for_each(|(trace, _)| declared.apply(side, trace))?;
        Ok(runs)
    };
    Ok([of(0, a, terms.probe_a.as_deref())?, of(1, b, terms.probe_b.as_deref())?])
}

/// Analyses the launches of a side, and chooses the one that stands for them.
fn runs(mut traces: Vec<Trace>, how: &How<'_>) -> anyhow::Result<Runs> {
    let twice = once(&mut traces);
    let captures = how.narrowed.analyze(traces, how.packs, |source| how.bar.stage(ANALYSING.get(how.lang), source))?;
    let step = |(_, analysis): &(Trace, Analysis)| {
        let main = analysis.ranks.iter().find_map(|rank| rank.main_class().filter(|class| class.steady > 0));
        main.map(|class| class.p50)
    };
    let mut order: Vec<(Ns, usize)> = captures.iter().enumerate().filter_map(|(i, c)| Some((step(c)?, i))).collect();
    order.sort_unstable();
    let chosen = order.get(order.len().saturating_sub(1) / 2).map_or(0, |(_, i)| *i);
    Ok(Runs { captures, chosen, twice })
}

/// Leaves one of each launch, and returns those that were given again: a capture that is named twice is no second run.
fn once(traces: &mut Vec<Trace>) -> Vec<String> {
    let mut seen = FxHashSet::default();
    let mut twice = Vec::new();
    traces.retain(|trace| {
        let new = seen.insert(contract::digest(trace));
        if !new {
            twice.push(trace.source.clone());
        }
        new
    });
    twice
}

fn head(trace: &Trace) -> Head {
    Head {
        name: trace.source.rsplit(['/', '\\']).next().unwrap_or_default().to_owned(),
        device: chosen::device(trace),
        simulated: trace.simulated,
    }
}
