//! `strato run --backend opencl`: a capture of a run on the first OpenCL device, and what a diagnosis makes of it. On a machine
//! without one only what is said then is tested.

use crate::common;
use std::{path::Path, process::Output};

use crate::common::strato;
use diagnosis::analysis::Layer;
use model::{Category, TrackKind};

const RUN: &[&str] =
    &["run", "--backend", "opencl", "--model", "tiny", "--dtype", "f32", "--prompt-len", "8", "--gen", "12"];

/// The program with the path and the home of whoever runs the tests: drivers look there for a linker and a cache.
fn at_home(arguments: &[&str], directory: &Path) -> Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_strato"));
    let home = ["PATH", "HOME"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.args(arguments).current_dir(directory).env_clear().envs(home).env("LANG", "C.UTF-8").output().unwrap()
}

/// What a run prints as JSON.
fn run(more: &[&str], directory: &Path) -> serde_json::Value {
    let output = at_home(&[RUN, &["--json"], more].concat(), directory);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn without_a_driver(arguments: &[&str]) -> Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_strato"));
    command.args(arguments).env_clear().env("OCL_ICD_VENDORS", "/nonexistent").env("LANG", "C.UTF-8").output().unwrap()
}

#[test]
fn without_a_device_a_run_ends_with_4_and_says_what_brings_one() {
    let output = without_a_driver(RUN);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{told}");
    assert!(told.contains("no opencl run on this machine") && told.contains("apt-get install"), "{told}");
    let doctor = without_a_driver(&["doctor"]);
    let told = String::from_utf8_lossy(&doctor.stdout);
    // What was found, and what to do about it below.
    let lines: Vec<&str> = told.lines().skip_while(|line| !line.contains("opencl")).take(2).collect();
    let line = lines.concat();
    assert_eq!(doctor.status.code(), Some(0));
    assert!(line.contains("missing") && line.contains("pocl-opencl-icd"), "{line}");
}

#[test]
#[ignore = "needs an OpenCL device, such as that of PoCL"]
fn pocl_without_a_linker_is_told_and_does_not_end_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let doctor = at_home(&["doctor"], directory.path());
    let devices = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(devices.contains("Portable Computing Language"), "no PoCL on this machine: {devices}");
    // Nothing is on the path of this one.
    let output = strato(RUN, directory.path());
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{told}");
    assert!(told.contains("'ld'") && told.contains("binutils"), "{told}");
}

#[test]
fn options_of_another_backend_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, name) in [
        (&["--backend", "opencl", "--threads", "2"][..], "--threads"),
        (&["--tools", "nvidia-smi"], "--tools"),
        (&["--backend", "opencl", "--isa", "portable"], "--isa"),
        (&["--device", "1"], "--device"),
        (&["--flavour", "gpu"], "--flavour"),
    ] {
        let output = strato(&[&["run", "--model", "tiny"], arguments].concat(), directory.path());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(name), "{told}");
    }
}

#[test]
#[ignore = "needs an OpenCL device, such as that of PoCL"]
fn a_device_generates_the_tokens_of_the_cpu() {
    let directory = tempfile::tempdir().unwrap();
    let opencl = run(&[], directory.path());
    let arguments: Vec<&str> = RUN.iter().map(|word| if *word == "opencl" { "cpu" } else { word }).collect();
    let cpu = strato(&[&arguments[..], &["--json"]].concat(), directory.path());
    let cpu: serde_json::Value = serde_json::from_slice(&cpu.stdout).unwrap();
    assert_eq!(opencl["tokens"], cpu["tokens"]);
    assert_eq!((&opencl["backend"], &cpu["backend"]), (&"opencl".into(), &"cpu".into()));
    assert!(opencl["device"].as_str().is_some_and(|device| !device.is_empty()));
}

