//! CUPTI without a device: functions that behave as its own and hand out records made by hand, records that are cut and
//! spoiled, and the headers and libraries of real versions where they are.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod damage;
mod fake;
mod headers;
mod libraries;
mod observed;
