//! The operations of a TPU: one line of instructions of XLA, and beside it what goes on while they run. A `-start` begins such a
//! thing, its `-done` waits for it, and the line `Async XLA Ops` of newer profilers draws what lies between, on one chip of
//! several: where it is not drawn it is taken from the two. Source: `xplane_schema.cc` (names of lines), the XLA sources of
//! asynchronous instructions, and files of a TPU v6 of 2025.

use model::{Category, CollectiveCall, CopyDetail, Detail, KernelDetail, Ns, Slice, SyncKind, TrackKey, TrackKind};
use rustc_hash::FxHashMap;

use super::{
    hlo::{Instruction, Part, Work},
    lines::{Import, PROCESS},
    plane::Plane,
};
use crate::lanes::Account;

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

impl Import<'_> {
    /// Takes the operations of a device. What begins and is waited for is no work of their queue: the wait is a wait, and what it
    /// waits for is a row of another queue, drawn here unless it is `drawn` on a line of its own.
    pub(super) fn operations(
        &mut self,
        plane: &Plane<'_>,
        (device, line): (i32, i64),
        mut rows: Vec<Row<'_>>,
        drawn: bool,
    ) {
        rows.sort_by_key(|row| (row.start, row.end));
        let instructions: Vec<Option<Instruction<'_>>> = rows.iter().map(|row| Instruction::of(row.name)).collect();
        let mut partners: Vec<Option<usize>> = vec![None; rows.len()];
        let mut open: FxHashMap<&str, usize> = FxHashMap::default();
        let mut beside = Vec::new();
        for (at, (row, instruction)) in rows.iter().zip(&instructions).enumerate() {
            let Some(instruction) = instruction else { continue };
            match instruction.part() {
                Part::Whole => {}
                Part::Start => {
                    open.insert(instruction.name, at);
                }
                Part::Done => {
                    let Some(start) = instruction.awaited().and_then(|name| open.remove(name)) else { continue };
                    for (one, other) in [(at, start), (start, at)] {
                        if let Some(partner) = partners.get_mut(one) {
                            *partner = Some(other);
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
        for ((row, instruction), partner) in rows.iter().zip(&instructions).zip(&partners) {
            let part = instruction.as_ref().filter(|_| partner.is_some()).map(Instruction::part);
            let (track, (category, detail)) = match part {
                Some(Part::Start) => (self.lanes.track(&mut *self.sink, key), (Category::DeviceEvent, None)),
                Some(Part::Done) => {
                    let wait = Detail::Sync(SyncKind::StreamWaitEvent);
                    (self.lanes.track(&mut *self.sink, key), (Category::DeviceSync, Some(wait)))
                }
                _ => (queue, self.work(instruction.as_ref(), false)),
            };
            self.row(plane, track, row, instruction.as_ref(), category, detail.as_ref());
        }
        if !drawn {
            let mut account = Account::default();
            for row in &beside {
                account.read += 1;
                account.keep(row.start, row.end);
            }
            if account.read > 0 {
                account.tell(
                    &mut *self.sink,
                    "xplane",
                    "asynchronous operations",
                    "memcpy and kernel, from start to done",
                );
            }
            self.beside(plane, device, beside);
        }
    }

    /// Takes what goes on beside the operations of a device. What overlaps lies on queues of its own.
    pub(super) fn beside(&mut self, plane: &Plane<'_>, device: i32, mut rows: Vec<Row<'_>>) {
        rows.sort_by_key(|row| (row.start, row.end));
        let mut ends: Vec<Ns> = Vec::new();
        for row in &rows {
            let free = ends.iter().position(|end| *end <= row.start);
            let lane = match free {
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
            self.sink.name_track(queue, &format!("Async XLA Ops {lane}"));
            let instruction = Instruction::of(row.name);
            let (category, detail) = self.work(instruction.as_ref(), true);
            self.row(plane, queue, row, instruction.as_ref(), category, detail.as_ref());
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

    /// Adds a row under the name of its instruction; of a fusion the category says what is fused.
    fn row(
        &mut self,
        plane: &Plane<'_>,
        track: model::TrackId,
        row: &Row<'_>,
        instruction: Option<&Instruction<'_>>,
        category: Category,
        detail: Option<&Detail>,
    ) {
        let shown = instruction.map_or(row.name, |instruction| instruction.name);
        self.unnamed += u64::from(shown.is_empty());
        let of = instruction.filter(|instruction| matches!(instruction.opcode, "fusion" | "custom-call"));
        let name = match of.and_then(|_| plane.category(row.id)) {
            Some(what) => self.sink.intern(&format!("{shown} [{what}]")),
            None => self.sink.intern(if shown.is_empty() { "(unnamed)" } else { shown }),
        };
        self.first = Some(self.first.map_or(row.start, |first| first.min(row.start)));
        let dur = row.end.saturating_sub(row.start);
        self.sink.slice(Slice { track, start: row.start, dur, name, category, correlation: None, detail });
    }
}
