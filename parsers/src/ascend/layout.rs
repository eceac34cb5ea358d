//! What lies where in a profiler's output directory. Files are found by prefix, because names carry times, ranks and
//! iterations; of several exports of one capture the newest by name counts.

use std::path::{Path, PathBuf};

/// Most entries of a directory that are looked at; real ones have some dozens, sliced exports some hundreds.
const MAX_ENTRIES: usize = 4096;
/// Post-processed output of the framework's profilers.
const FRAMEWORK: &str = "ASCEND_PROFILER_OUTPUT";
/// Text output of `msprof`.
const TEXT: &str = "mindstudio_profiler_output";
/// Waits and transfers of collectives that `msprof --analyze=on` summed; MindSpore copies the database from there.
const ANALYSIS: &str = "analyze";
/// Databases by prefix, the most complete first. Those of the frameworks end in `_RANK` where the rank is known; MindSpore's
/// is that of `msprof` under another name (mindspore/profiler/common/path_manager, 2025).
const DATABASES: [&str; 5] =
    ["ascend_pytorch_profiler", "ascend_mindspore_profiler", "msmonitor_", "msprof_", "report_"];
/// Files by which waits and transfers of collectives are known; where several were exported they hold the same. MindSpore
/// and `msprof` call the database otherwise than torch_npu.
const COMMUNICATION: [&str; 3] = ["communication.json", "analysis.db", "communication_analyzer.db"];

/// Files that are known and not read, by prefix, and why.
const NOT_READ: [(&str, &str); 21] = [
    ("operator_details", "not read: sums over the operators of the timeline, and their call stacks"),
    ("op_summary", "not read: the timeline holds the same tasks"),
    ("task_time", "not read: the timeline holds the same tasks"),
    ("hccl_", "not read: the timeline holds the same collectives"),
    ("step_trace_", "not read: the timeline holds the same iterations"),
    ("fusion_op", "not read: names and memory of fused operators, no times"),
    ("aicpu", "not read: queues of the processors on the device"),
    ("operator_memory", "not read: sizes of allocations"),
    ("memory_record", "not read: memory over time"),
    ("npu_module_mem", "not read: memory over time"),
    ("l2_cache", "not read: cache hits of kernels"),
    ("npu_mem", "not read: memory over time"),
    ("static_op_mem", "not read: sizes of allocations"),
    ("dataset", "not read: what the pipeline of the training set did on the host"),
    ("minddata_", "not read: sums over the pipeline of the training set"),
    ("data_preprocess", "not read: queues of the processors on the device"),
    ("pcie", "not read: bytes over the buses"),
    ("hccs", "not read: bytes over the buses"),
    ("nic", "not read: bytes over the network"),
    ("roce", "not read: bytes over the network"),
    ("end_info", "not read: when the recording ended"),
];
/// Files of names that are not known, and how many of them the ledger lists.
const UNKNOWN: &str = "not read: unknown to this version";
const MAX_UNKNOWN: usize = 16;

/// The files of one capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// Timelines in the order of their iterations.
    pub timelines: Vec<PathBuf>,
    /// The database.
    pub database: Option<PathBuf>,
    /// The table of kernels.
    pub kernels: Option<PathBuf>,
    /// Other tables of tasks, which stand in where there is neither timeline nor database.
    pub tables: Vec<PathBuf>,
    /// Waits and transfers of collectives by name: `communication.json`, then `analysis.db`, which holds the same.
    pub communication: Vec<PathBuf>,
    /// What moved between the rank and its peers: `communication_matrix.json`.
    pub matrix: Option<PathBuf>,
    /// Tables of sums.
    pub sums: Vec<PathBuf>,
    /// `profiler_info*.json`, `profiler_metadata.json`, `info.json.*`, `start_info.*`.
    pub facts: Vec<PathBuf>,
    /// Known files that are not read, and why.
    pub not_read: Vec<(String, &'static str)>,
    /// The directory given, or that of the file given.
    pub root: PathBuf,
}

