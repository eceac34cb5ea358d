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
/// The tables that rocprof-compute (formerly omniperf) leaves in one directory; the first holds what ran.
const COMPUTE: &[&str] =
    &["pmc_perf.csv", "pmc_dispatch_info.csv", "pmc_kernel_top.csv", "roofline.csv", "sysinfo.csv"];
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
    let (name, first) = (path.file_name()?.to_str()?, COMPUTE.first()?);
    if !COMPUTE.contains(&name) || !path.with_file_name(first).is_file() {
        return None;
    }
    let there = COMPUTE.iter().map(|name| path.with_file_name(name)).filter(|path| path.is_file());
    Some(there.map(|path| File { prefix: String::new(), path }).collect())
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
