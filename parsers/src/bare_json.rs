//! JSON as Python's `json` module writes it: with bare `NaN`, `Infinity` and `-Infinity`, which are not JSON.

const WORDS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];

/// `text` with each bare word that stands for a number and is none in quotes, so that it is JSON and still says what it
/// was, and how many there were. Words inside strings stay.
pub fn quoted(text: &[u8]) -> (Vec<u8>, u64) {
    let mut out = Vec::with_capacity(text.len() + 64);
    let (mut rest, mut in_string, mut found) = (text, false, 0);
    while let Some((byte, after)) = rest.split_first() {
        let word = WORDS.iter().filter(|_| !in_string).find_map(|word| Some((word, rest.strip_prefix(*word)?)));
        rest = match (word, byte) {
            (Some((word, after)), _) => {
                out.push(b'"');
                out.extend_from_slice(word);
                out.push(b'"');
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
    fn words_outside_strings_get_quotes() {
        let text = br#"{"rate": Infinity, "low": -Infinity, "x": NaN, "s": "NaN \" Infinity \\", "t": NaN"#;
        let (out, found) = quoted(text);
        let expected = br#"{"rate": "Infinity", "low": "-Infinity", "x": "NaN", "s": "NaN \" Infinity \\", "t": "NaN""#;
        assert_eq!((out.as_slice(), found), (&expected[..], 4));
    }
}
