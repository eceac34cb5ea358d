//! From paths on the command line to captures in memory, whatever the paths are: trace files, profiler output
//! directories, capture files.

use std::path::{Path, PathBuf};

use model::{ImportStat, Ns, Severity, Trace, TraceBuilder};
use parsers::{Place, ReadError, ReadOptions, detect, log::Patterns};

use super::{exit::Usage, progress::Bar, ranks};
use crate::{analysis::graph_capture, platform::Packs, store};

/// Directories below each other that are searched; profilers nest some four.
const DEPTH: usize = 16;
/// Files of no known format that are named; the rest is counted.
const NAMED: usize = 3;

/// Options of every subcommand that reads traces.
#[derive(Debug, clap::Args)]
pub struct Reading {
    /// Read every trace file as this format instead of detecting it from the content.
    #[arg(long = "as", value_name = "FORMAT", value_parser = clap::builder::PossibleValuesParser::new(parsers::REGISTRY.iter().map(|f| f.id)))]
    pub as_format: Option<String>,
    /// Directory with further platform packs (may be given several times; the first one wins).
    #[arg(long, value_name = "DIR")]
    pack: Vec<PathBuf>,
    /// Trace of the same process while its graphs were captured: names, shapes and modules of replayed kernels are taken
    /// from it.
    #[arg(long, value_name = "PATH")]
    pub graph_capture: Option<PathBuf>,
}

impl Reading {
    /// The packs to read by.
    ///
    /// # Errors
    /// When a pack cannot be used.
    pub fn packs(&self) -> Result<Packs, Usage> {
        Packs::load(&self.pack).map_err(|e| Usage(e.to_string()))
    }
}

/// Reads what [`open`] reads, and takes from the graph capture, where one is given, what it says of replayed kernels.
///
/// # Errors
/// Those of [`open`], and a graph capture that fits no capture of a run.
pub fn open_with(paths: &[PathBuf], reading: &Reading, packs: &Packs, bar: &Bar) -> anyhow::Result<Vec<Trace>> {
    let patterns = Patterns::with(packs.log_patterns()).map_err(|e| Usage(e.to_string()))?;
    let how = How::of(packs, &patterns, reading.as_format.as_deref());
    let mut traces = open_as(paths, how, bar)?;
    let Some(path) = &reading.graph_capture else { return Ok(traces) };
    let captures = open_as(std::slice::from_ref(path), how, bar)?;
    let (mut fitted, mut refused) = (false, None);
    for trace in &mut traces {
        for capture in &captures {
            match graph_capture::apply(trace, capture, packs) {
                Ok(_) => fitted = true,
                Err(misfit) => refused = refused.or(Some(misfit)),
            }
        }
    }
    match refused.filter(|_| !fitted) {
        Some(misfit) => Err(Usage(format!("'{}' does not fit the run: {misfit}", path.display())).into()),
        None => Ok(traces),
    }
}

/// How files are read.
#[derive(Clone, Copy)]
struct How<'h> {
    /// What the readers are given.
    options: ReadOptions<'h>,
    /// What makes Unix nanoseconds of the times of files that do not say it.
    unix_offset: Option<Ns>,
}

impl<'h> How<'h> {
    /// By what the packs know; `patterns` are those of the packs.
    fn of(packs: &'h Packs, patterns: &'h Patterns, format: Option<&'h str>) -> Self {
        let device_vendors = packs.device_vendors();
        Self { options: ReadOptions { format, patterns, device_vendors, ..ReadOptions::default() }, unix_offset: None }
    }
}

/// Reads what a profiler has just written here into a directory; `unix_offset` makes Unix nanoseconds of its stamps where its
/// files do not say it.
///
/// # Errors
/// Those of [`open`].
pub fn open_recorded(directory: &Path, unix_offset: Option<Ns>, bar: &Bar) -> anyhow::Result<Vec<Trace>> {
    let packs = Packs::embedded()?;
    let how = How { unix_offset, ..How::of(&packs, Patterns::built_in(), None) };
    open_as(&[directory.to_owned()], how, bar)
}

/// Reads all captures of all paths by the built-in packs, in the order of the paths and sorted within a directory; ranks of
/// one job are one capture.
///
/// # Errors
/// The first path that gives nothing. In a directory, a file of an unknown format counts as `import.foreign_file`; one of a
/// known format that cannot be read as `import.unreadable_file` as long as another one can, one that holds nothing to
/// diagnose as `import.declined_file`.
pub fn open(paths: &[PathBuf], as_format: Option<&str>, bar: &Bar) -> anyhow::Result<Vec<Trace>> {
    let packs = Packs::embedded()?;
    open_as(paths, How::of(&packs, Patterns::built_in(), as_format), bar)
}

fn open_as(paths: &[PathBuf], how: How<'_>, bar: &Bar) -> anyhow::Result<Vec<Trace>> {
    let mut traces = Vec::new();
    for path in paths {
        if path.is_dir() && !is_capture_directory(path, how) {
            traces.extend(directory(path, how, bar)?);
        } else if path.is_file() && store::is_capture(path)? {
            bar.stage("loading", path.display());
            traces.extend(store::load(path)?);
        } else {
            traces.push(file(path, how, bar)?);
        }
    }
    Ok(ranks::join(traces))
}

