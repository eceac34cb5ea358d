//! Kernels by class: casts, copies, gathers and separate elementwise kernels that a fused run does not have, weights that are
//! unpacked before each GEMM, operators on the AI CPU.

use std::collections::BTreeMap;

use model::{Ns, StringId};

use crate::{
    analysis::{Edit, Layer},
    cause::{Cost, Kind, Population, population::Counted},
    ledger::device::Work,
    platform::{CanonicalOp, Packs, Stage},
};

/// Smallest class, as a share of the counted time. Healthy runs have at most 4 % of any of them.
const LEAST: f64 = 0.05;
/// Smallest class that is a part of a combination.
const PART: f64 = 0.01;
/// Part of a combination that its largest class has at most: what is far larger is named alone.
const LARGEST: f64 = 0.75;
/// Gaps up to this long are those of launching one kernel after the other, ns.
const SMALL_GAP: Ns = 8_000;

/// Classes that a fused run does not have, or has within other kernels.
const REMOVABLE: [CanonicalOp; 8] = [
    CanonicalOp::Format,
    CanonicalOp::Elementwise,
    CanonicalOp::Index,
    CanonicalOp::Softmax,
    CanonicalOp::Reduce,
    CanonicalOp::Sample,
    CanonicalOp::Fill,
    CanonicalOp::Quant,
];
/// Classes of one unfused composition.
const COMPOSED: [CanonicalOp; 5] =
    [CanonicalOp::Elementwise, CanonicalOp::Softmax, CanonicalOp::Reduce, CanonicalOp::Index, CanonicalOp::Format];

/// Classes of arithmetic: fusion saves the launches and the passes over memory of many small kernels, of large ones it may be neither.
const PLAIN: [CanonicalOp; 4] =
    [CanonicalOp::Elementwise, CanonicalOp::Index, CanonicalOp::Softmax, CanonicalOp::Reduce];
/// Mean time of a kernel from which it is large, ns.
const LARGE: Ns = 100_000;

/// What a class is compared by across ranks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Of(CanonicalOp),
    Unpacking,
    OnCpu,
}

/// Costs of kernel classes.
pub fn generate(population: &Population<'_>, _: &Packs) -> Vec<Cost> {
    let mut of_ranks: BTreeMap<Vec<Class>, Vec<Cost>> = BTreeMap::new();
    for counted in &population.ranks {
        for (class, cost) in of_rank(population, counted) {
            of_ranks.entry(class).or_default().push(cost);
        }
    }
    of_ranks.into_values().filter_map(|costs| population.across(costs)).collect()
}

fn of_rank(population: &Population<'_>, counted: &Counted<'_>) -> Vec<(Vec<Class>, Cost)> {
    let text = |work: &Work| population.text(work.name);
    // Where nothing multiplies matrices, the capture is a benchmark of these very kernels.
    if !counted.work.iter().any(|work| super::is_gemm(work, text(work))) {
        return Vec::new();
    }
    let trains = counted.class.stage == Stage::Train;
    let mut classes: BTreeMap<Class, Vec<&Work>> = BTreeMap::new();
    let slow = super::floor::slow_kernels(population, counted);
    for work in counted.work.iter().filter(|work| work.is_kernel()) {
        // What is far slower per thread than its peers is a cost of its own.
        let named = |class: &Class| !matches!(class, Class::Of(_)) || !slow.contains(&work.name);
        let class = class_of(work, text(work)).filter(named);
        // Training in 8 bits quantizes its activations by design.
        let by_design = trains && class == Some(Class::Of(CanonicalOp::Quant));
        if let Some(class) = class.filter(|_| !by_design) {
            classes.entry(class).or_default().push(work);
        }
    }
    // Where no launch is linked, a gap before a kernel does not go with it.
    let linked = counted.rank.timeline.unlinked < counted.rank.timeline.ops.len() as u64;
    let gap = if linked { small_gap(counted) } else { 0 };
    let size = |works: &[&Work]| works.iter().map(|work| work.own).sum::<Ns>() + works.len() as Ns * gap * 7 / 10;
    classes.retain(|_, works| counted.share(size(works)) >= PART);
    let composed: Vec<Class> =
        COMPOSED.map(Class::Of).into_iter().filter(|class| classes.contains_key(class)).collect();
    let sizes: Vec<Ns> = composed.iter().filter_map(|class| classes.get(class)).map(|works| size(works)).collect();
    let (sum, largest) = (sizes.iter().sum::<Ns>(), sizes.iter().copied().max().unwrap_or(0));
    let mut out = Vec::new();
    if composed.len() > 1 && counted.share(sum) >= LEAST && (largest as f64) < LARGEST * sum as f64 {
        let works: Vec<&Work> = composed.iter().filter_map(|class| classes.remove(class)).flatten().collect();
        out.push((composed, works));
    }
    out.extend(classes.into_iter().map(|(class, works)| (vec![class], works)));
    out.retain(|(_, works)| counted.share(size(works)) >= LEAST);
    out.into_iter()
        .filter_map(|(class, works)| Some((class.clone(), cost(counted, &class, &works, size(&works), gap)?)))
        .collect()
}

