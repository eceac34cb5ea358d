//! The run that is examined: simulated, written in a vendor's own schema, and read back through the parser that reads a
//! user's file. Nothing of the simulator but that file and its true step times goes on from here.

use std::path::Path;

use anyhow::Context as _;
use model::{Ns, Trace};
use simulator::{Config, FaultKind, Job, config::Annotation, kernel::Vendor, simulate_job};

use crate::cli::{progress::Bar, source};

/// A simulated run.
pub struct Subject {
    job: Job,
}

impl Subject {
    /// Simulates `config`.
    pub fn new(config: &Config) -> Self {
        Self { job: simulate_job(config) }
    }

    /// True mean of the steady decode steps, of the slowest rank, ns.
    pub fn step(&self) -> Ns {
        self.job.ranks.iter().map(|run| run.mean_decode_ns()).max().unwrap_or(0)
    }

    /// The capture as `strato diagnose` would read it, written to `directory`: an export of Nsight Systems or Kineto files.
    ///
    /// # Errors
    /// Those of writing to the directory, and of reading back.
    pub fn capture(&self, directory: &Path) -> anyhow::Result<Trace> {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot make '{}'; name a writable directory", directory.display()))?;
        if is_export(&self.job.config) {
            self.job.write_nsys(&directory.join("run.sqlite"))?;
        } else {
            self.job.write_kineto(directory)?;
        }
        let traces = source::open(&[directory.to_owned()], None, &Bar::hidden())?;
        traces
            .into_iter()
            .next()
            .context("the simulated capture was read back as nothing; please report it with the seed")
    }
}

/// Whether the capture is an export of Nsight Systems: that of every fourth run of a platform that it knows.
fn is_export(config: &Config) -> bool {
    config.vendor == Vendor::Cuda && config.seed % 4 == 3
}

/// Whether the capture holds what tells `kind` from everything that looks like it. A scheduler that takes long and one that
/// has no request both leave an idle host between steps, unless its ranges are annotated or its requests are counted, and
/// Nsight Systems has no counters of the program.
pub fn tells(config: &Config, kind: FaultKind) -> bool {
    let counted = config.counters && !is_export(config);
    kind != FaultKind::Scheduling || counted || config.annotation == Annotation::Vllm
}
