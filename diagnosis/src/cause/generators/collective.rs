//! Collectives: transfers above the latency of their kind, links of a pipeline against the best link, waiting for one rank, and
//! communication that nothing runs beside.

use std::collections::BTreeMap;

use model::{Ns, StringId};

use crate::{
    analysis::{Edit, Layer, OpKind},
    cause::{Cost, Kind, Population, population::Counted},
    ledger::device::Work,
    platform::Packs,
};

/// What a collective is called, parts of its names, and the latency of a small one, ns; healthy medians are 7 to 19 µs. Of the others
/// no latency is known.
const KINDS: [(&str, &[&str], Option<Ns>); 6] = [
    ("all-reduce", &["allreduce", "all_reduce", "cross_device_reduce"], Some(8_000)),
    ("all-gather", &["allgather", "all_gather"], Some(15_000)),
    ("reduce-scatter", &["reducescatter", "reduce_scatter"], Some(15_000)),
    ("all-to-all", &["alltoall", "all_to_all", "dispatch", "combine"], None),
    ("send and receive", &["sendrecv", "send", "recv"], None),
    ("broadcast", &["broadcast"], None),
];
/// The latencies on Ascend, in tenths of those above.
const ON_ASCEND: Ns = 16;
/// Median of the transfers of healthy runs, in eighths of the latencies above, at most.
const HEALTHY: Ns = 19;
/// Fewest transfers of one kind, and the median up to which latency is what they take, in latencies: longer ones move much data.
const CALLS: usize = 8;
const LONGEST: Ns = 50;
/// Transfers up to so many medians are small ones.
const SMALL: Ns = 3;
/// Smallest cost of transfers, of a link and of waiting, as shares of the counted time.
const LEAST: (f64, f64, f64) = (0.05, 0.03, 0.03);
/// What a link of a pipeline reaches at least, bytes per ns, and the latency of one transfer over it, ns.
const LINK: (f64, Ns) = (20.0, 30_000);
/// Part of the waiting that is for one rank from which it is named.
const CULPRIT: f64 = 0.5;
/// Exposed communication that is told as a size, as a share of the counted time.
const EXPOSED: f64 = 0.20;

/// Collectives of one kind, each with the time that its data moved, ns.
type Moved<'w> = Vec<(&'w Work, Ns)>;

/// A transfer between two stages: ns, bytes, and the operation on each rank.
type Sent = (Ns, i64, Vec<(usize, u32)>);

/// Costs of communication.
pub fn generate(population: &Population<'_>, _: &Packs) -> Vec<Cost> {
    let mut out = latencies(population);
    out.extend(links(population));
    out.extend(waiting(population));
    let told: f64 = out.iter().map(Cost::share).sum();
    let exposed = population.across(population.ranks.iter().filter_map(exposed).collect());
    // The communication that another cost explains is not told again.
    out.extend(exposed.filter(|cost| told < 0.4 * cost.share()));
    out
}

/// What a collective is called, and its latency.
fn kind(name: &str) -> Option<(&'static str, Option<Ns>)> {
    let lower = name.to_ascii_lowercase();
    let found = KINDS.iter().find(|(_, parts, _)| parts.iter().any(|part| lower.contains(part)));
    let ascend = lower.contains("hcom");
    found.map(|(called, _, latency)| (*called, latency.map(|ns| if ascend { ns * ON_ASCEND / 10 } else { ns })))
}

/// How long the data of each collective moved, by rank and operation: what was matched across ranks.
fn transfers(population: &Population<'_>) -> BTreeMap<(usize, u32), Ns> {
    let instances = &population.analysis.job.instances;
    let of = |instance: &crate::analysis::job::Instance| {
        let transfer = instance.transfer;
        instance.members.iter().map(move |member| ((member.rank, member.op), transfer)).collect::<Vec<_>>()
    };
    instances.iter().flat_map(of).collect()
}

fn latencies(population: &Population<'_>) -> Vec<Cost> {
    let matched = transfers(population);
    let mut found: BTreeMap<&'static str, Vec<Cost>> = BTreeMap::new();
    for counted in &population.ranks {
        let mut kinds: BTreeMap<&'static str, (Ns, Moved<'_>)> = BTreeMap::new();
        for work in counted.work.iter().filter(|work| work.kind == OpKind::Comm) {
            let Some((called, Some(usual))) = kind(population.text(work.name)) else { continue };
            let transfer = matched.get(&(counted.at, work.at)).copied().unwrap_or(work.dur).min(work.dur);
            kinds.entry(called).or_insert((usual, Vec::new())).1.push((work, transfer));
        }
        for (called, (usual, works)) in kinds {
            let alone = population.ranks.len() == 1;
            found.entry(called).or_default().extend(latency(counted, called, usual, works, alone));
        }
    }
    found.into_values().filter_map(|costs| population.across(costs)).collect()
}

