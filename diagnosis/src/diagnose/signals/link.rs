//! What a collective of known size takes at best on the link that the maker of its devices publishes: the model by which the
//! libraries themselves choose an algorithm, a start, a time per hop, and the bytes over the bandwidth that a protocol leaves.

use model::{CollectiveCall, Detail, Ns};

use super::{launch_shape::cores, product};
use crate::{
    analysis::{Class, DeviceOp, OpKind, Rank, Step, job::Instance, launch_shape, op_shapes},
    diagnose::rule::Context,
    platform::{CanonicalOp, OpClass, Stage},
};

/// Ranks of one node at most: beyond it a network lies between them, of which nothing is published with the chip.
const NODE: u32 = 8;
/// Operations looked back upon for the product whose parts an all-reduce sums; own value.
const BEFORE: usize = 4;
/// Bandwidth below which a link is a bus, bytes per ns: PCIe of the fifth generation has 64 GB/s.
const OWN: f64 = 100.0;
/// Tensors of the hidden size that a stage of a pipeline hands on at most: hidden states and residual (`IntermediateTensors` of
/// vLLM; SGLang's proxy tensors are the same two).
const HANDED_ON: i64 = 2;
/// Columns from which a product is that of the vocabulary.
const VOCABULARY: i64 = 16_000;
/// Share of the cores below which a launch has a block for each of its tiles: persistent kernels have one for each core, or
/// for most of them where they run in clusters, and work on several tiles with it.
const PERSISTENT: f64 = 0.9;

/// How a library moves data: base latency and latency of a hop, ns, and the share of the bus bandwidth that it leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protocol {
    /// Name as kernels spell it.
    pub name: &'static str,
    base: f64,
    hop: f64,
    share: f64,
}

const fn protocol(name: &'static str, base: f64, hop: f64, share: f64) -> Protocol {
    Protocol { name, base, hop, share }
}

/// Rings of NCCL inside a node (its tuning model, `src/graph/tuning.cc`).
const NCCL: [Protocol; 3] = [
    protocol("LL", 6_600.0, 600.0, 0.25),
    protocol("LL128", 14_000.0, 1_900.0, 0.92),
    protocol("SIMPLE", 8_400.0, 3_400.0, 1.0),
];
/// Those of RCCL (its tuning model, `src/graph/tuning.cc`).
const RCCL: [Protocol; 2] = [protocol("LL", 20_500.0, 2_300.0, 0.2), protocol("SIMPLE", 27_900.0, 2_700.0, 1.0)];

/// Peers that a device of a mesh has a link of its own to, where no switch joins all of them (the nodes of AMD).
const MESH: f64 = 7.0;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collective {
    /// Every rank gets the sum.
    AllReduce,
    /// Every rank gets the parts of all, or its part of the sum.
    Half,
    /// One rank sends to another.
    Pair,
}

impl Collective {
    /// From what the source calls it.
    pub fn of(name: &str) -> Option<Self> {
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let has = |part: &str| name.contains(part);
        if has("alltoall") {
            None
        } else if has("allreduce") {
            Some(Self::AllReduce)
        } else if has("allgather") || has("reducescatter") {
            Some(Self::Half)
        } else {
            (has("send") || has("recv") || has("receive")).then_some(Self::Pair)
        }
    }

    /// Hops of a ring of so many ranks.
    fn hops(self, ranks: u32) -> f64 {
        let around = f64::from(ranks.saturating_sub(1));
        match self {
            Self::AllReduce => 2.0 * around,
            Self::Half => around,
            Self::Pair => 1.0,
        }
    }

    /// Bytes that cross each rank's link for each byte of the payload (the bus bandwidth of nccl-tests).
    pub fn factor(self, ranks: u32) -> f64 {
        match self {
            Self::Pair => 1.0,
            _ => self.hops(ranks) / f64::from(ranks.max(1)),
        }
    }
}

