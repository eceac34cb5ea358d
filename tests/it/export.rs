//! What `strato export` writes, read back by other eyes: as JSON, by Perfetto's `trace_processor`, and by a browser.

mod command;
mod page;
mod perfetto;
mod picture;
mod trace_processor;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// A simulated capture that comes with the program.
fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-traces").join(name)
}

/// A program of others that the environment names, or that one of `names` finds.
fn program(variable: &str, names: &[&str]) -> PathBuf {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let found = || {
        let path = std::env::var_os("PATH")?;
        let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
        names.iter().flat_map(|name| places.iter().map(move |place| place.join(name))).find(|file| file.is_file())
    };
    let missing = || panic!("{variable} has to name a program where there is no {} on the PATH", names.join(", "));
    named.or_else(found).unwrap_or_else(missing)
}

/// What a program prints when it ends well.
fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
