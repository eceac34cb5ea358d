//! `mx-smi` of MetaX: two lines per card; the power limit may be `NA`.

use super::{Readout, Tool, boxes, word_after};

/// The tool.
pub const TOOL: Tool = Tool { id: "mx-smi", vendor: "metax", arguments: &[], matches, read };

fn matches(text: &str) -> bool {
    text.contains("| MX-SMI ")
}

fn read(text: &str) -> Readout {
    Readout { version: word_after(text, "| MX-SMI ").map(str::to_owned), ..boxes::read(text) }
}
