//! `strato record` around profilers that are scripts: what they are asked for, what becomes of their output, of the command's
//! streams and end, and of everything that can go wrong between.

mod signals;

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use model::{Severity, Trace};
use rustix::process::{Pid, Signal, kill_process};

/// Runs the command in it, keeps its flags, and gives the simulated export when it is asked to export its report.
const NSYS: &str = r#"
if [ "$1" = export ]; then cp "$FIXTURE" "$5"; exit; fi
echo "$*" >> "$FAKES/asked"
for word in "$@"; do case "$word" in --output=*) report="${word#--output=}.nsys-rep";; esac; done
while [ $# -gt 0 ]; do case "$1" in */strato) break;; esac; shift; done
"$@"
code=$?
[ -z "$SILENT" ] && printf 'NVIDIA Tegra Profiler Report' > "$report"
exit ${ENDS:-$code}
"#;

/// Writes one kernel that ran while the command did, by the time since the machine was started.
const ROCPROFV3: &str = r#"
echo "$*" >> "$FAKES/asked"
for word in "$@"; do case "$word" in --output-directory=*) out="${word#--output-directory=}";; esac; done
while [ "$1" != -- ]; do shift; done
shift
boot() { awk '{ printf "%.0f", $1 * 1e9 }' /proc/uptime; }
start=$(boot)
"$@"
code=$?
end=$(boot)
mkdir -p "$out/host"
{
echo '"Node_Id","Logical_Node_Id","Agent_Type","Cu_Count","Name","Vendor_Name","Product_Name","Model_Name","Logical_Node_Type_Id"'
echo '0,0,"CPU",0,"AMD EPYC","CPU","AMD EPYC","",0'
echo '2,1,"GPU",304,"gfx942","AMD","AMD Instinct MI300X","aqua",0'
} > "$out/host/77_agent_info.csv"
{
echo '"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"'
echo "\"KERNEL_DISPATCH\",\"Agent 1\",\"2\",\"2\",\"77\",\"1\",\"3\",\"gemm\",\"5\",\"$start\",\"$end\",\"256\",\"1\",\"1\",\"256\",\"1\",\"1\""
} > "$out/host/77_kernel_trace.csv"
exit $code
"#;

/// As `npu-smi info` prints it, of one card.
const NPU_SMI: &str = "cat <<'TABLE'
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc3.3               Version: 24.1.rc3.3                                           |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 3     Ascend910           | OK            | 182.0       36                0    / 0             |
| 0     6                   | 0000:9D:00.0  | 7           0    / 0          57895/ 65536         |
+------------------------------------------------------------------------------------------------+
TABLE";

/// A directory with these programs in `bin`.
fn fakes(scripts: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let bin = directory.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for (name, script) in scripts {
        let file = bin.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    directory
}

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-traces/sync-per-layer.sqlite");
    let mut command = Command::new(env!("CARGO_BIN_EXE_strato"));
    command.arg("record").args(arguments).current_dir(directory).env_clear();
    command.env("PATH", format!("{}:/usr/bin:/bin", directory.join("bin").display()));
    command.env("LANG", "C.UTF-8").env("FAKES", directory).env("FIXTURE", fixture);
    command
}

fn record(directory: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    command(directory, arguments).envs(variables.iter().copied()).output().unwrap()
}

fn texts(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn capture(directory: &Path) -> Trace {
    store::load(&directory.join("run.strato")).unwrap().remove(0)
}

/// Directories that a recording has left behind.
fn left(directory: &Path) -> Vec<PathBuf> {
    let entries = directory.read_dir().unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(".strato-record-")).collect()
}