impl Layout {
    /// Whether the directory is one capture of an Ascend profiler, exported or not.
    pub fn is_output(directory: &Path) -> bool {
        let name = name(directory);
        let by_name = name.ends_with("_ascend_pt") || name.ends_with("_ascend_ms") || name.starts_with("PROF_");
        if by_name || name == FRAMEWORK || name == TEXT {
            return true;
        }
        let has = |part: &str| directory.join(part).is_dir();
        let (inside, _) = if has(FRAMEWORK) || has(TEXT) { return true } else { entries(directory) };
        inside.iter().any(|path| name_of_device(path) && path.join("timeline").is_dir())
    }

    /// The capture in a directory.
    pub fn of(directory: &Path) -> Self {
        let mut layout = Self { root: directory.to_owned(), ..Self::default() };
        let mut folders =
            vec![directory.to_owned(), directory.join(FRAMEWORK), directory.join(TEXT), directory.join(ANALYSIS)];
        if name(directory) == FRAMEWORK || name(directory) == TEXT {
            folders.extend(directory.parent().map(Path::to_owned));
        }
        // Exports of 2022 to 2024 lie below each device.
        let (inside, _) = entries(directory);
        for device in inside.iter().filter(|path| name_of_device(path) && path.is_dir()) {
            folders.extend([device.clone(), device.join("timeline")]);
        }
        for folder in folders {
            layout.take(&folder);
        }
        layout.timelines.sort_by_cached_key(|path| number_key(&name(path)));
        layout.timelines.dedup();
        let newest = layout.timelines.iter().filter_map(|path| exported(path)).max();
        layout.timelines.retain(|path| exported(path) == newest || exported(path).is_none());
        // A table of operators says more of them than one of all tasks; of two exports the newest counts.
        let operators = layout.tables.iter().any(|path| name(path).starts_with("op_summary"));
        let (read, summed) =
            layout.tables.into_iter().partition(|path| !operators || name(path).starts_with("op_summary"));
        layout.tables = read;
        // What another table says of the same tasks is what they must add up to.
        layout.sums.extend::<Vec<PathBuf>>(summed);
        let newest = layout.tables.iter().filter_map(|path| exported(path)).max();
        layout.tables.retain(|path| exported(path) == newest || exported(path).is_none());
        layout
    }

    /// The capture of which one file was named: that file, and what lies beside it that says more of the run.
    pub fn of_file(path: &Path) -> Self {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut around = Self::default();
        around.take(folder);
        if name(folder) == FRAMEWORK {
            folder.parent().into_iter().for_each(|parent| around.take(parent));
        }
        let is_database = input::open(path).is_ok_and(|mut file| {
            let mut head = [0; crate::sqlite::SIGNATURE.len()];
            std::io::Read::read_exact(&mut file, &mut head).is_ok() && head == *crate::sqlite::SIGNATURE
        });
        Self {
            timelines: if is_database { Vec::new() } else { vec![path.to_owned()] },
            database: is_database.then(|| path.to_owned()),
            kernels: around.kernels,
            communication: around.communication,
            matrix: around.matrix,
            facts: around.facts,
            tables: Vec::new(),
            sums: Vec::new(),
            not_read: Vec::new(),
            root: folder.to_owned(),
        }
    }

    /// The database of sums of steps, collectives and links.
    pub fn analysis(&self) -> Option<&Path> {
        self.communication.iter().map(PathBuf::as_path).find(|path| super::times::is_database(path))
    }

    /// Whether the directory holds what an export would be made of: raw data lies in directories of its own.
    pub fn is_raw(&self) -> bool {
        let exported = |path: &PathBuf| [FRAMEWORK, TEXT, ANALYSIS].contains(&name(path).as_str());
        entries(&self.root).0.iter().any(|path| path.is_dir() && !exported(path))
    }

    /// The names of the files that say something of the run and do not place it in time.
    pub fn sums_only(&self) -> Vec<String> {
        let files = self.communication.iter().chain(&self.matrix).chain(&self.sums).chain(&self.facts);
        let names = files.map(|path| name(path)).chain(self.not_read.iter().map(|(name, _)| name.clone()));
        names.collect()
    }

