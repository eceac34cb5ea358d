//! Means in whole nanoseconds that add up to the mean of their sum.

use std::cmp::Reverse;

use model::Ns;

/// `values` each divided by `by`, rounded so that they add up to their sum divided by `by`, rounded down: floors first, then
/// one more for the largest remainders. Of equal remainders the first ones get it.
pub fn apportion(values: &[Ns], by: u64) -> Vec<Ns> {
    let by = i128::from(by.max(1));
    let floor = |ns: i128| ns.div_euclid(by);
    let mut out: Vec<Ns> = values.iter().map(|ns| floor(i128::from(*ns)) as Ns).collect();
    let total = floor(values.iter().map(|ns| i128::from(*ns)).sum());
    let missing = total - out.iter().map(|ns| i128::from(*ns)).sum::<i128>();
    let mut order: Vec<(Reverse<i128>, usize)> =
        values.iter().enumerate().map(|(i, ns)| (Reverse(i128::from(*ns).rem_euclid(by)), i)).collect();
    order.sort_unstable();
    for (_, i) in order.into_iter().take(usize::try_from(missing).unwrap_or(0)) {
        if let Some(ns) = out.get_mut(i) {
            *ns += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn means_add_up_to_the_mean_of_the_sum(values in prop::collection::vec(-1i64 << 50..1 << 50, 0..40), by in 1u64..500) {
            let means = apportion(&values, by);
            prop_assert_eq!(means.iter().sum::<Ns>(), values.iter().sum::<Ns>().div_euclid(by as i64));
            for (mean, value) in means.iter().zip(&values) {
                prop_assert!((mean * by as i64 - value).unsigned_abs() < by, "{} of {}", mean, value);
            }
        }
    }

    #[test]
    fn nothing_has_no_mean() {
        assert_eq!(apportion(&[], 0), Vec::<Ns>::new());
        assert_eq!(apportion(&[5, 5, 5], 2), [3, 2, 2]);
    }
}
