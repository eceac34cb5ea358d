//! What the Ascend profilers write of a run: a directory `*_ascend_pt` per rank, as text or as database.
//!
//! | module | owns |
//! | --- | --- |
//! | `device` | the tasks of the device, which both forms show |
//! | `host` | whose an event of the host is |
//! | `overlap` | sums and intervals that the exporter derives |
//! | `timeline` | the text form's `trace_view.json` |
//! | `tables` | its tables, and the facts of the run beside either form |
//! | `database` | the database form |
//!
//! What differs from other platforms: collectives run on a queue of their own, for which the main queue waits by events,
//! and each lies there as one operation with its waits for single peers and its transfers below it. Of the profiler's own
//! work nothing is recorded. Ranges of the program stand among the framework's operators. Shapes as in files of CANN 8.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    job::Job,
    kernel::Vendor,
    record::Work,
    run::{Run, WriteError},
};

mod database;
mod device;
mod host;
mod overlap;
mod tables;
mod timeline;

use device::Device;

/// "None" where a number of 32 bits stands.
const NONE: i64 = 4_294_967_295;

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Timeline and tables.
    Text,
    /// Database.
    Database,
}

/// A rank's run and what its device did, both by the rank's own clock.
struct Recorded {
    run: Run,
    device: Device,
    /// Starts of the calls by their connection ids.
    calls: BTreeMap<i64, i64>,
    /// Calls that launch a collective by itself, as indices of host events.
    ordered: BTreeSet<usize>,
    /// Ranks of the job.
    world: i64,
}

impl Recorded {
    /// Id of the device process in the upper bits, layer and device in the lower ones.
    fn layer_pid(&self, layer: i64, device: i64) -> i64 {
        (self.run.pid() << 10) | (layer << 5) | device
    }
}

impl Job {
    /// Writes one `*_ascend_pt` directory per rank into `directory`, each by its rank's own clock; the directories in the
    /// order of the ranks.
    pub fn write_ascend(&self, directory: &Path, form: Form) -> Result<Vec<PathBuf>, WriteError> {
        let waits: Vec<Vec<i64>> = self.collectives().into_iter().map(|collective| collective.wait_ns).collect();
        let write = |run: &Run| {
            run.expect_vendor("Ascend PyTorch Profiler", &[Vendor::Ascend], directory)?;
            let run = run.by_own_clock();
            let device = Device::of(&run, if self.ranks.len() > 1 { &waits } else { &[] });
            let calls = run.host.iter().filter_map(|event| Some((event.correlation?, event.start))).collect();
            let alone = run.ops.iter().filter(|op| op.node.is_none() && matches!(op.work, Work::Collective { .. }));
            let ordered = alone.map(|op| op.call).collect();
            let recorded = Recorded { run, device, calls, ordered, world: self.config.tensor_parallel };
            let root = directory.join(format!("simulated_{}_20251231135512000_ascend_pt", recorded.run.pid()));
            let output = root.join("ASCEND_PROFILER_OUTPUT");
            let io = |source| WriteError::Io { path: root.display().to_string(), source };
            fs::create_dir_all(&output).map_err(io)?;
            let text = || -> io::Result<()> {
                recorded.facts(&root, form)?;
                if form == Form::Text {
                    recorded.timeline(&output.join("trace_view.json"))?;
                    recorded.tables(&output)?;
                }
                Ok(())
            };
            text().map_err(io)?;
            if form == Form::Database {
                let name = format!("ascend_pytorch_profiler_{}.db", recorded.run.rank);
                recorded.database(&output.join(name))?;
            }
            Ok(root)
        };
        self.ranks.iter().map(write).collect()
    }
}
