//! `strato run --backend cuda --observer graph|node`: CUPTI joined to a run, over the simulated driver and a simulated CUPTI that
//! records what its calls do.

use crate::common;
use crate::simulated_cuda;
use std::{
    path::Path,
    process::{Command, Output},
};

use model::{Beside, Category, Columns, Detail, Trace, TrackKind};

/// Two layers of 15 operators and five outside them.
const OPS: usize = 35;
/// Kernels that make the weights before the first step.
const MADE: usize = 15;
/// The prompt, and decode steps.
const STEPS: usize = 12;
const RUN: &[&str] =
    &["run", "--backend", "cuda", "--model", "tiny", "--prompt-len", "8", "--plain", "-o", "run.strato"];

/// A run with the simulated driver and, as CUPTI, `cupti`; `how` is what the simulated one is asked for.
fn strato(more: &[&str], cupti: Option<&Path>, how: &str, directory: &Path) -> Output {
    let driver = simulated_cuda::library();
    let mut command = Command::new(env!("CARGO_BIN_EXE_strato"));
    let tokens: &[&str] = if more.contains(&"--gen") { &[] } else { &["--gen", "12"] };
    command.args(RUN).args(tokens).args(more).current_dir(directory).env_clear().env("LANG", "C.UTF-8");
    command.env("STRATO_CUDA_DRIVER", driver).env("STRATO_CUPTI", cupti.unwrap_or(driver));
    command.env("STRATO_CUBLASLT", driver);
    let output = command.env("STRATO_SIMULATED_CUPTI", how).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{more:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The capture of such a run.
fn capture(more: &[&str], cupti: Option<&Path>, how: &str) -> Trace {
    let directory = tempfile::tempdir().unwrap();
    strato(more, cupti, how, directory.path());
    store::load(&directory.path().join("run.strato")).unwrap().pop().unwrap()
}

fn lanes(trace: &Trace, kind: TrackKind) -> Vec<&Columns> {
    trace.tracks.iter().zip(&trace.lanes).filter(|(track, _)| track.key.kind == kind).map(|(_, lane)| lane).collect()
}

/// The one queue, so that nothing is told by two sources.
fn queue(trace: &Trace) -> &Columns {
    let queues = lanes(trace, TrackKind::DeviceQueue);
    assert_eq!(queues.len(), 1, "{:?}", trace.tracks);
    queues[0]
}

fn count(lane: &Columns, category: Category) -> usize {
    (0..lane.len()).filter(|i| lane.category[*i] == category).count()
}

/// Names of the host's calls.
fn calls(trace: &Trace) -> Vec<&str> {
    let of = |lane: &'_ &Columns| {
        let rows = (0..lane.len()).filter(|i| lane.category[*i] == Category::HostApi);
        rows.map(|i| trace.strings.get(lane.name[i])).collect::<Vec<_>>()
    };
    lanes(trace, TrackKind::HostThread).iter().flat_map(of).collect()
}

fn said<'t>(trace: &'t Trace, key: &str) -> &'t str {
    trace.manifest.value(key).unwrap_or_else(|| panic!("{key} is not told"))
}

#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn kernels_of_cupti_stand_once_with_their_calls_and_operators() {
    let trace = capture(&["--observer", "node"], None, "");
    let queue = queue(&trace);
    let [kernels, copies] = [Category::Kernel, Category::Memcpy].map(|category| count(queue, category));
    assert_eq!(kernels, MADE + STEPS * OPS);
    // Those of the steps, and those that fill the device before.
    assert!(copies >= 2 * STEPS, "{copies}");
    assert!((0..queue.len()).all(|i| queue.link(i).is_some()), "every piece of work has the call that launched it");
    let names = calls(&trace);
    let calls = |name: &str| names.iter().filter(|own| **own == name).count();
    assert_eq!((calls("cuLaunchKernel"), calls("cuEventRecord")), (MADE + STEPS * OPS, 0), "no events beside CUPTI");
    assert!(calls("cuStreamSynchronize") >= STEPS, "{}", calls("cuStreamSynchronize"));
    let overlapping = queue.depth.iter().filter(|depth| **depth > 0).count();
    assert_eq!(overlapping, 0, "what two sources tell would overlap");
    // Around the call lies the operator with its shapes, so that analyses find what a kernel works on.
    let host = trace.tracks.iter().position(|track| track.name.is_some_and(|name| trace.strings.get(name) == "engine"));
    let host = &trace.lanes[host.unwrap()];
    let mut launches = (0..host.len()).filter(|i| trace.strings.get(host.name[*i]) == "cuLaunchKernel");
    let launch = launches.nth(MADE).unwrap();
    let around = (0..launch).rev().find(|i| host.category[*i] == Category::FrameworkOp).unwrap();
    assert!(host.start[around] <= host.start[launch] && host.end(launch) <= host.end(around));
    assert!(matches!(trace.detail(host, around), Some(Detail::Op(_))));
    assert_eq!(trace.stats.iter().filter(|stat| stat.name.starts_with("cupti.")).count(), 0, "{:?}", trace.stats);
}

