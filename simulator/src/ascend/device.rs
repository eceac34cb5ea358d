//! The tasks of the device. Collectives run on a queue of their own; the queue that needs their result waits for it by an
//! event, and below a collective lie the tasks that it is made of.

use std::collections::BTreeMap;

use super::NONE;
use crate::{
    kernel::Class,
    record::{DeviceOp, Direction, Work},
    run::Run,
};

/// Streams of the device, as torch numbers them; the first is the default one.
const STREAMS: [i64; 3] = [2, 3, 5];
/// Stream of the tasks of collectives.
const COMMUNICATION: i64 = 40;
/// Time that telling another device takes (ns).
const RECORD_NS: i64 = 20;

/// What a task inside a collective does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Tells a peer that this rank has come.
    Record,
    /// Waits for a peer.
    Wait,
    /// Moves bytes to a peer.
    Transfer,
}

impl Part {
    /// Name within the collective.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Record => "Notify_Record",
            Self::Wait => "Notify_Wait",
            Self::Transfer => "Memcpy",
        }
    }

    /// Name and type of the task that does it.
    pub(super) fn task(self) -> &'static str {
        match self {
            Self::Record => "Write Value",
            Self::Wait => "Notify Wait",
            Self::Transfer => "SDMA",
        }
    }
}

/// What a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Kernel { class: Class, name: &'static str, blocks: i64 },
    Copy { direction: Direction, bytes: i64 },
    Fill,
    EventWait,
    Part { part: Part, collective: usize, plane: i64, peer: i64, bytes: i64 },
}

/// A task of the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) what: What,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) stream: i64,
    /// Id of the call that caused it.
    pub(super) connection: i64,
    /// Graph that replays it.
    pub(super) model: i64,
}

impl Task {
    /// The type in the timeline and on the scheduler's queue.
    pub(super) fn kind(&self) -> &'static str {
        match self.what {
            What::Kernel { class, .. } => core(class),
            What::Copy { direction: Direction::DeviceToDevice | Direction::PeerToPeer, .. } => "SDMA_SQE",
            What::Copy { .. } => "PCIE_DMA_SQE",
            What::Fill => "MEMSET_ASYNC",
            What::EventWait => "EVENT_WAIT_SQE",
            What::Part { part, .. } => part.task(),
        }
    }

    /// The name in the timeline.
    pub(super) fn name(&self) -> &'static str {
        match self.what {
            What::Kernel { name, .. } => name,
            What::Copy { .. } => "MEMCPY_ASYNC",
            What::Fill => "MEMSET_ASYNC",
            What::EventWait => "EVENT_WAIT",
            What::Part { part, .. } => part.task(),
        }
    }
}

/// Cores that kernels of a class run on.
fn core(class: Class) -> &'static str {
    match class {
        Class::Gemm => "AI_CORE",
        Class::Attention => "MIX_AIC",
        _ => "AI_VECTOR_CORE",
    }
}

/// Ranks that communicate with each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    /// Number of the communicator, whose last three digits stand in the names of its collectives.
    pub(super) number: i64,
    pub(super) ranks: Vec<i64>,
}

impl Group {
    /// All ranks of a job, or two that speak to each other, for which the library makes a communicator of their own.
    pub(super) fn of(run: &Run, peer: Option<usize>) -> Self {
        let Some(peer) = peer.and_then(|peer| i64::try_from(peer).ok()) else {
            return Self { number: COMMUNICATOR, ranks: (0..run.config.tensor_parallel).collect() };
        };
        let (low, high) = (run.device().min(peer), run.device().max(peer));
        Self { number: COMMUNICATOR + 1 + 20 * low + high, ranks: vec![low, high] }
    }

    /// The communicator's name, by the host that made it.
    pub(super) fn name(&self) -> String {
        format!("10.0.0.1%eth0_60000_0_{}", self.number)
    }
}

/// A collective with its waits.
#[derive(Clone, Debug)]
pub(super) struct Collective {
    pub(super) name: String,
    pub(super) group: Group,
    /// Operation, as the call names it: `hcom_allReduce_`.
    pub(super) op: &'static str,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) connection: i64,
    pub(super) model: i64,
    /// Elements of two bytes.
    pub(super) count: i64,
    /// Time until the last rank has come (ns).
    pub(super) wait: i64,
}

/// Everything that the device did, in the order of its issue.
#[derive(Default)]
pub(super) struct Device {
    pub(super) tasks: Vec<Task>,
    pub(super) collectives: Vec<Collective>,
}

