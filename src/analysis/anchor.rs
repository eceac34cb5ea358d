//! Where steps begin, in the order of trust: annotations, token readbacks, graph launches, a periodic operation, the whole
//! capture.

/// How sure a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// May be wrong.
    Low,
    /// Likely.
    Medium,
    /// Sure.
    High,
}

/// What marks the beginning of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnchorKind {
    /// A range that the engine annotated.
    UserRange,
    /// The blocking readback of the sampled token.
    TokenReadback,
    /// The launch of the decode graph.
    GraphLaunch,
    /// A device operation that occurs once per step.
    PeriodicOp,
    /// Nothing: one window over the whole capture.
    WholeCapture,
}

/// How the steps of a rank were found.
#[derive(Clone, Debug)]
pub struct Anchor {
    /// What marks them.
    pub kind: AnchorKind,
    /// The name of the mark (a pattern of the annotation, a kernel name).
    pub name: String,
    /// How sure it is.
    pub confidence: Confidence,
}

impl Anchor {
    /// Key in JSON, such as `user_range:execute_model`.
    pub fn key(&self) -> String {
        let kind = match self.kind {
            AnchorKind::UserRange => "user_range",
            AnchorKind::TokenReadback => "token_readback",
            AnchorKind::GraphLaunch => "graph_launch",
            AnchorKind::PeriodicOp => "periodic_op",
            AnchorKind::WholeCapture => return "whole_capture".into(),
        };
        format!("{kind}:{}", self.name)
    }
}
