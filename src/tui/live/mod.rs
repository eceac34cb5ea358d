//! The dashboard of what runs: plain values that a [`Source`] gives, kept for a while, and panels that show them as they are
//! now or as they were at an earlier step. It knows no engine and no collector.
//!
//! | module | owns |
//! | --- | --- |
//! | [`model`] | the values |
//! | [`state`] | what is kept of them |
//! | [`moment`] | what was known at one moment: the newest, or one gone back to |
//! | [`dashboard`] | keys, freezing, and where the panels lie |
//! | `standing` | the state of the machine in a sentence |
//! | `panel` | one file per panel |
//! | `spark` | curves with gaps |
//! | `words` | what counters are called and how their values are written |
//! | `reasons` | why a value is absent, in Chinese |

pub mod dashboard;
pub mod model;
pub mod moment;
mod panel;
mod reasons;
mod spark;
mod standing;
pub mod state;
mod words;

pub use dashboard::Dashboard;
pub use model::{Event, Fact, Gauge, Group, Op, Phase, Run, Source, Step, Update, What};
pub use reasons::said;
pub use words::{label, value};