fn cost(counted: &Counted<'_>, class: &[Class], works: &[&Work], total: Ns, gap: Ns) -> Option<Cost> {
    let own: Ns = works.iter().map(|work| work.own).sum();
    let kernel = *names(works.iter().copied()).first()?;
    // Kernels of a size that only compute elementwise or reduce have a size and no assured gain.
    let assured = |class: &Class| !matches!(class, Class::Of(op) if PLAIN.contains(op));
    let large = own / works.len().max(1) as Ns >= LARGE && !class.iter().any(assured);
    let kind = match class {
        [Class::Unpacking] => Kind::Unpacking(kernel),
        [Class::OnCpu] => Kind::OnCpu(kernel),
        _ => {
            let mut times: BTreeMap<CanonicalOp, Ns> = BTreeMap::new();
            works.iter().for_each(|work| *times.entry(work.op).or_default() += work.own);
            let mut ops: Vec<(CanonicalOp, Ns)> = times.into_iter().collect();
            ops.sort_by_key(|(op, ns)| (std::cmp::Reverse(*ns), *op));
            let ops: Vec<CanonicalOp> = ops.into_iter().map(|(op, _)| op).collect();
            let kernels = names(works.iter().copied());
            if large { Kind::Plain { ops, kernels } } else { Kind::Class { ops, kernels } }
        }
    };
    let fewer = works.iter().map(|work| (work.at, work.dur * 15 / 100)).collect();
    let gone = Edit::Remove(works.iter().map(|work| work.at).collect());
    let edits = vec![Edit::Resize(fewer), Edit::Hoped(Box::new(gone))];
    // Against runs repeated without the fault the class total was right within a tenth, with the launches that served it; of
    // arithmetic the fused kernel still does a part.
    let surely = if class.iter().all(assured) { 85 } else { 60 };
    let bounds = (total * surely / 100, own + own / 10 + works.len() as Ns * gap);
    Some(counted.of_work(kind, Layer::Operator, works.iter().copied(), (total, bounds), edits))
}

/// Kernels that are named, at most.
const NAMED: usize = 6;

/// The kernels with the most time.
fn names<'w>(works: impl Iterator<Item = &'w Work>) -> Vec<StringId> {
    let mut names: BTreeMap<StringId, Ns> = BTreeMap::new();
    works.for_each(|work| *names.entry(work.name).or_default() += work.own);
    let mut names: Vec<(StringId, Ns)> = names.into_iter().collect();
    names.sort_by_key(|(name, ns)| (std::cmp::Reverse(*ns), *name));
    names.into_iter().take(NAMED).map(|(name, _)| name).collect()
}

/// Mean of the short gaps before the operations of a rank: what launching one more costs.
fn small_gap(counted: &Counted<'_>) -> Ns {
    let gaps = counted.rank.gaps.iter().map(|gap| gap.span.len()).filter(|ns| *ns < SMALL_GAP);
    gaps.sum::<Ns>() / counted.rank.timeline.ops.len().max(1) as Ns
}

fn class_of(work: &Work, name: &str) -> Option<Class> {
    let lower = name.to_ascii_lowercase();
    if lower.contains("aicpu") {
        return Some(Class::OnCpu);
    }
    // Pooling reduces by design, whatever is fused.
    if super::is_gemm(work, name) && !lower.contains("dequant") || lower.contains("pool") {
        return None;
    }
    if ["dequant", "gptq", "unpack", "reconstruct"].iter().any(|part| lower.contains(part)) {
        return Some(Class::Unpacking);
    }
    // A generated fusion is no separate kernel.
    let separate = !(lower.starts_with("triton_") && lower.contains("fused"));
    (REMOVABLE.contains(&work.op) && separate).then_some(Class::Of(work.op))
}
