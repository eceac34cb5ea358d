//! `strato man`: manual pages from the one definition of the command line.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::CommandFactory;

use super::{
    Cli,
    exit::{Exit, Usage},
};

/// Write the manual page to stdout, or all pages into a directory.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Directory to write 'strato.1' and a page for each subcommand into.
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<Exit> {
    match arguments.directory {
        Some(directory) => {
            std::fs::create_dir_all(&directory)
                .and_then(|()| clap_mangen::generate_to(Cli::command(), &directory))
                .map_err(|e| {
                    Usage(format!("cannot write to '{}': {e}; name a writable directory", directory.display()))
                })?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            io::stdout().write_all(&page)?;
        }
    }
    Ok(Exit::Done)
}
