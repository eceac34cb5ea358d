//! Finding the ends of strings and scalars: the innermost loops of reading.

use memchr::memchr2;

/// A byte that ends a scalar.
pub(super) const OTHER: u8 = 0;
/// A byte that numbers are made of.
const NUMERIC: u8 = 1;
/// A letter that no number contains.
pub(super) const LETTER: u8 = 2;
/// What each byte is to a scalar.
pub(super) const CLASS: [u8; 256] = {
    let mut class = [OTHER; 256];
    let mut byte = 0u8;
    while byte < 128 {
        class[byte as usize] = match byte {
            b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E' => NUMERIC,
            b'a'..=b'z' | b'A'..=b'Z' => LETTER,
            _ => OTHER,
        };
        byte += 1;
    }
    class
};

/// Where the first quote or backslash of `rest` stands. Most strings are keys of a few letters, for which a vector search
/// costs more to begin than to finish, so two words are looked through first.
pub(super) fn end_of_run(rest: &[u8]) -> Option<usize> {
    const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    // The highest bit of every byte that is `b`, and perhaps of bytes that stand after the first such.
    let marks = |word: u64, b: u8| {
        let zeroed = word ^ u64::from_ne_bytes([b; 8]);
        zeroed.wrapping_sub(LOW) & !zeroed & HIGH
    };
    for (nth, bytes) in rest.as_chunks::<8>().0.iter().take(2).enumerate() {
        let word = u64::from_le_bytes(*bytes);
        let found = marks(word, b'"') | marks(word, b'\\');
        if found != 0 {
            return Some(nth * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let searched = rest.len().min(16) & !7;
    Some(searched + memchr2(b'"', b'\\', rest.get(searched..)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_end_at_the_first_quote_or_backslash_wherever_it_stands() {
        // Bytes that differ from a quote or a backslash in one bit, and those next to them.
        for filler in [b'a', b'#', b'!', b']', b'[', 0x22 | 0x80, 0x5c | 0x80, 0, 0xff, 0x23, 0x5d] {
            for len in 0..40 {
                let mut bytes = vec![filler; len];
                assert_eq!(end_of_run(&bytes), None, "{len} of {filler}");
                for at in 0..len {
                    for (first, then) in [(b'"', b'\\'), (b'\\', b'"')] {
                        bytes[at] = first;
                        bytes[len - 1] = if at == len - 1 { first } else { then };
                        assert_eq!(end_of_run(&bytes), Some(at), "{first} at {at} of {len} of {filler}");
                        bytes.fill(filler);
                    }
                }
            }
        }
    }
}
