//! What must hold of every job: ranks leave a collective together, waits come from what the ranks did, clocks change
//! nothing but what is written.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use proptest::prelude::*;
use simulator::{
    Config, Fault, FaultKind, Job,
    kernel::Vendor,
    record::{DeviceOp, Work},
    simulate_job,
};

fn collectives(job: &Job, rank: usize) -> Vec<&DeviceOp> {
    job.ranks[rank].ops.iter().filter(|op| matches!(op.work, Work::Collective { .. })).collect()
}

fn small(seed: u64, ranks: usize) -> Config {
    Config { steps: 6, warmup_steps: 1, layers: 5, ..Config::draw_job(seed, ranks) }
}

/// Ranks come when they come, leave together, and the last one waits for nobody.
fn check(job: &Job) {
    let truth = job.truth();
    for (run, truth) in job.ranks.iter().zip(&truth.ranks) {
        for step in &truth.steps {
            assert_eq!(step.buckets.values().sum::<i64>(), step.end - step.start, "rank {}", run.rank);
        }
    }
    let members: Vec<_> = (0..job.ranks.len()).map(|rank| collectives(job, rank)).collect();
    assert!(members.iter().all(|ops| ops.len() == truth.collectives.len()));
    for (at, told) in truth.collectives.iter().enumerate() {
        let last = members.iter().map(|ops| ops[at].start).max().unwrap();
        assert_eq!(members[told.late][at].start, last);
        assert_eq!(told.wait_ns[told.late], 0);
        for (ops, wait) in members.iter().zip(&told.wait_ns) {
            assert_eq!(ops[at].start + wait, last);
            assert_eq!(ops[at].end, last + told.transfer_ns);
        }
    }
}

#[test]
fn ranks_leave_collectives_together_whatever_is_wrong() {
    for (seed, &kind) in (700..).zip(FaultKind::ALL) {
        let config = Config::draw_faulty(seed, Fault { kind, magnitude_permille: 1000 });
        let ranks = config.ranks.max(2);
        let job = Config { steps: 6, layers: config.layers.min(8), ranks, tensor_parallel: ranks as i64, ..config };
        check(&simulate_job(&job));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn any_job_adds_up(seed in any::<u64>(), ranks in 2_usize..=8) {
        check(&simulate_job(&small(seed, ranks)));
    }
}

/// A rank's wait in a collective is what the last rank spent more than it since they left the one before together.
#[test]
fn a_wait_is_the_difference_of_what_the_ranks_did_before() {
    let mut compared = 0;
    for seed in 0..6 {
        let job = simulate_job(&small(seed, 4));
        let members: Vec<_> = (0..4).map(|rank| collectives(&job, rank)).collect();
        for (at, told) in job.collectives().iter().enumerate().skip(1) {
            let spent = |rank: usize| members[rank][at].start - members[rank][at - 1].end;
            for rank in 0..4 {
                assert_eq!(told.wait_ns[rank], spent(told.late) - spent(rank));
                compared += 1;
            }
        }
    }
    assert!(compared > 500, "{compared}");
}

#[test]
fn the_same_configuration_gives_the_same_job() {
    for seed in 0..4 {
        let config = small(seed, 4);
        assert_eq!(format!("{:?}", simulate_job(&config).ranks), format!("{:?}", simulate_job(&config).ranks));
    }
}

#[test]
fn ranks_draw_for_themselves_and_transfer_alike() {
    let job = simulate_job(&small(5, 4));
    let first = |rank: usize| job.ranks[rank].ops.iter().map(|op| op.end - op.start).collect::<Vec<_>>();
    assert!((1..4).all(|rank| first(rank) != first(0)));
    assert!((0..4).all(|rank| job.ranks[rank].rank == rank));
}

#[test]
fn a_healthy_job_has_no_rank_that_is_always_late_and_a_straggler_is() {
    let late = |config: &Config| {
        let told = simulate_job(config).collectives();
        let steady: Vec<_> = told.iter().filter(|told| told.step >= config.warmup_steps).collect();
        let mut waited = vec![0_i64; config.ranks];
        for told in &steady {
            waited[told.late] += told.wait_ns.iter().max().unwrap();
        }
        let all: i64 = waited.iter().sum();
        (0..config.ranks).map(|rank| waited[rank] * 1000 / all.max(1)).collect::<Vec<_>>()
    };
    for kind in [FaultKind::HostStraggler, FaultKind::ThrottledRank] {
        for seed in 20..23 {
            let config = Config::draw_faulty(seed, Fault { kind, magnitude_permille: 1000 });
            let culprit = config.culprit(kind).unwrap();
            let shares = late(&config);
            assert!(shares[culprit] > 500, "{kind:?} seed {seed}: rank {culprit} of {shares:?}");
            assert!(late(&config.twin()).iter().all(|share| *share < 500), "seed {seed}: {:?}", late(&config.twin()));
        }
    }
}

#[test]
fn clocks_change_only_what_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { clock_offset_ns: 5_000_000, clock_drift_ppm: 15, ..small(8, 2) };
    let true_clocks = Config { clock_offset_ns: 0, clock_drift_ppm: 0, ..config.clone() };
    let (off, exact) = (simulate_job(&config), simulate_job(&true_clocks));
    assert_eq!(format!("{:?}", off.ranks[1].ops), format!("{:?}", exact.ranks[1].ops));
    let written = |job: &Job, name: &str| -> Vec<String> {
        let paths = job.write_kineto(&directory.path().join(name)).unwrap();
        paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
    };
    let (off, exact) = (written(&off, "off"), written(&exact, "exact"));
    assert_eq!(off[0], exact[0], "the first rank's clock is the true one");
    assert_ne!(off[1], exact[1]);
    assert_eq!(off[1].lines().count(), exact[1].lines().count());
}

