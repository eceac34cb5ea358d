//! When operators were on the device by somebody else's record of it, such as that of a vendor's profiler.

use std::collections::HashMap;

use super::{Kind, Log, Record, Span};

/// From when to when an operator of a step was on the device, by the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Number of the step.
    pub step: u32,
    /// Number of the operator in the step's program.
    pub op: u32,
    /// From the start of its first task to the end of its last.
    pub span: Span,
}

impl Log {
    /// Gives the operators the times at which somebody saw them on the device: those that were launched by themselves, and
    /// after a replay one record for each. Both clocks are only so near to each other: what would begin before the command
    /// that it follows in the one queue begins at its end.
    pub fn attribute(&mut self, seen: &[Seen]) {
        let mut of_step: HashMap<u32, Vec<&Seen>> = HashMap::new();
        seen.iter().for_each(|own| of_step.entry(own.step).or_default().push(own));
        of_step.values_mut().for_each(|own| own.sort_by_key(|own| own.op));
        let records = &mut self.records;
        let mut all = Vec::with_capacity(records.len() + seen.len());
        for record in std::mem::take(records) {
            let own = of_step.get(&record.step).map_or(&[][..], Vec::as_slice);
            let at = all.len();
            all.push(record);
            match record.kind {
                Kind::Op(op) => {
                    if let (Ok(found), Some(record)) = (own.binary_search_by_key(&op, |own| own.op), all.get_mut(at)) {
                        record.device = own.get(found).map_or(record.device, |own| own.span);
                    }
                }
                Kind::Replay => all.extend(own.iter().map(|own| {
                    let mut node = record;
                    (node.kind, node.device) = (Kind::ReplayedOp(own.op), own.span);
                    node
                })),
                _ => (),
            }
        }
        *records = all;
        records.chunk_by_mut(|a, b| a.step == b.step).for_each(in_order);
    }
}

/// Moves what the device did in a step so far that nothing begins before what it follows has ended.
fn in_order(records: &mut [Record]) {
    let place = |kind: Kind| match kind {
        Kind::Write(_) => Some((0, 0)),
        Kind::Op(op) | Kind::ReplayedOp(op) => Some((1, op)),
        Kind::Read(_) => Some((2, 0)),
        _ => None,
    };
    let there = records.iter_mut().filter(|record| record.device != Span::default());
    let mut queue: Vec<(_, &mut Record)> = there.filter_map(|record| Some((place(record.kind)?, record))).collect();
    queue.sort_by_key(|(place, _)| *place);
    let mut last = i64::MIN;
    for (_, Record { device, .. }) in queue {
        device.start = device.start.max(last);
        device.end = device.end.max(device.start);
        last = device.end;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn what_was_seen_becomes_the_time_of_operators_alone_and_in_replays_in_the_order_of_the_queue() {
        let span = |start, end| Span { start, end };
        let mut log = Log::with_capacity(16, 0);
        log.push(Kind::Op(0), span(1, 2));
        log.push(Kind::Op(1), span(2, 3));
        log.push_command(Kind::Read(4), 0, span(3, 4), None, span(28, 30));
        log.step = 1;
        log.push_command(Kind::Write(4), 0, span(40, 41), None, span(42, 50));
        log.push(Kind::Replay, span(41, 42));
        let seen = |step, op, start, end| Seen { step, op, span: span(start, end) };
        log.attribute(&[seen(1, 2, 60, 70), seen(0, 0, 10, 20), seen(0, 1, 19, 29), seen(1, 0, 48, 55)]);
        let told: Vec<_> = log.records().iter().map(|r| (r.kind, r.step, r.device)).collect();
        assert_eq!(
            told,
            [
                (Kind::Op(0), 0, span(10, 20)),
                (Kind::Op(1), 0, span(20, 29)),
                (Kind::Read(4), 0, span(29, 30)),
                (Kind::Write(4), 1, span(42, 50)),
                (Kind::Replay, 1, Span::default()),
                (Kind::ReplayedOp(0), 1, span(50, 55)),
                (Kind::ReplayedOp(2), 1, span(60, 70)),
            ]
        );
    }
}
