//! Figures of many runs that serve: of those whose batch changes, of the others, and of healthy ones.

use std::collections::{BTreeMap, BTreeSet};

use diagnosis::diagnose::{Breach, Law, Severity, VerdictLayer};
use serde::Serialize;
use simulator::{FaultKind, Load, Strength};

use super::examine::{Examined, Heard};

/// Findings of a run with two faults among which both shall be.
const FIRST: usize = 3;

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// How often it was so.
    pub hits: u64,
    /// Of how many.
    pub of: u64,
}

impl Share {
    fn count(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.of += 1;
    }

    /// The share, if there is anything to share.
    pub fn value(self) -> Option<f64> {
        (self.of > 0).then(|| self.hits as f64 / self.of as f64)
    }
}

/// Figures of a group of runs with one fault.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Group {
    /// What comes first blames the layer of the fault.
    pub layer: Share,
    /// The first finding names it.
    pub first: Share,
    /// Any finding names it.
    pub named: Share,
    /// What it really costs lies in the interval given.
    pub inside: Share,
    /// Distance from the middle of the interval to what it really costs, in shares of the step, in rising order.
    #[serde(skip)]
    pub errors: Vec<f64>,
}

impl Group {
    fn add(&mut self, run: &Examined, heard: &Heard) {
        self.layer.count(run.layer == Some(true));
        self.first.count(heard.place == Some(0));
        self.named.count(heard.place.is_some());
        if let Some((inside, error)) = heard.inside().zip(heard.error()) {
            self.inside.count(inside);
            self.errors.push(error);
        }
    }

    /// Error that so large a share of the answers does not exceed.
    pub fn error(&self, quantile: f64) -> Option<f64> {
        let last = self.errors.len().checked_sub(1)?;
        self.errors.get((last as f64 * quantile).round() as usize).copied()
    }
}

/// What a group is made of, in the order of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Medium and strong faults, with churn or without.
    Plain(bool),
    /// Faults of a strength, with churn or without.
    Strength(bool, Strength),
    /// Medium and strong faults of a kind, with churn or without.
    Fault(FaultKind, bool),
}

impl Key {
    /// The group in one word, for scripts.
    pub fn word(self) -> String {
        let churn = |churn| if churn { "churn" } else { "fixed" };
        match self {
            Self::Plain(on) => churn(on).to_owned(),
            Self::Strength(on, strength) => format!("{}.{}", churn(on), strength.key()),
            Self::Fault(kind, on) => format!("{}.{}", kind.key(), churn(on)),
        }
    }
}

/// What is said of healthy runs of a kind.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Healthy {
    /// Runs with a finding of medium severity or above that nothing bears out.
    pub accused: Share,
    /// Runs with any finding of medium severity or above.
    pub spoken_of: Share,
}

/// All figures.
#[derive(Clone, Debug, Default)]
pub struct Score {
    /// Runs.
    pub runs: u64,
    /// Runs with one fault.
    pub groups: BTreeMap<Key, Group>,
    /// Both faults of a pair among the first three, with churn and without.
    pub pairs: BTreeMap<bool, Share>,
    /// Healthy runs, with churn and without.
    pub healthy: BTreeMap<bool, Healthy>,
    /// The same by kind.
    pub loads: BTreeMap<Load, Healthy>,
    /// Healthy runs that a rule accuses without cause.
    pub rules: BTreeMap<&'static str, u64>,
    /// Runs of which something was to be said that cannot be, each with the rule and the law that it broke.
    pub breaches: Vec<Withheld>,
    /// Runs of which something else was said than is true.
    pub misses: Vec<Miss>,
}

/// Something that cannot be and was withheld.
#[derive(Clone, Debug, Serialize)]
pub struct Withheld {
    /// Name of the run.
    pub run: String,
    /// Rule that would have said it, if one would.
    pub rule: Option<&'static str>,
    /// What it broke.
    pub law: Law,
}

