//! What moves the time of a step: the slots and buckets of a waterfall gathered into what a person would name.

use std::{cmp::Reverse, collections::BTreeMap};

use model::Ns;

use diagnosis::{
    analysis::Layer,
    compare::{Difference, align::Part, terms, waterfall::Cause},
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
            _ if row.unseen => (What::Bucket(terms::HOST.to_owned()), row.layer, false),
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use model::{Category, Trace};

    use super::*;
    use diagnosis::analysis::{Analysis, script::Script};

    /// Six decode steps of two kernels, launched one by one or replayed as one.
    fn run(replayed: bool) -> (Trace, Analysis) {
        let mut script = Script::default();
        for at in (0..6).map(|step| 1_000 + step * 100) {
            script.host(Category::UserRange, "execute_context_0(0)_generation_1(1)", (at, at + 90));
            if replayed {
                script.replay((at + 2, at + 8), (at + 10, at + 70));
            } else {
                script.launch((at + 2, at + 4), "ampere_sgemm_128x64_tn", (at + 10, at + 50));
                script.launch((at + 5, at + 7), "rms_norm_kernel", (at + 55, at + 80));
            }
        }
        script.analyze()
    }

    /// A replay of 60 ns was "65 ns less of kernels, by configuration" and "60 ns more of `graph.opaque`".
    #[test]
    fn kernels_are_not_gone_because_a_replay_hides_them() {
        let (eager, replay) = (run(false), run(true));
        for (a, b, by) in [(&eager, &replay, -10), (&replay, &eager, 10)] {
            let difference = Difference::of((&a.0, &a.1), (&b.0, &b.1), false).unwrap();
            let movers = movers(&difference);
            let hidden = movers.iter().find(|mover| mover.what == What::Replayed).unwrap();
            assert_eq!((hidden.delta(), hidden.layer), (by, Layer::Measurement));
            assert_eq!(hidden.causes, [(Cause::Unexplained, by)]);
            assert!(!movers.iter().any(|mover| matches!(mover.what, What::Operator(..))), "{movers:?}");
            assert_eq!(movers.iter().map(Mover::delta).sum::<Ns>(), difference.waterfall.delta());
        }
        let same = Difference::of((&replay.0, &replay.1), (&replay.0, &replay.1), false).unwrap();
        assert!(movers(&same).iter().all(|mover| mover.what != What::Replayed && mover.delta() == 0));
    }

    /// K10: functions that one profiler did not record were "only A has it, from mechanism" and as much unknown on B.
    #[test]
    fn k10_what_the_host_did_is_compared_where_both_recorded_it() {
        let run = |frames: bool| {
            let mut script = Script::default();
            for at in (0..6).map(|step| 1_000 + step * 100) {
                script.host(Category::UserRange, "execute_context_0(0)_generation_1(1)", (at, at + 90));
                if frames {
                    script.host(Category::PythonFrame, "model.py(7): forward", (at + 1, at + 89));
                }
                script.launch((at + 2, at + 4), "ampere_sgemm_128x64_tn", (at + 10, at + 30));
                script.launch((at + 70, at + 72), "rms_norm_kernel", (at + 75, at + 80));
            }
            script.analyze()
        };
        let (full, poor) = (run(true), run(false));
        for (a, b) in [(&full, &poor), (&poor, &full)] {
            let difference = Difference::of((&a.0, &a.1), (&b.0, &b.1), false).unwrap();
            assert_eq!(difference.waterfall.delta(), 0);
            assert!(
                difference.waterfall.causes().iter().all(|(_, ns)| *ns == 0),
                "{:?}",
                difference.waterfall.causes()
            );
            let host = difference.terms.iter().filter(|term| term.name.starts_with("rt.host"));
            let told: Vec<_> = host.map(|term| (term.name.as_str(), term.delta())).collect();
            assert_eq!(told, [("rt.host", 0)]);
            assert_eq!(difference.waterfall.moved(), [0, 0]);
            assert_eq!(movers(&difference).iter().filter(|mover| mover.delta() != 0).count(), 0);
        }
    }
}
