//! One truth, one answer: the same simulated run, written in every format that the simulator knows, gets the same
//! attribution within what the format allows, and nobody blames a different layer.
//!
//! What a format allows is a card: which buckets it cannot tell apart, and why. All else is compared with the truth.

use std::collections::BTreeMap;

use crate::common::{buckets::comparable, diagnosed};
use diagnosis::{
    analysis::{Analysis, Layer, Step},
    diagnose::{Severity, VerdictLayer},
};
use model::Ns;
use simulator::{
    Config, Fault, FaultKind, JobTruth,
    config::{Annotation, Mode},
    kernel::Vendor,
    run::StepTruth,
    simulate_job,
};

mod cards;
mod stages;
mod sums;

use cards::{CARDS, Card, Lack};

type Buckets = BTreeMap<String, Ns>;

/// How far a step's buckets may be from the truth, summed over buckets, as a share of the step.
const TOLERANCE: f64 = 0.01;

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
