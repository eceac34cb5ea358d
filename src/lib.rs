//! Stratoscope separates each decode step of an LLM into operator, runtime and communication time.
//!
//! | module | owns |
//! | --- | --- |
//! | [`cli`] | the command line, one file per subcommand |
//! | [`store`] | the capture file |

pub mod cli;
pub mod store;
