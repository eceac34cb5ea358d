//! What a difference comes from where the two sides do unequal amounts of work on purpose.

use model::Ns;

use super::cause::{Cause, FARTHEST, Mean, Setup, Twin, logarithmic_mean, merge, whole};
use crate::analysis::Bucket;

/// The same of two sides that do unequal amounts of work: what follows from the work, which `work` says of each side, and only
/// of the rest what else it comes from. Where the work is not known nothing can be said.
pub fn split(
    setup: &Setup,
    bucket: Bucket,
    waited: bool,
    twin: Twin,
    [a, b]: [Mean; 2],
    work: Option<[f64; 2]>,
) -> Vec<(Cause, Ns)> {
    let delta = b.ns - a.ns;
    if delta == 0 {
        return Vec::new();
    }
    let shared = a.exact > 0.0 && b.exact > 0.0 && !waited && whole(setup, bucket, waited, twin, a, b).is_none();
    let known = work.filter(|both| shared && both.iter().all(|n| n.is_finite() && *n > 0.0));
    let Some([of_a, of_b]) = known else { return vec![(Cause::Unexplained, delta)] };
    let mean = logarithmic_mean(a.exact, b.exact);
    let by_work = mean * (of_b.ln() - of_a.ln());
    // On one platform a kernel that is given more does more at a time: the work explains no more than there is.
    let alike = setup.same_platform && (by_work > 0.0) == (delta > 0);
    let by_work = if alike { by_work.abs().min(delta.abs() as f64).copysign(by_work) } else { by_work };
    let bound = setup.ceilings.bound(bucket);
    let by_hardware = bound.filter(|_| !setup.same_platform).map_or(0.0, |[of_a, of_b]| mean * (of_b - of_a));
    if [by_work, by_hardware].iter().any(|ns| !ns.is_finite() || ns.abs() > FARTHEST) {
        return vec![(Cause::Unexplained, delta)];
    }
    let parts = [(Cause::Work, by_work.round() as Ns), (Cause::Environment, by_hardware.round() as Ns)];
    let rest = delta - parts.iter().map(|(_, ns)| ns).sum::<Ns>();
    // How much the host has to do for its share of the work nobody counts.
    let residual = if bucket.is_idle() { Cause::Unexplained } else { setup.residual(bound.is_some(), twin) };
    merge(parts.into_iter().chain([(residual, rest)]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::CanonicalOp;

    #[test]
    fn k4_more_work_is_no_worse_software() {
        let mean = |ns: Ns| Mean { ns, exact: ns as f64, count: 16.0 };
        let product = Bucket::Compute(CanonicalOp::Gemm);
        let setup = Setup { same_platform: true, unequal: true, ..Setup::default() };
        let split = |a, b, work| split(&setup, product, false, Twin::Same, [mean(a), mean(b)], work);
        assert_eq!(split(1_000, 5_000, Some([1.0, 5.0])), [(Cause::Work, 4_000)]);
        // More than the work explains is another speed, and less than its share is no gain of the software.
        let slower = split(1_000, 10_000, Some([1.0, 5.0]));
        assert_eq!(slower.iter().map(|(_, ns)| ns).sum::<Ns>(), 9_000);
        assert!(matches!(slower[..], [(Cause::Work, work), (Cause::Slower, _)] if work > 5_000), "{slower:?}");
        assert_eq!(split(1_000, 2_000, Some([1.0, 5.0])), [(Cause::Work, 1_000)]);
        // Nobody counts it: nothing can be said.
        assert_eq!(split(1_000, 5_000, None), [(Cause::Unexplained, 4_000)]);
        assert_eq!(split(1_000, 1_000, Some([1.0, 5.0])), []);
    }
}
