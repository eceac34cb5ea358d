//! Idle time by what the host did: descending from the heaviest kind of idle time to the deepest site that still holds half of it,
//! again and again; then sites that are one are merged, and the same site of several ranks is one cost.

mod descend;
mod merge;
mod site;

use std::collections::BTreeMap;

use model::{Ns, Span, StringId};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use self::{descend::Owned, site::Sites};
use crate::{
    analysis::{AnchorKind, Edit, Layer, owners},
    cause::{Cost, Kind, Occurs, Population, Site, population::Counted},
    ledger::{
        device::Work,
        idle::{self, Idle, Kind as Why},
        names::{self, Key},
    },
    platform::Packs,
};

/// Ranks whose idle time is cut: those of a large job are alike, and each is cut by itself.
const RANKS: usize = 64;
/// Part of the pauses between graph nodes that a better driver could save: some of it is the devices' own.
const NODES: Ns = 2;
/// Part of the counted time by which the most that a change brings may exceed the host's idle time: two runs differ by as much.
const APART: Ns = 100;

/// A cost, and its site without what only counts, by which ranks are compared.
type Found = (String, Cost);

/// Costs of idle time by owner.
pub fn generate(population: &Population<'_>, packs: &Packs) -> Vec<Cost> {
    let ranks: Vec<&Counted<'_>> = population.ranks.iter().take(RANKS).collect();
    let of_ranks: Vec<Vec<Found>> = ranks.par_iter().map(|counted| of_rank(population, packs, counted)).collect();
    let mut sites: BTreeMap<String, Vec<Cost>> = BTreeMap::new();
    for (called, cost) in of_ranks.into_iter().flatten() {
        sites.entry(called).or_default().push(cost);
    }
    sites.into_values().filter_map(|costs| population.across(costs)).collect()
}

fn of_rank(population: &Population<'_>, packs: &Packs, counted: &Counted<'_>) -> Vec<Found> {
    let idle = idle::of(population.trace, counted.rank, &counted.steps);
    // The mark of a step holds all that is done in the step: it says where, not what.
    let marks = |key: Key| match idle.names.site(key) {
        Some(names::Site::Record(name, _)) => packs.step_label(population.text(name)).is_some(),
        _ => false,
    };
    let plumbing = |key: Key, innermost: bool| {
        idle.names.record_of(key).is_some_and(|name| owners::is_plumbing(population.text(name)))
            || (!innermost && marks(key))
    };
    let mut owned = descend::descend(&idle, counted.total, &plumbing);
    merge::merge(&mut owned, &idle, counted.rank);
    let host = host_idle(&idle, counted);
    let sites = Sites::of(&idle, &plumbing, &marks);
    let mut out: Vec<Found> =
        owned.iter().filter_map(|owned| found(population, packs, counted, (&sites, owned), &host)).collect();
    out.extend(scattered(counted, &idle, &owned).map(|cost| ("scattered".to_owned(), cost)));
    out
}

/// What the host explains and no owner holds.
fn scattered(counted: &Counted<'_>, idle: &Idle<'_>, owned: &[Owned]) -> Option<Cost> {
    let mut taken: Vec<u32> = owned.iter().flat_map(|one| one.parts.iter().copied()).collect();
    taken.sort_unstable();
    let left = (0u32..).zip(&idle.parts).filter(|(at, part)| part.kind.is_host() && taken.binary_search(at).is_err());
    let spans: Vec<Span> = left.map(|(_, part)| part.span).collect();
    let total: Ns = spans.iter().map(|span| span.len()).sum();
    let longest = spans.iter().map(|span| span.len()).max()?;
    let mut cost = counted.of_work(Kind::Scattered, Layer::Runtime, [], (total, (0, total)), Vec::new());
    (cost.count, cost.longest, cost.idle) = (spans.len(), longest, spans);
    Some(cost)
}

/// Idle time that the host explains, by counted step.
fn host_idle(idle: &Idle<'_>, counted: &Counted<'_>) -> FxHashMap<u32, Ns> {
    let mut out: FxHashMap<u32, Ns> = FxHashMap::default();
    for part in idle.parts.iter().filter(|part| part.kind.is_host()) {
        if let Some(gap) = counted.rank.gaps.get(part.gap as usize) {
            *out.entry(gap.step).or_default() += part.span.len();
        }
    }
    out
}

