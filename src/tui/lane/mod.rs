//! Lanes: what the timeline draws, indexed so that a frame costs its columns and not its slices.
//!
//! | module | owns |
//! | --- | --- |
//! | [`kind`] | kinds of work, by colour and letter |
//! | [`index`] | the slices of one lane |
//! | [`counter`] | the samples of one counter |
//! | [`set`] | which lanes a capture has, in groups |

pub mod counter;
pub mod index;
pub mod kind;
pub mod set;

pub use counter::CounterIndex;
pub use index::{Column, Item, LaneIndex};
pub use kind::Kind;
pub use set::{Group, Lane, LaneSet, Of, Shape};