/// A collective of known size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message {
    /// What is done.
    pub what: Collective,
    /// Payload of a rank, bytes.
    pub bytes: i64,
    /// Ranks that take part.
    pub ranks: u32,
    /// Whether the size follows from the model and the rows of the step, because the capture does not hold it.
    pub modelled: bool,
}

impl Message {
    /// Bus bandwidth of a transfer, bytes per ns (GB/s).
    pub fn rate(self, transfer: Ns) -> f64 {
        self.bytes as f64 * self.what.factor(self.ranks) / transfer.max(1) as f64
    }
}

/// The link between the devices of one node.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Published, bytes per ns and direction.
    pub bandwidth: f64,
    protocols: &'static [Protocol],
    /// Whether each pair of devices has its own link: fewer ranks have fewer links.
    mesh: bool,
}

impl Link {
    /// That of the device of a rank, where it is published, and where it is known how its library moves data.
    pub fn of(cx: &Context<'_>, rank: &Rank) -> Option<Self> {
        let own = cx.trace.devices.iter().find(|d| d.process == rank.process && d.ordinal == rank.device);
        let device = own.or(cx.trace.devices.first())?;
        let name = cx.trace.strings.get(device.name?);
        let bandwidth = f64::from(cx.packs.chip(name)?.link_gb_per_s?);
        // A card for PCIe may have a bridge to another one, and a bus is shared with whatever else hangs on it.
        if bandwidth < OWN || name.to_ascii_lowercase().contains("pcie") {
            return None;
        }
        let (protocols, mesh): (&[Protocol], bool) = match device.vendor.map(|vendor| cx.trace.strings.get(vendor)) {
            Some("nvidia") => (&NCCL, false),
            Some("amd") => (&RCCL, true),
            _ => return None,
        };
        Some(Self { bandwidth, protocols, mesh })
    }

    /// The least time that the library's model gives a collective, ns, and by which protocol.
    pub fn best(&self, message: Message) -> Option<(f64, Protocol)> {
        let times = self.protocols.iter().map(|protocol| (self.time(message, *protocol), *protocol));
        times.min_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// What its model gives a collective by the protocol that a kernel's name shows.
    pub fn named(&self, message: Message, name: &str) -> Option<f64> {
        self.protocols.iter().find(|protocol| protocol.name == name).map(|protocol| self.time(message, *protocol))
    }

    /// The shortest start of any protocol for a collective of so many ranks, ns: what it takes without a byte.
    pub fn least_start(&self, what: Collective, ranks: u32) -> f64 {
        let starts = self.protocols.iter().map(|protocol| protocol.base + what.hops(ranks) * protocol.hop);
        starts.fold(f64::INFINITY, f64::min)
    }

    /// Part of the least time that is no transfer, in 0..=1.
    pub fn latency(&self, message: Message) -> f64 {
        self.best(message).map_or(0.0, |(ns, protocol)| Self::start(message, protocol) / ns.max(1.0))
    }

    fn start(message: Message, protocol: Protocol) -> f64 {
        protocol.base + message.what.hops(message.ranks) * protocol.hop
    }

    fn time(&self, message: Message, protocol: Protocol) -> f64 {
        let moved = message.bytes as f64 * message.what.factor(message.ranks);
        Self::start(message, protocol) + moved / (self.usable(message.ranks) * protocol.share)
    }

    /// What of the bandwidth so many ranks can use, bytes per ns.
    pub fn usable(&self, ranks: u32) -> f64 {
        let links = f64::from(ranks.saturating_sub(1)).clamp(1.0, MESH);
        if self.mesh { self.bandwidth * links / MESH } else { self.bandwidth }
    }
}

/// What the source says of a collective.
pub fn description<'a>(cx: &Context<'a>, op: &DeviceOp) -> Option<&'a CollectiveCall> {
    let (track, row) = cx.trace.locate(op.slice)?;
    match cx.trace.detail(cx.trace.lanes.get(track.0 as usize)?, row)? {
        Detail::Kernel(kernel) => kernel.collective.as_deref(),
        Detail::Collective(call) => Some(call),
        _ => None,
    }
}

