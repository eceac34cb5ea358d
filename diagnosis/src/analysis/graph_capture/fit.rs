//! Which captured graph a replay is of, and which launch each of its kernels.

use std::collections::{BTreeSet, VecDeque};

use model::{Category, StringId, Trace};
use rustc_hash::FxHashMap;

use super::{Misfit, Node, SAME, captured::Graph, list};

/// Different graphs of one size that are told apart; engines capture one for each batch size.
const ALIKE: usize = 64;

/// What a replay was found to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Index of the graph.
    pub graph: usize,
    /// For each node of the replay the launch it is, as an index into the graph's launches.
    pub launches: Vec<Option<usize>>,
}

/// Name of a kernel; `None` of a copy or fill, whose launch names no kernel.
type Named = Option<StringId>;

fn named(run: &Trace, (track, row): Node) -> Named {
    let lane = run.lanes.get(track)?;
    (lane.category.get(row)? == &Category::Kernel).then(|| lane.name.get(row).copied())?
}

/// Finds the graph of every replay; `None` for one whose graph was not captured.
pub(super) fn fit(
    run: &Trace,
    capture: &Trace,
    replays: &[Vec<Node>],
    graphs: &[Graph],
) -> Result<Vec<Option<Found>>, Misfit> {
    let mut by_size: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    for (index, graph) in graphs.iter().enumerate() {
        let alike = by_size.entry(graph.launches.len()).or_default();
        let kernels = |graph: &Graph| -> Vec<Option<StringId>> { graph.launches.iter().map(|l| l.kernel).collect() };
        let known = |other: &usize| graphs.get(*other).is_some_and(|other| kernels(other) == kernels(graph));
        if alike.len() < ALIKE && !alike.iter().any(known) {
            alike.push(index);
        }
    }
    // Replays of one graph are alike: each different one is looked at once.
    let mut seen: FxHashMap<Vec<Named>, Option<Found>> = FxHashMap::default();
    let mut best = 0.0f64;
    let mut found = Vec::with_capacity(replays.len());
    for replay in replays {
        let names: Vec<Named> = replay.iter().map(|node| named(run, *node)).collect();
        let known = seen.entry(names).or_insert_with_key(|names| {
            let candidates = by_size.get(&names.len()).map_or(&[][..], Vec::as_slice);
            choose(run, capture, names, candidates, graphs, &mut best)
        });
        found.push(known.clone());
    }
    if found.iter().any(Option::is_some) {
        return Ok(found);
    }
    let sizes = |sizes: BTreeSet<usize>| list(&sizes.into_iter().collect::<Vec<_>>());
    Err(Misfit::NoneFits {
        replays: sizes(replays.iter().map(Vec::len).collect()),
        graphs: sizes(graphs.iter().map(|graph| graph.launches.len()).collect()),
        best: format!("{:.1} %", 100.0 * best),
    })
}

fn choose(
    run: &Trace,
    capture: &Trace,
    names: &[Named],
    candidates: &[usize],
    graphs: &[Graph],
    best: &mut f64,
) -> Option<Found> {
    let mut chosen: Option<(f64, Found)> = None;
    for index in candidates {
        let graph = graphs.get(*index)?;
        let launches = pair(run, capture, names, graph);
        let share = match &launches {
            Some(launches) => launches.iter().flatten().count() as f64 / names.len().max(1) as f64,
            // Without names the only graph of that size is taken; of several none can be told to be it.
            None if candidates.len() == 1 => 1.0,
            None => continue,
        };
        *best = best.max(share);
        if share >= SAME && chosen.as_ref().is_none_or(|(known, _)| *known < share) {
            let launches = launches.unwrap_or_else(|| (0..names.len()).map(Some).collect());
            chosen = Some((share, Found { graph: *index, launches }));
        }
    }
    chosen.map(|(_, found)| found)
}

/// Whether a name says what a kernel is.
pub(super) fn is_name(name: &str) -> bool {
    !matches!(name, "" | "N/A" | "NA")
}

/// The launch of each node: the k-th of its name. A kernel without a name takes the launch at its own place. `None` where
/// the launches name no kernels, or the kernels have no names.
fn pair(run: &Trace, capture: &Trace, names: &[Named], graph: &Graph) -> Option<Vec<Option<usize>>> {
    let mut places: FxHashMap<Option<&str>, VecDeque<usize>> = FxHashMap::default();
    for (place, launch) in graph.launches.iter().enumerate() {
        places.entry(launch.kernel.map(|kernel| capture.strings.get(kernel))).or_default().push_back(place);
    }
    let texts: Vec<Option<&str>> = names.iter().map(|name| name.map(|name| run.strings.get(name))).collect();
    if places.keys().all(Option::is_none) || !texts.iter().flatten().copied().any(is_name) {
        return None;
    }
    let mut launches = Vec::with_capacity(texts.len());
    for (place, text) in texts.into_iter().enumerate() {
        launches.push(match text {
            Some(text) if !is_name(text) => Some(place),
            text => places.get_mut(&text).and_then(VecDeque::pop_front),
        });
    }
    Some(launches)
}
