//! Events into a batch: what each phase and category becomes, with everything that is not kept counted.

use std::{collections::hash_map::Entry, hash::Hash};

use memchr::memmem;
use model::{Category, Detail, Ns, Severity, Span, StringId, TrackKind, secret};
use rustc_hash::FxHashMap;

use super::{
    batch::{Batch, FlowEnd, Half, Id, Label, NONE, Row, Sample, TrackRef},
    category::{self, Class},
    detail,
    event::{Event, Owner},
    micros::micros,
};
use crate::{
    json::{self, Text, Value},
    overhead,
};

/// What the ledger calls slices that are written as two events.
pub(super) const HALVES: &str = "begin and end events";
/// Longest category that is looked for in a broken event, bytes; the longest known one takes 19.
const LONGEST_CATEGORY: usize = 64;
/// Longest text of shapes or dtypes that is kept, bytes; a real one takes a few hundred.
const MAX_SHAPES: usize = 8 << 10;

/// Builds a batch from the events of one block.
pub(super) struct BatchBuilder<'a> {
    batch: Batch,
    offset: u64,
    text_ids: FxHashMap<&'a [u8], u32>,
    owned_ids: FxHashMap<String, u32>,
    track_ids: FxHashMap<TrackRef, u32>,
    detail_ids: FxHashMap<Detail, u32>,
    label_ids: FxHashMap<Label, u32>,
    classes: FxHashMap<&'a [u8], (Class, u32)>,
    last_class: Option<(&'a [u8], Class, u32)>,
    last_slice: Option<Place<'a>>,
}

/// Process, thread and time of an event; an arrow ends where the slice begins that it leads to.
type Place<'a> = (Owner<'a>, Owner<'a>, Option<Ns>);

impl<'a> BatchBuilder<'a> {
    /// A builder for the block at byte `offset` of the content.
    pub fn new(offset: u64) -> Self {
        Self {
            batch: Batch::default(),
            offset,
            text_ids: FxHashMap::default(),
            owned_ids: FxHashMap::default(),
            track_ids: FxHashMap::default(),
            detail_ids: FxHashMap::default(),
            label_ids: FxHashMap::default(),
            classes: FxHashMap::default(),
            last_class: None,
            last_slice: None,
        }
    }

    /// The batch.
    pub fn finish(self) -> Batch {
        self.batch
    }

    /// Counts an oddity at byte `at` of the block.
    pub fn odd(&mut self, name: &'static str, severity: Severity, at: usize) {
        let at = self.offset + at as u64;
        self.batch.odd(name, severity, || format!("byte {at}"));
    }

    /// Adds the event that begins at byte `at` of the block.
    pub fn add(&mut self, event: &Event<'a>, at: usize) {
        if let Some(key) = event.args.odd {
            let example = || format!("'{}'", key.decode().0);
            self.batch.odd("kineto.values_of_wrong_type", Severity::Notice, example);
        }
        let category = event.cat.map(|cat| self.class(cat));
        match (event.phase, category) {
            (b'X', category) => self.slice(event, category, at),
            (b'M', _) => self.label(event),
            (b'i' | b'I', category) => self.instant(event, category, at),
            (b'C', category) => self.counter(event, category, at),
            (b's' | b'f' | b't', _) => self.flow(event, at),
            (phase @ (b'B' | b'E'), category) => self.half(event, category, phase == b'B', at),
            _ if event.phase == 0 && event.name.is_none() && event.ts.is_none() => {
                self.odd("kineto.empty_events", Severity::Info, at);
            }
            _ => {
                self.batch.unknown += 1;
                self.odd("kineto.unknown_phase", Severity::DataLoss, at);
                self.tally("events of unknown phase", "not kept: the phase is none that Kineto writes");
            }
        }
    }

    /// What the category of a slice says, or its name where it has none.
    fn classified(&mut self, event: &Event<'a>, category: Option<(Class, u32)>) -> (Class, u32) {
        let name = event.name.map_or(&b""[..], |name| name.raw);
        let told = || category::uncategorised(event.pid.words(), name, event.args.correlation.is_some());
        let of = |category| Class { category, known: true, vendor: None };
        let (class, cat) = match category {
            Some(category) => category,
            None => match told() {
                Some(category) => (of(category), self.constant("rows without category, told by process or name")),
                None => {
                    self.batch.unknown += 1;
                    (of(Category::HostOther), self.constant("slices without category"))
                }
            },
        };
        if !class.known {
            self.batch.unknown += 1;
            let example = || event.cat.map_or_else(String::new, |c| c.decode().0.into_owned());
            self.batch.odd("kineto.unknown_category", Severity::Notice, example);
        }
        (class, cat)
    }

