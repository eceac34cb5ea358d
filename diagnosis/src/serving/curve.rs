//! A curve over loads: its knee, and where two curves cross.

use super::{Load, Metric};

/// Loads below which a curve has no knee.
const LOADS: usize = 3;

/// The load at which a server does most for how long its users wait: that with the largest ratio of throughput to mean time in the
/// system ("power": L. Kleinrock, "Power and deterministic rules of thumb for probabilistic problems in computer communications",
/// ICC 1979). `None` below three loads, or where it is the last one and the curve has not bent yet.
pub fn knee(loads: &[&Load]) -> Option<usize> {
    let power = |load: &Load| {
        let time = load.mean(Metric::E2e).or_else(|| {
            let tokens = (load.output_len()? - 1.0).max(0.0);
            Some(load.mean(Metric::Ttft)? + load.mean(Metric::Tpot)? * tokens)
        })?;
        let done = load.request_throughput().or_else(|| load.output_throughput())?;
        Some(done / time).filter(|power| power.is_finite())
    };
    let powers: Vec<f64> = loads.iter().map(|load| power(load)).collect::<Option<_>>()?;
    let most = powers.iter().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(at, _)| at)?;
    (loads.len() >= LOADS && most + 1 < loads.len()).then_some(most)
}

/// Between which loads two curves cross, as `(load, load)` of neighbours and the load between them at which they meet: points of
/// `(load, A, B)` in the order of the load. Only differences of at least `least`, a share, have a sign.
pub fn crossings(points: &[(f64, f64, f64)], least: f64) -> Vec<(f64, f64, f64)> {
    let sign = |(load, a, b): &(f64, f64, f64)| {
        let by = (b - a) / a.abs().max(f64::MIN_POSITIVE);
        (by.abs() >= least && load.is_finite()).then_some((*load, by))
    };
    let signed: Vec<(f64, f64)> = points.iter().filter_map(sign).collect();
    let pairs = signed.windows(2).filter_map(|pair| match pair {
        [(from, a), (to, b)] if a.signum() != b.signum() => {
            // On a line between the two.
            Some((*from, *to, from + (to - from) * a.abs() / (a.abs() + b.abs())))
        }
        _ => None,
    });
    pairs.collect()
}
