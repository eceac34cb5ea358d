//! `ixsmi` of Iluvatar: the layout of nvidia-smi, with clocks in the first line (unverified on a machine).

use super::{Readout, Tool, boxes, word_after};

/// The tool.
pub const TOOL: Tool = Tool { id: "ixsmi", vendor: "iluvatar", arguments: &[], matches, read };

fn matches(text: &str) -> bool {
    text.contains("| IX-ML")
}

fn read(text: &str) -> Readout {
    Readout { version: word_after(text, "| IX-ML:").map(str::to_owned), ..boxes::read(text) }
}