#[test]
#[ignore = "needs an OpenCL device, such as that of PoCL"]
fn a_capture_holds_the_drivers_calls_and_stamps_and_its_sums_are_exact() {
    let directory = tempfile::tempdir().unwrap();
    run(&["--output", "run.strato"], directory.path());
    let traces = store::load(&directory.path().join("run.strato")).unwrap();
    let trace = &traces[0];
    let manifest = |key: &str| trace.manifest.value(key).unwrap_or_else(|| panic!("{key} is not told")).to_owned();
    assert_eq!(manifest("hardware.vendor"), "opencl");
    assert!(manifest("measurement.timer").contains("within"));
    assert!(["CPU", "GPU", "accelerator", "device"].contains(&&*manifest("opencl.device_type")));
    assert!(manifest("opencl.device_type") != "CPU" || manifest("hardware.device").contains("a CPU through"));
    for key in ["software.driver", "opencl.platform", "opencl.device_vendor", "hardware.memory_bytes"] {
        assert!(!manifest(key).is_empty(), "{key}");
    }
    let queue = trace.tracks.iter().position(|track| track.key.kind == TrackKind::DeviceQueue).unwrap();
    let lane = &trace.lanes[queue];
    // Two layers of 15 operators and five outside them, twelve times; and a copy before and after each step.
    let of = |category: Category| (0..lane.len()).filter(|i| lane.category[*i] == category).count();
    assert_eq!((of(Category::Kernel), of(Category::Memcpy)), (12 * (2 * 15 + 5), 12 * 2));
    assert!((0..lane.len()).all(|i| lane.link(i).is_some()), "every command has the call that enqueued it");
    let host = trace.tracks.iter().position(|track| track.key.kind == TrackKind::HostThread).unwrap();
    let host = &trace.lanes[host];
    let calls = |name: &str| (0..host.len()).filter(|i| trace.strings.get(host.name[*i]).starts_with(name)).count();
    assert_eq!(
        ["clBuildProgram ", "clEnqueueNDRangeKernel", "clEnqueueWriteBuffer", "clEnqueueReadBuffer", "clFinish"]
            .map(calls),
        [6, 12 * 35, 12, 12, 12]
    );
    for name in ["queued_to_submitted", "submitted_to_started"] {
        let counter = trace.counters.iter().find(|counter| trace.strings.get(counter.name) == name).unwrap();
        assert_eq!(counter.value.len(), lane.len(), "{name}");
        assert!(counter.value.iter().all(|wait| *wait >= 0.0), "{name}");
    }
    let analysis = common::analyze(trace);
    let steps: Vec<_> = analysis.ranks.iter().flat_map(|rank| &rank.steps).collect();
    assert_eq!(steps.len(), 12);
    for step in steps {
        assert_eq!(step.buckets.iter().map(|(_, ns)| ns).sum::<i64>(), step.window.len());
    }
}

#[test]
#[ignore = "needs an OpenCL device, such as that of PoCL"]
fn two_ranks_on_parts_of_a_device_are_one_capture_with_the_tokens_of_one_rank() {
    let directory = tempfile::tempdir().unwrap();
    let alone = run(&[], directory.path());
    let output = at_home(&[RUN, &["--json", "--tp", "2", "-o", "two.strato"]].concat(), directory.path());
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let two: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(two["tokens"], alone["tokens"]);
    let trace = store::load(&directory.path().join("two.strato")).unwrap().remove(0);
    assert_eq!(trace.processes.iter().filter_map(|process| process.rank).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(trace.manifest.value("parallel.tp"), Some("2"));
    let analysis = common::analyze(&trace);
    assert_eq!(analysis.ranks.len(), 2);
    for rank in &analysis.ranks {
        assert_eq!(rank.steps.len(), 12);
        for step in &rank.steps {
            assert_eq!(step.buckets.iter().map(|(_, ns)| ns).sum::<i64>(), step.window.len());
            let exchanged = step.buckets.iter().filter(|(bucket, _)| bucket.layer() == Layer::Communication);
            assert!(exchanged.map(|(_, ns)| ns).sum::<i64>() > 0, "{:?}", step.buckets);
        }
    }
}

#[test]
#[ignore = "needs an OpenCL device, such as that of PoCL"]
fn what_the_tool_of_the_device_prints_lies_in_the_capture() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    run(&[], directory.path());
    let tool = directory.path().join("npu-smi");
    let table = "cat <<'TABLE'\n\
| npu-smi 24.1.rc3.3               Version: 24.1.rc3.3                                           |\n\
+---------------------------+---------------+----------------------------------------------------+\n\
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|\n\
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |\n\
+===========================+===============+====================================================+\n\
| 3     Ascend910           | OK            | 182.0       36                0    / 0             |\n\
| 0     6                   | 0000:9D:00.0  | 7           0    / 0          57895/ 65536         |\n\
+------------------------------------------------------------------------------------------------+\nTABLE\n";
    std::fs::write(&tool, format!("#!/bin/sh\n{table}")).unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap());
    // A machine that is busy takes its time to start the tool, and the run must last as long.
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_strato"))
        .args(RUN.iter().map(|word| if *word == "12" { "200" } else { word }))
        .args(["--inject", "host_delay:us=200", "--tools", "npu-smi", "-o", "tool.strato", "-q"])
        .current_dir(directory.path())
        .env("PATH", path)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let trace = store::load(&directory.path().join("tool.strato")).unwrap().remove(0);
    let power = trace.counters.iter().find(|counter| trace.strings.get(counter.name) == "power").unwrap();
    assert_eq!((power.device, power.unit.as_str(), power.value[0]), (Some(0), "W", 182.0));
    assert!(trace.manifest.value("measurement.sampler").unwrap().contains("npu-smi every 2.0 s"));
}
