//! Slow steps against the median one, bucket by bucket.

use std::collections::BTreeMap;

use model::Ns;

use super::{
    bucket::Bucket,
    equal_work,
    model::{Jitter, Step},
};

/// Fewest steps of which a 95th percentile says anything.
const MIN_STEPS: usize = 5;

/// Compares the slow steps of a class with its median step. Where the work changes from step to step, a step is slow that takes
/// longer than its work does.
pub fn jitter(steps: &[&Step], churns: bool) -> Option<Jitter> {
    if steps.len() < MIN_STEPS {
        return None;
    }
    let times = equal_work::windows(steps, churns);
    let mut order: Vec<(Ns, &Step)> = times.into_iter().zip(steps.iter().copied()).collect();
    order.sort_by_key(|(time, s)| (*time, s.index));
    let (p50, median) = *order.get((order.len() - 1) / 2)?;
    let (p99, _) = *order.get((order.len() * 99).div_ceil(100).clamp(1, order.len()) - 1)?;
    if p50 <= 0 {
        return None;
    }
    let slow: Vec<&Step> = order.iter().rev().take((order.len() / 20).max(1)).map(|(_, step)| *step).collect();
    let mut excess: BTreeMap<Bucket, Ns> = BTreeMap::new();
    for step in &slow {
        for (bucket, ns) in &step.buckets {
            *excess.entry(*bucket).or_default() += ns;
        }
        for (bucket, ns) in &median.buckets {
            *excess.entry(*bucket).or_default() -= ns;
        }
    }
    let mut excess: Vec<(Bucket, Ns)> = excess.into_iter().filter(|(_, ns)| *ns != 0).collect();
    excess.sort_by_key(|(bucket, ns)| (std::cmp::Reverse(ns.abs()), *bucket));
    let slow = slow.iter().map(|s| s.index).collect();
    Some(Jitter { ratio: p99 as f64 / p50 as f64, slow, median: median.index, excess })
}
