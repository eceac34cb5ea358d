//! Real captures of Ascend devices, against counts that other programs make of the same files. Needs `STRATO_CORPUS`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use model::{Category, Detail, LinkSum, StepPart, StepSum, Trace, TraceBuilder, TrackKind};
use parsers::ascend::FORMAT;

fn corpus() -> PathBuf {
    let corpus = std::env::var_os("STRATO_CORPUS").map(PathBuf::from);
    corpus.expect("STRATO_CORPUS has to name the folder of real captures")
}

fn read(path: &Path) -> Trace {
    let mut builder = TraceBuilder::new(path.display().to_string(), "ascend");
    let format = parsers::detect::read(path, &mut builder, &parsers::ReadOptions::default())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(format.id, FORMAT.id, "{}", path.display());
    builder.finish()
}

/// Number and total ns of the slices on device queues for which `is` holds.
fn work(trace: &Trace, is: impl Fn(Category, bool) -> bool) -> (usize, i64) {
    let lanes = trace.tracks.iter().zip(&trace.lanes).filter(|(t, _)| t.key.kind == TrackKind::DeviceQueue);
    let durations: Vec<i64> = lanes
        .flat_map(|(_, lane)| {
            let is = &is;
            let collective =
                |i: usize| matches!(trace.detail(lane, i), Some(Detail::Kernel(kernel)) if kernel.collective.is_some());
            (0..lane.len()).filter(move |i| is(lane.category[*i], collective(*i))).map(|i| lane.dur[i])
        })
        .collect();
    (durations.len(), durations.iter().sum())
}

/// Number and total ns of the slices on streams of the device: every task lies on one, those that are no work on tracks beside
/// its queue. Collectives and what lies inside them have queues of their own, which are told by a context.
fn on_streams(trace: &Trace) -> (u64, i64) {
    let lanes = trace.tracks.iter().zip(&trace.lanes);
    let streams = lanes.filter(|(t, _)| t.key.device.is_some() && t.key.context.is_none());
    streams.fold((0, 0), |sum, (_, lane)| (sum.0 + lane.len() as u64, sum.1 + lane.dur.iter().sum::<i64>()))
}

fn kernels(trace: &Trace) -> (usize, i64) {
    work(trace, |category, collective| category == Category::Kernel && !collective)
}

fn collectives(trace: &Trace) -> (usize, i64) {
    work(trace, |category, collective| category == Category::Kernel && collective)
}

fn waits(trace: &Trace) -> (usize, i64) {
    work(trace, |category, _| category == Category::DeviceSync)
}

/// Rows read, rows kept and ns of the rows of the ledger that begin so.
fn ledger(trace: &Trace, prefix: &str) -> (u64, u64, i64) {
    let rows = trace.ledger.iter().filter(|row| row.category.starts_with(prefix));
    rows.fold((0, 0, 0), |sum, row| (sum.0 + row.read, sum.1 + row.kept, sum.2 + row.time_ns))
}

