//! What only the table of kernels says: on how many cores a kernel ran.

use std::path::Path;

use model::{Ns, Severity, TraceSink};
use rustc_hash::FxHashMap;

use super::{layout, table::STARTS};
use crate::{ReadError, csv_table::Table, lanes::Account};

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
        match kernels.fill(path) {
            Ok(account) => account.tell(sink, "ascend", &layout::name(path), "cores of the timeline's kernels"),
            Err(error) => sink.stat("ascend.unreadable_file", Severity::DataLoss, 1, Some(&error.to_string())),
        }
        kernels
    }

    fn fill(&mut self, path: &Path) -> Result<Account, ReadError> {
        let mut table = Table::open_lines(path, |header| header.len() > 1)?;
        table.select(&[STARTS, "block num|block dim"]);
        let mut account = Account::default();
        while let Some(row) = table.next(&|_, _| {})? {
            account.read += 1;
            let Some(start) = row.decimal(0, 3) else {
                account.incomplete += 1;
                continue;
            };
            account.kept += 1;
            if let Some(blocks) = row.int(1).and_then(|blocks| u32::try_from(blocks).ok())
                && self.blocks.len() < MAX_KERNELS
            {
                self.blocks.insert(start, blocks);
            }
        }
        account.incomplete += table.cut();
        Ok(account)
    }

    /// Cores of the kernel that started then.
    pub fn blocks(&self, start: Ns) -> Option<u32> {
        self.blocks.get(&start).copied()
    }
}
