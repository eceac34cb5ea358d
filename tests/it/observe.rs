//! Who watches: NVIDIA's library beside the tools, what of a run is recorded, and what is said where nothing can be.

use std::{
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

/// A program that runs `strato` where only this directory and the system's own have programs and libraries.
fn strato(directory: &Path, arguments: &[&str], lang: &str) -> Output {
    let path = format!("{}:/usr/bin:/bin", directory.display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_strato"));
    command.args(arguments).current_dir(directory).env_clear().env("PATH", path).env("LANG", lang);
    let home = ["HOME", "POCL_CACHE_DIR"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.envs(home).env("LD_LIBRARY_PATH", directory).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Puts a driver's library there, whose one device has this name.
fn library(directory: &Path, name: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("collectors/tests/fake_nvml.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-w", "-DHOPPER"]).arg(format!("-DNAME=\"{name}\"")).arg("-o");
    compiler.arg(directory.join("libnvidia-ml.so.1")).arg(source);
    assert!(compiler.status().expect("a C compiler").success());
}

/// Puts an `nvidia-smi` there.
fn tool(directory: &Path) {
    let file = directory.join("nvidia-smi");
    let table = "index, name, utilization.gpu [%]\n0, NVIDIA By Tool, 12 %";
    std::fs::write(&file, format!("#!/bin/sh\ncat <<'TABLE'\n{table}\nTABLE\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The line of a check of `strato doctor`, and the one below it, which says what to do.
fn doctor(directory: &Path, check: &str) -> String {
    let output = strato(directory, &["doctor"], "C.UTF-8");
    assert_eq!(output.status.code(), Some(0));
    let told = out(&output);
    let own = told.lines().skip_while(|line| line.split_whitespace().next() != Some(check));
    own.take(2).collect::<Vec<_>>().concat()
}

/// Whether this machine has what the test would pretend.
fn is_real(directory: &Path, check: &str) -> bool {
    !doctor(directory, check).contains("missing")
}

#[test]
#[ignore = "needs a machine without NVIDIA's driver, whose library it pretends"]
fn the_drivers_library_stands_for_its_tool_and_tells_more() {
    let directory = tempfile::tempdir().unwrap();
    assert!(!is_real(directory.path(), "nvml"));
    tool(directory.path());
    let looks = |more: &[&str], lang| {
        let arguments = [&["top", "--count", "2", "--every", "0.1"], more].concat();
        let output = strato(directory.path(), &arguments, lang);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        out(&output)
    };
    assert!(looks(&[], "C.UTF-8").contains("NVIDIA By Tool  utilisation"), "without the library the tool is asked");
    let absent = looks(&["--tools", "nvml"], "C.UTF-8");
    assert!(absent.contains("no NVML: ") && absent.contains("libnvidia-ml.so.1"), "{absent}");
    assert!(looks(&["--tools", "nvml"], "zh_CN.UTF-8").contains("没有 NVML："));
    library(directory.path(), "NVIDIA Pretended 1");
    let both = looks(&[], "C.UTF-8");
    for said in [
        "nvml  0  NVIDIA Pretended 1  utilisation          87.0 %",
        "power                312.5 W",
        "energy               1\u{202f}040.0 J",
        "memory in use        9.0 GiB",
        "memory bandwidth     63.5 %",
        "throttled: power     1",
        "PCIe received        2.9 MiB/s",
        "PCIe replays         – the driver is too old for it",
    ] {
        assert!(both.contains(said), "{said} in\n{both}");
    }
    assert!(!both.contains("By Tool"), "{both}");
    let zh = looks(&[], "zh_CN.UTF-8");
    assert!(zh.contains("驱动版本过旧") && zh.contains("设备不支持") && zh.contains("降频：过热"), "{zh}");
    let asked = looks(&["--tools", "nvidia-smi"], "C.UTF-8");
    assert!(asked.contains("By Tool") && !asked.contains("Pretended"), "{asked}");
}

#[test]
fn doctor_says_what_tells_of_devices_and_what_brings_it() {
    let directory = tempfile::tempdir().unwrap();
    for (check, said) in [("nvml", "libnvidia-ml.so.1"), ("cupti", "pip install nvidia-cuda-cupti")] {
        if !is_real(directory.path(), check) {
            let line = doctor(directory.path(), check);
            assert!(line.contains("missing") && line.contains(said), "{line}");
        }
    }
    library(directory.path(), "NVIDIA Pretended 1");
    let there = doctor(directory.path(), "nvml");
    assert!(there.contains("driver 580.65.06, NVML 13.580.65.06; nvml  0  NVIDIA Pretended 1"), "{there}");
}

/// Rows of a query, as the one number of each.
fn numbers(directory: &Path, file: &str, query: &str) -> Vec<i64> {
    let output = strato(directory, &["sql", file, query, "--csv"], "C.UTF-8");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    out(&output).lines().skip(1).map(|line| line.trim().parse().unwrap()).collect()
}

fn text(directory: &Path, file: &str, key: &str) -> String {
    let query = format!("SELECT value FROM manifest WHERE key = '{key}'");
    let output = strato(directory, &["sql", file, &query, "--csv"], "C.UTF-8");
    out(&output).lines().nth(1).unwrap_or_default().trim_matches('"').to_owned()
}

const TINY: [&str; 5] = ["run", "--model", "tiny", "--plain", "--quiet"];

#[test]
fn a_run_records_what_its_observer_sees() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    for (observer, mode) in [("off", "eager"), ("host", "eager"), ("host", "graph"), ("device", "graph")] {
        let file = format!("{observer}-{mode}.strato");
        let more = ["--gen", "6", "--observer", observer, "--mode", mode, "-o", &file];
        let output = strato(directory, &[&TINY[..], &more].concat(), "C.UTF-8");
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        let count = |query: &str| numbers(directory, &file, query)[0];
        let (seen, at) = (observer, format!("{observer} {mode}"));
        assert_eq!(count("SELECT count(*) FROM slice WHERE category = 18"), 6, "{at}: every step");
        assert_eq!(count("SELECT count(*) FROM kernels") > 0, seen == "device", "{at}");
        assert_eq!(count("SELECT count(*) FROM slice WHERE category = 16") > 0, seen != "off", "{at}: calls");
        let sampled =
            "SELECT count(*) FROM counter_track t JOIN string s ON s.id = t.name_id WHERE s.value = 'memory_resident'";
        assert_eq!(count(sampled) > 0, seen != "off", "{at}");
        assert_eq!(text(directory, &file, "measurement.observer"), observer);
    }
    assert_eq!(text(directory, "off-eager.strato", "measurement.traced"), "steps only, by the engine itself");
    assert_eq!(text(directory, "device-graph.strato", "measurement.traced"), "by the engine itself");
    // What nobody saw is not taken for idle time of the device.
    let output = strato(directory, &["diagnose", "host-eager.strato"], "C.UTF-8");
    assert!([Some(0), Some(3)].contains(&output.status.code()), "{}", err(&output));
    assert!(!out(&output).contains("100.0 % of it in the runtime layer"), "{}", out(&output));
}

#[test]
fn what_records_cuda_is_refused_where_there_is_none() {
    let directory = tempfile::tempdir().unwrap();
    for observer in ["graph", "node"] {
        let output = strato(directory.path(), &[&TINY[..], &["--observer", observer]].concat(), "C.UTF-8");
        let said = err(&output);
        assert_eq!(output.status.code(), Some(4), "{said}");
        assert!(said.contains("no cpu run on this machine: CUPTI records CUDA devices only"), "{said}");
        assert!(said.contains("--observer off, host or device"), "{said}");
    }
}

#[test]
#[ignore = "needs an OpenCL device, such as that of PoCL"]
fn the_device_of_a_run_is_sampled_where_a_library_tells_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let run = |file: &str| {
        let more = ["--backend", "opencl", "--gen", "40", "-o", file];
        strato(directory, &[&TINY[..], &more].concat(), "C.UTF-8")
    };
    let output = run("first.strato");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let power = |file: &str| {
        let query = "SELECT count(*) FROM counter_track t JOIN string s ON s.id = t.name_id WHERE s.value = 'power'";
        numbers(directory, file, query)[0]
    };
    assert_eq!(power("first.strato"), 0);
    library(directory, &text(directory, "first.strato", "hardware.device"));
    assert_eq!(run("second.strato").status.code(), Some(0));
    assert_eq!(power("second.strato"), 1);
}
