//! Lanes: what the timeline draws, indexed so that a frame costs its columns and not its slices.
//!
//! | module | owns |
//! | --- | --- |
//! | [`kind`], `kinds` | kinds of work, by colour and letter, and which a slice is |
//! | [`index`] | the slices of one lane |
//! | [`counter`] | the samples of one counter |
//! | `plan` | which lanes a capture has, in groups |
//! | [`set`] | the lanes of a capture |

pub mod counter;
pub mod index;
pub mod kind;
mod kinds;
mod plan;
pub mod set;

pub use counter::CounterIndex;
pub use index::{Column, Item, LaneIndex, moved};
pub use kind::Kind;
pub use plan::Belongs;
pub use set::{Group, Lane, LaneSet, Of, Shape};
