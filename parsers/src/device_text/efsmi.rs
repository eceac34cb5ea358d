//! `efsmi` of Enflame: two lines per card; memory is the total only.

use super::{Readout, Tool, boxes, word_after};

/// The tool.
pub const TOOL: Tool = Tool { id: "efsmi", vendor: "enflame", arguments: &[], matches, read };

fn matches(text: &str) -> bool {
    text.contains("|EFSMI ")
}

fn read(text: &str) -> Readout {
    Readout { version: word_after(text, "|EFSMI ").map(str::to_owned), ..boxes::read(text) }
}
