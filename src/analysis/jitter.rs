//! Slow steps against the median one, bucket by bucket.

use model::Ns;

use super::bucket::Bucket;

/// How the slow steps of a class differ from its median step.
#[derive(Clone, Debug, PartialEq)]
pub struct Jitter {
    /// p99 over p50 of the step time.
    pub ratio: f64,
    /// Steps above the 95th percentile (at least one).
    pub slow: Vec<u32>,
    /// The step whose time is the median.
    pub median: u32,
    /// Mean excess of the slow steps over the median step by bucket, ns, signed, largest first; times the number of slow
    /// steps they add up to the summed excess exactly, so the sums are kept.
    pub excess: Vec<(Bucket, Ns)>,
}
