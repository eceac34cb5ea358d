//! What moves the time of a step: the slots and buckets of a waterfall gathered into what a person would name.

use std::{cmp::Reverse, collections::BTreeMap};

use model::Ns;

use crate::{
    analysis::Layer,
    compare::{Difference, align::Part, waterfall::Cause},
};

/// What time is gathered by: work of the device by its operator, the rest by what the device waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Kernels, copies or transfers of one operator in one part of the step.
    Operator(Part, String),
    /// A bucket, wherever in the step.
    Bucket(String),
    /// What one side has inside replays that were recorded as one, and the other shows operation by operation.
    Replayed,
}

/// Something that takes more or less time on the second side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mover {
    /// What it is.
    pub what: What,
    /// Its layer of the stack.
    pub layer: Layer,
    /// Whether it is what a late rank did while others waited in a collective.
    pub waited: bool,
    /// Time of each side, ns.
    pub sides: [Ns; 2],
    /// What the difference comes from, the largest part first; adds up to it.
    pub causes: Vec<(Cause, Ns)>,
}

impl Mover {
    /// How much more the second side takes, ns.
    pub fn delta(&self) -> Ns {
        self.sides[1] - self.sides[0]
    }
}

/// What one mover gathers: the time of each side, and its difference by cause.
type Gathered = ([Ns; 2], BTreeMap<Cause, Ns>);

/// All movers, the largest difference first; their differences add up to that of the step.
pub fn movers(difference: &Difference) -> Vec<Mover> {
    let slots = &difference.alignment.slots;
    let mut sums: BTreeMap<(What, Layer, bool), Gathered> = BTreeMap::new();
    for row in &difference.waterfall.rows {
        let slot = slots.get(row.slot as usize);
        let works = row.layer == Layer::Operator && !row.waited || row.bucket == "comm.transfer";
        // Of what a replay hides nobody knows the layer either.
        let (what, layer, waited) = match slot.filter(|_| works) {
            _ if row.replayed => (What::Replayed, Layer::Measurement, false),
            Some(slot) => (What::Operator(slot.part, slot.operator().to_owned()), row.layer, row.waited),
            None => (What::Bucket(row.bucket.clone()), row.layer, row.waited),
        };
        let (sides, causes) = sums.entry((what, layer, waited)).or_default();
        *sides = [sides[0] + row.a.ns, sides[1] + row.b.ns];
        row.causes.iter().for_each(|(cause, ns)| *causes.entry(*cause).or_default() += ns);
    }
    let mut out = Vec::with_capacity(sums.len());
    for ((what, layer, waited), (sides, causes)) in sums {
        let mut causes: Vec<(Cause, Ns)> = causes.into_iter().filter(|(_, ns)| *ns != 0).collect();
        causes.sort_by_key(|(cause, ns)| (Reverse(ns.abs()), *cause));
        out.push(Mover { what, layer, waited, sides, causes });
    }
    out.sort_by_key(|m| (Reverse(m.delta().abs()), Reverse(m.sides[0].max(m.sides[1]))));
    out
}
