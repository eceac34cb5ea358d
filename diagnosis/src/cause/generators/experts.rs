//! Experts of a mixture one by one: between two attention kernels GEMMs and gathers take turns, where one grouped GEMM would do.

use model::{Ns, Span};

use crate::{
    analysis::{Edit, Layer},
    cause::{Cost, Kind, Population, population::Counted},
    ledger::device::Work,
    platform::{OpClass, Packs, Stage},
};

/// Turns between a GEMM and a gather from which experts go one by one: a dense layer has one at most.
const TURNS: usize = 4;
/// Smallest cost, as a share of the counted time.
const LEAST: f64 = 0.05;
/// Part of the time that a grouped GEMM leaves at least, in percent: the weights of all chosen experts are read either way.
const LEFT: Ns = 15;

/// Costs of experts that are computed one by one.
pub fn generate(population: &Population<'_>, _: &Packs) -> Vec<Cost> {
    let found = population.ranks.iter().filter_map(|counted| of_rank(population, counted)).collect();
    population.across(found).into_iter().collect()
}

fn of_rank(population: &Population<'_>, counted: &Counted<'_>) -> Option<Cost> {
    let kernels: Vec<&Work> = counted.work.iter().filter(|work| work.is_kernel()).collect();
    let (mut works, mut turns, mut time, mut gemms, mut idle) = (Vec::new(), 0, 0, 0, Vec::new());
    // Whatever lies before the first attention and after the last one is no layer of a transformer.
    let bounds = kernels.iter().position(|w| w.is_attention()).zip(kernels.iter().rposition(|w| w.is_attention()));
    let (from, to) = bounds.filter(|_| counted.class.stage != Stage::Train)?;
    for layer in kernels.get(from..to).unwrap_or(&[]).split(|work| work.is_attention()) {
        let is_gemm = |work: &Work| super::is_gemm(work, population.text(work.name));
        let taking_turns = layer.windows(2).filter(|pair| match pair {
            [a, b] => is_gemm(a) && b.op.class() == OpClass::Index,
            _ => false,
        });
        let own = taking_turns.count();
        if own < TURNS {
            continue;
        }
        let gather = |work: &&&Work| work.op.class() == OpClass::Index;
        let (first, last) = (layer.iter().position(|w| gather(&w))?, layer.iter().rposition(|w| gather(&w))?);
        let run = layer.get(first..=last).unwrap_or(&[]);
        let end = |work: &Work| work.start + work.dur;
        turns += own;
        time += run.iter().map(|work| work.own).sum::<Ns>();
        gemms += run.iter().filter(|work| is_gemm(work)).map(|work| work.own).sum::<Ns>();
        idle.extend(run.windows(2).filter_map(|pair| match pair {
            [a, b] if b.start > end(a) => Some(Span::new(end(a), b.start)),
            _ => None,
        }));
        works.extend(run.iter().copied());
    }
    let between: Ns = idle.iter().map(|span| span.len()).sum();
    let whole = time + between;
    if counted.share(whole) < LEAST {
        return None;
    }
    let total = whole - whole * LEFT / 100;
    let bounds = (whole - gemms, total);
    let fewer = works
        .iter()
        .map(|work: &&Work| (work.at, if super::is_gemm(work, population.text(work.name)) { work.dur } else { 0 }));
    let edits = vec![Edit::Resize(fewer.collect())];
    let mut cost = counted.of_work(Kind::Experts { turns }, Layer::Operator, works, (total, bounds), edits);
    cost.idle = idle;
    Some(cost)
}
