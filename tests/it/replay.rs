//! The replay reproduces simulated runs, and what it promises of a change is what the run without the fault shows.

use crate::common;
use diagnosis::{
    analysis::replay::Replay,
    diagnose::{Diagnosis, Method, rules},
};
use model::{Ns, Trace};
use rayon::prelude::*;
use simulator::{
    Config, Run,
    config::Annotation,
    fault::{Fault, FaultKind, MAGNITUDES},
    simulate,
};

fn read_back(run: &Run) -> Trace {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.json");
    run.write_kineto(&path).unwrap();
    common::read(&path)
}

fn diagnosis(run: &Run) -> Diagnosis {
    common::found_in(&read_back(run))
}

#[test]
fn the_unedited_replay_reproduces_every_run() {
    (0..60u64).into_par_iter().for_each(|seed| {
        let trace = read_back(&simulate(&Config::draw(seed)));
        let analysis = common::analyze(&trace);
        let replay = Replay::new(&analysis);
        for (rank, windows) in analysis.ranks.iter().zip(replay.unedited()) {
            let Some(class) = rank.main_class().filter(|c| c.steady > 0) else { continue };
            let check = Replay::check(rank, class, &windows);
            assert!(check.passed(), "seed {seed}: {check:?}");
        }
    });
}

/// Runs of each fault and magnitude.
const SEEDS: u64 = 2;

/// What one faulty run was estimated to gain, and what its twin without the fault gains. Times are ns per step.
struct Case {
    kind: FaultKind,
    magnitude: i64,
    seed: u64,
    from: Ns,
    truth: Ns,
    /// Rule, least and most gain, where an expected rule fired.
    found: Option<(&'static str, Ns, Ns, Method)>,
    /// Rules of all findings.
    rules: Vec<&'static str>,
}

impl Case {
    fn new(kind: FaultKind, magnitude: i64, seed: u64) -> Self {
        let mut config = Config::draw_faulty(seed, Fault { kind, magnitude_permille: magnitude });
        if config.annotation == Annotation::None {
            config.annotation = Annotation::Vllm;
        }
        let run = simulate(&config);
        let truth = run.truth();
        let fault = truth.faults.first().unwrap();
        let findings = diagnosis(&run).findings;
        let rules = findings.iter().map(|f| f.rule).collect();
        let found = fault.rules.iter().find_map(|rule| findings.iter().find(|f| f.rule == *rule));
        Self {
            kind,
            magnitude,
            seed,
            rules,
            from: truth.mean_decode_ns,
            truth: truth.mean_decode_ns - fault.twin_mean_decode_ns,
            found: found.map(|f| {
                let e = f.estimate;
                (f.rule, e.from - e.to_high, e.from - e.to_low, e.method)
            }),
        }
    }

    /// Distance of the middle from the truth, as a share of the step.
    fn error(&self) -> Option<f64> {
        self.found.map(|(_, low, high, _)| ((low + high) / 2 - self.truth).abs() as f64 / self.from as f64)
    }

    /// Whether the truth lies in the interval, give or take half a percent of the step: the twin's own noise.
    fn inside(&self) -> bool {
        let slack = self.from / 200;
        self.found.is_some_and(|(_, low, high, _)| low - slack <= self.truth && self.truth <= high + slack)
    }
}

fn percentile(sorted: &[f64], percent: usize) -> f64 {
    sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

#[test]
fn estimates_meet_the_gain_of_the_run_without_the_fault() {
    let without_gain = [FaultKind::ShortWarmup, FaultKind::Profiler];
    // What only several ranks together show, and what no rule names without a probe, has nothing to be estimated here.
    let between_ranks =
        |kind: FaultKind| kind.of_one_rank() || kind.rules().iter().all(|rule| ["CM-07", "CM-12"].contains(rule));
    let named = |kind: FaultKind| kind.rules().iter().any(|rule| rules::find(rule).is_some());
    let wanted: Vec<(FaultKind, i64, u64)> = FaultKind::ALL
        .iter()
        .copied()
        .filter(|kind| !without_gain.contains(kind) && !between_ranks(*kind) && named(*kind))
        .flat_map(|kind| MAGNITUDES.into_iter().flat_map(move |m| (0..SEEDS).map(move |s| (kind, m, 7000 + s))))
        .collect();
    let cases: Vec<Case> = wanted.into_par_iter().map(|(kind, m, seed)| Case::new(kind, m, seed)).collect();
    let share = |ns: Ns, case: &Case| 100.0 * ns as f64 / case.from as f64;
    for case in &cases {
        let found = case.found.map_or_else(
            || format!("- {:?}", case.rules),
            |(rule, low, high, method)| {
                format!("{rule} {:6.1} .. {:6.1} {}", share(low, case), share(high, case), method.key())
            },
        );
        println!(
            "{:18} {:5} {:5} step {:7} us, truth {:6.1} %, {found}{}",
            format!("{:?}", case.kind),
            case.magnitude,
            case.seed,
            case.from / 1000,
            share(case.truth, case),
            if case.found.is_some() && !case.inside() { "  OUTSIDE" } else { "" },
        );
    }
    let replayed: Vec<&Case> =
        cases.iter().filter(|c| c.found.is_some_and(|(.., method)| method == Method::Replay)).collect();
    let mut errors: Vec<f64> = replayed.iter().filter_map(|c| c.error()).collect();
    errors.sort_by(f64::total_cmp);
    let inside = replayed.iter().filter(|c| c.inside()).count();
    println!(
        "{} cases, {} replayed; error median {:.2} %, p90 {:.2} %; {inside} inside",
        cases.len(),
        replayed.len(),
        100.0 * percentile(&errors, 50),
        100.0 * percentile(&errors, 90),
    );
    // The floors that are reached; the method's goals are 90 % inside, 1 % and 5 %.
    assert!(inside * 100 >= replayed.len() * 80, "{inside} of {} inside", replayed.len());
    assert!(percentile(&errors, 50) <= 0.02 && percentile(&errors, 90) <= 0.08);
    assert!(replayed.len() * 4 >= cases.len() * 3, "only {} of {} cases were replayed", replayed.len(), cases.len());
}
