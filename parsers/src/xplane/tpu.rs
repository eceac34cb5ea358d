//! The operations of a TPU: one line of instructions of XLA, and beside it what goes on while they run. A `-start` begins such a
//! thing, its `-done` waits for it, and the line `Async XLA Ops` of newer profilers draws what lies between, on one chip of
//! several: where it is not drawn it is taken from the two. Source: `xplane_schema.cc` (names of lines), the XLA sources of
//! asynchronous instructions, and files of a TPU v6 of 2025.

use model::{
    Category, CollectiveCall, CopyDetail, Detail, KernelDetail, Ns, Slice, StringId, SyncKind, TrackId, TrackKey,
    TrackKind,
};
use rustc_hash::FxHashMap;

use super::{
    hlo::{Instruction, Part, Work},
    lines::{Import, PROCESS},
    plane::Plane,
};
use crate::lanes::Account;

/// Characters of a category that are shown beside a name; categories of XLA are a few words.
const SHOWN: usize = 80;

/// Context of queues of what goes on beside the operations.
pub(super) const BESIDE: i64 = 1;
/// Most queues of it: as many copies may be under way at once, of which each is drawn from its start.
const MOST_BESIDE: usize = 64;

/// A row of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    pub start: Ns,
    pub end: Ns,
    /// Number of its name in the plane's table.
    pub id: i64,
    pub name: &'a str,
}

/// What the rows of one name are. A name may be long and stand at many rows: each is read once.
struct Known {
    name: StringId,
    part: Part,
    /// Number of the instruction, and of the one that it waits for.
    own: usize,
    awaited: Option<usize>,
    /// What a row is that is all there is of it, and what one is that is drawn from its start to its end.
    alone: (Category, Option<Detail>),
    entire: (Category, Option<Detail>),
}

/// What is known of the names of a line.
#[derive(Default)]
struct Names<'a> {
    known: FxHashMap<i64, Known>,
    numbers: FxHashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    fn number(&mut self, name: &'a str) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(name).or_insert(next)
    }

    /// Reads the names of rows. Of a fusion the category says what is fused.
    fn of(rows: &[Row<'a>], plane: &Plane<'a>, import: &mut Import<'_>) -> Self {
        let mut names = Self::default();
        for row in rows {
            if names.known.contains_key(&row.id) {
                continue;
            }
            let instruction = Instruction::of(row.name);
            let shown = instruction.map_or(row.name, |instruction| instruction.name);
            import.unnamed += u64::from(shown.is_empty());
            let told = instruction.filter(|instruction| matches!(instruction.opcode, "fusion" | "custom-call"));
            let name = match told.and_then(|_| plane.category(row.id)) {
                // One text may stand behind many short names: what is shown of it is bounded.
                Some(what) => {
                    let what: String = what.chars().take(SHOWN).collect();
                    import.sink.intern(&format!("{shown} [{what}]"))
                }
                None => import.sink.intern(if shown.is_empty() { "(unnamed)" } else { shown }),
            };
            let known = Known {
                name,
                part: instruction.map_or(Part::Whole, |instruction| instruction.part()),
                own: names.number(shown),
                awaited: instruction.and_then(|instruction| Some(names.number(instruction.awaited()?))),
                alone: import.work(instruction.as_ref(), false),
                entire: import.work(instruction.as_ref(), true),
            };
            names.known.insert(row.id, known);
        }
        names
    }
}

