//! What each format can show of a run: a card says what it lacks.

use std::path::Path;

use model::{Ns, Trace};
use session::{Reading, Session};
use simulator::{AscendForm, AscendLevel, AscendOutput, Config, Job, JobTruth, kernel::Vendor, simulate_job};

use super::Buckets;
use crate::common::buckets::misplaced;

/// What a format cannot show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// How much of a collective was waiting, where one rank was recorded alone: the method then estimates it. Ascend shows
    /// the waits inside its collectives.
    Waits,
    /// The profiler's own work, which then is time of the host like any other.
    Overhead,
    /// Ranges around compilations (calls that load modules are shown), which then are time of the host.
    CompileRanges,
    /// Whether the host's memory was pinned: an asynchronous copy that is done before its call returns is then taken for
    /// one that blocks.
    Pinned,
    /// That a collective is in the queue of its neighbours: it runs on one of its own, and whoever precedes or follows it
    /// there waits by an event, which is what the gap then is, be it otherwise dispatch or the latency of a launch.
    Queue,
    /// Fills: they are kernels.
    Fills,
    /// Peers of copies: they are copies within the device. A format without them is not asked whom it blames for a run that
    /// waits for such copies, because no rule knows yet that they may come from elsewhere.
    Peers,
    /// The gap between two queued operations: the second one begins where the first one ended. What ran on the device and
    /// the gaps are one sum; by how much each class may be too long follows from the gaps.
    Gaps,
    /// Calls: arrows tell the moment of each launch and no more. What idle time a call took is then time of the host or of
    /// what follows the moment, and short waits for events, which the device does not tell from events that have come, are
    /// those of the queue.
    Calls,
    /// Who speaks to whom: kernels of sends are called like those of any collective, so that of more than two ranks nobody
    /// knows which of them wait for each other.
    Partners,
    /// Ranges of the program: stages between the first and the last of a pipeline are cut at their graphs.
    Ranges,
    /// What copies move, and where to. Where no range marks the steps, they are then cut at other operations than at the
    /// copy of the tokens.
    Directions,
}

/// Buckets that are one sum in a format, because some of them lie in the others there.
struct Blur {
    holds: fn(&str) -> bool,
    /// Those that may lie in the others.
    hidden: &'static [&'static str],
}

/// A format, and what it lacks.
pub struct Card {
    pub name: &'static str,
    vendor: Vendor,
    lacks: &'static [Lack],
    write: fn(&Job, &Path),
}

pub const CARDS: [Card; 8] = [
    Card {
        name: "kineto",
        vendor: Vendor::Cuda,
        lacks: &[Lack::Waits],
        write: |job, at| drop(job.write_kineto(at).unwrap()),
    },
    Card {
        name: "nsys",
        vendor: Vendor::Cuda,
        lacks: &[Lack::Waits],
        write: |job, at| job.write_nsys(&at.join("run.sqlite")).unwrap(),
    },
    Card {
        name: "ascend text",
        vendor: Vendor::Ascend,
        lacks: &[Lack::Overhead, Lack::Pinned, Lack::Peers, Lack::Queue],
        write: |job, at| drop(job.write_ascend(at, AscendForm::Text).unwrap()),
    },
    Card {
        name: "ascend database",
        vendor: Vendor::Ascend,
        lacks: &[Lack::Overhead, Lack::Pinned, Lack::Peers, Lack::Queue],
        write: |job, at| drop(job.write_ascend(at, AscendForm::Database).unwrap()),
    },
    Card {
        name: "ascend text of level 0",
        vendor: Vendor::Ascend,
        lacks: &[Lack::Overhead, Lack::Peers, Lack::Queue, Lack::Calls, Lack::Directions],
        write: |job, at| level_0(job, at, AscendForm::Text),
    },
    Card {
        name: "ascend database of level 0",
        vendor: Vendor::Ascend,
        lacks: &[Lack::Overhead, Lack::Pinned, Lack::Peers, Lack::Queue, Lack::Directions],
        write: |job, at| level_0(job, at, AscendForm::Database),
    },
    Card {
        name: "rocpd",
        vendor: Vendor::Rocm,
        lacks: &[Lack::Waits, Lack::Overhead, Lack::Pinned, Lack::Fills, Lack::Partners],
        write: |job, at| job.write_rocpd(&at.join("4711_results.db")).unwrap(),
    },
    Card {
        name: "hipprof",
        vendor: Vendor::Rocm,
        lacks: &[
            Lack::Waits,
            Lack::Overhead,
            Lack::CompileRanges,
            Lack::Pinned,
            Lack::Gaps,
            Lack::Partners,
            Lack::Ranges,
        ],
        write: |job, at| job.write_hipprof(&at.join("result.json")).unwrap(),
    },
];

fn level_0(job: &Job, at: &Path, form: AscendForm) {
    drop(job.write_ascend(at, AscendOutput { level: AscendLevel::Zero, ..form.into() }).unwrap());
}

