//! From examined runs to scores: how often the layer, the rule and the gain were right, and how often something was said
//! that is not so.

use std::collections::BTreeMap;

use super::{
    answer::{Injected, MATTERS, Said, VISIBLE, competes, family_key, shows_in},
    deprive::Loss,
    examine::Examined,
    miss::{Blame, Miss},
    plan::kind_key,
};
use diagnosis::analysis::{Confidence, Layer};
use simulator::Layer as Family;

/// Error of a gain, in shares of the step, that nine in ten shall stay below.
const FAR: f64 = 0.05;

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Rate {
    /// How often it was so.
    pub hits: u64,
    /// Of how many.
    pub of: u64,
}

impl Rate {
    /// Counts one more.
    pub fn count(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.of += 1;
    }

    /// The share, if there is anything to share.
    pub fn share(self) -> Option<f64> {
        (self.of > 0).then(|| self.hits as f64 / self.of as f64)
    }
}

/// Scores of a group of faults.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Group {
    /// The fault can be seen, and its layer is the one that the answer blames.
    pub layer: Rate,
    /// The same, and nothing that is worth more excuses what comes first.
    pub layer_strict: Rate,
    /// A rule that names the fault comes first.
    pub rule: Rate,
    /// One is among the first three.
    pub rule_in_three: Rate,
    /// The first finding of all names the fault, whatever else is really there.
    pub rule_strict: Rate,
    /// The rank that has the cause is the one that is named.
    pub culprit: Rate,
    /// The true gain lies in the interval given.
    pub covered: Rate,
    /// The largest bucket lies in the fault's layer: what a tool without causes would say.
    pub largest_bucket: Rate,
    /// The bucket that grew most over the healthy run does.
    pub grown_bucket: Rate,
    /// Faults that cost less than 1 % of the step: not scored.
    pub invisible: u64,
    /// Faults whose rules need evidence that the run does not hold, such as probes: only a layer that is blamed all the
    /// same is scored.
    pub unheard: u64,
    /// Distance from the middle of the gain interval to the true gain, in shares of the step, in rising order.
    #[serde(skip)]
    pub errors: Vec<f64>,
}

impl Group {
    /// Error of the gain that so large a share of the answers does not exceed.
    pub fn error(&self, quantile: f64) -> Option<f64> {
        let last = self.errors.len().checked_sub(1)?;
        self.errors.get((last as f64 * quantile).round() as usize).copied()
    }
}

/// What a rule said in all runs.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Named {
    /// Findings of medium severity and above that are so.
    pub precision: Rate,
    /// Faults that matter and are this rule's to name, and were named at medium severity and above.
    pub recall: Rate,
    /// Healthy runs with a finding of medium severity and above that is not so.
    pub healthy_false: u64,
}

/// What statements of one confidence are worth.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Sureness {
    /// How sure they said they were.
    #[serde(skip)]
    pub confidence: Confidence,
    /// Probability that the word stands for.
    pub stated: f64,
    /// How often they were right.
    pub right: Rate,
}

/// Answers to runs with less evidence.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Selective {
    /// Runs in which a layer was named.
    pub answered: Rate,
    /// Of those, runs in which it was the wrong one.
    pub wrong: Rate,
}

/// All scores of a set of runs.
#[derive(Clone, Debug, Default)]
pub struct Score {
    /// Runs.
    pub runs: u64,
    /// By family and magnitude; the first is all of them.
    pub groups: BTreeMap<Key, Group>,
    /// By rule.
    pub rules: BTreeMap<&'static str, Named>,
    /// Healthy runs with at least one finding of medium severity and above that is not so.
    pub false_alarms: Rate,
    /// Findings on healthy runs that are so: true headroom, and no fault.
    pub headroom: u64,
    /// Error of the gain of those, in shares of the step, in rising order.
    pub headroom_errors: Vec<f64>,
    /// Both faults of a pair among the first three.
    pub pairs: Rate,
    /// Largest part of a wait on another rank that the wait identity leaves unexplained, run by run, ns, in rising order.
    pub residuals: Vec<i64>,
    /// By confidence.
    pub sureness: Vec<Sureness>,
    /// By what was taken away; nothing first.
    pub selective: BTreeMap<Option<Loss>, Selective>,
    /// Faults that were not named first or whose layer was not blamed, and false alarms on healthy runs.
    pub misses: Vec<Miss>,
    /// Faults that were named with a gain further from the true one than the target for nine in ten.
    pub far: Vec<Miss>,
    /// Answers that blame a wrong layer, with all evidence and with less.
    pub blames: Vec<Blame>,
}

