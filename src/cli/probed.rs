//! Measured ceilings that belong to the traces of a command: read from a capture of `strato probe`, and added to them.

use std::path::{Path, PathBuf};

use model::{Trace, trace};

use super::{exit::Usage, progress::Bar, source};

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
            // The capture says it, too: that is what the terminal interface shows.
            bar.note(&format!(
                "strato: the ceilings in '{file}' are those of another device than that of '{run}'; left out"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use model::{Device, ProbeRow, ProbeUnit, Reading, Setting, TraceBuilder, TraceSink};

    use super::*;
    use crate::tui::Job;
    use store;

    fn trace(device: &str) -> Trace {
        let mut builder = TraceBuilder::new(device, "t");
        let (process, name) = (builder.process(0), Some(builder.intern(device)));
        builder.device(Device { process, ordinal: 0, name, vendor: None, cores: None, memory_bytes: None });
        builder.finish()
    }

    /// What is printed under the terminal interface breaks its picture: there the capture tells it.
    #[test]
    fn ceilings_of_another_device_are_not_printed_under_the_terminal_interface() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("probes.strato");
        let mut probed = trace("their device");
        probed.probes.rows.push(ProbeRow {
            probe: "read".to_owned(),
            metric: "bandwidth".to_owned(),
            unit: ProbeUnit::BytesPerSecond,
            setting: Setting::default(),
            value: Reading::Unavailable("not measured here".to_owned()),
        });
        store::save(&file, &[probed]).unwrap();
        let mut traces = [trace("our device")];
        let (sender, receiver) = std::sync::mpsc::channel();
        let job = Job::start(move |progress| {
            let bar = Bar::of(progress);
            attach(&file, &mut traces, &bar)?;
            sender.send((bar.note("nothing"), traces[0].stats.clone())).unwrap();
            anyhow::Ok(())
        });
        let (was_said, stats) = receiver.recv().unwrap();
        drop(job.unwrap());
        assert!(!was_said, "the interface shows the work");
        assert!(stats.iter().any(|stat| stat.name == "probes.other_device"), "{stats:?}");
        assert!(Bar::hidden().note("strato: a line"));
    }
}
