//! The run that is examined: simulated, written in a vendor's own schema, and read back through the parser that reads a
//! user's file. Nothing of the simulator but that file and its true step times goes on from here.

use std::path::Path;

use anyhow::Context as _;
use clap::ValueEnum;
use model::{Ns, Trace};
use simulator::{AscendForm, Config, FaultKind, Job, WriteError, config::Annotation, kernel::Vendor, simulate_job};

use session::{Reading, Session};

/// A format that runs are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// PyTorch's JSON.
    Kineto,
    /// Export of Nsight Systems.
    Nsys,
    /// Directories of the Ascend PyTorch profiler, as text.
    Ascend,
    /// The same as databases.
    AscendDb,
    /// Database of rocprofv3.
    Rocpd,
    /// JSON of hipprof.
    Hipprof,
}

impl Form {
    /// The same run on a platform that the format knows.
    pub fn platform(self, config: Config) -> Config {
        let vendor = match self {
            Self::Kineto if config.vendor != Vendor::Ascend => config.vendor,
            Self::Kineto | Self::Nsys => Vendor::Cuda,
            Self::Ascend | Self::AscendDb => Vendor::Ascend,
            Self::Rocpd | Self::Hipprof => Vendor::Rocm,
        };
        Config { vendor, ..config }
    }

    /// What a run is written as where nothing is asked for: every fourth one of a platform that Nsight Systems knows is one
    /// of its exports, the others are Kineto files.
    pub fn usual(config: &Config) -> Self {
        if config.vendor == Vendor::Cuda && config.seed % 4 == 3 { Self::Nsys } else { Self::Kineto }
    }

    fn write(self, job: &Job, directory: &Path) -> Result<(), WriteError> {
        match self {
            Self::Kineto => job.write_kineto(directory).map(drop),
            Self::Nsys => job.write_nsys(&directory.join("run.sqlite")),
            Self::Ascend => job.write_ascend(directory, AscendForm::Text).map(drop),
            Self::AscendDb => job.write_ascend(directory, AscendForm::Database).map(drop),
            Self::Rocpd => job.write_rocpd(&directory.join("run_results.db")),
            Self::Hipprof => job.write_hipprof(&directory.join("run.json")),
        }
    }
}

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

    /// The capture as `strato diagnose` would read it, written to `directory`.
    ///
    /// # Errors
    /// Those of writing to the directory, and of reading back.
    pub fn capture(&self, directory: &Path, form: Form) -> anyhow::Result<Trace> {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot make '{}'; name a writable directory", directory.display()))?;
        form.write(&self.job, directory)?;
        let traces = Session::open(&[directory.to_owned()], &Reading::default())?.into_captures();
        traces
            .into_iter()
            .next()
            .context("the simulated capture was read back as nothing; please report it with the seed")
    }
}

/// Whether the capture holds what tells `kind` from everything that looks like it. A scheduler that takes long, a host that
/// stalls and an engine that has no request all leave an idle host between steps, unless requests are counted, and only Kineto
/// files hold counters of the program. What the scheduler takes shows by its ranges too, and a stall by the ranks that wait for
/// it where there are several.
pub fn tells(config: &Config, form: Form, kind: FaultKind) -> bool {
    let counted = config.counters && form == Form::Kineto;
    match kind {
        FaultKind::Scheduling => counted || config.annotation == Annotation::Vllm,
        FaultKind::Stalls => counted || config.ranks > 1,
        _ => true,
    }
}
