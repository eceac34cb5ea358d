//! A directory: what of its files is read, and what is left out and told.

use std::path::{Path, PathBuf};

use model::{ImportStat, Severity, Trace};
use parsers::{Place, ReadError};

use super::{Importer, copies, stored};
use crate::Error;

/// Directories below each other that are searched; profilers nest some four.
const DEPTH: usize = 16;
/// Files of no known format that are named; the rest is counted.
const NAMED: usize = 3;

/// What a directory holds, and what of it could not be opened.
#[derive(Default)]
struct Found {
    files: Vec<PathBuf>,
    failed: Vec<Error>,
}

impl Importer<'_> {
    /// Reads the captures of a directory, sorted by path.
    ///
    /// # Errors
    /// Why none could be read.
    pub(super) fn directory(&self, path: &Path) -> Result<Vec<Trace>, Error> {
        let mut found = Found::default();
        self.walk(path, DEPTH, &mut found);
        let Found { mut files, mut failed } = found;
        files.sort();
        let (mut traces, mut kept): (Vec<Trace>, Vec<Trace>) = (Vec::new(), Vec::new());
        let mut declined: Vec<ReadError> = Vec::new();
        let (mut foreign, mut no_run): (Vec<&Path>, Option<ReadError>) = (Vec::new(), None);
        for entry in &files {
            // What another file in it is read with would be everything once more.
            if parsers::detect::lead(entry, &self.options()).is_some_and(|lead| files.binary_search(&lead).is_ok()) {
                continue;
            }
            match stored(entry) {
                Ok(None) => {}
                Ok(Some(captures)) => {
                    kept.extend(captures);
                    continue;
                }
                Err(e) => {
                    failed.push(e);
                    continue;
                }
            }
            match self.file(entry) {
                Ok(trace) => traces.push(trace),
                Err(Error::Read(e @ (ReadError::Declined { .. } | ReadError::NotRead { .. }))) => declined.push(e),
                Err(Error::Read(e)) if e.is_foreign() => {
                    foreign.push(entry);
                    no_run = no_run.or(Some(e).filter(|e| !matches!(e, ReadError::UnknownFormat { .. })));
                }
                Err(Error::Read(e)) => failed.push(e.into()),
                Err(e) => return Err(e),
            }
        }
        let copied = copies::leave_out(&mut traces);
        // A capture made from this directory and left in it is everything once more.
        copies::add(&mut traces, kept);
        let Some(first) = traces.first_mut() else {
            let told = declined.into_iter().chain(no_run).map(Error::from);
            let why = failed.into_iter().chain(told).next();
            return Err(why.unwrap_or_else(|| nothing_in(path, &foreign).into()));
        };
        self.unread.borrow_mut().extend(failed.iter().map(ToString::to_string).chain(copied.iter().cloned()));
        let example = |errors: &[String]| errors.first().cloned();
        let texts = |errors: Vec<ReadError>| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
        let failed: Vec<String> = failed.iter().map(ToString::to_string).collect();
        let declined = texts(declined);
        let counted = [
            ("import.unreadable_file", Severity::Error, failed.len(), example(&failed)),
            ("import.copied_file", Severity::Notice, copied.len(), example(&copied)),
            ("import.declined_file", Severity::Info, declined.len(), example(&declined)),
            ("import.foreign_file", Severity::Info, foreign.len(), some_of(&foreign, path)),
        ];
        let counted = counted.into_iter().filter(|(_, _, count, _)| *count > 0);
        first.stats.extend(counted.map(|(name, severity, count, example)| ImportStat {
            name: name.to_owned(),
            severity,
            count: count as u64,
            example,
        }));
        Ok(traces)
    }

    /// Whether the files of a directory are one capture to a profiler that writes directories.
    pub(super) fn is_capture_directory(&self, path: &Path) -> bool {
        parsers::detect::detect(path, &self.options()).is_ok()
    }

    /// Regular files below a directory, and directories that are captures as a whole. Links to directories are not followed, so
    /// there is no way round in a circle.
    fn walk(&self, directory: &Path, depth: usize, found: &mut Found) {
        let refused = |path: &Path, source| Error::from(ReadError::Io { path: path.to_owned(), source });
        let entries = match directory.read_dir() {
            Ok(entries) => entries,
            Err(e) => return found.failed.push(refused(directory, e)),
        };
        for entry in entries {
            let (path, kind) = match entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))) {
                Ok(entry) => entry,
                Err(e) => {
                    found.failed.push(refused(directory, e));
                    continue;
                }
            };
            if kind.is_dir() {
                if depth == 0 {
                    let why = format!("'{}' lies too deep; name the directory of the traces", path.display());
                    found.failed.push(Error::Request(why));
                } else if self.is_capture_directory(&path) {
                    found.files.push(path);
                } else {
                    self.walk(&path, depth - 1, found);
                }
                continue;
            }
            match path.metadata() {
                Ok(of) if of.is_file() => found.files.extend((!is_of_a_database(&path)).then_some(path)),
                // A link to a directory is no way round in a circle.
                Ok(of) if of.is_dir() => {}
                // A pipe or a device is refused before it is opened.
                Ok(_) => found.failed.extend(input::open(&path).err().map(|e| refused(&path, e))),
                Err(e) => found.failed.push(refused(&path, e)),
            }
        }
    }
}

/// Whether SQLite keeps a file beside a database that is there too. Whoever looked at a database leaves empty ones; what of a log was
/// not read, the reader of the database says.
fn is_of_a_database(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let database = ["-wal", "-shm"].iter().find_map(|ending| name.strip_suffix(ending));
    database.is_some_and(|database| path.with_file_name(database).is_file())
}

/// The first few of `files` by their names below `directory`.
fn some_of(files: &[&Path], directory: &Path) -> Option<String> {
    let name = |file: &&Path| file.strip_prefix(directory).unwrap_or(file).display().to_string();
    let mut names = files.iter().take(NAMED).map(name).collect::<Vec<_>>().join(", ");
    if files.len() > NAMED {
        names.push_str(", …");
    }
    (!names.is_empty()).then_some(names)
}

/// The error of a directory whose files are of no known format.
fn nothing_in(path: &Path, files: &[&Path]) -> ReadError {
    let found = match some_of(files, path) {
        Some(names) => format!("found only files that are none ({names})"),
        None => "found no file".to_owned(),
    };
    let known = parsers::readable().collect::<Vec<_>>().join(", ");
    ReadError::Malformed {
        path: path.to_owned(),
        place: Place::File,
        expected: format!("a trace of a known format in this directory, {found}"),
        next: format!("name the directory that the profiler wrote to, or a trace file; the formats are {known}"),
    }
}
