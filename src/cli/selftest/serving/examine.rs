//! The examination of one run that serves: simulate, write, read, diagnose, and hold the answer against the same run
//! without each of its faults.

use std::path::Path;

use anyhow::Context as _;
use diagnosis::{
    analysis::{Layer, Options},
    diagnose::{Breach, Diagnosis, Finding, Method, Severity, VerdictLayer},
    platform::Packs,
};
use session::Session;
use simulator::{FaultKind, Layer as Family};

use super::{
    super::{
        subject::{Form, Subject},
        worth::Worth,
    },
    Case,
};
use crate::cli::scratch::Scratch;

/// How far beside an interval a true share of the step still counts as inside: what rounding in a report takes.
const ROUNDED: f64 = 0.005;
/// Share of the step from which a gain that is no fault is worth speaking of: that of a finding of medium severity.
const MATTERS: f64 = 0.03;

/// Rules that name a fault beside those of its kind, where serving leaves open which of them it is.
const ALSO: [(FaultKind, &[&str]); 3] = [
    (FaultKind::LowBandwidth, &["CM-02", "CM-04", "CM-07"]),
    (FaultKind::LowClock, &["CP-06"]),
    (FaultKind::SlowPeer, &["CM-03", "CM-15"]),
];

/// What was said of one fault.
#[derive(Clone, Debug)]
pub struct Heard {
    /// The fault.
    pub kind: FaultKind,
    /// What it really costs, as a share of the step.
    pub share: f64,
    /// Place of the first finding that names it, from 0.
    pub place: Option<usize>,
    /// What that finding promises, as shares of the step it is made of.
    pub promised: Option<(f64, f64)>,
}

/// A finding on a healthy run that a reader would act upon.
#[derive(Clone, Debug)]
pub struct Accused {
    /// Rule.
    pub rule: &'static str,
    /// Severity.
    pub severity: Severity,
    /// Whether the same run with that thing improved is really shorter by as much as matters.
    pub founded: bool,
}

/// What one run showed.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The run.
    pub case: Case,
    /// True mean decode step of the slowest rank, ns.
    pub step: i64,
    /// Its faults and what was said of them.
    pub heard: Vec<Heard>,
    /// Whether what comes first blames the layer of one of its faults; `None` when no layer is blamed.
    pub layer: Option<bool>,
    /// The verdict.
    pub verdict: VerdictLayer,
    /// Rules of the findings, the first first.
    pub said: Vec<&'static str>,
    /// Of a healthy run, the findings of medium severity and above.
    pub accused: Vec<Accused>,
    /// What could not be and was withheld.
    pub breaches: Vec<Breach>,
}

impl Heard {
    /// Whether the true share lies in the interval given.
    pub fn inside(&self) -> Option<bool> {
        self.promised.map(|(low, high)| low - ROUNDED <= self.share && self.share <= high + ROUNDED)
    }

    /// Distance from the middle of the interval to the true share.
    pub fn error(&self) -> Option<f64> {
        self.promised.map(|(low, high)| ((low + high) / 2.0 - self.share).abs())
    }
}

fn names(kind: FaultKind, rule: &str) -> bool {
    let also = ALSO.iter().filter(|(other, _)| *other == kind).flat_map(|(_, rules)| *rules);
    kind.rules().iter().chain(also).any(|known| *known == rule)
}

fn blames(kind: FaultKind, finding: &Finding) -> bool {
    let at_home = match kind.layer() {
        Family::Operator => finding.layer == Layer::Operator,
        Family::Runtime => finding.layer == Layer::Runtime,
        Family::Communication => finding.layer == Layer::Communication,
        // A clock shows in operators.
        Family::Environment => matches!(finding.layer, Layer::Operator | Layer::Measurement),
        Family::Measurement | Family::LoadLimited => false,
    };
    at_home || names(kind, finding.rule)
}

fn stands_for(verdict: VerdictLayer, family: Family) -> Option<bool> {
    let layer = match verdict {
        VerdictLayer::Operator => Family::Operator,
        VerdictLayer::Runtime => Family::Runtime,
        VerdictLayer::Communication => Family::Communication,
        VerdictLayer::Load => Family::LoadLimited,
        VerdictLayer::None | VerdictLayer::Undecided => return None,
    };
    Some(layer == family || (family, layer) == (Family::Environment, Family::Operator))
}

fn promised(finding: &Finding) -> Option<(f64, f64)> {
    let estimate = &finding.estimate;
    let share = |to: i64| (estimate.from - to) as f64 / estimate.from as f64;
    (estimate.method != Method::None && estimate.from > 0).then(|| (share(estimate.to_high), share(estimate.to_low)))
}

/// Examines one run; its files stay in a directory of their own in `keep` if that is given.
///
/// # Errors
/// Those of making directories, of writing the run and of reading it back.
pub fn examine(case: &Case, keep: Option<&Path>, packs: &Packs) -> anyhow::Result<Examined> {
    let config = case.config();
    let subject = Subject::new(&config);
    let step = subject.step().max(1);
    let temporary = Scratch::make().context("cannot make a temporary directory; set TMPDIR to a writable one")?;
    let place = keep.map_or_else(|| temporary.path().join("run"), |keep| keep.join(case.name()));
    let trace = subject.capture(&place, Form::usual(&config))?;
    let session = Session::of(vec![trace], packs.clone()).examine(&Options::default())?;
    let captures = session.diagnose()?.captures;
    let (_, _, diagnosis): (_, _, Diagnosis) =
        captures.into_iter().next().context("the simulated capture is gone; please report it with the seed")?;
    let found: Vec<&Finding> = diagnosis.findings.iter().filter(|f| f.severity != Severity::Info).collect();
    let heard: Vec<Heard> = config
        .faults
        .iter()
        .map(|fault| {
            let without = Subject::new(&config.without(fault.kind)).step();
            let place = found.iter().position(|finding| names(fault.kind, finding.rule));
            let promised = place.and_then(|at| found.get(at)).and_then(|finding| promised(finding));
            Heard { kind: fault.kind, share: (step - without) as f64 / step as f64, place, promised }
        })
        .collect();
    for Heard { kind, share, place, promised } in &heard {
        tracing::debug!(run = %case.name(), fault = %kind.key(), share, ?place, ?promised, "examined");
    }
    let first = found.first();
    let layer = match first {
        Some(finding) => Some(heard.iter().any(|h| blames(h.kind, finding))),
        None => heard.iter().filter_map(|h| stands_for(diagnosis.verdict.layer, h.kind.layer())).reduce(|a, b| a || b),
    };
    let mut worth = Worth::new(&config, step);
    let weighty = found.iter().filter(|finding| case.faults.is_empty() && finding.severity >= Severity::Medium);
    let accused = weighty
        .map(|finding| Accused {
            rule: finding.rule,
            severity: finding.severity,
            founded: worth.of(finding.rule).is_some_and(|gain| gain as f64 >= MATTERS * step as f64),
        })
        .collect();
    Ok(Examined {
        case: case.clone(),
        step,
        heard,
        layer,
        verdict: diagnosis.verdict.layer,
        said: found.iter().map(|finding| finding.rule).collect(),
        accused,
        breaches: diagnosis.breaches,
    })
}
