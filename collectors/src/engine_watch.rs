//! A step of the engine as it ends: how long its operators and collectives took, summed from the records that the step has
//! just left. Costs a pass over those records and one allocation, so that it can be done after every step.

use engine::{
    program::Program,
    record::{Kind, Ns, Record, Span},
};
use serde::{Deserialize, Serialize};

/// Sum of the operators of one name in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpSum {
    /// Position of the name in [`Watch::names`].
    pub name: u16,
    /// How often.
    pub count: u32,
    /// From when all workers have begun to the last one's end, ns.
    pub ns: Ns,
}

/// What the records of a step add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSums {
    /// Operators that compute, ns.
    pub compute: Ns,
    /// Operators that exchange between ranks, with their waits, ns.
    pub exchange: Ns,
    /// Every name that ran.
    pub ops: Vec<OpSum>,
    /// Operators of the program of which no record was kept.
    pub missing: u32,
    /// Whether they are missing because the device runs a replay, or pieces of a step, as one command and tells nothing of its parts.
    pub opaque: bool,
}

/// Sums the records of step after step.
#[derive(Clone, Debug)]
pub struct Watch {
    names: Vec<String>,
    /// Of the prompt's program and of a decode step's: the name of each operator, and whether it exchanges.
    programs: [Vec<(u16, bool)>; 2],
    sums: Vec<(u32, Ns)>,
}

impl Watch {
    /// Knows the programs of a run.
    pub fn new(programs: [&Program; 2]) -> Self {
        let mut names: Vec<String> = Vec::new();
        let programs = programs.map(|program| {
            let of = |op: &engine::program::OpCall| {
                let text = op.name.text();
                let at = names.iter().position(|name| name == text).unwrap_or_else(|| {
                    names.push(text.to_owned());
                    names.len() - 1
                });
                (u16::try_from(at).unwrap_or(u16::MAX), op.kind.exchanged().is_some())
            };
            program.ops.iter().map(of).collect()
        });
        let sums = vec![(0, 0); names.len()];
        Self { names, programs, sums }
    }

    /// Names of all operators.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Sums the records of the step that ended last; they are the last ones of the log.
    pub fn step(&mut self, step: u32, records: &[Record]) -> StepSums {
        let mut sums = StepSums::default();
        let ops = &self.programs[usize::from(step > 0)];
        self.sums.fill((0, 0));
        let (mut seen, mut replayed, mut in_pieces) = (0, false, false);
        for record in records.iter().rev().take_while(|record| record.step == step) {
            let (op, span) = match record.kind {
                Kind::Op(op) | Kind::ReplayedOp(op) => (op, record.device),
                Kind::Fallback(op) => (op, record.host),
                Kind::Replay => {
                    replayed = true;
                    continue;
                }
                Kind::Piece { .. } => {
                    in_pieces = true;
                    continue;
                }
                _ => continue,
            };
            if span == Span::default() {
                // Nobody saw it on the device.
                continue;
            }
            let Some((name, exchanges)) = ops.get(op as usize).copied() else { continue };
            let ns = span.end - span.start;
            seen += 1;
            // What the host computes itself is no operation of the device: it idles.
            if !matches!(record.kind, Kind::Fallback(_)) {
                *if exchanges { &mut sums.exchange } else { &mut sums.compute } += ns;
            }
            if let Some(sum) = self.sums.get_mut(usize::from(name)) {
                *sum = (sum.0 + 1, sum.1 + ns);
            }
        }
        sums.missing = u32::try_from(ops.len().saturating_sub(seen)).unwrap_or(u32::MAX);
        sums.opaque = in_pieces || replayed && seen == 0;
        let ran = (0u16..).zip(&self.sums).filter(|(_, (count, _))| *count > 0);
        sums.ops = ran.map(|(name, (count, ns))| OpSum { name, count: *count, ns: *ns }).collect();
        sums
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use engine::{
        Synthetic, preset,
        record::Log,
        run::{Engine, Mode, RunOptions},
    };

    use super::*;

    /// Sums after each step, and the log of the whole run to hold them against.
    fn run(mode: Mode, room: usize) -> (Vec<StepSums>, Log, usize) {
        let options = RunOptions { prompt: 4, steps: 3, threads: 2, mode, ..RunOptions::default() };
        let mut log = Log::with_capacity(room, 2);
        let mut engine = Engine::new(preset("tiny").unwrap(), &mut Synthetic, options, &mut log).unwrap();
        let mut watch = Watch::new(engine.programs());
        let mut all = Vec::new();
        let run = engine.run_watched(&mut log, false, |step, _, log| {
            all.push(watch.step(step.number, log.records()));
            true
        });
        run.unwrap();
        let ops = engine.programs()[1].ops.len();
        (all, log, ops)
    }

    #[test]
    fn the_sums_of_a_step_are_those_of_its_records() {
        for mode in [Mode::Eager, Mode::Graph] {
            let (steps, log, ops) = run(mode, 4096);
            assert_eq!(steps.len(), 4);
            for (sums, step) in steps.iter().zip(0u32..) {
                let own = log.records().iter().filter(|r| r.step == step);
                let kernels = own.filter(|r| matches!(r.kind, Kind::Op(_) | Kind::ReplayedOp(_)));
                let busy: Ns = kernels.map(|r| r.device.end - r.device.start).sum();
                assert_eq!((sums.compute, sums.exchange, sums.missing), (busy, 0, 0), "{mode:?} {step}");
                assert_eq!(sums.ops.iter().map(|op| op.ns).sum::<Ns>(), busy);
                assert_eq!(sums.ops.iter().map(|op| op.count as usize).sum::<usize>(), ops);
            }
        }
    }

    #[test]
    fn records_that_found_no_room_are_counted() {
        let (steps, log, ops) = run(Mode::Eager, 50);
        assert!(log.dropped > 0);
        let last = steps.last().unwrap();
        assert_eq!(last.missing as usize, ops, "nothing of the last step was kept");
        assert!(last.ops.is_empty() && last.compute == 0);
    }
}
