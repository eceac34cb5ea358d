//! What difference an operator may make, given the same input on both sides.
//!
//! Two things are kept apart that one tolerance would mix: how far the weights of B are from those of A, which the operators
//! of A tell when they are given B's weights, and how far the operators of B are from those of A on the same weights. A fault
//! that is smaller than the rounding of the weights is seen all the same.

use serde::Serialize;

use super::measure::Measure;
use crate::{Dtype, program::OpKind};

/// Relative L2 that the order of additions in single precision can make: the tolerance of f32 in the method of layer-wise
/// comparison (1e-5), ten times what the widest products of the named shapes make here.
pub const SUMS: f64 = 1e-5;

/// Relative L2 that weights of a type make beside those of single precision. A weight of bf16 is off by at most 2⁻⁹ of
/// itself, one of f16 by 2⁻¹², and one of [`Dtype::Q8`] by 1/254 of the largest of its block; products of many weights come to
/// about half of that. The tolerances leave room for kernels that round activations to the same type.
pub fn rounding(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F32 => SUMS,
        Dtype::F16 => 1e-3,
        Dtype::Bf16 => 1e-2,
        Dtype::Q8 => 5e-2,
    }
}

/// Relative L2 of logits below which a run is within the precision of a type, by depth: rounding errors of layers add up as
/// a random walk does.
pub(super) fn of_logits(dtype: Dtype, layers: usize) -> f64 {
    rounding(dtype) * (layers.max(1) as f64).sqrt()
}

/// Why an operator does not do what the other side's does, given the same input.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Cause {
    /// One side gives NaN or infinity where the other gives a number.
    NotFinite {
        /// Elements that A lost.
        a: u64,
        /// Elements that B lost.
        b: u64,
    },
    /// An operator that only moves numbers changed some.
    Moved {
        /// Elements that differ.
        different: u64,
        /// Elements.
        of: u64,
    },
    /// The operators differ by more than the order of additions does, on the same weights.
    Arithmetic {
        /// Relative L2.
        error: f64,
        /// What would be explained.
        tolerance: f64,
    },
    /// The weights differ by more than their types do.
    Weights {
        /// Relative L2.
        error: f64,
        /// What would be explained.
        tolerance: f64,
    },
}

/// What a difference is judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judge {
    /// The narrower type of the two sides' weights.
    pub dtype: Dtype,
    /// Whether the two sides have the same weights in the same type.
    pub same_weights: bool,
    /// Whether the two sides' kernels are of one instruction set.
    pub same_isa: bool,
}

impl Judge {
    /// Whether the difference of operators is more than what their input, their weights and their precision explain.
    /// `weights` is A's operators with A's and B's weights, absent where the weights are the same; `local` is the operators of
    /// A and B with B's weights.
    pub(super) fn cause(self, ops: &[&OpKind], weights: Option<&Measure>, local: &Measure) -> Option<Cause> {
        for measure in weights.into_iter().chain([local]) {
            if measure.is_lost() {
                return Some(Cause::NotFinite { a: measure.lost[0], b: measure.lost[1] });
            }
        }
        if !ops.is_empty() && ops.iter().all(|op| op.is_move()) && local.different > 0 {
            return Some(Cause::Moved { different: local.different, of: local.count });
        }
        let (error, tolerance) = (local.relative_l2(), self.arithmetic(ops));
        if error > tolerance {
            return Some(Cause::Arithmetic { error, tolerance });
        }
        let (error, tolerance) = (weights.map_or(0.0, Measure::relative_l2), rounding(self.dtype));
        (error > tolerance).then_some(Cause::Weights { error, tolerance })
    }

    /// Products of narrow weights may round their activations to the type of the weights where an instruction set has no
    /// other product, so that two instruction sets differ by that.
    fn arithmetic(self, ops: &[&OpKind]) -> f64 {
        let has_products = ops.iter().any(|op| matches!(op, OpKind::Linear { .. }));
        if has_products && !self.same_isa { rounding(self.dtype) } else { SUMS }
    }

    /// The type whose precision explains what is left.
    pub(super) fn precision(self) -> Dtype {
        if self.same_weights && self.same_isa { Dtype::F32 } else { self.dtype }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::program::{BufId, Matrix};

    const LINEAR: OpKind = OpKind::Linear { x: BufId(0), matrix: Matrix::Head, rows: 0..1, out: BufId(1) };
    const MOVE: OpKind = OpKind::LastToken { x: BufId(0), out: BufId(1) };
    const STRICT: Judge = Judge { dtype: Dtype::Bf16, same_weights: true, same_isa: true };

    fn off_by(share: f32) -> Measure {
        Measure::of(&[1.0, -2.0, 3.0], &[1.0 + share, -2.0 * (1.0 + share), 3.0 * (1.0 + share)])
    }

    #[test]
    fn sums_may_differ_by_their_order_and_moves_not_at_all() {
        assert_eq!(STRICT.cause(&[&LINEAR], None, &off_by(3e-6)), None);
        assert!(matches!(STRICT.cause(&[&LINEAR], None, &off_by(1e-3)), Some(Cause::Arithmetic { .. })));
        assert!(matches!(STRICT.cause(&[&MOVE], None, &off_by(3e-6)), Some(Cause::Moved { different: 3, of: 3 })));
        assert_eq!(STRICT.cause(&[&MOVE], None, &off_by(0.0)), None);
    }

    #[test]
    fn narrow_weights_explain_their_rounding_and_not_a_fault_of_the_same_size() {
        let judge = Judge { same_weights: false, ..STRICT };
        assert_eq!(judge.cause(&[&LINEAR], Some(&off_by(2e-3)), &off_by(0.0)), None);
        assert!(matches!(judge.cause(&[&LINEAR], Some(&off_by(0.0)), &off_by(2e-3)), Some(Cause::Arithmetic { .. })));
        assert!(matches!(judge.cause(&[&LINEAR], Some(&off_by(0.1)), &off_by(0.0)), Some(Cause::Weights { .. })));
        assert_eq!(judge.precision(), Dtype::Bf16);
        assert_eq!(STRICT.precision(), Dtype::F32);
    }

    #[test]
    fn what_is_lost_is_named_before_anything_else() {
        let lost = Measure::of(&[1.0, 1.0], &[f32::NAN, 5.0]);
        assert_eq!(STRICT.cause(&[&LINEAR], None, &lost), Some(Cause::NotFinite { a: 0, b: 1 }));
        assert_eq!(STRICT.cause(&[&LINEAR], Some(&lost), &off_by(0.0)), Some(Cause::NotFinite { a: 0, b: 1 }));
    }
}
