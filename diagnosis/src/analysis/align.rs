//! Which collective of one rank is which of another, where the source numbers none of them.
//!
//! Clocks are not compared. What two ranks of a group share is the order of operations and payloads, and the time from the
//! end of one collective to the end of the next: they leave together, so it is the same on both clocks. That tells equal
//! steps apart, finds the common part of captures that began at different times, and shows where a record was dropped.

use model::Ns;

/// A collective as far as alignment looks at it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Operation and payload.
    pub symbol: u32,
    /// End on the rank's own clock, ns.
    pub end: Ns,
}

/// Ranks leave a collective within this time of each other, ns (method §2.6).
pub(super) const LEAVE: Ns = 5_000;
/// Positions by which all offsets between two captures are compared, and those by which the best of them are.
const HEAD: usize = 12;
const WINDOW: usize = 256;
/// Offsets that are looked at closely: the best by their head, and the smallest ones in any case.
const CLOSE: (usize, usize) = (32, 8);
/// Comparisons spent on all offsets: a bound for hostile input, reached at some million collectives.
const BUDGET: usize = 50_000_000;
/// Cost of a position that does not fit, in thousandths of what ranks may leave apart.
const MISFIT: i64 = 1_000;
/// Cost of a position that only one of the two captures has, in the same unit: captures mostly begin together (own value).
const UNSHARED: i64 = 200;
/// Records dropped in a row on one rank, and on both, that are stepped over without a new search.
const DROPPED: (usize, usize) = (64, 4);
/// Positions after a dropped record that must fit before it is believed.
const CONFIRM: usize = 3;
/// Misfits in a row after which the offset is searched again, and how often it is.
const LOST: (usize, usize) = (16, 16);

/// Pairs of positions, increasing in both.
pub(super) fn align(a: &[Item], b: &[Item]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let (mut i, mut j) = (0, 0);
    for _ in 0..LOST.1 {
        let Some((skip_a, skip_b)) = offset(a.get(i..).unwrap_or(&[]), b.get(j..).unwrap_or(&[])) else { break };
        (i, j) = Walk { a, b, pairs: &mut pairs, last: None }.run(i + skip_a, j + skip_b);
    }
    pairs
}

/// Share of pairs whose ranks left together, from one pair to the next, in 0..=1.
pub(super) fn together(a: &[Item], b: &[Item], pairs: &[(usize, usize)]) -> f64 {
    let close = |w: &[(usize, usize)]| match w {
        [last, pair] => residual(a, b, *last, *pair).is_some_and(|(off, by)| off <= LEAVE.max(by / 10)),
        _ => false,
    };
    let good = pairs.windows(2).filter(|w| close(w)).count();
    good as f64 / pairs.len().saturating_sub(1).max(1) as f64
}

/// How much two ranks disagree on the time from one common collective to another, and the shorter of the two times.
fn residual(a: &[Item], b: &[Item], last: (usize, usize), pair: (usize, usize)) -> Option<(Ns, Ns)> {
    let x = a.get(pair.0)?.end.saturating_sub(a.get(last.0)?.end);
    let y = b.get(pair.1)?.end.saturating_sub(b.get(last.1)?.end);
    Some((x.saturating_sub(y).saturating_abs(), x.min(y)))
}

/// How many records at the head of `a` or of `b` the other rank did not see.
fn offset(a: &[Item], b: &[Item]) -> Option<(usize, usize)> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let head = (BUDGET / (a.len() + b.len())).clamp(2, HEAD);
    let least = (a.len().min(b.len()) / 8).max(1);
    let later_a = (0..=a.len().saturating_sub(least)).map(|skip| (skip, 0));
    let later_b = (1..=b.len().saturating_sub(least)).map(|skip| (0, skip));
    let mut all: Vec<(i64, usize, usize)> = later_a
        .chain(later_b)
        .map(|(skip_a, skip_b)| {
            let small = skip_a + skip_b <= CLOSE.1;
            let n = head.min(a.len() - skip_a).min(b.len() - skip_b);
            let cost: i64 = (0..n).map(|k| misfit(a, b, skip_a + k, skip_b + k)).sum();
            (if small { -1 } else { cost / n.max(1) as i64 }, skip_a, skip_b)
        })
        .collect();
    let near = |(cost, skip_a, skip_b): &(i64, usize, usize)| (*cost, skip_a + skip_b);
    if all.len() > CLOSE.0 {
        all.select_nth_unstable_by_key(CLOSE.0, near);
        all.truncate(CLOSE.0);
    }
    let judged = all.into_iter().map(|(_, skip_a, skip_b)| (closely(a, b, skip_a, skip_b), skip_a, skip_b));
    let best = judged.min_by_key(near)?;
    (best.0 < MISFIT).then_some((best.1, best.2))
}

