//! Which call caused which operation. The program draws an arrow from 2 µs before the end of the call, or from the start of the
//! operation where that is earlier, to the start of the operation, all cut to whole µs. So the beginning of an arrow lies
//! before a call that lasted less than 2 µs, and a call is told by its end.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::Path,
};

use model::Ns;
use rustc_hash::FxHashMap;

use super::events;
use crate::{
    Progress, ReadError,
    chrome_event::{Event, micros},
    json_walk::{List, walk},
};

/// A row and a time in it.
type Point = (i64, i64, Ns);
/// A call: process, thread, start and end.
type Call = (i64, i64, Ns, Ns);

/// Most devices and processes that are told apart.
const MAX_NAMES: usize = 4096;
/// Calls of one thread that are looked at before an arrow.
const NEAR: usize = 16;
/// Nanoseconds of a µs, to which times are cut.
const US: Ns = 1000;

/// A call on its thread: start, end, and whether calls of its name begin work of the device.
type Extent = (Ns, Ns, bool);

/// The links.
#[derive(Default)]
pub(super) struct Arrows {
    /// Processes that are devices.
    pub gpus: BTreeSet<i64>,
    processes: BTreeSet<i64>,
    /// The number of each call that an arrow leaves.
    calls: FxHashMap<Call, i64>,
    /// Process and number of the causes of the operations that begin at a point, in the order of their arrows.
    causes: FxHashMap<Point, VecDeque<(i64, i64)>>,
    /// Arrows of which no call is near.
    pub lost: u64,
}

impl Arrows {
    /// Reads names, calls and arrows.
    ///
    /// # Errors
    /// [`ReadError`] when the file cannot be opened.
    pub fn of(path: &Path, progress: Progress<'_>) -> Result<Self, ReadError> {
        let mut arrows = Self::default();
        let mut calls: FxHashMap<(i64, i64), Vec<Extent>> = FxHashMap::default();
        let mut ends: BTreeMap<i64, [Option<Point>; 2]> = BTreeMap::new();
        let take = &mut |_: usize, place: &str, raw: &str| {
            if events(place) != List::Give || !raw.starts_with('{') {
                return;
            }
            let Ok(event) = serde_json::from_str::<Event<'_>>(raw) else { return };
            let (pid, tid) = event.place();
            match event.ph.as_str() {
                "M" if event.name == "process_name" => {
                    let gpu = event.text("name").is_some_and(|name| name.starts_with("GPU"));
                    arrows.gpus.extend((gpu && arrows.gpus.len() < MAX_NAMES).then_some(pid));
                }
                "X" if !arrows.gpus.contains(&pid) => {
                    let Some((start, end)) = event.times() else { return };
                    if arrows.processes.len() < MAX_NAMES {
                        arrows.processes.insert(pid);
                    }
                    calls.entry((pid, tid)).or_default().push((start, end, begins_work(&event.name)));
                }
                phase @ ("s" | "f") => {
                    let id = event.id.and_then(|raw| raw.get().trim_matches('"').parse().ok());
                    let (Some(id), Some(at)) = (id, micros(event.ts)) else { return };
                    let [from, to] = ends.entry(id).or_default();
                    *(if phase == "s" { from } else { to }) = Some((pid, tid, at));
                }
                _ => {}
            }
        };
        walk(path, progress, &events, take)?;
        calls.values_mut().for_each(|calls| calls.sort_unstable());
        for (id, ends) in ends {
            let [Some((pid, tid, at)), Some(work)] = ends else {
                arrows.lost += 1;
                continue;
            };
            match call(calls.get(&(pid, tid)).map_or(&[], Vec::as_slice), at) {
                Some((start, end, _)) => {
                    let number = *arrows.calls.entry((pid, tid, start, end)).or_insert(id);
                    arrows.causes.entry(work).or_default().push_back((pid, number));
                }
                None => arrows.lost += 1,
            }
        }
        Ok(arrows)
    }

    /// Process and number of the call that caused the operation which begins here.
    pub fn cause(&mut self, at: Point) -> Option<(i64, i64)> {
        self.causes.get_mut(&at)?.pop_front()
    }

    /// The number of a call that caused something.
    pub fn number(&mut self, call: Call) -> Option<i64> {
        self.calls.remove(&call)
    }

    /// The process, where there is one only.
    pub fn only_process(&self) -> Option<i64> {
        self.first_process().filter(|_| self.processes.len() == 1)
    }

    pub fn first_process(&self) -> Option<i64> {
        self.processes.first().copied()
    }
}

fn begins_work(name: &str) -> bool {
    ["Launch", "Memcpy", "Memset", "memcpy", "memset"].iter().any(|word| name.contains(word))
}

/// The call that an arrow leaves at `at`: the last near one that ends 2 µs later, or 1 µs by what its start and its duration lost
/// when they were cut; else the one under way. Calls that begin work go first.
fn call(calls: &[Extent], at: Ns) -> Option<Extent> {
    let begun = calls.get(..calls.partition_point(|(start, ..)| *start <= at.saturating_add(2 * US)))?;
    let near = || begun.iter().rev().take(NEAR).copied();
    let found = |working: bool| {
        let fits = |call: &Extent| call.2 || !working;
        let ends = |after: Ns| near().find(|call| fits(call) && call.1.saturating_sub(at) == after);
        ends(2 * US).or_else(|| ends(US)).or_else(|| near().find(|call| fits(call) && call.0 <= at && at <= call.1))
    };
    found(true).or_else(|| found(false))
}
