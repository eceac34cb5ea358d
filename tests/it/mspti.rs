//! `strato run --backend ascend` with MSPTI beside it: the program starts itself anew with the library, operators have times of
//! their own within replays, and where it cannot record, the events of the engine do and the reason is told.

use std::{
    path::{Path, PathBuf},
    process::Output,
};

use model::{Category, Trace, TrackKind};

const RUN: &[&str] = &["run", "--backend", "ascend", "--model", "tiny", "--dtype", "bf16", "--gen", "8", "--plain"];
/// Two layers of 15 operators and five outside them.
const OPS: usize = 2 * 15 + 5;

/// The simulator, which Cargo builds beside the tests.
fn simulator() -> PathBuf {
    let directory = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let name = "libsim_npu.so";
    [directory.join(name), directory.parent().unwrap().join(name)].into_iter().find(|path| path.is_file()).unwrap()
}

/// Runs on the simulator, with the MSPTI of this directory where it is named.
fn run(directory: &Path, mspti: Option<&str>, more: &[&str]) -> (Output, Option<Trace>) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_strato"));
    command.args(RUN).args(more).args(["-o", "run.strato"]).current_dir(directory).env_clear().env("LANG", "C.UTF-8");
    command.env("STRATO_ASCEND_LIB", simulator()).envs(mspti.map(|file| ("STRATO_MSPTI", file)));
    let output = command.output().unwrap();
    let trace = store::load(&directory.join("run.strato")).ok().and_then(|traces| traces.into_iter().next());
    (output, trace)
}

/// A directory with the simulated MSPTI, which is the same library under the name by which it looks for itself.
fn place() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(simulator(), directory.path().join("libmspti.so")).unwrap();
    directory
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Slices of a category on tracks of a kind, as (start, end, name).
fn slices(trace: &Trace, kind: TrackKind, category: Category) -> Vec<(i64, i64, String)> {
    let lanes = trace.tracks.iter().zip(&trace.lanes).filter(|(track, _)| track.key.kind == kind);
    let mut found: Vec<_> = lanes
        .flat_map(|(_, lane)| {
            (0..lane.len())
                .filter(|at| lane.category[*at] == category)
                .map(|at| (lane.start[at], lane.start[at] + lane.dur[at], trace.strings.get(lane.name[at]).to_owned()))
        })
        .collect();
    found.sort();
    found
}

#[test]
fn operators_have_times_of_their_own_also_within_replays() {
    let directory = place();
    for mode in ["eager", "graph"] {
        let (output, trace) = run(directory.path(), Some("libmspti.so"), &["--mode", mode]);
        let told = text(&output);
        assert_eq!(output.status.code(), Some(0), "{told}");
        assert!(told.contains("MSPTI's records of tasks"), "{told}");
        let trace = trace.unwrap();
        assert!(trace.simulated);
        assert_eq!(trace.manifest.value("measurement.traced"), Some("by the engine itself and MSPTI"));
        assert!(trace.manifest.value("mspti.library").unwrap().contains("libmspti.so"));
        // Of the prompt and seven decode steps.
        let kernels = slices(&trace, TrackKind::DeviceQueue, Category::Kernel);
        assert_eq!(kernels.len(), 8 * OPS, "{mode}");
        assert!(slices(&trace, TrackKind::DeviceQueue, Category::GraphExec).is_empty(), "{mode}");
        assert!(kernels.iter().all(|(start, end, _)| start <= end));
        assert_eq!(trace.stat("mspti.operators_without_records"), 0, "{mode}");
        let steps = slices(&trace, TrackKind::HostThread, Category::UserRange);
        assert_eq!(steps.len(), 8);
        // Every operator ran within its step, but for what the two clocks are apart.
        for (step, own) in steps.iter().zip(kernels.chunks(OPS)) {
            assert!(own.iter().all(|(start, end, _)| step.0 - 1_000_000 <= *start && *end <= step.1 + 1_000_000));
        }
        let tasks = slices(&trace, TrackKind::DeviceAnnotation, Category::DeviceRange);
        let named = |name: &str| tasks.iter().filter(|(.., own)| own.starts_with(name)).count();
        assert!(named("aclnnMatmul (KERNEL_AICORE)") > 0 && named("aclnnFusedInferAttentionScoreV2 (KERNEL_MIX") > 0);
        assert!(!slices(&trace, TrackKind::Global, Category::LibraryApi).is_empty(), "calls");
    }
}

#[test]
fn numbers_are_the_same_with_and_without_it() {
    let directory = place();
    let tokens = |mspti: Option<&str>| {
        let (output, _) = run(directory.path(), mspti, &["--mode", "graph", "--tokens"]);
        String::from_utf8_lossy(&output.stdout).lines().find(|line| line.starts_with("tokens")).unwrap().to_owned()
    };
    assert_eq!(tokens(Some("libmspti.so")), tokens(None));
}

#[test]
fn where_it_cannot_record_the_engines_events_do_and_the_reason_is_told() {
    let directory = place();
    std::fs::write(directory.path().join("nothing.libmspti.so"), "no library").unwrap();
    for (mspti, more, why) in [
        (None, &["--mode", "graph"][..], "STRATO_MSPTI names no MSPTI of it"),
        (Some("nothing.libmspti.so"), &["--mode", "graph"], "no MSPTI: "),
        (Some("libmspti.so"), &["--mode", "graph", "--tp", "2"], "several ranks"),
    ] {
        let (output, trace) = run(directory.path(), mspti, more);
        let (told, trace) = (text(&output), trace.unwrap());
        assert_eq!(output.status.code(), Some(0), "{told}");
        assert!(told.contains("events of the engine") && told.contains(why), "{why} in {told}");
        assert!(trace.manifest.value("evidence.device").unwrap().contains(why));
        assert!(trace.stat("mspti.absent") > 0);
        assert!(!slices(&trace, TrackKind::DeviceQueue, Category::GraphExec).is_empty(), "a replay as one");
    }
    // Who does not ask for the device is told nothing of it.
    let (output, trace) = run(directory.path(), Some("libmspti.so"), &["--observer", "host"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(trace.unwrap().manifest.value("evidence.device"), None);
}
