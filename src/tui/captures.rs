//! The captures that the interface is on, before they are analysed and after.

use std::sync::Arc;

use super::{
    opened::{Beside, Look, Opened},
    sketch::Sketch,
};

/// Captures in either state.
pub enum Captures {
    /// Read, and being diagnosed.
    Sketch(Arc<Sketch>),
    /// Diagnosed.
    Opened(Arc<Opened>),
}

impl Captures {
    /// Number of captures.
    pub fn len(&self) -> usize {
        match self {
            Self::Sketch(sketch) => sketch.len(),
            Self::Opened(opened) => opened.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A capture by its position.
    pub fn look(&self, at: usize) -> Option<Look<'_>> {
        match self {
            Self::Sketch(sketch) => sketch.look(at),
            Self::Opened(opened) => opened.look(at),
        }
    }

    /// The two that are compared, if any are.
    pub fn beside(&self) -> Option<Beside<'_>> {
        match self {
            Self::Sketch(_) => None,
            Self::Opened(opened) => opened.beside(),
        }
    }
}
