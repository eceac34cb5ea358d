//! One way from paths to reports: captures are opened, examined, diagnosed and compared here, and nowhere else.
//!
//! | module | owns |
//! | --- | --- |
//! | `reading` | what is read, and how |
//! | `open`, `attach` | paths to captures in memory, with what was measured beside them |
//! | [`job`], `same` | which captures are ranks of one job, and which are one run read twice |
//! | `examined` | [`Session`] → [`Examined`] → [`Diagnosed`]: analysis with the manifest's completion, diagnosis, report |
//! | `pair`, `repeats` | two sides: contract first, then difference |
//! | `serving`, `decide` | results of serving benchmarks among the captures; which of two platforms to take |
//! | [`link_test`] | two sides of link tests |
//! | [`declaration`] | what a person says of captures that do not say it themselves |
//! | [`progress`] | stages, progress and notes as `tracing` spans and events; calling work off |
//!
//! It knows no terminal and no command line. Without the feature `sqlite` it reads neither capture files nor the databases of
//! profilers, and links no SQLite.
//!
//! ```no_run
//! use session::{Options, Reading, Session};
//! let session = Session::open(&["trace.json.gz".into()], &Reading::default())?;
//! let diagnosed = session.examine(&Options::default())?.diagnose()?;
//! let report = diagnosed.report();
//! # let _ = report;
//! # Ok::<(), session::Error>(())
//! ```

mod attach;
mod decide;
pub mod declaration;
mod error;
mod examined;
pub mod job;
mod kept;
pub mod link_test;
mod open;
mod pair;
pub mod progress;
mod reading;
mod repeats;
mod same;
pub mod serving;

pub use decide::decide;
pub use declaration::Declaration;
pub use diagnosis::analysis::Options;
pub use error::Error;
pub use examined::{Capture, Diagnosed, Examined, Session};
pub use pair::{Pair, Terms};
pub use progress::Cancel;
pub use reading::Reading;
