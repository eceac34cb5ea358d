//! Which loads of two sides are set against each other. One rule, the same for both: loads are of one work where their prompts
//! and answers are as long as each other, and of each work that both sides measured each is stood for by its best load. How many
//! requests came at a time is what a side may choose, so that it does not have to be equal.

use crate::{
    compare::statistics::student,
    serving::{Level, Load, Metric, Slo, beside::is_same_work},
};

/// The load that stands for a side at one work.
#[derive(Clone, Debug, PartialEq)]
pub struct Pick {
    /// The load; of several runs under it that of the middle rate.
    pub load: Load,
    /// Whether every run of it holds the targets; `None` where that cannot be told, or there are no targets.
    pub holds: Option<bool>,
    /// Half the width of the 95 % interval of its rate, as a share, where runs or requests tell it.
    pub spread: Option<f64>,
}

impl Pick {
    /// Output tokens per second of a device; how many there are is taken for one where the result does not say it.
    pub fn rate(&self) -> f64 {
        rate(&self.load)
    }
}

/// One work that both sides measured, and the best load of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// The loads of A and of B.
    pub picks: [Pick; 2],
}

impl Kind {
    /// The side that alone holds the targets.
    pub fn only(&self) -> Option<usize> {
        match self.picks.each_ref().map(|pick| pick.holds) {
            [Some(true), Some(false)] => Some(0),
            [Some(false), Some(true)] => Some(1),
            _ => None,
        }
    }

    fn holding(&self) -> usize {
        self.picks.iter().filter(|pick| pick.holds == Some(true)).count()
    }
}

/// Every work that both sides measured, that of most tokens within the targets first: where more sides hold them, and then where
/// both together give most.
pub fn kinds(sides: [&[Load]; 2], slo: Option<&Slo>) -> Vec<Kind> {
    let rated = sides.map(|side| side.iter().filter(|load| rate(load) > 0.0).collect::<Vec<&Load>>());
    let mut known: Vec<&Load> = rated.iter().flatten().copied().filter(|load| length(load).is_some()).collect();
    // In which order results are named, and which side is A, means nothing.
    let key = |load: &Load| length(load).unwrap_or_default();
    known.sort_by(|x, y| key(x).0.total_cmp(&key(y).0).then(key(x).1.total_cmp(&key(y).1)));
    let mut firsts: Vec<&Load> = Vec::new();
    for load in known {
        if !firsts.iter().any(|first| is_same_work(first, load)) {
            firsts.push(load);
        }
    }
    // What a result does not say is no difference: such a load is of every work.
    let place = |load: &Load| length(load).and_then(|_| firsts.iter().position(|first| is_same_work(first, load)));
    let works = firsts.len().max(1);
    let [a, b] = rated.map(|side| {
        let mut by_work: Vec<Vec<&Load>> = vec![Vec::new(); works];
        for load in side {
            match place(load) {
                Some(at) => by_work.iter_mut().skip(at).take(1).for_each(|own| own.push(load)),
                None => by_work.iter_mut().for_each(|own| own.push(load)),
            }
        }
        by_work
    });
    let picks = a.iter().zip(&b).filter_map(|(a, b)| Some(Kind { picks: [best(a, slo)?, best(b, slo)?] }));
    let mut found: Vec<Kind> = picks.collect();
    let most = |kind: &Kind| kind.picks.iter().map(Pick::rate).sum::<f64>();
    found.sort_by(|x, y| y.holding().cmp(&x.holding()).then(most(y).total_cmp(&most(x))));
    found
}

/// The best load of a side: of those that hold the targets, else of those that may, else of all, the one of most tokens.
pub fn best(loads: &[&Load], slo: Option<&Slo>) -> Option<Pick> {
    let mut runs: Vec<Vec<&Load>> = Vec::new();
    for load in loads.iter().copied().filter(|load| rate(load) > 0.0) {
        let again = |other: &&Load| load.level().is_some() && is_again(load, other);
        match runs.iter_mut().find(|own| own.first().is_some_and(again)) {
            Some(own) => own.push(load),
            None => runs.push(vec![load]),
        }
    }
    let picks = runs.into_iter().filter_map(|runs| of_runs(runs, slo));
    let place = |pick: &Pick| match pick.holds {
        Some(true) => 2,
        None => 1,
        Some(false) => 0,
    };
    picks.max_by(|x, y| place(x).cmp(&place(y)).then(x.rate().total_cmp(&y.rate())))
}

/// Whether the targets hold under any load of a side; `None` where that cannot be told of one that might, or nothing was asked.
pub fn anywhere(loads: &[Load], slo: Option<&Slo>) -> Option<bool> {
    let slo = slo?;
    let all: Vec<Option<bool>> = loads.iter().map(|load| slo.holds(load)).collect();
    if all.contains(&Some(true)) {
        return Some(true);
    }
    (!all.is_empty() && !all.contains(&None)).then_some(false)
}

fn is_again(one: &Load, other: &Load) -> bool {
    let pressed = match (one.level(), other.level()) {
        (Some(Level::Concurrency(a)), Some(Level::Concurrency(b))) | (Some(Level::Rate(a)), Some(Level::Rate(b))) => {
            (a - b).abs() <= 1e-6 * a.max(b)
        }
        (a, b) => a == b,
    };
    pressed && one.devices() == other.devices() && is_same_work(one, other)
}

fn of_runs(mut runs: Vec<&Load>, slo: Option<&Slo>) -> Option<Pick> {
    runs.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    let all: Vec<Option<bool>> = runs.iter().map(|load| slo?.holds(load)).collect();
    let holds = match () {
        () if all.contains(&Some(false)) => Some(false),
        () if all.contains(&None) => None,
        () => Some(true),
    };
    let load = runs.get(runs.len().saturating_sub(1) / 2)?;
    let between = of_rates(&runs.iter().map(|load| rate(load)).collect::<Vec<f64>>());
    let within = of_requests(load);
    let spread = between.into_iter().chain(within).reduce(f64::max);
    Some(Pick { load: (*load).clone(), holds, spread })
}

/// The interval of a mean of runs, by Student's distribution.
fn of_rates(rates: &[f64]) -> Option<f64> {
    let n = rates.len() as f64;
    if rates.len() < 2 {
        return None;
    }
    let mean = rates.iter().sum::<f64>() / n;
    let variance = rates.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / (n - 1.0);
    Some(student(0.975, n - 1.0) * (variance / n).sqrt() / mean).filter(|own| own.is_finite())
}

/// That of a rate from the times of its requests, which are taken as independent: so many at a time are answered as fast as the
/// mean request is (Little's law).
fn of_requests(load: &Load) -> Option<f64> {
    let n = load.completed().filter(|n| *n > 1.0)?;
    let of = |metric| {
        let times = load.times.get(&metric)?;
        Some(times.std? / times.mean.filter(|mean| *mean > 0.0)?)
    };
    let relative = of(Metric::E2e).or_else(|| of(Metric::Tpot))?;
    Some(student(0.975, n - 1.0) * relative / n.sqrt()).filter(|own| own.is_finite())
}

fn rate(load: &Load) -> f64 {
    load.output_throughput().map_or(0.0, |tokens| tokens / load.devices().unwrap_or(1.0))
}

fn length(load: &Load) -> Option<(f64, f64)> {
    load.input_len().zip(load.output_len())
}
