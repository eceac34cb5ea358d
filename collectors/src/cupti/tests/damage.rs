//! Bytes that are no records: nothing is read beyond them, and nothing panics.

use proptest::prelude::*;

use super::{
    super::{
        abi,
        record::{Record, read},
    },
    fake::{call, external, graph, kernel},
};
use crate::activity::found::Unread;

/// A whole record of every kind that has a size of its own.
fn whole() -> Vec<Vec<u8>> {
    vec![
        kernel(160, [40, 50], 1, 0x1234, 0),
        kernel(224, [40, 50], 1, 0x1234, 3),
        call(4, 1, [1, 2], 3, 0),
        call(5, 1, [1, 2], 3, 0),
        external(3, 4, 5),
        graph(40, [1, 2], 3),
        super::fake::record(1, 80, &[]),
        super::fake::record(22, 96, &[]),
        super::fake::record(2, 88, &[]),
        super::fake::record(38, 40, &[]),
        super::fake::record(17, 40, &[]),
    ]
}

/// Bytes of the fields that every version of a kind has.
fn needed(kind: u32) -> usize {
    match kind {
        abi::KIND_KERNEL => 152,
        abi::KIND_MEMCPY | abi::KIND_MEMSET => 72,
        abi::KIND_PEER_COPY => 80,
        abi::KIND_DRIVER | abi::KIND_RUNTIME | abi::KIND_GRAPH | abi::KIND_OVERHEAD => 40,
        abi::KIND_SYNCHRONIZATION => 36,
        abi::KIND_EXTERNAL => 20,
        _ => unreachable!("kind {kind}"),
    }
}

#[test]
fn a_record_that_is_cut_is_short_and_one_that_is_whole_is_not() {
    for bytes in whole() {
        let kind = u32::from_ne_bytes(bytes[..4].try_into().unwrap());
        for end in 0..=bytes.len() {
            match read(&bytes[..end]) {
                Ok(_) => assert!(end >= needed(kind), "kind {kind} of {end} bytes"),
                Err(Unread::Short(said)) => {
                    assert!(end < needed(kind), "kind {kind} of {end} bytes");
                    assert_eq!(said, if end < 4 { 0 } else { kind });
                }
                Err(Unread::Unknown(_)) => panic!("kind {kind} is known"),
            }
        }
    }
}

#[test]
fn only_whoever_pushed_it_is_the_owner_of_an_id() {
    let Ok(Record::External { whose, id, correlation }) = read(&external(4, 7, 9)) else { panic!("unread") };
    assert_eq!((whose, id, correlation), (4, 7, 9));
}

proptest! {
    #[test]
    fn any_bytes_are_a_record_or_none(bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0u32..60) {
        let mut bytes = bytes;
        let _ = read(&bytes);
        if let Some(first) = bytes.first_chunk_mut() {
            *first = kind.to_ne_bytes();
        }
        match read(&bytes) {
            Ok(_) => prop_assert!(bytes.len() >= needed(kind)),
            Err(Unread::Short(_)) => prop_assert!(bytes.len() < 4 || bytes.len() < needed(kind)),
            Err(Unread::Unknown(said)) => prop_assert_eq!(said, kind),
        }
    }

    #[test]
    fn what_lies_behind_a_record_does_not_change_what_it_says(
        tail in prop::collection::vec(any::<u8>(), 0..64),
        which in 0usize..11,
    ) {
        let record = &whole()[which];
        // The last version but one that has no graph, beside the one that has.
        prop_assume!(record.len() != 160);
        let with: Vec<u8> = record.iter().chain(&tail).copied().collect();
        prop_assert_eq!(read(record), read(&with));
    }
}