/// Buckets between which time moves when gaps are parts of durations.
fn of_device(bucket: &str) -> bool {
    let gap = matches!(bucket, "rt.dispatch" | "rt.graph_internal");
    gap || ["compute.", "comm", "copy"].iter().any(|prefix| bucket.starts_with(prefix))
}

const GAPS: Blur = Blur { holds: of_device, hidden: &["rt.dispatch", "rt.graph_internal"] };
const CALLS: Blur = Blur {
    holds: |bucket| bucket.starts_with("rt."),
    hidden: &["rt.launch_api", "rt.graph_launch", "rt.sync_tail", "rt.sync_idle", "rt.alloc"],
};

impl Card {
    pub fn lacks(&self, lack: Lack) -> bool {
        self.lacks.contains(&lack)
    }

    /// The bucket in the words that the format has for it.
    fn word<'b>(&self, bucket: &'b str, blind: bool, meets: bool) -> &'b str {
        match bucket {
            "comm.wait" | "comm.transfer" if blind => "comm",
            "prof" if self.lacks(Lack::Overhead) => "rt.host",
            "rt.compile" if self.lacks(Lack::CompileRanges) => "rt.host",
            "rt.sync_tail" if self.lacks(Lack::Pinned) => "rt.launch_api",
            "rt.device_dep" if self.lacks(Lack::Calls) => "rt.dispatch",
            "rt.device_dep" | "rt.launch_latency" if meets && self.lacks(Lack::Queue) => "rt.dispatch",
            "copy.memset" if self.lacks(Lack::Fills) => "compute.fill",
            bucket if self.lacks(Lack::Directions) && bucket.starts_with("copy.") && bucket != "copy.memset" => "copy",
            "copy.p2p" if self.lacks(Lack::Peers) => "copy.d2d",
            bucket => bucket,
        }
    }

    /// Whether it cannot tell what of a collective was waiting.
    pub fn is_blind(&self, truth: &JobTruth) -> bool {
        truth.ranks.len() == 1 && self.lacks(Lack::Waits) || truth.stages.len() > 2 && self.lacks(Lack::Partners)
    }

    fn words(&self, buckets: &Buckets, blind: bool) -> Buckets {
        let mut out = Buckets::new();
        let meets = buckets.keys().any(|bucket| bucket.starts_with("comm"));
        for (bucket, ns) in buckets {
            *out.entry(self.word(bucket, blind, meets).to_owned()).or_default() += ns;
        }
        out
    }

    /// The run as this format shows it.
    pub fn capture(&self, config: &Config) -> Trace {
        let directory = tempfile::tempdir().unwrap();
        (self.write)(&simulate_job(&Config { vendor: self.vendor, ..config.clone() }), directory.path());
        let session = Session::open(&[directory.path().to_owned()], &Reading::default()).unwrap();
        let Ok([trace]) = <[Trace; 1]>::try_from(session.into_captures()) else {
            panic!("{}: the ranks are one job", self.name)
        };
        assert!(trace.simulated, "{} hides that it is simulated", self.name);
        trace
    }

    /// How far the window of a step may begin or end from the true one, ns.
    pub fn slack(&self, config: &Config) -> Ns {
        // A step's first kernel may have been queued.
        if self.lacks(Lack::Gaps) { 2 * config.gap_ns } else { 0 }
    }

    fn blur(&self) -> Option<Blur> {
        match (self.lacks(Lack::Gaps), self.lacks(Lack::Calls)) {
            (true, _) => Some(GAPS),
            (_, true) => Some(CALLS),
            _ => None,
        }
    }

    /// Share of the step that lies in the wrong bucket.
    pub fn error(&self, ours: &Buckets, truth: &Buckets, window: Ns, blind: bool) -> f64 {
        let (ours, truth) = (self.words(ours, blind), self.words(truth, blind));
        let Some(blur) = self.blur() else { return misplaced(&ours, &truth) as f64 / window as f64 };
        let sum = |buckets: &Buckets| -> Buckets {
            let mut out = Buckets::new();
            for (bucket, ns) in buckets {
                let bucket = if (blur.holds)(bucket) { "together" } else { bucket };
                *out.entry(bucket.to_owned()).or_default() += ns;
            }
            out
        };
        let hidden: Ns = blur.hidden.iter().filter_map(|bucket| truth.get(*bucket)).sum();
        let shown = |bucket: &&String| (blur.holds)(bucket) && !blur.hidden.contains(&bucket.as_str());
        let of = |buckets: &Buckets, bucket: &String| buckets.get(bucket).copied().unwrap_or(0);
        let beyond = ours.keys().chain(truth.keys()).filter(shown).map(|bucket| {
            let longer = of(&ours, bucket) - of(&truth, bucket);
            (longer - hidden).max(-longer).max(0)
        });
        misplaced(&sum(&ours), &sum(&truth)).max(beyond.max().unwrap_or(0)) as f64 / window as f64
    }
}
