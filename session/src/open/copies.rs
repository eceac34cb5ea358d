//! Files of one directory that hold the same run: a copy, its compressed form, a capture file that was made from it. Each process
//! is known by what it did, whatever the file is called and whenever its clock begins.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher, BuildHasherDefault},
};

use model::{Trace, trace};
use rustc_hash::{FxHashMap, FxHasher};

/// A process: its rank, how many slices it has, and the sum of what each is made of, which no order of tracks changes.
type Print = (Option<u32>, usize, u64);

/// The processes of a capture that did anything.
fn prints(trace: &Trace) -> BTreeSet<Print> {
    let hash = BuildHasherDefault::<FxHasher>::default();
    let names: Vec<u64> = trace.strings.iter().map(|(_, name)| hash.hash_one(name)).collect();
    let lanes = || trace.tracks.iter().zip(&trace.lanes).filter(|(_, lane)| !lane.is_empty());
    let mut begins: FxHashMap<u32, i64> = FxHashMap::default();
    for (track, lane) in lanes() {
        let first = lane.start.first().copied().unwrap_or(0);
        let begin = begins.entry(track.key.process.0).or_insert(first);
        *begin = first.min(*begin);
    }
    let mut prints: FxHashMap<u32, Print> = FxHashMap::default();
    for (track, lane) in lanes() {
        let process = track.key.process.0;
        let begin = begins.get(&process).copied().unwrap_or(0);
        let rank = trace.processes.get(process as usize).and_then(|process| process.rank);
        let print = prints.entry(process).or_insert((rank, 0, 0));
        print.1 += lane.len();
        for ((start, dur), name) in lane.start.iter().zip(&lane.dur).zip(&lane.name) {
            let name = names.get(name.0 as usize).copied().unwrap_or(0);
            print.2 = print.2.wrapping_add(hash.hash_one((start.wrapping_sub(begin), *dur, name)));
        }
    }
    prints.into_values().collect()
}

/// Leaves out captures all of whose processes are one before them; a sentence for each. Tables that lie beside each other repeat the
/// kernels of a run with other counters: these belong to the first.
pub(super) fn leave_out(traces: &mut Vec<Trace>) -> Vec<String> {
    if traces.len() < 2 {
        return Vec::new();
    }
    let mut known: FxHashMap<(String, BTreeSet<Print>), usize> = FxHashMap::default();
    let (mut kept, mut copied): (Vec<Trace>, Vec<String>) = (Vec::new(), Vec::new());
    for mut part in std::mem::take(traces) {
        let prints = prints(&part);
        let at = kept.len();
        let first = (!prints.is_empty()).then(|| *known.entry((part.format.clone(), prints)).or_insert(at));
        match first.and_then(|first| kept.get_mut(first)) {
            None => kept.push(part),
            Some(first) if format!("{:?}", first.summaries) == format!("{:?}", part.summaries) => {
                let same = format!("'{}' holds the same capture as '{}'", part.source, first.source);
                copied.push(format!("{same}, which is counted once; leave one out"));
            }
            Some(first) => {
                // What the reader met of these rows it met of the first file's too.
                part.stats.clear();
                trace::attach(first, &part);
            }
        }
    }
    *traces = kept;
    copied
}

/// Adds the captures of capture files, but for those whose processes are all there already.
pub(super) fn add(traces: &mut Vec<Trace>, kept: Vec<Trace>) {
    let mut known: BTreeSet<Print> =
        if kept.is_empty() { BTreeSet::new() } else { traces.iter().flat_map(prints).collect() };
    for trace in kept {
        let prints = prints(&trace);
        if prints.is_empty() || !prints.is_subset(&known) {
            known.extend(prints);
            traces.push(trace);
        }
    }
}
