//! Slow steps against the median one, bucket by bucket.

use std::collections::BTreeMap;

use model::Ns;

use super::{
    bucket::Bucket,
    model::{Jitter, Step},
};

/// Fewest steps of which a 95th percentile says anything.
const MIN_STEPS: usize = 5;

/// Compares the slow steps of a class with its median step.
pub fn jitter(steps: &[&Step], p50: Ns, p99: Ns) -> Option<Jitter> {
    if steps.len() < MIN_STEPS || p50 <= 0 {
        return None;
    }
    let mut order: Vec<&Step> = steps.to_vec();
    order.sort_by_key(|s| (s.window.len(), s.index));
    let median = *order.get((order.len() - 1) / 2)?;
    let slow: Vec<&Step> = order.iter().rev().take((order.len() / 20).max(1)).copied().collect();
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
