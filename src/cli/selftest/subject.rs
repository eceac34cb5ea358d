//! The run that is examined: simulated, written in a vendor's own schema, and read back through the parser that reads a
//! user's file. Nothing of the simulator but that file and its true step times goes on from here.

use anyhow::Context as _;
use model::{Ns, Trace};
use simulator::{Config, Job, kernel::Vendor, simulate_job};

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

    /// The capture as `strato diagnose` would read it. Every fourth run of a platform that Nsight Systems knows is one of
    /// its exports, the others are Kineto files.
    ///
    /// # Errors
    /// Those of writing to the directory for temporary files, and of reading back.
    pub fn capture(&self) -> anyhow::Result<Trace> {
        let directory =
            tempfile::tempdir().context("cannot make a temporary directory; set TMPDIR to a writable one")?;
        let config = &self.job.config;
        if config.vendor == Vendor::Cuda && config.seed % 4 == 3 {
            self.job.write_nsys(&directory.path().join("run.sqlite"))?;
        } else {
            self.job.write_kineto(directory.path())?;
        }
        let traces = source::open(&[directory.path().to_owned()], None, &Bar::hidden())?;
        traces
            .into_iter()
            .next()
            .context("the simulated capture was read back as nothing; please report it with the seed")
    }
}