/// One rank `alone` cannot tell the transfer from waiting for the others.
fn latency(counted: &Counted<'_>, called: &'static str, usual: Ns, works: Moved<'_>, alone: bool) -> Option<Cost> {
    let median = super::median(works.iter().map(|(_, ns)| *ns))?;
    let small: Vec<(&Work, Ns)> = works.into_iter().filter(|(_, ns)| *ns < SMALL * median).collect();
    let excess: Ns = small.iter().map(|(_, ns)| (ns - usual).max(0)).sum();
    let whole: Ns = small.iter().map(|(_, ns)| ns).sum();
    let latency = small.len() >= CALLS && median <= usual * LONGEST;
    if counted.share(excess) < LEAST.0 || !latency {
        return None;
    }
    let kernel = longest(small.iter().map(|(work, _)| *work))?;
    let quick = small.iter().map(|(work, ns)| (work.at, usual.min(*ns))).collect();
    let edits = vec![Edit::Hoped(Box::new(Edit::Transfer(quick)))];
    let kind = Kind::Collective { kernel, called, median, usual };
    let works = small.into_iter().map(|(work, _)| work);
    let bounds = (excess * 6 / 10, excess.max(whole.min(excess * 11 / 10)));
    let mut cost = counted.of_work(kind, Layer::Communication, works, (excess, bounds), edits);
    cost.inherent = alone || median * 8 <= usual * HEALTHY;
    if alone {
        cost.bounds.0 = 0;
    }
    Some(cost)
}

fn longest<'w>(works: impl Iterator<Item = &'w Work>) -> Option<StringId> {
    let mut names: BTreeMap<StringId, Ns> = BTreeMap::new();
    works.for_each(|work| *names.entry(work.name).or_default() += work.dur);
    names.into_iter().max_by_key(|(name, ns)| (*ns, std::cmp::Reverse(*name))).map(|(name, _)| name)
}

/// Links between two stages of a pipeline that are slower than the best one.
fn links(population: &Population<'_>) -> Vec<Cost> {
    let analysis = population.analysis;
    let mut ends: BTreeMap<(usize, usize), Vec<Sent>> = BTreeMap::new();
    for instance in &analysis.job.instances {
        let pair = analysis.job.groups.get(instance.group).is_some_and(|group| group.is_pair);
        let [a, b] = instance.members[..] else { continue };
        let bytes = [a, b].iter().filter_map(|member| work_of(population, member.rank, member.op)?.bytes).max();
        if let Some(bytes) = bytes.filter(|bytes| pair && *bytes > 0) {
            let members = vec![(a.rank, a.op), (b.rank, b.op)];
            let link = (a.rank.min(b.rank), a.rank.max(b.rank));
            ends.entry(link).or_default().push((instance.transfer, bytes, members));
        }
    }
    let rate = |calls: &[Sent]| {
        let (time, bytes) = calls.iter().fold((0, 0i64), |(t, b), (ns, more, _)| (t + ns, b.saturating_add(*more)));
        bytes as f64 / time.max(1) as f64
    };
    let best = ends.values().map(|calls| rate(calls)).fold(LINK.0, f64::max);
    let cost = |((a, b), calls): ((usize, usize), Vec<Sent>)| {
        let usual = |bytes: i64| (bytes as f64 / best) as Ns + LINK.1;
        let excess: Ns = calls.iter().map(|(ns, bytes, _)| (ns - usual(*bytes)).max(0)).sum();
        let counted = population.ranks.iter().find(|rank| rank.at == a)?;
        if counted.share(excess) < LEAST.1 {
            return None;
        }
        let number = |at: usize| analysis.ranks.get(at).map_or(at as u32, |rank| rank.rank);
        let kind = Kind::Link { ends: (number(a), number(b)), reaches: rate(&calls) * 1e9, best: best * 1e9 };
        let own = calls.iter().flat_map(|(.., members)| members).filter(|(rank, _)| *rank == a);
        let works: Vec<&Work> = own.filter_map(|(rank, op)| work_of(population, *rank, *op)).collect();
        let mut cost = counted.of_work(
            kind,
            Layer::Communication,
            works,
            (excess, (excess * 9 / 10, excess * 105 / 100)),
            Vec::new(),
        );
        for at in [a, b] {
            let quick = calls.iter().filter_map(|(ns, bytes, members)| {
                let (_, op) = members.iter().find(|(rank, _)| *rank == at)?;
                Some((*op, usual(*bytes).min(*ns)))
            });
            cost.edits.push((at, Edit::Transfer(quick.collect())));
        }
        cost.ranks = vec![a, b];
        Some(cost)
    };
    ends.into_iter().filter_map(cost).collect()
}