/// One rank: job, rank, tasks and their ns, kernels, collectives, waits inside them.
type Expected = (&'static str, u32, (u64, i64), (usize, i64), (usize, i64), (usize, i64));

/// Counted with python3, durations rounded to whole ns one by one:
/// `d = json.load(open('trace_view.json'), parse_float=Decimal)`; a layer is `[e for e in d if e['ph'] == 'X' and
/// name_of_pid[e['pid']] == 'Ascend Hardware']`, kernels are those whose `Task Type` is AI_CORE, MIX_AIV or DSA_SQE;
/// collectives are the `HCCL` rows of thread 0, waits the rows named Notify_Wait.
const TIMELINES: [Expected; 4] = [
    ("level1", 0, (535, 241_788_256), (187, 8_873_740), (4, 105_991_878), (112, 112_540_684)),
    ("level1", 1, (535, 220_354_646), (187, 8_878_280), (4, 100_375_286), (112, 96_519_404)),
    ("level2", 0, (535, 258_713_482), (187, 8_868_216), (4, 99_973_277), (112, 134_458_002)),
    ("level2", 1, (535, 242_442_862), (187, 8_902_280), (4, 97_455_326), (112, 121_730_390)),
];

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn every_task_of_a_timeline_is_a_kernel_a_wait_or_a_named_pseudo_task() {
    let corpus = corpus();
    for (level, rank, tasks, compute, communication, wait) in TIMELINES {
        let folder = corpus.join(format!("ascend-pytorch/alexnet-ddp-2rank-text-{level}/rank{rank}_ascend_pt"));
        let trace = read(&folder);
        assert_eq!(ledger(&trace, "Ascend Hardware/"), (tasks.0, tasks.0, tasks.1), "{level} rank {rank}");
        assert_eq!(on_streams(&trace), tasks, "{level} rank {rank}: what the ledger says is kept is there");
        let named = ["kernel", "memcpy", "wait", "event", "pseudo"];
        let rows = trace.ledger.iter().filter(|row| row.category.starts_with("Ascend Hardware/"));
        assert!(rows.clone().all(|row| named.iter().any(|n| row.note.starts_with(n))));
        assert_eq!(kernels(&trace), compute, "{level} rank {rank}");
        assert_eq!(collectives(&trace), communication, "{level} rank {rank}");
        assert_eq!(waits(&trace), wait, "{level} rank {rank}");
        assert_eq!(trace.processes[0].rank, Some(rank));
        assert_eq!(trace.stat("trace.device_work_without_launch"), 0);
        assert_eq!(trace.manifest.value(model::Manifest::RANKS_AT_LEAST), Some("8"), "the largest peer is 7");
    }
}

/// Counted with `sqlite3`: `select count(*), sum(endNs - startNs) from TASK`, the same `join COMPUTE_TASK_INFO using
/// (globalTaskId)`, `… from COMMUNICATION_OP`, and `… from TASK join COMMUNICATION_TASK_INFO c using (globalTaskId) join
/// STRING_IDS s on s.id = c.taskType where s.value = 'Notify_Wait'`.
const DATABASES: [Expected; 2] = [
    ("level2", 0, (552, 330_805_257), (187, 8_900_456), (4, 94_107_521), (112, 118_128_141)),
    ("level2", 1, (552, 372_929_064), (187, 8_926_368), (4, 100_357_525), (112, 147_208_722)),
];

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn databases_hold_the_same_kernels_as_the_timelines_of_the_same_workload() {
    let corpus = corpus();
    for (level, rank, tasks, compute, communication, wait) in DATABASES {
        let trace = read(&corpus.join(format!("ascend-pytorch/alexnet-ddp-2rank-db-{level}/rank{rank}_ascend_pt")));
        assert_eq!(ledger(&trace, "TASK/"), (tasks.0, tasks.0, tasks.1), "rank {rank}");
        assert_eq!(on_streams(&trace), tasks, "rank {rank}: what the ledger says is kept is there");
        assert_eq!(kernels(&trace), compute, "rank {rank}");
        assert_eq!(collectives(&trace), communication, "rank {rank}");
        assert_eq!(waits(&trace), wait, "rank {rank}");
        assert_eq!(trace.processes[0].rank, Some(rank));
        assert_eq!(trace.stat("trace.device_work_without_launch"), 0);
        let text = read(&corpus.join(format!("ascend-pytorch/alexnet-ddp-2rank-text-{level}/rank{rank}_ascend_pt")));
        assert_eq!(names(&trace), names(&text), "the names of kernels and how often each ran");
    }
}

/// Names of kernels with how often each ran. Instances of one operator are numbered over the whole process, so the
/// numbers at the ends of names differ from run to run.
fn names(trace: &Trace) -> std::collections::BTreeMap<String, usize> {
    let mut names = std::collections::BTreeMap::new();
    for lane in &trace.lanes {
        for i in (0..lane.len()).filter(|i| lane.category[*i] == Category::Kernel) {
            let name = trace.strings.get(lane.name[i]).trim_end_matches(|c: char| c.is_ascii_digit());
            *names.entry(name.to_owned()).or_default() += 1;
        }
    }
    names
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn databases_of_every_age_give_their_operators() {
    let corpus = corpus();
    // `select count(*) from TASK join COMPUTE_TASK_INFO using (globalTaskId)`; in version 3008 `using (correlationId)`.
    for (file, rows) in [
        ("history-report-db/report_0.v3008.db", (24, 11)),
        ("history-report-db/report_0.v3040.db", (24, 11)),
        ("history-msprof-db/msprof_0.2024-03.db", (24, 11)),
        ("msprof-db-msinsight/msprof_0.db", (24, 11)),
    ] {
        let trace = read(&corpus.join("msprof").join(file));
        assert_eq!((ledger(&trace, "TASK/").0, kernels(&trace).0), rows, "{file}");
        // 2023-10-25, and the session of 2023-11-27 whose clock counts from 2020.
        let day = trace.start_unix_ns.unwrap() / 86_400_000_000_000;
        assert!([19_655, 19_688].contains(&day), "{file}: day {day}");
    }
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn the_layout_of_2023_is_one_capture_of_ten_iterations() {
    let corpus = corpus();
    let trace = read(&corpus.join("mindspore/PROF-2023-dev0-msprof-timeline"));
    // Over all `msprof_*.json`, python3 as above: 4900 tasks of `Ascend Hardware` that are no iteration, 1370 of type
    // AI_CORE and 20 of AI_CPU, and 10 rows of the thread `Communication Kernel`.
    assert_eq!(ledger(&trace, "Ascend Hardware/"), (4900, 4900, 576_593_377));
    assert_eq!(kernels(&trace).0, 1390);
    assert_eq!(collectives(&trace), (10, 129_172_040));
    let iterations = trace.tracks.iter().zip(&trace.lanes).filter(|(t, _)| t.key.kind == TrackKind::DeviceAnnotation);
    let ranges = iterations.flat_map(|(_, lane)| lane.name.iter()).map(|name| trace.strings.get(*name));
    assert_eq!(ranges.filter(|name| name.starts_with("Iteration ") && !name.contains("Refresh")).count(), 10);
    // `collectionDateBegin` of start_info.0 is 2023-08-18.
    assert_eq!(trace.start_unix_ns.unwrap() / 86_400_000_000_000, 19_587);
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn operators_of_an_unknown_task_type_are_kernels() {
    let corpus = corpus();
    let trace = read(&corpus.join("ascend-pytorch/advisor-timeline-advice/trace_view.json"));
    // python3 as above: 276 tasks of `Ascend Hardware`, 274 of `Task Type` Other and 2 AI_CPU; two of them are named
    // MEMCPY_ASYNC. The exporter's own `Overlap Analysis` counts 274 intervals of `Computing` in the file.
    assert_eq!(ledger(&trace, "Ascend Hardware/"), (276, 276, 1_790_457));
    assert_eq!(kernels(&trace).0, 274);
    // python3 as above: none of the tasks has the connection_id of a call; of the 274 arrows `HostToDevice` every one begins
    // within exactly one call of its thread and ends at the start of a task.
    let linked = |lane: &model::Columns| (0..lane.len()).filter(|i| lane.link(*i).is_some()).count();
    assert_eq!(trace.lanes.iter().map(linked).sum::<usize>(), 274);
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn a_table_of_kernels_on_its_own_gives_its_kernels() {
    let corpus = corpus();
    let path = corpus.join("ascend-pytorch/advisor-compute-advice-data/kernel_details.csv");
    let mut builder = TraceBuilder::new("kernel_details.csv", "op-summary");
    let format = parsers::detect::read(&path, &mut builder, &parsers::ReadOptions::default()).unwrap();
    assert_eq!(format.id, "op-summary");
    // python3: `sum(round(Decimal(row['Duration(us)']) * 1000) for row in csv.DictReader(open('kernel_details.csv')))` over
    // its 29 rows, 12 of AI_CORE, 9 of MIX_AIC and 8 of AI_VECTOR_CORE.
    assert_eq!(kernels(&builder.finish()), (29, 5_072_220 + 4_872_937 + 116_002));
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn sums_of_the_profiler_agree_with_what_was_read() {
    let corpus = corpus();
    for (form, source) in
        [("text-level1", "communication.json"), ("text-level2", "communication.json"), ("db-level2", "analysis.db")]
    {
        for rank in [0, 1] {
            let trace = read(&corpus.join(format!("ascend-pytorch/alexnet-ddp-2rank-{form}/rank{rank}_ascend_pt")));
            // Four collectives in the file: `jq '.step50.collective | keys - ["Total Op Info"] | length'` and
            // `select count(*) from CommAnalyzerTime where hccl_op_name <> 'Total Op Info'`.
            let (read, kept, time) = ledger(&trace, source);
            assert_eq!((read, kept, trace.stat("ascend.collective_times_differ")), (4, 4, 0), "{form} rank {rank}");
            assert!((time - collectives(&trace).1).abs() <= 4, "{form} rank {rank}: {time}");
            if source == "analysis.db" {
                continue;
            }
            // The second line of step_trace_time.csv, and that of op_statistic.csv summed up.
            let near = |prefix: &str, ns: i64| assert!((ledger(&trace, prefix).2 - ns).abs() <= 200, "{prefix}: {ns}");
            near("step_trace_time/Computing", kernels(&trace).1);
            near("op_statistic/", kernels(&trace).1);
        }
    }
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn without_its_timeline_a_capture_is_read_from_its_tables() {
    let corpus = corpus();
    let from = corpus.join("ascend-pytorch/alexnet-ddp-2rank-text-level1/rank0_ascend_pt");
    let output = tempfile::tempdir().unwrap();
    let to = output.path().join("rank0_ascend_pt");
    std::fs::create_dir_all(to.join("ASCEND_PROFILER_OUTPUT")).unwrap();
    for file in [
        "profiler_info_0.json",
        "ASCEND_PROFILER_OUTPUT/kernel_details.csv",
        "ASCEND_PROFILER_OUTPUT/communication.json",
    ] {
        std::fs::copy(from.join(file), to.join(file)).unwrap();
    }
    let (table, whole) = (read(&to), read(&from));
    // Kernels and collectives are those of the timeline, but for the rounding of each.
    let near = |a: (usize, i64), b: (usize, i64)| a.0 == b.0 && (a.1 - b.1).unsigned_abs() <= a.0 as u64;
    assert!(near(kernels(&table), kernels(&whole)) && near(collectives(&table), collectives(&whole)));
    assert_eq!((waits(&table).0, waits(&whole).0), (4, 112), "one wait for each collective, from the sums");
    // 3.6833535 ms of transit: `jq '[.step50.collective | to_entries[] | select(.key != "Total Op Info") |
    // .value["Communication Time Info"]["Transit Time(ms)"]] | add'`.
    let moved = work(&table, |category, _| category == Category::DeviceOther);
    assert!(moved.0 == 4 && (moved.1 - 3_683_353).abs() <= 4, "{moved:?}");
    assert_eq!(table.processes[0].rank, Some(0));
}

/// awk -F, '$2 == "rank" {n++; c += int($4 * 1000 + .5); e += int($5 * 1000 + .5); f += int($8 * 1000 + .5)} END {printf "%d %.0f
/// %.0f %.0f\n", n, c, e, f}' cluster_step_trace_time.csv. Links and times in collectives: python3's json with Decimal over the
/// two other files, `Total Op Info` left out where its operations are there.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn sums_of_a_job_stay_sums() {
    let corpus = corpus();
    let mut builder = TraceBuilder::new("t", "");
    let path = corpus.join("cluster-analysis/msinsight-cluster");
    let format = parsers::detect::read(&path, &mut builder, &parsers::ReadOptions::default()).unwrap();
    let trace = builder.finish();
    // Three collectives of two ranks say when they began (Python): themselves, what they wait and move, a step of each rank.
    let kernels = trace.lanes.iter().flat_map(|lane| &lane.category).filter(|c| **c == model::Category::Kernel).count();
    assert_eq!((format.id, kernels, trace.stat("ascend.rank_of_sums_only")), ("ascend-cluster", 6, 2));
    let sum = |part| trace.job_sums.steps.iter().filter_map(|step| step.part(part)).sum::<i64>();
    let parts = [StepPart::Computing, StepPart::ExposedCommunication, StepPart::Free].map(sum);
    assert_eq!((trace.job_sums.steps.len(), parts), (16, [1_243_196_806, 2_933_398_751, 1_227_206_444]));
    let stages: Vec<Option<u32>> = trace.job_sums.steps.iter().map(|step| step.stage).collect();
    assert_eq!(stages, [[Some(0); 8], [Some(1); 8]].concat());
    let waits = |step: &StepSum| {
        [StepPart::InCollectives, StepPart::Transfer, StepPart::Wait].map(|part| step.part(part).unwrap_or(-1))
    };
    let waits: Vec<[i64; 3]> = trace.job_sums.steps.iter().map(waits).collect();
    assert_eq!(waits[..3], [[6_405_975, 865_735, 5_400_176], [10_394_340, 866_980, 3_996_980], [-1; 3]]);
    let link = |l: &LinkSum| (l.from, l.to, trace.strings.get(l.transport).to_owned(), l.bytes, l.time);
    let links: Vec<_> = trace.job_sums.links.iter().map(link).collect();
    let expected = [
        (0, 0, "LOCAL", 21_102_648, 29_593),
        (0, 7, "HCCS", 15_504, 1_860),
        (0, 8, "RDMA", 20_971_520, 863_815),
        (1, 0, "HCCS", 40, 1_620),
        (8, 8, "LOCAL", 20_971_520, 29_824),
        (9, 9, "LOCAL", 20_971_520, 29_541),
    ];
    assert_eq!(links, expected.map(|(from, to, kind, bytes, ns)| (from, to, kind.to_owned(), bytes, ns)));
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn files_of_sums_say_what_they_hold_and_what_to_give() {
    let corpus = corpus();
    let output = "ascend-pytorch/alexnet-ddp-2rank-text-level1/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT";
    for (file, holds) in [
        ("cluster-analysis/msinsight-cluster/communication_group.json".to_owned(), "communication group"),
        ("cluster-analysis/communication-group/communication_group.json".to_owned(), "communication group"),
        ("cluster-analysis/communication-group/communication_group_old.json".to_owned(), "communication group"),
        (format!("{output}/api_statistic.csv"), "sums of the host's calls"),
        (format!("{output}/operator_details.csv"), "sums of the framework's operators"),
        (format!("{output}/communication.json"), "sums of each collective"),
        (format!("{output}/communication_matrix.json"), "each pair of ranks"),
        (format!("{output}/operator_memory.csv"), "sizes of allocations"),
        (format!("{output}/memory_record.csv"), "memory over time"),
        (format!("{output}/l2_cache.csv"), "cache hits"),
        (
            "ascend-pytorch/alexnet-ddp-2rank-db-level2/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/analysis.db".to_owned(),
            "steps",
        ),
    ] {
        let mut builder = TraceBuilder::new(&*file, "");
        let told = parsers::detect::read(&corpus.join(&file), &mut builder, &parsers::ReadOptions::default())
            .map(|f| f.id)
            .unwrap_err();
        let told = told.to_string();
        assert!(told.contains(holds) && told.contains("give the directory"), "{file}: {told}");
    }
    // Durations of operators by shape on several chips: a table of another tool, without operations or times.
    for chip in ["310P", "910"] {
        let file = corpus.join(format!("msprof/op-meantime-baseline-cross-chip/op_meantime_baseline_{chip}.json"));
        let mut builder = TraceBuilder::new("baseline", "");
        let told = parsers::detect::read(&file, &mut builder, &parsers::ReadOptions::default())
            .map(|f| f.id)
            .unwrap_err()
            .to_string();
        assert!(told.contains("mean"), "{chip}: {told}");
    }
}

/// Sum over the executions of a counter, and the executions.
fn counter(trace: &Trace, name: &str) -> (u64, f64) {
    let named = trace.summaries.iter().filter_map(|s| {
        let (_, mean) = s.counters.iter().find(|(counter, _)| trace.strings.get(*counter) == name)?;
        Some((s.count, mean * s.count as f64))
    });
    named.fold((0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1))
}

/// `select count(*), sum(p.value) from TASK_PMU_INFO p join STRING_IDS s on s.id = p.name join COMPUTE_TASK_INFO using
/// (globalTaskId) where s.value = NAME`, and of tables python3: the numbers of the column of `csv.DictReader`,
/// of gpt3 without the row of 31 of 32 cells.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn every_counter_of_the_cores_is_kept() {
    const MEGATRON: &str =
        "megatron-qwen3-0.6b-pp2dp2-4rank-level2-cann8.3RC1/rank_0_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv";
    for (file, name, expected) in [
        (
            "alexnet-ddp-2rank-db-level2/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db",
            "aiv_scalar_time",
            (185, 1_204_233.991_572_786_8),
        ),
        (MEGATRON, "aic_mte2_time(us)", (2_448, 91_807.355)),
        (MEGATRON, "cube_utilization(%)", (2_448, 36_526.463)),
        (
            "gpt3-2023-2rank-level1-l0bw/test_rank_0/ASCEND_PROFILER_OUTPUT/kernel_details.csv",
            "aic_l0a_read_bw(GB/s)",
            (12, 57.66),
        ),
        ("advisor-compute-advice-backend/kernel_details.csv", "aiv_vec_fp32_ratio", (558, 12.898)),
    ] {
        let path = corpus().join("ascend-pytorch").join(file);
        let mut builder = TraceBuilder::new("t", "ascend");
        parsers::detect::read(&path, &mut builder, &parsers::ReadOptions::default()).unwrap();
        let (count, sum) = counter(&builder.finish(), name);
        assert!(count == expected.0 && (sum - expected.1).abs() <= expected.1 * 1e-9, "{file} {name}: {count} {sum}");
    }
}

/// python3: sums of the entries `-total` of `communication_matrix.json`, ranks of groups by `global_ranks` of the metadata.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn links_of_a_rank_are_those_of_its_matrix() {
    let folder = corpus().join("ascend-pytorch");
    let links = |path: &str| {
        let trace = read(&folder.join(path));
        let own = trace.job_sums.links.iter().filter(|link| link.from != link.to);
        own.map(|link| (link.from, link.to, link.bytes, link.time)).collect::<Vec<_>>()
    };
    let megatron = links("megatron-qwen3-0.6b-pp2dp2-4rank-level2-cann8.3RC1/rank_1_ascend_pt");
    assert_eq!(megatron, [(1, 0, 1_127_447_160, 59_522_640), (1, 2, 96, 1_300), (1, 3, 639_107_168, 33_410_480)]);
    // As text and as `analysis.db`.
    for (form, first) in [("text-level2", (0, 1, 61_210_624, 4_093_302)), ("db-level2", (0, 1, 61_210_624, 0))] {
        let found = links(&format!("alexnet-ddp-2rank-{form}/rank0_ascend_pt"));
        assert_eq!((found.len(), found[0].0, found[0].1, found[0].2), (7, first.0, first.1, first.2), "{form}");
        assert!(first.3 == 0 || first.3 == found[0].3, "{form}: {found:?}");
    }
    // Numbers of another kind: the peer of a pipeline on another machine is told by its rank of the job.
    let gpt3 = links("gpt3-2023-2rank-level1-l0bw/test_rank_1");
    assert!(gpt3.contains(&(1, 9, 20_972_320, 873_260)), "{gpt3:?}");
}
