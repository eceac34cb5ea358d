//! `strato run --backend cuda`: what is said where there is no driver, and a capture of a run over the simulated one, which
//! runs the real kernels on a core of this machine.

use crate::common;
use crate::simulated_cuda;
use std::{path::Path, process::Output};

use crate::common::strato;
use diagnosis::{analysis::GraphMode, platform::Stage};
use model::{Category, Detail, TrackKind};

const RUN: &[&str] =
    &["run", "--backend", "cuda", "--model", "tiny", "--dtype", "bf16", "--prompt-len", "9", "--gen", "5"];

fn with_driver(driver: &Path, arguments: &[&str], directory: &Path) -> Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_strato"));
    command.args(arguments).current_dir(directory).env_clear().env("STRATO_CUDA_DRIVER", driver).env("LANG", "C.UTF-8");
    // The simulated driver is the vendor's other libraries as well.
    command.env("STRATO_CUBLASLT", driver).env("STRATO_NCCL", driver);
    command.output().unwrap()
}

/// What a run on the simulated driver prints as JSON.
fn run(more: &[&str], directory: &Path) -> serde_json::Value {
    let output = with_driver(simulated_cuda::library(), &[RUN, &["--json"], more].concat(), directory);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn without_a_driver_a_run_ends_with_4_and_says_what_brings_one() {
    let directory = tempfile::tempdir().unwrap();
    let none = Path::new("/nonexistent/libcuda.so.1");
    for arguments in [RUN, &["probe", "--backend", "cuda"]] {
        let output = with_driver(none, arguments, directory.path());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{told}");
        assert!(told.contains("no cuda run on this machine") && told.contains("NVIDIA driver"), "{told}");
    }
    let doctor = with_driver(none, &["doctor"], directory.path());
    let told = String::from_utf8_lossy(&doctor.stdout);
    // What was found, and what to do about it below.
    let lines: Vec<&str> = told.lines().skip_while(|line| !line.contains("cuda")).take(2).collect();
    let line = lines.concat();
    assert_eq!(doctor.status.code(), Some(0));
    assert!(line.contains("missing") && line.contains("apt-get install nvidia-driver"), "{line}");
}

#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn a_driver_without_a_device_is_told() {
    let driver = simulated_cuda::library();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_strato"));
    command.args(RUN).env_clear().env("STRATO_CUDA_DRIVER", driver).env("STRATO_SIMULATED_CUDA", "none");
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{told}");
    assert!(told.contains("finds no device") && told.contains("--gpus all"), "{told}");
}

/// A toolkit's `libcuda.so`, a stub or that of another version, may lie before the driver that is meant.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn the_driver_is_found_by_the_library_path_whatever_else_is_called_like_it() {
    let driver = simulated_cuda::library();
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(driver, directory.path().join("libcuda.so.1")).unwrap();
    let empty = directory.path().join("empty.cpp");
    std::fs::write(&empty, "").unwrap();
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let mut build = std::process::Command::new(compiler);
    build.args(["-shared", "-fPIC", "-o"]).arg(directory.path().join("libcuda.so")).arg(&empty);
    assert!(build.status().unwrap().success());
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_strato"));
    command.args(RUN).arg("--json").env_clear().env("LD_LIBRARY_PATH", directory.path());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(summary["device"].as_str().is_some_and(|device| device.contains("(simulated)")), "{}", summary["device"]);
}

#[test]
fn options_of_another_backend_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, name) in [
        (&["--backend", "cuda", "--threads", "2"][..], "--threads"),
        (&["--backend", "cuda", "--tp", "2", "--ranks", "processes"], "--ranks"),
        (&["--backend", "opencl", "--gemm", "cublaslt"], "--gemm"),
        (&["--backend", "cuda", "--flavour", "gpu"], "--flavour"),
        (&["--backend", "opencl", "--pageable"], "--pageable"),
        (&["--pageable"], "--pageable"),
    ] {
        let output = strato(&[&["run", "--model", "tiny"], arguments].concat(), directory.path());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(name), "{told}");
    }
}

#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn a_device_generates_the_tokens_of_the_cpu_in_every_mode() {
    let directory = tempfile::tempdir().unwrap();
    let cuda = run(&[], directory.path());
    let arguments: Vec<&str> = RUN.iter().map(|word| if *word == "cuda" { "cpu" } else { word }).collect();
    let cpu = strato(&[&arguments[..], &["--json"]].concat(), directory.path());
    let cpu: serde_json::Value = serde_json::from_slice(&cpu.stdout).unwrap();
    assert_eq!(cuda["tokens"], cpu["tokens"]);
    assert_eq!((&cuda["backend"], &cpu["backend"]), (&"cuda".into(), &"cpu".into()));
    assert!(cuda["device"].as_str().is_some_and(|device| device.contains("(simulated)")), "{}", cuda["device"]);
    for more in [
        &["--mode", "graph", "--level", "fused"][..],
        &["--mode", "piecewise"],
        &["--pageable", "--sampling", "host"],
        &["--gemm", "cublaslt"],
        &["--tp", "2", "--mode", "piecewise"],
    ] {
        assert_eq!(run(more, directory.path())["tokens"], cpu["tokens"], "{more:?}");
    }
}

