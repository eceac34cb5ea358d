//! Records of calls and tasks as MSPTI gives them, by its public headers and their comments. As there, nothing is recorded
//! unless the library was preloaded; a task of a graph names the call that was captured, run for run; and the ids that are
//! pushed around calls are of the process, although the documentation says of the thread.

#![allow(unsafe_code)]

use std::{
    collections::HashMap,
    ffi::{CString, c_char, c_void},
    sync::{
        LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use crate::stream::{Kind, Task};

mod calls;
mod record;

use record::Layout;

/// What a request is answered with: where a buffer begins, its bytes, most records of it.
type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// Who gets a buffer back: where it begins, its bytes, bytes that hold records.
type Complete = unsafe extern "C" fn(*mut u8, usize, usize);

/// Numbers of kinds (`msptiActivityKind`).
mod kind {
    pub const KERNEL: u32 = 2;
    pub const API: u32 = 3;
    pub const MEMORY: u32 = 5;
    pub const MEMCPY: u32 = 7;
    pub const EXTERNAL: u32 = 8;
    pub const COMMUNICATION: u32 = 9;
    /// Most kinds.
    pub const COUNT: usize = 14;
}

/// Where a task runs.
#[derive(Clone, Copy)]
pub struct Place {
    /// Number of the device.
    pub device: i32,
    /// Handle of the stream.
    pub stream: usize,
}

impl Place {
    /// Numbers as records have them.
    fn numbers(self) -> [u32; 2] {
        [self.device.unsigned_abs(), ((self.stream >> 4) & 0xffff) as u32]
    }
}

/// A buffer of the caller that records are written to.
struct Lent {
    begin: usize,
    size: usize,
    used: usize,
}

/// What is recorded, and where it goes.
#[derive(Default)]
struct Recorder {
    subscriber: Option<usize>,
    subscribed: usize,
    callbacks: Option<(Request, Complete)>,
    kinds: [bool; kind::COUNT],
    buffer: Option<Lent>,
    /// Ids that were pushed, by their kind.
    pushed: HashMap<u32, Vec<u64>>,
    names: HashMap<&'static str, &'static CString>,
}

static RECORDER: LazyLock<Mutex<Recorder>> = LazyLock::new(Mutex::default);
/// Whether anything is recorded; calls that are not cost nothing.
static ON: AtomicBool = AtomicBool::new(false);
static CORRELATION: AtomicU64 = AtomicU64::new(0);

fn recorder() -> MutexGuard<'static, Recorder> {
    RECORDER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Now, by the clock of records: ns since 1970.
pub fn stamp() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// A buffer that goes back to whoever lent it.
type Full = Option<(Complete, Lent)>;

fn hand_back(full: Full) {
    if let Some((complete, lent)) = full {
        // SAFETY: the caller's function gets the buffer that it lent, once.
        unsafe { complete(std::ptr::with_exposed_provenance_mut(lent.begin), lent.size, lent.used) };
    }
}

impl Recorder {
    fn is_on(&self, kind: u32) -> bool {
        self.kinds.get(kind as usize).copied().unwrap_or(false)
    }

    /// The address of a name that stays.
    fn name(&mut self, name: &'static str) -> u64 {
        let kept =
            *self.names.entry(name).or_insert_with(|| Box::leak(Box::new(CString::new(name).unwrap_or_default())));
        kept.as_ptr().expose_provenance() as u64
    }

    /// Writes a record, and gives the buffer that is then nearly full. Where nobody lends a buffer, the record is dropped.
    fn write(&mut self, kind: u32, record: &Layout) -> Full {
        let (request, complete) = self.callbacks.filter(|_| self.is_on(kind))?;
        if self.buffer.is_none() {
            let (mut begin, mut size, mut most) = (std::ptr::null_mut(), 0, 0);
            // SAFETY: places for the three answers.
            unsafe { request(&raw mut begin, &raw mut size, &raw mut most) };
            self.buffer = (!begin.is_null()).then(|| Lent { begin: begin.expose_provenance(), size, used: 0 });
        }
        let (bytes, lent) = (record.bytes(), self.buffer.as_mut()?);
        if bytes.len() > lent.size - lent.used {
            return None;
        }
        // SAFETY: the buffer was lent with so many bytes, and these are beyond what is used.
        unsafe {
            std::ptr::with_exposed_provenance_mut::<u8>(lent.begin + lent.used)
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        lent.used += bytes.len();
        // As the real library does: it hands back at four fifths.
        if lent.used * 5 < lent.size * 4 {
            return None;
        }
        Some((complete, self.buffer.take()?))
    }
}

/// A call that is recorded when it returns.
pub struct Call {
    name: &'static str,
    start: u64,
    /// What ties it to its tasks; 0 where nothing is recorded.
    pub correlation: u64,
}

/// A call begins.
pub fn call(name: &'static str) -> Call {
    if !ON.load(Ordering::Relaxed) {
        return Call { name, start: 0, correlation: 0 };
    }
    let correlation = CORRELATION.fetch_add(1, Ordering::Relaxed) + 1;
    let mut recorder = recorder();
    let pushed: Vec<(u32, u64)> =
        recorder.pushed.iter().filter_map(|(kind, ids)| Some((*kind, *ids.last()?))).collect();
    let full: Vec<Full> = pushed
        .into_iter()
        .map(|(whose, id)| {
            let record = Layout::new(kind::EXTERNAL, 24).u32(4, whose).u64(8, id).u64(16, correlation);
            recorder.write(kind::EXTERNAL, &record)
        })
        .collect();
    drop(recorder);
    full.into_iter().for_each(hand_back);
    Call { name, start: stamp(), correlation }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.correlation == 0 {
            return;
        }
        let mut recorder = recorder();
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let name = recorder.name(self.name);
        let record = Layout::new(kind::API, 48).u64(4, self.start).u64(12, stamp());
        let record = record.u32(20, std::process::id()).u32(24, thread).u64(28, self.correlation).u64(36, name);
        let full = recorder.write(kind::API, &record);
        drop(recorder);
        hand_back(full);
    }
}

/// A task has run that began at `start`.
pub fn ran(task: &Task, at: Place, start: u64) {
    if !ON.load(Ordering::Relaxed) || task.correlation == 0 {
        return;
    }
    let (end, [device, stream]) = (stamp(), at.numbers());
    let mut recorder = recorder();
    let name = recorder.name(task.name);
    let full = if task.kind == Kind::Collective {
        let (ring, group) = (recorder.name("RING"), recorder.name("simulated group"));
        let record = Layout::new(kind::COMMUNICATION, 72).u32(4, 4).u32(16, device).u32(20, stream).u64(24, start);
        let record = record.u64(32, end).u64(40, ring).u64(48, name).u64(56, group).u64(64, task.correlation);
        recorder.write(kind::COMMUNICATION, &record)
    } else {
        let unit = if task.kind == Kind::Updatable { "KERNEL_MIX_AIC" } else { "KERNEL_AICORE" };
        let unit = recorder.name(unit);
        let record = Layout::new(kind::KERNEL, 56).u64(4, start).u64(12, end).u32(20, device).u32(24, stream);
        recorder.write(kind::KERNEL, &record.u64(28, task.correlation).u64(36, unit).u64(44, name))
    };
    drop(recorder);
    hand_back(full);
}

/// What was done with memory.
#[derive(Clone, Copy)]
pub enum Memory {
    /// It was allocated.
    Allocated = 0,
    /// It was freed.
    Released = 1,
}

/// Memory of a device was allocated or freed by a call that began at `start`.
pub fn memory(what: Memory, device: i32, address: usize, bytes: usize, start: u64) {
    if !ON.load(Ordering::Relaxed) {
        return;
    }
    let record = Layout::new(kind::MEMORY, 64).u32(4, what as u32).u32(8, 1).u64(20, start).u64(28, stamp());
    let record = record.u64(36, address as u64).u64(44, bytes as u64).u32(52, std::process::id());
    let record = record.u32(56, device.unsigned_abs()).u32(60, u32::MAX);
    let full = recorder().write(kind::MEMORY, &record);
    hand_back(full);
}

/// A copy was put into a stream by a call that began at `start`: it is the call that has a time, as in the real library.
pub fn copied(way: i32, bytes: usize, at: Place, start: u64) {
    if !ON.load(Ordering::Relaxed) {
        return;
    }
    let [device, stream] = at.numbers();
    let record = Layout::new(kind::MEMCPY, 56).u32(4, way.unsigned_abs() + 1).u64(8, bytes as u64).u64(16, start);
    let record = record.u64(24, stamp()).u32(32, device).u32(36, stream).u8(48, 1);
    let full = recorder().write(kind::MEMCPY, &record);
    hand_back(full);
}

/// Where a call writes a handle, or reads one.
type Out = *mut *mut c_void;
/// A subscriber's function, which nothing here calls.
type Callback = Option<unsafe extern "C" fn(*mut c_void, u32, u32, *const c_char)>;
