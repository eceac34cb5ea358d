//! Prompts in the steps of a server: what they add to steps that also decode, and logits that are computed for all their rows.

use model::Ns;

use crate::{
    analysis::{Edit, Layer, Step},
    cause::{Cost, Kind, Population, population::Counted},
    ledger::device::Work,
    platform::{Packs, Stage},
};

/// Smallest size of the prompts' part, and smallest cost of logits, as shares of the counted time.
const LEAST: (f64, f64) = (0.40, 0.03);
/// Time of the last GEMM of a step with prompts over that of a decode step from which it computes all rows: only one row of each
/// sequence is sampled.
const TIMES: Ns = 2;

/// Costs of prompts.
pub fn generate(population: &Population<'_>, _: &Packs) -> Vec<Cost> {
    let of = |found: Vec<Cost>| population.across(found);
    let logits = population.ranks.iter().filter_map(|counted| logits(population, counted)).collect();
    let prompts = population.ranks.iter().filter_map(prompts).collect();
    of(logits).into_iter().chain(of(prompts)).collect()
}

fn reads(step: &Step) -> bool {
    step.facts.stage == Stage::Mixed || step.facts.prefill_tokens.is_some_and(|tokens| tokens > 0)
}

/// The last GEMM before a step samples.
fn last_gemm<'w>(population: &Population<'_>, counted: &'w Counted<'_>, step: &Step) -> Option<&'w Work> {
    let from = counted.work.partition_point(|work| (work.at as usize) < step.ops.start);
    let to = counted.work.partition_point(|work| (work.at as usize) < step.ops.end);
    let works = counted.work.get(from..to)?;
    works.iter().rev().find(|work| super::is_gemm(work, population.text(work.name)))
}

fn logits(population: &Population<'_>, counted: &Counted<'_>) -> Option<Cost> {
    let gemm = |step: &&&Step| last_gemm(population, counted, step);
    let decodes = counted.steps.iter().filter(|step| !reads(step));
    let usual = super::median(decodes.filter_map(|step| gemm(&step)).map(|work| work.dur))?;
    let slow: Vec<&Work> = counted.steps.iter().filter(|step| reads(step)).filter_map(|step| gemm(&step)).collect();
    let slow: Vec<&Work> = slow.into_iter().filter(|work| work.dur > TIMES * usual).collect();
    let excess: Ns = slow.iter().map(|work| work.dur - usual).sum();
    if counted.share(excess) < LEAST.1 {
        return None;
    }
    let kernel = slow.first()?.name;
    let fewer = slow.iter().map(|work| (work.at, usual)).collect();
    let bounds = (excess * 9 / 10, excess * 11 / 10);
    let kind = Kind::Logits { kernel, usual };
    Some(counted.of_work(kind, Layer::Operator, slow, (excess, bounds), vec![Edit::Resize(fewer)]))
}

/// What prompts add to the steps in which they are read: a size, for requests have to be read somewhere.
fn prompts(counted: &Counted<'_>) -> Option<Cost> {
    let decodes = counted.steps.iter().filter(|step| !reads(step)).map(|step| step.window.len());
    let usual = super::median(decodes)?;
    let reading: Vec<&&Step> = counted.steps.iter().filter(|step| reads(step)).collect();
    let excess: Ns = reading.iter().map(|step| (step.window.len() - usual).max(0)).sum();
    if counted.share(excess) < LEAST.0 {
        return None;
    }
    let tokens = reading.iter().filter_map(|step| step.facts.prefill_tokens).map(u64::from).max();
    let kind = Kind::Prompts { steps: reading.len(), tokens, usual };
    let mut cost = counted.of_work(kind, Layer::Runtime, [], (excess, (0, excess)), Vec::new());
    cost.count = reading.len();
    cost.longest = reading.iter().map(|step| step.window.len()).max().unwrap_or(0);
    Some(cost)
}
