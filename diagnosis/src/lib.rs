//! From a capture's columns to what its steps are made of, what to change first, and whether two captures may be compared.
//!
//! | module | owns |
//! | --- | --- |
//! | [`platform`] | knowledge of platforms as data |
//! | [`analysis`] | pure functions from columns to steps, buckets and gaps |
//! | [`largest`] | the tables that are read first: what takes the most time, by name |
//! | [`diagnose`] | rules, findings, verdict |
//! | [`compare`] | two captures side by side: whether they may be compared, and what differs |
//! | [`serving`] | results of serving benchmarks: loads, targets, two results load by load |
//! | [`link_test`] | link tests: sizes, plateau, two tests size by size |
//! | [`decide`] | which of two platforms is the cheaper one, and how prefill and decode share a fleet |
//! | [`i18n`] | text in the languages of the reports |
//!
//! It knows no terminal, no file format and no database.

pub mod analysis;
pub mod cause;
pub mod compare;
pub mod decide;
pub mod diagnose;
pub mod i18n;
pub mod largest;
pub mod ledger;
pub mod link_test;
pub mod platform;
pub mod serving;
