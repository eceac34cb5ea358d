//! What stands where the program writes: links and pipes, places that take no file, and what killed runs left there.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, symlink},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::common::{printed, samples, strato};

const RANKS: &[&str] =
    &["run", "--plain", "--model", "tiny", "--threads", "1", "--prompt-len", "4", "--tp", "2", "--ranks", "processes"];

/// Names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let names = directory.read_dir().unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.collect()
}

#[test]
fn l1_logits_replace_no_pipe_and_follow_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    assert!(Command::new("mkfifo").arg(here.join("pipe")).status().unwrap().success());
    symlink("file.npy", here.join("link")).unwrap();
    fs::write(here.join("file.npy"), "old").unwrap();
    let to = |name: &str| {
        let asked = ["run", "--plain", "--model", "tiny", "--gen", "2", "--logits", name, "-o", "a.strato"];
        let output = strato(&asked, here);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, told) = to("pipe");
    assert!(code == Some(2) && told.contains("'pipe'") && told.contains("a regular file"), "{code:?} {told}");
    assert!(here.join("pipe").symlink_metadata().unwrap().file_type().is_fifo());
    assert_eq!(to("link").0, Some(0));
    assert!(here.join("link").symlink_metadata().unwrap().is_symlink());
    assert!(fs::read(here.join("file.npy")).unwrap().starts_with(b"\x93NUMPY"));
}

#[test]
fn l6_an_edit_through_a_link_reaches_the_capture() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let sample = samples().join("launch-bound-eager.json.gz").display().to_string();
    symlink("a.strato", here.join("latest.strato")).unwrap();
    printed(&["import", &sample, "-o", "a.strato"], here);
    printed(&["import", &sample, "-o", "latest.strato"], here);
    fs::write(here.join("mine.toml"), "[both]\n\"model.name\" = \"mine\"\n").unwrap();
    printed(&["manifest", "edit", "latest.strato", "--declare", "mine.toml"], here);
    assert!(here.join("latest.strato").symlink_metadata().unwrap().is_symlink());
    let shown = printed(&["manifest", "show", "a.strato"], here);
    assert!(shown.contains("mine"), "{shown}");
}

#[test]
fn l9_ranks_need_no_directory_of_temporary_files() {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_strato"))
        .args(RANKS)
        .args(["--gen", "3", "-o", "a.strato"])
        .current_dir(directory.path())
        .env("TMPDIR", directory.path().join("none"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(names(directory.path()), ["a.strato"]);
}

#[test]
fn l7_what_a_killed_run_left_goes_with_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let temporary = directory.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let run = |gen_: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strato"));
        command.args(RANKS).args(["--gen", gen_, "-o", "a.strato"]).current_dir(directory.path());
        command.env("TMPDIR", &temporary).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let mut killed = run("2000000");
    let began = Instant::now();
    while names(&temporary).iter().all(|name| !temporary.join(name).join("held").exists()) {
        assert!(began.elapsed() < Duration::from_secs(60), "the run makes no directory");
        std::thread::sleep(Duration::from_millis(5));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(names(&temporary).len(), 1, "nobody removes what it used");
    assert!(run("3").wait().unwrap().success());
    assert_eq!(names(&temporary), [""; 0]);
}
