//! Writes the trace files of a simulated job of several ranks, for benchmarks and for trying things out.

use std::{env, path::PathBuf, process::ExitCode};

use simulator::{Config, config::Mode, simulate_job};

const USAGE: &str = "usage: make-job DIRECTORY [RANKS [STEPS [SEED]]]";

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let Some(directory) = arguments.next().map(PathBuf::from) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse::<u64>());
    let (Ok(ranks), Ok(steps), Ok(seed)) = (number(8), number(50), number(7)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let ranks = usize::try_from(ranks).unwrap_or(1).clamp(1, 64);
    let mut config = Config::draw_job(seed, ranks);
    (config.mode, config.steps) = (Mode::Eager, i64::try_from(steps).unwrap_or(50).clamp(1, 100_000));
    (config.framework_ops, config.python_frames) = (true, false);
    match simulate_job(&config).write_kineto(&directory) {
        Ok(files) => {
            files.iter().for_each(|file| println!("{}", file.display()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("make-job: {error}");
            ExitCode::FAILURE
        }
    }
}