    fn slice(&mut self, event: &Event<'a>, category: Option<(Class, u32)>, at: usize) {
        let (class, cat) = self.classified(event, category);
        self.batch.vendor = self.batch.vendor.or(class.vendor);
        let start = self.time(event.ts, at);
        self.last_slice = Some((event.pid, event.tid, start));
        let dur = event.dur.and_then(|dur| self.time(Some(dur), at));
        let category = refine(class.category, event);
        let tally = self.batch.ledger.entry(cat).or_default();
        tally.read += 1;
        tally.note = category::note(class.category);
        let Some(start) = start else {
            self.odd("kineto.events_without_time", Severity::DataLoss, at);
            return;
        };
        if dur.is_none() {
            self.odd("kineto.events_without_duration", Severity::DataLoss, at);
            // Work that lasts no time would be idle time.
            if category.is_device_work() {
                return;
            }
        }
        let tally = self.batch.ledger.entry(cat).or_default();
        // Without a duration a call is a moment: its link is kept, and its time is lost.
        tally.kept += u64::from(dur.is_some());
        tally.time = tally.time.saturating_add(dur.unwrap_or(0));
        let dur = dur.unwrap_or(0);
        if category == Category::CaptureSpan {
            let span = Span::new(start, start.saturating_add(dur));
            let window = self.batch.window.map_or(span, |w| Span::new(w.start.min(span.start), w.end.max(span.end)));
            self.batch.window = Some(window);
        }
        let row = self.row(event, category, (start, dur));
        self.batch.rows.push(row);
    }

    fn row(&mut self, event: &Event<'a>, category: Category, (start, dur): (Ns, Ns)) -> Row {
        let detail = detail::of(category, event, self).map_or(NONE, |detail| self.detail(detail));
        let track = self.track(category, event);
        Row {
            start,
            dur,
            correlation: event
                .args
                .correlation
                .filter(|_| carries_correlation(category))
                .or_else(|| traced(event, category)),
            track,
            name: self.name(category, event.name.unwrap_or(Text { raw: b"", escaped: false })),
            detail,
            category,
        }
    }

    /// One end of a slice; which other end belongs to it is known when the blocks come together.
    fn half(&mut self, event: &Event<'a>, category: Option<(Class, u32)>, begins: bool, byte: usize) {
        self.tally(HALVES, "pairs of begin and end, kept as one slice each");
        let Some(at) = self.time(event.ts, byte) else {
            self.odd("kineto.events_without_time", Severity::DataLoss, byte);
            return;
        };
        let begun = begins.then(|| {
            let category = refine(self.classified(event, category).0.category, event);
            self.row(event, category, (at, 0))
        });
        let (pid, tid) = (self.id(event.pid), self.id(event.tid));
        let name = self.text(event.name.unwrap_or(Text { raw: b"", escaped: false }));
        self.batch.halves.push(Half { pid, tid, name, at, begun });
    }

    fn instant(&mut self, event: &Event<'a>, category: Option<(Class, u32)>, at: usize) {
        let is_memory = event.name.is_some_and(|name| name.raw == b"[memory]");
        let cat =
            category.map_or_else(|| self.constant(if is_memory { "[memory]" } else { "instants" }), |(_, cat)| cat);
        let tally = self.batch.ledger.entry(cat).or_default();
        tally.read += 1;
        tally.note = if is_memory { "allocator totals, kept as counters" } else { "not kept: instants mark no work" };
        if !is_memory {
            return;
        }
        let Some(total) = event.args.total_allocated else {
            // Files of 2021 and 2022 write the change alone; a sum of changes from an unknown base is no reading.
            self.odd("kineto.memory_events_without_total", Severity::Info, at);
            return;
        };
        let Some(t) = self.time(event.ts, at) else {
            self.odd("kineto.events_without_time", Severity::DataLoss, at);
            return;
        };
        self.batch.ledger.entry(cat).or_default().kept += 1;
        // c10::DeviceType 0 is the CPU.
        let on_device = event.args.device_type.is_some_and(|kind| kind != 0);
        let device = event.args.device_id.filter(|_| on_device).and_then(|id| i32::try_from(id).ok());
        let name = self.constant(if on_device { "memory.allocated" } else { "memory.host_allocated" });
        self.batch.samples.push(Sample { device, name, unit: "B", t, value: total as f64 });
    }

