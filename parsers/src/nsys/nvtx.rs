//! `NVTX_EVENTS`: what the program annotated, and the collectives that NCCL annotates itself.

use model::{Category, CollectiveCall, Detail, Ns, OpDetail, Severity, StringId, TrackId, TrackKey, TrackKind};
use rustc_hash::FxHashMap;

use super::{
    global_id::GlobalId,
    import::{Import, Kept, MAX_TRACKS},
    page::{
        Column::{self, Int, Text},
        Page, Text as Cell,
    },
};
use crate::nccl::collective;

/// `eventType` of a push/pop range, and of the same imported from a text file.
const PUSH_POP: [i64; 2] = [59, 70];
/// `eventType` of a start/end range, and of the same imported from a text file.
const START_END: [i64; 2] = [60, 71];
/// `eventType` of a mark.
const MARK: i64 = 34;
/// `eventType` of the creation of a domain.
const DOMAIN: i64 = 75;
/// Most domains that are told apart.
const MAX_DOMAINS: usize = 4096;

/// Ranges under way.
#[derive(Default)]
pub(super) struct Ranges {
    /// Whether a domain of a process is NCCL's.
    domains: FxHashMap<(u64, i64), bool>,
    /// Track of the start/end ranges of each domain of each process.
    tracks: FxHashMap<(u64, i64), TrackId>,
    open: Vec<Open>,
    /// Whether PyTorch wrote a range for every operator (`torch.autograd.profiler.emit_nvtx`), which costs host time.
    pub operators: bool,
}

/// A range that was still open when the capture ended.
struct Open {
    track: TrackId,
    start: Ns,
    name: StringId,
    category: Category,
}

/// Columns of [`events`].
pub(super) const NVTX: &[Column] = &[
    Int("start", &[]),
    Int("end", &[]),
    Int("eventType", &[]),
    Int("globalTid", &[]),
    Int("domainId", &[]),
    Text("text", Some("textId")),
    Text("jsonText", Some("jsonTextId")),
];

/// `NVTX_EVENTS`.
pub(super) fn events(import: &mut Import<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    let (mut marks, mut others) = (0, 0);
    for row in 0..page.rows {
        let [start, end, kind, global_tid, domain] = page.ints(row);
        let (Some(start), Some(kind)) = (start, kind) else {
            kept.incomplete += 1;
            continue;
        };
        let process = GlobalId::new(global_tid.unwrap_or_default()).process();
        let domain = domain.unwrap_or_default();
        let global = START_END.contains(&kind);
        if kind == DOMAIN {
            kept.rows += u64::from(import.name_domain(process, domain, page.text(5, row)));
        } else if kind == MARK {
            marks += 1;
        } else if global || PUSH_POP.contains(&kind) {
            let track = if global { import.range_track(process, domain) } else { import.thread(global_tid) };
            import.range(&mut kept, track, (start, end), (process, domain), page.text(5, row), page.text(6, row));
        } else {
            others += 1;
        }
    }
    import.stat("nvtx_marks", Severity::Info, marks, None);
    import.stat("nvtx_other_events", Severity::Info, others, None);
    kept
}

/// Ends the ranges that were open when the capture ended at its end.
pub(super) fn settle(import: &mut Import<'_>, capture_end: Option<Ns>) -> Kept {
    let mut kept = Kept::default();
    let open = std::mem::take(&mut import.ranges.open);
    import.stat("open_ranges", Severity::Notice, open.len() as u64, None);
    for Open { track, start, name, category } in open {
        let end = capture_end.unwrap_or(start).max(start);
        import.slice(&mut kept, track, (start, end), name, category, None, None);
    }
    kept
}