/// What a group is made of, in the order of the tables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Every fault.
    All,
    /// Faults whose rules had the evidence they need, or had it not.
    Heard(bool),
    /// Faults of a magnitude, in parts per thousand.
    Magnitude(i64),
    /// Faults of a layer.
    Family(&'static str),
    /// Faults of a layer at a magnitude.
    FamilyMagnitude(&'static str, i64),
    /// One kind of fault.
    Fault(String),
}

impl Key {
    /// The group in one word, for scripts.
    pub fn word(&self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::Heard(true) => "heard".to_owned(),
            Self::Heard(false) => "unheard".to_owned(),
            Self::Magnitude(permille) => format!("x{}", *permille as f64 / 1000.0),
            Self::Family(layer) => (*layer).to_owned(),
            Self::FamilyMagnitude(layer, permille) => format!("{layer}.x{}", *permille as f64 / 1000.0),
            Self::Fault(kind) => kind.clone(),
        }
    }
}

/// Probability that a statement of this confidence is taken to mean. The words have no other definition, so these are
/// chosen, as the middle of what a reader takes them for: nearly always, four times in five, as often as not.
pub fn stated(confidence: Confidence) -> f64 {
    match confidence {
        Confidence::High => 0.95,
        Confidence::Medium => 0.8,
        Confidence::Low => 0.5,
    }
}

impl Score {
    /// Scores runs.
    pub fn of(runs: &[Examined]) -> Self {
        let levels = [Confidence::High, Confidence::Medium, Confidence::Low];
        let sure = |confidence| Sureness { confidence, stated: stated(confidence), right: Rate::default() };
        let mut score = Self { runs: runs.len() as u64, sureness: levels.map(sure).to_vec(), ..Self::default() };
        for run in runs {
            match run.faults.len() {
                0 => score.healthy(run),
                1 => score.fault(run),
                _ => score.pair(run),
            }
            score.statements(run);
            score.residuals.extend(run.residual);
        }
        score.residuals.sort_unstable();
        let sorted = |errors: &mut Vec<f64>| errors.sort_by(f64::total_cmp);
        score.groups.values_mut().for_each(|group| sorted(&mut group.errors));
        sorted(&mut score.headroom_errors);
        score
    }

    fn healthy(&mut self, run: &Examined) {
        let mut alarm = false;
        for said in run.answer.weighty() {
            if said.is_right(run.step) {
                self.headroom += 1;
                self.headroom_errors.extend(error(said, run));
            } else {
                self.rules.entry(said.rule).or_default().healthy_false += 1;
                alarm = true;
            }
        }
        self.false_alarms.count(alarm);
        if alarm {
            self.misses.push(Miss::new(run, &run.answer, 0));
        }
    }

    fn fault(&mut self, run: &Examined) {
        let (Some(fault), Some(injected)) = (run.faults.first(), run.case.faults.first()) else { return };
        let (family, permille) = (family_key(fault.family), injected.magnitude_permille);
        let heard = run.answer.heard.first() == Some(&true);
        let keys = [
            Key::All,
            Key::Heard(heard),
            Key::Magnitude(permille),
            Key::Family(family),
            Key::FamilyMagnitude(family, permille),
            Key::Fault(kind_key(fault.kind)),
        ];
        let visible = fault.gain as f64 >= VISIBLE * run.step as f64;
        let against: Vec<&Said> =
            run.answer.against(0, fault.gain).filter(|said| competes(said, fault.family)).collect();
        let names = |said: &Said| said.names(0);
        let blamed = run.answer.blames(0, fault);
        let named = run.answer.names(0);
        let right = against.first().is_some_and(|said| names(said));
        let strict = run.answer.said.iter().find(|said| competes(said, fault.family));
        for key in keys {
            let group = self.groups.entry(key).or_default();
            if !visible {
                group.invisible += 1;
                continue;
            }
            // Who cannot know and blames nothing is right.
            if heard || blamed.is_some() {
                group.layer.count(blamed == Some(true));
                group.layer_strict.count(run.answer.blames_strictly(0, fault));
            }
            if let Some(shows) = shows_in(fault.family, run.largest) {
                group.largest_bucket.count(shows);
            }
            if let Some(shows) = run.grown.and_then(|_| shows_in(fault.family, run.grown)) {
                group.grown_bucket.count(shows);
            }
            if !heard {
                group.unheard += 1;
                continue;
            }
            group.rule.count(right);
            group.rule_in_three.count(against.iter().take(3).any(|said| names(said)));
            group.rule_strict.count(strict.is_some_and(names));
            if let Some((culprit, said)) = fault.culprit.zip(named) {
                group.culprit.count(said.ranks == [culprit]);
            }
            let promised = named.and_then(|said| said.gain.zip(said.truth));
            if let Some(((low, high), truth)) = promised.filter(|_| shows_in(fault.family, None).is_some()) {
                group.covered.count((low..=high).contains(&truth));
                group.errors.extend(named.and_then(|said| error(said, run)));
            }
        }
        if !visible {
            return;
        }
        if heard
            && fault.gain as f64 >= MATTERS * run.step as f64
            && shows_in(fault.family, None).is_some()
            && let Some(rule) = fault.kind.rules().first()
        {
            let heard = run.answer.weighty().any(names);
            self.rules.entry(rule).or_default().recall.count(heard);
        }
        if heard && (!right || blamed != Some(true)) {
            self.misses.push(Miss::new(run, &run.answer, permille));
        }
        if heard && named.and_then(|said| error(said, run)).is_some_and(|error| error > FAR) {
            self.far.push(Miss::new(run, &run.answer, permille));
        }
        let poorer = run.poorer.iter().map(|(loss, answer)| (Some(*loss), answer));
        for (without, answer) in std::iter::once((None, &run.answer)).chain(poorer) {
            let blamed = answer.blames(0, fault);
            if blamed == Some(false) {
                let heard = answer.heard.first() == Some(&true);
                let miss = Miss::new(run, answer, permille);
                self.blames.push(Blame { without, heard, miss });
            }
            if !run.poorer.is_empty() {
                let selective = self.selective.entry(without).or_default();
                selective.answered.count(blamed.is_some());
                if let Some(right) = blamed {
                    selective.wrong.count(!right);
                }
            }
        }
    }

