//! Small captures written by hand, and what they become.