    fn counter(&mut self, event: &Event<'a>, category: Option<(Class, u32)>, at: usize) {
        let cat = category.map_or_else(|| self.constant("counters"), |(_, cat)| cat);
        let time = self.time(event.ts, at);
        let tally = self.batch.ledger.entry(cat).or_default();
        tally.read += 1;
        tally.note = "counters";
        let Some(t) = time else {
            self.odd("kineto.events_without_time", Severity::DataLoss, at);
            return;
        };
        let device = match event.pid {
            Owner::Text(text) => text
                .raw
                .strip_prefix(b"GPU ")
                .and_then(|rest| json::integer(rest.split(|b| *b == b' ').next().unwrap_or_default())),
            _ => event.args.device,
        };
        let device = device.and_then(|device| i32::try_from(device).ok());
        let series = detail::series(event);
        if series.is_empty() {
            self.odd("kineto.counters_without_value", Severity::DataLoss, at);
            return;
        }
        for (name, value) in series {
            let name = self.owned(name);
            self.batch.samples.push(Sample { device, name, unit: "", t, value });
        }
        self.batch.ledger.entry(cat).or_default().kept += 1;
    }

    fn flow(&mut self, event: &Event<'a>, at: usize) {
        let forward_backward = event.cat.is_some_and(|cat| matches!(cat.raw, b"fwdbwd" | b"forward_backward"));
        if !forward_backward {
            let cat = event.cat.map_or_else(|| "flows".into(), |cat| format!("flow {}", cat.decode().0));
            self.arrow(event, at);
            return self.tally(&cat, "not kept: each complete pair repeats a correlation id of the arguments");
        }
        self.tally("flow fwdbwd", "kept as flows, two events each");
        let (Some(id), Some(t)) = (event.id, self.time(event.ts, at)) else {
            return self.odd("kineto.flows_without_id_or_time", Severity::DataLoss, at);
        };
        let track = self.track(Category::FrameworkOp, event);
        self.batch.flow_ends.push(FlowEnd { id, start: event.phase == b's', track, t });
    }

    /// Counts one end of an arrow from a call to its work: Kineto writes it right behind the slice that it touches.
    fn arrow(&mut self, event: &Event<'a>, at: usize) {
        let launches = event.cat.is_some_and(|cat| matches!(cat.raw, b"ac2g" | b"async_cpu_to_gpu"));
        let Some(before) = self.last_slice.filter(|_| launches) else { return };
        let place = (event.pid, event.tid, self.time(event.ts, at));
        let arrows = if event.phase == b's' { &mut self.batch.arrows.calls } else { &mut self.batch.arrows.work };
        let end = if place == before { &mut arrows.0 } else { &mut arrows.1 };
        *end += 1;
    }

    /// Counts an event that is no JSON under the category that its text still names.
    pub fn broken(&mut self, raw: &'a [u8], at: usize) {
        self.odd("kineto.broken_events", Severity::DataLoss, at);
        let named = || {
            let after = memmem::find(raw, b"\"cat\"")? + b"\"cat\"".len();
            let mut words = raw.get(after..)?.splitn(3, |b| *b == b'"');
            let colon = words.next()?.trim_ascii();
            words.next().filter(|_| colon == b":")
        };
        if let Some(cat) = named().filter(|cat| cat.len() <= LONGEST_CATEGORY) {
            let (class, cat) = self.class(Text { raw: cat, escaped: cat.contains(&b'\\') });
            if class.known {
                let tally = self.batch.ledger.entry(cat).or_default();
                tally.read += 1;
                tally.note = category::note(class.category);
            }
        }
    }

