//! Kernels below what the device can do, by facts of the launch alone: a grid that fills a fraction of the cores, blocks that leave
//! lanes of a warp empty, and a time per thread far above that of the capture's other kernels.

use std::collections::BTreeMap;

use model::{Ns, StringId};

use crate::{
    analysis::{Edit, Layer, launch_shape},
    cause::{Cost, Kind, Population, population::Counted},
    ledger::device::Work,
    platform::{CanonicalOp, OpClass, Packs},
};

/// Smallest cost, as a share of the counted time.
const LEAST: f64 = 0.03;
/// Share of the cores that the grid of a GEMM fills at most: healthy ones fill a quarter and more.
const GEMM: f64 = 0.13;
/// The same of other kernels that take longer than the time beside it, ns. Shorter kernels have few blocks for want of work.
const OTHERS: [(Ns, f64); 2] = [(80_000, 0.40), (50_000, 0.26)];
/// Shortest kernel, ns.
const SHORTEST: Ns = 50_000;
/// Threads from which time per thread compares.
const THREADS: u64 = 65_536;
/// Names whose time per thread makes the yardstick, at least.
const NAMES: usize = 4;
/// Time per thread over that of the others from which an elementwise kernel, and from which a reduction is slow: reductions do more
/// per thread by nature.
const SLOW: (f64, f64) = (8.0, 30.0);

/// Threads of the smallest warp: NVIDIA's and RDNA's have 32, CDNA's 64.
const WARP: u64 = 32;
/// Blocks from which threads could have been put together, for each core.
const BLOCKS: u64 = 4;

/// Costs of kernels below their floor.
pub fn generate(population: &Population<'_>, packs: &Packs) -> Vec<Cost> {
    let mut kernels: BTreeMap<(StringId, u8), Vec<Cost>> = BTreeMap::new();
    let by_core = launch_shape::names_cores(population.trace, packs);
    for counted in &population.ranks {
        let few = if by_core { Vec::new() } else { underfilled(population, counted) };
        for (name, cost) in few {
            kernels.entry((name, 1)).or_default().push(cost);
        }
        for (name, cost) in if by_core { Vec::new() } else { small_blocks(population, counted) } {
            kernels.entry((name, 2)).or_default().push(cost);
        }
        for (name, cost) in per_thread(population, counted) {
            kernels.entry((name, 0)).or_default().push(cost);
        }
    }
    kernels.into_values().filter_map(|costs| population.across(costs)).collect()
}

fn underfilled(population: &Population<'_>, counted: &Counted<'_>) -> Vec<(StringId, Cost)> {
    let Some(cores) = population.cores(counted.rank) else { return Vec::new() };
    let mut launches: BTreeMap<(StringId, u64), Vec<&Work>> = BTreeMap::new();
    for work in counted.work.iter().filter(|work| work.is_kernel()) {
        if let Some(blocks) = work.blocks {
            launches.entry((work.name, blocks)).or_default().push(work);
        }
    }
    let cost = |((name, blocks), works): ((StringId, u64), Vec<&Work>)| {
        let first = works.first()?;
        let gemm = super::is_gemm(first, population.text(name));
        let median = super::median(works.iter().map(|work| work.dur))?;
        let fills = blocks as f64 / cores as f64;
        let few = match gemm {
            true => fills <= GEMM && median > SHORTEST,
            false => OTHERS.iter().any(|(longer, most)| median > *longer && fills <= *most),
        };
        let saved = |ns: Ns| (ns as f64 * (1.0 - fills)) as Ns;
        let own: Ns = works.iter().map(|work| work.own).sum();
        let total = saved(own);
        if !few || counted.share(own) < LEAST {
            return None;
        }
        let filled = works.iter().map(|work| (work.at, work.dur - saved(work.dur))).collect();
        let edits = vec![Edit::Hoped(Box::new(Edit::Resize(filled)))];
        let kind = Kind::Underfilled { kernel: name, blocks, cores, gemm };
        Some((name, counted.of_work(kind, Layer::Operator, works, (total, (total * 65 / 100, total)), edits)))
    };
    launches.into_iter().filter_map(cost).collect()
}

