//! The examination of one run: simulate, write, read, analyse, diagnose, and hold the answer against the truth.

use std::{collections::BTreeMap, path::Path};

use anyhow::Context as _;
use model::{Ns, Trace};
use simulator::Fault;

use super::{
    answer::{Answer, Injected},
    deprive::Loss,
    plan::{Case, mode_key},
    subject::{self, Form, Subject},
    worth::Worth,
};
use crate::cli::scratch::Scratch;
use diagnosis::{
    analysis::{Analysis, Class, Layer, Options},
    platform::Packs,
};
use session::Session;

/// What one run showed.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The run.
    pub case: Case,
    /// How its decode was issued.
    pub mode: &'static str,
    /// Ranks that were simulated.
    pub ranks: usize,
    /// True mean steady step, ns.
    pub step: Ns,
    /// Its faults and what they cost.
    pub faults: Vec<Injected>,
    /// The answer.
    pub answer: Answer,
    /// The answers to the same run with evidence taken away.
    pub poorer: Vec<(Loss, Answer)>,
    /// Layer of the largest bucket.
    pub largest: Option<Layer>,
    /// Layer of the bucket that grew most over the run without its faults.
    pub grown: Option<Layer>,
    /// Largest part of a wait that the wait identity leaves unexplained, ns; `None` without waits on other ranks.
    pub residual: Option<Ns>,
}

/// What beside the answer itself is looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Depth {
    /// Read and analyse the run without its faults too, for the second baseline.
    pub twin: bool,
    /// Take evidence away.
    pub losses: bool,
    /// What the run is written as, if not as usual.
    pub form: Option<Form>,
}

impl Case {
    /// A name for the files of the run.
    fn name(&self, config: &simulator::Config) -> String {
        let size = self.faults.first().map_or(0, |fault| fault.magnitude_permille);
        format!("{}-{size}-seed{}-ranks{}", self.key(), self.seed, config.ranks)
    }
}

/// Examines one run; its files stay in a directory of their own in `keep` if that is given.
///
/// # Errors
/// Those of making directories, and of [`Subject::capture`].
pub fn examine(case: &Case, depth: Depth, keep: Option<&Path>, packs: &Packs) -> anyhow::Result<Examined> {
    let drawn = case.config();
    let form = depth.form.unwrap_or_else(|| Form::usual(&drawn));
    let config = form.platform(drawn);
    let subject = Subject::new(&config);
    let step = subject.step();
    let faults: Vec<Injected> = config.faults.iter().map(|fault| injected(&config, form, fault, step)).collect();
    let temporary = Scratch::make().context("cannot make a temporary directory; set TMPDIR to a writable one")?;
    let trace = match keep {
        None => subject.capture(&temporary.path().join("run"), form),
        Some(keep) => subject.capture(&keep.join(case.name(&config)), form),
    }?;
    let mut worth = Worth::new(&config, step);
    let poorer: Vec<(Loss, Trace)> = Loss::ALL
        .into_iter()
        .filter(|loss| depth.losses && loss.applies(&trace))
        .map(|loss| (loss, loss.from(&trace)))
        .collect();
    let mut answer = |trace: Trace| -> anyhow::Result<_> {
        let diagnosed = examined(trace, packs)?.diagnose()?.captures;
        let (_, analysis, diagnosis) = diagnosed.into_iter().next().context("the simulated capture is gone")?;
        Ok((Answer::new(&diagnosis, &faults, &mut worth), analysis))
    };
    let (full, analysis) = answer(trace)?;
    let poorer = poorer.into_iter().map(|(loss, trace)| Ok((loss, answer(trace)?.0))).collect::<anyhow::Result<_>>()?;
    let grown = match faults.is_empty() || !depth.twin {
        true => None,
        false => {
            let twin = Subject::new(&config.twin()).capture(&temporary.path().join("twin"), form)?;
            let twin = examined(twin, packs)?.into_captures();
            twin.first().and_then(|twin| most_grown(&analysis, &twin.analysis))
        }
    };
    Ok(Examined {
        case: case.clone(),
        mode: mode_key(config.mode),
        ranks: config.ranks,
        step,
        faults,
        answer: full,
        poorer,
        largest: longest(&analysis).and_then(largest),
        grown,
        residual: analysis.job.waits.iter().filter(|w| !w.causes.is_empty()).map(|w| w.skew.abs()).max(),
    })
}

fn examined(trace: Trace, packs: &Packs) -> anyhow::Result<session::Examined> {
    Ok(Session::of(vec![trace], packs.clone()).examine(&Options::default())?)
}

fn injected(config: &simulator::Config, form: Form, fault: &Fault, step: Ns) -> Injected {
    let without = Subject::new(&config.without(fault.kind)).step();
    let culprit = config.culprit(fault.kind).filter(|_| config.ranks > 1).and_then(|rank| u32::try_from(rank).ok());
    let told = subject::tells(config, form, fault.kind);
    Injected { kind: fault.kind, family: fault.kind.layer(), culprit, gain: step - without, told }
}

/// The main class of the rank that takes longest.
fn longest(analysis: &Analysis) -> Option<&Class> {
    analysis.ranks.iter().filter_map(|rank| rank.main_class()).max_by_key(|class| class.total)
}

fn largest(class: &Class) -> Option<Layer> {
    class.buckets.iter().max_by_key(|(bucket, ns)| (*ns, std::cmp::Reverse(*bucket))).map(|(bucket, _)| bucket.layer())
}

/// Layer of the bucket that takes most longer per step than in `healthy`.
fn most_grown(analysis: &Analysis, healthy: &Analysis) -> Option<Layer> {
    let buckets = |analysis: &Analysis| -> BTreeMap<String, (Layer, Ns)> {
        let class = longest(analysis).into_iter();
        let per_step = class.flat_map(|c| c.buckets.iter().map(|(b, ns)| (b, ns / c.steady.max(1) as Ns)));
        per_step.map(|(bucket, ns)| (bucket.name(&analysis.host_labels), (bucket.layer(), ns))).collect()
    };
    let before = buckets(healthy);
    let growth = |name: &String, ns: Ns| ns - before.get(name).map_or(0, |(_, ns)| *ns);
    let now = buckets(analysis);
    let most = now.iter().max_by_key(|(name, (_, ns))| growth(name, *ns));
    most.map(|(_, (layer, _))| *layer)
}
