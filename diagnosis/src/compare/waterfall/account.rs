//! Where the time of one side's steps went, slot by slot and bucket by bucket; it adds up to the windows of the steps.

use std::collections::BTreeMap;

use model::{Ns, StringId};
use rustc_hash::FxHashMap;

use super::amount::{self, Done};
use crate::{
    analysis::{
        Bucket, DeviceOp, OpKind, Step,
        op_shapes::{self, Tensor},
    },
    compare::{
        align::{Alignment, Coverage, Part, Place, Placer, Reader, Slot},
        chosen::Chosen,
    },
    platform::{CanonicalOp, OpClass},
};

/// What a nanosecond of a side is accounted under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Slot, as an index into [`Alignment::slots`].
    pub slot: u32,
    /// Bucket. For a wait with a known cause what the late rank did meanwhile.
    pub bucket: Bucket,
    /// Whether it is such a wait.
    pub waited: bool,
}

/// Time and number of what made it: operations, idle stretches, waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Time, ns over the steps that count. Causes of waits are signed.
    pub ns: Ns,
    /// How many over the steps that count.
    pub count: u64,
}

/// What the calls of a kernel took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Time that is theirs alone, ns over the steps that count.
    pub busy: Ns,
    /// How long they lasted, ns over the steps that count.
    pub lasting: Ns,
    /// How many over the steps that count.
    pub count: u64,
}

/// What goes into the operations of a slot.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Shape {
    /// The sizes of its inputs, such as `[32,4096]×[4096,6144]`.
    pub text: String,
    /// Bytes that a product has to read, where types are known.
    pub bytes: Option<f64>,
}

/// The account of one side.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Steps that count.
    pub steps: usize,
    /// Sum of their windows, ns.
    pub total: Ns,
    /// Time by slot and bucket; adds up to `total`.
    pub cells: BTreeMap<Key, Amount>,
    /// Time by part of the step and layer of the model; adds up to `total`.
    pub layers: BTreeMap<(Part, Option<u32>), Ns>,
    /// Kernels by slot and name.
    pub kernels: FxHashMap<(u32, StringId), Ran>,
    /// Shapes of what went into the operations of a slot, where they were recorded.
    pub shapes: BTreeMap<u32, Shape>,
    /// Work of a step by slot, where every operation of it says how much it does.
    pub work: BTreeMap<u32, Done>,
    /// How much of its device time has a slot.
    pub coverage: Coverage,
}

/// Accounts for the steps of a side, 0 or 1.
pub fn account(side: &Chosen<'_>, number: usize, alignment: &Alignment) -> Account {
    let reader = Reader::new(*side);
    let mut placer = Placer::new(alignment, number);
    let mut sums =
        Sums { side, alignment, out: Account::default(), cells: FxHashMap::default(), layers: FxHashMap::default() };
    for step in side.steps() {
        sums.step(step, &placer.step(&reader, step));
    }
    let mut out = sums.out;
    out.cells = sums.cells.into_iter().filter(|(_, amount)| *amount != Amount::default()).collect();
    out.layers = sums.layers.into_iter().collect();
    out
}

/// The sums while they are made.
struct Sums<'a> {
    side: &'a Chosen<'a>,
    alignment: &'a Alignment,
    out: Account,
    cells: FxHashMap<Key, Amount>,
    layers: FxHashMap<(Part, Option<u32>), Ns>,
}