#[test]
fn each_rank_says_who_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let job = simulate_job(&Config { vendor: Vendor::Cuda, ..small(3, 4) });
    for (rank, path) in job.write_kineto(directory.path()).unwrap().iter().enumerate() {
        let trace: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let about = &trace["distributedInfo"];
        assert_eq!((about["rank"].as_u64(), about["world_size"].as_u64()), (Some(rank as u64), Some(4)));
        let kernels = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["cat"] == "kernel");
        assert!(kernels.clone().count() > 100);
        assert!(kernels.into_iter().all(|kernel| kernel["args"]["device"] == rank));
    }
}

#[test]
fn one_nsys_export_holds_all_processes() {
    use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("job.sqlite");
    let job = simulate_job(&Config { vendor: Vendor::Cuda, graph_level_trace: false, ..small(4, 2) });
    job.write_nsys(&path).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let rows: Vec<(i64, i64)> = runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(&path).read_only(true);
        let mut db = SqliteConnection::connect_with(&options).await.unwrap();
        let query = "SELECT deviceId, count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN PROCESSES USING (globalPid) \
            GROUP BY deviceId, globalPid ORDER BY deviceId";
        sqlx::query_as(query).fetch_all(&mut db).await.unwrap()
    });
    let kernels = |rank: usize| {
        let kernel = |op: &&DeviceOp| matches!(op.work, Work::Compute(_) | Work::Collective { .. });
        job.ranks[rank].ops.iter().filter(kernel).count() as i64
    };
    assert_eq!(rows, [(0, kernels(0)), (1, kernels(1))]);
}

#[test]
fn a_share_of_the_device_records_is_lost_on_demand() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { dropped_permille: 20, ..small(6, 2) };
    let job = simulate_job(&config);
    let paths = job.write_kineto(directory.path()).unwrap();
    for (run, path) in job.ranks.iter().zip(paths) {
        let text = fs::read_to_string(path).unwrap();
        let written = ["kernel", "gpu_memcpy", "gpu_memset"]
            .map(|cat| text.matches(&format!(r#""cat": "{cat}""#)).count())
            .iter()
            .sum::<usize>();
        let lost = run.ops.len() - written;
        assert!(lost > 0 && lost * 1000 < run.ops.len() * 40, "{lost} of {}", run.ops.len());
    }
}
