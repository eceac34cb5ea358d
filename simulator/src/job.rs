//! A job of several ranks: its simulation, what is true of it, and how it is written.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;

use crate::{
    config::Config,
    decode,
    kernel::Slot,
    meeting::{Meeting, together},
    record::{DeviceOp, Work},
    run::{Run, Truth, WriteError, write_json},
    seat::Seat,
};

/// Everything that happened in a job.
#[derive(Clone, Debug)]
pub struct Job {
    /// What was asked for.
    pub config: Config,
    /// Each rank's part, in the order of the ranks; all times are of one true clock.
    pub ranks: Vec<Run>,
}

/// What is true of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobTruth {
    /// What is true of each rank; what is wrong with the job stands in each of them.
    pub ranks: Vec<Truth>,
    /// All collectives in order.
    pub collectives: Vec<CollectiveTruth>,
    /// The stages of its pipeline, if it has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageTruth>,
}

/// What is true of a stage of a pipeline, over all its steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StageTruth {
    /// Layers that it has.
    pub layers: i64,
    /// Time that its kernels take (ns).
    pub compute_ns: i64,
    /// Time that it stands ready to send or receive and the other end is not there (ns).
    pub bubble_ns: i64,
    /// Time that what it sends and receives takes with both ends there (ns).
    pub transfer_ns: i64,
}

/// What is true of one collective.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CollectiveTruth {
    /// Number of the instance in its group, from 1.
    pub seq: i64,
    /// Step it belongs to.
    pub step: i64,
    /// Place in the model.
    pub slot: Option<Slot>,
    /// The rank that came last; the first of them if several came together.
    pub late: usize,
    /// Time that each rank waited for the last one (ns).
    pub wait_ns: Vec<i64>,
    /// Time from the last arrival to the common end (ns).
    pub transfer_ns: i64,
}

/// Simulates all ranks of `config`. The same configuration gives the same job, on every machine.
pub fn simulate_job(config: &Config) -> Job {
    let rank = |rank: usize| {
        let config = config.clone();
        move |meeting: &Meeting| run_rank(Seat::new(&config, rank), Some(meeting))
    };
    let ranks = match config.ranks {
        0 | 1 => vec![run_rank(Seat::new(config, 0), None)],
        several => together((0..several).map(rank)),
    };
    Job { config: config.clone(), ranks }
}

fn run_rank(seat: Seat<'_>, meeting: Option<&Meeting>) -> Run {
    let machine = decode::run(seat, meeting);
    let (host, other, ops, counters) = (machine.host, machine.other, machine.ops, machine.counters);
    Run { config: seat.config.clone(), rank: seat.rank, host, other, ops, counters }
}

impl Job {
    /// All collectives in order.
    pub fn collectives(&self) -> Vec<CollectiveTruth> {
        let of = |run: &Run| -> Vec<DeviceOp> {
            let of_all = |op: &&DeviceOp| matches!(op.work, Work::Collective { .. }) && op.peer.is_none();
            run.ops.iter().filter(of_all).cloned().collect()
        };
        let ranks: Vec<Vec<DeviceOp>> = self.ranks.iter().map(of).collect();
        let all = ranks.iter().map(Vec::len).min().unwrap_or(0);
        let instance = |at: usize| {
            let members: Vec<&DeviceOp> = ranks.iter().filter_map(|ops| ops.get(at)).collect();
            let first = members.first()?;
            let wait_ns: Vec<i64> = members.iter().map(|op| op.work.wait()).collect();
            let late = (0..wait_ns.len()).min_by_key(|rank| wait_ns.get(*rank).copied())?;
            let Work::Collective { seq, wait } = first.work else { return None };
            let transfer_ns = first.end - first.start - wait;
            Some(CollectiveTruth { seq, step: first.step, slot: first.slot, late, wait_ns, transfer_ns })
        };
        (0..all).filter_map(instance).collect()
    }

    /// The stages of its pipeline; none without one.
    pub fn stages(&self) -> Vec<StageTruth> {
        let of = |run: &Run| {
            let sum = |chosen: &dyn Fn(&DeviceOp) -> i64| run.ops.iter().map(chosen).sum::<i64>();
            let whole = |op: &DeviceOp| op.end - op.start;
            StageTruth {
                layers: Seat::new(&self.config, run.rank).layers(),
                compute_ns: sum(&|op| if matches!(op.work, Work::Compute(_)) { whole(op) } else { 0 }),
                bubble_ns: sum(&|op| op.peer.map_or(0, |_| op.work.wait())),
                transfer_ns: sum(&|op| op.peer.map_or(0, |_| whole(op) - op.work.wait())),
            }
        };
        let piped = self.config.serving.is_some_and(|serving| serving.stages > 1);
        self.ranks.iter().filter(|_| piped).map(of).collect()
    }

    /// What is true of this job; it is compared with itself without each of its faults.
    pub fn truth(&self) -> JobTruth {
        let without: Vec<Self> =
            self.config.faults.iter().map(|fault| simulate_job(&self.config.without(fault.kind))).collect();
        let of = |run: &Run| run.truth_beside(without.iter().filter_map(|job| job.ranks.get(run.rank)));
        JobTruth { ranks: self.ranks.iter().map(of).collect(), collectives: self.collectives(), stages: self.stages() }
    }

    /// Writes one Kineto file per rank into `directory`, each by its rank's own clock; the files in the order of the
    /// ranks.
    pub fn write_kineto(&self, directory: &Path) -> Result<Vec<PathBuf>, WriteError> {
        let io = |source| WriteError::Io { path: directory.display().to_string(), source };
        fs::create_dir_all(directory).map_err(io)?;
        let write = |run: &Run| {
            let path = directory.join(format!("rank-{}.pt.trace.json", run.rank));
            run.write_kineto(&path).map(|()| path)
        };
        self.ranks.iter().map(write).collect()
    }

    /// Writes one nsys SQLite export with a process per rank. The profiler of a host sees all its processes by one
    /// clock, so the times are true ones.
    pub fn write_nsys(&self, path: &Path) -> Result<(), WriteError> {
        let ranks: Vec<&Run> = self.ranks.iter().collect();
        crate::nsys::write(&ranks, path)
    }

    /// Writes the truth as JSON.
    pub fn write_truth(&self, path: &Path) -> Result<(), WriteError> {
        write_json(path, &self.truth())
    }
}