#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn a_capture_holds_the_drivers_calls_and_its_sums_are_exact() {
    let directory = tempfile::tempdir().unwrap();
    for (mode, file) in [("eager", "eager.strato"), ("graph", "graph.strato"), ("piecewise", "piecewise.strato")] {
        run(&["--mode", mode, "--output", file], directory.path());
        let traces = store::load(&directory.path().join(file)).unwrap();
        let trace = &traces[0];
        let manifest = |key: &str| trace.manifest.value(key).unwrap_or_else(|| panic!("{key} is not told")).to_owned();
        assert_eq!(manifest("hardware.vendor"), "nvidia");
        assert!(manifest("hardware.device").contains("(simulated)"));
        assert!(manifest("measurement.timer").contains("within") && manifest("cuda.stamps").contains("events"));
        assert_eq!(manifest("cuda.compute_capability"), "8.0");
        assert!(manifest("cuda.kernels").contains("PTX") || manifest("cuda.kernels").contains("NVRTC"));
        assert!(manifest("software.driver").contains("CUDA 13.0"));
        let queue = trace.tracks.iter().position(|track| track.key.kind == TrackKind::DeviceQueue).unwrap();
        let lane = &trace.lanes[queue];
        // Two layers of 15 operators and five outside them, five times; and a copy before and after each step.
        let of = |category: Category| (0..lane.len()).filter(|i| lane.category[*i] == category).count();
        // Of captured pieces there is one before the attention of each layer and one at the end, and of each attention two
        // operators stay.
        let (ops, replays, captures) = match mode {
            "graph" => (35, 4, 1),
            "piecewise" => (35 + 4 * 2 * 2, 4 * 3, 3),
            _ => (5 * 35, 0, 0),
        };
        let stated = [("graph", "full graph"), ("piecewise", "piecewise graphs"), ("eager", "eager")];
        assert!(stated.contains(&(mode, manifest("software.graph_mode").as_str())), "{mode}");
        assert!(manifest("cuda.weights").ends_with("made on the device") && manifest("cuda.gemm") == "stratoscope");
        assert_eq!((of(Category::Kernel), of(Category::GraphExec), of(Category::Memcpy)), (ops, replays, 5 * 2));
        assert!((0..lane.len()).all(|i| lane.link(i).is_some()), "every command has the call that enqueued it");
        let copies = (0..lane.len()).filter_map(|i| match trace.detail(lane, i) {
            Some(Detail::Copy(copy)) => Some(copy),
            _ => None,
        });
        for copy in copies {
            let text = |id: Option<model::StringId>| id.map(|id| trace.strings.get(id));
            assert!([text(copy.src), text(copy.dst)].contains(&Some("pinned")), "{copy:?}");
        }
        let host = trace.tracks.iter().position(|track| track.key.kind == TrackKind::HostThread).unwrap();
        let host = &trace.lanes[host];
        let calls = |name: &str| (0..host.len()).filter(|i| trace.strings.get(host.name[*i]).starts_with(name)).count();
        assert_eq!(
            [
                "cuModuleLoadDataEx ",
                "cuLaunchKernel",
                "cuGraphLaunch",
                "cuGraphInstantiate",
                "cuMemcpyHtoDAsync",
                "cuMemcpyDtoHAsync",
                "cuStreamSynchronize"
            ]
            .map(calls),
            [8, ops, replays, captures, 5, 5, 5]
        );
        let analysis = common::analyze(trace);
        let steps: Vec<_> = analysis.ranks.iter().flat_map(|rank| &rank.steps).collect();
        assert!(!steps.is_empty());
        for step in steps {
            assert_eq!(step.buckets.iter().map(|(_, ns)| ns).sum::<i64>(), step.window.len());
        }
        let graph = match mode {
            "graph" => GraphMode::Full,
            "piecewise" => GraphMode::Piecewise,
            _ => GraphMode::Eager,
        };
        let classes = analysis.ranks.iter().flat_map(|rank| &rank.classes).filter(|class| class.stage == Stage::Decode);
        assert!(classes.clone().count() > 0 && classes.clone().all(|class| class.graph == graph), "{mode}");
    }
}

#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn collectives_of_two_devices_are_recorded_with_their_ranks_and_products_with_whose_they_are() {
    let directory = tempfile::tempdir().unwrap();
    run(&["--tp", "2", "--gemm", "cublaslt", "--output", "two.strato"], directory.path());
    let traces = store::load(&directory.path().join("two.strato")).unwrap();
    let trace = &traces[0];
    assert_eq!(trace.processes.iter().map(|process| process.rank).collect::<Vec<_>>(), [Some(0), Some(1)]);
    let manifest = |key: &str| trace.manifest.value(key).unwrap_or_else(|| panic!("{key} is not told")).to_owned();
    assert_eq!(
        (manifest("parallel.tp"), manifest("software.comm_library")),
        ("2".into(), "NCCL between threads".into())
    );
    assert!(manifest("cuda.ranks").contains("NCCL 2.") && manifest("cuda.gemm").contains("cuBLASLt 12."));
    for lane in trace.tracks.iter().zip(&trace.lanes).filter(|(t, _)| t.key.kind == TrackKind::DeviceQueue).map(|t| t.1)
    {
        let kernels: Vec<usize> = (0..lane.len()).filter(|i| lane.category[*i] == Category::Kernel).collect();
        let collectives: Vec<_> = kernels
            .iter()
            .filter_map(|i| match trace.detail(lane, *i) {
                Some(Detail::Kernel(kernel)) => kernel.collective.as_deref(),
                _ => None,
            })
            .collect();
        // Embedding, two layers of two, and the head; five times.
        assert_eq!(collectives.len(), 5 * 6);
        for (seq, collective) in (1..).zip(&collectives) {
            assert_eq!((collective.group_size, collective.seq), (Some(2), Some(seq)));
        }
        let named = |what: &str| kernels.iter().filter(|i| trace.strings.get(lane.name[**i]).ends_with(what)).count();
        // Products of the prompt: seven of each layer; the head has one row, and steps have products of one token.
        assert_eq!((named("_nccl"), named("_cublaslt")), (5 * 6, 2 * 7));
    }
}
