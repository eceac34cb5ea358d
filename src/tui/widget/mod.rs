//! Parts that several views are made of. They hold no truth of their own.
//!
//! | module | owns |
//! | --- | --- |
//! | [`board`] | cells of the readiness board |
//! | [`prose`] | documents as lines of a width |
//! | [`rows`] | which row is selected and which are seen |
//! | [`table`] | rows under the names of their columns |
//! | [`wrap`](mod@wrap) | paragraphs in lines |

pub mod board;
pub mod prose;
pub mod rows;
pub mod table;
pub mod wrap;