fn file(path: &Path, how: How<'_>, bar: &Bar) -> Result<Trace, ReadError> {
    bar.stage("reading", path.display());
    let mut builder = TraceBuilder::new(path.display().to_string(), "");
    builder.assume_unix_offset(how.unix_offset);
    let progress = |done, total| bar.at(done, total);
    let format = detect::read(path, &mut builder, &ReadOptions { progress: &progress, ..how.options })?;
    let mut trace = builder.finish();
    trace.format = format.id.to_owned();
    Ok(trace)
}

fn directory(path: &Path, how: How<'_>, bar: &Bar) -> anyhow::Result<Vec<Trace>> {
    let mut found = Vec::new();
    walk(path, DEPTH, how, &mut found)?;
    found.sort();
    let mut traces: Vec<Trace> = Vec::new();
    let (mut failed, mut declined): (Vec<ReadError>, Vec<ReadError>) = (Vec::new(), Vec::new());
    let (mut foreign, mut no_run): (Vec<&Path>, Option<ReadError>) = (Vec::new(), None);
    for entry in &found {
        // A capture made from this directory and left in it would be everything once more.
        if entry.is_file() && store::is_capture(entry)? {
            continue;
        }
        // So would a file that another one in it is read with.
        if detect::lead(entry, &how.options).is_some_and(|lead| found.binary_search(&lead).is_ok()) {
            continue;
        }
        match file(entry, how, bar) {
            Ok(trace) => traces.push(trace),
            Err(e @ ReadError::Declined { .. }) => declined.push(e),
            Err(e) if e.is_foreign() => {
                foreign.push(entry);
                no_run = no_run.or(Some(e).filter(|e| !matches!(e, ReadError::UnknownFormat { .. })));
            }
            Err(e) => failed.push(e),
        }
    }
    let Some(first) = traces.first_mut() else {
        let why = failed.into_iter().chain(declined).chain(no_run).next();
        return Err(why.map_or_else(|| nothing_in(path), Into::into));
    };
    let example = |errors: &[ReadError]| errors.first().map(ToString::to_string);
    let told = [
        ("import.unreadable_file", Severity::Error, failed.len(), example(&failed)),
        ("import.declined_file", Severity::Info, declined.len(), example(&declined)),
        ("import.foreign_file", Severity::Info, foreign.len(), some_of(&foreign, path)),
    ];
    first.stats.extend(told.into_iter().filter(|(_, _, count, _)| *count > 0).map(
        |(name, severity, count, example)| ImportStat { name: name.to_owned(), severity, count: count as u64, example },
    ));
    Ok(traces)
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

fn nothing_in(path: &Path) -> anyhow::Error {
    let known = parsers::REGISTRY.iter().map(|f| f.id).collect::<Vec<_>>().join(", ");
    ReadError::Malformed {
        path: path.to_owned(),
        place: Place::File,
        expected: format!("a trace of a known format ({known}) in this directory"),
        next: "name the directory that the profiler wrote to, or a trace file".to_owned(),
    }
    .into()
}

/// Whether the files of a directory are one capture to a profiler that writes directories.
fn is_capture_directory(path: &Path, how: How<'_>) -> bool {
    detect::detect(path, &how.options).is_ok()
}

/// Regular files below a directory, and directories that are captures as a whole. Links to directories are not followed, so there is no way round in a circle.
fn walk(directory: &Path, depth: usize, how: How<'_>, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let refused = |source| ReadError::Io { path: directory.to_owned(), source };
    for entry in directory.read_dir().map_err(refused)? {
        let entry = entry.map_err(refused)?;
        let path = entry.path();
        if entry.file_type().map_err(refused)?.is_dir() {
            if depth == 0 {
                return Err(
                    Usage(format!("'{}' lies too deep; name the directory of the traces", path.display())).into()
                );
            }
            if is_capture_directory(&path, how) {
                found.push(path);
            } else {
                walk(&path, depth - 1, how, found)?;
            }
        } else if path.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// A directory of what a device tool printed is refused with that reason, as each of its files is.
    #[test]
    fn a_directory_without_a_run_says_what_it_holds() {
        let directory = tempfile::tempdir().unwrap();
        let line = "hy-smi: all is well\n";
        std::fs::write(directory.path().join("a.txt"), line).unwrap();
        let refused = || open(&[directory.path().to_owned()], None, &Bar::hidden()).unwrap_err().to_string();
        assert!(refused().contains("known format"), "{}", refused());
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

    #[test]
    fn files_of_no_known_format_are_counted_and_the_first_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("k.csv", "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\"\n\"k\",1,2,2,100\n");
        let told = |traces: Vec<Trace>| traces.first().unwrap().stats.clone();
        let open = || told(open(&[directory.path().to_owned()], None, &Bar::hidden()).unwrap());
        assert_eq!(open(), []);
        std::fs::create_dir(directory.path().join("b")).unwrap();
        ["a", "b/c", "d", "e"].iter().for_each(|name| write(name, "hello"));
        let [stat] = open().try_into().unwrap();
        assert_eq!((stat.name.as_str(), stat.severity, stat.count), ("import.foreign_file", Severity::Info, 4));
        assert_eq!(stat.example.as_deref(), Some("a, b/c, d, …"));
    }
}
