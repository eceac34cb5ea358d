//! Trace files of every supported profiler, read into the vocabulary of `model`.
//!
//! One module per format; a format is a [`Format`] in [`REGISTRY`] and knows no other format. Detection goes by content,
//! never by name alone. Readers stream: memory is bounded by what is kept, not by the size of the file.
//!
//! The feature `sqlite`, which is on by default, reads databases: exports of Nsight Systems, rocpd, and the databases of the
//! Ascend profilers. Without it no SQLite is linked, and such a file is declined with [`ReadError::WithoutSqlite`].

use std::path::{Path, PathBuf};

use model::TraceSink;

pub mod ascend;
mod bare_json;
mod chrome_event;
pub mod container;
mod content;
mod csv_table;
pub mod detect;
pub mod device_text;
mod environment;
mod error;
mod exported;
mod hip;
#[cfg(feature = "sqlite")]
mod hip_database;
mod hip_events;
pub mod hipprof;
mod json;
mod json_walk;
mod kernel_sums;
pub mod kineto;
mod lanes;
mod lines;
pub mod link_test;
pub mod log;
pub mod mcprofiler;
pub mod msprof_op;
mod nccl;
pub mod ncu;
pub mod not_read;
#[cfg(feature = "sqlite")]
pub mod nsys;
pub mod nsys_stats;
pub mod nvprof;
mod options;
pub mod otlp;
mod overhead;
mod printed_table;
pub mod rocprof;
pub mod rocprof_compute;
mod rocprof_stats;
pub mod rocprofv3;
#[cfg(feature = "sqlite")]
pub mod rpd;
pub mod rpd_json;
pub mod serving;
mod simulated;
mod sqlite;
pub mod tf_timeline;
pub mod torch_table;
pub mod trtexec;
pub mod xplane;

pub use error::{Place, ReadError};
pub use options::ReadOptions;

/// How sure a format is that a file is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    /// Not this format.
    No,
    /// Could be this format (a bare JSON array of events).
    Possible,
    /// Has this format's own marks: keys with values, columns, tables that no other format has.
    Certain,
    /// Says itself which program wrote it, which no mark of another format outweighs.
    Named,
}

/// What detection may look at: the path and the first bytes, decompressed where the file is compressed.
pub struct Head<'a> {
    /// The file, or a directory that may be one capture as a whole.
    pub path: &'a Path,
    /// First bytes of the content (up to 64 KiB), after inflating gzip or zstd; none of a directory.
    pub bytes: &'a [u8],
    /// Expressions that know the lines of logs.
    pub patterns: &'a log::Patterns,
}

impl<'a> Head<'a> {
    /// What detection may look at where no log pattern of the caller matters.
    pub fn new(path: &'a Path, bytes: &'a [u8]) -> Self {
        Self { path, bytes, patterns: log::Patterns::built_in() }
    }

    /// Whether it is a notebook (`.ipynb`), in whose outputs tables stand line by line.
    fn is_notebook(&self) -> bool {
        let has = |what: &[u8]| memchr::memmem::find(self.bytes, what).is_some();
        self.bytes.trim_ascii_start().starts_with(b"{") && has(b"\"cell_type\"")
    }

    /// Whether it is a text in which a table may stand somewhere: no database, and no document of JSON.
    fn is_text(&self) -> bool {
        let mut marks = self.bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
        let json = match (marks.next(), marks.next()) {
            (Some(b'{'), next) => matches!(next, Some(b'"' | b'}')),
            (Some(b'['), next) => matches!(next, Some(b'{' | b'[' | b'"' | b']')),
            _ => false,
        };
        !json && !self.bytes.contains(&0)
    }
}

/// Called now and then with bytes (or rows) done and in total; total 0 is unknown.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// A trace format.
pub struct Format {
    /// Id used by `--as` and kept in the capture: `kineto`, `nsys`, `nsys-rep`.
    pub id: &'static str,
    /// What it is, for people.
    pub name: &'static str,
    /// Whether a file, or a directory with all that lies in it, is of this format.
    pub matches: fn(&Head<'_>) -> Match,
    /// Reads the file or directory into the sink. What can be read of a damaged file is read and the loss is counted in the sink;
    /// an error means that nothing useful could be read.
    pub read: fn(&Path, &mut dyn TraceSink, &ReadOptions<'_>) -> Result<(), ReadError>,
    /// The other file whose reading gives this one's capture too, where several files are one: of a directory that holds
    /// both, only that one is read.
    pub lead: fn(&Path) -> Option<PathBuf>,
}

/// The [`Format::lead`] of a file that is a whole capture.
fn alone(_: &Path) -> Option<PathBuf> {
    None
}

/// Every format, one line each. Order matters only where marks are shared: torch_npu's timelines hold the categories of the
/// framework too, so Ascend's stand before Kineto's, and times in quotes are rocmProfileData's too.
pub const REGISTRY: &[Format] = &[
    rpd_json::FORMAT,
    ascend::FORMAT,
    ascend::TABLE_FORMAT,
    ascend::TOTALS_FORMAT,
    ascend::CLUSTER_FORMAT,
    kineto::FORMAT,
    #[cfg(feature = "sqlite")]
    nsys::FORMAT,
    #[cfg(feature = "sqlite")]
    nsys::REPORT_FORMAT,
    nsys_stats::FORMAT,
    nvprof::FORMAT,
    ncu::FORMAT,
    msprof_op::FORMAT,
    mcprofiler::FORMAT,
    rocprof::FORMAT,
    #[cfg(feature = "sqlite")]
    rocprof::DATABASE_FORMAT,
    rocprof_stats::FORMAT,
    rocprof_compute::FORMAT,
    rocprofv3::FORMAT,
    // Before rocpd, whose tables have the same prefix.
    #[cfg(feature = "sqlite")]
    rpd::FORMAT,
    #[cfg(feature = "sqlite")]
    rocprofv3::DATABASE_FORMAT,
    hipprof::FORMAT,
    #[cfg(feature = "sqlite")]
    hipprof::DATABASE_FORMAT,
    xplane::FORMAT,
    tf_timeline::FORMAT,
    torch_table::FORMAT,
    trtexec::FORMAT,
    otlp::FORMAT,
    log::FORMAT,
    serving::FORMAT,
    link_test::FORMAT,
    ascend::DECLINED_FORMAT,
    not_read::FORMAT,
];

/// The ids of the formats that are read, in the order of [`REGISTRY`]: without those that only say of a file what it is and what
/// to give instead.
pub fn readable() -> impl Iterator<Item = &'static str> {
    let declined = [ascend::DECLINED_FORMAT.id, not_read::FORMAT.id];
    REGISTRY.iter().map(|format| format.id).filter(move |id| !declined.contains(id))
}

/// The format with this id.
pub fn format(id: &str) -> Option<&'static Format> {
    REGISTRY.iter().find(|f| f.id == id)
}
