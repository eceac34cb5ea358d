//! The gates that forbid a verdict on the stack, in the order in which they are asked: one file and one line each, with its
//! sentence. Where none decides, what was found is stated.

pub(super) mod alone;
mod broken_clock;
mod clocks;
mod host_only;
mod inflation;
mod load;
mod log;
mod log_rates;
mod lost;
pub(super) mod no_steps;
mod no_timeline;
mod not_finite;
mod only_collectives;
mod opaque;
mod shared_machine;
pub(super) mod start_up;
mod touched;

use super::{
    VerdictLayer,
    case::{BECAUSE, Case, OPAQUE, Ruling, opaque},
    headline::{step_args, subject},
};

/// One question on the way to the verdict: the verdict, if it decides.
pub(super) type Gate = fn(&Case<'_>) -> Option<Ruling>;

/// Every gate, in order.
pub(super) const REGISTRY: &[Gate] = &[
    log::decide,
    lost::decide,
    no_timeline::decide,
    touched::decide,
    broken_clock::decide,
    alone::decide,
    only_collectives::decide,
    not_finite::decide,
    inflation::decide,
    shared_machine::decide,
    opaque::decide,
    start_up::decide,
    load::decide,
];
