//! Collectives matched across the ranks of a job: by group and sequence number where the source records them, else by order
//! with an alignment that survives dropped records and different capture starts. No clock of one rank is compared with that
//! of another.

use std::collections::BTreeMap;

use model::{CollectiveCall, Detail, Manifest, Ns, StringId, Trace};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use shape::Shape;

use super::{
    align::{self, Item},
    collective::Split,
    job::{Group, Instance, Job, Member, fast, sends},
    timeline::{DeviceOp, OpKind, Timeline},
};
use crate::platform::CanonicalOp;

mod pairs;
mod shape;

/// Groups without a name that are told apart by their ranks leaving together; further ranks stay unmatched.
const UNNAMED: usize = 16;
/// Share of pairs that must leave together for ranks to be taken for one group.
const TOGETHER: f64 = 0.5;
/// A transfer is slow above so many times the usual one (method §2.5), of at least so many instances.
const SLOW: (Ns, Ns, usize) = (3, 2, 20);

/// Operations looked back upon for the one that computed what a collective sends; own value.
const BEFORE: usize = 16;

/// Operations by which a model of experts is known.
const EXPERTS: [CanonicalOp; 2] = [CanonicalOp::GroupedGemm, CanonicalOp::MoeRoute];

/// One collective of a rank.
#[derive(Clone, Copy)]
struct Call {
    op: u32,
    item: Item,
    seq: Option<i64>,
    /// Whether it sends or receives, where its name says one of the two.
    sends: Option<bool>,
    /// What it does, whatever it moves.
    name: StringId,
    /// Whether its payload is known, which is then part of its kind.
    weighed: bool,
}

/// A rank's part of a collective, and how long it took.
type Part = (usize, Call, Ns);

/// The collectives of one group as each rank recorded them.
#[derive(Default)]
struct Recorded {
    size: Option<u32>,
    calls: BTreeMap<usize, Vec<Call>>,
}

/// Matches the collectives of all ranks. `splits` give the transfer that one rank alone would assume, which bounds that of a
/// group of which not every rank was captured.
pub(super) fn run(trace: &Trace, timelines: &[Timeline], splits: &[Split]) -> Job {
    let mut job = Job::default();
    if timelines.len() < 2 {
        return job;
    }
    let recorded = record(trace, timelines);
    job.one_sided = recorded.one_sided;
    for (name, recorded) in recorded.pairs {
        let all: usize = recorded.calls.values().map(Vec::len).sum();
        let before: usize = job.instances.iter().map(|i| i.members.len()).sum();
        let (name, first) = (name.map(|id| trace.strings.get(id).to_owned()), job.groups.len());
        pairs::match_all(&mut job, name, recorded);
        job.groups.iter_mut().skip(first).for_each(|group| group.is_pair = true);
        let matched = job.instances.iter().map(|i| i.members.len()).sum::<usize>() - before;
        job.one_sided += all.saturating_sub(matched) as u64;
    }
    for (name, recorded) in recorded.groups {
        let name = name.map(|id| trace.strings.get(id).to_owned());
        let all: usize = recorded.calls.values().map(Vec::len).sum();
        let before: usize = job.instances.iter().map(|i| i.members.len()).sum();
        by_number_or_order(&mut job, name, recorded);
        let matched = job.instances.iter().map(|i| i.members.len()).sum::<usize>() - before;
        job.unmatched += all.saturating_sub(matched) as u64;
    }
    let world = trace.manifest.count("parallel.world_size");
    let least = world.or_else(|| trace.manifest.count(Manifest::RANKS_AT_LEAST));
    let open = least.is_some_and(|world| world > timelines.len() as u64);
    for group in &mut job.groups {
        // Both ends of a send are there.
        group.open = open && !group.is_pair;
        group.counted = group.is_pair || group.size.is_some() || world.is_some();
    }
    order(&mut job, timelines);
    tell_apart(&mut job, timelines, &recorded.without_payload);
    settle(trace, &mut job, timelines, splits);
    job
}

/// What all ranks recorded.
struct AllRecorded {
    /// Collectives by group and rank.
    groups: BTreeMap<Option<StringId>, Recorded>,
    /// Sends and receives between two ranks, by group and rank.
    pairs: BTreeMap<Option<StringId>, Recorded>,
    /// How many were left out because their ranks do not leave together.
    one_sided: u64,
    /// Kinds whose payload is not known.
    without_payload: FxHashSet<u32>,
}

