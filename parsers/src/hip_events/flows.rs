//! Which call launched what, by the arrows between them: rocprof draws one from within each call to the start of its work, and
//! numbers its events only in some versions. Source: roctracer's `tblextr.py` and a file of ROCm 6.

use std::{cmp::Reverse, path::Path};

use model::Ns;
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;

use crate::{
    Progress, ReadError,
    chrome_event::{Event, micros, ordinal},
    json_walk::{List, walk},
};

/// Lane, thread or queue, and start as it is written, µs in ns: what an arrow says of its ends.
type End = (i64, i64, Ns);

/// Start and end of a call as they are written, and its exact start and end, which tell it apart from others.
type Extent = (Ns, Reverse<Ns>, Ns, Reverse<Ns>);

/// Numbers that link events.
#[derive(Default)]
pub(super) struct Flows {
    /// Those of calls, by lane, row and exact start and end: calls within each other may begin in the same nanosecond.
    calls: FxHashMap<(i64, i64, Ns, Ns), i64>,
    /// Those of what they launched, by what an arrow says of its end.
    works: FxHashMap<End, i64>,
}

/// Where an event lies, as an arrow names it.
fn end(event: &Event<'_>) -> Option<End> {
    Some((ordinal(&event.pid).unwrap_or(-1), ordinal(&event.tid).unwrap_or(-1), micros(event.ts)?))
}

impl Flows {
    /// Looks for arrows; an event with a number of its own needs none, and then nothing is kept.
    ///
    /// # Errors
    /// [`ReadError`] when the file cannot be opened.
    pub fn of(path: &Path, progress: Progress<'_>) -> Result<Self, ReadError> {
        let mut calls: FxHashMap<(i64, i64), Vec<Extent>> = FxHashMap::default();
        let mut arrows: FxHashMap<i64, [Option<End>; 2]> = FxHashMap::default();
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
                    let end = at.2.saturating_add(length);
                    let exact = event.times().unwrap_or((at.2, end));
                    calls.entry((at.0, at.1)).or_default().push((at.2, Reverse(end), exact.0, Reverse(exact.1)));
                }
                phase @ ("s" | "t") => {
                    let Some(id) = id(event.id) else { return };
                    let [from, to] = arrows.entry(id).or_default();
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
        let mut flows = Self::default();
        for (id, ends) in arrows {
            let [Some((lane, row, at)), Some(work)] = ends else { continue };
            // The innermost call that is under way: of those that begin together the one that ends first.
            let before = calls.get(&(lane, row)).map_or(&[][..], Vec::as_slice);
            let begun = before.get(..before.partition_point(|(start, ..)| *start <= at)).unwrap_or(&[]);
            let call = begun.iter().rev().take(NESTED).find(|(_, Reverse(end), ..)| at <= *end);
            if let Some((_, _, start, Reverse(end))) = call {
                let id = *flows.calls.entry((lane, row, *start, *end)).or_insert(id);
                flows.works.insert(work, id);
            }
        }
        Ok(flows)
    }

    /// The number of an event that arrows link.
    pub fn number(&self, event: &Event<'_>) -> Option<i64> {
        let at = end(event)?;
        let call = || {
            let (start, end) = event.times()?;
            self.calls.get(&(at.0, at.1, start, end))
        };
        self.works.get(&at).or_else(call).copied()
    }
}

/// Calls of one thread that are looked at before an arrow: within each other lie few.
const NESTED: usize = 16;

fn id(raw: Option<&RawValue>) -> Option<i64> {
    raw?.get().trim_matches('"').parse().ok()
}
