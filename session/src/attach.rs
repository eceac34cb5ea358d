//! What belongs to the captures of a session and was measured apart from them.

use std::path::{Path, PathBuf};

use model::{Conditions, Trace, trace};

use crate::{Error, open::Importer, progress};

/// Adds measurements of single kernels to every capture.
///
/// # Errors
/// When a file cannot be read, or holds no measurement of single kernels.
pub(crate) fn kernel_metrics(files: &[PathBuf], traces: &mut [Trace], importer: &Importer<'_>) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    let reading = importer.beside();
    let importer = &Importer::new(&reading, importer.packs())?;
    for file in files {
        for part in importer.captures(std::slice::from_ref(file))? {
            if !part.summaries.iter().any(|summary| summary.conditions == Conditions::Isolated) {
                return Err(Error::Request(format!(
                    "'{}' ({}) holds no measurements of single kernels; give a CSV page of Nsight Compute or the output of msprof op",
                    file.display(),
                    part.format
                )));
            }
            traces.iter_mut().for_each(|whole| trace::attach(whole, &part));
        }
    }
    Ok(())
}

/// Adds measured ceilings to every capture of the same device.
///
/// # Errors
/// When the file cannot be read, or holds no ceilings.
pub(crate) fn probes(file: Option<&Path>, traces: &mut [Trace], importer: &Importer<'_>) -> Result<(), Error> {
    let Some(file) = file else { return Ok(()) };
    let reading = importer.beside();
    let parts = Importer::new(&reading, importer.packs())?.captures(&[file.to_owned()])?;
    let Some(part) = parts.iter().find(|part| !part.probes.rows.is_empty()) else {
        return Err(Error::Request(format!(
            "'{}' holds no measured ceilings; make them on the machine of the run: strato probe --save FILE",
            file.display()
        )));
    };
    for whole in traces {
        if !trace::attach_probes(whole, part) {
            let (file, run) = (file.display(), &whole.source);
            // The capture says it, too.
            progress::note(&format!(
                "the ceilings in '{file}' are those of another device than that of '{run}'; left out"
            ));
        }
    }
    Ok(())
}
