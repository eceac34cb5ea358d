//! Quantiles of a histogram, estimated as Prometheus' `histogram_quantile` does: evenly spread within a bucket.

use super::exposition::Histogram;

/// The quantile `q` of what was added since `before`; `None` when nothing was, and when the histogram began anew.
pub fn quantile(now: &Histogram, before: &Histogram, q: f64) -> Option<f64> {
    let added =
        |(bound, count): (&super::exposition::Bound, &f64)| (bound.0, count - before.get(bound).unwrap_or(&0.0));
    let buckets: Vec<(f64, f64)> = now.iter().map(added).collect();
    let all = buckets.last().filter(|(bound, _)| *bound == f64::INFINITY)?.1;
    if all <= 0.0 || buckets.iter().any(|(_, count)| *count < 0.0) {
        return None;
    }
    let rank = q * all;
    let (mut low, mut below) = (0.0, 0.0);
    for (bound, count) in buckets {
        if count >= rank && count > below {
            // Beyond the last bound nothing is known but that bound.
            let part = (rank - below) / (count - below);
            return Some(if bound.is_finite() { low + (bound - low) * part } else { low });
        }
        (low, below) = (bound, count);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{super::exposition::Bound, *};

    fn of(buckets: &[(f64, f64)]) -> Histogram {
        buckets.iter().map(|(bound, count)| (Bound(*bound), *count)).collect()
    }

    const END: f64 = f64::INFINITY;

    #[test]
    fn quantiles_lie_within_their_bucket() {
        let none = of(&[]);
        let now = of(&[(1.0, 10.0), (2.0, 30.0), (4.0, 40.0), (END, 40.0)]);
        assert_eq!(quantile(&now, &none, 0.5), Some(1.5));
        assert_eq!(quantile(&now, &none, 1.0), Some(4.0));
        assert_eq!(quantile(&now, &of(&[(1.0, 10.0), (2.0, 10.0), (4.0, 10.0), (END, 10.0)]), 0.5), Some(1.75));
        assert_eq!(quantile(&now, &now, 0.5), None, "nothing was added");
        assert_eq!(quantile(&none, &now, 0.5), None);
        assert_eq!(quantile(&of(&[(1.0, 0.0), (END, 5.0)]), &none, 0.5), Some(1.0));
        assert_eq!(quantile(&of(&[(1.0, 3.0), (END, 3.0)]), &of(&[(1.0, 5.0), (END, 5.0)]), 0.5), None, "began anew");
        assert_eq!(quantile(&of(&[(1.0, 3.0)]), &none, 0.5), None, "no count of all");
    }
}
