//! What CANN does in this process, as MSPTI records it: tasks of the device also within replays of a graph, where events see the
//! whole only; each operator's tasks by an id that is pushed around its launch.
//!
//! The library is opened at run time and must have been preloaded: [`preload`] says with what the program is to be started anew.
//! Where it is missing, was not preloaded, or another profiler holds it, that is [`Unavailable`] with the reason. Everything was
//! run on the simulated one of the crate `sim-npu` only. Names, numbers and structures are those of the public headers
//! `mspti_activity.h` and `mspti_result.h` (github.com/Ascend/mspti, Mulan PSL v2), how records of a replay are tied to calls is
//! `kernel_parser.cpp` there.
//!
//! | module | owns |
//! | --- | --- |
//! | [`api`] | its functions and numbers, and how one is refused |
//! | [`preload`] | where the library may lie, and how it gets into this process |
//! | [`record`] | a record as a value |
//! | `gather` | what its callbacks leave |
//! | [`session`] | one observation from begin to end |
//! | `attribute` | which operator of which step a task is of |
//! | `write` | what was observed, into a sink |

#![allow(unsafe_code)]

use std::path::PathBuf;

pub mod api;
mod attribute;
mod gather;
pub mod preload;
pub mod record;
pub mod session;
#[cfg(test)]
mod tests;
mod write;

pub use api::Api;
pub use attribute::Attributed;
pub use session::{Observed, Session};

/// Why MSPTI records nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// No library could be found or opened.
    #[error(
        "no MSPTI: {why}; it comes with CANN 8.2 or later (source its set_env.sh), and STRATO_MSPTI names its file"
    )]
    Library {
        /// What is wrong with the last place that was tried.
        why: String,
    },
    /// The library lacks a function that nothing can be recorded without.
    #[error("'{}' has no {symbol}: it is no MSPTI, or older than CANN 8.2; name another with STRATO_MSPTI", file.display())]
    Symbol {
        /// The library.
        file: PathBuf,
        /// The function.
        symbol: &'static str,
    },
    /// The library was not there when the program was started.
    #[error("MSPTI must be preloaded and the program could not be started so; start it with LD_PRELOAD={}", file.display())]
    NotPreloaded {
        /// The library.
        file: PathBuf,
    },
    /// Another profiler holds the one place there is.
    #[error("another profiler is attached to this process; end it, or take --observer host")]
    Attached,
    /// This process is observed already.
    #[error("MSPTI already records this process; end the other observation first")]
    Busy,
    /// There are several ranks, whose ids MSPTI does not keep apart in one process.
    #[error("several ranks are not recorded by MSPTI, which does not keep ids of one process apart; leave --tp out")]
    Ranks,
    /// Somebody looks at the run while it goes on, and records come after it.
    #[error("a dashboard shows the run while MSPTI's records come after it; take --plain")]
    Live,
    /// A call was refused.
    #[error("MSPTI refused {call} (status {status}); {next}")]
    Refused {
        /// The function, with what it was asked for.
        call: String,
        /// Its status.
        status: u32,
        /// What to do.
        next: &'static str,
    },
}