/// Kernels with many blocks, each with fewer threads than a warp has lanes.
fn small_blocks(population: &Population<'_>, counted: &Counted<'_>) -> Vec<(StringId, Cost)> {
    let enough = population.cores(counted.rank).unwrap_or(1) * BLOCKS;
    let mut launches: BTreeMap<(StringId, u64), Vec<&Work>> = BTreeMap::new();
    for work in counted.work.iter().filter(|work| work.is_kernel() && work.blocks.is_some_and(|n| n >= enough)) {
        if let Some(threads) = work.threads.filter(|threads| (1..WARP).contains(threads)) {
            launches.entry((work.name, threads)).or_default().push(work);
        }
    }
    let cost = |((kernel, threads), works): ((StringId, u64), Vec<&Work>)| {
        let own: Ns = works.iter().map(|work| work.own).sum();
        let saved = |ns: Ns| ns * (WARP - threads) as Ns / WARP as Ns;
        let filled = works.iter().map(|work| (work.at, work.dur - saved(work.dur))).collect();
        let edits = vec![Edit::Hoped(Box::new(Edit::Resize(filled)))];
        let kind = Kind::SmallBlocks { kernel, threads, warp: WARP };
        let total = saved(own);
        (counted.share(total) >= LEAST)
            .then(|| (kernel, counted.of_work(kind, Layer::Operator, works, (total, (0, total)), edits)))
    };
    launches.into_iter().filter_map(cost).collect()
}

/// Whether time per thread says something of an operator.
fn compares(work: &Work) -> bool {
    !matches!(work.op.class(), OpClass::Matrix | OpClass::Attention | OpClass::Comm | OpClass::Wait | OpClass::Copy)
}

/// From which ratio on a kernel is slow; `None` where no ratio says anything.
fn limit(op: CanonicalOp, name: &str) -> Option<f64> {
    let lower = name.to_ascii_lowercase();
    if ["bn_", "batch_norm", "multi_tensor", "backward", "dequant", "unpack", "aicpu"]
        .iter()
        .any(|part| lower.contains(part))
    {
        return None;
    }
    match op {
        CanonicalOp::Optimizer | CanonicalOp::Embedding | CanonicalOp::Sample | CanonicalOp::Loss => None,
        CanonicalOp::Elementwise
        | CanonicalOp::Format
        | CanonicalOp::Act
        | CanonicalOp::Fill
        | CanonicalOp::Permute
        | CanonicalOp::Quant => Some(SLOW.0),
        _ => Some(SLOW.1),
    }
}

/// Kernels whose time per thread is a cost of its own, whatever their class.
pub fn slow_kernels(population: &Population<'_>, counted: &Counted<'_>) -> Vec<StringId> {
    per_thread(population, counted).into_iter().map(|(name, _)| name).collect()
}

fn per_thread(population: &Population<'_>, counted: &Counted<'_>) -> Vec<(StringId, Cost)> {
    let mut launches: BTreeMap<StringId, BTreeMap<u64, Vec<&Work>>> = BTreeMap::new();
    for work in counted.work.iter().filter(|work| work.is_kernel() && compares(work)) {
        let threads = work.blocks.zip(work.threads).map(|(blocks, threads)| blocks.saturating_mul(threads));
        if let Some(threads) = threads.filter(|threads| *threads >= THREADS) {
            launches.entry(work.name).or_default().entry(threads).or_default().push(work);
        }
    }
    // Picoseconds per thread of the median launch of each size.
    let rate = |threads: u64, works: &[&Work]| {
        let median = super::median(works.iter().map(|work| work.dur)).unwrap_or(0);
        median as f64 * 1e3 / threads as f64
    };
    let best = |sizes: &BTreeMap<u64, Vec<&Work>>| {
        sizes.iter().map(|(threads, works)| rate(*threads, works)).fold(f64::INFINITY, f64::min)
    };
    let mut rates: Vec<f64> = launches.values().map(best).filter(|rate| rate.is_finite() && *rate > 0.0).collect();
    if rates.len() < NAMES {
        return Vec::new();
    }
    rates.sort_by(f64::total_cmp);
    let Some(usual) = rates.get(rates.len() / 2).copied() else { return Vec::new() };
    let cost = |(name, sizes): (StringId, BTreeMap<u64, Vec<&Work>>)| {
        let op = sizes.values().flatten().next()?.op;
        let limit = limit(op, population.text(name))?;
        let (mut slow, mut ratio, mut saved): (Vec<&Work>, f64, Ns) = (Vec::new(), 0.0, 0);
        for (threads, works) in sizes {
            let times = rate(threads, &works) / usual;
            if times > limit {
                ratio = ratio.max(times);
                let own: Ns = works.iter().map(|work| work.own).sum();
                saved += (own as f64 * (1.0 - 2.0 / times)) as Ns;
                slow.extend(works);
            }
        }
        let own: Ns = slow.iter().map(|work| work.own).sum();
        if counted.share(saved) < LEAST {
            return None;
        }
        let quicker = slow.iter().map(|work| (work.at, (work.dur as f64 / ratio) as Ns)).collect();
        let edits = vec![Edit::Hoped(Box::new(Edit::Resize(quicker)))];
        let kind = Kind::PerThread { kernel: name, ratio };
        Some((name, counted.of_work(kind, Layer::Operator, slow, (saved, (saved / 2, own)), edits)))
    };
    launches.into_iter().filter_map(cost).collect()
}
