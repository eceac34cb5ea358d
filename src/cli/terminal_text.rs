//! Text from inputs on its way to a terminal. A kernel name may hold escape sequences that move the cursor, set the
//! window title or turn the text around; none may reach the terminal as such.

use std::borrow::Cow;
use std::fmt::Write;

use report::text::acts;

/// `text` with everything that a terminal would act on written out, as `\n` or `\u{1b}`.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if acts(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::plain;
    use report::text::acts;

    #[test]
    fn escape_sequences_are_written_out() {
        assert_eq!(plain("a\u{1b}[31mb\n\u{9b}c\u{7f}\u{202e}"), "a\\u{1b}[31mb\\n\\u{9b}c\\u{7f}\\u{202e}");
        // What reports write out, a terminal does not get either.
        assert_eq!(plain("a\u{ad}\u{61c}\u{e0041}b"), "a\\u{ad}\\u{61c}\\u{e0041}b");
        assert!(matches!(plain("算子 gemm<µ>"), std::borrow::Cow::Borrowed("算子 gemm<µ>")));
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_acts_is_left(text in ".*") {
            proptest::prop_assert!(!plain(&text).chars().any(acts));
        }
    }
}
