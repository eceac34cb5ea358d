//! Collectives between the devices of this process: every rank is a thread or a stream of it.

#![allow(unsafe_code)]

use std::{
    collections::HashMap,
    ffi::c_void,
    sync::{
        Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use half::{bf16, f16};

use crate::{
    cost::cost,
    error::{self, Outcome, answer, fault},
    memory::Block,
    mspti,
    state::{Handle, State, state},
    stream::{Kind, Task},
};

/// Bytes of `HcclRootInfo`.
const ROOT: usize = 4108;
/// How long ranks wait for each other.
const PATIENCE: Duration = Duration::from_secs(20);

/// Ranks that exchange.
#[derive(Default)]
struct Round {
    /// Ranks that have joined.
    joined: usize,
    /// What each rank brought, and what it is about.
    parts: HashMap<usize, (Vec<u8>, Shape)>,
    /// Ranks that have read all parts.
    read: usize,
}

/// A communicator's ranks.
struct Ring {
    count: usize,
    round: Mutex<Round>,
    changed: Condvar,
}

/// A rank of a communicator.
pub struct Rank {
    ring: Arc<Ring>,
    number: usize,
    context: usize,
}

/// What a collective is about, which all ranks must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    name: &'static str,
    count: usize,
    dtype: i32,
}

static RINGS: LazyLock<Mutex<HashMap<u64, Arc<Ring>>>> = LazyLock::new(Mutex::default);

impl Ring {
    fn round(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'r>(&self, round: MutexGuard<'r, Round>, until: impl Fn(&Round) -> bool) -> Outcome<MutexGuard<'r, Round>> {
        let (round, timeout) = self
            .changed
            .wait_timeout_while(round, PATIENCE, |round| !until(round))
            .unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            return fault(error::HCCL_TIMEOUT, "another rank did not come to the collective");
        }
        Ok(round)
    }

    /// Shows the part of a rank and gives those of all, in their order.
    fn exchange(&self, rank: usize, part: Vec<u8>, shape: Shape) -> Outcome<Vec<Vec<u8>>> {
        // The part of the round before is still there until everybody has read it.
        let mut round = self.wait(self.round(), |round| !round.parts.contains_key(&rank))?;
        round.parts.insert(rank, (part, shape));
        self.changed.notify_all();
        let mut round = self.wait(round, |round| round.parts.len() == self.count)?;
        let agreed = round.parts.values().all(|(_, other)| *other == shape);
        let parts = (0..self.count).filter_map(|rank| round.parts.get(&rank)).map(|(part, _)| part.clone()).collect();
        round.read += 1;
        if round.read == self.count {
            (round.read, round.parts) = (0, HashMap::new());
            self.changed.notify_all();
        }
        if agreed { Ok(parts) } else { fault(error::HCCL_PARAM, format!("ranks disagree about {shape:?}")) }
    }
}

/// Bytes of an element (`HcclDataType`), of the types that are added here.
fn size(dtype: i32) -> Outcome<usize> {
    match dtype {
        4 => Ok(4),
        3 | 11 => Ok(2),
        _ => fault(error::HCCL_PARAM, format!("elements of type {dtype} are not simulated")),
    }
}

fn add(parts: &[Vec<u8>], dtype: i32) -> Vec<u8> {
    let read = |bytes: &[u8]| match (dtype, bytes) {
        (4, [a, b, c, d]) => f32::from_le_bytes([*a, *b, *c, *d]),
        (3, [a, b]) => f16::from_le_bytes([*a, *b]).to_f32(),
        (_, [a, b]) => bf16::from_le_bytes([*a, *b]).to_f32(),
        _ => f32::NAN,
    };
    let width = if dtype == 4 { 4 } else { 2 };
    let count = parts.first().map_or(0, |part| part.len() / width);
    let sum = |at: usize| parts.iter().filter_map(|part| part.get(at * width..(at + 1) * width)).map(read).sum::<f32>();
    let write = |value: f32| match dtype {
        4 => value.to_le_bytes().to_vec(),
        3 => f16::from_f32(value).to_le_bytes().to_vec(),
        _ => bf16::from_f32(value).to_le_bytes().to_vec(),
    };
    (0..count).map(sum).flat_map(write).collect()
}

struct Ends {
    from: (Arc<Block>, usize, usize),
    to: (Arc<Block>, usize, usize),
}

impl State {
    fn rank(&self, comm: Handle) -> Outcome<Arc<Rank>> {
        let found = self.ranks.get(&comm.addr()).cloned();
        let Some(rank) = found else { return fault(error::HCCL_PARAM, "the communicator was destroyed or never made") };
        if rank.context != self.current()?.0 {
            return fault(error::HCCL_PARAM, "the communicator is of another context");
        }
        Ok(rank)
    }

