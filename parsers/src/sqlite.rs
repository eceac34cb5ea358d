//! SQLite databases of profilers: opened without changing them, probed before they are believed, and read page by page
//! past damage. Only a build with the feature `sqlite` reads them; others know them by their first bytes and say so.

#[cfg(feature = "sqlite")]
pub(crate) mod cursor;
#[cfg(feature = "sqlite")]
pub(crate) mod database;
#[cfg(feature = "sqlite")]
pub(crate) mod page;
#[cfg(feature = "sqlite")]
pub(crate) mod scan;
#[cfg(feature = "sqlite")]
pub(crate) mod source;

/// First bytes of every SQLite file.
pub(crate) const SIGNATURE: &[u8] = b"SQLite format 3\0";
/// First bytes of a report of Nsight Systems, in the reports of every version since 2018. It is read as the database that
/// `nsys` makes of it.
pub(crate) const NSYS_REPORT: &[u8] = b"NVIDIA Tegra Profiler Report";

/// Whether a file with these first bytes is one that a build without SQLite cannot read.
pub(crate) fn is_needed(head: &[u8]) -> bool {
    head.starts_with(SIGNATURE) || head.starts_with(NSYS_REPORT)
}
