//! MSPTI without a device: records made by hand, whole, cut and spoiled, and what they say of operators.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use engine::record::{Clock, Kind, Log, Seen, Span};
use model::{TraceBuilder, TraceSink};
use proptest::prelude::*;

use super::{
    api,
    attribute::Attributed,
    gather::{Found, Kept},
    record::{Record, When, read},
    session::Observed,
};
use crate::activity::{
    clock::{Conversion, Pair},
    found::Unread,
};

/// Sizes of structures with the fields that are read, as a C compiler lays them out (`__attribute__((packed, aligned(8)))`): kind,
/// bytes of the structure, end of the last field that is read.
const KINDS: [(u32, usize, usize); 7] = [
    (api::KIND_KERNEL, 56, 52),
    (api::KIND_API, 48, 44),
    (api::KIND_MEMORY, 64, 60),
    (api::KIND_MEMSET, 56, 32),
    (api::KIND_MEMCPY, 56, 32),
    (api::KIND_EXTERNAL, 24, 24),
    (api::KIND_COMMUNICATION, 72, 72),
];

fn bytes(kind: u32, size: usize, fields: &[(usize, u64, usize)]) -> Vec<u8> {
    let mut all = vec![0; size];
    for (at, value, width) in fields.iter().chain(&[(0, u64::from(kind), 4)]) {
        all[*at..at + width].copy_from_slice(&value.to_ne_bytes()[..*width]);
    }
    all
}

#[test]
fn fields_lie_where_a_packed_structure_has_them() {
    let kernel = bytes(2, 56, &[(4, 10, 8), (12, 20, 8), (20, 1, 4), (24, 7, 4), (28, 99, 8), (36, 5, 8), (44, 6, 8)]);
    let when = When { start: 10, end: 20 };
    assert_eq!(read(&kernel), Ok(Record::Task { when, queue: [1, 7], correlation: 99, unit: 5, name: 6 }));
    let collective =
        bytes(9, 72, &[(16, 1, 4), (20, 7, 4), (24, 10, 8), (32, 20, 8), (40, 5, 8), (48, 6, 8), (64, 99, 8)]);
    assert_eq!(read(&collective), Ok(Record::Task { when, queue: [1, 7], correlation: 99, unit: 5, name: 6 }));
    let call = bytes(3, 48, &[(4, 10, 8), (12, 20, 8), (24, 3, 4), (36, 6, 8)]);
    assert_eq!(read(&call), Ok(Record::Call { when, thread: 3, name: 6 }));
    let external = bytes(8, 24, &[(4, 2, 4), (8, 1 << 40, 8), (16, 99, 8)]);
    assert_eq!(read(&external), Ok(Record::External { whose: 2, id: 1 << 40, correlation: 99 }));
    for (operation, sign) in [(0, 1), (1, -1)] {
        let memory = bytes(5, 64, &[(4, operation, 4), (20, 10, 8), (28, 20, 8), (44, 512, 8), (56, 1, 4)]);
        assert_eq!(read(&memory), Ok(Record::Memory { when, bytes: 512 * sign, device: 1 }));
    }
    let copy = bytes(7, 56, &[(8, 512, 8), (16, 10, 8), (24, 20, 8)]);
    assert_eq!(read(&copy), Ok(Record::Transfer { when, bytes: 512 }));
}

#[test]
fn a_record_that_is_cut_is_short_and_one_that_is_whole_is_not() {
    for (kind, size, needed) in KINDS {
        let whole = bytes(kind, size, &[]);
        for end in 0..=size {
            let said = read(&whole[..end]);
            let short = Err(Unread::Short(if end < 4 { 0 } else { kind }));
            assert!(if end < needed { said == short } else { said.is_ok() }, "{kind}: {end} bytes: {said:?}");
        }
    }
    assert_eq!(read(&bytes(77, 56, &[])), Err(Unread::Unknown(77)));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..96)) {
        let _ = read(&bytes);
    }
}

const RUN: u64 = 1_700_000_000_000_000_000;

/// What was seen by a clock that is `RUN` ahead of the run's.
fn observed(records: &[Record]) -> Observed {
    let pair = Pair { stamp: RUN, run: 0, within: 5 };
    let mut found = Found::default();
    found.records = records.iter().map(|record| Kept { record: *record, name: None, unit: None }).collect();
    Observed {
        found,
        conversion: Conversion::new(pair, pair, false),
        within: 5,
        file: "libmspti.so".to_owned(),
        absent: vec![("memory", "not preloaded".to_owned())],
    }
}

