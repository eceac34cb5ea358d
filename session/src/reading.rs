//! What a session reads, and how.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use diagnosis::platform::{MAX_CONFIG, ModelShape, Packs};
use model::{Ceiling, Ns};

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
    /// The model that ran: the name of a known one, or the path of its `config.json`.
    pub model: Option<String>,
    /// What makes Unix nanoseconds of the times of files that do not say it.
    pub unix_offset: Option<Ns>,
    /// How much memory the captures that are imported may take together; no ceiling unless one is set.
    pub memory: Ceiling,
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

    /// The shape of the model that ran, if it is said.
    ///
    /// # Errors
    /// A name that no pack knows, and a file that is no configuration of a model.
    pub(crate) fn model(&self, packs: &Packs) -> Result<Option<Arc<ModelShape>>, Error> {
        let Some(said) = &self.model else { return Ok(None) };
        if let Some(known) = packs.model(said).filter(|_| !Path::new(said).exists()) {
            return Ok(Some(Arc::new(known.clone())));
        }
        let mut path = PathBuf::from(said);
        if path.is_dir() {
            path.push("config.json");
        }
        let refused = |why: String| Error::Request(format!("'{}' says no model's shape: {why}", path.display()));
        let text = match input::text(&path, MAX_CONFIG as u64) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Request(format!(
                    "no model is known as '{said}', and no such file is there; give the path of its config.json"
                )));
            }
            Err(error) => return Err(refused(error.to_string())),
        };
        let shape = ModelShape::from_config(said, &text).map_err(|error| refused(error.to_string()))?;
        Ok(Some(Arc::new(shape)))
    }
}
