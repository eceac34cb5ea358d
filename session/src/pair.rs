//! Two sides of a comparison: contract first, then the difference.

use std::{cell::OnceCell, path::PathBuf};

use diagnosis::{
    analysis::{Analysis, Options},
    compare::{
        Difference, Statistics,
        chosen::{self, Captured},
        contract::{self, Facts, Subject},
        statistics::Floor,
        work::Profile,
    },
    diagnose::{Diagnosis, Readiness, VerdictLayer},
    platform::Packs,
    serving::Slo,
};
use model::{Ns, Trace, manifest::Field};
use report::{
    Report,
    diff::{DiffReport, Head},
};
use rustc_hash::FxHashSet;

use crate::{Capture, Declaration, Error, Reading, Session, examined::judge, progress::Stage, repeats};

/// What a comparison rests on beside its captures.
#[derive(Debug, Default)]
pub struct Terms {
    /// What is known of the captures and they do not say.
    pub declared: Declaration,
    /// Fields that differ on purpose: what the pair was made to find out.
    pub study: Vec<&'static Field>,
    /// Whether the numbers are asked for although the contract refuses them.
    pub force: bool,
    /// Whether the two are meant to do unequal amounts of work.
    pub work_differs: bool,
    /// What times of requests have to hold.
    pub slo: Option<Slo>,
    /// The stage of the steps that are compared, where somebody says it.
    pub stage: Option<diagnosis::platform::Stage>,
    /// Measured ceilings of the machines of A and B.
    pub probes: [Option<PathBuf>; 2],
}

/// A repeat of a side's run: one launch of it.
struct Repeat {
    trace: Trace,
    analysis: Analysis,
    /// Made when it is asked for: a comparison needs only that of the repeat that stands for its side.
    diagnosis: OnceCell<Diagnosis>,
}

impl Repeat {
    fn diagnosis(&self, packs: &Packs) -> &Diagnosis {
        self.diagnosis.get_or_init(|| judge(&self.trace, &self.analysis, packs))
    }
}

/// The runs of one side.
struct Side {
    /// Its repeats.
    repeats: Vec<Repeat>,
    /// The one that stands for them: of which the main class has the median step.
    chosen: usize,
    /// Sources of captures that were given twice; one launch counts once.
    twice: Vec<String>,
}

impl Side {
    /// Of captures that are in memory; `side` is 0 for A and 1 for B.
    fn of(session: Session, side: usize, options: &Options, terms: &Terms) -> Result<Self, Error> {
        let mut twice = Vec::new();
        let session = session.edit(|traces| {
            traces.iter_mut().try_for_each(|trace| terms.declared.apply(side, trace))?;
            twice = once(traces);
            Ok(())
        })?;
        let examined = session.examine(options)?.into_captures().into_iter();
        let mut repeats: Vec<Repeat> = examined
            .map(|Capture { trace, analysis, .. }| Repeat { trace, analysis, diagnosis: OnceCell::new() })
            .collect();
        // What a capture shows of its run is known only now, and nothing may be declared against that either.
        repeats.iter_mut().try_for_each(|repeat| {
            terms.declared.apply(side, &mut repeat.trace)?;
            terms.declared.fits_the_prompts(side, &repeat.trace, &repeat.analysis)
        })?;
        let steps = repeats.iter().enumerate().filter_map(|(i, repeat)| Some((median_step(&repeat.analysis)?, i)));
        let mut order: Vec<(Ns, usize)> = steps.collect();
        order.sort_unstable();
        let chosen = order.get(order.len().saturating_sub(1) / 2).map_or(0, |(_, i)| *i);
        Ok(Self { repeats, chosen, twice })
    }

    fn chosen(&self) -> Result<&Repeat, Error> {
        let chosen = self.repeats.get(self.chosen);
        chosen.ok_or_else(|| Error::request("a side of the comparison is empty; name a capture"))
    }