#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn the_capture_says_which_source_gave_device_times_by_which_clock_and_what_that_cost() {
    let trace = capture(&["--observer", "node"], None, "");
    assert_eq!((said(&trace, "measurement.observer"), said(&trace, "cupti.mode")), ("node", "node"));
    assert!(said(&trace, "measurement.traced").contains("CUPTI"));
    let source = said(&trace, "evidence.device");
    assert!(source.contains("CUPTI's records") && source.contains("node by node"), "{source}");
    let timer = said(&trace, "measurement.timer");
    assert!(timer.contains("CUPTI") && timer.contains("monotonic clock of the host"), "{timer}");
    assert!(said(&trace, "cuda.stamps").starts_with("no events"));
    let cost = said(&trace, "cupti.cost");
    assert!(cost.contains("with CUPTI and") && cost.contains("5 steps of each in turn"), "{cost}");
    let ratio: f64 = said(&trace, "measurement.inflation").parse().unwrap();
    assert!(ratio.is_finite() && ratio > 0.0, "{ratio}");
    let overhead = said(&trace, "cupti.overhead");
    assert!(overhead.contains(" records of "), "{overhead}");
    assert!(trace.ledger.iter().any(|row| row.category == "CUPTI overhead" && row.kept > 0), "{:?}", trace.ledger);
    // Of so few steps the cost is not known, and that is said.
    let short = capture(&["--observer", "node", "--gen", "5"], None, "");
    assert!(short.manifest.value("measurement.inflation").is_none());
    assert!(said(&short, "cupti.cost").contains("too few"), "{}", said(&short, "cupti.cost"));
}

#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn nodes_of_a_replay_are_the_operators_that_they_were_captured_for() {
    let trace = capture(&["--observer", "node", "--mode", "graph"], None, "");
    let queue = queue(&trace);
    assert_eq!((count(queue, Category::Kernel), count(queue, Category::GraphExec)), (MADE + STEPS * OPS, 0));
    let nodes = (0..queue.len())
        .filter(|i| matches!(trace.detail(queue, *i), Some(Detail::Kernel(kernel)) if kernel.graph_node.is_some()));
    assert_eq!(nodes.count(), (STEPS - 1) * OPS);
    let matched = said(&trace, Beside::MATCH);
    assert!(matched.starts_with(&format!("{} of ", STEPS * OPS)), "{matched}");
    let key = trace.tracks.iter().find(|track| track.key.kind == TrackKind::DeviceQueue).unwrap().key;
    let beside = trace.tracks.iter().position(|track| track.key == Beside::Operators.key(key)).unwrap();
    let beside = &trace.lanes[beside];
    let names: Vec<&str> = (0..beside.len()).map(|i| trace.strings.get(beside.name[i])).collect();
    let last = &names[names.len() - OPS..];
    assert_eq!((last[0], last[OPS - 2], last[OPS - 1]), ("embed", "lm_head", "argmax"), "{last:?}");
    let down = names.iter().rposition(|name| *name == "down_proj").unwrap();
    let Some(Detail::Op(op)) = trace.detail(beside, down) else { panic!("no shapes") };
    assert!(op.shapes.is_some_and(|shapes| trace.strings.get(shapes).starts_with("[[1, ")));
}

/// A library of the vendor's launches its kernels itself, by calls and under names that the engine does not know.
#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn kernels_of_the_vendors_library_are_the_operators_that_they_were_launched_for() {
    for mode in ["eager", "graph"] {
        let more = ["--observer", "node", "--mode", mode, "--gemm", "cublaslt", "--batch", "9"];
        let trace = capture(&more, None, "");
        let queue = queue(&trace);
        let rows = (0..queue.len()).filter(|i| queue.category[*i] == Category::Kernel);
        let gemms = rows.filter(|i| trace.strings.get(queue.name[*i]).contains("cublaslt_gemm")).count();
        // Seven products of each of two layers, and the head; they run once before they are captured.
        let captured = usize::from(mode == "graph");
        assert_eq!(gemms, (STEPS + captured) * 15, "{mode}");
        let (matched, all) = (said(&trace, Beside::MATCH), count(queue, Category::Kernel) - MADE);
        assert!(matched.starts_with(&format!("{} of ", all - captured * 15)), "{mode}: {matched} ({all})");
    }
}

