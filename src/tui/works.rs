//! All device work of a rank's main class, row by row: a report has room for the first dozen only.

use model::Trace;

use crate::{
    analysis::Analysis,
    report::{
        kernel_name,
        work::{self, Group, Work},
    },
};

/// One row of a table of device work.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it counts.
    pub work: Work,
    /// Name as it is shown: short, and told apart from those of the other rows.
    pub short: String,
    /// Of a slot the kernel with the most time in it; empty of other rows.
    pub kernel: String,
    /// All of these in lower case, for a filter.
    folded: String,
}

impl Row {
    /// Whether one of its names holds `wanted`, which is in lower case.
    pub fn holds(&self, wanted: &str) -> bool {
        self.folded.contains(wanted)
    }
}

/// The rows of one rank.
#[derive(Clone, Debug, Default)]
pub struct Works {
    operators: Vec<Row>,
    slots: Vec<Row>,
    kernels: Vec<Row>,
}

impl Works {
    /// Counts the main class of the rank at `index`.
    pub fn of(trace: &Trace, analysis: &Analysis, index: usize) -> Self {
        let class = analysis.ranks.get(index).and_then(|rank| rank.main_class());
        let Some(class) = class else { return Self::default() };
        let rows = |group| rows(trace, work::all(trace, analysis, index, class, group), group);
        Self { operators: rows(Group::Operator), slots: rows(Group::Slot), kernels: rows(Group::Kernel) }
    }

    /// The rows of a group: slots in the order of a step, others by exclusive time.
    pub fn rows(&self, group: Group) -> &[Row] {
        match group {
            Group::Operator => &self.operators,
            Group::Slot => &self.slots,
            Group::Kernel => &self.kernels,
        }
    }
}

fn rows(trace: &Trace, works: Vec<Work>, group: Group) -> Vec<Row> {
    let names: Vec<&str> = works.iter().map(|work| work.name.as_str()).collect();
    let shorts = kernel_name::short_all(&names);
    let kernel = |work: &Work| {
        let (track, row) = trace.locate(work.first.filter(|_| group == Group::Slot)?)?;
        let name = trace.lanes.get(track.0 as usize)?.name.get(row)?;
        Some(kernel_name::short(trace.strings.get(*name)))
    };
    let row = |(work, short): (Work, String)| {
        let kernel = kernel(&work).unwrap_or_default();
        let folded = format!("{}\n{}\n{kernel}", work.name, work.op).to_lowercase();
        Row { work, short, kernel, folded }
    };
    works.into_iter().zip(shorts).map(row).collect()
}
