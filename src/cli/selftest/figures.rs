//! The scores as named figures, each with the direction that is better, and how they compare with those of a file: a
//! change of a rule that makes any of them worse has to say so.

use std::collections::BTreeMap;

use super::{
    score::{Key, Named, Rate, Score},
    serving,
};

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// Its value; shares are of one.
    pub value: f64,
    /// Whether more is better.
    pub more_is_better: bool,
    /// Runs or statements it is made of.
    pub of: u64,
}

impl Figure {
    /// How far it may fall before that counts: the larger of 2 % and one and a half of what it is made of. The runs are the
    /// same each time, so any difference has a cause; this much lets a change through that moves a single run across a
    /// threshold.
    pub fn slack(self) -> f64 {
        (1.5 / self.of.max(1) as f64).max(0.02)
    }
}

/// Every figure of a score by its name.
pub fn of(score: &Score) -> BTreeMap<String, Figure> {
    let mut figures = BTreeMap::new();
    let mut put = |name: String, value: Option<f64>, of: u64, more_is_better: bool| {
        if let Some(value) = value {
            figures.insert(name, Figure { value, more_is_better, of });
        }
    };
    for (key, group) in &score.groups {
        // A kind of fault at one magnitude has too few runs for a figure of its own.
        if !matches!(key, Key::All | Key::Magnitude(_) | Key::Family(_)) {
            continue;
        }
        let name = |figure: &str| format!("{}.{figure}", key.word());
        let rates = [
            ("layer", group.layer),
            ("rule", group.rule),
            ("rule_in_three", group.rule_in_three),
            ("culprit", group.culprit),
            ("covered", group.covered),
        ];
        for (figure, rate) in rates {
            put(name(figure), rate.share(), rate.of, true);
        }
        let answers = group.errors.len() as u64;
        put(name("gain_error_median"), group.error(0.5), answers, false);
        put(name("gain_error_p90"), group.error(0.9), answers, false);
    }
    let all = |rate: fn(&Named) -> Rate| score.rules.values().map(|named| rate(named).of).sum::<u64>();
    let said: u64 = score.sureness.iter().map(|s| s.right.of).sum();
    put("healthy.false_alarms".to_owned(), score.false_alarms.share(), score.false_alarms.of, false);
    put("pairs.both".to_owned(), score.pairs.share(), score.pairs.of, true);
    put("rules.precision".to_owned(), score.macro_mean(|named| named.precision), all(|named| named.precision), true);
    put("rules.recall".to_owned(), score.macro_mean(|named| named.recall), all(|named| named.recall), true);
    put("confidence.brier".to_owned(), score.brier(), said, false);
    put("confidence.calibration_error".to_owned(), score.calibration_error(), said, false);
    for (loss, selective) in &score.selective {
        let name = loss.map_or("nothing", |loss| loss.key());
        put(format!("without_{name}.wrong"), selective.wrong.share(), selective.wrong.of, false);
    }
    figures
}

/// Every figure of runs that serve by its name.
pub fn of_serving(score: &serving::score::Score) -> BTreeMap<String, Figure> {
    let named = |(name, value, of, more_is_better)| (name, Figure { value, more_is_better, of });
    score.figures().into_iter().map(named).collect()
}

/// A figure that differs from the one of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Name.
    pub name: String,
    /// Value of the file.
    pub before: f64,
    /// Value now; `None` when there is no such figure any more.
    pub now: Option<f64>,
    /// Whether it is worse.
    pub worse: bool,
    /// Whether it is worse by more than its slack.
    pub fell: bool,
}

/// What changed since the figures `before` were written, in the order of their names.
pub fn changes(before: &BTreeMap<String, f64>, now: &BTreeMap<String, Figure>) -> Vec<Change> {
    let compare = |(name, before): (&String, &f64)| {
        let Some(figure) = now.get(name) else {
            return Some(Change { name: name.clone(), before: *before, now: None, worse: true, fell: true });
        };
        let worse_by = if figure.more_is_better { before - figure.value } else { figure.value - before };
        // Files keep six decimals.
        (worse_by.abs() > 1e-6).then(|| Change {
            name: name.clone(),
            before: *before,
            now: Some(figure.value),
            worse: worse_by > 0.0,
            fell: worse_by > figure.slack(),
        })
    };
    before.iter().filter_map(compare).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(value: f64, more_is_better: bool) -> BTreeMap<String, Figure> {
        BTreeMap::from([("a".to_owned(), Figure { value, more_is_better, of: 100 })])
    }

    fn fell(before: f64, value: f64, more_is_better: bool) -> Vec<bool> {
        changes(&BTreeMap::from([("a".to_owned(), before)]), &now(value, more_is_better))
            .iter()
            .map(|c| c.fell)
            .collect()
    }

    #[test]
    fn only_what_got_worse_beyond_the_slack_fell() {
        assert_eq!(fell(0.9, 0.9, true), Vec::<bool>::new());
        assert_eq!(fell(0.9, 0.89, true), [false]);
        assert_eq!(fell(0.9, 0.85, true), [true]);
        assert_eq!(fell(0.9, 0.95, true), [false]);
        assert_eq!(fell(0.1, 0.2, false), [true]);
        assert_eq!(fell(0.2, 0.1, false), [false]);
    }

    #[test]
    fn a_figure_that_is_gone_fell() {
        let gone = changes(&BTreeMap::from([("b".to_owned(), 0.5)]), &now(1.0, true));
        assert!(gone.len() == 1 && gone.iter().all(|c| c.fell && c.now.is_none()));
    }
}
