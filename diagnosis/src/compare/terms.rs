//! What the difference is made of, as a person would name it: slots of the device with their kernels, and what the device waited
//! for, each with how it differs. The terms add up to the difference.

mod joined;
mod owner;
mod shape;

use std::{cmp::Reverse, collections::BTreeMap};

use model::Ns;

use self::{
    joined::joined,
    owner::{Changed, first, placeless},
};
use super::{
    Side,
    align::{Alignment, Move, Part, Slot},
    chosen::Chosen,
    waterfall::{Basis, Cause, Kernel, Row, Waterfall, exchanged},
};
use crate::{
    analysis::Layer,
    platform::{CanonicalOp, OpClass},
};

/// How the two sides differ in a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The same kernel, as often, for another time.
    SameKernel,
    /// The same kernel more or less often.
    OtherCalls,
    /// The same kernel, as often and as long, of which another part runs beside other work.
    OtherOverlap,
    /// Another kernel for the same slot.
    OtherKernel,
    /// As several kernels on one side, and fewer on the other.
    Fused,
    /// Kernels that only A has.
    OnlyA,
    /// Kernels that only B has.
    OnlyB,
    /// The device waits longer for the same owner.
    SameOwner,
    /// The device waits for another owner of its idle time.
    OtherOwner,
    /// What nobody saw on one side.
    Unseen,
}

impl How {
    /// All, in the order of the list.
    pub const ALL: [Self; 10] = [
        Self::SameKernel,
        Self::OtherCalls,
        Self::OtherOverlap,
        Self::OtherKernel,
        Self::Fused,
        Self::OnlyA,
        Self::OnlyB,
        Self::SameOwner,
        Self::OtherOwner,
        Self::Unseen,
    ];

    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::SameKernel => "same_kernel",
            Self::OtherCalls => "other_calls",
            Self::OtherOverlap => "other_overlap",
            Self::OtherKernel => "other_kernel",
            Self::Fused => "fused",
            Self::OnlyA => "only_a",
            Self::OnlyB => "only_b",
            Self::SameOwner => "same_owner",
            Self::OtherOwner => "other_owner",
            Self::Unseen => "unseen",
        }
    }
}

/// One side of a term.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Held {
    /// Time, ns per step.
    pub ns: Ns,
    /// Calls of kernels, or idle stretches, per step.
    pub calls: f64,
    /// The kernel with most of the time, or the owner of most of the idle time.
    pub name: Option<String>,
    /// How long a call lasts, ns, where a part of it runs beside other work and is not in [`Held::ns`].
    pub lasting: Option<f64>,
    /// Shapes of what went into it.
    pub shape: Option<String>,
    /// Bytes that a call has to read at least, where shapes and types say it.
    pub bytes: Option<f64>,
    /// The least time of these calls by the published bandwidth of the device's memory, ns per step.
    pub floor: Option<f64>,
}

impl Held {
    /// Time of a call, ns.
    pub fn per_call(&self) -> Option<f64> {
        (self.calls > 0.0).then(|| self.ns as f64 / self.calls)
    }

    /// Bytes per ns that the calls achieve: 10⁹ B/s.
    pub fn rate(&self) -> Option<f64> {
        self.bytes.zip(self.per_call()).filter(|(_, ns)| *ns > 0.0).map(|(bytes, ns)| bytes / ns)
    }
}

/// A term of the difference.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Term {
    /// What it is called: a slot such as `layer.gemm#2`, or a bucket such as `rt.host.forward`.
    pub name: String,
    /// Operator of its slots; absent for what the device waits for.
    pub operator: Option<String>,
    /// Part of the step; absent where it is spread over it.
    pub part: Option<Part>,
    /// Its slots, as indices into [`Alignment::slots`]; empty for what the device waits for.
    pub slots: Vec<u32>,
    /// Layer of the stack.
    pub layer: Layer,
    /// How the two differ in it.
    pub how: How,
    /// Both sides.
    pub sides: [Held; 2],
    /// What it comes from, the largest part first; adds up to the difference.
    pub causes: Vec<(Cause, Ns)>,
}

impl Term {
    /// How much more the second side takes, ns.
    pub fn delta(&self) -> Ns {
        self.sides[1].ns - self.sides[0].ns
    }
}

