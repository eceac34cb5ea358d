//! Which call launched what, by the arrows between them: rocprof draws one from within each call to the start of its work, and
//! numbers its events only in some versions. Source: roctracer's `tblextr.py` and a file of ROCm 6.

use std::path::Path;

use model::Ns;
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;

use super::{Event, int, micros};
use crate::{
    Progress, ReadError,
    json_walk::{List, walk},
};

/// Lane, thread or queue, and start as it is written, µs in ns: what an arrow says of its ends.
type End = (i64, i64, Ns);

/// Numbers that link events, by the lane, row and start of each.
#[derive(Default)]
pub(super) struct Flows {
    linked: FxHashMap<End, i64>,
}

/// Where an event lies, as an arrow names it.
fn end(event: &Event<'_>) -> Option<End> {
    Some((int(Some(&event.pid))?, int(Some(&event.tid))?, micros(event.ts)?))
}

impl Flows {
    /// Looks for arrows; an event with a number of its own needs none, and then nothing is kept.
    ///
    /// # Errors
    /// [`ReadError`] when the file cannot be opened.
    pub fn of(path: &Path, progress: Progress<'_>) -> Result<Self, ReadError> {
        let (mut calls, mut arrows) = (FxHashMap::default(), FxHashMap::default());
        let mut numbered = false;
        let list = |place: &str| if place.is_empty() || place == "traceEvents" { List::Give } else { List::Skip };
        let take = &mut |_: usize, place: &str, raw: &str| {
            if numbered || list(place) != List::Give || !raw.starts_with('{') {
                return;
            }
            let Ok(event) = serde_json::from_str::<Event<'_>>(raw) else { return };
            let Some(at) = end(&event) else { return };
            match event.ph.as_str() {
                "X" => {
                    numbered = super::numbered(&event).is_some();
                    let length = micros(event.dur).unwrap_or(0);
                    calls.entry((at.0, at.1)).or_insert_with(Vec::new).push((at.2, at.2.saturating_add(length)));
                }
                phase @ ("s" | "t") => {
                    let Some(id) = id(event.id) else { return };
                    let ends: &mut [Option<End>; 2] = arrows.entry(id).or_default();
                    let [from, to] = ends;
                    *(if phase == "s" { from } else { to }) = Some(at);
                }
                _ => {}
            }
        };
        walk(path, progress, &list, take)?;
        if numbered {
            return Ok(Self::default());
        }
        for calls in calls.values_mut() {
            calls.sort_unstable();
        }
        let mut linked = FxHashMap::default();
        for (id, ends) in arrows {
            let [Some((lane, row, at)), Some(work)] = ends else { continue };
            // The innermost call that is under way.
            let before = calls.get(&(lane, row)).map_or(&[][..], Vec::as_slice);
            let begun = before.get(..before.partition_point(|(start, _)| *start <= at)).unwrap_or(&[]);
            let call = begun.iter().rev().take(NESTED).find(|(_, end)| at <= *end);
            if let Some((start, _)) = call {
                let id = *linked.entry((lane, row, *start)).or_insert(id);
                linked.insert(work, id);
            }
        }
        Ok(Self { linked })
    }

    /// The number of an event that arrows link.
    pub fn number(&self, event: &Event<'_>) -> Option<i64> {
        self.linked.get(&end(event)?).copied()
    }
}

/// Calls of one thread that are looked at before an arrow: within each other lie few.
const NESTED: usize = 16;

fn id(raw: Option<&RawValue>) -> Option<i64> {
    raw?.get().trim_matches('"').parse().ok()
}
