//! Copies that nothing runs beside.

use std::collections::BTreeMap;

use model::{Ns, StringId};

use crate::{
    analysis::{AnchorKind, CopyDir, Edit, Layer},
    cause::{Cost, Kind, Population, population::Counted},
    ledger::device::Work,
    platform::Packs,
};

/// Smallest cost, as a share of the counted time.
const LEAST: f64 = 0.03;
/// Part of the exposed time that a change surely brings, in percent.
const SURE: Ns = 80;

/// Costs of exposed copies and fills.
pub fn generate(population: &Population<'_>, _: &Packs) -> Vec<Cost> {
    let found = population.ranks.iter().filter_map(of_rank).collect();
    population.across(found).into_iter().collect()
}

fn of_rank(counted: &Counted<'_>) -> Option<Cost> {
    let is_own =
        |work: &&Work| work.direction().is_some_and(|direction| !matches!(direction, CopyDir::PtoP | CopyDir::Staging));
    let works: Vec<&Work> = counted.work.iter().filter(is_own).collect();
    let exposed: Ns = works.iter().map(|work| work.own).sum();
    if counted.share(exposed) < LEAST {
        return None;
    }
    let mut parts: BTreeMap<(CopyDir, Option<StringId>), Ns> = BTreeMap::new();
    for work in &works {
        *parts.entry((work.direction()?, work.memory)).or_default() += work.own;
    }
    let ((direction, memory), largest) = parts.into_iter().max_by_key(|(_, ns)| *ns)?;
    let alike = works.iter().filter(|work| work.direction() == Some(direction) && work.memory == memory);
    let sized = alike.filter_map(|work| Some((work.bytes.filter(|bytes| *bytes > 0)?, work.dur)));
    let moved = sized.reduce(|sum, one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)));
    let part = largest as f64 / exposed.max(1) as f64;
    let kind = Kind::Copies { direction, memory, part, moved };
    let ops: Vec<u32> = works.iter().map(|work| work.at).collect();
    let shorter = works.iter().map(|work| (work.at, work.dur * (100 - SURE) / 100)).collect();
    let edits = vec![Edit::Resize(shorter), Edit::Hoped(Box::new(Edit::Remove(ops)))];
    // The host that waits for a copy goes on earlier, too, where the device waits for the host at all.
    let busy: Ns = counted.work.iter().map(|work| work.own).sum();
    let idle = (counted.total - busy).max(0);
    // A few copies of a window may be its set-up and its result: sure is only what its kernels can hide.
    let marked = counted.rank.anchor.kind != AnchorKind::WholeCapture;
    let hidden = if marked { exposed } else { exposed.min(busy - exposed) };
    let bounds = (hidden.max(0) * SURE / 100, exposed + (exposed * 3 / 100 + counted.total / 100).min(idle));
    Some(counted.of_work(kind, Layer::Runtime, works, (exposed, bounds), edits))
}
