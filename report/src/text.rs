//! Text from a capture, made safe to print. A kernel name is whatever the traced program said it is: it may hold escape
//! sequences that repaint a terminal, marks that reverse the reading order, markdown, HTML, or a megabyte of anything.

use std::borrow::Cow;

use super::units;

/// Characters of a name that are shown; the middle of a longer one is cut. Holds the telling part of template names.
pub const NAME: usize = 88;
/// Characters of a sentence part from the capture (a file name, an example of a loss).
pub const PHRASE: usize = 200;

/// `text` without anything that acts on a terminal or hides what stands there: such characters appear as `\u{1b}`.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if acts(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

/// Whether a character does something instead of showing something: C0 and C1 controls, line and paragraph separators,
/// bidirectional marks, zero-width characters, tags, and variation of what is before it.
pub fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// `text` cut to about `most` characters: its middle gives way to a note of its whole length.
pub fn cut(text: &str, most: usize) -> String {
    // A text has at most as many characters as bytes: the common case is not counted.
    if text.len() <= most {
        return text.to_owned();
    }
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let (head, tail) = (most * 2 / 3, most / 3);
    let head: String = text.chars().take(head).collect();
    // From the end: nothing but the count looks at the whole of a long text.
    let tail =
        tail.checked_sub(1).and_then(|last| text.char_indices().rev().nth(last)).map_or(text.len(), |(at, _)| at);
    format!("{head}…[{}]…{}", units::count(length as u64), text.get(tail..).unwrap_or_default())
}

/// A text from the capture for JSON and plain lines: cut, and visible.
pub fn plain(text: &str, most: usize) -> String {
    visible(&cut(text, most))
}

/// A text on one line of a terminal: what acts is written out, as `\n` or `\u{1b}`.
pub fn line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if acts(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_acts_survives() {
        let hostile = "a\u{1b}[31mred\u{7}\u{202e}evil\u{2066}\n\r\t\u{9b}2J\u{200b}\u{feff}";
        let shown = visible(hostile);
        assert!(!shown.chars().any(acts), "{shown:?}");
        assert!(shown.starts_with("a\\u{1b}[31mred\\u{7}\\u{202e}evil"), "{shown}");
        assert_eq!(visible("核 gemm µs <T>"), "核 gemm µs <T>");
    }

    #[test]
    fn a_long_name_keeps_both_ends_and_says_its_length() {
        let name = format!("void {}kernel<float>", "x".repeat(1 << 20));
        let shown = cut(&name, NAME);
        assert!(shown.starts_with("void xxx") && shown.ends_with("kernel<float>"), "{shown}");
        assert!(shown.contains("…[1\u{202f}048\u{202f}594]…"), "{shown}");
        assert!(shown.chars().count() < NAME + 16);
        assert_eq!(cut("核心核心", 4), "核心核心");
        assert_eq!(cut("核心核心核", 3), "核心…[5]…核");
    }

    #[test]
    fn escape_sequences_are_written_out() {
        assert_eq!(line("a\u{1b}[31mb\n\u{9b}c\u{7f}\u{202e}"), "a\\u{1b}[31mb\\n\\u{9b}c\\u{7f}\\u{202e}");
        // What reports write out, a terminal does not get either.
        assert_eq!(line("a\u{ad}\u{61c}\u{e0041}b"), "a\\u{ad}\\u{61c}\\u{e0041}b");
        assert!(matches!(line("算子 gemm<µ>"), Cow::Borrowed("算子 gemm<µ>")));
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_acts_is_left_in_a_line(text in ".*") {
            proptest::prop_assert!(!line(&text).chars().any(acts));
        }
    }
}
