//! `mthreads-gmi` of Moore Threads: three lines per card, no outer frame.

use super::{Readout, Tool, boxes, word_after};

/// The tool.
pub const TOOL: Tool = Tool { id: "mthreads-gmi", vendor: "mthreads", arguments: &[], matches, read };

fn matches(text: &str) -> bool {
    text.contains("mthreads-gmi:")
}

fn read(text: &str) -> Readout {
    Readout { version: word_after(text, "mthreads-gmi:").map(str::to_owned), ..boxes::read(text) }
}
