//! `strato completions`: completion scripts for shells.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Cli, exit::Exit};

/// Write the completion script of a shell to stdout.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Shell to complete in.
    shell: Shell,
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<Exit> {
    // The generator panics when its output fails; memory does not.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "strato", &mut script);
    io::stdout().write_all(&script)?;
    Ok(Exit::Done)
}
