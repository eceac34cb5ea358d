//! Where events begin, guessed from bytes alone. Blocks are cut and damaged stretches are left at such places; a guess
//! that lies inside a string or a nested value is noticed by the reader of the bytes before it.

use memchr::{memchr_iter, memchr2_iter, memrchr_iter};

/// White space looked through around a brace; more than any indentation.
const REACH: usize = 64;
/// Keys that events begin with in files of every writer seen.
const FIRST_KEYS: [&[u8]; 9] =
    [b"\"ph\"", b"\"name\"", b"\"cat\"", b"\"pid\"", b"\"tid\"", b"\"ts\"", b"\"args\"", b"\"dur\"", b"\"s\""];

/// What a guess found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Boundary {
    /// An event begins at this offset.
    Event(usize),
    /// The array of events is closed by the bracket at this offset.
    Close(usize),
}

/// The last place at which an event seems to begin, searched from the end down to `from`, which itself does not count.
pub(crate) fn last_event(bytes: &[u8], from: usize) -> Option<usize> {
    let tail = bytes.get(from..)?;
    memrchr_iter(b'{', tail).map(|at| from + at).find(|at| *at > from && begins_event(bytes, *at))
}

/// The first place at or after `from` where an event seems to begin.
pub(crate) fn first_event(bytes: &[u8], from: usize) -> Option<usize> {
    let tail = bytes.get(from..)?;
    memchr_iter(b'{', tail).map(|at| from + at).find(|at| begins_event(bytes, *at))
}

/// The first place at or after `from` where an event seems to begin or the array to end.
pub(crate) fn next(bytes: &[u8], from: usize) -> Option<Boundary> {
    // One way through the bytes, which ends at what comes first: a close is not to cost a search for an event far behind it.
    memchr2_iter(b'{', b']', bytes.get(from..)?).map(|at| from + at).find_map(|at| match bytes.get(at) {
        Some(b'{') => begins_event(bytes, at).then_some(Boundary::Event(at)),
        _ => (before(bytes, at) == Some(b'}')).then_some(Boundary::Close(at)),
    })
}

fn begins_event(bytes: &[u8], at: usize) -> bool {
    let rest = bytes.get(at + 1..).unwrap_or_default();
    let first = rest.iter().take(REACH).position(|b| !b.is_ascii_whitespace());
    let key = first.and_then(|first| rest.get(first..)).unwrap_or_default();
    FIRST_KEYS.iter().any(|k| key.starts_with(k)) && !matches!(before(bytes, at), Some(b':' | b'"'))
}

fn before(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(..at)?.iter().rev().take(REACH).find(|b| !b.is_ascii_whitespace()).copied()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn events_are_told_from_their_arguments() {
        let text = br#"[{"ph": "X", "args": {"name": "a"}}, {"ph": "X"}]"#;
        assert_eq!(last_event(text, 0), Some(37));
        assert_eq!(last_event(text, 37), None);
        assert_eq!(next(text, 2), Some(Boundary::Event(37)));
        assert_eq!(next(text, 38), Some(Boundary::Close(text.len() - 1)));
        assert_eq!(next(br#"{"args": {"grid": [1, 1], "x": 1"#, 1), None);
    }

    #[test]
    fn brackets_and_blanks_without_end_stay_cheap() {
        let hostile = "{ ".repeat(1 << 20) + &" ".repeat(1 << 20);
        assert_eq!(last_event(hostile.as_bytes(), 0), None);
        assert_eq!(next(hostile.as_bytes(), 0), None);
    }
}
