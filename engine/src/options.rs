//! How a run goes about its steps, in words that devices and runs have in common.

use crate::{Error, program::OpCall};

/// How a step is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Operator by operator.
    Eager,
    /// All operators at once.
    Graph,
    /// Those between two layers' attention at once, and attention with what it appends to the cache operator by operator, as
    /// vLLM does where attention cannot be captured.
    Piecewise,
}

impl Mode {
    /// Why a backend without them has no captured pieces.
    pub(crate) fn no_pieces(backend: &'static str) -> Error {
        let what = "it launches a step whole or operator by operator; choose --mode graph or eager, or --backend cuda";
        Error::Unavailable { backend, what: what.to_owned() }
    }
}

/// When the host waits for a step that it launches operator by operator. It always waits for the end of a step, because
/// the next one begins with what this one gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sync {
    /// At its end.
    #[default]
    PerStep,
    /// After each layer.
    PerLayer,
    /// After each operator.
    PerOp,
}

impl Sync {
    /// Whether the host waits between two operators.
    pub(crate) fn is_after(self, op: &OpCall, next: &OpCall) -> bool {
        match self {
            Self::PerStep => false,
            Self::PerLayer => op.id.layer != next.id.layer,
            Self::PerOp => true,
        }
    }
}

/// Who chooses the next token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// An operator of the step.
    #[default]
    Device,
    /// The host, from the logits.
    Host,
}