    fn pair(&mut self, run: &Examined) {
        let invisible = |fault: &Injected| (fault.gain as f64) < VISIBLE * run.step as f64;
        if run.faults.iter().any(invisible) || run.answer.heard.contains(&false) {
            return;
        }
        // To name something else that is worth as much as the smaller of the two is right too, and takes no place.
        let least = run.faults.iter().map(|fault| fault.gain).min().unwrap_or(0);
        let takes_place = |said: &&Said| {
            said.layer != Layer::Measurement
                && (!said.faults.is_empty() || said.truth.is_none_or(|truth| truth < least))
        };
        let first: Vec<&Said> = run.answer.said.iter().filter(takes_place).take(3).collect();
        let found = |i: usize, fault: &Injected| match fault.family {
            Family::Measurement => run.answer.names(i).is_some(),
            _ => first.iter().any(|said| said.names(i)),
        };
        let both = run.faults.iter().enumerate().all(|(i, fault)| found(i, fault));
        self.pairs.count(both);
        if !both {
            self.misses.push(Miss::new(
                run,
                &run.answer,
                run.case.faults.first().map_or(0, |fault| fault.magnitude_permille),
            ));
        }
    }

    fn statements(&mut self, run: &Examined) {
        for said in run.answer.weighty() {
            let right = said.is_right(run.step);
            self.rules.entry(said.rule).or_default().precision.count(right);
            if let Some(level) = self.sureness.iter_mut().find(|level| level.confidence == said.confidence) {
                level.right.count(right);
            }
        }
    }

    /// Mean square of stated probability less outcome, over all statements.
    pub fn brier(&self) -> Option<f64> {
        let square = |s: &Sureness| {
            let (hits, misses) = (s.right.hits as f64, (s.right.of - s.right.hits) as f64);
            hits * (1.0 - s.stated).powi(2) + misses * s.stated.powi(2)
        };
        self.mean(square)
    }

    /// Expected calibration error: stated probability less share of right statements, weighted by their number.
    pub fn calibration_error(&self) -> Option<f64> {
        self.mean(|s| s.right.share().map_or(0.0, |share| (share - s.stated).abs() * s.right.of as f64))
    }

    fn mean(&self, part: impl Fn(&Sureness) -> f64) -> Option<f64> {
        let all: u64 = self.sureness.iter().map(|s| s.right.of).sum();
        (all > 0).then(|| self.sureness.iter().map(part).sum::<f64>() / all as f64)
    }

    /// Mean over the rules of a rate, rules without any left out.
    pub fn macro_mean(&self, rate: impl Fn(&Named) -> Rate) -> Option<f64> {
        let shares: Vec<f64> = self.rules.values().filter_map(|named| rate(named).share()).collect();
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    }
}

fn error(said: &Said, run: &Examined) -> Option<f64> {
    let (middle, truth) = said.middle().zip(said.truth)?;
    Some((middle - truth).abs() as f64 / run.step.max(1) as f64)
}
