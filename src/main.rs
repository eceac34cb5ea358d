//! The command `strato`: parse arguments, run, turn errors into messages and exit codes.

use std::process::ExitCode;

use clap::Parser;
use stratoscope::cli::{self, Cli, exit, say};

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        say(&format!("strato: defect: {panic}"));
        say("strato: this should not happen with any input; please report it with the command that was run");
    }));
    bound_threads();
    cli::give_memory_back();
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

/// Most threads that work side by side, whatever RAYON_NUM_THREADS says: more than the cores of any one machine that runs this, and so
/// few that starting them takes no time.
const MOST_THREADS: usize = 512;

/// Tens of thousands of threads take minutes to start and do not work any faster.
fn bound_threads() {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|asked| asked.parse::<usize>().ok());
    if asked.is_some_and(|asked| asked > MOST_THREADS) {
        // Where the pool is there already, it has what it has.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(MOST_THREADS).build_global();
    }
}
