//! Causes: costs are found without rules. A cost is a selection of ledger entries and the change that would remove it; rules
//! only name, explain and advise.
//!
//! | module | owns |
//! | --- | --- |
//! | [`cost`] | what a cost is |
//! | [`population`] | the ranks and steps that costs are counted over |
//! | [`generators`] | one file per way in which a cost shows |
//! | [`gate`] | which costs the evidence of a capture allows |
//! | [`statement`] | what is said of a cost that no rule names |

pub mod cost;
pub mod gate;
pub mod generators;
pub mod population;
pub mod statement;

pub use cost::{Cost, Kind, Occurs, Site};
pub use gate::Gated;
pub use population::Population;

use model::Trace;

use crate::{analysis::Analysis, platform::Packs};

/// Every cost of a capture that its evidence allows, the largest first.
pub fn find(trace: &Trace, analysis: &Analysis, packs: &Packs) -> Vec<Gated> {
    let Some(population) = gate::population(trace, analysis) else { return Vec::new() };
    let mut costs: Vec<Cost> = generators::REGISTRY.iter().flat_map(|generate| generate(&population, packs)).collect();
    costs.retain(|cost| gate::allows(&population, cost));
    set_apart(&mut costs);
    costs.sort_by(|a, b| b.share().total_cmp(&a.share()));
    costs.into_iter().filter_map(|cost| gate::allow(&population, cost)).collect()
}

/// Part of the counted time that has to be left when what happens once is cut out, one part in so many.
const LEFT: model::Ns = 50;

/// Leaves what happens once out of the time that the other costs are shares of.
fn set_apart(costs: &mut [Cost]) {
    let mut once: std::collections::BTreeMap<u32, model::Ns> = Default::default();
    for cost in costs.iter().filter(|cost| cost.occurs != Occurs::Throughout && !cost.is_size()) {
        *once.entry(cost.rank).or_default() += cost.total;
    }
    // Of a single step, or of a window, nobody knows what comes again.
    for cost in costs.iter_mut().filter(|cost| cost.occurs == Occurs::Throughout && cost.steps > 1) {
        let apart = once.get(&cost.rank).copied().unwrap_or(0);
        if apart > 0 && cost.of - apart >= (cost.of / LEFT).max(cost.total) {
            (cost.of, cost.apart) = (cost.of - apart, apart);
        }
    }
}