    fn label(&mut self, event: &Event<'a>) {
        let thread = event.name.is_some_and(|name| name.raw == b"thread_name");
        let process = event.name.is_some_and(|name| name.raw == b"process_name");
        let cat = self.constant("metadata events");
        let tally = self.batch.ledger.entry(cat).or_default();
        tally.read += 1;
        tally.note = "names of processes and threads; sort orders and labels are not kept";
        if let (true, Some(text)) = (thread || process, event.args.label) {
            tally.kept += 1;
            // Cut here: what is no name of anything else comes into the capture as this text alone.
            let text = secret::kept(text.decode().0.trim());
            let text = self.owned(text);
            let label = Label { thread, pid: self.id(event.pid), tid: self.id(event.tid), text };
            if self.label_ids.insert(label, 0).is_none() {
                self.batch.labels.push(label);
            }
        }
    }

    fn time(&mut self, value: Option<Value<'a>>, at: usize) -> Option<Ns> {
        let raw = value?.number()?;
        if let Some(ns) = micros(raw) {
            return Some(ns);
        }
        match model::time::parse_decimal(raw, 3) {
            Ok((ns, rounded)) => {
                if rounded {
                    self.odd("kineto.times_rounded_to_ns", Severity::Info, at);
                }
                Some(ns)
            }
            Err(e) => {
                let raw = String::from_utf8_lossy(raw.get(..40).unwrap_or(raw)).into_owned();
                self.batch.odd("kineto.unreadable_times", Severity::DataLoss, || format!("'{raw}' is {e}"));
                None
            }
        }
    }

    fn track(&mut self, category: Category, event: &Event<'a>) -> u32 {
        let kind = category::track_kind(category);
        let (pid, tid) = (self.id(event.pid), self.id(event.tid));
        let on_device = matches!(kind, TrackKind::DeviceQueue | TrackKind::DeviceAnnotation | TrackKind::DeviceSync);
        // MTIA numbers its rows by firmware queue, and `stream` names what fed the queue.
        let firmware_row = event.cat.is_some_and(|cat| cat.raw.starts_with(b"mtia"));
        let stream = event.args.stream.filter(|_| on_device && !firmware_row);
        let row = if event.pid.words() == Some(category::KERNELS) { event.tid } else { event.pid };
        let device = event.args.device.or(row.int()).filter(|device| on_device && *device >= 0);
        // Python frames may carry process 0.
        if kind == TrackKind::HostThread && category != Category::PythonFrame {
            self.batch.host_pid = self.batch.host_pid.or(event.pid.int().filter(|pid| *pid > 0));
        }
        let track = TrackRef {
            kind: if kind == TrackKind::HostThread && event.pid.int().is_some_and(|pid| pid < 0) {
                TrackKind::Global
            } else {
                kind
            },
            pid,
            tid,
            device: device.and_then(|device| i32::try_from(device).ok()),
            context: event.args.context.filter(|_| on_device),
            number: stream.or(event.tid.int()),
        };
        number(&mut self.track_ids, &mut self.batch.tracks, track)
    }

    fn class(&mut self, cat: Text<'a>) -> (Class, u32) {
        if let Some((raw, class, id)) = self.last_class
            && raw == cat.raw
        {
            return (class, id);
        }
        let (class, id) = match self.classes.get(cat.raw) {
            Some(known) => *known,
            None => {
                let known = (category::classify(&cat.decode().0), self.text(cat));
                self.classes.insert(cat.raw, known);
                known
            }
        };
        self.last_class = Some((cat.raw, class, id));
        (class, id)
    }

    fn id(&mut self, owner: Owner<'a>) -> Id {
        match owner {
            Owner::None => Id::None,
            Owner::Int(id) => Id::Int(id),
            Owner::Text(text) => Id::Text(self.text(text)),
        }
    }

    fn detail(&mut self, detail: Detail) -> u32 {
        number(&mut self.detail_ids, &mut self.batch.details, detail)
    }

    fn tally(&mut self, cat: &str, note: &'static str) {
        let cat = self.owned(cat.to_owned());
        let tally = self.batch.ledger.entry(cat).or_default();
        tally.read += 1;
        tally.note = note;
    }