#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn a_replay_is_one_record_or_its_nodes_and_never_both() {
    let trace = capture(&["--observer", "graph", "--mode", "graph"], None, "");
    let queue = queue(&trace);
    assert_eq!((count(queue, Category::Kernel), count(queue, Category::GraphExec)), (MADE + OPS, STEPS - 1));
    assert!(said(&trace, "evidence.device").contains("a replay as one record"));
    assert_eq!((said(&trace, "measurement.observer"), said(&trace, "cupti.mode")), ("graph", "graph"));
    assert_eq!(trace.stat("cupti.other_mode"), 0);
}

#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn without_cupti_the_engines_events_stand_and_the_reason_is_shown() {
    for (cupti, how, reason) in [
        (Some(Path::new("/nonexistent/libcupti.so.13")), "", "no CUPTI: "),
        (Some(Path::new("libc.so.6")), "", "has no cuptiSubscribe"),
        (None, "taken", "another profiler is attached to this process"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let output = strato(&["--observer", "node"], cupti, how, directory.path());
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(told.contains("CUPTI was asked for: ") && told.contains(reason), "{told}");
        let trace = store::load(&directory.path().join("run.strato")).unwrap().pop().unwrap();
        // What is recorded begins with the first step.
        assert_eq!(count(queue(&trace), Category::Kernel), STEPS * OPS);
        assert_eq!(said(&trace, "measurement.observer"), "device");
        let source = said(&trace, "evidence.device");
        assert!(source.contains("events before and after every command") && source.contains(reason), "{source}");
        assert!(said(&trace, "measurement.timer").contains("stamps of the device"));
        let absent = trace.stats.iter().find(|stat| stat.name == "cupti.absent").unwrap();
        assert!(absent.example.as_deref().is_some_and(|example| example.contains(reason)), "{absent:?}");
        assert!(trace.manifest.value("cupti.mode").is_none());
    }
}

#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn records_that_cupti_dropped_are_counted_and_shown() {
    let directory = tempfile::tempdir().unwrap();
    strato(&["--observer", "node"], None, "drop:7", directory.path());
    let trace = store::load(&directory.path().join("run.strato")).unwrap().pop().unwrap();
    let lost = (MADE + STEPS * OPS) / 7;
    assert_eq!(trace.stat("cupti.dropped_records"), lost as u64);
    assert_eq!(count(queue(&trace), Category::Kernel), MADE + STEPS * OPS - lost);
    let mut command = Command::new(env!("CARGO_BIN_EXE_strato"));
    let output = command.args(["diagnose", "run.strato"]).current_dir(directory.path()).output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("cupti.dropped_records"), "{report}");
}

#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn a_device_generates_the_same_tokens_whoever_watches() {
    let tokens = |more: &[&str]| {
        let directory = tempfile::tempdir().unwrap();
        let output = strato(&[more, &["--json"]].concat(), None, "", directory.path());
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        told["tokens"].clone()
    };
    let expected = tokens(&["--observer", "off"]);
    for (observer, mode) in [("graph", "eager"), ("graph", "graph"), ("node", "eager"), ("node", "graph")] {
        assert_eq!(tokens(&["--observer", observer, "--mode", mode]), expected, "{observer} {mode}");
    }
}

#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn sums_of_a_capture_by_cupti_are_exact_and_its_kernels_are_known() {
    for more in [&["--mode", "eager"][..], &["--mode", "graph"]] {
        let trace = capture(&[more, &["--observer", "node"]].concat(), None, "");
        let analysis = common::analyze(&trace);
        let steps: Vec<_> = analysis.ranks.iter().flat_map(|rank| &rank.steps).collect();
        assert!(!steps.is_empty());
        for step in steps {
            assert_eq!(step.buckets.iter().map(|(_, ns)| ns).sum::<i64>(), step.window.len());
        }
        let queue = queue(&trace);
        let kernels = (0..queue.len()).filter(|i| queue.category[*i] == Category::Kernel);
        for name in kernels.map(|i| queue.name[i]) {
            let text = trace.strings.get(name);
            // What makes the weights is no operator of a model.
            if text.starts_with("strato_synthetic_") {
                continue;
            }
            let op = analysis.ops.get(&name).map(|found| found.op);
            assert!(op.is_some_and(|op| op != diagnosis::platform::CanonicalOp::Other), "{text} is not known");
        }
    }
}
