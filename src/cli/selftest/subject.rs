//! The run that is examined: simulated, written in a vendor's own schema, and read back through the parser that reads a
//! user's file. Nothing of the simulator but that file and its true step times goes on from here.

use std::path::Path;

use anyhow::Context as _;
use model::{Ns, Trace, TraceBuilder};
use simulator::{Config, Run, kernel::Vendor, simulate};

/// A simulated run.
pub struct Subject {
    run: Run,
}

impl Subject {
    /// Simulates `config`.
    pub fn new(config: &Config) -> Self {
        Self { run: simulate(config) }
    }

    /// True mean of the steady decode steps, of the slowest rank, ns.
    pub fn step(&self) -> Ns {
        self.run.mean_decode_ns()
    }

    /// The capture as `strato diagnose` would read it. Every fourth run of a platform that Nsight Systems knows is one of
    /// its exports, the others are Kineto files.
    ///
    /// # Errors
    /// Those of writing to the directory for temporary files, and of reading back.
    pub fn capture(&self) -> anyhow::Result<Trace> {
        let directory =
            tempfile::tempdir().context("cannot make a temporary directory; set TMPDIR to a writable one")?;
        let config = &self.run.config;
        if config.vendor == Vendor::Cuda && config.seed % 4 == 3 {
            let path = directory.path().join("run.sqlite");
            self.run.write_nsys(&path)?;
            return read(&path);
        }
        let path = directory.path().join("run.json");
        self.run.write_kineto(&path)?;
        read(&path)
    }
}

fn read(path: &Path) -> anyhow::Result<Trace> {
    let mut builder = TraceBuilder::new(path.display().to_string(), "");
    let format = parsers::detect::read(path, None, &mut builder, &|_, _| {})?;
    let mut trace = builder.finish();
    trace.format = format.id.to_owned();
    Ok(trace)
}
