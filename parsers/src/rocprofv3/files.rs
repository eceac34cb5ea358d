//! Which CSV files of a directory are one capture.

use std::path::{Path, PathBuf};

/// What the names of rocprofv3's files end with, before `.csv`.
const ENDINGS: &[&str] = &[
    "agent_info",
    "counter_collection",
    "domain_stats",
    "hip_api_stats",
    "hip_api_trace",
    "hip_stats",
    "hsa_api_stats",
    "hsa_api_trace",
    "hsa_stats",
    "kernel_stats",
    "kernel_trace",
    "marker_api_stats",
    "marker_api_trace",
    "memory_allocation_stats",
    "memory_allocation_trace",
    "memory_copy_stats",
    "memory_copy_trace",
    "rccl_api_stats",
    "rccl_api_trace",
    "rocdecode_api_trace",
    "rocjpeg_api_trace",
    "scratch_memory_stats",
    "scratch_memory_trace",
];
/// The tables that rocprof-compute (formerly omniperf) leaves in one directory; those that hold what ran come first.
const COMPUTE: &[&str] =
    &["pmc_perf.csv", "timestamps.csv", "pmc_dispatch_info.csv", "pmc_kernel_top.csv", "roofline.csv", "sysinfo.csv"];
/// How many of [`COMPUTE`] hold what ran.
const RAN: usize = 2;
/// What further tables of the same kernels begin with, one for each set of counters. Source: `omniperf_soc` of omniperf 1 and 2,
/// `soc_base.py` of rocprof-compute 3.
const PASSES: [&str; 3] = ["SQ_", "pmc_perf_", "results_pmc_perf_"];
/// Most files that are one capture; a machine runs some ten processes, each with a dozen files.
const MAX_FILES: usize = 4096;

/// One file of a capture.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct File {
    /// What its name begins with: a process id, or what the user chose.
    pub prefix: String,
    pub path: PathBuf,
}

/// The files of the capture that `path` belongs to, in order of their prefixes and names. A file whose name says nothing is
/// a capture of its own, and so is the one that cannot be listed.
pub(super) fn of_capture(path: &Path) -> Vec<File> {
    let alone = || vec![File { prefix: String::new(), path: path.to_owned() }];
    if let Some(files) = of_compute(path) {
        return files;
    }
    let (Some(prefix), Some(directory)) = (prefix(path), path.parent()) else { return alone() };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let Ok(entries) = directory.read_dir() else { return alone() };
    let mut files: Vec<File> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            // The path as the caller spells its directory, so that it finds the file again.
            let path = path.with_file_name(name);
            let found = self::prefix(&path)?;
            let together = found == prefix || (is_process(&found) && is_process(&prefix));
            (together && path.is_file()).then_some(File { prefix: found, path })
        })
        .take(MAX_FILES)
        .collect();
    files.sort();
    if files.is_empty() { alone() } else { files }
}

/// The tables of rocprof-compute beside a table of it, if what ran is among them.
fn of_compute(path: &Path) -> Option<Vec<File>> {
    let name = path.file_name()?.to_str()?;
    let ran = || COMPUTE.iter().take(RAN).any(|first| path.with_file_name(first).is_file());
    if !(COMPUTE.contains(&name) || is_pass(name)) || !ran() {
        return None;
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside =
        directory.read_dir().into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut passes: Vec<PathBuf> =
        beside.filter(|name| is_pass(name)).map(|name| path.with_file_name(name)).take(MAX_FILES).collect();
    passes.sort();
    let tables = COMPUTE.iter().map(|name| path.with_file_name(name)).chain(passes);
    Some(tables.filter(|path| path.is_file()).map(|path| File { prefix: String::new(), path }).collect())
}

/// Whether a file is a table of one set of counters.
fn is_pass(name: &str) -> bool {
    name.ends_with(".csv") && PASSES.iter().any(|begin| name.starts_with(begin))
}

/// Whether a prefix is a process id, as rocprofv3 names files unless told otherwise.
fn is_process(prefix: &str) -> bool {
    prefix.parse::<u32>().is_ok()
}

fn prefix(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.strip_suffix(".csv")?;
    let ending = ENDINGS.iter().find(|ending| name.ends_with(*ending))?;
    let prefix = name.strip_suffix(ending)?;
    Some(prefix.strip_suffix('_').unwrap_or(prefix).to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn names(directory: &Path, of: &str) -> Vec<String> {
        let files = of_capture(&directory.join(of));
        files.iter().map(|file| file.path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_tables_of_rocprof_compute_are_one_capture_led_by_what_ran() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str| std::fs::write(directory.path().join(name), "").unwrap();
        ["roofline.csv", "sysinfo.csv", "other.csv"].iter().for_each(|name| write(name));
        assert_eq!(names(directory.path(), "roofline.csv"), ["roofline.csv"], "nothing ran");
        write("pmc_perf.csv");
        for of in ["roofline.csv", "pmc_perf.csv"] {
            assert_eq!(names(directory.path(), of), ["pmc_perf.csv", "roofline.csv", "sysinfo.csv"]);
        }
        assert_eq!(names(directory.path(), "other.csv"), ["other.csv"]);
        // omniperf 1 and 2 leave a table for each set of counters too, which were captures of their own.
        write("timestamps.csv");
        write("SQ_LEVEL_WAVES.csv");
        let all = ["pmc_perf.csv", "timestamps.csv", "roofline.csv", "sysinfo.csv", "SQ_LEVEL_WAVES.csv"];
        assert_eq!(names(directory.path(), "SQ_LEVEL_WAVES.csv"), all);
    }

    #[test]
    fn a_prefix_is_a_capture_and_so_are_all_processes() {
        let directory = tempfile::tempdir().unwrap();
        let all = ["7_kernel_trace.csv", "12_hip_api_trace.csv", "a_kernel_trace.csv", "a_b_kernel_trace.csv", "x.csv"];
        all.iter().for_each(|name| std::fs::write(directory.path().join(name), "").unwrap());
        let processes = ["12_hip_api_trace.csv", "7_kernel_trace.csv"];
        assert_eq!(names(directory.path(), "7_kernel_trace.csv"), processes);
        assert_eq!(names(directory.path(), "12_hip_api_trace.csv"), processes);
        assert_eq!(names(directory.path(), "a_kernel_trace.csv"), ["a_kernel_trace.csv"]);
        assert_eq!(names(directory.path(), "x.csv"), ["x.csv"]);
    }
}
