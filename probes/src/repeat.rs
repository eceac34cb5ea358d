//! Repeats of a measurement within a budget of time.

use std::time::{Duration, Instant};

use model::Statistic;

/// Repeats below which a median says little; made even when the budget is spent.
const LEAST: usize = 3;
/// Repeats beyond which nothing is learnt.
const MOST: usize = 501;

/// Calls `once` to warm up and then again and again until the budget is spent; the statistic is of what it returns.
///
/// # Errors
/// The reason that `once` gives for having no value.
pub fn repeat(budget: Duration, mut once: impl FnMut() -> Result<f64, String>) -> Result<Statistic, String> {
    let began = Instant::now();
    once()?;
    let mut values = Vec::new();
    while values.len() < LEAST || (began.elapsed() < budget && values.len() < MOST) {
        values.push(once()?);
    }
    Statistic::of(values).ok_or_else(|| "no repeat gave a number".to_owned())
}

/// How long `work` takes, ns.
pub fn time(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_nanos() as f64
}

/// Time of one call, ns, of the mean of `n`: for what is shorter than a look at the clock.
pub fn time_each(n: u32, mut work: impl FnMut()) -> f64 {
    time(|| (0..n).for_each(|_| work())) / f64::from(n.max(1))
}

/// Times in ns as a rate of `amount` per second.
pub fn per_second(amount: f64, ns: &Statistic) -> Statistic {
    ns.map(|ns| if ns > 0.0 { amount * 1e9 / ns } else { f64::INFINITY })
}
