//! `strato top` with device tools that are scripts: what they print is shown, and one that is absent, fails or hangs says so.

use std::{os::unix::fs::PermissionsExt, path::Path, process::Command};

/// As `npu-smi info` prints it.
const NPU: &str = "cat <<'TABLE'
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

fn tools(directory: &Path, scripts: &[(&str, &str)]) {
    for (name, script) in scripts {
        let file = directory.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// What `strato top` prints in one look, where these tools stand before the system's own.
fn top(directory: &Path, arguments: &[&str], lang: &str) -> (Option<i32>, String, String) {
    let path = format!("{}:/usr/bin:/bin", directory.display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_strato"));
    command.args(["top", "--count", "1"]).args(arguments).env_clear().env("PATH", path).env("LANG", lang);
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_tool_that_is_there_is_asked_and_others_are_not_spoken_of() {
    let directory = tempfile::tempdir().unwrap();
    tools(directory.path(), &[("npu-smi", NPU)]);
    let (code, out, error) = top(directory.path(), &[], "C.UTF-8");
    assert_eq!(code, Some(0), "{error}");
    for said in ["npu-smi  3.0  Ascend910  power", "182.0 W", "7.0 %", "56.5 GiB", "npu-smi  tool answered in"] {
        assert!(out.contains(said), "{said} in\n{out}");
    }
    assert!(!out.contains("rocm-smi") && !out.contains("cnmon"), "{out}");
    let (_, none, _) = top(directory.path(), &["--tools", "none"], "C.UTF-8");
    assert!(!none.contains("npu-smi"), "{none}");
}

#[test]
fn a_tool_that_was_asked_for_and_tells_nothing_says_why_in_both_languages() {
    let directory = tempfile::tempdir().unwrap();
    tools(directory.path(), &[("cnmon", "echo 'no driver'; exit 3"), ("mx-smi", "echo hello")]);
    let asked = ["--tools", "hy-smi,cnmon,mx-smi"];
    let (code, out, _) = top(directory.path(), &asked, "C.UTF-8");
    assert_eq!(code, Some(0));
    for said in [
        "hy-smi is not in PATH",
        "cnmon ended with exit status: 3: no driver",
        "mx-smi printed no device that is understood",
    ] {
        assert!(out.contains(said), "{said} in\n{out}");
    }
    let (_, out, _) = top(directory.path(), &asked, "zh_CN.UTF-8");
    for said in ["PATH 中没有 hy-smi", "cnmon 以退出码 3 结束：no driver", "mx-smi 的输出中没有可识别的设备"]
    {
        assert!(out.contains(said), "{said} in\n{out}");
    }
    let (code, _, error) = top(directory.path(), &["--tools", "fast-smi"], "C.UTF-8");
    assert!(code == Some(2) && error.contains("'fast-smi'") && error.contains("npu-smi"), "{error}");
}

#[test]
fn what_a_tool_prints_does_not_act_on_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let hostile = NPU.replace("Ascend910           ", "Asc\u{1b}[2J\u{202e}910  ");
    tools(directory.path(), &[("npu-smi", &hostile)]);
    let (_, out, _) = top(directory.path(), &[], "C.UTF-8");
    assert!(out.contains("182.0 W") && !out.contains(['\u{1b}', '\u{202e}']), "{out}");
}

/// A tool is in a process group of its own, so a signal at the terminal does not reach it.
#[test]
fn a_tool_that_hangs_does_not_outlive_the_lines() {
    let directory = tempfile::tempdir().unwrap();
    let [told, tool] = ["pid", "npu-smi"].map(|name| directory.path().join(name));
    tools(directory.path(), &[("npu-smi", &format!("echo $$ > '{}'; exec sleep 600", told.display()))]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_strato"));
    command.args(["top", "--tools", "npu-smi"]).env_clear();
    command.env("PATH", format!("{}:/usr/bin:/bin", tool.parent().unwrap().display()));
    let mut program = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let pid = loop {
        match std::fs::read_to_string(&told).ok().and_then(|text| text.trim().parse::<u32>().ok()) {
            Some(pid) => break pid,
            None => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    };
    let killed = Command::new("kill").args(["-INT", &program.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let status = program.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(2));
    let alive = Command::new("kill").args(["-0", &pid.to_string()]).stderr(std::process::Stdio::null()).status();
    assert!(!alive.unwrap().success(), "the tool goes on");
}
