//! What only the table of kernels says: on how many cores a kernel ran.

use std::path::Path;

use model::{Ns, TraceSink};
use rustc_hash::FxHashMap;

use crate::csv::Table;

/// Most kernels that are kept in mind.
const MAX_KERNELS: usize = 1 << 24;

/// Cores of kernels by start.
#[derive(Debug, Default)]
pub(super) struct Kernels {
    blocks: FxHashMap<Ns, u32>,
}

impl Kernels {
    /// Reads the table; what cannot be read is counted.
    pub fn read(path: &Path, sink: &mut dyn TraceSink) -> Self {
        let mut kernels = Self::default();
        let read = Table::read(path, &mut |row| {
            let start = row.decimal(&["Start Time(us)", "Task Start Time(us)"], 3);
            let blocks = row.text(&["Block Num", "Block Dim"]).and_then(|blocks| blocks.parse().ok());
            if let (Some(start), Some(blocks)) = (start, blocks)
                && kernels.blocks.len() < MAX_KERNELS
            {
                kernels.blocks.insert(start, blocks);
            }
            start.is_some()
        });
        crate::csv::account(sink, "ascend", path, &read, "cores of the timeline's kernels");
        kernels
    }

    /// Cores of the kernel that started then.
    pub fn blocks(&self, start: Ns) -> Option<u32> {
        self.blocks.get(&start).copied()
    }
}
