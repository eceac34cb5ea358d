//! Rows computed above rows needed, as the launches show them, with two witnesses.

use std::collections::BTreeMap;

use model::Ns;

use crate::{
    analysis::{Edit, Layer, launch_shape},
    cause::{Cost, Kind, Population, population::Counted},
    ledger::device::Work,
    platform::{CanonicalOp, Packs},
};

/// Rows computed over rows needed, and how many more, from which rows are padding. Healthy runs stay below 1.07.
const LEAST: (u64, u64, u64) = (3, 2, 8);
/// Part of the launches from which a grid is that of a step, one in so many.
const COMMON: usize = 20;

/// Costs of padded rows.
pub fn generate(population: &Population<'_>, packs: &Packs) -> Vec<Cost> {
    if launch_shape::names_cores(population.trace, packs) {
        return Vec::new();
    }
    let found = population.ranks.iter().filter_map(of_rank).collect();
    population.across(found).into_iter().collect()
}

fn grids<'w>(works: impl Iterator<Item = &'w Work>) -> BTreeMap<u64, usize> {
    let mut out = BTreeMap::new();
    works.filter_map(|work| work.blocks).for_each(|blocks| *out.entry(blocks).or_default() += 1);
    out
}

fn of_rank(counted: &Counted<'_>) -> Option<Cost> {
    let kernels = || counted.work.iter().filter(|work| work.is_kernel());
    let norms = grids(kernels().filter(|w| w.in_graph && matches!(w.op, CanonicalOp::AddNorm | CanonicalOp::Norm)));
    let (rows, _) = norms.into_iter().max_by_key(|(_, n)| *n)?;
    let sampling =
        |w: &&Work| !w.in_graph && matches!(w.op, CanonicalOp::Sample | CanonicalOp::Softmax | CanonicalOp::Reduce);
    let samples = grids(kernels().filter(sampling));
    let all: usize = samples.values().sum();
    let (needed, _) = samples.into_iter().filter(|(_, n)| n * COMMON >= all).max_by_key(|(blocks, _)| *blocks)?;
    let padded = rows * LEAST.1 >= needed * LEAST.0 && rows >= needed + LEAST.2;
    // A grid that is no count of rows accuses nobody: another row-wise kernel has the same, or the step states its own number.
    let row_wise = |w: &&Work| {
        w.in_graph && matches!(w.op, CanonicalOp::Rope | CanonicalOp::KvWrite | CanonicalOp::Act | CanonicalOp::Quant)
    };
    let batch = counted.steps.iter().filter_map(|step| step.facts.batch).map(u64::from).max();
    let witness = match batch {
        Some(batch) => batch <= needed && needed < 2 * batch.max(1),
        None => kernels().filter(row_wise).any(|w| w.blocks == Some(rows)),
    };
    if !padded || !witness {
        return None;
    }
    let works: Vec<&Work> = kernels().filter(|w| w.in_graph && !w.is_attention()).collect();
    let own: Ns = works.iter().map(|work| work.own).sum();
    let most = (own as f64 * (1.0 - needed as f64 / rows as f64)) as Ns;
    // GEMMs of decode are bound by their weights: fewer rows may save nothing.
    let fewer = works.iter().map(|w| (w.at, (w.dur as f64 * needed as f64 / rows as f64) as Ns)).collect();
    let edits = vec![Edit::Hoped(Box::new(Edit::Resize(fewer)))];
    let kind = Kind::Padding { rows, needed };
    Some(counted.of_work(kind, Layer::Runtime, works, (most / 2, (most / 4, most * 8 / 10)), edits))
}
