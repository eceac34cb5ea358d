//! The simulator knows why every nanosecond was spent; the attribution has to find it out from the trace alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
