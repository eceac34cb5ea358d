//! Options of what is read, and how.

use std::path::PathBuf;

use model::{Ceiling, Work};

use super::memory;

/// Options of every subcommand that reads traces.
#[derive(Debug, clap::Args)]
pub struct Source {
    /// Read every trace file as this format instead of detecting it from the content.
    #[arg(long = "as", value_name = "FORMAT", value_parser = clap::builder::PossibleValuesParser::new(parsers::REGISTRY.iter().map(|f| f.id)))]
    as_format: Option<String>,
    /// Directory with further platform packs (may be given several times; the first one wins).
    #[arg(long, value_name = "DIR")]
    pack: Vec<PathBuf>,
    /// Trace of the same process while its graphs were captured: names, shapes and modules of replayed kernels are taken
    /// from it.
    #[arg(long, value_name = "PATH")]
    graph_capture: Option<PathBuf>,
    /// Most memory that captures may take, such as 8G or 500M; what holds more is refused [default: four fifths of what this
    /// machine has left].
    #[arg(long, value_name = "SIZE", value_parser = memory::size)]
    max_memory: Option<u64>,
}

impl Source {
    /// The memory that this work with captures may take.
    pub fn memory(&self, work: Work) -> Ceiling {
        let most = self.max_memory.or_else(memory::for_captures);
        most.map(|most| Ceiling::of_process(most, work)).unwrap_or_default()
    }

    /// What a session is told of it.
    pub fn reading(&self) -> session::Reading {
        session::Reading {
            format: self.as_format.clone(),
            packs: self.pack.clone(),
            graph_capture: self.graph_capture.clone(),
            memory: self.memory(Work::Diagnose),
            ..session::Reading::default()
        }
    }
}

/// Option of the subcommands that read traces of a run.
#[derive(Debug, clap::Args)]
pub struct KernelMetrics {
    /// Measurements of kernels of the traces, taken apart from the run: a CSV page of Nsight Compute or the output of msprof
    /// op (may be given several times).
    #[arg(long = "kernel-metrics", value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// Option of the subcommands that judge a run by what its machine can do.
#[derive(Debug, clap::Args)]
pub struct Probed {
    /// Measured ceilings of the machine: what 'strato probe --save' wrote there.
    #[arg(long = "probe", visible_alias = "probes", value_name = "FILE")]
    pub file: Option<PathBuf>,
}