fn record(trace: &Trace, timelines: &[Timeline]) -> AllRecorded {
    let mut groups: BTreeMap<Option<StringId>, Recorded> = BTreeMap::new();
    let mut pairs: BTreeMap<Option<StringId>, Recorded> = BTreeMap::new();
    let mut send = None;
    let mut symbols: FxHashMap<(StringId, Option<i64>), u32> = FxHashMap::default();
    let mut shapes: FxHashMap<StringId, Shape> = FxHashMap::default();
    let mut rooted: BTreeMap<(Option<StringId>, i64, u32), Vec<Part>> = BTreeMap::new();
    let mut one_sided = 0;
    let pipeline =
        trace.manifest.value("parallel.pp").and_then(|v| v.trim().parse::<u32>().ok()).is_some_and(|n| n > 1);
    for (rank, timeline) in timelines.iter().enumerate() {
        let exchanges = !pipeline && timeline.ops.iter().any(|op| EXPERTS.contains(&op.op));
        // An operation of no length has no wait, and no moment at which it was left.
        let collectives = timeline.ops.iter().enumerate().filter(|(_, op)| op.kind == OpKind::Comm && op.dur() > 0);
        for (i, op) in collectives {
            let call = description(trace, op);
            let name = call.and_then(|c| c.op).unwrap_or(op.name);
            let shape = *shapes.entry(name).or_insert_with(|| Shape::of(trace.strings.get(name)));
            let shape = if exchanges && call.is_none() { shape.of_experts(trace.strings.get(name)) } else { shape };
            let seq = call.and_then(|c| c.seq);
            if shape == Shape::OneSided && seq.is_none() {
                one_sided += 1;
                continue;
            }
            // Each rank has its own share of an uneven exchange.
            let bytes = call.and_then(|c| c.bytes).filter(|_| shape != Shape::Uneven);
            let sends = sends(trace.strings.get(name));
            // The send of one rank is the receive of the other.
            let name = if shape == Shape::Pair { *send.get_or_insert(name) } else { name };
            let next = symbols.len() as u32;
            let symbol = *symbols.entry((name, bytes)).or_insert(next);
            let item = Item { symbol, end: op.end };
            let own = Call { op: i as u32, item, seq, sends, name, weighed: bytes.is_some() };
            let group = call.and_then(|c| c.group);
            if let (Shape::OneSided, Some(seq)) = (shape, seq) {
                rooted.entry((group, seq, symbol)).or_default().push((rank, own, op.dur()));
                continue;
            }
            let groups = if shape == Shape::Pair { &mut pairs } else { &mut groups };
            let recorded = groups.entry(group).or_default();
            recorded.size = recorded.size.max(call.and_then(|c| c.group_size));
            recorded.calls.entry(rank).or_default().push(own);
        }
    }
    for ((group, ..), members) in rooted {
        match left_together(&members) {
            true => members.into_iter().for_each(|(rank, call, _)| {
                groups.entry(group).or_default().calls.entry(rank).or_default().push(call);
            }),
            false => one_sided += members.len() as u64,
        }
    }
    // Operations lie in order of start; what follows a queue is ordered by end as well, and so must be what is aligned.
    let in_order = |calls: &mut Vec<Call>| calls.sort_by_key(|c| (c.item.end, c.op));
    pairs.values_mut().flat_map(|g| g.calls.values_mut()).for_each(in_order);
    let is_exchange = |recorded: &Recorded| !pipeline && pairs::is_exchange(recorded);
    let (exchanges, pairs): (BTreeMap<_, _>, _) = pairs.into_iter().partition(|(_, recorded)| is_exchange(recorded));
    for (name, exchange) in exchanges {
        let group = groups.entry(name).or_default();
        exchange.calls.into_iter().for_each(|(rank, calls)| group.calls.entry(rank).or_default().extend(calls));
    }
    groups.values_mut().flat_map(|g| g.calls.values_mut()).for_each(in_order);
    let without_payload = symbols.iter().filter(|((_, bytes), _)| bytes.is_none()).map(|(_, kind)| *kind).collect();
    AllRecorded { groups, pairs, one_sided, without_payload }
}

/// Share of the longest part within which the parts of a broadcast must end to have been left together; own value.
const AT_ONCE: Ns = 50;

/// Whether all ranks left a broadcast, or a reduction to one rank, together, as the clocks say that they recorded it with: HCCL's
/// have no buffer by which the sender could go on. Clocks that are apart do not say it.
fn left_together(members: &[Part]) -> bool {
    let ends = || members.iter().map(|(_, call, _)| call.item.end);
    let (Some(first), Some(last)) = (ends().min(), ends().max()) else { return false };
    let longest = members.iter().map(|(.., dur)| *dur).max().unwrap_or(0);
    members.len() > 1 && last.saturating_sub(first) <= super::job::LEAVE.max(longest / AT_ONCE)
}

fn description<'a>(trace: &'a Trace, op: &DeviceOp) -> Option<&'a CollectiveCall> {
    let (track, row) = trace.locate(op.slice)?;
    match trace.detail(trace.lanes.get(track.0 as usize)?, row)? {
        Detail::Kernel(kernel) => kernel.collective.as_deref(),
        Detail::Collective(call) => Some(call),
        _ => None,
    }
}

