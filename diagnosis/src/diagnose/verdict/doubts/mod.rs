//! The third statement: what was not judged and would matter. One file and one line each; the largest doubt is told, with the
//! one input that would decide it.

mod around;
mod below;
mod collectives;
mod copies;
mod demand;
mod efficiency;
mod first_uses;
mod managed;
mod no_kernel;
mod outside;
mod pause;
mod speculation;
mod stated;
mod tail;
mod transfers;
mod unexplained;
mod waits;
mod warned;

use super::case::{Case, UNEXPLAINED};
use crate::i18n::Message;

/// Time that no rule could judge.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Unjudged {
    /// Share of the step: the most that it could be worth.
    pub share: f64,
    /// What it is, and what would decide it.
    pub sentence: Message,
    /// Rules that would speak of it.
    pub because: Vec<&'static str>,
    /// Whether the layer to blame hangs on it: idle time that may be no fault, waits that may be transfers.
    #[serde(skip)]
    pub decides: bool,
}

/// One doubt: what was not judged, if anything.
type Doubt = fn(&Case<'_>) -> Option<Unjudged>;

/// Every doubt; of equal ones the first is told.
const REGISTRY: &[Doubt] = &[
    stated::ask,
    unexplained::ask,
    collectives::ask,
    waits::ask,
    around::ask,
    demand::ask,
    pause::ask,
    no_kernel::ask,
    managed::ask,
    efficiency::ask,
    below::ask,
    transfers::ask,
    copies::ask,
    speculation::ask,
];

/// What the first sentence has to say because it takes longer than all that counts.
pub(super) fn outside(case: &Case<'_>) -> Option<Message> {
    managed::first(case).or_else(|| outside::first(case))
}

/// What the profiler summed of the whole run where the rows are a sample of it.
pub(super) fn whole(case: &Case<'_>) -> Option<Message> {
    stated::first(case)
}

/// What is left to doubt where no step has a place: whether the profiler's own sums agree, and whether it saw the device.
pub(super) fn of_sums(case: &Case<'_>) -> Vec<Unjudged> {
    stated::ask(case).into_iter().chain(warned::ask(case)).collect()
}

/// Everything that was not judged and would matter: first what the layer hangs on, then the largest.
/// Where a gate speaks, what no finding claims is no question.
pub(super) fn of(case: &Case<'_>, judged: bool) -> Vec<Unjudged> {
    let mut doubts: Vec<Unjudged> = REGISTRY.iter().filter_map(|doubt| doubt(case)).collect();
    doubts.retain(|doubt| doubt.share >= UNEXPLAINED);
    doubts.extend(first_uses::ask(case).filter(|doubt| judged && doubt.share >= UNEXPLAINED));
    doubts.sort_by(|a, b| b.decides.cmp(&a.decides).then(b.share.total_cmp(&a.share)));
    // These are shares of something else, or have no input that would decide them: they come after all others.
    doubts.extend(outside::ask(case).filter(|_| judged));
    doubts.extend(tail::ask(case));
    doubts
}
