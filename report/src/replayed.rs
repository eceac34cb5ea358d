//! What launched the replayed kernels of a class when their graph was captured: operator, shapes, module.

use std::collections::BTreeMap;

use model::{Detail, Ns, Trace};

use diagnosis::analysis::{
    Class, Rank,
    graph_capture::{Tracks, range_at},
};

/// Rows listed; the rest is one row.
const TOP: usize = 16;

/// Replayed kernels of one operator with one set of shapes in one module.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Replayed {
    /// Operator, empty in the row of all that are not listed.
    pub operator: String,
    /// Shapes of its inputs as the source writes them, empty where it writes none.
    pub shapes: String,
    /// Modules around it, the outermost first; empty where none was recorded.
    pub module: String,
    /// Kernels over the steps that count.
    pub count: u64,
    /// Time that belongs to them and to nothing else, ns over the steps that count.
    pub busy: Ns,
}

/// Those of a class, the longest first; empty without a graph capture.
pub fn of(trace: &Trace, rank: &Rank, class: &Class) -> Vec<Replayed> {
    let tracks = Tracks::of(trace);
    let key =
        |queue: u32| trace.tracks.get(rank.timeline.queues.get(queue as usize)?.0 as usize).map(|track| track.key);
    let mut sums: BTreeMap<(&str, &str, &str), (u64, Ns)> = BTreeMap::new();
    for step in rank.steady_steps(class) {
        let exclusive = rank.exclusive.get(step.ops.clone()).unwrap_or(&[]);
        for (op, exclusive) in rank.ops_of(step).iter().zip(exclusive).filter(|(op, _)| op.in_graph) {
            let Some(queue) = key(op.queue) else { continue };
            let at = |track| range_at(trace, track, op.start);
            let name = |(lane, row): (&model::Columns, usize)| trace.strings.get(lane.name[row]);
            let operator = tracks.operators(queue).and_then(at);
            let module = tracks.modules(queue).and_then(at).map_or("", name);
            let shapes = match operator.and_then(|(lane, row)| trace.detail(lane, row)) {
                Some(Detail::Op(op)) => op.shapes.map_or("", |shapes| trace.strings.get(shapes)),
                _ => "",
            };
            let operator = operator.map_or("", name);
            if operator.is_empty() && module.is_empty() {
                continue;
            }
            let sum = sums.entry((operator, shapes, module)).or_default();
            *sum = (sum.0 + 1, sum.1.saturating_add(exclusive.busy));
        }
    }
    let row = |((operator, shapes, module), (count, busy)): ((&str, &str, &str), _)| Replayed {
        operator: operator.to_owned(),
        shapes: shapes.to_owned(),
        module: module.to_owned(),
        count,
        busy,
    };
    let mut rows: Vec<Replayed> = sums.into_iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.busy));
    if rows.len() > TOP + 1 {
        let rest = rows.split_off(TOP);
        let (count, busy) =
            rest.iter().fold((0, 0), |sum: (u64, Ns), row| (sum.0 + row.count, sum.1.saturating_add(row.busy)));
        rows.push(Replayed { operator: String::new(), shapes: String::new(), module: String::new(), count, busy });
    }
    rows
}