impl Collective {
    /// Whether two ranks speak to each other in it.
    pub(super) fn is_pair(&self) -> bool {
        matches!(self.op, "hcom_send_" | "hcom_receive_")
    }
}

impl Device {
    /// What the device recorded of `run`. `waits` has each collective's wait on each rank; without it the wait is for a
    /// single peer, another one each time.
    pub(super) fn of(run: &Run, waits: &[Vec<i64>]) -> Self {
        let (mut device, numbers) = (Self::default(), numbers(run));
        for op in run.kept() {
            let connection = run.host[op.call].correlation.unwrap_or(NONE);
            let model = op.node.map_or(NONE, |(graph, _)| graph);
            let stream = STREAMS[op.stream];
            let task = |what| Task { what, start: op.start, end: op.end, stream, connection, model };
            match op.work {
                Work::Compute(class) => {
                    let name = op.kernel(run.config.vendor);
                    device.tasks.push(task(What::Kernel { class, name, blocks: op.blocks.min(CORES) }));
                }
                Work::Copy { direction, .. } => device.tasks.push(task(What::Copy { direction, bytes: op.bytes })),
                Work::Memset => device.tasks.push(task(What::Fill)),
                Work::Collective { wait, seq } => {
                    let peers = match op.peer {
                        Some(peer) => vec![(i64::try_from(peer).unwrap_or(0), wait)],
                        None => peers(run, waits, wait, seq),
                    };
                    let number = numbers.get(&seq).copied().unwrap_or(seq);
                    device.collective(run, op, number, (&task(What::EventWait), &peers));
                }
            }
        }
        device
    }

    /// A collective, the event that its queue's successors wait for, and what it is made of.
    fn collective(&mut self, run: &Run, op: &DeviceOp, seq: i64, (event, peers): (&Task, &[(i64, i64)])) {
        let (wait, number) = (op.work.wait(), self.collectives.len());
        let name = op.slot.map_or("hcom_allReduce_", |slot| slot.kernel(run.config.vendor));
        let group = Group::of(run, op.peer);
        self.collectives.push(Collective {
            // Operation, last digits of the group, number in the group.
            name: format!("{name}_{:03}_{seq}_1", group.number % 1000),
            group,
            op: name,
            start: op.start,
            end: op.end,
            connection: event.connection,
            model: event.model,
            count: op.bytes / 2,
            wait,
        });
        self.tasks.push(*event);
        let mut part = |part, (plane, peer), start, end, bytes| {
            let what = What::Part { part, collective: number, plane, peer, bytes };
            self.tasks.push(Task { what, start, end, stream: COMMUNICATION, ..*event });
        };
        for (plane, (peer, until)) in (0..).zip(peers) {
            part(Part::Record, (plane, *peer), op.start, op.end.min(op.start + RECORD_NS), 0);
            if *until > 0 {
                part(Part::Wait, (plane, *peer), op.start, op.start + until, 0);
            }
        }
        let peer = peers.first().map_or(0, |(peer, _)| *peer);
        part(Part::Transfer, (0, peer), op.start + wait, op.end, op.bytes);
    }
}

/// Number of the communicator of all ranks.
const COMMUNICATOR: i64 = 1_767_189_300_000_170;
/// Cores of the simulated device.
const CORES: i64 = 24;

/// Numbers of what the rank sends and receives, in the group of the two, by its number on the rank.
fn numbers(run: &Run) -> BTreeMap<i64, i64> {
    let mut passed: BTreeMap<usize, i64> = BTreeMap::new();
    let number = |op: &DeviceOp| {
        let (Work::Collective { seq, .. }, Some(peer)) = (op.work, op.peer) else { return None };
        let passed = passed.entry(peer).or_default();
        *passed += 1;
        Some((seq, *passed))
    };
    run.ops.iter().filter_map(number).collect()
}

/// Peers of a rank and how long it waits for each (ns).
fn peers(run: &Run, waits: &[Vec<i64>], wait: i64, seq: i64) -> Vec<(i64, i64)> {
    let (own, size) = (run.device(), run.config.tensor_parallel.max(2));
    match usize::try_from(seq - 1).ok().and_then(|at| waits.get(at)) {
        // All wait until the last has come, so who waited less came later.
        Some(all) => (0..).zip(all).filter(|(rank, _)| *rank != own).map(|(rank, its)| (rank, wait - its)).collect(),
        None => vec![((own + 1 + seq % (size - 1)) % size, wait)],
    }
}
