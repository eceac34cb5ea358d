//! What the program prints, byte for byte as it was read and accepted: `tests/golden`. `STRATO_BLESS=1` accepts what comes out
//! now, which is then reviewed as a difference of that folder.
//!
//! Every page is made by the program itself from a file, as people have it. Simulated captures are written when the test runs;
//! those of real devices lie where `STRATO_CORPUS` says.

mod coverage;
mod faults;
mod inputs;
mod pairs;
mod real;

use std::path::{Path, PathBuf};

use crate::common::printed;

/// The folder of accepted pages.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn accepts() -> bool {
    std::env::var_os("STRATO_BLESS").is_some_and(|value| value == "1")
}

/// Compares a page with the one that was accepted; says where they begin to differ.
fn held_against(name: &str, page: &str) -> Result<(), String> {
    let accepted = folder().join(name);
    if accepts() {
        std::fs::write(&accepted, page).unwrap();
        return Ok(());
    }
    let old = std::fs::read_to_string(&accepted).map_err(|error| format!("{name}: {error}"))?;
    if old == page {
        return Ok(());
    }
    let now = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&now, page).unwrap();
    let line = old.lines().zip(page.lines()).find(|(old, new)| old != new);
    let line = line.map_or("one ends before the other".into(), |(old, new)| format!("- {old}\n+ {new}"));
    Err(format!("{name}; all of it is in {}:\n{line}", now.display()))
}

/// Fails for all pages that are not as accepted.
fn all_hold(pages: impl IntoIterator<Item = Result<(), String>>) {
    let different: Vec<String> = pages.into_iter().filter_map(Result::err).collect();
    assert!(different.is_empty(), "accept with STRATO_BLESS=1 after reading:\n{}", different.join("\n"));
}

/// The report on a file of a folder; it does not say where that lies.
fn report(folder: &Path, file: &str, more: &[&str]) -> String {
    let page = printed(&[&["diagnose", "--lang", "en", file], more].concat(), folder);
    assert!(!page.contains(&*folder.to_string_lossy()), "{file}: the report depends on where the capture lies");
    page
}
