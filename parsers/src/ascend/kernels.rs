//! What only the table of kernels says: on how many cores a kernel ran, the type of its operator, shapes of its inputs, counters.

use std::path::Path;

use model::{Ns, Severity, TraceSink};
use rustc_hash::FxHashMap;

use super::{
    counters::Counted,
    layout,
    table::{DURATIONS, NAMES, STARTS},
    told::{self, Told},
};
use crate::{ReadError, csv_table::Table, lanes::Account};

/// Most kernels that are kept in mind.
const MAX_KERNELS: usize = 1 << 24;

/// What the table says of kernels by their start.
#[derive(Debug, Default)]
pub(super) struct Kernels {
    blocks: FxHashMap<Ns, u32>,
    told: FxHashMap<Ns, Told>,
}

impl Kernels {
    /// Reads the table; what cannot be read is counted.
    pub fn read(path: &Path, sink: &mut dyn TraceSink) -> Self {
        let mut kernels = Self::default();
        match kernels.fill(path, sink) {
            Ok(account) => {
                account.tell(sink, "ascend", &layout::name(path), "cores, types and shapes of the timeline's kernels")
            }
            Err(error) => sink.stat("ascend.unreadable_file", Severity::DataLoss, 1, Some(&error.to_string())),
        }
        kernels
    }

    fn fill(&mut self, path: &Path, sink: &mut dyn TraceSink) -> Result<Account, ReadError> {
        let mut table = Table::open_lines(path, |header| header.len() > 1)?;
        let own = [STARTS, "block num|block dim", DURATIONS, NAMES];
        let columns: Vec<&str> = own.iter().chain(&told::COLUMNS).copied().collect();
        let mut counted = Counted::default();
        counted.head(&table);
        table.select(&columns);
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
            if let Some((name, dur)) = row.text(3).zip(row.decimal(2, 3)) {
                counted.add_row(&name, row.int(1), dur, row);
            }
            let [op, shapes, dtypes, formats] = [0, 1, 2, 3].map(|cell| row.text(own.len() + cell));
            let inputs = [shapes.as_deref(), dtypes.as_deref(), formats.as_deref()];
            if let Some(told) = Told::of(sink, op.as_deref(), inputs)
                && self.told.len() < MAX_KERNELS
            {
                self.told.insert(start, told);
            }
        }
        counted.tell(sink);
        account.incomplete += table.cut();
        Ok(account)
    }

    /// What is told of the operator of the kernel that started then.
    pub fn told(&self, start: Ns) -> Option<Told> {
        self.told.get(&start).copied()
    }

    /// Cores of the kernel that started then.
    pub fn blocks(&self, start: Ns) -> Option<u32> {
        self.blocks.get(&start).copied()
    }
}
