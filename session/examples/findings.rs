//! What costs the time of a trace's steps, as JSON: `cargo run -p stratoscope-session --no-default-features --example findings TRACE…`

use std::{path::PathBuf, process::ExitCode};

use diagnosis::i18n::Lang;
use session::{Error, Options, Reading, Session};

fn findings(paths: &[PathBuf]) -> Result<String, Box<dyn std::error::Error>> {
    let session = Session::open(paths, &Reading::default())?;
    let diagnosed = session.examine(&Options::default())?.diagnose()?;
    let document: serde_json::Value = serde_json::from_str(&report::json::render(&diagnosed.report(), Lang::En)?)?;
    Ok(format!("{:#}", document["findings"]))
}

fn main() -> ExitCode {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    match findings(&paths) {
        Ok(findings) => {
            println!("{findings}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(if error.is::<Error>() { 3 } else { 1 })
        }
    }
}