/// What terms are gathered by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// One slot.
    Slot(u32),
    /// Slots of one operator in one part that differ in the same way, with the kernels of both.
    Alike(Part, String, How, i64, [Option<String>; 2]),
    /// Slots of one kernel that takes longer or shorter by the same in all of them.
    Kernel(String, i64, [Option<String>; 2]),
    /// A bucket, and whether it is what a late rank did.
    Bucket(String, bool),
    /// What a replay hides.
    Replayed,
    /// Time of the host of which only one side shows what was done in it.
    Host,
}

/// All terms, the largest difference first; they add up to the difference.
pub fn terms(sides: &[Chosen<'_>; 2], alignment: &Alignment, waterfall: &Waterfall) -> Vec<Term> {
    let mut drafts: BTreeMap<Key, Draft> = BTreeMap::new();
    let net = net(waterfall);
    for row in &waterfall.rows {
        let slot = alignment.slots.get(row.slot as usize);
        let works = !row.waited && (row.layer == Layer::Operator || WORKS.iter().any(|b| row.bucket.starts_with(b)));
        let key = match slot.filter(|_| works) {
            _ if row.replayed => Key::Replayed,
            _ if row.unseen => Key::Host,
            Some(slot) => key(slot, row.slot, waterfall, net.get(&row.slot).copied().unwrap_or(0)),
            None => Key::Bucket(row.bucket.clone(), row.waited),
        };
        drafts.entry(key).or_default().add(row);
    }
    let mut out: Vec<Term> = joined(drafts, alignment, waterfall)
        .into_iter()
        .map(|(key, draft)| draft.finish(&key, sides, alignment, waterfall))
        .collect();
    out.sort_by(|a, b| {
        let weight = |term: &Term| (Reverse(term.delta().abs()), Reverse(term.sides[0].ns.max(term.sides[1].ns)));
        weight(a).cmp(&weight(b)).then_with(|| a.name.cmp(&b.name))
    });
    out
}

/// What the time of the host is called of which only one side shows what was done in it.
pub const HOST: &str = "rt.host";

/// Buckets beside those of operators in which a device works.
const WORKS: [&str; 2] = ["comm.transfer", "copy."];

/// Difference of each slot's work, ns.
fn net(waterfall: &Waterfall) -> BTreeMap<u32, Ns> {
    let mut net: BTreeMap<u32, Ns> = BTreeMap::new();
    for row in waterfall.rows.iter().filter(|row| !row.waited && row.layer == Layer::Operator) {
        *net.entry(row.slot).or_default() += row.delta();
    }
    net
}

/// Slots of one operator are one term where they differ in the same way by the same kernels. Products and attentions never are:
/// each has a shape of its own.
fn key(slot: &Slot, index: u32, waterfall: &Waterfall, delta: Ns) -> Key {
    let op = slot.stands_for().or_else(|| slot.a.first().or(slot.b.first()).copied());
    let alone = op.is_none_or(|op| {
        matches!(op.class(), OpClass::Matrix | OpClass::Attention | OpClass::Comm) || op == CanonicalOp::Other
    });
    if alone || slot.part == Part::Anywhere {
        return Key::Slot(index);
    }
    let first = |n: usize| waterfall.kernels[n].get(&index).and_then(|list| list.first()).map(|k| k.name.clone());
    let how = how(slot, index, waterfall);
    // What only one side has is one thing, whichever of a library's kernels does it.
    let kernels = if alone_in(how).is_some() { [None, None] } else { [first(0), first(1)] };
    // What differs by nothing stands with neither, or it would change sides where the captures do.
    Key::Alike(slot.part, slot.operator().to_owned(), how, delta.signum(), kernels)
}

/// Calls that are as many: a step more or less at the ends of a capture is none.
fn as_many(a: f64, b: f64) -> bool {
    (a - b).abs() <= 0.02 * a.max(b)
}

/// Share of its calls' time that must run beside other work for that to be told; own value.
const BESIDE: f64 = 0.02;

/// Whether calls last as long on both sides and only what runs beside them differs.
fn overlaps_otherwise(a: &[Kernel], b: &[Kernel]) -> bool {
    let sum = |side: &[Kernel], of: fn(&Kernel) -> f64| side.iter().map(of).sum::<f64>();
    let [lasting, busy] = [|k: &Kernel| k.lasting, |k: &Kernel| k.ns].map(|of| [sum(a, of), sum(b, of)]);
    let beside = lasting.iter().zip(&busy).any(|(lasting, busy)| *lasting > (1.0 + BESIDE) * busy);
    beside && as_many(lasting[0], lasting[1]) && 2.0 * (lasting[1] - lasting[0]).abs() < (busy[1] - busy[0]).abs()
}

/// How two sides differ in a slot.
fn how(slot: &Slot, index: u32, waterfall: &Waterfall) -> How {
    let [a, b] = [0, 1].map(|n| waterfall.kernels[n].get(&index).map_or(&[][..], Vec::as_slice));
    let calls = |list: &[Kernel]| list.iter().map(|kernel| kernel.count).sum::<f64>();
    let same = a.first().zip(b.first()).is_some_and(|(a, b)| a.name == b.name);
    match () {
        () if b.is_empty() => How::OnlyA,
        () if a.is_empty() => How::OnlyB,
        () if slot.by == Some(Move::Group) => How::Fused,
        () if same && as_many(calls(a), calls(b)) && exchanged(a, b) => How::OtherKernel,
        () if same && as_many(calls(a), calls(b)) && overlaps_otherwise(a, b) => How::OtherOverlap,
        () if same && as_many(calls(a), calls(b)) => How::SameKernel,
        () if same => How::OtherCalls,
        () => How::OtherKernel,
    }
}

/// A term while it is gathered.
#[derive(Default)]
struct Draft {
    slots: Vec<u32>,
    ns: [Ns; 2],
    calls: [f64; 2],
    causes: BTreeMap<Cause, Ns>,
    layer: Option<Layer>,
}

impl Draft {
    fn add(&mut self, row: &Row) {
        // Rows come in the order of their slots.
        if self.slots.last() != Some(&row.slot) {
            self.slots.push(row.slot);
        }
        for (n, side) in [row.a, row.b].into_iter().enumerate() {
            self.ns[n] += side.ns;
            self.calls[n] += side.count;
        }
        row.causes.iter().for_each(|(cause, ns)| *self.causes.entry(*cause).or_default() += ns);
        self.layer = self.layer.or(Some(row.layer));
    }

    fn join(&mut self, other: Self) {
        self.slots.extend(other.slots);
        for n in [0, 1] {
            self.ns[n] += other.ns[n];
            self.calls[n] += other.calls[n];
        }
        other.causes.into_iter().for_each(|(cause, ns)| *self.causes.entry(cause).or_default() += ns);
        self.layer = self.layer.or(other.layer);
    }

    fn finish(self, key: &Key, sides: &[Chosen<'_>; 2], alignment: &Alignment, waterfall: &Waterfall) -> Term {
        let slots: Vec<&Slot> = self.slots.iter().filter_map(|i| alignment.slots.get(*i as usize)).collect();
        let mut causes: Vec<(Cause, Ns)> =
            self.causes.iter().map(|(c, ns)| (*c, *ns)).filter(|(_, ns)| *ns != 0).collect();
        causes.sort_by_key(|(cause, ns)| (Reverse(ns.abs()), *cause));
        let layer = self.layer.unwrap_or(Layer::Measurement);
        let (name, held, how) = match key {
            Key::Slot(_) | Key::Alike(..) | Key::Kernel(..) => {
                let name = match (key, slots.first()) {
                    // The first of its slots is no other term's.
                    (Key::Kernel(..), Some(first)) => format!("{} and {} more", first.key(), slots.len() - 1),
                    (Key::Alike(part, operator, ..), _) if slots.len() > 1 => format!("{}.{operator}", part.key()),
                    (_, Some(slot)) => slot.key(),
                    (_, None) => String::new(),
                };
                let first = slots.first().zip(self.slots.first());
                let how = first.map_or(How::Unseen, |(slot, index)| how(slot, *index, waterfall));
                (name, [0, 1].map(|n| self.kernels(n, how, sides, waterfall)), how)
            }
            Key::Bucket(bucket, _) => {
                let held = self.idle(sides, bucket);
                let how = match (&held[0].name, &held[1].name) {
                    (Some(a), Some(b)) if placeless(a) == placeless(b) => How::SameOwner,
                    (None, None) => How::SameOwner,
                    (Some(_), None) if self.ns[1] == 0 => How::OnlyA,
                    (None, Some(_)) if self.ns[0] == 0 => How::OnlyB,
                    // Calls of one kind are the same however two vendors name them.
                    _ if !bucket.starts_with("rt.host.") => How::SameOwner,
                    _ => How::OtherOwner,
                };
                let unseen = layer == Layer::Measurement || waterfall.setup.host_hidden;
                (bucket.clone(), held, if unseen { How::Unseen } else { how })
            }
            Key::Replayed => {
                let held = [0, 1].map(|n| Held { ns: self.ns[n], calls: self.calls[n], ..Held::default() });
                ("replayed".to_owned(), held, How::Unseen)
            }
            Key::Host => {
                let held = [0, 1].map(|n| Held { ns: self.ns[n], calls: self.calls[n], ..Held::default() });
                (HOST.to_owned(), held, How::Unseen)
            }
        };
        let works = matches!(key, Key::Slot(_) | Key::Alike(..) | Key::Kernel(..));
        Term {
            name,
            operator: slots.first().filter(|_| works).map(|slot| slot.operator().to_owned()),
            part: slots.first().map(|slot| slot.part).filter(|part| works && slots.iter().all(|s| s.part == *part)),
            slots: if works { self.slots } else { Vec::new() },
            layer: if *key == Key::Replayed { Layer::Measurement } else { layer },
            how,
            sides: held,
            causes,
        }
    }

    /// The kernels of one side in the slots of a term. Where another kernel makes the difference, it is the one that is named.
    fn kernels(&self, n: usize, how: How, sides: &[Chosen<'_>; 2], waterfall: &Waterfall) -> Held {
        let of = |n: usize| self.slots.iter().filter_map(move |slot| waterfall.kernels[n].get(slot));
        let lists = || of(n);
        let other = |kernel: &&Kernel| how == How::OtherKernel && of(1 - n).flatten().all(|k| k.name != kernel.name);
        let calls: f64 = lists().flatten().map(|kernel| kernel.count).fold(0.0, |sum, n| sum + n);
        let longest = |kernel: &dyn Fn(&&Kernel) -> bool| {
            let own = lists().filter_map(|list| list.iter().find(kernel));
            own.max_by(|a, b| a.ns.total_cmp(&b.ns))
        };
        let longest = longest(&other).or_else(|| longest(&|_| true));
        let (shape, bytes) = shape::of(&self.slots, &waterfall.shapes[n], &waterfall.kernels[n]);
        let lasting: f64 = lists().flatten().map(|kernel| kernel.lasting).sum();
        // Their own time and not the term's: of a collective the term has the transfer alone.
        let alone: f64 = lists().flatten().map(|kernel| kernel.ns).sum();
        let beside = calls > 0.0 && lasting > (1.0 + BESIDE) * alone;
        let bandwidth = super::waterfall::published_bandwidth(&sides[n]).filter(|_| waterfall.basis == Basis::Step);
        Held {
            ns: self.ns[n],
            calls,
            name: longest.map(|kernel| kernel.name.clone()),
            lasting: beside.then(|| lasting / calls),
            shape,
            bytes,
            floor: bytes.zip(bandwidth).map(|(bytes, rate)| calls * bytes / rate),
        }
    }

    /// What each side's device waited for, and who owned most of it, or the part of it that changed most.
    fn idle(&self, sides: &[Chosen<'_>; 2], bucket: &str) -> [Held; 2] {
        let changed = Changed::of(sides, bucket, self.ns[1] - self.ns[0]);
        let own = changed.as_ref().map_or([None, None], |changed| changed.on(sides, bucket));
        [0, 1].map(|n| {
            let side = &sides[n];
            // Where only the other side waits for the one that changed, this side has it running beside the device's work, or
            // waits for something else.
            let elsewhere = || changed.as_ref().filter(|_| own[1 - n].is_some())?.runs_on(side);
            let name = own[n].or_else(elsewhere).or_else(|| first(side, bucket)).map(str::to_owned);
            Held { ns: self.ns[n], calls: self.calls[n], name: name.filter(|_| self.ns[n] != 0), ..Held::default() }
        })
    }
}

/// The side that alone has the kernels of a term.
pub fn alone_in(how: How) -> Option<Side> {
    match how {
        How::OnlyA => Some(Side::A),
        How::OnlyB => Some(Side::B),
        _ => None,
    }
}
