//! From paths to captures in memory, whatever the paths are: trace files, profiler output directories, capture files.

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use diagnosis::{analysis::graph_capture, platform::Packs};
use model::{ImportStat, Severity, Trace, TraceBuilder};
use parsers::{Place, ReadError, ReadOptions, log::Patterns};

use crate::{Error, Reading, attach, job, kept, progress, progress::Stage, same};

/// Directories below each other that are searched; profilers nest some four.
const DEPTH: usize = 16;
/// Files of no known format that are named; the rest is counted.
const NAMED: usize = 3;

/// Reads files by what a [`Reading`] says and its packs know.
pub(crate) struct Importer<'r> {
    reading: &'r Reading,
    packs: &'r Packs,
    patterns: Arc<Patterns>,
    /// What could not be read of inputs of which something could, or of which nothing was kept, in sentences.
    unread: RefCell<Vec<String>>,
}

/// The log lines that these packs know.
fn patterns(packs: &Packs) -> Result<Arc<Patterns>, Error> {
    static EMBEDDED: OnceLock<Arc<Patterns>> = OnceLock::new();
    let is_embedded = packs.is_embedded();
    if let Some(patterns) = EMBEDDED.get().filter(|_| is_embedded) {
        return Ok(Arc::clone(patterns));
    }
    let patterns = Patterns::with(packs.log_patterns()).map_err(|e| Error::request(e.to_string()))?;
    let patterns = Arc::new(patterns);
    Ok(if is_embedded { Arc::clone(EMBEDDED.get_or_init(|| patterns)) } else { patterns })
}

impl<'r> Importer<'r> {
    /// An importer that knows the log lines of the packs.
    ///
    /// # Errors
    /// A pattern of a pack that cannot be used.
    pub fn new(reading: &'r Reading, packs: &'r Packs) -> Result<Self, Error> {
        Ok(Self { reading, packs, patterns: patterns(packs)?, unread: RefCell::default() })
    }

    /// What could not be read although the rest of its input could.
    pub fn into_unread(self) -> Vec<String> {
        self.unread.into_inner()
    }

    /// How files beside the captures are read: as what they are, whatever format was asked of the captures.
    pub fn beside(&self) -> Reading {
        Reading { format: None, unix_offset: None, ..self.reading.clone() }
    }

