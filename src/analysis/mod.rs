//! Pure functions over loaded columns: no SQL, no user interface.

pub mod period;

pub use period::Period;
