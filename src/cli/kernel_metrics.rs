//! Measurements of single kernels that belong to the traces of a command: read like traces, and added to them.

use std::path::PathBuf;

use model::{Conditions, Trace, trace};

use super::{exit::Usage, progress::Bar, source};

/// Option of the subcommands that read traces of a run.
#[derive(Debug, clap::Args)]
pub struct KernelMetrics {
    /// Measurements of kernels of the traces, taken apart from the run: a CSV page of Nsight Compute or the output of msprof
    /// op (may be given several times).
    #[arg(long = "kernel-metrics", value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl KernelMetrics {
    /// The files, which are inputs like the traces.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Adds the measurements to every trace.
    ///
    /// # Errors
    /// When a file cannot be read, or holds no measurement.
    pub fn attach(&self, traces: &mut [Trace], bar: &Bar) -> anyhow::Result<()> {
        for file in &self.files {
            for part in source::open(std::slice::from_ref(file), None, bar)? {
                if !part.summaries.iter().any(|summary| summary.conditions == Conditions::Isolated) {
                    return Err(Usage(format!(
                        "'{}' ({}) holds no measurements of single kernels; give a CSV page of Nsight Compute or the output of msprof op",
                        file.display(),
                        part.format
                    ))
                    .into());
                }
                traces.iter_mut().for_each(|whole| trace::attach(whole, &part));
            }
        }
        Ok(())
    }
}
