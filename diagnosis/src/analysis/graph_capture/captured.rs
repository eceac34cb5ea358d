//! The launches of each captured graph, in their order, with the operator and the modules they were made in.

use std::collections::VecDeque;

use model::{Category, Columns, Detail, StringId, Trace, TrackKind};
use rustc_hash::FxHashMap;

use super::{capture_edge, is, launching};
use crate::platform::{HostCall, Packs};

/// Modules of a launch that are kept, the outermost first: models nest some ten.
const MODULES: usize = 12;
/// How the PyTorch profiler names the frame of a module's call.
const MODULE: &str = "nn.Module: ";

/// A launch under a capture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launch {
    /// Kernel by the name that the call gives, if it gives one.
    pub kernel: Option<StringId>,
    /// Operator around it: track and row. The outermost that tells shapes stands for the kernels launched inside it.
    pub operator: Option<(usize, usize)>,
    /// Modules around it, as an index into [`Graph::modules`].
    pub modules: usize,
}

/// A captured graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    /// Annotation around the capture.
    pub label: Option<StringId>,
    pub launches: Vec<Launch>,
    /// Different nestings of modules, the outermost module first.
    pub modules: Vec<Vec<StringId>>,
}

/// The captured graphs of a trace, thread by thread in order of time.
pub(super) fn graphs(trace: &Trace, packs: &Packs) -> Vec<Graph> {
    let launching = launching(trace);
    let mut kinds: FxHashMap<StringId, (HostCall, Option<bool>)> = FxHashMap::default();
    let mut graphs = Vec::new();
    for (track, lane) in trace.lanes.iter().enumerate().filter(|(track, _)| is(trace, *track, TrackKind::HostThread)) {
        let mut open: Option<Graph> = None;
        let mut around = Around { operators: VecDeque::new(), modules: Vec::new(), ranges: Vec::new() };
        let mut launched_until = i64::MIN;
        for row in 0..lane.len() {
            around.enter(trace, lane, row);
            if lane.category[row] != Category::HostApi {
                continue;
            }
            let name = lane.name[row];
            let (kind, edge) = *kinds.entry(name).or_insert_with(|| {
                let text = trace.strings.get(name);
                (packs.host_call(text), capture_edge(text))
            });
            match (kind, edge) {
                (HostCall::GraphCapture, Some(true)) => {
                    open = Some(Graph { label: around.ranges.first().map(|row| lane.name[*row]), ..Graph::default() });
                }
                (HostCall::GraphCapture, Some(false)) => {
                    graphs.extend(open.take().filter(|graph| !graph.launches.is_empty()));
                }
                // A call inside a launch is part of it; one that device work names did run.
                _ if kind.is_launch() && lane.start[row] >= launched_until && !launching.contains(&lane.id(row)) => {
                    if let Some(graph) = &mut open {
                        launched_until = lane.end(row);
                        let kernel = match trace.detail(lane, row) {
                            Some(Detail::Launch(kernel)) => Some(*kernel),
                            _ => None,
                        };
                        let operator = around.operator(trace, lane).map(|row| (track, row));
                        let modules = around.modules(lane, graph);
                        graph.launches.push(Launch { kernel, operator, modules });
                    }
                }
                _ => {}
            }
        }
    }
    graphs
}

/// Slices of a thread that are open, the outermost first, as rows of its lane.
struct Around {
    operators: VecDeque<usize>,
    modules: Vec<usize>,
    ranges: Vec<usize>,
}

impl Around {
    /// Goes on to the next row.
    fn enter(&mut self, trace: &Trace, lane: &Columns, row: usize) {
        let now = lane.start[row];
        let over = |open: &usize| lane.end(*open) <= now;
        while self.operators.back().is_some_and(over) {
            self.operators.pop_back();
        }
        while self.modules.last().is_some_and(over) {
            self.modules.pop();
        }
        while self.ranges.last().is_some_and(over) {
            self.ranges.pop();
        }
        match lane.category[row] {
            Category::FrameworkOp => self.operators.push_back(row),
            Category::PythonFrame if trace.strings.get(lane.name[row]).starts_with(MODULE) => self.modules.push(row),
            Category::UserRange => self.ranges.push(row),
            _ => {}
        }
    }

    /// The innermost open operator that tells shapes, else the innermost.
    fn operator(&self, trace: &Trace, lane: &Columns) -> Option<usize> {
        /// Operators nest some ten deep; damage must not make each launch look at thousands.
        const NEAR: usize = 32;
        let shaped = |row: &&usize| matches!(trace.detail(lane, **row), Some(Detail::Op(op)) if op.shapes.is_some());
        self.operators.iter().rev().take(NEAR).find(shaped).or(self.operators.back()).copied()
    }

    /// The open modules as one of the graph's nestings.
    fn modules(&self, lane: &Columns, graph: &mut Graph) -> usize {
        let names: Vec<StringId> = self.modules.iter().take(MODULES).map(|row| lane.name[*row]).collect();
        // Neighbours share their nesting; an earlier equal one need not be found.
        if graph.modules.last() != Some(&names) {
            graph.modules.push(names);
        }
        graph.modules.len() - 1
    }
}

/// The nesting of modules as text: `Model_0 / Attention_3`.
pub(super) fn path(trace: &Trace, modules: &[StringId]) -> String {
    let names = modules.iter().map(|name| trace.strings.get(*name));
    names.map(|name| name.strip_prefix(MODULE).unwrap_or(name)).collect::<Vec<_>>().join(" / ")
}
