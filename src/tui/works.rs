//! All device work of a rank's main class, row by row: a report has room for the first dozen only.

use std::sync::OnceLock;

use model::Trace;

use diagnosis::analysis::Analysis;
use report::{
    kernel_name,
    work::{self, Group, Work},
};

/// Stands for a kernel whose recorder gave it no name.
const UNNAMED: &str = "–";

/// One row of a table of device work.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it counts.
    pub work: Work,
    /// Name as it is shown: short, and told apart from those of the other rows.
    pub short: String,
    /// Of a slot the kernel with the most time in it; empty of other rows.
    pub kernel: String,
    /// Of a place of a layer, how many times as long it takes as that of the layer in the middle.
    pub ratio: Option<f64>,
    /// All of these in lower case, for a filter.
    folded: String,
}

impl Row {
    /// Whether one of its names holds `wanted`, which is in lower case.
    pub fn holds(&self, wanted: &str) -> bool {
        self.folded.contains(wanted)
    }
}

/// The rows of one rank, each group counted once it is looked at: in a large capture that takes a moment.
#[derive(Debug, Default)]
pub struct Works {
    operators: OnceLock<Vec<Row>>,
    slots: OnceLock<Vec<Row>>,
    layers: OnceLock<Vec<Row>>,
    kernels: OnceLock<Vec<Row>>,
}

impl Works {
    /// The rows of a group of the main class of the rank at `index`: slots in the order of a step, others by exclusive time.
    pub fn rows(&self, trace: &Trace, analysis: &Analysis, index: usize, group: Group) -> &[Row] {
        let counted = match group {
            Group::Operator => &self.operators,
            Group::Slot => &self.slots,
            Group::Layer => &self.layers,
            Group::Kernel => &self.kernels,
        };
        counted.get_or_init(|| {
            let class = analysis.ranks.get(index).and_then(|rank| rank.main_class());
            let Some(class) = class else { return Vec::new() };
            if group == Group::Layer {
                let (works, ratios): (Vec<Work>, Vec<f64>) =
                    work::layers(trace, analysis, index, class).into_iter().unzip();
                let mut rows = rows(trace, works, group);
                rows.iter_mut().zip(ratios).for_each(|(row, ratio)| row.ratio = Some(ratio));
                return rows;
            }
            rows(trace, work::all(trace, analysis, index, class, group), group)
        })
    }
}

fn rows(trace: &Trace, works: Vec<Work>, group: Group) -> Vec<Row> {
    let names: Vec<&str> = works.iter().map(|work| work.name.as_str()).collect();
    let shorts = kernel_name::short_all(&names);
    let kernel = |work: &Work| {
        let (track, row) = trace.locate(work.first.filter(|_| matches!(group, Group::Slot | Group::Layer))?)?;
        let name = trace.lanes.get(track.0 as usize)?.name.get(row)?;
        Some(kernel_name::short(trace.strings.get(*name)))
    };
    let row = |(work, short): (Work, String)| {
        let short = if short.is_empty() { UNNAMED.to_owned() } else { short };
        let kernel = kernel(&work).unwrap_or_default();
        let folded = format!("{}\n{}\n{kernel}", work.name, work.op).to_lowercase();
        Row { work, short, kernel, ratio: None, folded }
    };
    works.into_iter().zip(shorts).map(row).collect()
}