/// Part of the names of calls that start and stop a profiler (`cudaProfilerStop`, `hipProfilerStart`).
const PROFILER: &str = "ProfilerSt";

fn found(
    population: &Population<'_>,
    packs: &Packs,
    counted: &Counted<'_>,
    (sites, owned): (&Sites<'_>, &Owned),
    host: &FxHashMap<u32, Ns>,
) -> Option<Found> {
    let idle = sites.idle;
    let parts = || owned.parts.iter().filter_map(|part| idle.parts.get(*part as usize));
    let mut gaps: BTreeMap<u32, Ns> = BTreeMap::new();
    let mut steps: BTreeMap<u32, ()> = BTreeMap::new();
    for part in parts() {
        *gaps.entry(part.gap).or_default() += part.span.len();
        if let Some(gap) = counted.rank.gaps.get(part.gap as usize) {
            steps.insert(gap.step, ());
        }
    }
    let total: Ns = gaps.values().sum();
    let mut longest: Vec<Ns> = gaps.values().copied().collect();
    longest.sort_unstable_by(|a, b| b.cmp(a));
    let most = match owned.kind.is_host() {
        true => steps.keys().filter_map(|step| host.get(step)).sum::<Ns>().max(total) + counted.total / APART,
        false => total,
    };
    let site = sites.site(owned);
    // What the profiler does at its own end is no cost of the run.
    if site.record.is_some_and(|name| population.text(name).contains(PROFILER)) {
        return None;
    }
    // An empty queue, a stage of a pipeline and the way to the next step are no faults.
    let inherent = waits_for_requests(&site, packs, population)
        || is_of_pipeline(population, counted, owned)
        || is_between_steps(population, packs, &site, counted, owned);
    let kind = match owned.kind {
        Why::Host => Kind::Owner(site),
        Why::Chain => Kind::Chain(site),
        Why::Turnaround(sync) => Kind::Turnaround { sync: idle.names.record_of(sync)?, then: site },
        Why::Node => Kind::Nodes,
        Why::Queue => Kind::Queue,
        Why::Unstarted => Kind::Unstarted,
        // What nothing recorded explains is a doubt about the capture.
        Why::Blind => return None,
    };
    let total = if owned.kind == Why::Node { total / NODES } else { total };
    let served = served(counted, owned, &gaps);
    let total = total + served.iter().map(|work| work.own).sum::<Ns>();
    let mut edits = edits(counted, idle, owned);
    if !served.is_empty() {
        edits.push(Edit::Remove(served.iter().map(|work| work.at).collect()));
    }
    let least = total.min(recurring(owned.kind, &gaps, total)) * sure(owned.kind) / 100;
    let cost = Cost {
        kind,
        layer: Layer::Runtime,
        ranks: vec![counted.at],
        rank: counted.rank.rank,
        total,
        of: counted.total,
        apart: 0,
        steps: counted.steps.len(),
        count: gaps.len(),
        longest: longest.first().copied().unwrap_or(0),
        next: longest.into_iter().skip(1).take(NEXT).collect(),
        idle: parts().map(|part| part.span).collect(),
        ops: served.iter().map(|work| work.at).collect(),
        edits: edits.into_iter().map(|edit| (counted.at, edit)).collect(),
        bounds: (least, most.max(total)),
        occurs: lies(counted, idle, owned, &gaps),
        inherent,
    };
    let called = called(population, &cost.kind);
    Some((called, cost))
}

/// Medians of the ways back from a synchronization above which one of them is a pause of its own.
const PAUSE: Ns = 5;

/// What of an owner comes again: pauses between the usual ways back from a synchronization are no part of them.
fn recurring(kind: Why, gaps: &BTreeMap<u32, Ns>, total: Ns) -> Ns {
    let Some(usual) = super::median(gaps.values().copied()).filter(|_| matches!(kind, Why::Turnaround(_))) else {
        return total;
    };
    gaps.values().map(|ns| (*ns).min(usual.saturating_mul(PAUSE))).sum()
}

/// Part of an owner that its change surely brings, in percent. Against runs repeated without the fault, owners were low by 0.5 to 4
/// points of the step; of a launch chain a graph replay leaves up to a third.
fn sure(kind: Why) -> Ns {
    match kind {
        Why::Host => 85,
        Why::Turnaround(_) => 75,
        Why::Chain => 65,
        Why::Node | Why::Queue | Why::Unstarted | Why::Blind => 30,
    }
}

/// Part of the operations at the end of an owner's gaps that are copies from which the launches served only these, in percent.
const COPIES: usize = 80;

/// The copies that a launch chain of one site consists of: they go with it.
fn served<'w>(counted: &'w Counted<'_>, owned: &Owned, gaps: &BTreeMap<u32, Ns>) -> Vec<&'w Work> {
    if owned.kind != Why::Chain || owned.key.is_none() {
        return Vec::new();
    }
    let ops = gaps.keys().filter_map(|gap| counted.rank.gaps.get(*gap as usize)?.owner);
    let work = |op: u32| counted.work.get(counted.work.binary_search_by_key(&op, |work| work.at).ok()?);
    let works: Vec<&Work> = ops.filter_map(work).collect();
    let copies: Vec<&Work> = works.iter().copied().filter(|work| work.direction().is_some()).collect();
    if copies.len() * 100 >= works.len() * COPIES { copies } else { Vec::new() }
}

/// Whether the host waits there for requests: an empty queue is no fault.
fn waits_for_requests(site: &Site, packs: &Packs, population: &Population<'_>) -> bool {
    let waits = |name: &StringId| packs.host_activity(population.text(*name)) == Some("await_request");
    site.record.iter().chain(&site.path).any(waits)
}

/// Instances that carry most of a cost; and up to how many of them it is a single event.
const CARRY: (Ns, Ns) = (4, 5);
const SINGLE: usize = 2;
/// Part of the longest pause from which another one is as long.
const ALIKE: (Ns, Ns) = (4, 5);
/// Part of the counted time from which a single event is told as one.
const EVENT: Ns = 20;
/// Fewest marked steps of which the first may be a warm-up.
const STEPS: usize = 8;
/// First part of the run in which what lies there alone is a warm-up.
const QUARTER: Ns = 4;

fn lies(counted: &Counted<'_>, idle: &Idle<'_>, owned: &Owned, gaps: &BTreeMap<u32, Ns>) -> Occurs {
    let mut order: Vec<(Ns, u32)> = gaps.iter().map(|(gap, ns)| (*ns, *gap)).collect();
    order.sort_unstable_by(|a, b| b.cmp(a));
    let total: Ns = gaps.values().sum();
    let mut sum = 0;
    let carry = order.iter().take_while(|(ns, _)| {
        let more = sum * CARRY.1 < total * CARRY.0;
        sum += ns;
        more
    });
    let carry: FxHashSet<u32> = carry.map(|(_, gap)| *gap).collect();
    let longest = order.first().map_or(0, |(ns, _)| *ns);
    // What few steps have in at least every second of them comes again.
    let marked = counted.rank.anchor.kind != AnchorKind::WholeCapture && counted.steps.len() > 1;
    let mut held: Vec<u32> =
        carry.iter().filter_map(|gap| counted.rank.gaps.get(*gap as usize)).map(|gap| gap.step).collect();
    held.sort_unstable();
    held.dedup();
    let again = |held: &[u32]| marked && 2 * held.len() >= counted.steps.len();
    // So does a pause that other steps have as well, whatever it is charged to there.
    let alike = counted.rank.gaps.iter().filter(|gap| gap.span.len().saturating_mul(ALIKE.1) >= longest * ALIKE.0);
    let counted_step = |step: &u32| counted.steps.binary_search_by_key(step, |own| own.index).is_ok();
    let mut alike: Vec<u32> = alike.map(|gap| gap.step).filter(counted_step).collect();
    alike.dedup();
    let again = again(&held) || again(&alike);
    if carry.len() <= SINGLE && longest.saturating_mul(EVENT) >= counted.total && !again {
        return Occurs::Once;
    }
    let window = counted.window();
    let starts = owned.parts.iter().filter_map(|part| idle.parts.get(*part as usize));
    let last = starts.filter(|part| carry.contains(&part.gap)).map(|part| part.span.start).max();
    let early = last.is_some_and(|last| (last - window.start).saturating_mul(QUARTER) < window.len());
    // The first quarter of one step that is marked is no warm-up.
    let marked = counted.rank.anchor.kind != AnchorKind::WholeCapture;
    let runs = !marked || counted.steps.len() >= STEPS;
    if early && runs && carry.len() > SINGLE { Occurs::AtStart } else { Occurs::Throughout }
}

/// The change: cautiously the sure part of the host's time goes, hopefully all of it.
fn edits(counted: &Counted<'_>, idle: &Idle<'_>, owned: &Owned) -> Vec<Edit> {
    let lag = counted.rank.timeline.lag;
    let mut least: BTreeMap<_, Vec<(Span, Ns)>> = BTreeMap::new();
    let mut most: BTreeMap<_, Vec<(Span, Ns)>> = BTreeMap::new();
    for part in owned.parts.iter().filter_map(|part| idle.parts.get(*part as usize)) {
        let Some(track) = part.track.filter(|_| part.path.is_some()) else { continue };
        let kept = part.span.len() * (100 - sure(owned.kind)) / 100;
        let on_host = Span::new(part.span.start.saturating_add(lag), part.span.end.saturating_add(lag));
        least.entry(track).or_default().push((on_host, kept));
        most.entry(track).or_default().push((on_host, 0));
    }
    let least = least.into_iter().map(|(track, spans)| Edit::Host(track, spans));
    let most = most.into_iter().map(|(track, spans)| Edit::Hoped(Box::new(Edit::Host(track, spans))));
    least.chain(most).collect()
}

/// Instances after the longest that are kept.
const NEXT: usize = 2;

/// Part of the counted time up to which a stage of a pipeline comes back from its waits in any run, one part in so many.
const STAGE: Ns = 8;

/// Whether it is the usual way back from a wait of a pipeline's stage.
fn is_of_pipeline(population: &Population<'_>, counted: &Counted<'_>, owned: &Owned) -> bool {
    let pairs = population.analysis.job.groups.iter().any(|group| group.is_pair && group.ranks.contains(&counted.at));
    pairs && matches!(owned.kind, Why::Turnaround(_)) && owned.ns * STAGE < counted.total
}

/// Part of the counted time up to which an engine that schedules between two steps does so in any run, one part in so many.
const SCHEDULES: Ns = 10;

/// Whether it is the usual way from one step's mark to the next of an engine that waits for each step's tokens.
fn is_between_steps(
    population: &Population<'_>,
    packs: &Packs,
    site: &Site,
    counted: &Counted<'_>,
    owned: &Owned,
) -> bool {
    let is_mark = |name: Option<StringId>| name.is_some_and(|name| packs.step_label(population.text(name)).is_some());
    let small = matches!(owned.kind, Why::Turnaround(_)) && owned.ns.saturating_mul(SCHEDULES) < counted.total;
    small && site.between.is_some_and(|(before, next)| is_mark(before) && is_mark(next))
}

/// What a cost is called when ranks are compared.
fn called(population: &Population<'_>, kind: &Kind) -> String {
    let text = |name: &Option<StringId>| {
        name.map_or(String::new(), |name| names::general(population.text(name), model::Category::PythonFrame))
    };
    let at = |site: &Site| {
        let (before, next) = site.between.unwrap_or_default();
        let between =
            if site.between.is_some() { format!("|{}|{}", text(&before), text(&next)) } else { String::new() };
        text(&site.record.or(site.path.first().copied())) + &between
    };
    match kind {
        Kind::Owner(site) => format!("owner {}", at(site)),
        Kind::Turnaround { sync, then } => format!("turnaround {} {}", text(&Some(*sync)), at(then)),
        Kind::Chain(site) => format!("chain {}", at(site)),
        Kind::Queue => "queue".to_owned(),
        Kind::Unstarted => "unstarted".to_owned(),
        _ => "nodes".to_owned(),
    }
}