/// The sizes of the collectives of one class of a rank: those that are recorded; those of all-reduces that sum the parts of a
/// product, which are the hidden size times the rows of the step; and those of what stages of a pipeline hand on, at most two
/// tensors of that size.
pub struct Sizes<'c, 'a> {
    cx: &'c Context<'a>,
    rank: &'c Rank,
    decodes: bool,
    /// Hidden size and bytes of an element.
    hidden: Option<(i64, i64)>,
}

impl<'c, 'a> Sizes<'c, 'a> {
    /// Of a class of a rank.
    pub fn of(cx: &'c Context<'a>, rank: &'c Rank, class: &Class) -> Self {
        Self { cx, rank, decodes: class.stage == Stage::Decode, hidden: hidden(cx, rank, class) }
    }

    /// The message of an operation of a step whose collective `group` ranks share; `None` where nothing tells its size.
    pub fn message(&self, step: &Step, at: u32, group: u32) -> Option<Message> {
        let op = self.rank.timeline.ops.get(at as usize)?;
        let call = description(self.cx, op);
        let strings = &self.cx.trace.strings;
        let what = Collective::of(strings.get(call.and_then(|c| c.op).unwrap_or(op.name)))?;
        let ranks = call.and_then(|c| c.group_size).filter(|_| what != Collective::Pair).unwrap_or(group);
        let ranks = if what == Collective::Pair { 2 } else { ranks };
        if let Some(bytes) = call.and_then(|c| c.bytes) {
            return (bytes > 0).then_some(Message { what, bytes, ranks, modelled: false });
        }
        let tensors = match what {
            Collective::AllReduce if self.sums_a_product(at) => 1,
            Collective::Pair => HANDED_ON,
            _ => return None,
        };
        let (hidden, element) = self.hidden?;
        let ops = self.rank.ops_of(step);
        let decoded = || step.facts.batch.filter(|_| self.decodes).map(u64::from);
        let rows = step.rows.or_else(|| launch_shape::norm_rows(self.cx.trace, ops)).or_else(decoded)?;
        let bytes = i64::try_from(rows).ok()?.checked_mul(hidden)?.checked_mul(element * tensors)?;
        (bytes > 0).then_some(Message { what, bytes, ranks, modelled: true })
    }

    /// Whether the computation right before a collective is a product.
    fn sums_a_product(&self, at: u32) -> bool {
        let ops = self.rank.timeline.ops.get((at as usize).saturating_sub(BEFORE)..at as usize).unwrap_or(&[]);
        let computed = ops.iter().rev().find(|op| op.kind == OpKind::Compute);
        computed.is_some_and(|op| matches!(op.op, CanonicalOp::Gemm | CanonicalOp::GroupedGemm))
    }
}

