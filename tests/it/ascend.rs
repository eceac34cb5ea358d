//! `strato run --backend ascend`: captures of runs on the simulated NPU, which say everywhere that they are simulated, and
//! what is said where there is no library of CANN.

use crate::common;
use std::{
    path::{Path, PathBuf},
    process::Output,
};

use model::{Category, TrackKind};

const RUN: &[&str] =
    &["run", "--backend", "ascend", "--model", "tiny", "--dtype", "f32", "--prompt-len", "8", "--gen", "12"];

/// The simulator, which Cargo builds beside the tests.
fn simulator() -> PathBuf {
    let directory = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let name = format!("{}sim_npu{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    [directory.join(&name), directory.parent().unwrap().join(&name)].into_iter().find(|path| path.is_file()).unwrap()
}

/// The program with that library in place of CANN's; `None` without any.
fn with(library: Option<&Path>, arguments: &[&str], directory: &Path) -> Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_strato"));
    command.args(arguments).current_dir(directory).env_clear().env("LANG", "C.UTF-8");
    if let Some(library) = library {
        command.env("STRATO_ASCEND_LIB", library);
    }
    command.output().unwrap()
}

fn run(more: &[&str], directory: &Path) -> serde_json::Value {
    // Another type of weights takes the place of the usual one.
    let usual = RUN.iter().position(|word| *word == "--dtype").filter(|_| more.contains(&"--dtype"));
    let kept = |at: &usize| usual.is_none_or(|dtype| *at != dtype && *at != dtype + 1);
    let base: Vec<&str> = (0..RUN.len()).filter(kept).map(|at| RUN[at]).collect();
    let output = with(Some(&simulator()), &[&base[..], &["--json"], more].concat(), directory);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn without_a_library_a_run_ends_with_4_and_says_what_brings_one() {
    let directory = tempfile::tempdir().unwrap();
    for library in [None, Some(Path::new("/nonexistent/libcann.so"))] {
        let output = with(library, RUN, directory.path());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{told}");
        assert!(told.contains("no ascend run on this machine") && told.contains("STRATO_ASCEND_LIB"), "{told}");
        let doctor = with(library, &["doctor"], directory.path());
        let told = String::from_utf8_lossy(&doctor.stdout);
        // What was found, and what to do about it below.
        let lines: Vec<&str> = told.lines().skip_while(|line| !line.starts_with("ascend")).take(2).collect();
        let line = lines.concat();
        assert_eq!(doctor.status.code(), Some(0));
        assert!(line.contains("missing") && line.contains("set_env.sh"), "{line}");
    }
    let doctor = with(Some(&simulator()), &["doctor"], directory.path());
    let told = String::from_utf8_lossy(&doctor.stdout);
    assert!(told.lines().any(|line| line.starts_with("ascend") && line.contains("sim-npu (simulated)")), "{told}");
}

#[test]
fn options_of_another_backend_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, name) in [
        (&["--backend", "ascend", "--threads", "2"][..], "--threads"),
        (&["--backend", "ascend", "--flavour", "gpu"], "--flavour"),
        (&["--nz"], "--nz"),
        (&["--backend", "opencl", "--attention-by", "mask"], "--attention-by"),
        (&["--reuse-executors"], "--reuse-executors"),
        (&["--backend", "ascend", "--tp", "2", "--ranks", "processes"], "--ranks"),
    ] {
        let output = with(Some(&simulator()), &[&["run", "--model", "tiny"], arguments].concat(), directory.path());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(name), "{told}");
    }
    // What the device itself cannot do is the device's lack.
    let output = with(Some(&simulator()), &[RUN, &["--kv-block", "16"]].concat(), directory.path());
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_simulated_device_generates_the_tokens_of_the_cpu_eager_replayed_and_on_two_devices() {
    let directory = tempfile::tempdir().unwrap();
    let arguments: Vec<&str> = RUN.iter().map(|word| if *word == "ascend" { "cpu" } else { word }).collect();
    let cpu = with(None, &[&arguments[..], &["--json"]].concat(), directory.path());
    let cpu: serde_json::Value = serde_json::from_slice(&cpu.stdout).unwrap();
    assert!(cpu.get("simulated").is_none());
    let plain: &[&str] = &[];
    for more in [plain, &["--mode", "graph"], &["--tp", "2"], &["--mode", "graph", "--tp", "2", "--level", "fused"]] {
        let ascend = run(more, directory.path());
        assert_eq!(ascend["tokens"], cpu["tokens"], "{more:?}");
        assert_eq!((&ascend["backend"], &ascend["simulated"]), (&"ascend".into(), &true.into()));
        assert_eq!(ascend["device"], "sim-npu (simulated)");
    }
}

