//! Writes the sample captures and their truths into a directory, `sample-traces` unless another is named.

use std::{env, path::PathBuf, process::ExitCode};

use simulator::samples;

fn main() -> ExitCode {
    let directory = env::args_os().nth(1).map_or_else(|| PathBuf::from("sample-traces"), PathBuf::from);
    match samples::write(&directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("make-samples: {error}");
            ExitCode::FAILURE
        }
    }
}
