//! What a session reads, and how.

use std::path::PathBuf;

use diagnosis::platform::Packs;
use model::Ns;

use crate::{Cancel, Error};

/// How the files of a session are read. [`Reading::default`] detects every format and knows the packs of the program.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Id of the format of every trace file; `None` detects it from the content.
    pub format: Option<String>,
    /// Directories with further platform packs; the first one wins.
    pub packs: Vec<PathBuf>,
    /// Trace of the same process while its graphs were captured: replayed kernels get names, shapes and modules from it.
    pub graph_capture: Option<PathBuf>,
    /// Measurements of single kernels, taken apart from the run.
    pub kernel_metrics: Vec<PathBuf>,
    /// Measured ceilings of the machine.
    pub probes: Option<PathBuf>,
    /// What makes Unix nanoseconds of the times of files that do not say it.
    pub unix_offset: Option<Ns>,
    /// Calls the session off.
    pub cancel: Cancel,
}

impl Reading {
    /// The packs that the files are read by.
    ///
    /// # Errors
    /// When a pack cannot be used.
    pub fn packs(&self) -> Result<Packs, Error> {
        Packs::load(&self.packs).map_err(|e| Error::request(e.to_string()))
    }
}
