//! What the Ascend profilers write of a run: a directory `*_ascend_pt` per rank, as text or as database.
//!
//! | module | owns |
//! | --- | --- |
//! | `device` | the tasks of the device, which both forms show |
//! | `host` | whose an event of the host is |
//! | `overlap` | intervals that the exporter derives |
//! | `sums` | what it sums up of collectives and steps |
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
mod sums;
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

/// How much the profiler was asked to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What production can afford. The timeline loses the calls of CANN and the tasks within collectives as such, so that only
    /// arrows say when anything was launched; the database keeps both and types no operator, no collective and no task within
    /// one. As in files of `torch_npu` 2.1 at this level, which say neither what copies move nor how many ranks there are.
    Zero,
    /// The default one.
    One,
}

/// What the profiler is asked to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its form.
    pub form: Form,
    /// How much was recorded.
    pub level: Level,
    /// Ranks of which nothing was kept but what the exporter sums up.
    pub sums_of: &'static [usize],
}

impl From<Form> for Output {
    fn from(form: Form) -> Self {
        Self { form, level: Level::One, sums_of: &[] }
    }
}

/// When something was called.
struct Called {
    start: i64,
    /// Start of the innermost operator or range around the call, where that was recorded.
    operator: Option<i64>,
}

/// A rank's run and what its device did, both by the rank's own clock.
struct Recorded {
    run: Run,
    device: Device,
    /// The calls by their connection ids.
    calls: BTreeMap<i64, Called>,
    /// Calls that launch a collective by itself, as indices of host events.
    ordered: BTreeSet<usize>,
    /// Ranks of the job.
    world: i64,
    level: Level,
}

impl Recorded {
    /// Whether the profiler took down what is too much for production.
    fn is_detailed(&self) -> bool {
        self.level == Level::One
    }

    /// Id of the device process in the upper bits, layer and device in the lower ones.
    fn layer_pid(&self, layer: i64, device: i64) -> i64 {
        (self.run.pid() << 10) | (layer << 5) | device
    }
}

impl Job {
    /// Writes one `*_ascend_pt` directory per rank into `directory`, each by its rank's own clock; the directories in the
    /// order of the ranks.
    pub fn write_ascend(&self, directory: &Path, output: impl Into<Output>) -> Result<Vec<PathBuf>, WriteError> {
        let output = output.into();
        let waits: Vec<Vec<i64>> = self.collectives().into_iter().map(|collective| collective.wait_ns).collect();
        let write = |run: &Run| {
            run.expect_vendor("Ascend PyTorch Profiler", &[Vendor::Ascend], directory)?;
            let recorded = Recorded::of(run, if self.ranks.len() > 1 { &waits } else { &[] }, output.level);
            let root = directory.join(format!("simulated_{}_20251231135512000_ascend_pt", recorded.run.pid()));
            recorded.write(&root, output).map(|()| root)
        };
        self.ranks.iter().map(write).collect()
    }
}

impl Recorded {
    fn of(run: &Run, waits: &[Vec<i64>], level: Level) -> Self {
        let run = run.by_own_clock();
        let device = Device::of(&run, waits);
        let alone = run.ops.iter().filter(|op| op.node.is_none() && matches!(op.work, Work::Collective { .. }));
        let ordered = alone.map(|op| op.call).collect();
        let stages = run.config.serving.map_or(1, |serving| serving.stages);
        let world = run.config.tensor_parallel.max(1) * i64::try_from(stages).unwrap_or(1).max(1);
        Self { calls: host::calls(&run), device, ordered, world, level, run }
    }

    fn write(&self, root: &Path, asked: Output) -> Result<(), WriteError> {
        let output = root.join("ASCEND_PROFILER_OUTPUT");
        let sums_only = asked.sums_of.contains(&self.run.rank);
        let text = || -> io::Result<()> {
            fs::create_dir_all(&output)?;
            self.facts(root, asked.form)?;
            if asked.form == Form::Database {
                return Ok(());
            }
            self.parts(&output)?;
            if self.is_detailed() {
                self.communication(&output)?;
            }
            if sums_only {
                return Ok(());
            }
            self.timeline(&output.join("trace_view.json"))?;
            self.operators(&output)
        };
        text().map_err(|source| WriteError::Io { path: root.display().to_string(), source })?;
        if asked.form == Form::Database {
            self.analysis(&output)?;
            if !sums_only {
                self.database(&output.join(format!("ascend_pytorch_profiler_{}.db", self.run.rank)))?;
            }
        }
        Ok(())
    }
}
