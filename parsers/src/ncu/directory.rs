//! A directory of pages: scripts that measure one kernel at a time leave a file of each, all of which are one profile.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// Most entries of a directory that are looked at.
const MAX_ENTRIES: usize = 4096;
/// Bytes in which a page shows itself, behind what the program printed.
const HEAD: usize = 16 << 10;
/// What the names of further files end with that are no captures.
const NOTES: [&str; 7] = [".yaml", ".yml", ".txt", ".log", ".md", ".sh", ".ncu-rep"];
/// What the names of pages end with, that which has most digits first.
const PAGES: [&str; 4] = [".raw.csv", ".details.csv", ".metrics.csv", ".csv"];

/// The pages in a directory by what their names have in common, if it holds several and no other captures.
pub(super) fn pages(directory: &Path, is_page: impl Fn(&[u8]) -> bool) -> Option<BTreeMap<String, Vec<PathBuf>>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let mut pages = 0;
    for (i, entry) in directory.read_dir().ok()?.enumerate() {
        let path = entry.ok().filter(|_| i < MAX_ENTRIES)?.path();
        let name = path.file_name()?.to_str()?;
        let Some(stem) = PAGES.iter().find_map(|ending| name.strip_suffix(ending)) else {
            if path.is_file() && (name.starts_with('.') || NOTES.iter().any(|ending| name.ends_with(ending))) {
                continue;
            }
            return None;
        };
        if !path.is_file() || !is_page(&crate::container::head(&path, HEAD).ok()?) {
            return None;
        }
        found.entry(stem.to_owned()).or_default().push(path);
        pages += 1;
    }
    found.values_mut().for_each(|pages| pages.sort());
    (pages > 1).then_some(found)
}
