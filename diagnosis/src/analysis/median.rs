//! The middle of many durations.

use model::Ns;

/// Lower median, ns; `None` of nothing.
pub fn median(mut values: Vec<Ns>) -> Option<Ns> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}
