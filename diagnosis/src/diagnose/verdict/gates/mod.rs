//! The gates of the verdict, in the order in which they are asked: one file and one line each, with its sentence. The first
//! that decides gives the verdict.

mod cause;
mod demand;
mod inflation;
mod load;
mod log;
mod lone_rank;
pub(super) mod no_steps;
mod no_timeline;
mod opaque;
mod pause;
mod remainder;
mod shared_machine;
mod speculation;
pub(super) mod start_up;
mod unexplained;

use super::{
    VerdictLayer,
    case::{BECAUSE, Case, OPAQUE, RIVAL, Ruling, UNEXPLAINED, awaited, doubtful_idle, opaque},
    headline::{largest, step_args, subject},
};

/// One question on the way to the verdict: the verdict, if it decides.
pub(super) type Gate = fn(&Case<'_>) -> Option<Ruling>;

/// Every gate, in order. First those that say why the capture allows no verdict, then those that weigh what was found.
pub(super) const REGISTRY: &[Gate] = &[
    log::decide,
    no_timeline::decide,
    inflation::decide,
    shared_machine::decide,
    opaque::decide,
    start_up::decide,
    lone_rank::decide,
    unexplained::decide,
    load::decide,
    demand::decide,
    pause::decide,
    cause::decide,
    speculation::decide,
    remainder::decide,
];
