//! Where libcupti may lie: a file that was named, what the system finds, the toolkit, and the packages of PyPI.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// Its name without a version.
pub const PLAIN: &str = "libcupti.so";
/// Names of the library, newest first. The plain one is a link that only development packages have; until 11 every release had
/// a name of its own.
const NAMES: [&str; 8] = [
    "libcupti.so.13",
    "libcupti.so.12",
    PLAIN,
    "libcupti.so.11.8",
    "libcupti.so.11.7",
    "libcupti.so.11.6",
    "libcupti.so.11.5",
    "libcupti.so.11.4",
];
/// Below the root of a toolkit.
const TOOLKIT: [&str; 3] = ["extras/CUPTI/lib64", "lib64", "targets/x86_64-linux/lib"];
/// Below a `site-packages`: the packages of CUDA 13, and those of CUDA 11 and 12.
const PACKAGES: [&str; 2] = ["nvidia/cu13/lib", "nvidia/cuda_cupti/lib"];

/// Every file to try, in order; `variable` reads the environment. A file that `STRATO_CUPTI` names is the only one.
pub fn candidates(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    if let Some(file) = variable("STRATO_CUPTI").filter(|file| !file.is_empty()) {
        return vec![file.into()];
    }
    let mut found: Vec<PathBuf> = NAMES.iter().map(PathBuf::from).collect();
    let roots = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(variable).map(PathBuf::from);
    let toolkits =
        roots.chain([PathBuf::from("/usr/local/cuda")]).flat_map(|root| TOOLKIT.map(|below| root.join(below)));
    let prefixes = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(variable).map(PathBuf::from);
    let packages = prefixes.flat_map(|prefix| site_packages(&prefix));
    let told = variable("PYTHONPATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>()).unwrap_or_default();
    let packages = packages.chain(told).flat_map(|site| PACKAGES.map(|below| site.join(below)));
    for directory in toolkits.chain(packages) {
        // Only files that are there, so that a failure is told of a place that means something.
        found.extend(NAMES.iter().map(|name| directory.join(name)).filter(|file| file.exists()));
    }
    found
}

/// `lib/python3.*/site-packages` of an environment.
fn site_packages(prefix: &Path) -> Vec<PathBuf> {
    let Ok(entries) = prefix.join("lib").read_dir() else { return Vec::new() };
    let is_python = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"));
    let mut sites: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_python).collect();
    sites.sort();
    sites.into_iter().map(|path| path.join("site-packages")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn toolkits_and_packages_are_looked_into_after_the_system_and_only_where_there_is_something() {
        let root = tempfile::tempdir().unwrap();
        let place = |below: &str| {
            let file = root.path().join(below);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            file
        };
        let toolkit = place("cuda/extras/CUPTI/lib64/libcupti.so.12");
        let package = place("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13");
        let variable = |name: &str| match name {
            "CUDA_HOME" => Some(root.path().join("cuda").into_os_string()),
            "VIRTUAL_ENV" => Some(root.path().join("venv").into_os_string()),
            _ => None,
        };
        let found = candidates(&variable);
        assert_eq!(found.first(), Some(&PathBuf::from("libcupti.so.13")));
        let position = |file: &PathBuf| found.iter().position(|found| found == file).unwrap();
        assert!(NAMES.len() <= position(&toolkit) && position(&toolkit) < position(&package));
        assert!(found.iter().skip(NAMES.len()).all(|file| file.exists()));
    }

    #[test]
    fn a_named_file_is_the_only_one() {
        let named = |name: &str| (name == "STRATO_CUPTI").then(|| OsString::from("/x/libcupti.so"));
        assert_eq!(candidates(&named), [PathBuf::from("/x/libcupti.so")]);
    }
}
