//! Jobs of which some ranks left nothing but what the exporter summed up: who waited for whom, and for how long, is still the
//! truth's, on every rank.

use diagnosis::analysis::{Analysis, DeviceOp, OpKind};
use model::{Ns, StepPart, Trace};
use session::{Reading, Session};
use simulator::{
    AscendForm, AscendOutput, Config, Fault, FaultKind, JobTruth, config::Annotation, kernel::Vendor, simulate_job,
};

use crate::common::diagnosed;

/// How far the time of one collective may be from the truth: starts are written as floats of µs, to a quarter of one.
const EACH: Ns = 1_000;
/// Waits from which it matters who came last.
const LATE: Ns = 5 * EACH;
/// How far the sums of a rank may be from the truth, as a share.
const TOLERANCE: f64 = 0.01;

fn near(ours: Ns, truth: Ns) -> bool {
    (ours - truth).abs() as f64 <= TOLERANCE * truth.max(LATE) as f64
}

/// Whether the sums of a rank's steps say how long it computed.
fn computed(name: &str, trace: &Trace, truth: &JobTruth, ranks: &[usize]) -> Vec<String> {
    let wrong = ranks.iter().filter_map(|rank| {
        let steps = trace.job_sums.steps.iter().filter(|step| step.rank as usize == *rank);
        let ours = steps.filter_map(|step| step.part(StepPart::Computing)).sum::<Ns>();
        let buckets = truth.ranks[*rank].steps.iter().flat_map(|step| &step.buckets);
        let really = buckets.filter(|(bucket, _)| bucket.starts_with("compute.")).map(|(_, ns)| *ns).sum::<Ns>();
        (!near(ours, really)).then(|| format!("{name}: rank {rank} computes {ours}, really {really}"))
    });
    wrong.collect()
}

/// What each rank waited in all collectives, and each collective with what it is off by.
fn examine(name: &str, analysis: &Analysis, truth: &JobTruth) -> Vec<String> {
    let job = &analysis.job;
    let mut wrong = Vec::new();
    if (analysis.ranks.len(), job.instances.len()) != (truth.ranks.len(), truth.collectives.len()) {
        let (ranks, of, all) = (analysis.ranks.len(), job.instances.len(), truth.collectives.len());
        return vec![format!("{name}: {ranks} ranks, {of} of {all} collectives matched")];
    }
    for rank in 0..truth.ranks.len() {
        let waited = job.waits.iter().filter(|wait| wait.rank == rank).map(|wait| wait.ns).sum::<Ns>();
        let really = truth.collectives.iter().map(|one| one.wait_ns[rank]).sum::<Ns>();
        // What a rank waits that came last is not told; all ranks of a collective leave it together.
        let rounding = EACH * truth.collectives.len() as Ns / 4;
        if !near(waited, really) && (waited - really).abs() > rounding {
            wrong.push(format!("{name}: rank {rank} waits {waited}, really {really}"));
        }
        let own = &analysis.ranks[rank];
        let inside = |op: &DeviceOp| op.kind == OpKind::Comm;
        let all = own.timeline.ops.iter().filter(|op| inside(op)).map(|op| op.end - op.start).sum::<Ns>();
        let really = truth.collectives.iter().map(|one| one.wait_ns[rank] + one.transfer_ns).sum::<Ns>();
        if !near(all, really) {
            wrong.push(format!("{name}: rank {rank} is {all} in collectives, really {really}"));
        }
    }
    let (moved, really) = (
        job.instances.iter().map(|one| one.transfer).sum::<Ns>(),
        truth.collectives.iter().map(|one| one.transfer_ns).sum::<Ns>(),
    );
    if !near(moved, really) {
        wrong.push(format!("{name}: {moved} are transfer, really {really}"));
    }
    for (nr, one) in truth.collectives.iter().enumerate() {
        let most = one.wait_ns.iter().copied().max().unwrap_or(0);
        let second = one.wait_ns.iter().enumerate().filter(|(rank, _)| *rank != one.late).map(|(_, ns)| *ns).min();
        let waits = job.waits.iter().filter(|wait| wait.instance == nr);
        let stranger = waits.clone().find(|wait| wait.late != one.late && second.is_some_and(|ns| ns > LATE));
        if let Some(wait) = stranger.filter(|_| most > LATE) {
            wrong.push(format!("{name}: collective {nr} waits for rank {}, really {}", wait.late, one.late));
        }
    }
    wrong.truncate(6);
    wrong
}

#[test]
fn ranks_of_which_sums_were_kept_wait_as_the_truth_says() {
    let straggler = |kind| Fault { kind, magnitude_permille: 1000 };
    let jobs = [
        ("two ranks", Config::draw_job(80, 2), &[1][..]),
        ("two ranks, the first of sums", Config::draw_job(81, 2), &[0]),
        ("four ranks", Config::draw_job(82, 4), &[1, 3]),
        ("a late host", Config::draw_faulty(83, straggler(FaultKind::HostStraggler)).gathered(4), &[1, 3]),
        ("a late scheduler", Config::draw_faulty(84, straggler(FaultKind::RankScheduling)).gathered(2), &[1]),
    ];
    let mut wrong = Vec::new();
    for (name, config, sums_of) in jobs {
        let config = Config {
            vendor: Vendor::Ascend,
            annotation: Annotation::Vllm,
            steps: 12,
            layers: config.layers.min(6),
            clock_drift_ppm: 0,
            ..config
        };
        let job = simulate_job(&config);
        let truth = job.truth();
        for form in [AscendForm::Text, AscendForm::Database] {
            let directory = tempfile::tempdir().unwrap();
            job.write_ascend(directory.path(), AscendOutput { sums_of, ..form.into() }).unwrap();
            let session = Session::open(&[directory.path().to_owned()], &Reading::default()).unwrap();
            let name = format!("{name}, {form:?}");
            let Ok([trace]) = <[Trace; 1]>::try_from(session.into_captures()) else {
                wrong.push(format!("{name}: the ranks are one job"));
                continue;
            };
            wrong.extend(computed(&name, &trace, &truth, sums_of));
            let (_, analysis, diagnosis) = diagnosed(trace);
            wrong.extend(examine(&name, &analysis, &truth));
            let culprits: Vec<u32> =
                config.faults.iter().filter_map(|f| config.culprit(f.kind)).map(|r| r as u32).collect();
            for culprit in culprits {
                let blamed = diagnosis.findings.iter().filter(|finding| finding.rule == "CM-01");
                let ranks: Vec<&Vec<u32>> = blamed.map(|finding| &finding.ranks).collect();
                if !ranks.iter().any(|ranks| ranks.contains(&culprit)) {
                    wrong.push(format!("{name}: rank {culprit} is late, CM-01 says {ranks:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
