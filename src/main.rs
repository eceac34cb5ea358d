//! The command `strato`: parse arguments, run, turn errors into messages and exit codes.

use std::process::ExitCode;

use clap::Parser;
use stratoscope::cli::{self, Cli, exit, say};

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        say(&format!("strato: defect: {panic}"));
        say("strato: this should not happen with any input; please report it with the command that was run");
    }));
    match cli::run(Cli::parse()) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            let code = exit::code(&error);
            if code != 0 {
                say(&format!("strato: {}", exit::message(&error)));
            }
            ExitCode::from(code)
        }
    }
}