    /// Number of a name: that of a Python frame begins with the path of its file.
    fn name(&mut self, category: Category, name: Text<'a>) -> u32 {
        if category == Category::PythonFrame && !self.text_ids.contains_key(name.raw) {
            let (path, _) = name.decode();
            let kept = secret::without_homes(&path);
            if kept != path {
                let id = self.owned(kept);
                self.text_ids.insert(name.raw, id);
            }
        }
        self.text(name)
    }

    /// Number of a text of the file.
    pub fn text(&mut self, text: Text<'a>) -> u32 {
        if let Some(id) = self.text_ids.get(text.raw) {
            return *id;
        }
        let (decoded, damaged) = text.decode();
        if damaged {
            self.batch.odd("kineto.damaged_text", Severity::Notice, || decoded.chars().take(80).collect());
        }
        let id = self.batch.texts.len() as u32;
        self.batch.texts.push(decoded.into());
        self.text_ids.insert(text.raw, id);
        id
    }

    /// Number of a text of our own, which must not change its meaning with the escapes of the file.
    pub fn constant(&mut self, text: &'static str) -> u32 {
        self.text(Text { raw: text.as_bytes(), escaped: false })
    }

    /// Number of a text put together here.
    pub fn owned(&mut self, text: String) -> u32 {
        if let Some(id) = self.owned_ids.get(&text) {
            return *id;
        }
        let id = self.batch.texts.len() as u32;
        self.batch.texts.push(text.as_str().into());
        self.owned_ids.insert(text, id);
        id
    }

    /// [`Self::text`] as the id that details carry until they are merged.
    pub fn string(&mut self, text: Text<'a>) -> StringId {
        StringId(self.text(text))
    }

    /// Number of the JSON text of shapes or dtypes, without white space so that indented files give the same text;
    /// absent when it is longer than any real one.
    pub fn json_text(&mut self, raw: &'a [u8]) -> Option<StringId> {
        if let Some(id) = self.text_ids.get(raw) {
            return Some(StringId(*id));
        }
        if raw.len() > MAX_SHAPES {
            self.batch.odd("kineto.shapes_too_long", Severity::Notice, || format!("{} bytes", raw.len()));
            return None;
        }
        let id = self.batch.texts.len() as u32;
        self.batch.texts.push(detail::compact(raw).into());
        self.text_ids.insert(raw, id);
        Some(StringId(id))
    }
}

fn number<T: Clone + Eq + Hash>(ids: &mut FxHashMap<T, u32>, items: &mut Vec<T>, item: T) -> u32 {
    match ids.entry(item) {
        Entry::Occupied(known) => *known.get(),
        Entry::Vacant(new) => {
            items.push(new.key().clone());
            *new.insert((items.len() - 1) as u32)
        }
    }
}

/// Categories that a name makes more precise.
fn refine(category: Category, event: &Event<'_>) -> Category {
    let starts = |prefix: &[u8]| event.name.is_some_and(|name| name.raw.starts_with(prefix));
    match category {
        // MTIA writes its DMA transfers under the category of its kernels.
        Category::Kernel if starts(b"dma_request") => Category::Memcpy,
        // The only spelling by which PyTorch marks collections of the interpreter.
        Category::PythonFrame if starts(b"Python GC") => Category::Gc,
        // Profilers before the category `user_annotation` wrote the marks of iterations as operators.
        Category::FrameworkOp if starts(b"ProfilerStep#") || starts(b"Optimizer.step#") => Category::UserRange,
        Category::Overhead => overhead::category(&String::from_utf8_lossy(event.name.map_or(b"", |name| name.raw))),
        other => other,
    }
}

/// The id that a call and its device rows share where Kineto wrote what roctracer saw and had no other word for it. Rows of
/// other writers that lack a correlation name their device or stream, and their external id is that of an operator.
fn traced(event: &Event<'_>, category: Category) -> Option<i64> {
    let args = &event.args;
    let fits = match category {
        Category::HostApi => event.name.is_some_and(|name| name.raw.starts_with(b"hip")),
        Category::Kernel | Category::Memcpy | Category::Memset => args.device.is_none() && args.stream.is_none(),
        _ => false,
    };
    args.external.filter(|_| fits && args.correlation.is_none())
}

/// Operators and ranges carry ids of other scopes under the same name; only launches and device rows share this one.
fn carries_correlation(category: Category) -> bool {
    matches!(category, Category::HostApi) || category::track_kind(category) != TrackKind::HostThread
}
