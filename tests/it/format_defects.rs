//! Captures that were once judged wrongly, each with the number of the defect that an examination of captures other than
//! NVIDIA's gave it. Figures are those of programs of their own (`python3`, `sqlite3`) over the same files.

mod doors;

use std::path::Path;

use crate::common::{self, corpus};
use diagnosis::{analysis::Analysis, diagnose::Diagnosis};
use model::{EvidenceClass, Ns, Trace};
use session::{Options, Reading, Session};

type Judged = (Trace, Analysis, Diagnosis);

fn judged(path: &Path) -> Vec<Judged> {
    let session = Session::open(&[path.to_owned()], &Reading::default()).unwrap();
    session.examine(&Options::default()).unwrap().diagnose().unwrap().captures
}

/// The captures of a folder of the corpus.
fn all(folder: &str) -> Vec<Judged> {
    judged(&corpus().join(folder))
}

fn one(folder: &str) -> Judged {
    let [capture] = all(folder).try_into().ok().expect("one capture");
    capture
}

/// Mean time per step that counts of the buckets that `pick` takes, ns, of one rank.
fn per_step(analysis: &Analysis, rank: u32, pick: impl Fn(&str) -> bool) -> Ns {
    let rank = analysis.ranks.iter().find(|of| of.rank == rank).unwrap();
    let class = rank.main_class().unwrap();
    let of = class.buckets.iter().filter(|(bucket, _)| pick(&bucket.name(&analysis.host_labels)));
    of.map(|(_, ns)| *ns).sum::<Ns>() / class.steady.max(1) as Ns
}

fn near(ns: Ns, ms: f64, tolerance: f64) -> bool {
    (ns as f64 / 1e6 - ms).abs() <= tolerance
}

const MEGATRON: &str = "ascend-pytorch/megatron-qwen3-0.6b-pp2dp2-4rank-level2-cann8.3RC1";
const GPT3: &str = "ascend-pytorch/gpt3-2023-2rank-level1-l0bw";

