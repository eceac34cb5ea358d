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
const LEAVE: Ns = 5_000;
/// Positions compared to judge an offset between two captures, at most and at least.
const WINDOW: (usize, usize) = (32, 256);
/// Comparisons spent on finding an offset: a bound for hostile input, reached at some hundred thousand collectives.
const BUDGET: usize = 50_000_000;
/// Cost of a position that does not fit, in thousandths.
const MISFIT: i64 = 1_000;
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
    let shorter = a.len().min(b.len());
    let window = (BUDGET / (a.len() + b.len())).clamp(WINDOW.0, WINDOW.1);
    let cost = |skip_a: usize, skip_b: usize| {
        let overlap = (a.len() - skip_a).min(b.len() - skip_b);
        let n = overlap.min(window);
        let misfit: i64 = (0..n).map(|k| misfit(a, b, skip_a + k, skip_b + k)).sum();
        // Of offsets that fit equally well the one with the larger common part is the likelier.
        misfit / n.max(1) as i64 + 20 * (shorter - overlap) as i64 / shorter as i64
    };
    let least = (shorter / 8).max(1);
    let begin = cost(0, 0);
    let mut best = (begin, 0, 0);
    if begin > MISFIT / 10 {
        for skip in 1..=a.len().max(b.len()).saturating_sub(least) {
            if a.len() >= skip + least {
                best = best.min((cost(skip, 0), skip, 0));
            }
            if b.len() >= skip + least {
                best = best.min((cost(0, skip), 0, skip));
            }
        }
    }
    (best.0 < MISFIT).then_some((best.1, best.2))
}

fn misfit(a: &[Item], b: &[Item], i: usize, j: usize) -> i64 {
    let (Some(x), Some(y)) = (a.get(i), b.get(j)) else { return MISFIT };
    if x.symbol != y.symbol {
        return MISFIT;
    }
    let before = i.checked_sub(1).zip(j.checked_sub(1));
    match before.and_then(|before| residual(a, b, before, (i, j))) {
        Some((off, by)) => off.min(MISFIT * LEAVE).saturating_mul(MISFIT) / LEAVE.max(by / 10).max(1),
        None => 0,
    }
    .min(MISFIT)
}

struct Walk<'a> {
    a: &'a [Item],
    b: &'a [Item],
    pairs: &'a mut Vec<(usize, usize)>,
    last: Option<(usize, usize)>,
}

impl Walk<'_> {
    /// Pairs what follows from (i, j); ends where both are at a loss, or at the end.
    fn run(&mut self, mut i: usize, mut j: usize) -> (usize, usize) {
        let (mut lost, mut sure) = (0, self.pairs.len());
        while i < self.a.len() && j < self.b.len() {
            let mut here = (i, j);
            if !self.fits(self.last, here) {
                match self.after_dropped(here) {
                    Some(found) => here = found,
                    None => lost += usize::from(!self.same(here) || self.is_far(here)),
                }
            }
            if self.same(here) {
                if self.fits(self.last, here) {
                    (lost, sure) = (0, self.pairs.len() + 1);
                }
                self.pairs.push(here);
                self.last = Some(here);
            }
            (i, j) = (here.0 + 1, here.1 + 1);
            if lost >= LOST.0 {
                self.pairs.truncate(sure);
                return (i, j);
            }
        }
        (self.a.len(), self.b.len())
    }

    fn same(&self, (i, j): (usize, usize)) -> bool {
        self.a.get(i).zip(self.b.get(j)).is_some_and(|(x, y)| x.symbol == y.symbol)
    }

    fn fits(&self, last: Option<(usize, usize)>, pair: (usize, usize)) -> bool {
        let close = |last| residual(self.a, self.b, last, pair).is_some_and(|(off, by)| off <= LEAVE + by / 100);
        self.same(pair) && last.is_none_or(close)
    }

    /// Too far apart for two ranks of one collective, whatever their skew.
    fn is_far(&self, pair: (usize, usize)) -> bool {
        let far = |last| residual(self.a, self.b, last, pair).is_some_and(|(off, by)| off > (10 * LEAVE).max(by));
        self.last.is_some_and(far)
    }

    /// The next pair that fits if records were dropped here, the fewest first.
    fn after_dropped(&self, (i, j): (usize, usize)) -> Option<(usize, usize)> {
        let believed = |pair: &(usize, usize)| {
            let mut last = self.last;
            (0..CONFIRM).map(|k| (pair.0 + k, pair.1 + k)).all(|next| {
                let fits = self.fits(last, next);
                last = Some(next);
                fits
            })
        };
        let one = (1..=DROPPED.0).flat_map(|k| [(i + k, j), (i, j + k)]);
        let both = (1..=DROPPED.1).flat_map(|p| (1..=DROPPED.1).map(move |q| (i + p, j + q)));
        one.clone().take(4).chain(both).chain(one.skip(4)).find(believed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A run of steps: layers of two collectives each, a gather at the end, times that vary a little.
    fn run(steps: usize, noise: &[i64]) -> Vec<Item> {
        let (mut items, mut end, mut noise) = (Vec::new(), 0, noise.iter().cycle());
        for _ in 0..steps {
            for symbol in [1, 1, 1, 1, 1, 1, 2] {
                end += 100_000 * (1 + i64::from(symbol == 2)) + noise.next().unwrap_or(&0);
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
            let late: Vec<usize> = (0..head).chain(dropped_b).collect();
            let (ids_b, b) = without(&all, &late, shift);
            let pairs = align(&a, &b);
            let wrong = pairs.iter().filter(|(i, j)| ids_a[*i] != ids_b[*j]).count();
            let common = ids_a.iter().filter(|id| ids_b.contains(id)).count();
            prop_assert!(wrong == 0, "{wrong} of {} pairs are wrong", pairs.len());
            prop_assert!(pairs.len() + 8 >= common, "{} of {common}", pairs.len());
        }
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