    /// Makes sure that the captures of a side are repeats of one run: one that did other work would stand in its numbers.
    fn check(&self) -> Result<(), Error> {
        let chosen = self.chosen()?;
        for repeat in &self.repeats {
            let why = repeats::differ((&chosen.trace, &chosen.analysis), (&repeat.trace, &repeat.analysis));
            if let Some(why) = why {
                return Err(Error::Request(format!(
                    "'{}' and '{}' are no launches of one run: {why}; compare them as A and B",
                    chosen.trace.source, repeat.trace.source
                )));
            }
        }
        Ok(())
    }

    /// The facts of a side, with the work of the steps that are compared where any are.
    fn facts(&self, chosen: &Repeat, work: Option<Profile>, packs: &Packs) -> Facts {
        let Repeat { trace, analysis, .. } = chosen;
        // A launch without steps of the kind that is compared is none for this comparison, whatever a manifest says of others.
        let same_kind = |other: &&Repeat| match (counted(&other.analysis), counted(analysis)) {
            (Some(one), Some(other)) => one.is_like(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let runs = self.repeats.iter().filter(same_kind).count() as u64;
        let noise = runs > 1 || trace.manifest.value(Floor::FACT).is_some_and(|text| Floor::read(text).is_some());
        let own = Facts::of(trace, analysis);
        let verdict = &chosen.diagnosis(packs).verdict;
        let shared = verdict.layer == VerdictLayer::Undecided && verdict.because.contains(&"CP-13");
        let idle = verdict.layer == VerdictLayer::Load;
        Facts { runs: Some(runs), noise, shared, idle, work: work.or(own.work), ..own }
    }

    fn captured(&self) -> Vec<Captured<'_>> {
        self.repeats.iter().map(|repeat| (&repeat.trace, &repeat.analysis)).collect()
    }

    /// The repeat that stands for the side, given away.
    fn into_chosen(self, packs: &Packs) -> Option<(Trace, Analysis, Diagnosis)> {
        let Repeat { trace, analysis, diagnosis } = self.repeats.into_iter().nth(self.chosen)?;
        let diagnosis = diagnosis.into_inner().unwrap_or_else(|| judge(&trace, &analysis, packs));
        Some((trace, analysis, diagnosis))
    }

    fn report(&self, packs: &Packs) -> Report {
        Report::of(self.repeats.iter().map(|repeat| (&repeat.trace, &repeat.analysis, repeat.diagnosis(packs))))
    }
}

/// Two sides that were opened and analysed.
pub struct Pair {
    sides: [Side; 2],
    packs: Packs,
}

impl Pair {
    /// Opens and analyses both sides, each of one or more repeats of a run.
    ///
    /// # Errors
    /// Those of [`Session::open`] and [`Session::examine`], and a declaration that a capture contradicts.
    pub fn open(
        inputs: &[Vec<PathBuf>; 2],
        reading: &Reading,
        options: &Options,
        terms: &Terms,
    ) -> Result<Self, Error> {
        Self::of(Self::sessions(inputs, reading, terms)?, options, terms)
    }

    /// Opens both sides.
    ///
    /// # Errors
    /// Those of [`Session::open`].
    pub fn sessions(inputs: &[Vec<PathBuf>; 2], reading: &Reading, terms: &Terms) -> Result<[Session; 2], Error> {
        let [a, b] = inputs;
        let [probes_a, probes_b] = &terms.probes;
        let side = |paths: &[PathBuf], probes: &Option<PathBuf>| {
            Session::open(paths, &Reading { probes: probes.clone(), ..reading.clone() })
        };
        Ok([side(a, probes_a)?, side(b, probes_b)?])
    }

    /// Analyses both sides, which are in memory.
    ///
    /// # Errors
    /// Those of [`Session::examine`], and a declaration that a capture contradicts.
    pub fn of(sessions: [Session; 2], options: &Options, terms: &Terms) -> Result<Self, Error> {
        let [a, b] = sessions;
        let packs = a.packs().clone();
        let mut sides = [Side::of(a, 0, options, terms)?, Side::of(b, 1, options, terms)?];
        let repeats = sides.iter_mut().flat_map(|side| &mut side.repeats);
        terms.declared.agree(repeats.map(|repeat| &mut repeat.trace))?;
        Ok(Self { sides, packs })
    }

    /// Sources of captures that were given twice for one side; one launch counts once.
    pub fn twice(&self) -> impl Iterator<Item = &str> {
        self.sides.iter().flat_map(|side| side.twice.iter().map(String::as_str))
    }