/// What the program says of a folder of the corpus.
fn said(folder: &str, more: &[&str]) -> String {
    let path = corpus().join(folder);
    let out = common::strato(&[&["diagnose", path.to_str().unwrap()], more].concat(), Path::new("."));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d1_transfer_is_no_wait_and_the_uneven_stage_of_a_pipeline_has_a_name() {
    let (_, analysis, diagnosis) = one(MEGATRON);
    // Ranks 1 and 3 are sums with start times; transfers follow from the last arrival, ms of a step.
    let table = [(0, 318.2, 102.0), (1, 339.9, 101.8), (2, 176.0, 101.6), (3, 159.7, 101.8)];
    for (rank, wait, transfer) in table {
        let [waited, moved] = ["comm.wait", "comm.transfer"].map(|name| per_step(&analysis, rank, |b| b == name));
        assert!(near(waited, wait, 0.5) && near(moved, transfer, 0.5), "rank {rank}: {waited} {moved}");
    }
    for (rank, compute) in [(0, 231.3), (2, 400.4)] {
        let computed = per_step(&analysis, rank, |bucket| bucket.starts_with("compute."));
        assert!(near(computed, compute, 0.5), "rank {rank}: {computed}");
    }
    let first = &diagnosis.findings[0];
    assert_eq!((first.rule, first.ranks.as_slice()), ("CM-15", &[2, 3][..]));
}

/// Ranks of sums had operator 0.0 and steps of 722.8 and 796.1 ms above sums that say 230.9, 401.1, 809.4 and 810.2.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn ranks_of_sums_stand_in_the_table_as_their_sums_say() {
    let page = said(MEGATRON, &[]).replace('\u{202f}', " ");
    for row in ["| `train`             |          1 | 230 903.7 |       – |", "1 | 401 131.7 |       – |"] {
        assert!(page.contains(row), "{row}\n{page}");
    }
    assert!(!page.contains("sums cannot prove it") && page.contains("Of rank 3 only its collectives were kept"));
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d2_what_is_gained_is_at_most_what_is_removed() {
    // Conversions take 954.7 µs of a step and casts 416.8; 10.5 to 12.3 ms were promised.
    let (_, _, diagnosis) = one("mindspore/PROF-2023-dev1-msprof-timeline");
    for (rule, takes) in [("OP-05", 954_700.0), ("OP-04", 416_800.0)] {
        for finding in diagnosis.findings.iter().filter(|finding| finding.rule == rule) {
            let gain = finding.estimate.from - finding.estimate.to_low;
            // Nothing links the operations to launches: a gap before one does not go with it.
            // The price is that of all kernels of the class, and uncertain by a tenth.
            assert!(gain as f64 <= 1.2 * takes, "{rule}: {gain}");
        }
    }
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d3_waits_of_level_0_are_no_transfer() {
    for (form, transfer) in [("text", 4.2), ("db", 4.3)] {
        let (_, analysis, _) = one(&format!("ascend-pytorch/alexnet-ddp-2rank-{form}-level0"));
        let moved = per_step(&analysis, 0, |bucket| bucket == "comm.transfer");
        assert!(near(moved, transfer, 0.6), "{form}: {moved}");
    }
}

/// What is gained when nobody waits for the rank outside was 68 % of a step by two ranks and 8 % by one of them.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn one_rank_and_two_promise_the_same_without_the_wait_for_one_outside() {
    let gain = |folder: &str| {
        let captures = all(&format!("ascend-pytorch/alexnet-ddp-2rank-{folder}"));
        let finding = captures[0].2.findings.iter().find(|finding| finding.rule == "CM-14").unwrap().clone();
        (finding.estimate.least_gain_share(), finding.estimate.max_gain_share())
    };
    let (two, one) = (gain("text-level2"), gain("text-level2/rank0_ascend_pt"));
    assert!((two.0 - one.0).abs() < 0.02 && (two.1 - one.1).abs() < 0.02, "{two:?} {one:?}");
    assert!(two.0 > 0.5 && two.1 < 0.71, "91.6 of 134.6 ms are waits: {two:?}");
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d3b_columns_that_are_there_are_not_called_missing() {
    let (trace, analysis, _) = one(MEGATRON);
    assert!(analysis.evidence.has(EvidenceClass::Shapes));
    // 4 962 of 5 050 rows of both tables have shapes, of which 26 are collectives' (python3).
    let told = trace.ledger.iter().map(|row| row.kept).sum::<u64>();
    assert!(told > 0 && trace.manifest.value("kernels.operators").is_some());
    // `Type` says what `Cast190` and `Mul154` are: 224 rows were `compute.other`.
    let (_, analysis, _) = one("ascend-pytorch/advisor-compute-advice-backend");
    let share = per_step(&analysis, 0, |bucket| bucket == "compute.other");
    let computing = per_step(&analysis, 0, |bucket| bucket.starts_with("compute."));
    assert!(share * 20 < computing, "{share} of {computing}");
    // Counters of other units than those that rules read are kept all the same.
    let text = said("ascend-pytorch/advisor-compute-advice-backend", &["--full"]);
    let lacks = text.lines().find(|line| line.contains("**Does not hold**")).unwrap();
    assert!(!lacks.contains("shapes") && !lacks.contains("counters"), "{lacks}");
    assert!(text.contains("aic_mac_fp16_ratio"), "{text}");
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d4_ranks_of_level_0_are_one_job_with_its_steps_and_links() {
    for form in ["text", "db"] {
        let (_, analysis, _) = one(&format!("ascend-pytorch/alexnet-ddp-2rank-{form}-level0"));
        assert_eq!(analysis.ranks.len(), 2, "{form}");
        assert!(analysis.evidence.has(EvidenceClass::Correlation) && analysis.evidence.has(EvidenceClass::MultiRank));
        assert!(analysis.ranks.iter().all(|rank| rank.anchor.name.contains("rofiler") || !rank.steps.is_empty()));
        let unlinked = analysis.integrity.unlinked as f64 / analysis.integrity.device_ops as f64;
        assert!(unlinked < 0.05, "{form}: {unlinked}");
    }
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d5_without_a_host_call_nothing_of_the_critical_path_is_runtime() {
    for folder in ["rocprof/tl-908", "mindspore/PROF-2023-dev1-msprof-timeline"] {
        let path = corpus().join(folder);
        let out = common::strato(&["diagnose", path.to_str().unwrap(), "--format", "json"], Path::new("."));
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let text = json.to_string();
        assert!(text.contains("strato.diagnosis"), "{folder}");
        let full = said(folder, &["--full"]);
        let path = full.lines().find(|line| line.contains("ritical path"));
        assert!(path.is_none_or(|line| !line.contains("runtime 8")), "{path:?}");
    }
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d6_sums_of_a_cluster_database_are_counted_once() {
    let (trace, analysis, _) = one("cluster-analysis/history-cluster_analysis_db");
    // Rank 0 transfers 38 317.2 µs and waits 1 405.4: `Total Op Info` and the sum of the 42 operations alike (sqlite3).
    let of = |part| {
        let steps = trace.job_sums.steps.iter().filter(|step| step.rank == 0);
        steps.filter_map(|step| step.part(part)).sum::<Ns>()
    };
    assert!(near(of(model::StepPart::Transfer), 38.3172, 0.01) && near(of(model::StepPart::Wait), 1.4054, 0.01));
    // The rows have starts: joined by name (Python over the 336 rows), rank 5 costs the others 2 829.5 ms and rank 0 1 157.5.
    let cost = |late: usize| analysis.job.waits.iter().filter(|wait| wait.late == late).map(|wait| wait.ns).sum::<Ns>();
    assert!(near(cost(5), 2_829.5, 0.5) && near(cost(0), 1_157.5, 0.5), "{} {}", cost(5), cost(0));
    let said = said("cluster-analysis/history-cluster_analysis_db", &[]);
    assert!(said.contains("71.0 % is for rank 5 and 29.0 % for rank 0"), "{said}");
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d7_times_with_fractions_of_a_nanosecond_are_times() {
    let (trace, analysis, diagnosis) = one("rocprof/bmm-rocprof-compute");
    let ops = &analysis.ranks[0].timeline.ops;
    assert_eq!(ops.len(), 301);
    assert!(near(ops.iter().map(|op| op.end - op.start).sum(), 5.2012, 0.002));
    // `pmc_kernel_top.csv` says the same.
    assert_eq!(trace.stated.iter().map(|sum| sum.count).collect::<Vec<_>>(), [Some(301)]);
    assert_eq!(diagnosis::analysis::stated::contradictions(&trace, &analysis.ranks), []);
    drop(diagnosis);
}

/// A directory with a rank that can be read, of the corpus, and one that cannot.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d8_a_rank_that_cannot_be_read_ends_with_3_and_the_rest_is_imported() {
    let directory = tempfile::tempdir().unwrap();
    let from = corpus().join("ascend-pytorch/alexnet-ddp-2rank-text-level1/rank0_ascend_pt");
    common::copy(&from, &directory.path().join("job/rank0_ascend_pt"));
    std::fs::create_dir_all(directory.path().join("job/rank1_ascend_pt/PROF_000001")).unwrap();
    let import = ["import", "-q", "-o", "y.strato", "job"];
    for arguments in [&import[..], &["diagnose", "-q", "job"], &["diff", "-q", "job", "y.strato"]] {
        let out = common::strato(arguments, directory.path());
        let told = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(3), "{told}");
        assert!(told.contains("rank1_ascend_pt") && out.stdout.is_empty(), "{told}");
    }
    let count = common::printed(&["sql", "y.strato", "select count(*) from kernels", "--csv"], directory.path());
    assert!(count.contains("191"), "{count}");
    // All ranks of the job whose half was once lost in silence are read.
    let megatron = corpus().join(MEGATRON);
    let out = common::strato(&["import", "-q", "-o", "m.strato", megatron.to_str().unwrap()], directory.path());
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn d8_what_holds_nothing_ends_with_3_and_says_so_even_when_quiet() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("empty.json", r#"{"schemaVersion":1,"deviceProperties":[],"distributedInfo":{"rank":0},"traceEvents":[]}"#);
    write(
        "pmc_perf.csv",
        "Dispatch_ID,GPU_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,\
         Kernel_Name,Start_Timestamp,End_Timestamp,Kernel_ID\n0,4,64,64,0,0,8,0,16,k,never,later,1\n",
    );
    for name in ["empty.json", "pmc_perf.csv"] {
        let out = common::strato(&["import", "-q", "-o", "y.strato", name], directory.path());
        let told = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(3), "{name}: {told}");
        assert!(told.contains(name) && out.stdout.is_empty(), "{told}");
    }
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d9_sums_that_the_profiler_made_contradict_an_excerpt_on_the_first_screen() {
    let captures = all(GPT3);
    let found: Vec<_> =
        captures.iter().flat_map(|(t, a, _)| diagnosis::analysis::stated::contradictions(t, &a.ranks)).collect();
    let computing = found.iter().find(|of| of.rank == 0 && of.what == model::Stated::Computing).unwrap();
    assert!(near(computing.stated, 75.1746, 0.001) && near(computing.read, 27.1, 2.5), "{computing:?}");
    let text = said(GPT3, &[]);
    let first: Vec<&str> = text.lines().take(30).collect();
    let first = first.join("\n");
    assert!(first.contains("step_trace_time.csv") && first.contains("**Evidence**: D"), "{first}");
    // A row with 31 of 32 cells: what stands under `Duration` is the next column's.
    let short: u64 = captures.iter().map(|(trace, ..)| trace.stat("ascend.short_row")).sum();
    assert!(short > 0);
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d9_sums_of_whole_captures_contradict_nothing() {
    let mut sums = 0;
    for folder in ["ascend-pytorch", "msprof", "mindspore", "rocprof", "cluster-analysis"] {
        let mut inside: Vec<_> = corpus().join(folder).read_dir().unwrap().map(|e| e.unwrap().path()).collect();
        inside.sort();
        for path in inside.iter().filter(|path| !path.ends_with("gpt3-2023-2rank-level1-l0bw")) {
            let Ok(session) = Session::open(std::slice::from_ref(path), &Reading::default()) else { continue };
            for (trace, analysis, _) in session.examine(&Options::default()).unwrap().diagnose().unwrap().captures {
                sums += trace.stated.len();
                let found = diagnosis::analysis::stated::contradictions(&trace, &analysis.ranks);
                assert_eq!(found, [], "{}", path.display());
            }
        }
    }
    assert!(sums > 100, "{sums} sums");
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d10_the_inside_of_a_copy_is_no_return_from_a_wait() {
    let captures = all("rocprof/bmm-rocpd");
    let (_, analysis, _) = captures.iter().find(|(trace, ..)| trace.source.contains("15_results")).unwrap();
    // hipMemcpy of 4 194 304 bytes, 12.5 ms, which was called the host's way back from a wait.
    let [tail, copy] = ["rt.sync_tail", "copy.h2d"].map(|name| per_step(analysis, 0, |bucket| bucket == name));
    assert!(tail < 2_000_000 && copy > 12_000_000, "{tail} {copy}");
    // What the arguments of the call say, with the rate that follows.
    let page = said("rocprof/bmm-rocpd/15_results.db", &[]);
    assert!(page.contains("Copies were not traced") && page.contains("`copy.h2d`: 1, 4.0 MiB in "), "{page}");
    assert!(page.contains("| `hipMemcpy`"), "{page}");
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d13_reports_on_other_devices_name_no_tool_of_nvidia() {
    for folder in [MEGATRON, "ascend-pytorch/alexnet-ddp-2rank-text-level0", "rocprof/tl-908", "rocprof/bmm-rocpd"] {
        for lang in ["en", "zh"] {
            let text = said(folder, &["--full", "--lang", lang]);
            for word in ["nsys", "cuda-graph-trace", "Nsight"] {
                let line = text.lines().find(|line| line.contains(word));
                assert!(line.is_none(), "{folder}: {line:?}");
            }
        }
    }
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d15_files_of_one_run_are_one_capture() {
    assert_eq!(all("rocprof/llamacpp-v1").len(), 1);
    assert_eq!(all("rocprof/bmm-rocprof-compute").len(), 1);
    // op_summary and task_time of one export, outside of the profiler's directory.
    let directory = tempfile::tempdir().unwrap();
    let from = corpus().join("msprof/neopan-tilelang-PROF_000001_20260605161708478_FRJKORBPFMHQMGLA");
    for name in ["op_summary_20260605161737.csv", "task_time_20260605161737.csv"] {
        std::fs::copy(from.join("mindstudio_profiler_output").join(name), directory.path().join(name)).unwrap();
    }
    let captures = judged(directory.path());
    let [(trace, analysis, _)] = captures.as_slice() else { panic!("{} captures", captures.len()) };
    assert_eq!(analysis.ranks[0].timeline.ops.len(), 3);
    assert_eq!(trace.stated.iter().map(|sum| sum.count).collect::<Vec<_>>(), [Some(3)]);
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d17_a_graph_that_the_device_runs_as_a_whole_is_a_graph() {
    for device in ["dev0", "dev1"] {
        let (_, analysis, _) = one(&format!("mindspore/PROF-2023-{device}-msprof-timeline"));
        let key = &analysis.ranks[0].main_class().unwrap().key;
        assert!(!key.contains("eager"), "{key}");
        assert!(analysis.evidence.has(EvidenceClass::Graph));
    }
}

/// The same with a table of three kernels, whose sums once are those of ten.
#[test]
fn d9_a_table_that_lacks_rows_is_doubted_and_a_whole_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("x_ascend_pt/ASCEND_PROFILER_OUTPUT");
    std::fs::create_dir_all(&output).unwrap();
    let mut table =
        "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num\n".to_owned();
    for i in 0..3 {
        table += &format!("7,MatMulV3_{i},MatMulV3,AI_CORE,17364139715{i}0000.000\t,800,0,20\n");
    }
    std::fs::write(output.join("kernel_details.csv"), table).unwrap();
    let said = |computing: &str, kernels: u32| {
        let steps = format!(
            "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n7,{computing},0,0,0,0\n"
        );
        std::fs::write(output.join("step_trace_time.csv"), steps).unwrap();
        let types = format!("OP Type,Core Type,Count,Total Time(us)\nMatMulV3,AI_CORE,{kernels},2400\n");
        std::fs::write(output.join("op_statistic.csv"), types).unwrap();
        common::printed(&["diagnose", "x_ascend_pt"], directory.path())
    };
    let doubts = |text: &str| {
        let told = text.lines().filter(|line| line.contains("beside the tables"));
        told.map(|line| line.replace(['\u{202f}', '\u{a0}'], " ")).collect::<Vec<_>>()
    };
    let whole = said("2400.0", 3);
    assert_eq!(doubts(&whole), [] as [&str; 0]);
    assert!(whole.contains("**Evidence**: C"), "{whole}");
    // Within 2 %.
    assert_eq!(doubts(&said("2440.0", 3)), [] as [&str; 0]);
    let excerpt = said("8000.0", 3);
    let [doubt] = doubts(&excerpt).try_into().unwrap();
    assert!(
        doubt.contains("`step_trace_time.csv`") && doubt.contains("8 000.0 µs") && doubt.contains("2 400.0 µs"),
        "{doubt}"
    );
    assert!(excerpt.contains("**Evidence**: D"), "{excerpt}");
    let [doubt] = doubts(&said("2400.0", 10)).try_into().unwrap();
    assert!(doubt.contains("counts 10 of the kernels") && doubt.contains("3 rows were read"), "{doubt}");
}

/// Without the tables of the host's calls the collectives of a rank were those of a process of its own, and its steps were not found
/// although a table lists them.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn a_database_without_calls_is_the_same_job_with_its_steps_and_collectives() {
    for folder in ["alexnet-ddp-2rank-db-level2", "alexnet-ddp-2rank-db-level0"] {
        let from = corpus().join("ascend-pytorch").join(folder);
        let directory = tempfile::tempdir().unwrap();
        common::copy(&from, directory.path());
        for rank in [0, 1] {
            let output = directory.path().join(format!("rank{rank}_ascend_pt/ASCEND_PROFILER_OUTPUT"));
            let database = output.join(format!("ascend_pytorch_profiler_{rank}.db"));
            common::ascend::database(&database, "DROP TABLE CANN_API; DROP TABLE PYTORCH_API;");
        }
        let (_, whole, _) = one(&format!("ascend-pytorch/{folder}"));
        let [(trace, analysis, diagnosis)] = judged(directory.path()).try_into().ok().expect("one job");
        assert_eq!(analysis.ranks.iter().map(|rank| rank.rank).collect::<Vec<_>>(), [0, 1], "{folder}");
        assert!(!analysis.evidence.has(EvidenceClass::HostApi) && analysis.evidence.has(EvidenceClass::MultiRank));
        for (rank, of_whole) in analysis.ranks.iter().zip(&whole.ranks) {
            assert_eq!((rank.anchor.name.as_str(), rank.steps.len()), (of_whole.anchor.name.as_str(), 1), "{folder}");
            let of = |analysis| per_step(analysis, rank.rank, |bucket| bucket.starts_with("comm."));
            let (with, without) = (of(&whole), of(&analysis));
            assert!(with > 80_000_000 && with.abs_diff(without) < 100_000, "{folder}: {with} {without}");
        }
        assert!(whole.job.instances.len() == analysis.job.instances.len() && !whole.job.instances.is_empty());
        assert_eq!(diagnosis::analysis::stated::contradictions(&trace, &analysis.ranks), [], "{folder}");
        // What nobody recorded is not lost.
        assert!(diagnosis.findings.iter().all(|finding| finding.rule != "CP-05"), "{folder}");
        let out = common::strato(&["diagnose", "--full", directory.path().to_str().unwrap()], Path::new("."));
        let text = String::from_utf8(out.stdout).unwrap();
        let lacks = text.lines().find(|line| line.contains("**Does not hold**")).unwrap();
        assert!(lacks.contains("host calls with times; links from host calls to device work"), "{folder}: {lacks}");
        assert!(!text.contains("rows are missing") && !text.contains("level 0 has no CANN calls"), "{folder}");
    }
}
