//! What a client measured of a server under load: times of requests and what was done per second, load by load. There are no
//! steps in it: nothing of it says where the time went, only how long a user waits and how much a server does.
//!
//! | module | owns |
//! | --- | --- |
//! | `load` | a load and the times of its requests, from the facts and slices of a capture |
//! | [`slo`] | targets of times, whether a load holds them, and how many requests do |
//! | [`beside`] | two results load by load |
//! | [`contract`] | whether their work is the same |
//! | [`curve`] | knee of a curve over loads, and where two curves cross |

pub mod beside;
pub mod contract;
pub mod curve;
mod load;
pub mod slo;
#[cfg(test)]
mod tests;

pub use load::{Level, Load, Metric, Request, Times, of};
pub use slo::Slo;