    fn ends(&self, from: *mut c_void, given: usize, to: *mut c_void, taken: usize) -> Outcome<Ends> {
        let device = self.current()?.1.device;
        let own = |at: usize, bytes: usize, name: &str| {
            let found = self.block(at, bytes).filter(|block| block.device == Some(device));
            found.map_or_else(
                || fault(error::HCCL_PARAM, format!("'{name}' is no {bytes} bytes of device {device}")),
                |block| Ok((block, at, bytes)),
            )
        };
        Ok(Ends { from: own(from.addr(), given, "sendBuf")?, to: own(to.addr(), taken, "recvBuf")? })
    }
}

/// Puts a collective into a stream; `make` makes what is received of the parts of all.
fn collective(
    rank: Arc<Rank>,
    ends: Ends,
    shape: Shape,
    stream: Handle,
    make: impl Fn(&[Vec<u8>]) -> Vec<u8> + Send + Sync + 'static,
) -> Outcome {
    let call = mspti::call(shape.name);
    let stream = state().stream(stream)?;
    let time = cost().collective(ends.to.2);
    let work = move || {
        let (from, to) = (&ends.from, &ends.to);
        from.0.alive()?;
        to.0.alive()?;
        let mut part = vec![0u8; from.2];
        // SAFETY: the bytes lie in a block that is held.
        unsafe { from.0.at(from.1).copy_to_nonoverlapping(part.as_mut_ptr(), from.2) };
        let parts = rank.ring.exchange(rank.number, part, shape)?;
        let given = make(&parts);
        // SAFETY: as above; `given` has at most as many bytes.
        unsafe { to.0.at(to.1).copy_from_nonoverlapping(given.as_ptr(), given.len().min(to.2)) };
        Ok(())
    };
    cost().launched();
    let correlation = call.correlation;
    stream.put(Task { name: shape.name, work: Arc::new(work), time, kind: Kind::Collective, correlation })
}

// SAFETY (all below): the names are HCCL's, which this library stands in for; places to be written are looked at for null.

#[unsafe(no_mangle)]
extern "C" fn HcclGetRootInfo(out: *mut u8) -> i32 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    answer(|| {
        if out.is_null() {
            return fault(error::HCCL_PARAM, "HcclGetRootInfo with a null pointer");
        }
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        unsafe {
            out.write_bytes(0, ROOT);
            out.copy_from_nonoverlapping(number.to_le_bytes().as_ptr(), size_of::<u64>());
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn HcclCommInitRootInfo(count: u32, root: *const u8, number: u32, out: *mut Handle) -> i32 {
    answer(|| {
        if out.is_null() || root.is_null() || number >= count {
            return fault(error::HCCL_PARAM, format!("rank {number} of {count}, or a null pointer"));
        }
        let context = state().current()?.0;
        let mut id = [0u8; 8];
        unsafe { root.copy_to_nonoverlapping(id.as_mut_ptr(), id.len()) };
        let count = count as usize;
        let ring = {
            let mut rings = RINGS.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || Arc::new(Ring { count, round: Mutex::default(), changed: Condvar::new() });
            Arc::clone(rings.entry(u64::from_le_bytes(id)).or_insert_with(new))
        };
        if ring.count != count {
            return fault(error::HCCL_PARAM, format!("{count} ranks where another said {}", ring.count));
        }
        let mut round = ring.round();
        round.joined += 1;
        ring.changed.notify_all();
        drop(ring.wait(round, |round| round.joined >= count)?);
        let mut state = state();
        let handle = state.handle();
        state.ranks.insert(handle, Arc::new(Rank { ring, number: number as usize, context }));
        unsafe { *out = std::ptr::without_provenance_mut(handle) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn HcclCommDestroy(comm: Handle) -> i32 {
    answer(|| match state().ranks.remove(&comm.addr()) {
        Some(_) => Ok(()),
        None => fault(error::HCCL_PARAM, "the communicator was destroyed or never made"),
    })
}

#[unsafe(no_mangle)]
extern "C" fn HcclAllReduce(
    from: *mut c_void,
    to: *mut c_void,
    count: u64,
    dtype: i32,
    op: i32,
    comm: Handle,
    stream: Handle,
) -> i32 {
    answer(|| {
        if op != 0 {
            return fault(error::HCCL_PARAM, format!("reduction {op}; only sums (0) are simulated"));
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let bytes = count.saturating_mul(size(dtype)?);
        let (rank, ends) = {
            let state = state();
            (state.rank(comm)?, state.ends(from, bytes, to, bytes)?)
        };
        let shape = Shape { name: "HcclAllReduce", count, dtype };
        collective(rank, ends, shape, stream, move |parts| add(parts, dtype))
    })
}

#[unsafe(no_mangle)]
extern "C" fn HcclAllGather(
    from: *mut c_void,
    to: *mut c_void,
    count: u64,
    dtype: i32,
    comm: Handle,
    stream: Handle,
) -> i32 {
    answer(|| {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let bytes = count.saturating_mul(size(dtype)?);
        let (rank, ends) = {
            let state = state();
            let rank = state.rank(comm)?;
            let all = bytes.saturating_mul(rank.ring.count);
            (rank, state.ends(from, bytes, to, all)?)
        };
        collective(rank, ends, Shape { name: "HcclAllGather", count, dtype }, stream, |parts| parts.concat())
    })
}
