//! `cnmon` of Cambricon, versions 4 and 5: two lines per card.

use super::{Readout, Tool, boxes, word_after};

/// The tool.
pub const TOOL: Tool = Tool { id: "cnmon", vendor: "cambricon", arguments: &[], matches, read };

fn matches(text: &str) -> bool {
    text.contains("| CNMON ")
}

fn read(text: &str) -> Readout {
    Readout { version: word_after(text, "| CNMON ").map(str::to_owned), ..boxes::read(text) }
}
