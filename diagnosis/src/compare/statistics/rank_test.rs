//! Whether the values of one side lie above those of the other: the rank test of Mann and Whitney with the effect of Cliff,
//! and the correction for asking it of many things at once.

use super::quantile::normal_below;

/// Most values of both sides for which every division into two sides is counted.
const EXACT: usize = 40;

/// How two samples lie to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankTest {
    /// Mann and Whitney's U: pairs of which the second side's value is larger, ties as a half.
    pub u: f64,
    /// Chance of an order as uneven as this one, or more so, where there is no difference; two-sided. Counted over all
    /// divisions of the values, ties included, up to 40 values, else by the normal distribution.
    pub p: f64,
    /// Cliff's delta, from −1 (every value of the second side is smaller) to 1 (every one is larger).
    pub delta: f64,
}

impl RankTest {
    /// Of two samples; `None` where one is empty.
    pub fn of(a: &[f64], b: &[f64]) -> Option<Self> {
        if a.is_empty() || b.is_empty() {
            return None;
        }
        let mut all: Vec<(f64, bool)> = a.iter().map(|v| (*v, false)).chain(b.iter().map(|v| (*v, true))).collect();
        all.sort_by(|x, y| x.0.total_cmp(&y.0));
        // Twice the mean rank of each run of equal values: an integer.
        let mut ranks = Vec::with_capacity(all.len());
        let mut ties = 0.0;
        for run in all.chunk_by(|x, y| x.0 == y.0) {
            let first = ranks.len() + 1;
            ranks.extend(std::iter::repeat_n(2 * first + run.len() - 1, run.len()));
            let size = run.len() as f64;
            ties += size * size * size - size;
        }
        let sum: usize = all.iter().zip(&ranks).filter(|((_, second), _)| *second).map(|(_, rank)| rank).sum();
        let (n, m) = (a.len() as f64, b.len() as f64);
        let u = sum as f64 / 2.0 - m * (m + 1.0) / 2.0;
        // Whole numbers up to the division, so that exchanging the sides changes the sign and no digit.
        let delta = (2.0 * u - n * m) / (n * m);
        let p = if all.len() <= EXACT { exact(&ranks, b.len(), sum) } else { normal(u, n, m, ties) };
        Some(Self { u, p, delta })
    }
}

/// Share of the divisions whose sum is as far from the middle as this one.
fn exact(ranks: &[usize], chosen: usize, sum: usize) -> f64 {
    let total: usize = ranks.iter().sum();
    // ways[k][s]: ways to choose k of the ranks so far with the sum s.
    let mut ways = vec![vec![0.0f64; total + 1]; chosen + 1];
    if let Some(none) = ways.first_mut().and_then(|sums| sums.first_mut()) {
        *none = 1.0;
    }
    for rank in ranks {
        for k in (1..=chosen).rev() {
            let (fewer, own) = ways.split_at_mut(k);
            let (Some(fewer), Some(own)) = (fewer.last(), own.first_mut()) else { continue };
            own.iter_mut().skip(*rank).zip(fewer).for_each(|(own, fewer)| *own += fewer);
        }
    }
    // The ranks add up to N(N + 1), so that the middle of the sums of k of them is k(N + 1).
    let middle = chosen * (ranks.len() + 1);
    let sums = ways.last().map_or(&[][..], Vec::as_slice);
    let far: f64 =
        sums.iter().enumerate().filter(|(s, _)| s.abs_diff(middle) >= sum.abs_diff(middle)).map(|(_, w)| w).sum();
    far / sums.iter().sum::<f64>().max(1.0)
}

fn normal(u: f64, n: f64, m: f64, ties: f64) -> f64 {
    let all = n + m;
    let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    let distance = ((u - n * m / 2.0).abs() - 0.5).max(0.0);
    if variance > 0.0 { 2.0 * normal_below(-distance / variance.sqrt()) } else { 1.0 }
}

/// The share of false ones among all that are as unlikely as each (Benjamini and Hochberg, J. R. Stat. Soc. B 57, 1995), in
/// the order of `p`.
pub fn false_shares(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    let value = |i: usize| p.get(i).copied().unwrap_or(1.0);
    order.sort_by(|x, y| value(*y).total_cmp(&value(*x)));
    let (mut out, mut least) = (vec![1.0; p.len()], 1.0f64);
    for (larger, index) in order.into_iter().enumerate() {
        let rank = p.len() - larger;
        least = least.min(value(index) * p.len() as f64 / rank as f64);
        if let Some(own) = out.get_mut(index) {
            *own = least;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn five_against_five_is_what_the_tables_say() {
        let (low, high) = ([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]);
        let apart = RankTest::of(&low, &high).unwrap();
        // 2 of the 252 divisions.
        assert!((apart.p - 2.0 / 252.0).abs() < 1e-12, "{apart:?}");
        assert_eq!((apart.u, apart.delta), (25.0, 1.0));
        let back = RankTest::of(&high, &low).unwrap();
        assert_eq!((back.p, back.delta), (apart.p, -apart.delta));
        assert_eq!(RankTest::of(&low, &low).unwrap().p, 1.0);
        assert_eq!(RankTest::of(&low, &[]), None);
        // A smaller U of 2 has p = 0.0317 in the tables (8 of 252 divisions).
        let near = RankTest::of(&low, &[3.5, 5.5, 6.0, 7.0, 8.0]).unwrap();
        assert!((near.u - 23.0).abs() < 1e-12 && (near.p - 8.0 / 252.0).abs() < 1e-12, "{near:?}");
    }

    #[test]
    fn ties_and_large_samples_agree_with_counting_all_divisions() {
        let of = |n: usize, shift: usize| (0..n).map(|i| ((i * 7 + shift) % 13) as f64 / 2.0).collect::<Vec<_>>();
        for (n, shift) in [(20, 0), (20, 3), (18, 5)] {
            let (a, b) = (of(n, 0), of(20, shift).into_iter().map(|v| v + 0.5).collect::<Vec<_>>());
            let exact = RankTest::of(&a, &b).unwrap();
            let ties = [&a[..], &b[..]].concat();
            let tied: f64 =
                ties.iter().map(|v| ties.iter().filter(|w| *w == v).count() as f64).map(|c| c * c - 1.0).sum();
            let approximate = normal(exact.u, n as f64, 20.0, tied);
            assert!((exact.p - approximate).abs() < 0.01, "{exact:?} {approximate}");
        }
        let (a, b) = (of(100, 0), of(100, 1).into_iter().map(|v| v + 3.0).collect::<Vec<_>>());
        assert!(RankTest::of(&a, &b).unwrap().p < 1e-6);
    }

    #[test]
    fn asking_often_costs() {
        assert_eq!(false_shares(&[0.01, 0.04, 0.03, 0.5]), [0.04, 0.16 / 3.0, 0.16 / 3.0, 0.5]);
        assert_eq!(false_shares(&[]), Vec::<f64>::new());
    }
}
