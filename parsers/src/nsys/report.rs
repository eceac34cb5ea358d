//! The report that `nsys profile` writes. Its content is undocumented and changes with every version; only `nsys` can read
//! it, so `nsys export` makes an SQLite export of it and that is read.

use std::{
    fs::File,
    io::{ErrorKind, Read, Seek, SeekFrom},
    path::Path,
    process::Command,
};

use model::TraceSink;

use crate::{Format, Head, Match, Place, ReadError, ReadOptions, sqlite::NSYS_REPORT};

/// A report of Nsight Systems.
pub const REPORT_FORMAT: Format = Format {
    id: "nsys-rep",
    name: "Nsight Systems report",
    matches: |head: &Head<'_>| if head.bytes.starts_with(NSYS_REPORT) { Match::Named } else { Match::No },
    read: |path, sink, options| read(Path::new("nsys"), path, sink, options),
    // The export that was made of the report already.
    lead: |path| Some(path.with_extension("sqlite")).filter(|export| export.is_file()),
};

/// Reads a report with this `nsys`.
pub(super) fn read(
    nsys: &Path,
    path: &Path,
    sink: &mut dyn TraceSink,
    options: &ReadOptions<'_>,
) -> Result<(), ReadError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| ReadError::Io { path, source }
    };
    // A relative path that begins with a dash would be taken for an option.
    let report = std::path::absolute(path).map_err(io(path))?;
    input::open(&report).map_err(io(path))?;
    let directory = tempfile::tempdir().map_err(io(&std::env::temp_dir()))?;
    let export = directory.path().join("export.sqlite");
    let log = directory.path().join("nsys.log");
    let output = File::create(&log).map_err(io(&log))?;
    let errors = output.try_clone().map_err(io(&log))?;
    let mut command = Command::new(nsys);
    command.args(["export", "-t", "sqlite", "-o"]).arg(&export).args(["--force-overwrite", "true"]).arg(&report);
    let status = command.stdin(std::process::Stdio::null()).stdout(output).stderr(errors).status();
    let status = status.map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::PermissionDenied => ReadError::MissingTool {
            path: path.to_owned(),
            tool: "nsys".to_owned(),
            command: format!("nsys export -t sqlite -o {} {}", shown(&path.with_extension("sqlite")), shown(path)),
        },
        _ => ReadError::Io { path: nsys.to_owned(), source: error },
    })?;
    if !status.success() || !export.is_file() {
        let said = last_line(&log).unwrap_or_else(|| status.to_string());
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: format!("a report that the 'nsys' on this machine can export (it said: {said})"),
            next: "export it to SQLite with the version of Nsight Systems that wrote it, or a newer one".to_owned(),
        });
    }
    (super::FORMAT.read)(&export, sink, options)
}

/// A path as a shell takes it.
fn shown(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// The last line that `nsys` said, of the last 4 KiB.
fn last_line(log: &Path) -> Option<String> {
    let mut file = input::open(log).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(4096))).ok()?;
    let mut text = Vec::new();
    file.take(4096).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}