/// Members by kind, those whose payload is known first.
type Kinds = BTreeMap<(bool, u32), Vec<Member>>;

/// Members of one instance, and its kind.
type Found = (u32, Vec<Member>);

fn by_number_or_order(job: &mut Job, name: Option<String>, recorded: Recorded) {
    if recorded.calls.values().flatten().all(|call| call.seq.is_some()) {
        let found = by_sequence(&recorded);
        add(job, name, recorded.size, found);
    } else {
        by_order(job, name, recorded);
    }
}

/// Calls of one number and name; of several payloads each is an instance of its own. Files of sums do not say the payload: what they
/// tell belongs to the instance that was weighed elsewhere.
fn by_sequence(recorded: &Recorded) -> Vec<Found> {
    let mut found: BTreeMap<(i64, StringId, u32), Kinds> = BTreeMap::new();
    for (rank, calls) in &recorded.calls {
        let mut seen: FxHashMap<(i64, StringId), u32> = FxHashMap::default();
        for call in calls {
            let Some(seq) = call.seq else { continue };
            let nth = seen.entry((seq, call.name)).or_default();
            let kinds = found.entry((seq, call.name, *nth)).or_default();
            kinds.entry((!call.weighed, call.item.symbol)).or_default().push(Member { rank: *rank, op: call.op });
            *nth += 1;
        }
    }
    let mut out = Vec::new();
    for kinds in found.into_values() {
        let mut instances: Vec<Found> = Vec::new();
        for ((unweighed, kind), members) in kinds {
            match instances.first_mut().filter(|_| unweighed) {
                Some((_, first)) => first.extend(members),
                None => instances.push((kind, members)),
            }
        }
        instances.iter_mut().for_each(|(_, members)| members.sort_by_key(|member| (member.rank, member.op)));
        out.append(&mut instances);
    }
    out
}

/// Aligns all ranks with the one that recorded most. Ranks of a group without a name are those that leave together.
fn by_order(job: &mut Job, name: Option<String>, recorded: Recorded) {
    let mut rest = recorded.calls;
    for _ in 0..UNNAMED {
        let Some(first) = rest.iter().max_by_key(|(rank, c)| (c.len(), std::cmp::Reverse(**rank))).map(|(r, _)| *r)
        else {
            break;
        };
        let Some(reference) = rest.remove(&first) else { break };
        let items = |calls: &[Call]| calls.iter().map(|c| c.item).collect::<Vec<Item>>();
        let own = items(&reference);
        let aligned: Vec<(usize, Vec<(usize, usize)>)> = rest
            .par_iter()
            .filter_map(|(rank, calls)| {
                let other = items(calls);
                let pairs = align::align(&own, &other);
                let member = name.is_some() || align::together(&own, &other, &pairs) >= TOGETHER;
                (!pairs.is_empty() && member).then_some((*rank, pairs))
            })
            .collect();
        let mut found: Vec<Found> =
            reference.iter().map(|c| (c.item.symbol, vec![Member { rank: first, op: c.op }])).collect();
        for (rank, pairs) in aligned {
            let Some(calls) = rest.remove(&rank) else { continue };
            for (i, j) in pairs {
                if let (Some((_, members)), Some(call)) = (found.get_mut(i), calls.get(j)) {
                    members.push(Member { rank, op: call.op });
                }
            }
        }
        add(job, name.clone(), recorded.size, found);
        if rest.len() < 2 {
            break;
        }
    }
}

