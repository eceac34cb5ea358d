//! Kernels of graph replays that have no record. A replay is one call, so no call is left without its work. Where nodes are
//! numbered, each replay of a graph must have each of its nodes. Elsewhere the kernel left its time: where the device is silent
//! between two kernels of a replay, and between the same two elsewhere others ran for just as long, those are missing here.

use model::{Detail, Ns, StringId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{median::median, timeline::DeviceOp};

/// Kernels that one hole may have held. Own value.
const LONGEST: usize = 8;
/// Places that are compared with a hole, and holes that are looked at. Own values; they bound the work.
const COMPARED: usize = 64;
const MOST: usize = 1 << 16;
/// Shortest silence that may be a kernel, ns. Own value: hardly any kernel is shorter.
const SHORTEST: Ns = 1_000;
/// Share of the operations that holes must come to: two branches of a graph can differ by a kernel, and their replays do not
/// say which branch they took. Up to 0.6 % in whole captures.
const FEWEST: f64 = 0.01;

/// A kernel of a replay.
struct Node {
    name: StringId,
    start: Ns,
    /// When it and all kernels of the replay before it have ended.
    until: Ns,
    replay: u32,
    /// Number of the graph, and of the node in it.
    id: Option<(i64, i64)>,
}

/// How many kernels are missing between others of their replay.
pub(super) fn count(trace: &Trace, ops: &[DeviceOp]) -> u64 {
    let replays = replays(trace, ops);
    let numbered = unreplayed(&replays);
    let nodes: Vec<Node> = replays.into_iter().flatten().collect();
    let silent = holes(&nodes);
    numbered.max(if silent as f64 >= FEWEST * ops.len() as f64 { silent } else { 0 })
}

/// Nodes that replays of their graph lack, by their numbers.
fn unreplayed(replays: &[Vec<Node>]) -> u64 {
    let mut graphs: FxHashMap<i64, Vec<Vec<i64>>> = FxHashMap::default();
    // What follows the last call may not be recorded to its end.
    let whole = replays.split_last().map_or(&[][..], |(_, before)| before);
    for replay in whole {
        let Some(ids) = replay.iter().map(|node| node.id).collect::<Option<Vec<_>>>() else { continue };
        let Some((graph, _)) = ids.first().copied() else { continue };
        // One call replays one graph; children of a graph have its number or their own.
        if ids.iter().all(|(other, _)| *other == graph) {
            graphs.entry(graph).or_default().push(ids.into_iter().map(|(_, node)| node).collect());
        }
    }
    graphs.values().map(|replays| lacking(replays)).sum()
}

/// How many of its nodes the replays of one graph lack. A branch that some replays do not take is no loss: they lack the same.
fn lacking(replays: &[Vec<i64>]) -> u64 {
    let all: FxHashSet<i64> = replays.iter().flatten().copied().collect();
    let mut lacks: FxHashMap<Vec<i64>, u64> = FxHashMap::default();
    for replay in replays {
        let here: FxHashSet<i64> = replay.iter().copied().collect();
        let mut lack: Vec<i64> = all.iter().filter(|node| !here.contains(node)).copied().collect();
        lack.sort_unstable();
        *lacks.entry(lack).or_default() += 1;
    }
    let is_branch = |lack: &[i64], times: u64| match lack {
        [_] => 2 * times > replays.len() as u64,
        _ => times > 1,
    };
    lacks.iter().filter(|(lack, times)| !is_branch(lack, **times)).map(|(lack, times)| lack.len() as u64 * times).sum()
}

/// How many kernels the silences within replays have room for, as other places of the replays show.
fn holes(nodes: &[Node]) -> u64 {
    let silent = |pair: &[Node]| match pair {
        [a, b] if a.replay == b.replay => Some(b.start - a.until).filter(|gap| *gap > 0),
        _ => None,
    };
    let Some(typical) = median(nodes.windows(2).filter_map(silent).collect()) else { return 0 };
    let mut places: FxHashMap<StringId, Vec<usize>> = FxHashMap::default();
    for (i, node) in nodes.iter().enumerate() {
        let known = places.entry(node.name).or_default();
        if known.len() < COMPARED {
            known.push(i);
        }
    }
    let holes = nodes.windows(2).enumerate().filter_map(|(i, pair)| {
        let [a, b] = pair else { return None };
        silent(pair).filter(|gap| *gap >= SHORTEST.max(2 * typical)).map(|gap| (i, a.name, b.name, gap))
    });
    let fill = |(hole, before, after, gap): (usize, StringId, StringId, Ns)| {
        let others = places.get(&before)?.iter().filter(|place| **place != hole);
        others.filter_map(|place| filled(nodes.get(*place..)?, after, gap)).min()
    };
    holes.take(MOST).filter_map(fill).map(|kernels| kernels as u64).sum()
}

/// The kernels of replays, replay by replay.
fn replays(trace: &Trace, ops: &[DeviceOp]) -> Vec<Vec<Node>> {
    let mut of_call: FxHashMap<u32, usize> = FxHashMap::default();
    let mut replays: Vec<Vec<Node>> = Vec::new();
    for op in ops.iter().filter(|op| op.in_graph) {
        let Some(call) = op.call else { continue };
        let replay = *of_call.entry(call).or_insert(replays.len());
        if replay == replays.len() {
            replays.push(Vec::new());
        }
        let Some(nodes) = replays.get_mut(replay) else { continue };
        let until = nodes.last().map_or(op.end, |last| last.until.max(op.end));
        nodes.push(Node { name: op.name, start: op.start, until, replay: replay as u32, id: id(trace, op) });
    }
    replays
}

/// The graph of a node and its number in it. CUPTI's numbers of nodes hold that of the graph in their upper half.
fn id(trace: &Trace, op: &DeviceOp) -> Option<(i64, i64)> {
    let (track, row) = trace.locate(op.slice)?;
    let (graph, node) = match trace.detail(trace.lanes.get(track.0 as usize)?, row)? {
        Detail::Kernel(kernel) => (kernel.graph, kernel.graph_node?),
        Detail::Copy(copy) => (None, copy.graph_node?),
        _ => return None,
    };
    // A small number without a graph may stand in several.
    let upper = Some(node >> 32).filter(|upper| *upper != 0);
    upper.or(graph).map(|graph| (graph, node))
}

/// How many kernels run between the first of `nodes` and the next of this name, if they take as long as a silence does.
fn filled(nodes: &[Node], after: StringId, silence: Ns) -> Option<usize> {
    let (first, rest) = nodes.split_first()?;
    let mut idle = 0;
    let mut last = first;
    for (between, node) in rest.iter().take(LONGEST + 1).take_while(|node| node.replay == first.replay).enumerate() {
        idle += (node.start - last.until).max(0);
        let span = node.start - first.until;
        if node.name == after && between > 0 && (span - silence).abs() <= silence / 8 && 2 * idle < span {
            return Some(between);
        }
        last = node;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::script::Script;

    /// Replays of a graph of ten layers of four kernels, without those that `is_gone` names by replay and place.
    fn holes(replays: i64, is_gone: impl Fn(i64, i64) -> bool) -> u64 {
        let mut script = Script::default();
        for replay in 0..replays {
            let at = 1_000_000 * replay;
            let mut kernels = Vec::new();
            let mut start = at + 20_000;
            for place in 0..40 {
                let (name, dur) =
                    [("norm", 3_000), ("qkv", 12_000), ("attention", 30_000), ("out", 9_000)][place as usize % 4];
                if !is_gone(replay, place) {
                    kernels.push((name, (start, start + dur)));
                }
                start += dur + 800;
            }
            script.graph((at, at + 10_000), &kernels);
        }
        let (trace, analysis) = script.analyze();
        count(&trace, &analysis.ranks[0].timeline.ops)
    }

    /// Half of the kernels of one replay were taken out, and the gaps between the others were the graph's fault.
    #[test]
    fn kernels_that_one_replay_lacks_and_others_have_are_missing() {
        assert_eq!(holes(4, |_, _| false), 0);
        assert_eq!(holes(4, |replay, place| replay == 2 && place % 3 == 1), 13);
        assert_eq!(holes(1, |_, place| place == 5 || place == 6 || place == 20), 3);
    }

    /// The limit of 1 % holds for times, and not for numbers: these prove it.
    #[test]
    fn nodes_that_one_replay_lacks_are_missing_and_a_branch_is_none() {
        let replays = |lacks: &[&[i64]]| -> u64 {
            let replay = |lack: &&[i64]| (0..40).filter(|node| !lack.contains(node)).collect();
            lacking(&lacks.iter().map(replay).collect::<Vec<Vec<i64>>>())
        };
        assert_eq!(replays(&[&[], &[], &[]]), 0);
        assert_eq!(replays(&[&[], &[3], &[], &[7, 9]]), 3);
        assert_eq!(replays(&[&[], &[3, 4, 5], &[3, 4, 5], &[]]), 0, "two replays took the other branch");
        assert_eq!(replays(&[&[3], &[3], &[]]), 0);
        assert_eq!(replays(&[&[0, 2, 4], &[1, 2, 8], &[5]]), 7);
    }
}