/// The hidden size of the model and the bytes of an element of its activations: what the run says, else what the product of the
/// vocabulary reads.
fn hidden(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<(i64, i64)> {
    let step = rank.steady_steps(class).next()?;
    let products = rank.ops_of(step).iter().rev().filter(|op| op.op == CanonicalOp::Gemm);
    let seen = products.take(BEFORE).find_map(|op| {
        let gemm = op_shapes::gemm(&op_shapes::inputs(cx.trace, rank, op))?;
        Some((gemm.inputs, gemm.outputs, gemm.element?))
    });
    let said = cx.trace.manifest.value("model.hidden").and_then(|n| n.trim().parse::<i64>().ok()).filter(|n| *n > 0);
    match (said, seen) {
        (Some(said), seen) => Some((said, seen.map_or(2, |(.., element)| element))),
        (None, Some((inputs, outputs, element))) => (outputs >= VOCABULARY).then_some((inputs, element)),
        (None, None) => Some((launched(cx, rank, step)?, 2)),
    }
}

/// The hidden size at most, from the launches of the products whose result an all-reduce sums or a norm reads: each has the columns
/// of the hidden size, or more where the norm is that of queries and keys, and its blocks cover no more than their tiles.
fn launched(cx: &Context<'_>, rank: &Rank, step: &Step) -> Option<i64> {
    let ops = rank.ops_of(step);
    let cores = cores(cx.trace, rank)? as f64;
    let sums = |op: &DeviceOp| {
        op.kind == OpKind::Comm
            && Collective::of(cx.trace.strings.get(description(cx, op).and_then(|c| c.op).unwrap_or(op.name)))
                == Some(Collective::AllReduce)
    };
    let normalises = |op: &DeviceOp| op.kind == OpKind::Compute && op.op.class() == OpClass::Norm;
    let readers = (0..).zip(ops).filter(|(_, op)| sums(op) || normalises(op));
    let before = readers.filter_map(|(at, _): (usize, _)| {
        let computed = ops.get(at.saturating_sub(BEFORE)..at)?.iter().rev().find(|op| op.kind == OpKind::Compute);
        computed.filter(|op| op.op == CanonicalOp::Gemm)
    });
    // What splits its inner dimension has a block for each part.
    let splits = |op: &DeviceOp| cx.trace.strings.get(op.name).to_ascii_lowercase().contains("splitk");
    let few = |op: &DeviceOp| launch_shape::blocks(cx.trace, op).is_some_and(|n| (n as f64) < PERSISTENT * cores);
    let whole = |op: &&DeviceOp| splits(op) || few(op);
    before.filter(whole).filter_map(|op| product::columns(cx, op)).reduce(f64::min).map(|columns| columns as i64)
}

/// Whether the ranks of an instance may be those of one node: as many as one holds, and numbered together.
pub fn in_one_node(cx: &Context<'_>, instance: &Instance) -> bool {
    let numbers = || instance.members.iter().filter_map(|m| cx.analysis.ranks.get(m.rank)).map(|rank| rank.rank);
    let node = numbers().next().map(|rank| rank / NODE);
    numbers().all(|rank| Some(rank / NODE) == node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_source_tell_what_is_done() {
        for (name, expected) in [
            ("allreduce", Some(Collective::AllReduce)),
            ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*)", Some(Collective::AllReduce)),
            ("_allgather_base", Some(Collective::Half)),
            ("hcom_reduceScatter__123_0", Some(Collective::Half)),
            ("ncclDevKernel_SendRecv", Some(Collective::Pair)),
            ("hcom_receive__612_0", Some(Collective::Pair)),
            ("all_to_all", None),
            ("broadcast", None),
        ] {
            assert_eq!(Collective::of(name), expected, "{name}");
        }
    }

    #[test]
    fn a_small_message_is_all_latency_and_a_large_one_all_bandwidth() {
        let link = Link { bandwidth: 450.0, protocols: &NCCL, mesh: false };
        let message = |bytes| Message { what: Collective::AllReduce, bytes, ranks: 4, modelled: false };
        assert!(link.latency(message(8 << 10)) > 0.9);
        let large = message(1 << 30);
        assert!(link.latency(large) < 0.05);
        let (ns, protocol) = link.best(large).map_or((0.0, ""), |(ns, p)| (ns, p.name));
        assert_eq!(protocol, "SIMPLE");
        assert!((large.rate(ns as Ns) / 450.0 - 1.0).abs() < 0.05, "all of the link");
        let small = link.best(message(64 << 10)).map_or("", |(_, p)| p.name);
        assert_eq!(small, "LL");
    }

    #[test]
    fn the_factors_are_those_of_nccl_tests() {
        assert_eq!(Collective::AllReduce.factor(4), 1.5);
        assert_eq!(Collective::Half.factor(4), 0.75);
        assert_eq!(Collective::AllReduce.factor(0), 0.0);
        assert_eq!(Collective::Pair.factor(2), 1.0);
    }
}
