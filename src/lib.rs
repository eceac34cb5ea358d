//! Stratoscope separates each decode step of an LLM into operator, runtime and communication time.
//!
//! | module | owns |
//! | --- | --- |
//! | [`analysis`] | pure functions from columns to steps, buckets and gaps |
//! | [`cli`] | the command line, one file per subcommand |
//! | [`compare`] | two captures side by side: whether they may be compared, and what differs |
//! | [`diagnose`] | rules, findings, verdict |
//! | [`i18n`] | text in the languages of the reports |
//! | [`platform`] | knowledge of platforms as data |
//! | [`report`] | reports for people and scripts, all from one model |
//! | [`store`] | the capture file |

pub mod analysis;
pub mod cli;
pub mod compare;
pub mod diagnose;
pub mod i18n;
pub mod platform;
pub mod report;
pub mod store;
pub mod tui;