fn add(job: &mut Job, name: Option<String>, size: Option<u32>, found: Vec<Found>) {
    let found: Vec<Found> = found.into_iter().filter(|(_, members)| members.len() > 1).collect();
    let mut ranks: Vec<usize> = found.iter().flat_map(|(_, members)| members).map(|m| m.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    if ranks.is_empty() {
        return;
    }
    let group = job.groups.len();
    job.groups.push(Group { name, size, open: false, counted: false, is_pair: false, ranks, instances: 0 });
    job.instances.extend(found.into_iter().map(|(kind, mut members)| {
        members.sort_by_key(|m| m.rank);
        Instance { members, transfer: 0, group, kind, slow: false }
    }));
}

/// Puts the instances into an order that agrees with that of every rank. Instances that contradict each other were matched
/// wrongly; they are taken apart again.
fn order(job: &mut Job, timelines: &[Timeline]) {
    let mut queues: Vec<Vec<(u32, usize)>> = vec![Vec::new(); timelines.len()];
    for (i, instance) in job.instances.iter().enumerate() {
        for member in &instance.members {
            queues[member.rank].push((member.op, i));
        }
    }
    queues.iter_mut().for_each(|queue| queue.sort_unstable());
    let mut heads = vec![0; queues.len()];
    let mut missing: Vec<usize> = job.instances.iter().map(|i| i.members.len()).collect();
    let mut sorted = Vec::with_capacity(job.instances.len());
    let mut ready: Vec<usize> = (0..queues.len()).rev().collect();
    let mut broken = vec![false; job.instances.len()];
    loop {
        while let Some(rank) = ready.pop() {
            let Some((_, i)) = queues[rank].get(heads[rank]).copied() else { continue };
            if broken[i] {
                heads[rank] += 1;
                ready.push(rank);
                continue;
            }
            missing[i] -= 1;
            if missing[i] == 0 {
                sorted.push(i);
                for member in job.instances[i].members.iter().rev() {
                    heads[member.rank] += 1;
                    ready.push(member.rank);
                }
            }
        }
        let stuck = (0..queues.len()).find_map(|rank| Some((rank, queues[rank].get(heads[rank])?.1)));
        let Some((_, i)) = stuck else { break };
        broken[i] = true;
        job.unmatched += job.instances[i].members.len() as u64;
        ready.extend(
            job.instances[i]
                .members
                .iter()
                .map(|m| m.rank)
                .filter(|r| queues[*r].get(heads[*r]).is_some_and(|(_, head)| *head == i)),
        );
    }
    let mut taken: Vec<Option<Instance>> = std::mem::take(&mut job.instances).into_iter().map(Some).collect();
    job.instances = sorted.into_iter().filter_map(|i| taken.get_mut(i)?.take()).collect();
}

/// Collectives whose payload nobody recorded, as those inside graphs, are comparable only in one place of the model: what
/// follows the same kernel sends the same. The exchange of experts and the sum after attention may run by one kernel.
fn tell_apart(job: &mut Job, timelines: &[Timeline], without_payload: &FxHashSet<u32>) {
    let mut next = job.instances.iter().map(|i| i.kind + 1).max().unwrap_or(0);
    let mut kinds: FxHashMap<(u32, Option<StringId>), u32> = FxHashMap::default();
    for instance in job.instances.iter_mut().filter(|i| without_payload.contains(&i.kind)) {
        let first = instance.members.first();
        let place = first.and_then(|m| computed_before(timelines.get(m.rank)?, m.op as usize));
        instance.kind = *kinds.entry((instance.kind, place)).or_insert_with(|| {
            next += 1;
            next - 1
        });
    }
}

/// Name of the last computation that ended before a collective began.
fn computed_before(timeline: &Timeline, at: usize) -> Option<StringId> {
    let collective = timeline.ops.get(at)?;
    let before = timeline.ops.get(at.saturating_sub(BEFORE)..at)?.iter();
    let computed = before.filter(|op| op.kind == OpKind::Compute && op.end <= collective.start);
    computed.max_by_key(|op| op.end).map(|op| op.name)
}

/// Transfers, what is slow, and the sizes of the groups.
fn settle(trace: &Trace, job: &mut Job, timelines: &[Timeline], splits: &[Split]) {
    let mut transfers: FxHashMap<(usize, u32), Vec<Ns>> = FxHashMap::default();
    for instance in &mut job.instances {
        let Some(group) = job.groups.get_mut(instance.group) else { continue };
        group.instances += 1;
        let ops =
            || instance.members.iter().filter_map(|m| Some((m.rank, timelines.get(m.rank)?.ops.get(m.op as usize)?)));
        // Where nobody says that all ranks of the group are here, even the last of these may have waited for another one:
        // then what it recorded of its own waiting tells. Where all are here, the last one waits for nobody.
        let whole = group.counted && group.is_complete();
        let own = |(rank, op): (usize, &DeviceOp)| {
            let told = splits.get(rank).and_then(|split| split.reported(op)).filter(|_| !whole);
            told.map_or(op.dur(), |told| told.min(op.dur()))
        };
        instance.transfer = ops().map(own).min().unwrap_or(0);
        if !group.is_complete() {
            let alone = ops().filter_map(|(rank, op)| splits.get(rank)?.estimate_of(trace, op)).min();
            instance.transfer = alone.map_or(instance.transfer, |alone| alone.min(instance.transfer));
        }
        transfers.entry((instance.group, instance.kind)).or_default().push(instance.transfer);
    }
    let usual: FxHashMap<(usize, u32), Ns> = transfers
        .into_iter()
        .filter(|(_, transfers)| transfers.len() >= SLOW.2)
        .filter_map(|(kind, transfers)| Some((kind, fast(transfers)?)))
        .collect();
    for instance in &mut job.instances {
        let usual = usual.get(&(instance.group, instance.kind));
        instance.slow = usual.is_some_and(|usual| SLOW.1 * instance.transfer > SLOW.0 * usual);
    }
}
