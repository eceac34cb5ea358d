//! The capture file (`.strato`): our SQLite schema, and the only place that knows it.
//!
//! A file holds one or more captures, each in two forms: row tables for SQL, and the columns of every track as blobs
//! (`chunk`) from which a capture is back in memory some fifty times faster than from its rows. It is written beside
//! its final place and renamed when whole, so a capture file that exists is complete.
//!
//! | module | owns |
//! | --- | --- |
//! | `open` | connections, the schema and the check that a file has it |
//! | `seal`, `reader`, `vfs` | a digest of every page behind the last one; pages held against it as they are read; what SQLite reads them through |
//! | `verify` | everything that can be wrong with a file |
//! | `replace` | a file that appears whole or not at all, and changes that wait for each other |
//! | `batch`, `statement` | bulk inserts |
//! | `save`, `load` | a capture to the file and back |
//! | `declare` | what a person says of captures, written into a file that is there |
//! | `source` | a row judged against the rest of the file |
//! | [`results`] | the rows of a diagnosis, written with a capture and read by SQL only |
//! | `chunk`, `detail`, `summary`, `job_sums`, `probe` | the form of lane blobs, of detail rows, kernel summaries, sums of a job and ceilings |
//! | `query` | SQL of people, read-only |
//!
//! The interface is synchronous: SQLite works on a thread of its own and the runtime that awaits it is private.

mod batch;
mod chunk;
mod declare;
mod detail;
mod error;
mod job_sums;
mod load;
mod open;
mod place;
mod probe;
mod query;
mod reader;
mod replace;
pub mod results;
mod rows;
mod save;
mod seal;
mod source;
mod stated;
mod statement;
mod summary;
mod verify;
mod vfs;

pub use declare::declare;
pub use error::Error;
pub use load::load;
pub use place::place;
pub use query::{Sink, Value, query};
pub use reader::is_capture;
pub use replace::temporary;
pub use results::Results;
pub use save::{save, save_results};
pub use verify::{Fault, Verification, verify};

/// `application_id` of a capture file: `STRO` in ASCII.
pub const APPLICATION_ID: u32 = u32::from_be_bytes(*b"STRO");
/// `user_version` of the schema that this program writes; it reads those before, too.
pub const SCHEMA_VERSION: u32 = 6;

#[cfg(test)]
mod tests;
