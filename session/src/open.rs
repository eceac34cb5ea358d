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
use model::{Trace, TraceBuilder};
use parsers::{ReadOptions, log::Patterns};

use crate::{Error, Reading, attach, job, kept, progress, progress::Stage, same};

mod copies;
mod directory;

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
    /// The first path that gives nothing. In a directory, a file of an unknown format counts as `import.foreign_file`; an entry
    /// that cannot be read as `import.unreadable_file` as long as another one can, one that holds nothing to diagnose as
    /// `import.declined_file`, one that holds what another one holds as `import.copied_file`.
    pub fn captures(&self, paths: &[PathBuf]) -> Result<Vec<Trace>, Error> {
        let mut traces = Vec::new();
        for path in paths {
            if path.is_dir() && !self.is_capture_directory(path) {
                traces.extend(self.directory(path)?);
            } else if let Some(captures) = stored(path)? {
                self.fit(path, &captures)?;
                traces.extend(captures);
            } else {
                traces.push(self.file(path)?);
            }
        }
        let (mut traces, claimed) = job::join(same::once(traces));
        self.unread.borrow_mut().extend(claimed);
        // Facts beside a run are part of it; on their own they are none.
        if traces.iter().all(kept::holds_no_run) {
            self.unread.borrow_mut().extend(traces.iter_mut().filter_map(kept::no_run));
        }
        Ok(traces)
    }

    /// Refuses captures that are in memory and leave no room for what is done with them.
    fn fit(&self, path: &Path, captures: &[Trace]) -> Result<(), Error> {
        let ceiling = &self.reading.memory;
        captures.iter().for_each(|capture| ceiling.count(capture));
        if ceiling.is_reached() {
            let kept = captures.iter().map(|capture| capture.slice_count() as u32).fold(0, u32::saturating_add);
            let (path, most) = (path.to_owned(), ceiling.most());
            return Err(Error::Memory { path, most, kept, read: "100 %".to_owned() });
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use model::Severity;

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

    fn kineto(name: &str) -> String {
        let event = |cat: &str, name: &str, tid: u8, ts: u8| {
            format!(
                r#"{{"ph": "X", "cat": "{cat}", "name": "{name}", "pid": 0, "tid": {tid}, "ts": {ts}.0, "dur": 2.0, "args": {{"correlation": 7}}}}"#
            )
        };
        let events = [event("cuda_runtime", "cudaLaunchKernel", 1, 1), event("kernel", name, 7, 4)].join(",");
        format!(r#"{{"schemaVersion": 1, "traceEvents": [{events}]}}"#)
    }

    /// Reads a directory; its captures and what was told.
    fn told(directory: &Path) -> (Vec<Trace>, Vec<String>) {
        let (reading, packs) = (Reading::default(), Packs::embedded().unwrap());
        let importer = Importer::new(&reading, &packs).unwrap();
        let traces = importer.open(&[directory.to_owned()]).unwrap();
        (traces, importer.into_unread())
    }

    /// One entry that could not be opened refused the whole directory.
    #[cfg(unix)]
    #[test]
    fn an_entry_that_cannot_be_opened_is_told_and_the_rest_is_read() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.json"), kineto("k")).unwrap();
        std::os::unix::fs::symlink("nowhere", directory.path().join("b.json")).unwrap();
        let (traces, told) = told(directory.path());
        assert_eq!((traces.len(), traces[0].stat("import.unreadable_file")), (1, 1));
        assert!(told.len() == 1 && told[0].contains("b.json"), "{told:?}");
    }

    /// A pipe or a device among the files was left out without a word. Nothing waits for what a pipe would give.
    #[cfg(unix)]
    #[test]
    fn a_pipe_and_a_device_among_the_files_are_told_and_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("a.json"), kineto("k")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(path("b.json")).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", path("c.json")).unwrap();
        std::os::unix::fs::symlink(".", path("again")).unwrap();
        let (traces, mut told) = told(directory.path());
        told.sort();
        assert_eq!((traces.len(), traces[0].stat("import.unreadable_file")), (1, 2));
        let [pipe, device] = told.try_into().unwrap();
        assert!(pipe.contains("b.json': it is no regular file") && device.contains("c.json"), "{pipe}\n{device}");
    }

    /// Capture files in a directory were passed over without a word. One that was made from the directory adds nothing to it.
    #[test]
    fn capture_files_in_a_directory_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("a.json"), kineto("a")).unwrap();
        let names = |traces: &[Trace]| -> Vec<bool> {
            traces.iter().map(|trace| trace.strings.iter().any(|(_, text)| text == "a")).collect()
        };
        store::save(&path("all.strato"), &told(directory.path()).0).unwrap();
        assert_eq!(names(&told(directory.path()).0), [true], "made from the directory");
        std::fs::write(path("a.json"), kineto("b")).unwrap();
        assert_eq!(names(&told(directory.path()).0), [false, true], "another run");
        std::fs::remove_file(path("a.json")).unwrap();
        assert_eq!(names(&told(directory.path()).0), [true], "alone");
    }

    /// A copy, and the compressed form of a file, were captures of their own.
    #[test]
    fn copies_of_a_file_count_once_and_are_told() {
        let directory = tempfile::tempdir().unwrap();
        for (name, kernel) in [("a.json", "a"), ("copy of a.json", "a"), ("b.json", "b")] {
            std::fs::write(directory.path().join(name), kineto(kernel)).unwrap();
        }
        let (traces, told) = told(directory.path());
        assert_eq!(traces.len(), 2);
        assert!(told.len() == 1 && told[0].contains("copy of a.json' holds the same capture as"), "{told:?}");
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