/// A run of which something else was said than is true.
#[derive(Clone, Debug, Serialize)]
pub struct Miss {
    /// Its name.
    pub run: String,
    /// What its faults cost, in shares of the step.
    pub shares: Vec<f64>,
    /// What the findings that name them promise.
    pub promised: Vec<Option<(f64, f64)>>,
    /// Mean step, ns.
    pub step_ns: i64,
    /// The verdict.
    pub verdict: VerdictLayer,
    /// Rules of its findings.
    pub said: Vec<&'static str>,
    /// Of a healthy run, what nothing bears out, with its severity.
    pub accused: Vec<(&'static str, Severity)>,
}

impl Healthy {
    fn add(&mut self, run: &Examined) {
        self.accused.count(run.accused.iter().any(|accused| !accused.founded));
        self.spoken_of.count(!run.accused.is_empty());
    }
}

impl Score {
    /// Scores runs.
    pub fn of(runs: &[Examined]) -> Self {
        let mut score = Self { runs: runs.len() as u64, ..Self::default() };
        for run in runs {
            let withheld = |breach: &Breach| Withheld { run: run.case.name(), rule: breach.rule, law: breach.law };
            score.breaches.extend(run.breaches.iter().map(withheld));
            let wrong = match run.heard.as_slice() {
                [] => score.healthy(run),
                [heard] => score.fault(run, heard),
                all => score.pair(run, all),
            };
            if wrong {
                score.misses.push(Miss {
                    run: run.case.name(),
                    shares: run.heard.iter().map(|heard| heard.share).collect(),
                    promised: run.heard.iter().map(|heard| heard.promised).collect(),
                    step_ns: run.step,
                    verdict: run.verdict,
                    said: run.said.clone(),
                    accused: run.accused.iter().filter(|a| !a.founded).map(|a| (a.rule, a.severity)).collect(),
                });
            }
        }
        score.groups.values_mut().for_each(|group| group.errors.sort_by(f64::total_cmp));
        score
    }

    fn healthy(&mut self, run: &Examined) -> bool {
        self.healthy.entry(run.case.churn).or_default().add(run);
        self.loads.entry(run.case.load).or_default().add(run);
        let without_cause = run.accused.iter().filter(|accused| !accused.founded).map(|accused| accused.rule);
        for rule in without_cause.collect::<BTreeSet<_>>() {
            *self.rules.entry(rule).or_default() += 1;
        }
        run.accused.iter().any(|accused| !accused.founded)
    }

    fn fault(&mut self, run: &Examined, heard: &Heard) -> bool {
        let (churn, strength) = (run.case.churn, run.case.strength);
        let mut add = |key| self.groups.entry(key).or_default().add(run, heard);
        add(Key::Strength(churn, strength));
        if strength > Strength::Weak {
            add(Key::Plain(churn));
            add(Key::Fault(heard.kind, churn));
        }
        heard.place != Some(0) || heard.inside() == Some(false)
    }

    fn pair(&mut self, run: &Examined, all: &[Heard]) -> bool {
        let both = all.iter().all(|heard| heard.place.is_some_and(|place| place < FIRST));
        self.pairs.entry(run.case.churn).or_default().count(both);
        !both
    }

    /// Every figure by its name, each with whether more is better and of how many runs it is.
    pub fn figures(&self) -> Vec<(String, f64, u64, bool)> {
        let mut figures = Vec::new();
        let mut put = |name: String, value: Option<f64>, of: u64, more: bool| {
            figures.extend(value.map(|value| (name, value, of, more)));
        };
        for (key, group) in self.groups.iter().filter(|(key, _)| !matches!(key, Key::Fault(..))) {
            let word = key.word();
            for (name, share) in [("layer", group.layer), ("first", group.first), ("inside", group.inside)] {
                put(format!("serving.{word}.{name}"), share.value(), share.of, true);
            }
            for (name, quantile) in [("error_median", 0.5), ("error_p90", 0.9)] {
                put(format!("serving.{word}.{name}"), group.error(quantile), group.errors.len() as u64, false);
            }
        }
        let word = |churn: bool| if churn { "churn" } else { "fixed" };
        for (churn, share) in &self.pairs {
            put(format!("serving.{}.pairs", word(*churn)), share.value(), share.of, true);
        }
        for (churn, healthy) in &self.healthy {
            let (accused, any) = (healthy.accused, healthy.spoken_of);
            put(format!("serving.{}.accused", word(*churn)), accused.value(), accused.of, false);
            put(format!("serving.{}.spoken_of", word(*churn)), any.value(), any.of, false);
        }
        figures
    }
}
