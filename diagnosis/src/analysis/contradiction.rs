//! A sum of the profiler that what else was read contradicts. Types only; [`super::stated`] finds them.

use model::{Ns, Stated};

/// What a sum of the profiler is held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Against {
    /// The rows that were read.
    Rows,
    /// Sums of the same rank, of which nothing else was kept; the file or table that holds them.
    Sums(String),
}

/// A sum of the profiler that its rows, or other sums of it, contradict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Rank whose work was summed.
    pub rank: u32,
    /// The file or table that holds the sum.
    pub source: String,
    /// What was summed.
    pub what: Stated,
    /// How many the profiler counted and how many were read, where both say so.
    pub counts: Option<(u64, u64)>,
    /// The profiler's sum, ns.
    pub stated: Ns,
    /// That of the rows or of the other sums, ns.
    pub read: Ns,
    /// Which of the two.
    pub against: Against,
}