    /// The capture that stands for each side, with what was found in it; `None` where a side is empty.
    pub fn into_chosen(self) -> Option<[(Trace, Analysis, Diagnosis); 2]> {
        let [a, b] = self.sides;
        Some([a.into_chosen(&self.packs)?, b.into_chosen(&self.packs)?])
    }

    /// Whether each side is one capture.
    pub fn singles(&self) -> Option<[&Trace; 2]> {
        match [self.sides[0].repeats.as_slice(), self.sides[1].repeats.as_slice()] {
            [[a], [b]] => Some([&a.trace, &b.trace]),
            _ => None,
        }
    }

    /// What B takes longer than A and what that comes from, where the contract allows to say it; else why not, with the report on
    /// each side by itself.
    ///
    /// # Errors
    /// A side whose captures are no repeats of one run.
    pub fn compare(&self, terms: &Terms) -> Result<DiffReport, Error> {
        self.sides.iter().try_for_each(Side::check)?;
        let [a, b] = &self.sides;
        let (of_a, of_b) = (a.chosen()?, b.chosen()?);
        let _stage = Stage::Comparing.span("").entered();
        let per_token = terms.work_differs || terms.study.iter().any(|field| field.key == "caps.batch");
        let captured = [of_a, of_b].map(|own| (&own.trace, &own.analysis));
        let chosen = chosen::pair_of(captured[0], captured[1], per_token || terms.force, terms.stage);
        let [work_a, work_b] = match chosen {
            Some(sides) => sides.map(|side| Profile::of(&side)),
            None => [None, None],
        };
        let (facts_a, facts_b) = (a.facts(of_a, work_a, &self.packs), b.facts(of_b, work_b, &self.packs));
        let mut contract = contract::judge(
            Subject { manifest: &of_a.trace.manifest, facts: &facts_a },
            Subject { manifest: &of_b.trace.manifest, facts: &facts_b },
            &terms.study,
        );
        if terms.work_differs {
            contract.allow_unequal();
        }
        let report = DiffReport::build(
            [head(&of_a.trace), head(&of_b.trace)],
            contract,
            terms.force,
            || Some(Difference::of_sides(chosen?, per_token)),
            |difference| Statistics::of(difference, [&a.captured(), &b.captured()]),
            || [a.report(&self.packs), b.report(&self.packs)],
        );
        let readiness: [Readiness; 2] = [of_a, of_b].map(|chosen| chosen.diagnosis(&self.packs).readiness.clone());
        let unequal = report.difference.as_ref().is_some_and(|own| own.waterfall.setup.unequal);
        Ok(report.with_readiness(readiness).of_unequal_work(terms.work_differs || unequal))
    }

    /// The captures of both sides, diagnosed, and the places of those that stand for A and B among them.
    pub fn diagnose(self) -> (Vec<(Trace, Analysis, Diagnosis)>, [usize; 2]) {
        let places = [self.sides[0].chosen, self.sides[0].repeats.len() + self.sides[1].chosen];
        let diagnosed = |repeat: Repeat| {
            let Repeat { trace, analysis, diagnosis } = repeat;
            let diagnosis = diagnosis.into_inner().unwrap_or_else(|| judge(&trace, &analysis, &self.packs));
            (trace, analysis, diagnosis)
        };
        (self.sides.into_iter().flat_map(|side| side.repeats).map(diagnosed).collect(), places)
    }
}

/// The main class of a capture, where it has steps that count.
fn counted(analysis: &Analysis) -> Option<&diagnosis::analysis::Class> {
    analysis.ranks.iter().find_map(|rank| rank.main_class().filter(|class| class.steady > 0))
}

/// The median step of that class, ns.
fn median_step(analysis: &Analysis) -> Option<Ns> {
    counted(analysis).map(|class| class.p50)
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

pub(crate) fn head(trace: &Trace) -> Head {
    Head {
        name: trace.source.rsplit(['/', '\\']).next().unwrap_or_default().to_owned(),
        device: chosen::device(trace),
        simulated: trace.simulated,
    }
}