impl Import<'_> {
    /// The characters of a cell.
    fn characters<'t>(&'t self, cell: Option<Cell<'t>>) -> Option<&'t str> {
        match cell? {
            Cell::Inline(text) => Some(text),
            Cell::Id(id) => self.names.text(id),
        }
    }

    fn name_domain(&mut self, process: u64, domain: i64, name: Option<Cell<'_>>) -> bool {
        let is_nccl = self.characters(name) == Some("NCCL");
        let known = self.ranges.domains.len() < MAX_DOMAINS;
        if known {
            self.ranges.domains.insert((process, domain), is_nccl);
        }
        known
    }

    /// Start/end ranges may end on another thread, so they lie on a track of their own.
    fn range_track(&mut self, process: u64, domain: i64) -> TrackId {
        // Only so many domains get a track of their own; the ranges of further ones share the default domain's.
        let full = self.ranges.tracks.len() >= MAX_TRACKS && !self.ranges.tracks.contains_key(&(process, domain));
        let domain = if full { 0 } else { domain };
        if let Some(track) = self.ranges.tracks.get(&(process, domain)) {
            return *track;
        }
        let id = self.process(process);
        let track =
            self.sink.track(TrackKey { kind: TrackKind::Global, process: id, device: None, context: None, id: domain });
        self.sink.name_track(track, "NVTX start/end ranges");
        self.ranges.tracks.insert((process, domain), track);
        track
    }

    fn range(
        &mut self,
        kept: &mut Kept,
        track: TrackId,
        (start, end): (Ns, Option<Ns>),
        (process, domain): (u64, i64),
        name: Option<Cell<'_>>,
        payload: Option<Cell<'_>>,
    ) {
        // NCCL's domain is named by an event that exports of schema 3.25 may lack; no other domain names ranges so.
        let of_nccl = domain != 0 && self.ranges.domains.get(&(process, domain)).copied().unwrap_or(true);
        let collective = if of_nccl { self.characters(name).and_then(collective) } else { None };
        let (name, category, detail) = if let Some(op) = collective {
            let op = self.sink.intern(op);
            let call = CollectiveCall { op: Some(op), ..self.payload(payload) };
            (self.text(name), Category::CollectiveCall, Some(Detail::Collective(Box::new(call))))
        } else if let Some((name, shapes)) = inline(name).and_then(operator) {
            self.ranges.operators = true;
            let shapes = shapes.and_then(|shapes| self.text(Some(Cell::Inline(shapes))));
            let detail = shapes.map(|_| Detail::Op(OpDetail { shapes, dtypes: None }));
            (self.text(Some(Cell::Inline(name))), Category::FrameworkOp, detail)
        } else {
            (self.text(name), Category::UserRange, None)
        };
        let name = match name {
            Some(name) => name,
            None => self.sink.intern("(unnamed)"),
        };
        match end {
            Some(end) => self.slice(kept, track, (start, end), name, category, None, detail.as_ref()),
            None => self.ranges.open.push(Open { track, start, name, category }),
        }
    }

    /// What NCCL's payload says of a call. It is there only in exports made with `--include-json=true`; the entries'
    /// names are those of NCCL's own payload schemas.
    fn payload(&mut self, payload: Option<Cell<'_>>) -> CollectiveCall {
        let parsed = self.characters(payload).and_then(|json| serde_json::from_str::<serde_json::Value>(json).ok());
        let Some(serde_json::Value::Object(entries)) = parsed else { return CollectiveCall::default() };
        let number = |name: &str| entries.get(name).and_then(serde_json::Value::as_i64);
        let group = entries.get("NCCL communicator ID").map(|id| match id {
            serde_json::Value::String(id) => self.sink.intern(id),
            id => self.sink.intern(&id.to_string()),
        });
        CollectiveCall {
            group,
            group_size: number("No. of ranks").and_then(|n| u32::try_from(n).ok()),
            bytes: number("Message size [bytes]"),
            ..CollectiveCall::default()
        }
    }
}

fn inline(cell: Option<Cell<'_>>) -> Option<&str> {
    match cell? {
        Cell::Inline(text) => Some(text),
        Cell::Id(_) => None,
    }
}

/// Name and input shapes of an operator, from the text of PyTorch's `emit_nvtx`: `aten::mm, op_id = 7, sizes = [[4, 8]]`.
/// Its running number would make every call a name of its own.
fn operator(text: &str) -> Option<(&str, Option<&str>)> {
    let (name, rest) = text.split_once(',')?;
    if !rest.starts_with(" op_id = ") && !rest.starts_with(" seq = ") {
        return None;
    }
    let shapes = rest.split_once("sizes = ").and_then(|(_, shapes)| {
        let mut depth = 0u32;
        let end = shapes.bytes().position(|b| {
            depth = depth.saturating_add(u32::from(b == b'[')).saturating_sub(u32::from(b == b']'));
            depth == 0
        });
        shapes.get(..=end?).filter(|shapes| shapes.len() > 1)
    });
    Some((name, shapes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_lose_their_running_number_and_keep_their_shapes() {
        for (text, expected) in [
            ("aten::view, op_id = 314290", Some(("aten::view", None))),
            (
                "aten::mm, seq = 1, op_id = 2, sizes = [[4, 8], []], input_op_ids = [1]",
                Some(("aten::mm", Some("[[4, 8], []]"))),
            ),
            ("aten::mm, op_id = 2, sizes = [[4", Some(("aten::mm", None))),
            ("aten::mm, op_id = 2, sizes = é", Some(("aten::mm", None))),
            ("step, batch 3", None),
            ("forward", None),
        ] {
            assert_eq!(operator(text), expected, "{text}");
        }
    }
}
