//! The command `strato`: parse arguments, run, turn errors into messages and exit codes.

use std::process::ExitCode;

use clap::Parser;
use stratoscope::cli::{self, Cli, exit, terminal_text::plain};

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("strato: defect: {}", plain(&panic.to_string()));
        eprintln!("strato: this should not happen with any input; please report it with the command that was run");
    }));
    match cli::run(Cli::parse()) {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(error) => {
            let code = exit::code(&error);
            if code != 0 {
                eprintln!("strato: {}", plain(&error.to_string()));
            }
            ExitCode::from(code)
        }
    }
}
