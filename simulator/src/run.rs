//! A finished run and what is true of it.

use std::{collections::BTreeMap, fs, io, path::Path};

use serde::Serialize;

use crate::{
    config::{Config, Mode},
    counter::Counter,
    fault::{Fault, FaultKind, Layer},
    job::simulate_job,
    kernel::Vendor,
    record::{DeviceOp, HostEvent},
    seat::Seat,
    step::{Step, is_decode},
    truth::{Buckets, attribute},
};

/// Why a capture could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file system refused.
    #[error("cannot write {path}: {source}; check that its directory exists and has room")]
    Io {
        /// File.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// The truth could not be written as JSON.
    #[error("cannot write {path} as JSON: {source}")]
    Json {
        /// File.
        path: String,
        /// Cause.
        source: serde_json::Error,
    },
    /// SQLite refused.
    #[error("cannot write {path}: {source}; remove the file if it exists and try again")]
    Sqlite {
        /// File.
        path: String,
        /// Cause.
        source: sqlx::Error,
    },
    /// The profiler does not know the platform.
    #[error(
        "{profiler} does not record runs of {vendor:?}, and {path} would hold one; write it as a profiler of that platform does"
    )]
    Platform {
        /// File.
        path: String,
        /// Whose format it is.
        profiler: &'static str,
        /// Whose names the run carries.
        vendor: Vendor,
    },
}

/// Everything that happened on one rank.
#[derive(Clone, Debug)]
pub struct Run {
    /// What was asked for.
    pub config: Config,
    /// Rank of the job.
    pub rank: usize,
    /// Host events in the order of their starts.
    pub host: Vec<HostEvent>,
    /// Events of another thread of the interpreter, which issues nothing.
    pub other: Vec<HostEvent>,
    /// Device operations in the order they were issued.
    pub ops: Vec<DeviceOp>,
    /// What the engine counted of itself, in the order of time.
    pub counters: Vec<Counter>,
}

/// Simulates `config`; the first rank's run. The same configuration gives the same run, on every machine.
pub fn simulate(config: &Config) -> Run {
    // A job has at least one rank.
    simulate_job(config).ranks.swap_remove(0)
}

/// What is true of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Truth {
    /// Always true: no device was involved.
    pub simulated: bool,
    /// Seed of the run.
    pub seed: u64,
    /// How nanoseconds that do not divide among concurrent operations are given.
    pub tie_rule: &'static str,
    /// What was asked for.
    pub config: Config,
    /// What is wrong with the run.
    pub faults: Vec<FaultTruth>,
    /// Rank of the job.
    pub rank: usize,
    /// Steps before the steady state.
    pub warmup_steps: i64,
    /// From the first device operation to the last (ns).
    pub total_ns: i64,
    /// Median window of the steady decode steps (ns).
    pub median_decode_ns: i64,
    /// Mean window of the steady decode steps (ns).
    pub mean_decode_ns: i64,
    /// Buckets summed over the steady decode steps (ns).
    pub decode_buckets: Buckets,
    /// All steps in order.
    pub steps: Vec<StepTruth>,
}

/// What is wrong with a run, and how it would be without.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FaultTruth {
    /// What is wrong.
    pub kind: FaultKind,
    /// Rules that name the fault, the expected one first.
    pub rules: Vec<&'static str>,
    /// Layer of the cause.
    pub layer: Layer,
    /// The rank that has the cause, if it is one.
    pub culprit: Option<usize>,
    /// Size in parts per thousand of the usual one.
    pub magnitude_permille: i64,
    /// Median window of the steady decode steps of the same run without the fault (ns).
    pub twin_median_decode_ns: i64,
    /// Mean of the same.
    pub twin_mean_decode_ns: i64,
    /// Windows of all steps of the same run without the fault (ns).
    pub twin_windows_ns: Vec<i64>,
}

/// What is true of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepTruth {
    /// Number, from 0.
    pub index: i64,
    /// `decode`, `prefill`, or `mixed` where a decode step also computes preempted requests again.
    pub class: &'static str,
    /// Sequences.
    pub batch: i64,
    /// `full`, `piecewise` or `eager`.
    pub graph: &'static str,
    /// Whether it belongs to the warm-up.
    pub warmup: bool,
    /// Start of its first device operation (ns, the capture's clock).
    pub start: i64,
    /// Start of the next step's first device operation, or end of the last operation (ns).
    pub end: i64,
    /// Bucket to nanoseconds; they sum to `end - start`.
    pub buckets: Buckets,
}

impl Run {
    fn steps(&self) -> i64 {
        self.config.warmup_steps + self.config.steps
    }

    /// Bounds of the windows: the first start of each step, then the end of the last operation.
    pub fn bounds(&self) -> Vec<i64> {
        let mut first: BTreeMap<i64, i64> = BTreeMap::new();
        for op in &self.ops {
            let start = first.entry(op.step).or_insert(op.start);
            *start = op.start.min(*start);
        }
        first.into_values().chain(self.ops.iter().map(|op| op.end).max()).collect()
    }

