//! `strato diff`: two captures of the same work beside each other, or the reason why they may not be.

mod gate;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use model::{
    Ns, Trace,
    manifest::{self, Control, FIELDS, Field},
};
use rustc_hash::FxHashSet;

use super::{
    Global,
    declaration::Declaration,
    examine::Narrowed,
    exit::{Exit, Usage},
    output::Kind,
    probed,
    progress::Bar,
    say, source, target,
};
use crate::{
    analysis::Analysis,
    compare::{
        Difference, Statistics,
        chosen::{self, Captured},
        contract::{self, Facts, Subject, claim},
        statistics::Floor,
    },
    diagnose,
    platform::Packs,
    report::{
        Report,
        diff::{DiffReport, Head, json, markdown},
    },
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
struct Runs {
    captures: Vec<(Trace, Analysis)>,
    /// The one that stands for them: of which the main class has the median step.
    chosen: usize,
}

impl Runs {
    fn chosen(&self) -> anyhow::Result<&(Trace, Analysis)> {
        self.captures
            .get(self.chosen)
            .ok_or_else(|| Usage("a side of the comparison is empty; name a capture".into()).into())
    }

    /// Makes sure that the launches of a side are launches of one run: one that did other work would stand in its numbers.
    fn check(&self) -> anyhow::Result<()> {
        let (chosen, _) = self.chosen()?;
        for (trace, _) in &self.captures {
            let other = |field: &&Field| {
                let of = |trace: &Trace| trace.manifest.value(field.key).map(str::to_owned);
                field.control == Control::Hard && of(trace).zip(of(chosen)).is_some_and(|(x, y)| x != y)
            };
            let differs = FIELDS.iter().find(other).map(|field| field.key);
            let simulated = trace.simulated != chosen.simulated;
            if let Some(what) = differs.or_else(|| simulated.then_some("what is simulated and what is measured")) {
                return Err(Usage(format!(
                    "'{}' and '{}' are no launches of one run: they differ in {what}; compare them as A and B",
                    chosen.source, trace.source
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
    let paths = [paths(&arguments.a)?, paths(&arguments.b)?];
    if let Some(output) = &arguments.output {
        paths.iter().try_for_each(|inputs| target::check(output, inputs))?;
    }
    let baseline = arguments.gate.baseline()?;
    let declared = arguments.declare.as_deref().map(Declaration::read).transpose()?.unwrap_or_default();
    let probes = [arguments.probe_a.as_deref(), arguments.probe_b.as_deref()];
    let [a, b] = &paths;
    let read = |side: usize, paths: &[PathBuf]| read(&arguments, paths, (side, probes[side], &declared), &packs);
    let (a, b) = (read(0, a)?, read(1, b)?);
    [&a, &b].into_iter().try_for_each(Runs::check)?;
    let ((trace_a, analysis_a), (trace_b, analysis_b)) = (a.chosen()?, b.chosen()?);
    let (facts_a, facts_b) = (a.facts(trace_a, analysis_a), b.facts(trace_b, analysis_b));
    let contract = contract::judge(
        Subject { manifest: &trace_a.manifest, facts: &facts_a },
        Subject { manifest: &trace_b.manifest, facts: &facts_b },
        &arguments.study,
    );
    let per_token = arguments.study.iter().any(|field| field.key == "caps.batch");
    let report = DiffReport::build(
        [head(trace_a), head(trace_b)],
        contract,
        || Difference::of((trace_a, analysis_a), (trace_b, analysis_b), per_token),
        |difference| Statistics::of(difference, [&a.captured(), &b.captured()]),
        || [a.report(&packs), b.report(&packs)],
    );
    let lang = global.lang();
    let (text, kind) = match arguments.format {
        Form::Md => (markdown::render(&report, lang), Kind::Markdown),
        Form::Json => (json::render(&report, lang)?, Kind::Data),
    };
    if arguments.output.is_some() || !arguments.quiet {
        global.deliver(&text, kind, arguments.output.as_deref())?;
    }
    Ok(arguments.gate.judge(&report, baseline))
}

/// The key of the class that a capture is about.
fn main_class(analysis: &Analysis) -> Option<&str> {
    let main = analysis.ranks.iter().find_map(|rank| rank.main_class().filter(|class| class.steady > 0));
    main.map(|class| class.key.as_str())
}

/// The paths of one side, which stand with commas between them unless a file has a comma in its name.
fn paths(side: &str) -> Result<Vec<PathBuf>, Usage> {
    if Path::new(side).exists() {
        return Ok(vec![side.into()]);
    }
    let paths: Vec<PathBuf> = side.split(',').filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    if paths.is_empty() { Err(Usage("a side of the comparison is empty; name a capture".into())) } else { Ok(paths) }
}

/// Reads the captures of one side, with what its probes and a person say of them.
fn read(
    arguments: &Arguments,
    paths: &[PathBuf],
    (side, probe, declared): (usize, Option<&Path>, &Declaration),
    packs: &Packs,
) -> anyhow::Result<Runs> {
    let bar = Bar::new();
    let mut traces = source::open_with(paths, &arguments.source, packs, &bar)?;
    probe.map_or(Ok(()), |file| probed::attach(file, &mut traces, &bar))?;
    traces.iter_mut().try_for_each(|trace| declared.apply(side, trace))?;
    once(&mut traces);
    let mut captures = arguments.narrowed.analyze(traces, packs, |_| ())?;
    // What a capture shows of its run is known only now, and nothing may be declared against that either.
    captures.iter_mut().try_for_each(|(trace, _)| declared.apply(side, trace))?;
    let step = |(_, analysis): &(Trace, Analysis)| {
        let main = analysis.ranks.iter().find_map(|rank| rank.main_class().filter(|class| class.steady > 0));
        main.map(|class| class.p50)
    };
    let mut order: Vec<(Ns, usize)> = captures.iter().enumerate().filter_map(|(i, c)| Some((step(c)?, i))).collect();
    order.sort_unstable();
    let chosen = order.get(order.len().saturating_sub(1) / 2).map_or(0, |(_, i)| *i);
    Ok(Runs { captures, chosen })
}

/// Leaves one of each launch: a capture that is named twice is no second run.
fn once(traces: &mut Vec<Trace>) {
    let mut seen = FxHashSet::default();
    traces.retain(|trace| {
        let new = seen.insert(contract::digest(trace));
        if !new {
            say(&format!("strato: '{}' was given twice for one side; one launch counts once", trace.source));
        }
        new
    });
}

fn head(trace: &Trace) -> Head {
    Head {
        name: trace.source.rsplit(['/', '\\']).next().unwrap_or_default().to_owned(),
        device: chosen::device(trace),
        simulated: trace.simulated,
    }
}