fn task(start: u64, end: u64, correlation: u64) -> Record {
    let when = When { start: RUN + start, end: RUN + end };
    Record::Task { when, queue: [0, 3], correlation, unit: 0, name: 0 }
}

fn pushed(step: u64, op: u64, correlation: u64) -> Record {
    Record::External { whose: api::CUSTOM0, id: (step << 32 | op) + 1, correlation }
}

/// A prompt of two operators, then two replays of a graph of two: of the second operator two tasks.
fn run() -> (Log, Vec<Record>) {
    let span = |start, end| Span { start, end };
    let mut log = Log::with_capacity(16, 0);
    log.clock = Clock::start();
    for op in 0..2 {
        log.push(Kind::Op(op), span(10 + i64::from(op), 11 + i64::from(op)));
    }
    for (step, at) in [(1, 200), (2, 300)] {
        log.step = step;
        log.push(Kind::Replay, span(at, at + 5));
    }
    let alone = [pushed(0, 0, 1), task(20, 30, 1), pushed(0, 1, 2), task(30, 40, 2), task(42, 50, 2)];
    // What warms up has no operator; the ids of the graph are those of its capture.
    let graph = [task(150, 160, 9), pushed(1, 0, 11), pushed(1, 1, 12)];
    let replays = [210, 310].map(|at| [task(at, at + 20, 11), task(at + 25, at + 30, 12), task(at + 30, at + 50, 12)]);
    (log, alone.into_iter().chain(graph).chain(replays.concat()).collect())
}

#[test]
fn tasks_of_replays_are_the_operators_that_were_captured_in_the_replay_of_their_time() {
    let (mut log, records) = run();
    let attributed = observed(&records).attribute(&log);
    let seen = |step, op, start, end| Seen { step, op, span: Span { start, end } };
    let expected = [
        seen(0, 0, 20, 30),
        seen(0, 1, 30, 50),
        seen(1, 0, 210, 230),
        seen(1, 1, 235, 260),
        seen(2, 0, 310, 330),
        seen(2, 1, 335, 360),
    ];
    assert_eq!(attributed, Attributed { seen: expected.to_vec(), told: [9, 10], missing: 0 });
    log.attribute(&attributed.seen);
    let told: Vec<_> = log.records().iter().filter(|r| r.kind != Kind::Replay).map(|r| (r.step, r.device)).collect();
    assert_eq!(told, expected.map(|own| (own.step, own.span)));
}

#[test]
fn what_was_dropped_is_missing_and_counted() {
    let (log, records) = run();
    // Without the tasks of the first operator of the last replay and of the second of the prompt.
    let rest: Vec<Record> = records
        .into_iter()
        .filter(|record| {
            !matches!(record, Record::Task { when, correlation, .. }
            if *correlation == 2 || *correlation == 11 && when.start > RUN + 300)
        })
        .collect();
    let observed = observed(&rest);
    let attributed = observed.attribute(&log);
    assert_eq!((attributed.missing, attributed.told), (2, [6, 7]));
    let mut builder = TraceBuilder::new("run", "strato");
    let process = builder.process(0);
    observed.fields(&attributed, &mut builder);
    observed.write(&attributed, process, 0, &mut builder);
    let trace = builder.finish();
    assert_eq!((trace.stat("mspti.operators_without_records"), trace.stat("mspti.tasks_without_operator")), (2, 1));
    assert_eq!(trace.stat("mspti.without_memory"), 1);
    assert!(trace.manifest.value("evidence.device").unwrap().contains("6 of 7 of a known operator"));
}

/// What `engine/tests/ascend/symbols.py` found in a public package.
const FOUND: &str = include_str!("../../../engine/tests/ascend/symbols.txt");

#[test]
fn every_call_that_is_looked_up_is_one_of_a_public_package() {
    let found = FOUND.lines().filter_map(|line| line.split_once('\t')).filter(|(name, _)| name.starts_with("mspti"));
    let found: std::collections::BTreeSet<&str> = found.map(|(name, _)| name).collect();
    assert_eq!(found, super::api::SYMBOLS.iter().copied().collect());
}
