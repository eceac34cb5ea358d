//! One truth, one answer: the same simulated run, written in every format that the simulator knows, gets the same
//! attribution within what the format allows, and nobody blames a different layer.
//!
//! What a format allows is a card: which buckets it cannot tell apart, and why. All else is compared with the truth.

use std::{collections::BTreeMap, path::Path};

use crate::common::{
    buckets::{comparable, misplaced},
    diagnosed,
};
use diagnosis::{
    analysis::{Analysis, Layer, Step},
    diagnose::{Severity, VerdictLayer},
};
use model::{Ns, Trace};
use session::{Reading, Session};
use simulator::{
    AscendForm, AscendLevel, AscendOutput, Config, Fault, FaultKind, Job, JobTruth,
    config::{Annotation, Mode},
    kernel::Vendor,
    run::StepTruth,
    simulate_job,
};

mod stages;
mod sums;

type Buckets = BTreeMap<String, Ns>;

/// How far a step's buckets may be from the truth, summed over buckets, as a share of the step.
const TOLERANCE: f64 = 0.01;

/// What a format cannot show.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lack {
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
struct Card {
    name: &'static str,
    vendor: Vendor,
    lacks: &'static [Lack],
    write: fn(&Job, &Path),
}

const CARDS: [Card; 8] = [
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
    fn lacks(&self, lack: Lack) -> bool {
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
    fn is_blind(&self, truth: &JobTruth) -> bool {
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
    fn capture(&self, config: &Config) -> Trace {
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
    fn slack(&self, config: &Config) -> Ns {
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
    fn error(&self, ours: &Buckets, truth: &Buckets, window: Ns, blind: bool) -> f64 {
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

/// A run to be held against itself.
struct Case {
    name: String,
    config: Config,
}

impl Case {
    fn new(name: String, config: Config) -> Self {
        // Clocks that run away are no matter of formats, and replays recorded as one row nobody else has.
        let (steps, layers) = (12, config.layers.min(6));
        Self { name, config: Config { steps, layers, clock_drift_ppm: 0, graph_level_trace: false, ..config } }
    }

    /// Compares the formats; what is wrong, one line each.
    fn examine(&self) -> Vec<String> {
        let truth = simulate_job(&Config { vendor: Vendor::Cuda, ..self.config.clone() }).truth();
        let (mut wrong, mut blamed, mut firsts, mut found) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for card in &CARDS {
            let (_, analysis, diagnosis) = diagnosed(card.capture(&self.config));
            wrong.extend(self.attribution(card, &analysis, &truth));
            let verdict = &diagnosis.verdict;
            // Who cannot tell and who sees nothing of weight blames nobody.
            let transfers = self.config.faults.iter().any(|fault| fault.kind == FaultKind::KvTransfer);
            let asked = !(transfers && card.lacks(Lack::Peers));
            if asked && !matches!(verdict.layer, VerdictLayer::Undecided | VerdictLayer::None) {
                let weighty = diagnosis.findings.iter().filter(|f| f.severity >= Severity::Medium).map(|f| f.layer);
                found.push(weighty.collect::<Vec<_>>());
                // Where the time is rests on counting alone; what comes first may change with what a format lacks.
                let layer = verdict.place.as_ref().map_or(verdict.layer, |place| place.layer);
                blamed.push((layer, card.name, verdict.because.clone()));
                firsts.push(verdict.first.as_ref().map(|first| first.layer));
            }
        }
        // Of two layers that cost about as much the first may change with what a format lacks; all have to see both.
        let seen = |layer: &VerdictLayer| {
            let is_it = |own: &Layer| {
                matches!(
                    (own, layer),
                    (Layer::Operator, VerdictLayer::Operator)
                        | (Layer::Runtime, VerdictLayer::Runtime)
                        | (Layer::Communication, VerdictLayer::Communication)
                )
            };
            found.iter().all(|found| found.iter().any(is_it))
        };
        let alike = firsts.iter().all(|first| *first == firsts[0]);
        let differ = !alike && blamed.iter().any(|(layer, ..)| *layer != blamed[0].0);
        if differ && !blamed.iter().all(|(layer, ..)| seen(layer)) {
            wrong.push(format!("{}: one run, several layers: {blamed:?}", self.name));
        }
        wrong
    }

    fn attribution(&self, card: &Card, analysis: &Analysis, truth: &JobTruth) -> Option<String> {
        let blind = card.is_blind(truth);
        assert_eq!(analysis.ranks.len(), truth.ranks.len(), "{}, {}", self.name, card.name);
        let (mut compared, mut steps, mut worst) = (0, 0, (0.0, String::new()));
        for (rank, truth) in analysis.ranks.iter().zip(&truth.ranks) {
            // The capture's zero is its first event; both sides agree on the start of the first operation.
            let (zero, slack) = (truth.steps[0].start - rank.timeline.ops[0].start, card.slack(&self.config));
            let near = |truth: Ns, ours: Ns| (truth - zero - ours).abs() <= slack;
            let same = |step: &Step, truth: &&StepTruth| {
                near(truth.start, step.window.start) && near(truth.end, step.window.end)
            };
            steps += truth.steps.len();
            for step in &rank.steps {
                let Some(truth) = truth.steps.iter().find(|truth| same(step, truth)) else { continue };
                compared += 1;
                let ours = comparable(analysis, step);
                let error = card.error(&ours, &truth.buckets, step.window.len(), blind);
                if error > worst.0 {
                    worst = (error, format!("step {}: ours {ours:?}\ntruth {:?}", step.index, truth.buckets));
                }
            }
        }
        let named = format!("{}, {}", self.name, card.name);
        let unmarked = self.config.annotation == Annotation::None;
        if card.lacks(Lack::Directions) && unmarked && compared == 0
            || card.lacks(Lack::Ranges) && truth.stages.len() > 2 && compared * 2 < steps
        {
            return self.whole(card, analysis, truth);
        }
        // Where no range marks the steps, the first and the last of them may be cut elsewhere.
        if compared * 2 < steps {
            return Some(format!("{named}: only {compared} of {steps} windows are the true ones"));
        }
        let wrong = worst.0 > TOLERANCE;
        wrong.then(|| format!("{named}: {:.2} % misplaced, {}", worst.0 * 100.0, worst.1))
    }

    /// The same of each rank's whole run, however its steps were cut.
    fn whole(&self, card: &Card, analysis: &Analysis, truth: &JobTruth) -> Option<String> {
        let sum = |parts: &mut dyn Iterator<Item = Buckets>| {
            let mut out = Buckets::new();
            parts.flatten().for_each(|(bucket, ns)| *out.entry(bucket).or_default() += ns);
            out
        };
        let blind = card.is_blind(truth);
        analysis.ranks.iter().zip(&truth.ranks).find_map(|(rank, truth)| {
            let ours = sum(&mut rank.steps.iter().map(|step| comparable(analysis, step)));
            let truth_of = sum(&mut truth.steps.iter().map(|step| step.buckets.clone()));
            let error = card.error(&ours, &truth_of, truth.total_ns, blind);
            (error > TOLERANCE).then(|| {
                format!(
                    "{}, {}: {:.2} % of the run misplaced: ours {ours:?}\ntruth {truth_of:?}",
                    self.name,
                    card.name,
                    error * 100.0
                )
            })
        })
    }
}

fn examine(cases: &[Case]) {
    let wrong: Vec<String> = cases.iter().flat_map(Case::examine).collect();
    assert!(wrong.is_empty(), "{} of {} runs:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn healthy_runs_of_one_rank() {
    let cases: Vec<Case> = (0..10).map(|seed| Case::new(format!("seed {seed}"), Config::draw(seed))).collect();
    let eager = cases.iter().filter(|case| case.config.mode == Mode::Eager).count();
    assert!((2..=8).contains(&eager), "{eager} of these seeds issue eagerly");
    examine(&cases);
}

#[test]
fn healthy_jobs_of_two_ranks() {
    let case = |seed| Case::new(format!("job of seed {seed}"), Config::draw_job(seed, 2));
    examine(&(20..26).map(case).collect::<Vec<_>>());
}

/// A run with a fault of usual size.
fn faulty(seed: u64, kind: FaultKind) -> Config {
    Config::draw_faulty(seed, Fault { kind, magnitude_permille: 1000 })
}

#[test]
fn runs_with_faults() {
    use FaultKind as F;
    let kinds = [
        F::GraphOff,
        F::Unfused,
        F::FullSort,
        F::LayerSync,
        F::AllocStall,
        F::PageableCopy,
        F::ExtraCollective,
        F::CpuFallback,
        F::KvTransfer,
        F::SerialStreams,
    ];
    let case = |(seed, kind)| Case::new(format!("{kind:?} of seed {seed}"), faulty(seed, kind));
    examine(&(40..).zip(kinds).map(case).collect::<Vec<_>>());
}

#[test]
fn jobs_of_two_ranks_with_faults() {
    use FaultKind as F;
    let kinds = [F::HostStraggler, F::RankScheduling, F::GraphOff, F::LayerSync];
    let case =
        |(seed, kind)| Case::new(format!("{kind:?} of two ranks of seed {seed}"), faulty(seed, kind).gathered(2));
    examine(&(60..).zip(kinds).map(case).collect::<Vec<_>>());
}
