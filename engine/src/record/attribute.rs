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
    /// after a replay one record for each.
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

/// Puts what the device did in a step into the order of its one queue: inputs, operators, what is read of them. The operators
/// stand where they were seen; how far copies may be off they then say, and all copies of the step by the same.
fn in_order(records: &mut [Record]) {
    let is_op = |kind: Kind| matches!(kind, Kind::Op(_) | Kind::ReplayedOp(_));
    let there = |record: &&mut Record| record.device != Span::default();
    let mut end = i64::MIN;
    for record in records.iter_mut().filter(|record| is_op(record.kind)).filter(there) {
        let Span { start, end: own } = &mut record.device;
        *start = (*start).max(end);
        *own = (*own).max(*start);
        end = *own;
    }
    let ops = records.iter().filter(|record| is_op(record.kind) && record.device != Span::default());
    let Some(start) = ops.map(|record| record.device.start).min() else { return };
    // What copies are to be moved by at most and at least.
    let (mut most, mut least) = (i64::MAX, i64::MIN);
    for record in records.iter().filter(|record| record.device != Span::default()) {
        match record.kind {
            Kind::Write(_) => most = most.min(start - record.device.end),
            Kind::Read(_) => least = least.max(end - record.device.start),
            _ => (),
        }
    }
    let by = if least <= most { 0.clamp(least, most) } else { least / 2 + most / 2 };
    for record in records.iter_mut().filter(there) {
        let moved = Span { start: record.device.start.saturating_add(by), end: record.device.end.saturating_add(by) };
        match record.kind {
            Kind::Write(_) => record.device = Span { start: moved.start.min(start), end: moved.end.min(start) },
            Kind::Read(_) => record.device = Span { start: moved.start.max(end), end: moved.end.max(end) },
            _ => (),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn what_was_seen_becomes_the_time_of_operators_alone_and_in_replays_and_copies_lie_around_them() {
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
                (Kind::Read(4), 0, span(29, 31)),
                (Kind::Write(4), 1, span(40, 48)),
                (Kind::Replay, 1, Span::default()),
                (Kind::ReplayedOp(0), 1, span(48, 55)),
                (Kind::ReplayedOp(2), 1, span(60, 70)),
            ]
        );
    }
}
