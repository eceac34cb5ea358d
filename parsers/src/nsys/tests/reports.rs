//! Reports, with an `nsys` of our own.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;

use super::{super::report, *};
use crate::{Head, Match};

/// Reads a report with a shell script in place of `nsys`; `$5` is the export it is asked for, `$8` the report.
fn read_with(script: &str) -> (Result<Trace, ReadError>, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let nsys = directory.path().join("nsys");
    // Written and closed by another process, so that no other test's child holds the script open for writing.
    let body = format!("#!/bin/sh\n{script}\n");
    std::process::Command::new("cp").arg(write(&directory, "source", &body)).arg(&nsys).status().unwrap();
    std::fs::set_permissions(&nsys, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = write(&directory, "a.nsys-rep", "NVIDIA Tegra Profiler Report 1.\n");
    let mut builder = TraceBuilder::new("report", "nsys-rep");
    let result = report::read(&nsys, &path, &mut builder, &crate::ReadOptions::default()).map(|()| builder.finish());
    (result, directory)
}

fn write(directory: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_report_is_exported_and_the_export_removed() {
    let export = Export::new(&format!(
        "{} {RUNTIME} INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 0, {TID}, 1, 1, 0, NULL);",
        strings(&["cudaFree"])
    ));
    let place = tempfile::NamedTempFile::new().unwrap();
    let script = format!(
        "[ \"$1 $2 $3 $4 $6 $7\" = 'export -t sqlite -o --force-overwrite true' ] || exit 9\n[ -f \"$8\" ] || exit 8\n\
         cp '{}' \"$5\" && printf %s \"$5\" > '{}'",
        export.path().display(),
        place.path().display()
    );
    let (trace, _directory) = read_with(&script);
    assert_eq!(rows(&trace.unwrap(), TrackKind::HostThread), expected(&[("cudaFree", 1, 1, Category::HostApi)]));
    let made = std::fs::read_to_string(place.path()).unwrap();
    assert!(!made.is_empty() && !Path::new(&made).exists());
}

#[test]
fn a_tool_that_fails_or_writes_nothing_is_quoted() {
    for (script, said) in
        [("echo 'unsupported version' >&2; exit 1", "unsupported version"), ("exit 0", "exit status: 0")]
    {
        match read_with(script).0 {
            Err(ReadError::Malformed { expected, .. }) => assert!(expected.contains(said), "{expected}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn without_the_tool_the_command_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(&directory, "it's.nsys-rep", "NVIDIA Tegra Profiler Report 1.\n");
    let mut builder = TraceBuilder::new("report", "nsys-rep");
    match report::read(&directory.path().join("no nsys"), &path, &mut builder, &crate::ReadOptions::default()) {
        Err(ReadError::MissingTool { command, .. }) => {
            assert!(command.starts_with("nsys export -t sqlite -o '"), "{command}");
            assert!(command.ends_with("it'\\''s.nsys-rep'"), "{command}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_report_is_known_by_its_first_bytes() {
    let matches = |bytes: &[u8]| (super::super::REPORT_FORMAT.matches)(&Head::new(Path::new("x"), bytes));
    assert_eq!(matches(b"NVIDIA Tegra Profiler Report 1.\n\x0b"), Match::Named);
    assert_eq!(matches(b"NVIDIA"), Match::No);
}
