//! A CUPTI of this program: a table of functions that hand out records made by hand. There is one at a time, as of the real one.

use std::{
    collections::VecDeque,
    ffi::{CStr, CString, c_char, c_void},
    path::Path,
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::super::{
    Api, abi,
    api::{Callback, Complete, Request, Status, Timestamp},
};

/// Records of one buffer: their bytes, and where each begins.
#[derive(Clone, Default)]
pub struct Batch {
    pub bytes: Vec<u8>,
    pub begins: Vec<usize>,
    /// Bytes that are said to hold records, where that is not how many there are.
    pub said: Option<usize>,
}

impl Batch {
    pub fn of(records: &[Vec<u8>]) -> Self {
        let mut batch = Self::default();
        for record in records {
            batch.begins.push(batch.bytes.len());
            batch.bytes.extend(record);
        }
        batch
    }
}

#[derive(Default)]
pub struct Fake {
    pub batches: VecDeque<Batch>,
    /// Where the records of the buffer that is being read begin.
    begins: Vec<usize>,
    request: Option<Request>,
    complete: Option<Complete>,
    pub callback: Option<Callback>,
    pub timestamp: Option<Timestamp>,
    pub enabled: Vec<u32>,
    pub callbacks: Vec<u32>,
    pub pushed: Vec<u64>,
    pub popped: usize,
    /// Records that are said to be dropped at the next question.
    pub dropped: usize,
    /// Kinds that this version does not know.
    pub unknown: Vec<u32>,
    /// What a subscription is answered with.
    pub subscribe: Status,
    pub unsubscribed: usize,
    pub threads_by_system: bool,
    pub without_buffer: usize,
}

static FAKE: Mutex<Option<Fake>> = Mutex::new(None);
static ALONE: Mutex<()> = Mutex::new(());

fn fake<T>(what: impl FnOnce(&mut Fake) -> T) -> T {
    what(FAKE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// The right to use the fake alone.
pub struct Alone(#[expect(dead_code, reason = "held until it is dropped")] MutexGuard<'static, ()>);

impl Alone {
    pub fn new() -> Self {
        let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        fake(|fake| *fake = Fake::default());
        Self(guard)
    }

    pub fn with<T>(&self, what: impl FnOnce(&mut Fake) -> T) -> T {
        fake(what)
    }

    /// Tells of a node that was made: its handle is its number, and that of its original.
    pub fn node(&self, id: u32, node: u64, original: u64) {
        let graph = [1u64, 2, node, original, 0, 0, 0];
        let resource = [0u64, 0, graph.as_ptr().expose_provenance() as u64];
        let callback = self.with(|fake| fake.callbacks.contains(&id).then_some(fake.callback).flatten());
        if let Some(callback) = callback {
            // SAFETY: the descriptions have the form of CUPTI's.
            unsafe { callback(ptr::null_mut(), abi::DOMAIN_RESOURCE, id, resource.as_ptr().cast()) };
        }
    }
}

/// Its functions.
pub fn api() -> Api {
    let mut api = Api::empty(Path::new("fake"));
    api.version = Some(version);
    api.result_string = Some(result_string);
    api.subscribe = Some(subscribe);
    api.unsubscribe = Some(unsubscribe);
    api.enable_callback = Some(enable_callback);
    api.callback_name = Some(callback_name);
    api.node_id = Some(node_id);
    api.timestamp = Some(timestamp);
    api.register_timestamp = Some(register_timestamp);
    api.thread_id_type = Some(thread_id_type);
    api.latency_timestamps = Some(latency_timestamps);
    api.register_callbacks = Some(register_callbacks);
    api.enable = Some(enable);
    api.disable = Some(disable);
    api.flush_all = Some(flush_all);
    api.next_record = Some(next_record);
    api.dropped = Some(dropped);
    api.push_external = Some(push_external);
    api.pop_external = Some(pop_external);
    api
}

/// The same for a session.
pub fn shared() -> Arc<Api> {
    Arc::new(api())
}

unsafe extern "C" fn version(out: *mut u32) -> Status {
    unsafe { *out = 26 };
    0
}

unsafe extern "C" fn result_string(status: Status, out: *mut *const c_char) -> Status {
    let said = if status == abi::INVALID_KIND { c"CUPTI_ERROR_INVALID_KIND" } else { c"CUPTI_ERROR_UNKNOWN" };
    unsafe { *out = said.as_ptr() };
    0
}

unsafe extern "C" fn subscribe(out: *mut *mut c_void, callback: Callback, _: *mut c_void) -> Status {
    unsafe { *out = ptr::without_provenance_mut(0x51) };
    fake(|fake| {
        fake.callback = Some(callback);
        fake.subscribe
    })
}

unsafe extern "C" fn unsubscribe(subscriber: *mut c_void) -> Status {
    assert_eq!(subscriber.addr(), 0x51);
    fake(|fake| fake.unsubscribed += 1);
    0
}

unsafe extern "C" fn enable_callback(on: u32, _: *mut c_void, domain: u32, id: u32) -> Status {
    assert_eq!((on, domain), (1, abi::DOMAIN_RESOURCE));
    fake(|fake| fake.callbacks.push(id));
    0
}

unsafe extern "C" fn callback_name(domain: u32, id: u32, out: *mut *const c_char) -> Status {
    let name: &CStr = match (domain, id) {
        (abi::DOMAIN_DRIVER, 307) => c"cuLaunchKernel",
        (abi::DOMAIN_RUNTIME, 211) => c"cudaLaunchKernel_v7000",
        _ => return 1,
    };
    unsafe { *out = name.as_ptr() };
    0
}

unsafe extern "C" fn node_id(node: *mut c_void, out: *mut u64) -> Status {
    unsafe { *out = node.addr() as u64 };
    0
}

unsafe extern "C" fn timestamp(out: *mut u64) -> Status {
    // A clock of its own, a day ahead of the monotonic one.
    unsafe { *out = crate::activity::clock::stamp() + 86_400_000_000_000 };
    0
}

unsafe extern "C" fn register_timestamp(clock: Timestamp) -> Status {
    fake(|fake| {
        assert!(fake.enabled.is_empty(), "kinds that are on have another clock");
        fake.timestamp = Some(clock);
    });
    0
}

unsafe extern "C" fn thread_id_type(kind: u32) -> Status {
    fake(|fake| fake.threads_by_system = kind == 1);
    0
}

unsafe extern "C" fn latency_timestamps(_: u8) -> Status {
    0
}

unsafe extern "C" fn register_callbacks(request: Request, complete: Complete) -> Status {
    fake(|fake| (fake.request, fake.complete) = (Some(request), Some(complete)));
    0
}

unsafe extern "C" fn enable(kind: u32) -> Status {
    fake(|fake| {
        if fake.unknown.contains(&kind) {
            return abi::INVALID_KIND;
        }
        fake.enabled.push(kind);
        0
    })
}

unsafe extern "C" fn disable(kind: u32) -> Status {
    fake(|fake| fake.enabled.retain(|enabled| *enabled != kind));
    0
}

/// Asks for a buffer for each batch, fills it and hands it back, as the real one does on a thread of its own.
unsafe extern "C" fn flush_all(_: u32) -> Status {
    while let Some(batch) = fake(|fake| fake.batches.pop_front()) {
        let (request, complete) = fake(|fake| (fake.request.unwrap(), fake.complete.unwrap()));
        let (mut buffer, mut size, mut most) = (ptr::null_mut(), 0, 1);
        unsafe { request(&mut buffer, &mut size, &mut most) };
        if buffer.is_null() {
            fake(|fake| fake.without_buffer += 1);
            continue;
        }
        assert!(batch.bytes.len() <= size && most == 0 && buffer.addr().is_multiple_of(8));
        unsafe { ptr::copy_nonoverlapping(batch.bytes.as_ptr(), buffer, batch.bytes.len()) };
        fake(|fake| fake.begins = batch.begins);
        let valid = batch.said.unwrap_or(batch.bytes.len());
        std::thread::scope(|scope| {
            let buffer = buffer.expose_provenance();
            let hand_back = move || unsafe {
                complete(ptr::null_mut(), 0, ptr::with_exposed_provenance_mut(buffer), size, valid);
            };
            scope.spawn(hand_back).join().unwrap();
        });
    }
    0
}

unsafe extern "C" fn next_record(buffer: *mut u8, valid: usize, record: *mut *mut u8) -> Status {
    let current = unsafe { *record };
    let next = fake(|fake| {
        let place = match current.addr().checked_sub(buffer.addr()) {
            Some(at) if !current.is_null() => {
                fake.begins.iter().position(|begin| *begin == at).map_or(0, |place| place + 1)
            }
            _ => 0,
        };
        fake.begins.get(place).copied().filter(|_| valid > 0)
    });
    match next {
        Some(at) => {
            unsafe { *record = buffer.wrapping_add(at) };
            0
        }
        None => abi::MAX_LIMIT_REACHED,
    }
}

unsafe extern "C" fn dropped(_: *mut c_void, _: u32, out: *mut usize) -> Status {
    unsafe { *out = fake(|fake| std::mem::take(&mut fake.dropped)) };
    0
}

unsafe extern "C" fn push_external(whose: u32, id: u64) -> Status {
    assert_eq!(whose, abi::EXTERNAL_CUSTOM0);
    fake(|fake| fake.pushed.push(id));
    0
}

unsafe extern "C" fn pop_external(_: u32, out: *mut u64) -> Status {
    fake(|fake| {
        fake.popped += 1;
        unsafe { *out = fake.pushed.last().copied().unwrap_or(0) };
    });
    0
}

/// A record of a kind, of so many bytes that are 0 but for its fields: where each begins, and its bytes.
pub fn record(kind: u32, size: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; size];
    bytes[..4].copy_from_slice(&kind.to_ne_bytes());
    for (at, field) in fields {
        bytes[*at..at + field.len()].copy_from_slice(field);
    }
    bytes
}

/// Bytes of a number of 32 bits.
pub fn word(value: u32) -> [u8; 4] {
    value.to_ne_bytes()
}

/// Bytes of a number of 64 bits.
pub fn long(value: u64) -> [u8; 8] {
    value.to_ne_bytes()
}

/// The address of a name, which is there until the program ends.
pub fn name(text: &[u8]) -> u64 {
    CString::new(text).unwrap().into_raw().expose_provenance() as u64
}

/// A kernel of a version whose record has so many bytes.
pub fn kernel(size: usize, when: [u64; 2], correlation: u32, name: u64, node: u64) -> Vec<u8> {
    let mut record = record(
        10,
        size,
        &[
            (16, &long(when[0])),
            (24, &long(when[1])),
            (40, &word(1)),
            (44, &word(2)),
            (48, &word(7)),
            (52, &word(128)),
            (56, &word(2)),
            (60, &word(1)),
            (64, &word(256)),
            (68, &word(1)),
            (72, &word(1)),
            (92, &word(correlation)),
            (104, &long(name)),
            (120, &long(when[0] - 30)),
            (128, &long(when[0] - 10)),
            (144, &long(node)),
        ],
    );
    // The graph, or padding that is not 0 where the version has none.
    record[156..160].copy_from_slice(&word(5));
    record
}

/// A call of the driver or the runtime.
pub fn call(kind: u32, id: u32, when: [u64; 2], correlation: u32, result: u32) -> Vec<u8> {
    let (start, end) = (long(when[0]), long(when[1]));
    let fields: [(usize, &[u8]); 7] = [
        (4, &word(id)),
        (8, &start),
        (16, &end),
        (24, &word(4711)),
        (28, &word(4712)),
        (32, &word(correlation)),
        (36, &word(result)),
    ];
    record(kind, 40, &fields)
}

/// The id that was pushed around a call.
pub fn external(whose: u32, id: u64, correlation: u32) -> Vec<u8> {
    record(39, 24, &[(4, &word(whose)), (8, &long(id)), (16, &word(correlation))])
}

/// A replay as one record.
pub fn graph(size: usize, when: [u64; 2], correlation: u32) -> Vec<u8> {
    let (start, end) = (long(when[0]), long(when[1]));
    let fields: [(usize, &[u8]); 7] = [
        (4, &word(correlation)),
        (8, &start),
        (16, &end),
        (24, &word(1)),
        (28, &word(9)),
        (32, &word(2)),
        (36, &word(7)),
    ];
    record(51, size, &fields)
}