impl Sums<'_> {
    fn add(&mut self, place: Place, bucket: Bucket, waited: bool, ns: Ns, count: u64) {
        let cell = self.cells.entry(Key { slot: place.slot, bucket, waited }).or_default();
        *cell = Amount { ns: cell.ns + ns, count: cell.count + count };
        let part = self.alignment.slots.get(place.slot as usize).map_or(Part::Step, |slot| slot.part);
        *self.layers.entry((part, place.layer)).or_default() += ns;
    }

    /// The bucket under which work in a slot of both sides stands: one for both, whatever kernels they need for it.
    fn told(&self, place: Place, bucket: Bucket) -> Bucket {
        let slot = self.alignment.slots.get(place.slot as usize);
        match (bucket, slot.and_then(Slot::stands_for)) {
            (Bucket::Compute(_), Some(op)) => Bucket::Compute(op),
            _ => bucket,
        }
    }

    /// One step. Whatever no operation accounts for is the step's own: the time up to the next step, work that runs on into
    /// it, and what sharing a nanosecond among several operations leaves over.
    fn step(&mut self, step: &Step, places: &[Place]) {
        let rank = self.side.rank;
        let own = Place { slot: self.alignment.step_slot(), layer: None };
        let place = |op: u32| {
            let inside = (op as usize).checked_sub(step.ops.start);
            inside.and_then(|i| places.get(i)).copied().unwrap_or(own)
        };
        self.out.steps += 1;
        if self.out.steps == 1 {
            self.shapes(step, places);
            self.out.work = amount::of(self.side, step, places);
        }
        self.out.total += step.window.len();
        let mut rest: BTreeMap<Bucket, Ns> = step.buckets.iter().copied().collect();
        let mut add = |sums: &mut Self, place: Place, bucket: Bucket, ns: Ns| {
            *rest.entry(bucket).or_default() -= ns;
            sums.add(place, sums.told(place, bucket), false, ns, 1);
        };
        let exclusive = rank.exclusive.get(step.ops.clone()).unwrap_or(&[]);
        for ((op, exclusive), place) in rank.ops_of(step).iter().zip(exclusive).zip(places) {
            let parts = match op.kind {
                OpKind::Compute => [(Bucket::Compute(op.op), exclusive.busy), (Bucket::CommWait, 0)],
                OpKind::Opaque => [(Bucket::GraphOpaque, exclusive.busy), (Bucket::CommWait, 0)],
                OpKind::Copy(dir) => [(Bucket::Copy(dir), exclusive.busy), (Bucket::CommWait, 0)],
                OpKind::Comm => {
                    [(Bucket::CommTransfer, exclusive.busy - exclusive.waiting), (Bucket::CommWait, exclusive.waiting)]
                }
            };
            for (n, (bucket, ns)) in parts.into_iter().enumerate() {
                if n == 0 || ns != 0 {
                    add(self, *place, bucket, ns);
                }
            }
            self.kernel(op, *place, exclusive.busy);
        }
        let from = rank.gaps.partition_point(|gap| gap.span.start < step.window.start);
        let gaps = rank.gaps.get(from..).unwrap_or(&[]).iter();
        for gap in gaps.take_while(|gap| gap.span.start < step.window.end) {
            let ended = gap.owner.filter(|_| !gap.between_steps).map_or(own, place);
            for (bucket, part) in &gap.parts {
                add(self, ended, *bucket, part.len());
            }
        }
        for (bucket, ns) in rest.into_iter().filter(|(_, ns)| *ns != 0) {
            self.add(own, bucket, false, ns, 0);
        }
        for wait in self.side.analysis.job.waits_in(self.side.index, &step.ops) {
            let known = wait.exposed_causes().filter(|cause| cause.bucket != Bucket::CommWait && cause.ns != 0);
            for cause in known {
                self.add(place(wait.op), Bucket::CommWait, false, -cause.ns, 0);
                self.add(place(wait.op), cause.bucket, true, cause.ns, 1);
            }
        }
    }

    /// What went into the operations of a step, by slot: of several shapes the most frequent.
    fn shapes(&mut self, step: &Step, places: &[Place]) {
        let mut seen: BTreeMap<u32, BTreeMap<String, (usize, Option<f64>)>> = BTreeMap::new();
        for (op, place) in self.side.rank.ops_of(step).iter().zip(places) {
            let inputs = op_shapes::inputs(self.side.trace, self.side.rank, op);
            if !inputs.is_empty() {
                let bytes = op_shapes::gemm(&inputs).filter(|_| op.op.class() == OpClass::Matrix).and_then(|g| g.bytes);
                let own = seen.entry(place.slot).or_default().entry(told(&inputs, op.op)).or_default();
                *own = (own.0 + 1, bytes.map(|n| n as f64));
            }
        }
        let most = |of: BTreeMap<String, (usize, Option<f64>)>| {
            let (text, (_, bytes)) = of.into_iter().max_by_key(|(_, (n, _))| *n)?;
            Some(Shape { text, bytes })
        };
        self.out.shapes = seen.into_iter().filter_map(|(slot, of)| Some((slot, most(of)?))).collect();
    }

    fn kernel(&mut self, op: &DeviceOp, place: Place, busy: Ns) {
        let kernel = self.out.kernels.entry((place.slot, op.name)).or_default();
        let lasting = kernel.lasting.saturating_add(op.end - op.start);
        *kernel = Ran { busy: kernel.busy + busy, lasting, count: kernel.count + 1 };
        let slot = self.alignment.slots.get(place.slot as usize);
        let known = self.side.analysis.ops.get(&op.name).is_none_or(|op| op.mapped) && op.kind != OpKind::Opaque;
        let coverage = &mut self.out.coverage;
        coverage.busy += busy;
        if known {
            coverage.mapped += busy;
            let both = slot.is_some_and(|slot| !slot.a.is_empty() && !slot.b.is_empty());
            coverage.shared += if both { busy } else { 0 };
        }
    }
}

/// Inputs that are told of an operator; the rest is counted by dots.
const INPUTS: usize = 3;

/// Shapes of inputs as people write them: `[32,4096]×[4096,6144]` of a product, with commas of anything else.
fn told(inputs: &[Tensor], op: CanonicalOp) -> String {
    let wide: Vec<&Tensor> = inputs.iter().filter(|t| t.dims.len() >= 2).collect();
    let product = op.class() == OpClass::Matrix && wide.len() >= 2;
    let shown: Vec<&Tensor> = if product { wide.into_iter().take(2).collect() } else { inputs.iter().collect() };
    let one = |t: &&Tensor| format!("[{}]", t.dims.iter().map(i64::to_string).collect::<Vec<_>>().join(","));
    let text = shown.iter().take(INPUTS).map(one).collect::<Vec<_>>().join(if product { "×" } else { ", " });
    if shown.len() > INPUTS { text + ", …" } else { text }
}