    fn take(&mut self, folder: &Path) {
        let (files, beyond) = entries(folder);
        if beyond > 0 {
            self.not_read.push((name(folder), "not read: more files than any profiler writes"));
        }
        for path in files.into_iter().filter(|path| path.is_file()) {
            let name = name(&path);
            let starts = |prefix: &str| name.starts_with(prefix);
            if name.ends_with(".db") && completeness(&name).is_some() {
                // Of two exports the later one comes later.
                let known = self.database.as_deref().and_then(|known| completeness(&self::name(known)));
                if known.is_none_or(|known| completeness(&name) <= Some(known)) {
                    self.database = Some(path);
                }
            } else if starts("trace_view") && name.ends_with(".json")
                || starts("msprof_") && name.ends_with(".json") && !starts("msprof_tx")
            {
                self.timelines.push(path);
            } else if starts("kernel_details") && name.ends_with(".csv") {
                self.kernels = Some(path);
            } else if ["op_summary", "task_time"].iter().any(|p| starts(p)) && name.ends_with(".csv") {
                self.tables.push(path);
            } else if COMMUNICATION.contains(&name.as_str()) {
                // The text is exact to a digit, the database holds floats.
                let place = if name.ends_with(".json") { 0 } else { self.communication.len() };
                self.communication.insert(place, path);
            } else if starts("communication_matrix") && name.ends_with(".json") {
                self.matrix = Some(path);
            } else if super::sums::is_known(&name) {
                self.sums.push(path);
            } else if ["profiler_info", "profiler_metadata", "info.json", "start_info"].iter().any(|p| starts(p))
                && !name.ends_with(".done")
            {
                self.facts.push(path);
            } else if !name.ends_with(".done") {
                self.pass_over(&name);
            }
        }
    }

    /// Notes a file that is not read, once for all of its kind.
    fn pass_over(&mut self, name: &str) {
        let known = NOT_READ.iter().find(|(prefix, _)| name.starts_with(prefix));
        let strangers = self.not_read.iter().filter(|(_, why)| *why == UNKNOWN).count();
        let (shown, why) = match known {
            Some((prefix, why)) => (*prefix, *why),
            None if strangers < MAX_UNKNOWN => (name, UNKNOWN),
            None => ("other files", UNKNOWN),
        };
        if !self.not_read.iter().any(|(file, _)| file == shown) {
            self.not_read.push((shown.to_owned(), why));
        }
    }
}

/// Entries of a directory in order of their names, and how many were beyond the limit.
fn entries(directory: &Path) -> (Vec<PathBuf>, usize) {
    let Ok(read) = directory.read_dir() else { return (Vec::new(), 0) };
    let mut found: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).take(MAX_ENTRIES + 1).collect();
    let beyond = found.len().saturating_sub(MAX_ENTRIES);
    found.sort();
    found.truncate(MAX_ENTRIES);
    (found, beyond)
}

/// Position of a database's kind in [`DATABASES`].
fn completeness(name: &str) -> Option<usize> {
    DATABASES.iter().position(|prefix| name.starts_with(prefix))
}

/// When a timeline was exported, where its name says so: `msprof_20250109154803.json`.
fn exported(path: &Path) -> Option<u64> {
    const YEAR_2000: u64 = 20_000_101_000_000;
    number_key(&name(path)).last().copied().filter(|stamp| *stamp >= YEAR_2000)
}

/// The ordinal of the device in whose directory a file lies.
pub(super) fn device_of(path: &Path) -> Option<i32> {
    path.ancestors().skip(1).take(2).find_map(|folder| name(folder).strip_prefix("device_")?.parse().ok())
}

fn name_of_device(path: &Path) -> bool {
    name(path).starts_with("device_")
}

/// The last part of a path.
pub(super) fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The numbers in a name: `msprof_0_2_10.json` comes after `msprof_0_2_9.json`.
fn number_key(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}
