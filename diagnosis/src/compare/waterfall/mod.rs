//! From the mean step of one side to that of the other (method §6.3): every nanosecond of both lies in a slot and a bucket,
//! and what these differ by adds up to the difference of the two, exactly, in integers.
//!
//! Waits in collectives stand where they were waited, under what the late rank did meanwhile. Means are taken over the steps
//! that count, since medians do not add up.

mod account;
mod amount;
mod apportion;
mod cause;
mod ceilings;
mod unequal;

use std::collections::BTreeMap;

use model::Ns;

pub use account::{Account, Shape, account};
use apportion::apportion;
pub use cause::{Cause, Mean, Setup, Twin};
pub use ceilings::{Ceilings, published_bandwidth};

use super::{
    align::{Alignment, Coverage, Part},
    chosen::Chosen,
    work::{Distance, Profile},
};
use crate::{
    analysis::{Bucket, Layer},
    platform::OpClass,
};

/// What a mean is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// A step; both sides decode as many sequences in one, or one of them does not say how many.
    Step,
    /// A token of a sequence, where the sides decode different numbers of sequences in a step.
    Token,
}

/// What unequal work is counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A token of a sequence.
    Token,
    /// A layer of the model.
    Layer,
    /// 10⁹ operations of matrix products.
    Gflop,
}

/// One slot and bucket on both sides.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Row {
    /// Slot, as an index into [`Alignment::slots`].
    pub slot: u32,
    /// Bucket such as `compute.gemm`.
    pub bucket: String,
    /// Layer of the bucket.
    pub layer: Layer,
    /// Whether it is a wait in a collective, and the bucket what the late rank did meanwhile.
    pub waited: bool,
    /// Whether only one side shows it and the other has it inside replays that were recorded as one: the sum of all such rows is
    /// a difference, a single one is none.
    pub replayed: bool,
    /// Whether it is time of the host of which only one side shows what was done in it: the sum of all such rows is a difference, a
    /// single one is none.
    pub unseen: bool,
    /// Mean of the first side.
    pub a: Mean,
    /// Mean of the second.
    pub b: Mean,
    /// What the difference comes from; adds up to it.
    pub causes: Vec<(Cause, Ns)>,
}

impl Row {
    /// How much more the second side takes, ns.
    pub fn delta(&self) -> Ns {
        self.b.ns - self.a.ns
    }
}

/// A kernel of a slot.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// How many per step.
    pub count: f64,
    /// Exclusive time, ns per step.
    pub ns: f64,
    /// How long they last, ns per step: with what runs beside other work.
    pub lasting: f64,
}

/// The difference of two sides.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Waterfall {
    /// What the means are over.
    pub basis: Basis,
    /// Mean of the first side, ns.
    pub from: Ns,
    /// Mean of the second side, ns.
    pub to: Ns,
    /// Steps that count on each side.
    pub steps: [usize; 2],
    /// Slots and buckets; the sides' means add up to `from` and `to`.
    pub rows: Vec<Row>,
    /// Parts of the step, the layers of the model one by one, with the means of both sides; they add up to the same.
    pub parts: Vec<(Part, Option<u32>, [Ns; 2])>,
    /// How much of the device time has a slot.
    pub coverage: [Coverage; 2],
    /// Kernels of each side by slot, the longest first.
    pub kernels: [BTreeMap<u32, Vec<Kernel>>; 2],
    /// Shapes of what went into the operations of each side, by slot.
    pub shapes: [BTreeMap<u32, Shape>; 2],
    /// What the causes rest on.
    pub setup: Setup,
    /// Mean of each side for a unit of work, ns, where they do unequal amounts of it and both say how many units.
    pub units: Vec<(Unit, [f64; 2])>,
}