/// Mean cost of the positions after an offset, with records dropped among them.
fn closely(a: &[Item], b: &[Item], skip_a: usize, skip_b: usize) -> i64 {
    let window = |items: &[Item], skip: usize| items.iter().skip(skip).take(WINDOW).copied().collect::<Vec<_>>();
    let (a_head, b_head) = (window(a, skip_a), window(b, skip_b));
    let mut pairs = Vec::new();
    Walk { a: &a_head, b: &b_head, pairs: &mut pairs, last: None }.run(0, 0);
    let n = a_head.len().min(b_head.len());
    let apart = |w: &[(usize, usize)]| match w {
        [last, pair] => cost(residual(&a_head, &b_head, *last, *pair)),
        _ => MISFIT,
    };
    let misfit: i64 = pairs.windows(2).map(apart).sum::<i64>() + n.saturating_sub(pairs.len()) as i64 * MISFIT;
    // Of offsets that fit nearly as well the one with the larger common part is the likelier.
    let shorter = a.len().min(b.len());
    let overlap = (a.len() - skip_a).min(b.len() - skip_b);
    misfit / n.max(1) as i64 + UNSHARED * (shorter - overlap) as i64 / shorter as i64
}

fn cost(residual: Option<(Ns, Ns)>) -> i64 {
    let of = |(off, by): (Ns, Ns)| off.min(MISFIT * LEAVE).saturating_mul(MISFIT) / LEAVE.max(by / 10);
    residual.map_or(0, of).min(MISFIT)
}

fn misfit(a: &[Item], b: &[Item], i: usize, j: usize) -> i64 {
    let (Some(x), Some(y)) = (a.get(i), b.get(j)) else { return MISFIT };
    if x.symbol != y.symbol {
        return MISFIT;
    }
    let before = i.checked_sub(1).zip(j.checked_sub(1));
    cost(before.and_then(|before| residual(a, b, before, (i, j))))
}

/// Goes through both from a common position. A pair is sure once it fits the one before; pairs in between, whose ranks left
/// apart, are kept if a later one fits again.
struct Walk<'a> {
    a: &'a [Item],
    b: &'a [Item],
    pairs: &'a mut Vec<(usize, usize)>,
    /// The last sure pair.
    last: Option<(usize, usize)>,
}

