//! SQLite databases of profilers: opened without changing them, probed before they are believed, and read page by page
//! past damage.

pub(crate) mod cursor;
pub(crate) mod database;
pub(crate) mod page;
pub(crate) mod scan;
pub(crate) mod source;

/// First bytes of every SQLite file.
pub(crate) const SIGNATURE: &[u8] = b"SQLite format 3\0";
