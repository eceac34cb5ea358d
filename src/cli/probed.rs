//! Measured ceilings that belong to the traces of a command: read from a capture of `strato probe`, and added to them.

use std::path::{Path, PathBuf};

use model::{Trace, trace};

use super::{exit::Usage, progress::Bar, say, source};

/// Option of the subcommands that judge a run by what its machine can do.
#[derive(Debug, clap::Args)]
pub struct Probed {
    /// Measured ceilings of the machine: what 'strato probe --save' wrote there.
    #[arg(long = "probe", visible_alias = "probes", value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Probed {
    /// The file, which is an input like the traces.
    pub fn files(&self) -> &[PathBuf] {
        self.file.as_slice()
    }

    /// Adds the ceilings to every trace of the same device.
    ///
    /// # Errors
    /// Those of [`attach`].
    pub fn attach(&self, traces: &mut [Trace], bar: &Bar) -> anyhow::Result<()> {
        self.file.as_deref().map_or(Ok(()), |file| attach(file, traces, bar))
    }
}

/// Adds the ceilings in a file to every trace of the same device.
///
/// # Errors
/// When the file cannot be read, or holds no ceilings.
pub fn attach(file: &Path, traces: &mut [Trace], bar: &Bar) -> anyhow::Result<()> {
    let parts = source::open(&[file.to_owned()], None, bar)?;
    let Some(part) = parts.iter().find(|part| !part.probes.rows.is_empty()) else {
        return Err(Usage(format!(
            "'{}' holds no measured ceilings; make them on the machine of the run: strato probe --save FILE",
            file.display()
        ))
        .into());
    };
    for whole in traces {
        if !trace::attach_probes(whole, part) {
            let (file, run) = (file.display(), &whole.source);
            say(&format!(
                "strato: the ceilings in '{file}' are those of another device than that of '{run}'; left out"
            ));
        }
    }
    Ok(())
}