#[test]
fn the_command_has_its_streams_and_gives_its_exit_code_and_a_capture_is_left() {
    let directory = fakes(&[("nsys", NSYS)]);
    let script = "read line; echo \"got $line\"; echo oops >&2; exit 7";
    let mut child = command(directory.path(), &["-o", "run.strato", "--tools", "none", "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let (code, out, error) = texts(&child.wait_with_output().unwrap());
    assert_eq!((code, out.as_str()), (Some(7), "got hello\n"), "{error}");
    assert!(error.contains("oops") && error.contains("the command ended with exit code 7"), "{error}");
    // What is run is said before it runs.
    let shown = error.lines().next().unwrap();
    assert!(shown.contains("nsys profile --trace=cuda,nvtx,osrt --sample=none"), "{shown}");
    assert!(shown.contains("--cuda-graph-trace=node") && shown.contains("-- sh -c 'read line"), "{shown}");
    let trace = capture(directory.path());
    assert_eq!(trace.format, "nsys-rep");
    assert!(trace.slice_count() > 100 && trace.manifest.value("record.ended") == Some("exit code 7"));
    assert!(trace.manifest.value("record.command").is_some_and(|line| line.contains("--cpuctxsw=none")));
    assert_eq!(left(directory.path()), Vec::<PathBuf>::new());
}

#[test]
fn the_command_ends_as_it_does_whatever_the_profiler_makes_of_it() {
    let directory = fakes(&[("nsys", NSYS)]);
    for (script, ends, expected) in [("exit 5", "0", 5), ("exit 0", "1", 0), ("kill -TERM $$", "1", 143)] {
        let arguments = ["-o", "run.strato", "--tools", "none", "--", "sh", "-c", script];
        let (code, _, error) = texts(&record(directory.path(), &arguments, &[("ENDS", ends)]));
        assert_eq!(code, Some(expected), "{script}: {error}");
        assert!(capture(directory.path()).slice_count() > 100, "{script}");
    }
}

#[test]
fn options_become_flags_of_their_profiler_and_of_no_other() {
    let directory = fakes(&[("nsys", NSYS), ("rocprofv3", ROCPROFV3)]);
    let asked = |arguments: &[&str]| {
        let _ = std::fs::remove_file(directory.path().join("asked"));
        let all = [&["-o", "run.strato", "--tools", "none", "-q"], arguments, &["--", "true"]].concat();
        let (code, _, error) = texts(&record(directory.path(), &all, &[]));
        assert_eq!(code, Some(0), "{error}");
        assert_eq!(error, "");
        std::fs::read_to_string(directory.path().join("asked")).unwrap()
    };
    let nsys = asked(&["--cuda-graph-trace", "graph", "--flag=--delay=3"]);
    assert!(nsys.contains("--cuda-graph-trace=graph --delay=3") && !nsys.contains("=node"), "{nsys}");
    let rocprofv3 = asked(&["--profiler", "rocprofv3", "--sys-trace"]);
    assert!(rocprofv3.contains("--kernel-trace --hip-trace --memory-copy-trace"), "{rocprofv3}");
    assert!(rocprofv3.contains("--sys-trace -- /"), "{rocprofv3}");
    for (arguments, said) in [
        (&["--task-time", "l0"][..], "--task-time=l0 is for msprof, and nsys is to run"),
        (&["--profiler", "rocprofv3", "--cuda-graph-trace", "node"], "is for nsys, and rocprofv3 is to run"),
    ] {
        let all = [&["-o", "run.strato"], arguments, &["--", "true"]].concat();
        let (code, _, error) = texts(&record(directory.path(), &all, &[]));
        assert!(code == Some(2) && error.contains(said), "{error}");
    }
}

#[test]
fn counters_of_the_machine_and_of_its_devices_lie_where_the_kernels_do() {
    let directory = fakes(&[("rocprofv3", ROCPROFV3), ("npu-smi", NPU_SMI)]);
    let arguments = ["-o", "run.strato", "--", "sleep", "2"];
    let (code, _, error) = texts(&record(directory.path(), &arguments, &[]));
    assert_eq!(code, Some(0), "{error}");
    let trace = capture(directory.path());
    assert!(trace.start_unix_ns.is_some(), "the profiler's clock is put on the wall clock");
    let window = trace.window.unwrap();
    let counter = |name: &str| {
        let found = trace.counters.iter().find(|counter| trace.strings.get(counter.name) == name);
        found.unwrap_or_else(|| panic!("{name} is not there"))
    };
    let (busy, power) = (counter("cpu_busy"), counter("power"));
    // The kernel ran as long as the command; a machine that is busy takes its time to start and to end both.
    let inside = busy.t.iter().filter(|t| (window.start..window.end).contains(t)).count();
    assert!(inside >= 3, "{:?} in {window:?}", busy.t);
    let near = window.start - 60_000_000_000..window.end + 60_000_000_000;
    assert!(busy.t.iter().chain(&power.t).all(|t| near.contains(t)), "{:?} in {window:?}", busy.t);
    assert_eq!((power.unit.as_str(), power.value[0]), ("W", 182.0));
    assert_eq!(busy.device, None, "the processors are not the device of this capture");
    // The profiler numbers its one device together with the processors, the tool without them.
    let queue = trace.tracks.iter().find(|track| track.key.device.is_some()).unwrap().key;
    assert_eq!((power.process, power.device), (queue.process, queue.device));
    assert!(trace.manifest.value("measurement.sampler").is_some_and(|said| said.contains("npu-smi every 2.0 s")));
    // A device that the command may not use is none of the run's.
    let hidden = [("ASCEND_RT_VISIBLE_DEVICES", "4")];
    let (code, _, error) = texts(&record(directory.path(), &arguments, &hidden));
    assert_eq!(code, Some(0), "{error}");
    let trace = capture(directory.path());
    assert!(trace.counters.iter().all(|counter| trace.strings.get(counter.name) != "power"));
    let stat = trace.stats.iter().find(|stat| stat.name == "telemetry.npu-smi_unavailable").unwrap();
    assert_eq!(stat.severity, Severity::Info);
    assert!(stat.example.as_ref().is_some_and(|why| why.contains("none of them the run's")), "{stat:?}");
}

/// Starts a recording of a command that says when it runs, sends a signal to `strato` alone, and gives what came of it.
fn interrupted(directory: &Path, signal: &str, script: &str) -> (Option<i32>, String, String) {
    let mut child: Child = command(directory, &["-o", "run.strato", "--tools", "none", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(60), "the recording goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut out, &mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), rest, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_signal_goes_to_the_command_and_what_was_recorded_is_imported() {
    let directory = fakes(&[("nsys", NSYS)]);
    let script = "trap 'echo stopped; exit 3' INT TERM; echo ready; while :; do sleep 0.1; done";
    for signal in ["-INT", "-TERM"] {
        let _ = std::fs::remove_file(directory.path().join("run.strato"));
        let (code, rest, error) = interrupted(directory.path(), signal, script);
        assert_eq!((code, rest.as_str()), (Some(3), "stopped\n"), "{signal}: {error}");
        assert!(error.contains("waiting for the command and the profiler to end"), "{error}");
        assert!(capture(directory.path()).slice_count() > 100, "{signal}");
    }
}

#[test]
fn a_signal_ends_a_profiler_that_hangs_before_or_after_the_command() {
    let after = NSYS.replace("code=$?", "code=$?\necho ready; exec sleep 1000");
    for (nsys, expected) in [("echo ready; exec sleep 1000", 4), (after.as_str(), 3)] {
        let directory = fakes(&[("nsys", nsys)]);
        let (code, _, error) = interrupted(directory.path(), "-TERM", "true");
        assert_eq!(code, Some(expected), "{error}");
        assert!(error.contains("nsys ended with signal 15"), "{error}");
    }
}

/// The directory is the first thing that is made.
#[test]
fn a_signal_in_the_first_moment_leaves_nothing() {
    let directory = fakes(&[("nsys", "exec sleep 1000")]);
    for _ in 0..5 {
        let mut child = command(directory.path(), &["-o", "run.strato", "--tools", "none", "--", "true"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let began = Instant::now();
        while left(directory.path()).is_empty() {
            assert!(began.elapsed() < Duration::from_secs(60), "nothing was begun");
        }
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        while child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < Duration::from_secs(60), "the recording goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(left(directory.path()).is_empty());
    }
}

#[test]
fn without_a_profiler_or_a_command_it_says_what_brings_one_and_starts_nothing() {
    let directory = fakes(&[]);
    let (code, _, error) = texts(&record(directory.path(), &["-o", "run.strato", "--", "true"], &[]));
    assert_eq!(code, Some(4), "{error}");
    for said in ["nsys, msprof, rocprofv3", "Nsight Systems", "CANN toolkit", "rocprofiler-sdk"] {
        assert!(error.contains(said), "{said} in {error}");
    }
    let named = ["-o", "run.strato", "--profiler", "msprof", "--", "true"];
    let (code, _, error) = texts(&record(directory.path(), &named, &[]));
    assert!(code == Some(4) && error.contains("msprof is not in PATH") && error.contains("set_env.sh"), "{error}");
    let directory = fakes(&[("nsys", NSYS)]);
    let (code, _, error) = texts(&record(directory.path(), &["-o", "run.strato", "--", "no-such-program"], &[]));
    assert!(code == Some(2) && error.contains("no program 'no-such-program' in PATH"), "{error}");
    assert!(!directory.path().join("asked").exists());
    let (code, _, error) = texts(&record(directory.path(), &["-o", "none/run.strato", "--", "true"], &[]));
    assert!(code == Some(2) && error.contains("there is no directory 'none'"), "{error}");
}

#[test]
fn a_profiler_that_crashes_is_told_and_what_it_wrote_is_imported() {
    // Before the command.
    let directory = fakes(&[("nsys", "echo 'cannot connect' >&2; exit 9")]);
    let arguments = ["-o", "run.strato", "--tools", "none", "--", "sh", "-c", "echo never"];
    let (code, out, error) = texts(&record(directory.path(), &arguments, &[]));
    assert_eq!((code, out.as_str()), (Some(4), ""), "{error}");
    assert!(error.contains("cannot connect") && error.contains("exit code 9 before it started the command"), "{error}");
    assert!(!directory.path().join("run.strato").exists());
    // While the command runs: it is waited for.
    let crash = NSYS.replace(
        "\"$@\"\ncode=$?",
        "\"$@\" & printf 'NVIDIA Tegra Profiler Report' > \"$report\"; while [ ! -e \"$FAKES/begun\" ]; do sleep 0.05; done; kill -SEGV $$",
    );
    let directory = fakes(&[("nsys", &crash)]);
    let arguments =
        ["-o", "run.strato", "--tools", "none", "--", "sh", "-c", "touch \"$FAKES/begun\"; sleep 1; echo done; exit 4"];
    let (code, out, error) = texts(&record(directory.path(), &arguments, &[]));
    assert_eq!((code, out.as_str()), (Some(4), "done\n"), "{error}");
    assert!(error.contains("nsys has ended with signal 11, and the command runs on"), "{error}");
    assert!(capture(directory.path()).slice_count() > 100);
    // After it, with nothing written.
    let directory = fakes(&[("nsys", NSYS)]);
    let arguments = ["-o", "run.strato", "--tools", "none", "--", "true"];
    let (code, _, error) = texts(&record(directory.path(), &arguments, &[("SILENT", "1"), ("ENDS", "11")]));
    assert!(code == Some(3) && error.contains("nsys ended with exit code 11 and wrote nothing"), "{error}");
}

#[test]
fn a_profiler_that_writes_nothing_is_told() {
    let directory = fakes(&[("nsys", NSYS)]);
    let arguments = ["-o", "run.strato", "--tools", "none", "--", "true"];
    let (code, _, error) = texts(&record(directory.path(), &arguments, &[("SILENT", "1")]));
    assert_eq!(code, Some(3), "{error}");
    assert!(error.contains("wrote nothing") && error.contains("does the command use a device"), "{error}");
    assert!(!directory.path().join("run.strato").exists());
    assert_eq!(left(directory.path()), Vec::<PathBuf>::new(), "there is nothing to keep");
    // A command that failed is the answer, whatever became of the capture.
    let failed = ["-o", "run.strato", "--tools", "none", "--", "sh", "-c", "exit 6"];
    let (code, _, error) = texts(&record(directory.path(), &failed, &[("SILENT", "1")]));
    assert!(code == Some(6) && error.contains("wrote nothing"), "{error}");
}

#[test]
fn output_that_cannot_be_read_is_kept_and_named() {
    let broken = NSYS.replace("cp \"$FIXTURE\" \"$5\"; exit", "echo 'the report is of a newer version' >&2; exit 1");
    let directory = fakes(&[("nsys", &broken)]);
    let arguments = ["-o", "run.strato", "--tools", "none", "--", "true"];
    let (code, _, error) = texts(&record(directory.path(), &arguments, &[]));
    assert_eq!(code, Some(3), "{error}");
    assert!(error.contains("the report is of a newer version") && error.contains("strato import"), "{error}");
    let [kept] = left(directory.path()).try_into().unwrap();
    assert!(kept.join("reports/report.nsys-rep").is_file() && error.contains(&*kept.to_string_lossy()), "{error}");
    // What is to stay anyway is where it was asked for.
    let arguments = ["-o", "run.strato", "--tools", "none", "--keep", "raw", "--", "true"];
    let (code, _, error) = texts(&record(directory.path(), &arguments, &[]));
    assert!(code == Some(3) && directory.path().join("raw/report.nsys-rep").is_file(), "{error}");
    assert_eq!(left(directory.path()), [kept]);
    let (code, _, error) = texts(&record(directory.path(), &arguments, &[]));
    assert!(code == Some(2) && error.contains("'raw' has content already"), "{error}");
}

/// On a small file system of its own, which only a machine that lets the test mount one has.
#[test]
#[ignore = "needs leave to mount a file system in a namespace of its own"]
fn a_full_disk_is_told_as_what_it_is() {
    let fills = NSYS.replace(
        "printf 'NVIDIA Tegra Profiler Report' > \"$report\"",
        "head -c 8000000 /dev/zero > \"$report\" || exit 28",
    );
    let directory = fakes(&[("nsys", &fills)]);
    let small = directory.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let inner = "mount -t tmpfs -o size=4m none small && exec \"$0\" record -o small/run.strato --tools none -- true";
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-traces/sync-per-layer.sqlite");
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", inner, env!("CARGO_BIN_EXE_strato")])
        .current_dir(directory.path())
        .env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", directory.path().join("bin").display()))
        .env("FAKES", directory.path())
        .env("FIXTURE", fixture)
        .env("LANG", "C.UTF-8")
        .output();
    let (code, _, error) = texts(&output.expect("'unshare', which is a part of util-linux"));
    assert!(!error.contains("unshare:") && !error.contains("mount:"), "this machine lets nobody mount: {error}");
    assert_eq!(code, Some(3), "{error}");
    assert!(error.contains("is full (") && error.contains("choose -o on another disk"), "{error}");
}