impl Import<'_> {
    /// Takes the operations of a device. What begins and is waited for is no work of their queue: the wait is a wait, and what it
    /// waits for is a row of another queue, drawn here unless it is `drawn` on a line of its own.
    pub(super) fn operations<'a>(
        &mut self,
        plane: &Plane<'a>,
        (device, line): (i32, i64),
        mut rows: Vec<Row<'a>>,
        drawn: bool,
    ) {
        rows.sort_by_key(|row| (row.start, row.end));
        let names = Names::of(&rows, plane, self);
        let mut paired = vec![false; rows.len()];
        let mut open: FxHashMap<usize, usize> = FxHashMap::default();
        let mut beside = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let Some(known) = names.known.get(&row.id) else { continue };
            match known.part {
                Part::Whole => {}
                Part::Start => {
                    open.insert(known.own, at);
                }
                Part::Done => {
                    let Some(start) = known.awaited.and_then(|name| open.remove(&name)) else { continue };
                    for one in [at, start] {
                        if let Some(paired) = paired.get_mut(one) {
                            *paired = true;
                        }
                    }
                    beside.extend(rows.get(start).map(|begun| Row { end: row.end, ..*begun }));
                }
            }
        }
        let queue = self.lanes.queue(&mut *self.sink, PROCESS, Some(device), None, line);
        let process = self.lanes.process(&mut *self.sink, PROCESS);
        let kind = TrackKind::DeviceSync;
        let key = TrackKey { kind, process, device: Some(device), context: None, id: line };
        let wait = Detail::Sync(SyncKind::StreamWaitEvent);
        for (row, paired) in rows.iter().zip(paired) {
            let Some(known) = names.known.get(&row.id) else { continue };
            let (track, category, detail) = match known.part {
                Part::Start if paired => (self.lanes.track(&mut *self.sink, key), Category::DeviceEvent, None),
                Part::Done if paired => (self.lanes.track(&mut *self.sink, key), Category::DeviceSync, Some(&wait)),
                _ => (queue, known.alone.0, known.alone.1.as_ref()),
            };
            self.row(track, row, known.name, category, detail);
        }
        if !drawn {
            let mut account = Account::default();
            for row in &beside {
                account.read += 1;
                account.keep(row.start, row.end);
            }
            if account.read > 0 {
                let becomes = "memcpy and kernel, from start to done";
                account.tell(&mut *self.sink, "xplane", "asynchronous operations", becomes);
            }
            self.side_by_side(device, beside, &names);
        }
    }

    /// Takes what goes on beside the operations of a device, where it is drawn.
    pub(super) fn beside<'a>(&mut self, plane: &Plane<'a>, device: i32, rows: Vec<Row<'a>>) {
        let names = Names::of(&rows, plane, self);
        self.side_by_side(device, rows, &names);
    }

    /// Draws what goes on beside the operations. What overlaps lies on queues of its own.
    fn side_by_side(&mut self, device: i32, mut rows: Vec<Row<'_>>, names: &Names<'_>) {
        rows.sort_by_key(|row| (row.start, row.end));
        let mut ends: Vec<Ns> = Vec::new();
        for row in &rows {
            let Some(known) = names.known.get(&row.id) else { continue };
            let lane = match ends.iter().position(|end| *end <= row.start) {
                Some(lane) => lane,
                None if ends.len() < MOST_BESIDE => {
                    ends.push(row.end);
                    ends.len() - 1
                }
                None => ends.len().saturating_sub(1),
            };
            if let Some(end) = ends.get_mut(lane) {
                *end = row.end.max(*end);
            }
            let queue = self.lanes.queue(&mut *self.sink, PROCESS, Some(device), Some(BESIDE), lane as i64);
            self.row(queue, row, known.name, known.entire.0, known.entire.1.as_ref());
        }
        for lane in 0..ends.len() {
            let queue = self.lanes.queue(&mut *self.sink, PROCESS, Some(device), Some(BESIDE), lane as i64);
            self.sink.name_track(queue, &format!("Async XLA Ops {lane}"));
        }
    }

    /// What an instruction is. Sizes are known of what is drawn from its start to its end only: of a part its time says nothing
    /// of them.
    fn work(&mut self, instruction: Option<&Instruction<'_>>, entire: bool) -> (Category, Option<Detail>) {
        let kernel = |collective| Some(Detail::Kernel(KernelDetail { collective, ..KernelDetail::default() }));
        let Some(instruction) = instruction else { return (Category::Kernel, kernel(None)) };
        let entire = entire || instruction.part() == Part::Whole;
        match instruction.work() {
            Work::Copy(direction) => {
                let bytes = instruction.copied().filter(|bytes| entire && *bytes > 0);
                let direction = Some(self.sink.intern(direction));
                (Category::Memcpy, Some(Detail::Copy(CopyDetail { direction, bytes, ..CopyDetail::default() })))
            }
            Work::Collective(op) => {
                let (bytes, dtype) = instruction.exchanged();
                let call = CollectiveCall {
                    op: Some(self.sink.intern(op)),
                    group_size: instruction.group_size(),
                    bytes: bytes.filter(|_| entire),
                    dtype: dtype.map(|dtype| self.sink.intern(dtype)),
                    ..CollectiveCall::default()
                };
                (Category::Kernel, kernel(Some(Box::new(call))))
            }
            Work::Other => (Category::Kernel, kernel(None)),
        }
    }

    fn row(&mut self, track: TrackId, row: &Row<'_>, name: StringId, category: Category, detail: Option<&Detail>) {
        self.first = Some(self.first.map_or(row.start, |first| first.min(row.start)));
        let dur = row.end.saturating_sub(row.start);
        self.sink.slice(Slice { track, start: row.start, dur, name, category, correlation: None, detail });
    }
}