#[test]
fn a_capture_and_every_report_of_it_say_that_it_is_simulated_and_its_sums_are_exact() {
    let directory = tempfile::tempdir().unwrap();
    let plain: &[&str] = &[];
    for (more, updates) in [(plain, 0), (&["--mode", "graph", "--dtype", "bf16", "--nz"], 11 * 2)] {
        run(&[more, &["--output", "run.strato"]].concat(), directory.path());
        let traces = store::load(&directory.path().join("run.strato")).unwrap();
        let trace = &traces[0];
        assert!(trace.simulated);
        // Of two ranks in one process the second has a device that nobody samples, and says so.
        assert_eq!(trace.stat("telemetry.device_unavailable"), u64::from(more.contains(&"--tp")));
        let manifest = |key: &str| trace.manifest.value(key).unwrap_or_else(|| panic!("{key} is not told")).to_owned();
        assert_eq!(manifest("hardware.vendor"), "ascend");
        assert_eq!(manifest("hardware.device"), "sim-npu (simulated)");
        assert_eq!(manifest("simulated"), "true");
        assert!(manifest("measurement.timer").contains("within"));
        assert_eq!(manifest("ascend.weight_format"), if updates > 0 { "NZ" } else { "ND" });
        assert_eq!(manifest("precision.activations"), if updates > 0 { "bf16" } else { "f32" });
        let queue = trace.tracks.iter().position(|track| track.key.kind == TrackKind::DeviceQueue).unwrap();
        let lane = &trace.lanes[queue];
        let of = |category: Category| (0..lane.len()).filter(|i| lane.category[*i] == category).count();
        // Two layers of 15 operators and five outside them: of every step, or of the prompt's.
        let ops = 2 * 15 + 5;
        let (kernels, replays) = if updates > 0 { (ops, 11) } else { (12 * ops, 0) };
        assert_eq!((of(Category::Kernel), of(Category::GraphExec), of(Category::Memcpy)), (kernels, replays, 12 * 2));
        let host = trace.tracks.iter().position(|track| track.key.kind == TrackKind::HostThread).unwrap();
        let host = &trace.lanes[host];
        let calls = |name: &str| (0..host.len()).filter(|i| trace.strings.get(host.name[*i]) == name).count();
        let names = ["strato_aclnn", "aclmdlRIExecuteAsync", "aclmdlRICaptureTaskUpdateEnd", "aclrtSynchronizeStream"];
        assert_eq!(names.map(calls), [kernels, replays, updates, 12]);
        let analysis = common::analyze(trace);
        let steps: Vec<_> = analysis.ranks.iter().flat_map(|rank| &rank.steps).collect();
        assert_eq!(steps.len(), 12);
        for step in steps {
            assert_eq!(step.buckets.iter().map(|(_, ns)| ns).sum::<i64>(), step.window.len());
        }
        for (format, mark) in [("md", "**simulated**"), ("json", "\"simulated\": true")] {
            let report = with(None, &["diagnose", "run.strato", "--format", format], directory.path());
            let report = String::from_utf8_lossy(&report.stdout).replace("\"simulated\":true", "\"simulated\": true");
            assert!(report.contains(mark), "{format}: {report}");
        }
        let page = ["export", "run.strato", "--format", "html", "-o", "run.html"];
        assert!(with(None, &page, directory.path()).status.success());
        assert!(std::fs::read_to_string(directory.path().join("run.html")).unwrap().contains("simulated"));
    }
}
