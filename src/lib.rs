//! The program `strato`: its command line and its terminal interface. What they show is made by the crates below them.
//!
//! | module | owns |
//! | --- | --- |
//! | [`cli`] | the command line, one file per subcommand |
//! | [`tui`] | the terminal interface |

pub mod cli;
pub mod tui;