    /// The knowledge that it reads by.
    pub fn packs(&self) -> &'r Packs {
        self.packs
    }

    /// Reads the captures of all paths and what belongs to them: a graph capture, measurements of kernels, ceilings.
    ///
    /// # Errors
    /// Those of [`Importer::captures`], and a file beside them that fits none of them.
    pub fn open(&self, paths: &[PathBuf]) -> Result<Vec<Trace>, Error> {
        let mut traces = self.captures(paths)?;
        if let Some(path) = &self.reading.graph_capture {
            self.graph_capture(path, &mut traces)?;
        }
        attach::kernel_metrics(&self.reading.kernel_metrics, &mut traces, self)?;
        attach::probes(self.reading.probes.as_deref(), &mut traces, self)?;
        Ok(traces)
    }

    fn graph_capture(&self, path: &PathBuf, traces: &mut [Trace]) -> Result<(), Error> {
        let captures = self.captures(std::slice::from_ref(path))?;
        let (mut fitted, mut refused) = (false, None);
        for trace in traces {
            for capture in &captures {
                match graph_capture::apply(trace, capture, self.packs) {
                    Ok(_) => fitted = true,
                    Err(misfit) => refused = refused.or(Some(misfit)),
                }
            }
        }
        match refused.filter(|_| !fitted) {
            Some(misfit) => Err(Error::Request(format!("'{}' does not fit the run: {misfit}", path.display()))),
            None => Ok(()),
        }
    }

    /// Reads all captures of all paths, in the order of the paths and sorted within a directory; ranks of one job are one
    /// capture.
    ///
    /// # Errors
    /// The first path that gives nothing. In a directory, a file of an unknown format counts as `import.foreign_file`; one of a
    /// known format that cannot be read as `import.unreadable_file` as long as another one can, one that holds nothing to
    /// diagnose as `import.declined_file`.
    pub fn captures(&self, paths: &[PathBuf]) -> Result<Vec<Trace>, Error> {
        let mut traces = Vec::new();
        for path in paths {
            if path.is_dir() && !self.is_capture_directory(path) {
                traces.extend(self.directory(path)?);
            } else if let Some(captures) = stored(path)? {
                traces.extend(captures);
            } else {
                traces.push(self.file(path)?);
            }
        }
        let mut traces = job::join(same::once(traces));
        // Facts beside a run are part of it; on their own they are none.
        if traces.iter().all(kept::holds_no_run) {
            self.unread.borrow_mut().extend(traces.iter_mut().filter_map(kept::no_run));
        }
        Ok(traces)
    }

    /// Reads one trace file.
    fn file(&self, path: &Path) -> Result<Trace, Error> {
        let _stage = Stage::Reading.span(path.display()).entered();
        let mut builder = TraceBuilder::new(path.display().to_string(), "");
        builder.assume_unix_offset(self.reading.unix_offset);
        let ceiling = &self.reading.memory;
        builder.limit(ceiling.clone());
        let far = [AtomicU64::new(0), AtomicU64::new(0)];
        let progress = |done, total| {
            far.iter().zip([done, total]).for_each(|(far, now)| far.store(now, Ordering::Relaxed));
            progress::at(done, total);
            self.reading.cancel.check();
            // Readers have no other way out; what they hold is dropped with them.
            if ceiling.is_reached() {
                resume_unwind(Box::new(Reached));
            }
        };
        let options = ReadOptions { progress: &progress, ..self.options() };
        let read = catch_unwind(AssertUnwindSafe(|| parsers::detect::read(path, &mut builder, &options)));
        let read = match read {
            Err(why) if !why.is::<Reached>() => resume_unwind(why),
            read => read.ok(),
        };
        if ceiling.is_reached() {
            let [done, total] = far.map(AtomicU64::into_inner);
            let percent = 100 * u128::from(done);
            let read = percent.checked_div(total.into()).map_or_else(|| done.to_string(), |share| format!("{share} %"));
            return Err(Error::Memory { path: path.to_owned(), most: ceiling.most(), kept: builder.kept(), read });
        }
        let Some(format) = read.transpose()? else { return Err(Error::Cancelled) };
        let mut trace = builder.finish();
        trace.format = format.id.to_owned();
        if kept::holds_nothing(&trace) {
            self.unread.borrow_mut().push(kept::nothing(path, &mut trace));
        }
        Ok(trace)
    }

    fn options(&self) -> ReadOptions<'_> {
        ReadOptions {
            format: self.reading.format.as_deref(),
            patterns: &self.patterns,
            device_vendors: self.packs.device_vendors(),
            ..ReadOptions::default()
        }
    }

    fn directory(&self, path: &Path) -> Result<Vec<Trace>, Error> {
        let mut found = Vec::new();
        self.walk(path, DEPTH, &mut found)?;
        found.sort();
        let mut traces: Vec<Trace> = Vec::new();
        let (mut failed, mut declined): (Vec<ReadError>, Vec<ReadError>) = (Vec::new(), Vec::new());
        let (mut foreign, mut no_run): (Vec<&Path>, Option<ReadError>) = (Vec::new(), None);
        for entry in &found {
            // A capture made from this directory and left in it would be everything once more.
            if is_stored(entry)? {
                continue;
            }
            // So would a file that another one in it is read with.
            if parsers::detect::lead(entry, &self.options()).is_some_and(|lead| found.binary_search(&lead).is_ok()) {
                continue;
            }
            match self.file(entry) {
                Ok(trace) => traces.push(trace),
                Err(Error::Read(e @ (ReadError::Declined { .. } | ReadError::NotRead { .. }))) => declined.push(e),
                Err(Error::Read(e)) if e.is_foreign() => {
                    foreign.push(entry);
                    no_run = no_run.or(Some(e).filter(|e| !matches!(e, ReadError::UnknownFormat { .. })));
                }
                Err(Error::Read(e)) => failed.push(e),
                Err(e) => return Err(e),
            }
        }
        let Some(first) = traces.first_mut() else {
            let why = failed.into_iter().chain(declined).chain(no_run).next();
            return Err(why.unwrap_or_else(|| nothing_in(path, &foreign)).into());
        };
        self.unread.borrow_mut().extend(failed.iter().map(ToString::to_string));
        let example = |errors: &[ReadError]| errors.first().map(ToString::to_string);
        let counted = [
            ("import.unreadable_file", Severity::Error, failed.len(), example(&failed)),
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
    fn is_capture_directory(&self, path: &Path) -> bool {
        parsers::detect::detect(path, &self.options()).is_ok()
    }

    /// Regular files below a directory, and directories that are captures as a whole. Links to directories are not followed, so
    /// there is no way round in a circle.
    fn walk(&self, directory: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Error> {
        let refused = |source| ReadError::Io { path: directory.to_owned(), source };
        for entry in directory.read_dir().map_err(refused)? {
            let entry = entry.map_err(refused)?;
            let path = entry.path();
            if entry.file_type().map_err(refused)?.is_dir() {
                if depth == 0 {
                    return Err(Error::Request(format!(
                        "'{}' lies too deep; name the directory of the traces",
                        path.display()
                    )));
                }
                if self.is_capture_directory(&path) {
                    found.push(path);
                } else {
                    self.walk(&path, depth - 1, found)?;
                }
            } else if path.is_file() && !is_of_a_database(&path) {
                found.push(path);
            }
        }
        Ok(())
    }
}

/// Whether SQLite keeps a file beside a database that is there too. Whoever looked at a database leaves empty ones; what of a log was
/// not read, the reader of the database says.
fn is_of_a_database(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let database = ["-wal", "-shm"].iter().find_map(|ending| name.strip_suffix(ending));
    database.is_some_and(|database| path.with_file_name(database).is_file())
}

/// What reading unwinds with where captures take as much memory as they may.
struct Reached;

/// Whether a file is a capture file.
#[cfg(feature = "sqlite")]
fn is_stored(path: &Path) -> Result<bool, Error> {
    Ok(path.is_file() && store::is_capture(path)?)
}

/// Without SQLite no file is a capture file to this program; the importer declines it as what it is.
#[cfg(not(feature = "sqlite"))]
fn is_stored(_: &Path) -> Result<bool, Error> {
    Ok(false)
}

/// The captures of a capture file; `None` of a file that is none.
fn stored(path: &Path) -> Result<Option<Vec<Trace>>, Error> {
    if !is_stored(path)? {
        return Ok(None);
    }
    #[cfg(feature = "sqlite")]
    {
        let _stage = Stage::Loading.span(path.display()).entered();
        Ok(Some(store::load(path)?))
    }
    #[cfg(not(feature = "sqlite"))]
    Ok(None)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn open(directory: &Path) -> Result<Vec<Trace>, Error> {
        let (reading, packs) = (Reading::default(), Packs::embedded().unwrap());
        Importer::new(&reading, &packs).unwrap().open(&[directory.to_owned()])
    }

    /// A directory of what a device tool printed is refused with that reason, as each of its files is.
    #[test]
    fn a_directory_without_a_run_says_what_it_holds() {
        let directory = tempfile::tempdir().unwrap();
        let line = "hy-smi: all is well\n";
        std::fs::write(directory.path().join("a.txt"), line).unwrap();
        let refused = || open(directory.path()).unwrap_err().to_string();
        assert!(refused().contains("found only files that are none (a.txt)"), "{}", refused());
        assert!(!refused().contains("not-read"), "{}", refused());
        std::fs::write(directory.path().join("b.txt"), PRINTED).unwrap();
        assert!(refused().contains("what npu-smi prints"), "{}", refused());
    }

    const PRINTED: &str = "\
| npu-smi 24.1.0                   Version: 24.1.0                                              |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 93.6        40                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3161 / 65536         |
+===========================+===============+====================================================+
";

    /// Reading them anew took longer than reading a small capture, for every session of a process.
    #[test]
    fn knowledge_that_comes_with_the_program_is_read_once_and_that_of_others_is_not_shared() {
        let (a, b) = (Packs::embedded().unwrap(), Reading::default().packs().unwrap());
        assert!(a.is_embedded() && b.is_embedded());
        assert!(Arc::ptr_eq(&patterns(&a).unwrap(), &patterns(&b).unwrap()));
        let directory = tempfile::tempdir().unwrap();
        let pack = "id = 'mine'\nsource = 'a test'\ndate = '2026-11'\n[[log]]\nengine = 'mine'\nregex = 'mine took (?P<latency_ms>[0-9.]+) ms'\n";
        std::fs::write(directory.path().join("mine.toml"), pack).unwrap();
        let own = Reading { packs: vec![directory.path().to_owned()], ..Reading::default() }.packs().unwrap();
        let line = b"mine took 3.5 ms";
        assert!(!own.is_embedded() && patterns(&own).unwrap().know(line) && !patterns(&a).unwrap().know(line));
    }

    /// Facts of the machine are no run: a table of them on its own ended as if all was well.
    #[test]
    fn facts_without_a_run_are_told_and_beside_one_they_are_part_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("sysinfo.csv", "workload_name,gpu_arch,cu_per_gpu,gpu_model\nx,gfx942,304,MI300X_A1\n");
        let told = || {
            let (reading, packs) = (Reading::default(), Packs::embedded().unwrap());
            let importer = Importer::new(&reading, &packs).unwrap();
            importer.open(&[directory.path().to_owned()]).unwrap();
            importer.into_unread()
        };
        let [sentence] = told().try_into().unwrap();
        assert!(sentence.contains("sysinfo.csv") && sentence.contains("only facts from 1 rows"), "{sentence}");
        write("k.csv", "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\"\n\"k\",1,2,2,100\n");
        assert_eq!(told(), Vec::<String>::new());
    }

    /// An empty log beside a database that somebody had opened made the whole directory one with an unreadable file.
    #[test]
    fn what_sqlite_leaves_beside_a_database_is_no_file_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("k.csv", "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\"\n\"k\",1,2,2,100\n");
        ["k.csv-wal", "k.csv-shm"].iter().for_each(|name| write(name, ""));
        assert_eq!(open(directory.path()).unwrap().first().unwrap().stats, []);
        write("other-wal", "");
        let stats = open(directory.path()).unwrap().first().unwrap().stats.clone();
        assert_eq!(stats.first().unwrap().name, "import.unreadable_file", "it is nobody's");
    }

    #[test]
    fn files_of_no_known_format_are_counted_and_the_first_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("k.csv", "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\"\n\"k\",1,2,2,100\n");
        let stats = |traces: Vec<Trace>| traces.first().unwrap().stats.clone();
        let found = || stats(open(directory.path()).unwrap());
        assert_eq!(found(), []);
        std::fs::create_dir(directory.path().join("b")).unwrap();
        ["a", "b/c", "d", "e"].iter().for_each(|name| write(name, "hello"));
        let [stat] = found().try_into().unwrap();
        assert_eq!((stat.name.as_str(), stat.severity, stat.count), ("import.foreign_file", Severity::Info, 4));
        assert_eq!(stat.example.as_deref(), Some("a, b/c, d, …"));
    }
}
