//! What can be wrong with a run: each fault, the rules it should trigger, and the base configuration in which it bites.

use serde::{Deserialize, Serialize};

use crate::{
    config::{Config, Mode},
    random::{Dice, Of},
};

mod base;
mod control;
mod kind;
mod strength;

pub use control::Control;
pub use kind::FaultKind;
pub use strength::Strength;

/// Layer a diagnosis should name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Kernels.
    Operator,
    /// The host and what it does with the device.
    Runtime,
    /// Transfers between devices.
    Communication,
    /// The measurement itself.
    Measurement,
    /// Clocks, power and temperature; it shows in operators, whose fault it is not.
    Environment,
    /// Nothing of the stack: too little is asked of it.
    LoadLimited,
}

/// A fault of some size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// How much, in parts per thousand of the usual size.
    pub magnitude_permille: i64,
}

/// The magnitudes at which faults are examined, in parts per thousand.
pub const MAGNITUDES: [i64; 3] = [350, 1000, 2000];

impl Config {
    /// `size` scaled by the magnitude if the run has the fault `kind`; 0 otherwise.
    pub(crate) fn dose(&self, kind: FaultKind, size: i64) -> i64 {
        let permille = self.faults.iter().find(|fault| fault.kind == kind).map_or(0, |fault| fault.magnitude_permille);
        size.saturating_mul(permille) / 1000
    }

    /// The rank that suffers from `kind`, if that is a fault of one rank.
    pub fn culprit(&self, kind: FaultKind) -> Option<usize> {
        let last = i64::try_from(self.ranks).unwrap_or(1) - 1;
        let rank = Dice::new(self.seed).uniform(Of::Culprit, [kind as i64, 0, 0], 0, last);
        usize::try_from(rank).ok().filter(|_| kind.of_one_rank())
    }

    /// Whether the run has the fault `kind`.
    pub(crate) fn has(&self, kind: FaultKind) -> bool {
        self.faults.iter().any(|fault| fault.kind == kind)
    }

    /// How decode is really issued, faults included.
    pub(crate) fn issued(&self) -> Mode {
        if self.has(FaultKind::GraphOff) {
            Mode::Eager
        } else if self.has(FaultKind::ManyPieces) {
            Mode::Piecewise { pieces: self.dose(FaultKind::ManyPieces, self.layers + 1).max(8).min(self.layers + 1) }
        } else {
            self.mode
        }
    }
}
