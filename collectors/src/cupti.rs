//! What CUDA does in this process, as CUPTI records it: kernels, copies, fills, calls, waits and graphs, each operator's device
//! work by an id that is pushed around its launch.
//!
//! The library is opened at run time; where it or a function of it is missing, another profiler holds it, or the driver refuses,
//! that is [`Unavailable`] with the reason. Records are read through the offsets of their first fields, which are the same from
//! CUDA 11 to 13, and never beyond the next record.
//!
//! | module | owns |
//! | --- | --- |
//! | [`abi`] | numbers of its interface |
//! | [`api`] | its functions, and how one is refused |
//! | [`find`] | where the library may lie |
//! | [`layout`] | where the fields of records lie |
//! | [`record`] | a record as a value |
//! | `gather` | what its callbacks leave |
//! | [`launches`] | operators of the engine by their ids |
//! | `nodes` | operators of graph nodes |
//! | [`session`] | one observation from begin to end |
//! | [`cost`] | what it costs a run |
//! | `write` | what was observed, into a sink |

#![allow(unsafe_code)]

use std::path::PathBuf;

pub mod abi;
pub mod api;
pub mod cost;
pub mod find;
mod gather;
pub mod launches;
pub mod layout;
mod nodes;
pub mod record;
pub mod session;
#[cfg(test)]
mod tests;
mod write;

pub use api::Api;
pub use session::{Mode, Observed, Session};
pub use write::Place;

/// Why CUPTI records nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// No library could be opened.
    #[error(
        "no CUPTI: {why}; it comes with the CUDA toolkit (extras/CUPTI/lib64) or 'pip install nvidia-cuda-cupti', and \
         STRATO_CUPTI names its file"
    )]
    Library {
        /// What the system said of the last place that was tried.
        why: String,
    },
    /// The library lacks a function that nothing can be recorded without.
    #[error("'{}' has no {symbol}: it is older than CUDA 11, or no CUPTI; name another with STRATO_CUPTI", file.display())]
    Symbol {
        /// The library.
        file: PathBuf,
        /// The function.
        symbol: &'static str,
    },
    /// Another profiler holds the one place there is.
    #[error("another profiler is attached to this process (nsys, ncu, a framework's); end it, or take --observer host")]
    Attached,
    /// This process is observed already.
    #[error("CUPTI already records this process; end the other observation first")]
    Busy,
    /// Several ranks are in this process, of which only the whole is recorded.
    #[error(
        "several ranks are not recorded by CUPTI, whose cost is found on steps of one; leave --tp out, or take --observer device"
    )]
    Ranks,
    /// The library lacks a function that this observation needs.
    #[error("this CUPTI has no function for {what}; take a newer one, or --observer host")]
    Lacks {
        /// What cannot be done.
        what: String,
    },
    /// A call was refused.
    #[error("CUPTI refused {call}: {said} ({status}); {next}")]
    Refused {
        /// The function, with what it was asked for.
        call: String,
        /// Its status.
        status: u32,
        /// The status in CUPTI's words.
        said: String,
        /// What to do.
        next: &'static str,
    },
}
