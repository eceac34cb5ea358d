//! JSON as Python's `json` module writes it: with bare `NaN`, `Infinity` and `-Infinity`, which are not JSON.

const WORDS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];

/// `text` with `null` for each bare word that stands for a number and is none, and how many there were. Words inside
/// strings stay.
pub fn finite(text: &[u8]) -> (Vec<u8>, u64) {
    let mut out = Vec::with_capacity(text.len() + 64);
    let (mut rest, mut in_string, mut found) = (text, false, 0);
    while let Some((byte, after)) = rest.split_first() {
        let word = WORDS.iter().filter(|_| !in_string).find_map(|word| rest.strip_prefix(*word));
        rest = match (word, byte) {
            (Some(after), _) => {
                out.extend_from_slice(b"null");
                found += 1;
                after
            }
            (None, b'\\') if in_string => {
                out.extend(rest.iter().take(2));
                after.get(1..).unwrap_or_default()
            }
            (None, byte) => {
                in_string ^= *byte == b'"';
                out.push(*byte);
                after
            }
        };
    }
    (out, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_null_outside_strings_only() {
        let text = br#"{"rate": Infinity, "low": -Infinity, "x": NaN, "s": "NaN \" Infinity \\", "t": NaN"#;
        let (out, found) = finite(text);
        let expected = br#"{"rate": null, "low": null, "x": null, "s": "NaN \" Infinity \\", "t": null"#;
        assert_eq!((out.as_slice(), found), (&expected[..], 4));
    }
}