impl Waterfall {
    /// Of two sides that are aligned. `per_token` divides by the sequences of a step where both sides say how many and these
    /// differ.
    pub fn of(sides: &[Chosen<'_>; 2], alignment: &Alignment, per_token: bool) -> Self {
        let accounts = [0, 1].map(|n| account(&sides[n], n, alignment));
        let batch = sides.map(|side| side.class.batch.filter(|n| *n > 0));
        let uneven = per_token && batch.iter().all(Option::is_some) && batch[0] != batch[1];
        let divisor = |n: usize| {
            let work = if uneven { batch[n].unwrap_or(1) } else { 1 };
            (accounts[n].steps.max(1) as u64).saturating_mul(work.into())
        };
        let divisors = [divisor(0), divisor(1)];
        let profiles = sides.each_ref().map(|side| Profile::of(side).filter(|_| per_token));
        let differs = |[a, b]: [&Profile; 2]| Distance::of(a, b).differing().any(|own| own.part.is_amount());
        let seen = profiles[0].as_ref().zip(profiles[1].as_ref()).is_some_and(|(a, b)| differs([a, b]));
        let setup = Setup::of(sides);
        let unequal = per_token && (uneven || seen || setup.prompts_differ);
        let setup = Setup { unequal, ..setup };
        let kernels = [0, 1].map(|n| kernels(&sides[n], &accounts[n], divisors[n]));
        let rows = rows(sides, alignment, &accounts, &kernels, divisors, &setup);
        let sum = |pick: fn(&Row) -> Ns| rows.iter().map(pick).sum();
        let steps = accounts.each_ref().map(|own| own.total as f64 / own.steps.max(1) as f64);
        Self {
            units: if unequal { units(steps, &profiles) } else { Vec::new() },
            basis: if uneven { Basis::Token } else { Basis::Step },
            from: sum(|row| row.a.ns),
            to: sum(|row| row.b.ns),
            steps: [accounts[0].steps, accounts[1].steps],
            parts: parts(&accounts, divisors),
            coverage: [accounts[0].coverage, accounts[1].coverage],
            kernels,
            shapes: accounts.each_ref().map(|account| account.shapes.clone()),
            rows,
            setup,
        }
    }

    /// How much more the second side takes, ns.
    pub fn delta(&self) -> Ns {
        self.to - self.from
    }

    /// ns of each side by layer of the stack, waits with what caused them, in the order of [`Layer::ALL`].
    pub fn ladder(&self) -> [(Layer, [Ns; 2]); 4] {
        Layer::ALL.map(|layer| {
            let own = || self.rows.iter().filter(|row| row.layer == layer);
            (layer, [own().map(|row| row.a.ns).sum(), own().map(|row| row.b.ns).sum()])
        })
    }

    /// How much moved, ns: all of it, and what is unexplained of it. What one side alone shows moved by its sum.
    pub fn moved(&self) -> [Ns; 2] {
        let unseen = self.rows.iter().filter(|row| row.unseen).map(Row::delta).sum::<Ns>().abs();
        let causes = || self.rows.iter().filter(|row| !row.unseen).flat_map(|row| &row.causes);
        let unexplained = causes().filter(|(cause, _)| *cause == Cause::Unexplained);
        [
            causes().map(|(_, ns)| ns.abs()).sum::<Ns>() + unseen,
            unexplained.map(|(_, ns)| ns.abs()).sum::<Ns>() + unseen,
        ]
    }

    /// The difference by cause, in the order of [`Cause::ALL`]; adds up to it.
    pub fn causes(&self) -> [(Cause, Ns); 7] {
        Cause::ALL.map(|cause| {
            let parts = self.rows.iter().flat_map(|row| &row.causes).filter(|(c, _)| *c == cause);
            (cause, parts.map(|(_, ns)| ns).sum())
        })
    }
}

/// The rows of both sides in the order of slots.
fn rows(
    sides: &[Chosen<'_>; 2],
    alignment: &Alignment,
    accounts: &[Account; 2],
    names: &[BTreeMap<u32, Vec<Kernel>>; 2],
    divisors: [u64; 2],
    setup: &Setup,
) -> Vec<Row> {
    // Labels of host work are numbered by each analysis for itself, so sides meet under names.
    let mut found: BTreeMap<(u32, String, bool), (Bucket, [Mean; 2])> = BTreeMap::new();
    for (n, (account, divisor)) in accounts.iter().zip(divisors).enumerate() {
        let labels = &sides[n].analysis.host_labels;
        let mut named: BTreeMap<(u32, String, bool), (Bucket, account::Amount)> = BTreeMap::new();
        for (key, amount) in &account.cells {
            let name = (key.slot, key.bucket.name(labels), key.waited);
            let (_, sum) = named.entry(name).or_insert((key.bucket, account::Amount::default()));
            *sum = account::Amount { ns: sum.ns + amount.ns, count: sum.count + amount.count };
        }
        let values: Vec<Ns> = named.values().map(|(_, amount)| amount.ns).collect();
        for ((name, (bucket, amount)), ns) in named.into_iter().zip(apportion(&values, divisor)) {
            let by = divisor as f64;
            let mean = Mean { ns, exact: amount.ns as f64 / by, count: amount.count as f64 / by };
            found.entry(name).or_insert((bucket, [Mean::default(); 2])).1[n] = mean;
        }
    }
    found
        .into_iter()
        .map(|((slot, name, waited), (bucket, [a, b]))| {
            let shared = alignment.slots.get(slot as usize).filter(|_| matches!(bucket, Bucket::Compute(_)));
            // Several kernels that do together what one does are one call of it.
            let calls = |mean: Mean, kernels: usize| Mean { count: mean.count / kernels.max(1) as f64, ..mean };
            let (a, b) = match shared {
                Some(own) if own.by.is_some() => (calls(a, own.a.len()), calls(b, own.b.len())),
                _ => (a, b),
            };
            let twin = twin(&name, bucket, slot, names);
            // What the host does for as many sequences is the same, however long these are.
            let causes = if setup.unequal && !(setup.same_rows && (bucket.is_idle() || waited)) {
                let work = work(setup, alignment, accounts, divisors, (slot, bucket), [a, b]);
                unequal::split(setup, bucket, waited, twin, [a, b], work)
            } else {
                cause::split(setup, bucket, waited, twin, a, b)
            };
            let replayed = setup.replays_hide && cause::in_replay(bucket);
            let unseen = setup.is_unseen(bucket);
            Row { slot, bucket: name, layer: bucket.layer(), waited, replayed, unseen, a, b, causes }
        })
        .collect()
}

/// The work of both sides in a slot and bucket for what the means are over.
fn work(
    setup: &Setup,
    alignment: &Alignment,
    accounts: &[Account; 2],
    divisors: [u64; 2],
    (slot, bucket): (u32, Bucket),
    [a, b]: [Mean; 2],
) -> Option<[f64; 2]> {
    let shares = [0, 1].map(|n| divisors[n] as f64 / accounts[n].steps.max(1) as f64);
    if bucket.is_idle() {
        // What the host does for a step is divided among its sequences.
        return (shares[0] != shares[1]).then(|| shares.map(f64::recip));
    }
    let Bucket::Compute(op) = bucket else {
        let counted = setup.same_rows || matches!(bucket, Bucket::Copy(_));
        return counted
            .then(|| shaped(alignment, accounts, shares, slot))
            .flatten()
            .or_else(|| calls(setup.same_rows, a, b));
    };
    let attends = op.class() == OpClass::Attention;
    // A table with room for as many blocks does not say how many of them are read.
    let shaped =
        shaped(alignment, accounts, shares, slot).filter(|[a, b]| !(attends && setup.prompts_differ && a == b));
    // A step of few rows reads the weights of a product once, whatever their number.
    let equal = setup.same_rows && !attends || setup.ceilings.streaming && op.class() == OpClass::Matrix;
    shaped.or_else(|| calls(equal, a, b))
}

/// Work by the shapes of a slot.
fn shaped(alignment: &Alignment, accounts: &[Account; 2], shares: [f64; 2], slot: u32) -> Option<[f64; 2]> {
    let [a, b] = accounts.each_ref().map(|own| own.work.get(&slot).copied());
    let [a, b] = amount::Done::both(a?, b?, alignment.slots.get(slot as usize))?;
    Some([a / shares[0], b / shares[1]])
}

/// Work by the number of calls, where one of either side does as much.
fn calls(equal: bool, a: Mean, b: Mean) -> Option<[f64; 2]> {
    equal.then_some([a.count, b.count])
}

/// The time of a unit of the work of both sides, by the mean of a step, where both say how many units it has.
fn units(steps: [f64; 2], [a, b]: &[Option<Profile>; 2]) -> Vec<(Unit, [f64; 2])> {
    let amount = |unit: Unit, own: &Profile| match unit {
        Unit::Token => own.sequences.filter(|(least, most)| least == most).map(|(n, _)| f64::from(n)),
        Unit::Layer => own.layers().filter(|_| !own.whole).map(|n| n as f64),
        Unit::Gflop => own.kernels.operations().map(|n| n / 1e9),
    };
    let both = |unit| {
        let amounts = [amount(unit, a.as_ref()?)?, amount(unit, b.as_ref()?)?];
        let known = amounts.iter().all(|n| n.is_finite() && *n > 0.0);
        known.then(|| (unit, [steps[0] / amounts[0], steps[1] / amounts[1]]))
    };
    [Unit::Token, Unit::Layer, Unit::Gflop].into_iter().filter_map(both).collect()
}

/// Share of the time of a slot's kernels whose names both sides have from which on they are the same kernels; own value.
const SAME: f64 = 0.5;

/// Whether both sides run the same there.
fn twin(name: &str, bucket: Bucket, slot: u32, kernels: &[BTreeMap<u32, Vec<Kernel>>; 2]) -> Twin {
    if bucket.is_idle() {
        return if name == UNKNOWN_HOST { Twin::Hidden } else { Twin::Same };
    }
    if !matches!(bucket, Bucket::Compute(_) | Bucket::Copy(_)) {
        return Twin::Unknown;
    }
    let [Some(a), Some(b)] = kernels.each_ref().map(|of| of.get(&slot)) else { return Twin::Unknown };
    let common = |own: &[Kernel], other: &[Kernel]| {
        let shared = own.iter().filter(|k| other.iter().any(|o| o.name == k.name)).map(|k| k.ns).sum::<f64>();
        shared >= SAME * own.iter().map(|k| k.ns).sum::<f64>()
    };
    if common(a, b) && common(b, a) && !exchanged(a, b) { Twin::Same } else { Twin::Other }
}

/// Share of a difference that must come from the kernels of both sides, by their time per call, where others come and go beside
/// them; own value.
const THEIR_OWN: f64 = 0.5;

/// Whether the sides of a slot differ because some of its calls are done by another kernel, and not because the kernels that both
/// have take longer.
pub fn exchanged(a: &[Kernel], b: &[Kernel]) -> bool {
    let with = |own: &Kernel, other: &[Kernel]| other.iter().find(|o| o.name == own.name).cloned();
    let alone = |own: &[Kernel], other: &[Kernel]| own.iter().any(|k| with(k, other).is_none());
    let sum = |side: &[Kernel]| side.iter().map(|k| k.ns).sum::<f64>();
    let each = |k: &Kernel| k.ns / k.count;
    let longer = a.iter().filter(|k| k.count > 0.0).filter_map(|k| Some((k, with(k, b).filter(|o| o.count > 0.0)?)));
    let longer: f64 = longer.map(|(k, o)| k.count.min(o.count) * (each(&o) - each(k))).sum();
    (alone(a, b) || alone(b, a)) && longer.abs() < THEIR_OWN * (sum(b) - sum(a)).abs()
}

/// The bucket of the host's time in which nothing was recorded.
const UNKNOWN_HOST: &str = "rt.host.unknown";

fn parts(accounts: &[Account; 2], divisors: [u64; 2]) -> Vec<(Part, Option<u32>, [Ns; 2])> {
    let mut found: BTreeMap<(Part, Option<u32>), [Ns; 2]> = BTreeMap::new();
    for (n, (account, divisor)) in accounts.iter().zip(divisors).enumerate() {
        let values: Vec<Ns> = account.layers.values().copied().collect();
        for (key, ns) in account.layers.keys().zip(apportion(&values, divisor)) {
            found.entry(*key).or_default()[n] = ns;
        }
    }
    found.into_iter().map(|((part, layer), both)| (part, layer, both)).collect()
}

fn kernels(side: &Chosen<'_>, account: &Account, divisor: u64) -> BTreeMap<u32, Vec<Kernel>> {
    let mut found: BTreeMap<u32, Vec<Kernel>> = BTreeMap::new();
    let by = divisor as f64;
    for ((slot, name), ran) in &account.kernels {
        found.entry(*slot).or_default().push(Kernel {
            name: side.trace.strings.get(*name).to_owned(),
            count: ran.count as f64 / by,
            ns: ran.busy as f64 / by,
            lasting: ran.lasting as f64 / by,
        });
    }
    for list in found.values_mut() {
        list.sort_by(|a, b| b.ns.total_cmp(&a.ns).then_with(|| a.name.cmp(&b.name)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernels(list: &[(&str, f64, f64)]) -> Vec<Kernel> {
        let kernel = |(name, count, each): &(&str, f64, f64)| Kernel {
            name: (*name).to_owned(),
            count: *count,
            ns: count * each,
            lasting: count * each,
        };
        list.iter().map(kernel).collect()
    }

    /// C5: another kernel in a third of the layers was "the same kernel, slower".
    #[test]
    fn another_kernel_in_some_layers_is_no_slower_one() {
        let usual = kernels(&[("silu", 24.0, 10.0)]);
        let some = kernels(&[("silu", 16.0, 10.0), ("silu_new", 8.0, 15.0)]);
        assert!(exchanged(&usual, &some) && exchanged(&some, &usual));
        assert!(!exchanged(&usual, &kernels(&[("silu", 24.0, 15.0)])), "the same takes longer");
        let slower = kernels(&[("silu", 23.0, 20.0), ("silu_new", 1.0, 11.0)]);
        assert!(!exchanged(&usual, &slower), "what both have takes longer");
    }
}
