//! Whose an event of the host is: the framework's profiler shows operators, ranges and functions, CANN shows calls.

use crate::record::{HostEvent, HostKind};

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
