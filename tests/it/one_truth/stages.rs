//! Pipelines in every format: what each stage waits for its neighbours and what their transfers take are the truth's, and an
//! uneven stage comes first where evening it out pays.

use diagnosis::{analysis::Analysis, diagnose::Diagnosis};
use model::Ns;
use simulator::{Config, Fault, FaultKind, JobTruth, Load, simulate_job};

use super::{
    Case,
    cards::{CARDS, Card, Lack},
    examine,
};
use crate::common::diagnosed;

/// How far the bubble of a stage may be from the truth, as a share of the run.
const TOLERANCE: f64 = 0.01;
/// Share of a step that an uneven stage costs from which it has to come first.
const WEIGHTY: f64 = 0.1;
/// How far a promise may miss what evening out really gains, as a share of the step.
const MISSED: f64 = 0.03;

/// A pipeline whose batch does not change.
fn pipeline(seed: u64, load: Load, magnitude_permille: i64) -> Config {
    let fault = Fault { kind: FaultKind::UnevenStages, magnitude_permille };
    let faults: &[Fault] = if magnitude_permille > 0 { &[fault] } else { &[] };
    let config = Config::serve(seed, load, false, faults);
    Config { steps: 14, layers: config.layers.min(16), clock_drift_ppm: 0, ..config }
}

#[test]
fn stages_of_pipelines() {
    let loads = [(90, Load::PipelineTwo), (91, Load::PipelineBusy), (92, Load::PipelineFour)];
    let cases = loads.into_iter().flat_map(|(seed, load)| {
        [0, 1000].map(|magnitude| Case {
            name: format!("{load:?} of seed {seed}, unevenness {magnitude}"),
            config: pipeline(seed, load, magnitude),
        })
    });
    examine(&cases.collect::<Vec<_>>());
}

/// What each stage waits for its neighbours and transfers, held against the truth.
fn bubbles(name: &str, analysis: &Analysis, truth: &JobTruth) -> Vec<String> {
    let job = &analysis.job;
    let of = |rank: usize| -> (Ns, Ns) {
        let waits = job.waits.iter().filter(|wait| wait.rank == rank).map(|wait| wait.ns).sum();
        let has = |one: &&diagnosis::analysis::job::Instance| one.members.iter().any(|member| member.rank == rank);
        (waits, job.instances.iter().filter(has).map(|one| one.transfer).sum())
    };
    let wrong = truth.stages.iter().enumerate().filter_map(|(rank, stage)| {
        let (ours, really) = (of(rank), (stage.bubble_ns, stage.transfer_ns));
        let off = (ours.0 - really.0).abs().max((ours.1 - really.1).abs());
        let whole = truth.ranks[rank].total_ns;
        (off as f64 > TOLERANCE * whole as f64)
            .then(|| format!("{name}: stage {rank} waits and transfers {ours:?}, really {really:?} of {whole}"))
    });
    wrong.collect()
}

/// Whether CM-15 says what the truth says: first where evening out gains much, silent where the stages are even, and never more
/// than there is to gain.
fn judged(name: &str, diagnosis: &Diagnosis, truth: &JobTruth) -> Vec<String> {
    let (now, twin) = match truth.ranks[0].faults.first() {
        Some(fault) => (truth.ranks[0].mean_decode_ns, fault.twin_mean_decode_ns),
        None => (truth.ranks[0].mean_decode_ns, truth.ranks[0].mean_decode_ns),
    };
    let gain = 1.0 - twin as f64 / now.max(1) as f64;
    let compute = || truth.stages.iter().map(|stage| stage.compute_ns);
    let most = compute().max().unwrap_or(0);
    let others = (compute().sum::<Ns>() - most) / (truth.stages.len() as Ns - 1).max(1);
    let ratio = most as f64 / others.max(1) as f64;
    let found = diagnosis.findings.iter().find(|finding| finding.rule == "CM-15");
    let first = diagnosis.verdict.because.first().copied();
    let mut wrong = Vec::new();
    if gain >= WEIGHTY && first != Some("CM-15") {
        wrong.push(format!("{name}: evening out gains {gain:.3}, and first comes {first:?} ({ratio:.2})"));
    }
    if ratio < 1.1 && found.is_some() {
        wrong.push(format!("{name}: stages of {ratio:.2} are called uneven"));
    }
    if let Some(finding) = found.filter(|_| truth.ranks[0].faults.len() == 1) {
        let least = finding.estimate.least_gain_share();
        if least > gain + MISSED {
            wrong.push(format!("{name}: at least {least:.3} are promised, really {gain:.3} ({ratio:.2})"));
        }
    }
    wrong
}

#[test]
fn uneven_stages_come_first_where_evening_out_pays() {
    let mut wrong = Vec::new();
    let cases = (100..).zip([
        (Load::PipelineBusy, 0),
        (Load::PipelineBusy, 1000),
        (Load::PipelineBusy, 2000),
        (Load::PipelineBusy, 2500),
        (Load::PipelineTwo, 1000),
        (Load::PipelineFour, 1500),
    ]);
    let mut weighty = 0;
    for (seed, (load, magnitude)) in cases {
        let config = pipeline(seed, load, magnitude);
        let truth = simulate_job(&config).truth();
        let fault = truth.ranks[0].faults.first();
        weighty += usize::from(fault.is_some_and(|fault| {
            fault.twin_mean_decode_ns as f64 <= (1.0 - WEIGHTY) * truth.ranks[0].mean_decode_ns as f64
        }));
        // Where kernels of sends are called like those of any collective, nothing says that there is a pipeline.
        let tells = |card: &&Card| !card.lacks(Lack::Partners);
        for card in CARDS.iter().filter(tells) {
            let name = format!("{load:?} of seed {seed}, unevenness {magnitude}, {}", card.name);
            let (_, analysis, diagnosis) = diagnosed(card.capture(&config));
            wrong.extend(bubbles(&name, &analysis, &truth));
            wrong.extend(judged(&name, &diagnosis, &truth));
        }
    }
    assert!(weighty >= 2, "{weighty} of the runs would gain");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
