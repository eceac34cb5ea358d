//! Reports for people and scripts, all made from one [`Report`].
//!
//! | module | owns |
//! | --- | --- |
//! | [`model`] | everything a report shows, without formatting |
//! | [`job`] | what several ranks tell together |
//! | [`work`] | which operators and kernels take the time |
//! | [`replayed`] | what launched replayed kernels when their graph was captured |
//! | [`grade`] | how far a capture's evidence reaches |
//! | [`idle`] | where the idle time lies |
//! | [`split`] | how a step divides into layers, as far as it was recorded |
//! | [`owners`] | what the host was doing in it |
//! | [`largest`] | words for what takes the most time by name |
//! | [`readiness`] | how ready a platform is, in words |
//! | [`diff`] | two captures beside each other |
//! | [`link_test`] | link tests, one and two of them |
//! | [`serving`] | serving results, one and two of them |
//! | [`decide`] | which of two platforms to take |
//! | [`sections`] | the report for people, section by section |
//! | [`document`] | what a text says, before any format: blocks, inlines, tables |
//! | [`markdown`] | a document as Markdown |
//! | [`json`] | the report for scripts, `strato.diagnosis/2` |
//! | [`schema`] | schemas of the JSON documents |
//! | [`html`] | the report as one page with figures and a timeline |
//! | [`svg`] | a timeline as a picture |
//! | [`timeline`] | a stretch of time, lane by lane, for both |
//! | [`perfetto`] | the capture as trace events for the Perfetto UI |
//! | [`screen`] | the report on one screen of a terminal, and any document on a terminal |
//! | [`terminal`] | a document as Markdown with colour |
//! | [`explain`] | the page of a rule |
//! | [`phrase`] | messages of rules and verdicts with their values filled in |
//! | [`kernel_name`] | short forms of kernel names |
//! | [`units`] | how numbers are written |
//! | [`columns`] | columns that line up |
//! | [`text`] | text from a capture made safe to print |

mod build;
pub mod columns;
pub mod decide;
pub mod diff;
pub mod document;
pub mod explain;
pub mod grade;
pub mod html;
pub mod idle;
pub mod job;
pub mod json;
pub mod kernel_name;
pub mod largest;
mod ledger_note;
pub mod link_test;
pub mod manifest;
pub mod markdown;
pub mod model;
pub mod owners;
pub mod perfetto;
pub mod phrase;
pub mod plan;
pub mod readiness;
pub mod replayed;
pub mod schema;
pub mod screen;
pub mod sections;
pub mod serving;
pub mod split;
pub mod summaries;
pub mod svg;
pub mod terminal;
pub mod text;
pub mod timeline;
pub mod track_name;
pub mod units;
pub mod work;
pub mod workload;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;

pub use self::model::Report;
pub use build::file_name;
pub use grade::Grade;