fn work_of<'p>(population: &'p Population<'_>, rank: usize, op: u32) -> Option<&'p Work> {
    let counted = population.ranks.iter().find(|counted| counted.at == rank)?;
    let at = counted.work.binary_search_by_key(&op, |work| work.at).ok()?;
    counted.work.get(at)
}

/// Waiting of the others for one rank, and of the stages of a pipeline for each other.
fn waiting(population: &Population<'_>) -> Vec<Cost> {
    let job = &population.analysis.job;
    // Exposed waits by late rank and collective, in groups and in pairs of stages.
    let mut late: [BTreeMap<usize, BTreeMap<usize, Vec<Ns>>>; 2] = Default::default();
    for wait in &job.waits {
        let group = job.instances.get(wait.instance).and_then(|instance| job.groups.get(instance.group));
        let pair = usize::from(group.is_some_and(|group| group.is_pair));
        let Some(work) = work_of(population, wait.rank, wait.op) else { continue };
        if let Some(late) = late.get_mut(pair) {
            let waits = late.entry(wait.late).or_default().entry(wait.instance).or_default();
            waits.push(wait.exposed.min(work.own));
        }
    }
    let [collectives, pairs] = late;
    let own: BTreeMap<usize, Ns> = population.ranks.iter().map(|counted| (counted.at, waits(counted))).collect();
    let culprit = of_one(population, collectives, &own, |part| Kind::Waiting { part });
    culprit.into_iter().chain(of_one(population, pairs, &own, |_| Kind::Bubble)).collect()
}

/// Waiting of a rank in its collectives, ns.
fn waits(counted: &Counted<'_>) -> Ns {
    let ops = counted.work.iter().filter(|work| work.kind == OpKind::Comm);
    ops.filter_map(|work| counted.rank.exclusive.get(work.at as usize)).map(|own| own.waiting).sum()
}

/// The rank that most of the waiting is for, unless it waits as long itself: then all of them wait for one that was not captured.
fn of_one(
    population: &Population<'_>,
    late: BTreeMap<usize, BTreeMap<usize, Vec<Ns>>>,
    own: &BTreeMap<usize, Ns>,
    kind: impl Fn(f64) -> Kind,
) -> Option<Cost> {
    let sums = late.iter().map(|(rank, waits)| (*rank, waits.values().flatten().sum::<Ns>()));
    let all: Ns = sums.clone().map(|(_, ns)| ns).sum();
    let (culprit, ns) = sums.max_by_key(|(rank, ns)| (*ns, std::cmp::Reverse(*rank)))?;
    let counted = population.ranks.iter().find(|counted| counted.at == culprit)?;
    let part = ns as f64 / all.max(1) as f64;
    // Were it as early as the next one, the others would wait as much less as that one waits for it.
    let total: Ns = late.get(&culprit)?.values().filter_map(|waits| waits.iter().min()).sum();
    let absent = own.get(&culprit).is_some_and(|own| own * 2 >= total);
    let kind = kind(part);
    if counted.share(total) < LEAST.2 || part <= CULPRIT || absent && kind != Kind::Bubble {
        return None;
    }
    let members = population.analysis.job.instances.iter().flat_map(|instance| &instance.members);
    let mut ops: Vec<u32> = members.filter(|member| member.rank == culprit).map(|member| member.op).collect();
    ops.sort_unstable();
    let works = ops.iter().filter_map(|op| work_of(population, culprit, *op));
    Some(counted.of_work(kind, Layer::Communication, works, (total, (total * 7 / 10, total * 11 / 10)), Vec::new()))
}

/// Communication that nothing runs beside.
fn exposed(counted: &Counted<'_>) -> Option<Cost> {
    let works: Vec<&Work> = counted.work.iter().filter(|work| work.kind == OpKind::Comm).collect();
    let own: Ns = works.iter().map(|work| work.own).sum();
    let kernel = longest(works.iter().copied())?;
    if counted.share(own) < EXPOSED {
        return None;
    }
    let kind = Kind::Exposed { kernel };
    Some(counted.of_work(kind, Layer::Communication, works, (own, (0, own)), Vec::new()))
}
