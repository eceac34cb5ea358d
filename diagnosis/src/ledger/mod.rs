//! The ledger: a partition of a rank's time from which costs are selected. Every nanosecond of the counted steps belongs to
//! exactly one entry.
//!
//! | module | owns |
//! | --- | --- |
//! | [`names`] | record names without the numbers that only count, and the call paths that they form |
//! | [`idle`] | device idle time: why the device was idle, and what the launching thread did at each instant |
//! | [`device`] | device work by kernel, launch size and neighbours |

mod beside;
pub mod device;
pub mod idle;
pub mod names;
