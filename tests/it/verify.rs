//! Capture files that know themselves, as scripts see it: `strato verify`, and what other commands do with a damaged file.

use std::{path::Path, process::Command};

use serde_json::Value;

use crate::common::{printed, samples, strato};

const PAGE: usize = 16 * 1024;

/// A capture file of a bundled sample, diagnosed.
fn capture() -> (tempfile::TempDir, Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let sample = samples().join("launch-bound-eager.json.gz");
    printed(&["diagnose", "-q", sample.to_str().unwrap(), "--save", "a.strato"], directory.path());
    let bytes = std::fs::read(directory.path().join("a.strato")).unwrap();
    (directory, bytes)
}

fn told(arguments: &[&str], directory: &Path) -> (i32, String, String) {
    let output = strato(arguments, directory);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn verify_tells_sound_damaged_and_unsealed_files_apart() {
    let (directory, bytes) = capture();
    let here = directory.path();
    let (code, out, err) = told(&["verify", "a.strato"], here);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("a.strato: sound: ") && out.contains("captures: 1, slices: 4\u{202f}633"), "{out}");
    let (_, rows, _) =
        told(&["sql", "a.strato", "select max(pageno) as page from dbstat where name = 'slice'", "--csv"], here);
    let page: usize = rows.lines().nth(1).unwrap().parse().unwrap();
    let mut damaged = bytes.clone();
    damaged[(page - 1) * PAGE + 5000] ^= 1;
    std::fs::write(here.join("bad.strato"), &damaged).unwrap();
    let (code, out, _) = told(&["verify", "a.strato", "bad.strato"], here);
    assert_eq!(code, 3);
    assert!(out.contains("bad.strato: damaged\n  1 of ") && out.contains(&format!("page {page}\n")), "{out}");
    assert!(out.contains("table 'slice' is damaged") && out.contains("'strato sql'"), "{out}");
    let (_, out, _) = told(&["verify", "bad.strato", "--lang", "zh"], here);
    assert!(out.contains("已损坏"), "{out}");
    let (code, out, _) = told(&["verify", "bad.strato", "a.strato", "absent", "--json"], here);
    let files: Value = serde_json::from_str(&out).unwrap();
    let status = |i: usize| files[i]["status"].as_str().unwrap().to_owned();
    assert_eq!((code, status(0), status(1), status(2)), (3, "damaged".into(), "sound".into(), "unreadable".into()));
    assert_eq!(files[0]["damaged_tables"], serde_json::json!(["slice"]));
    // What reports read is whole.
    let report = |file: &str| told(&["diagnose", file, "--format", "json"], here);
    assert_eq!(report("bad.strato"), report("a.strato"));
    // As a program from before there were seals left it.
    let pages = u32::from_be_bytes(bytes[28..32].try_into().unwrap()) as usize;
    let mut old = bytes[..pages * PAGE].to_vec();
    old[60..64].copy_from_slice(&5u32.to_be_bytes());
    std::fs::write(here.join("old.strato"), &old).unwrap();
    let (code, out, _) = told(&["verify", "old.strato"], here);
    assert!(code == 1 && out.contains("not sealed: cannot be verified"), "{code} {out}");
    assert_eq!(report("old.strato"), report("a.strato"));
}

#[test]
fn a_damaged_capture_gives_the_same_answer_or_ends_with_three() {
    let (directory, bytes) = capture();
    let here = directory.path();
    let questions: [&[&str]; 2] = [
        &["diagnose", "a.strato", "--format", "json"],
        &["sql", "a.strato", "select count(*), sum(dur_ns), max(name) from kernels"],
    ];
    let expected = questions.map(|question| told(question, here));
    let mut refused = 0;
    let blocks = bytes.len() / 4096;
    for at in (0..blocks).step_by(11) {
        let mut damaged = bytes.clone();
        match at % 4 {
            0 => damaged[at * 4096..][..4096].fill(0),
            1 => damaged[at * 4096 + 777] ^= 16,
            2 => {
                let other = (at + 2 * blocks / 3) % blocks;
                damaged.copy_within(other * 4096..(other + 1) * 4096, at * 4096);
            }
            _ => damaged.truncate(at * 4096 + 1),
        }
        if damaged == bytes {
            continue;
        }
        std::fs::write(here.join("a.strato"), &damaged).unwrap();
        for (question, expected) in questions.iter().zip(&expected) {
            let answer = told(question, here);
            if answer.0 == 3 {
                assert!(answer.2.contains("a.strato") && answer.2.contains("; "), "{}", answer.2);
                refused += 1;
            } else {
                assert_eq!(&answer, expected, "block {at}");
            }
        }
        assert_eq!(told(&["verify", "a.strato"], here).0, 3, "block {at}");
    }
    assert!(refused > 5, "{refused}");
    assert_eq!(here.read_dir().unwrap().count(), 1);
}

#[test]
fn two_edits_at_once_both_count() {
    let (directory, _) = capture();
    let here = directory.path();
    let keys = ["model.name", "model.revision"];
    for key in keys {
        std::fs::write(here.join(key), format!("[both]\n\"{key}\" = \"x\"\n")).unwrap();
    }
    let edits = keys.map(|key| {
        let mut edit = Command::new(env!("CARGO_BIN_EXE_strato"));
        edit.args(["manifest", "edit", "a.strato", "--declare", key]).current_dir(here).spawn().unwrap()
    });
    assert!(edits.into_iter().all(|mut edit| edit.wait().unwrap().success()));
    let sql = "select count(*) from manifest where provenance = 'declared' and value = 'x'";
    assert_eq!(printed(&["sql", "a.strato", sql, "--csv"], here).lines().nth(1), Some("2"));
    assert_eq!(told(&["verify", "a.strato"], here).0, 0);
}

#[test]
fn sql_ends_what_takes_too_long_and_makes_no_file() {
    let (directory, _) = capture();
    let here = directory.path();
    let endless = "with recursive t(n) as (select 1 union all select n + 1 from t) select count(*) from t";
    let (code, _, err) = told(&["sql", "a.strato", endless, "--timeout", "0.2"], here);
    assert!(code == 2 && err.contains("not done after 200ms"), "{code} {err}");
    let (code, _, err) = told(&["sql", "a.strato", "vacuum into 'new'"], here);
    assert!(code == 2 && err.contains("read-only"), "{code} {err}");
    let (code, out, _) = told(&["sql", "a.strato", "select '=1+1' as a, -1 as b", "--csv", "--defuse"], here);
    assert_eq!((code, out.as_str()), (0, "a,b\n'=1+1,-1\n"));
    assert_eq!(here.read_dir().unwrap().count(), 1);
}
