//! Whose an event of the host is: the framework's profiler shows operators, ranges and functions, CANN shows calls.

use std::collections::BTreeMap;

use super::{Called, Recorded};
use crate::{
    record::{HostEvent, HostKind},
    run::Run,
};

/// A layer of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    /// Operators of the framework, and what the program annotated, which stands among them.
    Operator,
    /// Functions of the interpreter.
    Function,
    /// Garbage collection of the interpreter.
    Collection,
    /// A call of CANN: kernels are launched at the level of nodes, all else is a call of AscendCL.
    Call(Level),
}

/// A level of CANN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Acl,
    Node,
}

impl Level {
    /// Its name, and its number in databases.
    pub(super) fn known(self) -> (&'static str, i64) {
        match self {
            Self::Acl => ("acl", 20_000),
            Self::Node => ("node", 10_000),
        }
    }
}

/// A call as CANN records it.
pub(super) struct Call<'r> {
    pub(super) name: &'r str,
    pub(super) level: Level,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) connection: i64,
}

/// The calls of a run by their connection ids.
pub(super) fn calls(run: &Run) -> BTreeMap<i64, Called> {
    let around = |event: &&HostEvent| layer(event) == Some(Layer::Operator);
    let operators: BTreeMap<i64, i64> =
        run.host.iter().filter(around).filter_map(|event| Some((event.external?, event.start))).collect();
    let call = |event: &HostEvent| {
        let operator = event.external.and_then(|id| operators.get(&id).copied());
        Some((event.correlation?, Called { start: event.start, operator }))
    };
    run.host.iter().filter_map(call).collect()
}

/// Connection ids of the calls that order queues begin beyond those of the run's own calls.
const ORDERING: i64 = 1 << 24;

impl Recorded {
    /// The calls that the event with this index is. The launch of a collective, which runs on a queue of its own, stands
    /// between two pairs of calls that order the queues; they take a nanosecond each out of its time.
    pub(super) fn calls_of<'r>(&self, index: usize, event: &'r HostEvent, level: Level) -> Vec<Call<'r>> {
        let connection = event.correlation.unwrap_or(super::NONE);
        let (start, end) = (event.start, event.end);
        if !self.ordered.contains(&index) || end - start <= 4 {
            return vec![Call { name: &event.name, level, start, end, connection }];
        }
        let order = |nth: i64, start: i64| {
            let name = if nth % 2 == 0 { "aclrtRecordEvent" } else { "aclrtStreamWaitEvent" };
            Call { name, level: Level::Acl, start, end: start + 1, connection: ORDERING + 4 * connection + nth }
        };
        let launch = Call { name: &event.name, level, start: start + 2, end: end - 2, connection };
        vec![order(0, start), order(1, start + 1), launch, order(2, end - 2), order(3, end - 1)]
    }
}

/// The layer of an event; `None` for what the profilers do not record.
pub(super) fn layer(event: &HostEvent) -> Option<Layer> {
    match event.kind {
        HostKind::FrameworkOp | HostKind::UserRange | HostKind::Compile => Some(Layer::Operator),
        HostKind::PythonFrame => Some(Layer::Function),
        HostKind::Gc => Some(Layer::Collection),
        HostKind::Overhead => None,
        HostKind::Launch => Some(Layer::Call(Level::Node)),
        _ => Some(Layer::Call(Level::Acl)),
    }
}

/// Shapes and types of an operator's inputs as torch_npu joins them.
pub(super) fn inputs(event: &HostEvent) -> Option<(String, String)> {
    let inputs = event.inputs.as_ref()?;
    let shapes: Vec<String> = inputs.shapes.iter().map(|[rows, columns]| format!("{rows},{columns}")).collect();
    let types = vec![inputs.dtype; inputs.shapes.len()];
    Some((shapes.join(";\r\n"), types.join(";\r\n")))
}
