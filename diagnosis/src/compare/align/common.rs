//! What two nearly equal sequences have in common, in time that grows with their length and how much they differ (Myers'
//! greedy difference): a step with a lost record or one kernel more beside the step that stands for its class.

/// Pairs of positions that hold equal items, increasing in both, where at most `most` items of both together have none;
/// `None` where the two differ more.
pub fn common<T: PartialEq>(a: &[T], b: &[T], most: usize) -> Option<Vec<(usize, usize)>> {
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (rest_a, rest_b) = (a.get(head..)?, b.get(head..)?);
    let tail = rest_a.iter().rev().zip(rest_b.iter().rev()).take_while(|(x, y)| x == y).count();
    let (inner_a, inner_b) = (rest_a.get(..rest_a.len() - tail)?, rest_b.get(..rest_b.len() - tail)?);
    let inner = greedy(inner_a, inner_b, most)?;
    let front = (0..head).map(|i| (i, i));
    let back = (0..tail).map(|i| (a.len() - tail + i, b.len() - tail + i));
    Some(front.chain(inner.into_iter().map(|(i, j)| (head + i, head + j))).chain(back).collect())
}

fn greedy<T: PartialEq>(a: &[T], b: &[T], most: usize) -> Option<Vec<(usize, usize)>> {
    let (n, m) = (a.len() as isize, b.len() as isize);
    if n.abs_diff(m) > most {
        return None;
    }
    let most = most.min(a.len() + b.len()) as isize;
    let zero = most + 1;
    let at = |reach: &[isize], k: isize| reach.get((zero + k) as usize).copied().unwrap_or(0);
    let down = |reach: &[isize], k: isize, d: isize| k == -d || (k != d && at(reach, k - 1) < at(reach, k + 1));
    let equal = |x: isize, y: isize| {
        let item = |side: &'_ [T], i: isize| usize::try_from(i).ok().filter(|i| *i < side.len());
        item(a, x).zip(item(b, y)).is_some_and(|(x, y)| a[x] == b[y])
    };
    let mut reach = vec![0; 2 * zero as usize + 1];
    let mut history = Vec::new();
    for d in 0..=most {
        history.push(reach.clone());
        for k in (-d..=d).step_by(2) {
            let mut x = if down(&reach, k, d) { at(&reach, k + 1) } else { at(&reach, k - 1) + 1 };
            while equal(x, x - k) {
                x += 1;
            }
            if let Some(place) = reach.get_mut((zero + k) as usize) {
                *place = x;
            }
            if x >= n && x - k >= m {
                return Some(back(&history, (n, m), at, down));
            }
        }
    }
    None
}

/// The equal pairs along the way that was found, from its end.
fn back(
    history: &[Vec<isize>],
    (mut x, mut y): (isize, isize),
    at: impl Fn(&[isize], isize) -> isize,
    down: impl Fn(&[isize], isize, isize) -> bool,
) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (d, reach) in history.iter().enumerate().rev() {
        let (k, d) = (x - y, d as isize);
        let from = if down(reach, k, d) { k + 1 } else { k - 1 };
        let (before_x, before_y) = if d == 0 { (0, 0) } else { (at(reach, from), at(reach, from) - from) };
        while x > before_x && y > before_y {
            (x, y) = (x - 1, y - 1);
            pairs.push((x as usize, y as usize));
        }
        (x, y) = (before_x, before_y);
    }
    pairs.reverse();
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Length of the longest common subsequence, by the table.
    fn longest(a: &[u8], b: &[u8]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for x in a {
            let mut diagonal = 0;
            for (j, y) in b.iter().enumerate() {
                let above = row[j + 1];
                row[j + 1] = if x == y { diagonal + 1 } else { above.max(row[j]) };
                diagonal = above;
            }
        }
        row.last().copied().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn as_much_is_common_as_can_be(
            a in prop::collection::vec(0u8..4, 0..24), b in prop::collection::vec(0u8..4, 0..24), most in 0usize..48,
        ) {
            let lcs = longest(&a, &b);
            let differ = a.len() + b.len() - 2 * lcs;
            let found = common(&a, &b, most);
            prop_assert_eq!(found.is_some(), differ <= most, "{} differ", differ);
            if let Some(pairs) = found {
                prop_assert_eq!(pairs.len(), lcs);
                prop_assert!(pairs.iter().all(|(i, j)| a[*i] == b[*j]));
                prop_assert!(pairs.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1));
            }
        }
    }
}