    fn steady_decode(&self) -> impl Fn(i64) -> bool + '_ {
        |index| index >= self.config.warmup_steps && is_decode(&self.config, index)
    }

    /// Median and mean of the steady decode steps' windows.
    fn decode_window(&self, windows: &[i64]) -> (i64, i64) {
        let steady = self.steady_decode();
        let mut chosen: Vec<i64> = (0..).zip(windows).filter(|(index, _)| steady(*index)).map(|(_, w)| *w).collect();
        chosen.sort_unstable();
        let mean = chosen.iter().sum::<i64>() / i64::try_from(chosen.len()).unwrap_or(1).max(1);
        (chosen.get(chosen.len() / 2).copied().unwrap_or(0), mean)
    }

    /// Mean window of the steady decode steps (ns).
    pub fn mean_decode_ns(&self) -> i64 {
        self.decode_window(&self.windows()).1
    }

    fn windows(&self) -> Vec<i64> {
        self.bounds().windows(2).map(|bound| bound[1] - bound[0]).collect()
    }

    /// Refuses to write what `profiler` could not have recorded.
    pub(crate) fn expect_vendor(
        &self,
        profiler: &'static str,
        known: &[Vendor],
        path: &Path,
    ) -> Result<(), WriteError> {
        let vendor = self.config.vendor;
        let refused = || WriteError::Platform { path: path.display().to_string(), profiler, vendor };
        if known.contains(&vendor) { Ok(()) } else { Err(refused()) }
    }

    /// What is true of this run; a run with faults is compared with its twins, each without one of them.
    pub fn truth(&self) -> Truth {
        let jobs: Vec<_> =
            self.config.faults.iter().map(|fault| simulate_job(&self.config.without(fault.kind))).collect();
        self.truth_beside(jobs.iter().filter_map(|job| job.ranks.get(self.rank)))
    }

    /// The same, with the twins at hand in the order of the faults.
    pub(crate) fn truth_beside<'r>(&self, twins: impl Iterator<Item = &'r Self>) -> Truth {
        let (config, bounds) = (&self.config, self.bounds());
        let beside = |(fault, twin): (&Fault, &Self)| {
            let windows = twin.windows();
            let (median, mean) = twin.decode_window(&windows);
            FaultTruth {
                kind: fault.kind,
                rules: fault.kind.rules().to_vec(),
                layer: fault.kind.layer(),
                culprit: config.culprit(fault.kind),
                magnitude_permille: fault.magnitude_permille,
                twin_median_decode_ns: median,
                twin_mean_decode_ns: mean,
                twin_windows_ns: windows,
            }
        };
        let faults = config.faults.iter().zip(twins).map(beside).collect();
        let seat = Seat::new(config, self.rank);
        let buckets = attribute(&self.ops, &self.host, &bounds);
        let steps: Vec<StepTruth> = (0..self.steps())
            .zip(bounds.windows(2))
            .zip(buckets)
            .map(|((index, bound), buckets)| {
                let step = Step::of(&seat, index);
                let graph = match step.mode(config) {
                    Mode::Eager => "eager",
                    Mode::Piecewise { .. } => "piecewise",
                    Mode::Full => "full",
                };
                StepTruth {
                    index,
                    class: step.class(),
                    batch: if step.prefill { 1 } else { step.batch },
                    graph,
                    warmup: index < config.warmup_steps,
                    start: bound[0],
                    end: bound[1],
                    buckets,
                }
            })
            .collect();
        let steady = self.steady_decode();
        let mut decode_buckets = Buckets::new();
        for (bucket, ns) in steps.iter().filter(|step| steady(step.index)).flat_map(|step| &step.buckets) {
            *decode_buckets.entry(bucket.clone()).or_default() += ns;
        }
        let (median_decode_ns, mean_decode_ns) = self.decode_window(&self.windows());
        Truth {
            simulated: true,
            seed: config.seed,
            tie_rule: "equal shares per operation; the remaining nanoseconds one each to the earliest started, then the earliest issued",
            config: config.clone(),
            faults,
            rank: self.rank,
            warmup_steps: config.warmup_steps,
            total_ns: bounds.last().zip(bounds.first()).map_or(0, |(end, start)| end - start),
            median_decode_ns,
            mean_decode_ns,
            decode_buckets,
            steps,
        }
    }

    /// Writes the truth as JSON.
    pub fn write_truth(&self, path: &Path) -> Result<(), WriteError> {
        write_json(path, &self.truth())
    }
}

/// Writes `truth` as JSON.
pub(crate) fn write_json(path: &Path, truth: &impl Serialize) -> Result<(), WriteError> {
    let named = || path.display().to_string();
    let mut text = serde_json::to_string_pretty(truth).map_err(|source| WriteError::Json { path: named(), source })?;
    text.push('\n');
    fs::write(path, text).map_err(|source| WriteError::Io { path: named(), source })
}
