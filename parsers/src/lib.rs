//! Trace files of every supported profiler, read into the vocabulary of `model`.
//!
//! One module per format; a format is a [`Format`] in [`REGISTRY`] and knows no other format. Detection goes by content,
//! never by name alone. Readers stream: memory is bounded by what is kept, not by the size of the file.

use std::path::Path;

use model::TraceSink;

mod bare_json;
pub mod container;
pub mod detect;
pub mod device_text;
mod environment;
mod error;
pub mod kineto;
mod lines;
pub mod link_test;
pub mod log;
pub mod nsys;
mod overhead;
pub mod serving;

pub use error::{Place, ReadError};

/// How sure a format is that a file is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    /// Not this format.
    No,
    /// Could be this format (a bare JSON array of events).
    Possible,
    /// Has this format's own marks.
    Certain,
}

/// What detection may look at: the path and the first bytes, decompressed where the file is compressed.
pub struct Head<'a> {
    /// The file.
    pub path: &'a Path,
    /// First bytes of the content (up to 64 KiB), after inflating gzip or zstd.
    pub bytes: &'a [u8],
}

/// Called now and then with bytes (or rows) done and in total; total 0 is unknown.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// A trace format.
pub struct Format {
    /// Id used by `--as` and kept in the capture: `kineto`, `nsys`, `nsys-rep`.
    pub id: &'static str,
    /// What it is, for people.
    pub name: &'static str,
    /// Whether a file is of this format.
    pub matches: fn(&Head<'_>) -> Match,
    /// Reads the file into the sink. What can be read of a damaged file is read and the loss is counted in the sink;
    /// an error means that nothing useful could be read.
    pub read: fn(&Path, &mut dyn TraceSink, Progress<'_>) -> Result<(), ReadError>,
}

/// Every format, one line each.
pub const REGISTRY: &[Format] =
    &[kineto::FORMAT, nsys::FORMAT, nsys::REPORT_FORMAT, log::FORMAT, serving::FORMAT, link_test::FORMAT];

/// The format with this id.
pub fn format(id: &str) -> Option<&'static Format> {
    REGISTRY.iter().find(|f| f.id == id)
}