impl Walk<'_> {
    /// Pairs what follows from (i, j); ends where nothing fits any more, or at the end.
    fn run(&mut self, mut i: usize, mut j: usize) -> (usize, usize) {
        let (mut lost, mut sure) = (0, self.pairs.len());
        while i < self.a.len() && j < self.b.len() && lost < LOST.0 {
            let fits = self.last.is_some() && self.fits(self.last, (i, j));
            let dropped = || self.after_dropped((i, j));
            match fits.then_some((i, j)).or_else(dropped) {
                Some(found) => {
                    self.pairs.truncate(if fits { self.pairs.len() } else { sure });
                    self.pairs.push(found);
                    (i, j) = found;
                    (self.last, sure, lost) = (Some(found), self.pairs.len(), 0);
                }
                None => {
                    self.pairs.extend(self.same((i, j)).then_some((i, j)));
                    lost += 1;
                }
            }
            (i, j) = (i + 1, j + 1);
        }
        self.pairs.truncate(sure);
        if lost < LOST.0 { (self.a.len(), self.b.len()) } else { (i, j) }
    }

    fn same(&self, (i, j): (usize, usize)) -> bool {
        self.a.get(i).zip(self.b.get(j)).is_some_and(|(x, y)| x.symbol == y.symbol)
    }

    /// Whether a pair follows from the last one: a dropped record would put it off by the time between two collectives, a
    /// clock by parts of a thousandth.
    fn fits(&self, last: Option<(usize, usize)>, pair: (usize, usize)) -> bool {
        let close = |last| {
            let before = (pair.0.wrapping_sub(1), pair.1.wrapping_sub(1));
            let local = residual(self.a, self.b, before, pair).map_or(0, |(_, local)| local);
            let apart = residual(self.a, self.b, last, pair);
            apart.is_some_and(|(off, by)| off <= LEAVE.max(local / 4) + by / 1_000)
        };
        self.same(pair) && last.is_none_or(close)
    }

    /// How far a pair and those after it are apart in all, as far as there are any; `None` where one does not fit.
    fn believed(&self, mut last: Option<(usize, usize)>, pair: (usize, usize)) -> Option<Ns> {
        let mut sum: Ns = 0;
        for k in 0..CONFIRM {
            let next = (pair.0 + k, pair.1 + k);
            if k > 0 && (next.0 >= self.a.len() || next.1 >= self.b.len()) {
                // A pair at the end, with nothing after it, proves little.
                sum = sum.saturating_add(2 * LEAVE);
                continue;
            }
            if !self.fits(last, next) {
                return None;
            }
            let apart = last.and_then(|last| residual(self.a, self.b, last, next));
            sum = sum.saturating_add(apart.map_or(0, |(off, _)| off));
            last = Some(next);
        }
        Some(sum)
    }

    /// The pair that fits best if records were dropped here, or if nothing has been paired yet; of several that fit as well as
    /// ranks leave, the one with the fewest dropped.
    fn after_dropped(&self, (i, j): (usize, usize)) -> Option<(usize, usize)> {
        let here = self.last.is_none().then_some((i, j));
        let one = (1..=DROPPED.0).flat_map(|k| [(i + k, j), (i, j + k)]);
        let both = (1..=DROPPED.1).flat_map(|p| (1..=DROPPED.1).map(move |q| (i + p, j + q)));
        let apart = |pair: (usize, usize)| Some((self.believed(self.last, pair)? / LEAVE, pair.0 + pair.1, pair));
        here.into_iter().chain(one).chain(both).filter_map(apart).min().map(|(.., pair)| pair)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A run of steps: layers of two collectives each, a gather at the end, times that vary a little, and never repeat: equal
    /// steps cannot be told apart.
    fn run(steps: usize, noise: &[i64]) -> Vec<Item> {
        let (mut items, mut end, mut noise) = (Vec::new(), 0, noise.iter().cycle());
        for _ in 0..steps {
            for symbol in [1, 1, 1, 1, 1, 1, 2] {
                let varied = items.len() as i64 * 7_919 % 1_009 * 10;
                end += 100_000 * (1 + i64::from(symbol == 2)) + varied + noise.next().unwrap_or(&0);
                items.push(Item { symbol, end });
            }
        }
        items
    }

    fn without(items: &[Item], dropped: &[usize], shift: Ns) -> (Vec<usize>, Vec<Item>) {
        let kept = items.iter().enumerate().filter(|(i, _)| !dropped.contains(i));
        kept.map(|(i, item)| (i, Item { end: item.end + shift, ..*item })).unzip()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever each rank dropped and wherever its capture began, no pair joins two different collectives, and nearly
        /// all common ones are found.
        #[test]
        fn pairs_are_true(
            noise in proptest::collection::vec(0i64..40_000, 97..98),
            head in 0usize..40,
            dropped_a in proptest::collection::vec(0usize..210, 0..4),
            dropped_b in proptest::collection::vec(0usize..210, 0..4),
            shift in -1_000_000_000_000i64..1_000_000_000_000,
        ) {
            let all = run(30, &noise);
            let (ids_a, a) = without(&all, &dropped_a, 0);
            let dropped = dropped_b.len();
            let late: Vec<usize> = (0..head).chain(dropped_b).collect();
            let (ids_b, b) = without(&all, &late, shift);
            let pairs = align(&a, &b);
            let wrong = pairs.iter().filter(|(i, j)| ids_a[*i] != ids_b[*j]).count();
            let common = ids_a.iter().filter(|id| ids_b.contains(id)).count();
            prop_assert!(wrong == 0, "{wrong} of {} pairs are wrong", pairs.len());
            prop_assert!(pairs.len() + 6 * (dropped_a.len() + dropped) + 2 >= common, "{} of {common}", pairs.len());
        }
    }

    /// The four all-reduces of a public Ascend capture of two ranks, ends in ns.
    #[test]
    fn few_collectives_that_are_left_microseconds_apart_are_matched() {
        let items = |ends: [Ns; 4]| ends.map(|end| Item { symbol: 1, end });
        let a = items([0, 2_284_800, 4_691_800, 26_914_000]);
        let b = items([0, 2_284_500, 4_683_300, 26_911_300]);
        let pairs = align(&a, &b);
        assert_eq!(pairs, [(0, 0), (1, 1), (2, 2), (3, 3)]);
        assert!(together(&a, &b, &pairs) == 1.0);
    }

    #[test]
    fn equal_steps_begin_together_and_strangers_share_nothing() {
        let a = run(10, &[0]);
        assert_eq!(align(&a, &a), (0..a.len()).map(|i| (i, i)).collect::<Vec<_>>());
        let strangers: Vec<Item> = a.iter().map(|i| Item { symbol: 9, ..*i }).collect();
        assert!(align(&a, &strangers).is_empty());
        assert!(align(&a, &[]).is_empty());
        let slower: Vec<Item> = a.iter().map(|i| Item { end: i.end * 2, ..*i }).collect();
        let pairs: Vec<_> = (0..a.len()).map(|i| (i, i)).collect();
        assert!(together(&a, &slower, &pairs) < 0.5 && together(&a, &a, &pairs) == 1.0);
    }
}
