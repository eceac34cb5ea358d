//! Offsets between the clocks of ranks, for display only, and how much faster one runs than another.
//!
//! Ranks leave a collective together, so the difference of its ends is the offset of their clocks. A robust line through
//! those differences gives offset and drift, and what is left of them says how sure that is (method §4.4).

use model::Ns;

use super::{Rank, job::Job, median};

/// Collectives that a fit looks at; the slope is the median over all pairs of them.
const SAMPLES: usize = 128;

/// Difference of rates beyond which a line through the ends tells of something else than clocks, parts per million; quartz is
/// within 100 of the true rate.
const QUARTZ: f64 = 200.0;

/// Clock of a rank against that of the first rank.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Offset {
    /// How far it is ahead in the middle of the common time, ns.
    pub ahead: Ns,
    /// How much it gains, parts per million.
    pub drift_ppm: f64,
    /// Median absolute deviation of the collectives from the line, ns: differences between ranks below it mean nothing.
    pub uncertainty: Ns,
    /// Collectives that it rests on.
    pub collectives: usize,
}

impl Offset {
    /// What this clock gains on `other` in a time, ns: nothing where the fits say more than clocks can.
    pub(super) fn gains_on(&self, other: &Self, time: Ns) -> Ns {
        let ppm = self.drift_ppm - other.drift_ppm;
        if ppm.abs() > QUARTZ {
            return 0;
        }
        // The rate in parts per 10^15, so that times stay integers.
        let rate = (ppm * 1e9).round() as i128;
        let (gained, unit) = (i128::from(time) * rate, 1_000_000_000_000_000);
        Ns::try_from((gained + gained.signum() * unit / 2) / unit).unwrap_or(0)
    }
}

/// Offsets of all ranks, along groups that share ranks; `None` for a rank that no group ties to the first one.
pub(super) fn offsets(job: &Job, ranks: &[Rank]) -> Vec<Option<Offset>> {
    let mut known: Vec<Option<Offset>> = vec![None; ranks.len()];
    let mut by_group = vec![Vec::new(); job.groups.len()];
    for instance in &job.instances {
        if let Some(list) = by_group.get_mut(instance.group) {
            list.push(instance);
        }
    }
    if let (Some(first), false) = (known.first_mut(), job.groups.is_empty()) {
        *first = Some(Offset { ahead: 0, drift_ppm: 0.0, uncertainty: 0, collectives: 0 });
    }
    let end = |rank: usize, op: u32| ranks.get(rank)?.timeline.ops.get(op as usize).map(|op| op.end);
    let mut tied = true;
    while std::mem::take(&mut tied) {
        for (group, instances) in job.groups.iter().zip(&by_group) {
            let reference = group.ranks.iter().find_map(|r| Some((*r, (*known.get(*r)?)?)));
            let Some((reference, base)) = reference else { continue };
            for &rank in group.ranks.iter().filter(|r| known.get(**r).is_some_and(Option::is_none)).collect::<Vec<_>>()
            {
                let ends = instances.iter().filter_map(|instance| {
                    let at =
                        |rank: usize| instance.members.iter().find(|m| m.rank == rank).and_then(|m| end(rank, m.op));
                    at(reference).zip(at(rank))
                });
                let Some(fit) = line(&ends.collect::<Vec<_>>()) else { continue };
                known[rank] = Some(Offset {
                    ahead: base.ahead.saturating_add(fit.ahead),
                    drift_ppm: base.drift_ppm + fit.drift_ppm,
                    uncertainty: base.uncertainty.saturating_add(fit.uncertainty),
                    collectives: fit.collectives,
                });
                tied = true;
            }
        }
    }
    known
}

/// A line through the differences of ends (reference, other).
fn line(ends: &[(Ns, Ns)]) -> Option<Offset> {
    let (zero, _) = *ends.first()?;
    let ahead = |(a, b): &(Ns, Ns)| b.saturating_sub(*a);
    let middle = median(ends.iter().map(ahead).collect())?;
    let points: Vec<(f64, f64)> = ends
        .iter()
        .step_by(ends.len().div_ceil(SAMPLES))
        .map(|pair| (pair.0.saturating_sub(zero) as f64, ahead(pair).saturating_sub(middle) as f64))
        .collect();
    let pairs = points.iter().enumerate().flat_map(|(i, p)| points.iter().skip(i + 1).map(move |q| (p, q)));
    let slope =
        middle_of(pairs.filter(|(p, q)| q.0 > p.0).map(|(p, q)| (q.1 - p.1) / (q.0 - p.0)).collect()).unwrap_or(0.0);
    let center = middle_of(points.iter().map(|p| p.0).collect()).unwrap_or(0.0);
    let level = middle_of(points.iter().map(|p| p.1 - slope * (p.0 - center)).collect()).unwrap_or(0.0);
    let off = |p: &(f64, f64)| (p.1 - slope * (p.0 - center) - level).abs();
    let uncertainty = middle_of(points.iter().map(off).collect()).unwrap_or(0.0);
    Some(Offset {
        ahead: middle.saturating_add(level as Ns),
        drift_ppm: slope * 1e6,
        uncertainty: uncertainty.ceil() as Ns,
        collectives: ends.len(),
    })
}

fn middle_of(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn offset_and_drift_survive_outliers() {
        let ends: Vec<(Ns, Ns)> = (0..500)
            .map(|i| {
                let t = i * 100_000;
                let late = if i % 10 == 3 { 40_000 } else { i % 3 * 10 };
                (t, t + 2_300_000 + t / 50_000 + late)
            })
            .collect();
        let fit = line(&ends).unwrap();
        assert!((fit.ahead - 2_300_510).abs() < 60, "{}", fit.ahead);
        assert!((fit.drift_ppm - 20.0).abs() < 1.0, "{}", fit.drift_ppm);
        assert!(fit.uncertainty <= 20 && fit.collectives == 500);
        assert_eq!(line(&[]), None);
    }
}
