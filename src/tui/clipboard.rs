//! Copies text to the clipboard of the terminal's side (OSC 52), which also works over SSH and needs no library.

use std::io::{self, Write};

/// Bytes that are copied at most: xterm takes about 100 kB of base64, and a row is far shorter.
const MOST: usize = 64 * 1024;

/// Asks the terminal to take `text` to its clipboard.
///
/// # Errors
/// Those of the terminal.
pub fn copy(out: &mut impl Write, text: &str) -> io::Result<()> {
    let cut = &text[..text.floor_char_boundary(MOST)];
    write!(out, "\u{1b}]52;c;{}\u{1b}\\", base64(cut.as_bytes()))?;
    out.flush()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let bits = part.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - part.len()));
        for i in 0..4 {
            let letter = LETTERS.get((bits >> (18 - 6 * i)) as usize & 63).copied().unwrap_or(b'=');
            out.push(if i <= part.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn base64_as_rfc_4648_has_it() {
        let cases = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy"), ("核", "5qC4")];
        for (text, coded) in cases {
            assert_eq!(base64(text.as_bytes()), coded);
        }
    }

    #[test]
    fn a_hostile_text_cannot_leave_the_sequence() {
        let mut out = Vec::new();
        copy(&mut out, &"\u{1b}\\\u{7}核".repeat(100_000)).unwrap();
        let inside = &out[7..out.len() - 2];
        assert!(inside.iter().all(u8::is_ascii_graphic) && out.len() < 2 * MOST);
    }
}
