//! Which operator of which step a task of the device is of. A task names the call that launched it, and around that call stands the
//! operator's id. A task of a graph names the call that was captured, run for run: which replay it is of, the time says.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use engine::record::{Kind, Log, Seen, Span};

use super::{
    api,
    record::Record,
    session::{Observed, launched},
};

/// Tasks with their operators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributed {
    /// When each operator of each step was on the device.
    pub seen: Vec<Seen>,
    /// Tasks of which the operator is known, and all of them.
    pub told: [u64; 2],
    /// Operators that were launched or replayed, and of which no task was recorded.
    pub missing: u64,
}

impl Observed {
    /// Finds the operators of all tasks; `log` is the run's, and says when what was replayed.
    pub fn attribute(&self, log: &Log) -> Attributed {
        let records = || self.found.records.iter().map(|kept| kept.record);
        let ids = records().filter_map(|record| match record {
            Record::External { whose: api::CUSTOM0, id, correlation } => Some((correlation, launched(id)?)),
            _ => None,
        });
        let of_call: HashMap<u64, (u32, u32)> = ids.collect();
        let replays: Vec<(i64, u32)> = log
            .records()
            .iter()
            .filter(|record| record.kind == Kind::Replay)
            .map(|record| (record.host.start, record.step))
            .collect();
        let is_replayed: BTreeSet<u32> = replays.iter().map(|(_, step)| *step).collect();
        let captured: BTreeSet<u32> =
            of_call.values().filter(|(step, _)| is_replayed.contains(step)).map(|(_, op)| *op).collect();
        let mut spans: BTreeMap<(u32, u32), Span> = BTreeMap::new();
        let mut told = [0; 2];
        for record in records() {
            let Record::Task { when, correlation, .. } = record else { continue };
            told[1] += 1;
            let [start, end] = [when.start, when.end].map(|stamp| self.conversion.run(stamp));
            let Some((step, op)) = of_call.get(&correlation).copied() else { continue };
            let step = if is_replayed.contains(&step) {
                // By its end: both clocks are only so near to each other, and a replay is not over before its tasks are.
                let replay = replays.partition_point(|(from, _)| *from <= end).checked_sub(1);
                replay.and_then(|replay| replays.get(replay)).map(|(_, step)| *step)
            } else {
                Some(step)
            };
            let Some(step) = step else { continue };
            told[0] += 1;
            let span = spans.entry((step, op)).or_insert(Span { start, end });
            *span = Span { start: span.start.min(start), end: span.end.max(end) };
        }
        let launches = log.records().iter().filter_map(|record| match record.kind {
            Kind::Op(op) => Some((record.step, op)),
            _ => None,
        });
        let replayed = replays.iter().flat_map(|(_, step)| captured.iter().map(|op| (*step, *op)));
        let missing = launches.chain(replayed).filter(|launch| !spans.contains_key(launch)).count() as u64;
        let seen = spans.into_iter().map(|((step, op), span)| Seen { step, op, span }).collect();
        Attributed { seen, told, missing }
    }
}
