//! Text from a capture, made safe to print. A kernel name is whatever the traced program said it is: it may hold escape
//! sequences that repaint a terminal, marks that reverse the reading order, markdown, HTML, or a megabyte of anything.

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
    let tail: String = text.chars().skip(length - tail).collect();
    format!("{head}…[{}]…{tail}", units::count(length as u64))
}

/// A text from the capture for JSON and plain lines: cut, and visible.
pub fn plain(text: &str, most: usize) -> String {
    visible(&cut(text, most))
}

/// A text from the capture as a markdown code span, in which neither markdown nor HTML means anything.
pub fn code(text: &str, most: usize) -> String {
    let text = plain(text, most);
    if text.is_empty() {
        return "` `".into();
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // Markdown strips one space from each side; it is needed where a backtick would touch the fence.
    let pad = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A text from the capture as a part of a sentence: what markdown or HTML would act on is escaped. Pipes are the table's.
pub fn prose(text: &str, most: usize) -> String {
    let text = plain(text, most);
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        // An underscore inside a word is only an underscore.
        let inside = before.is_alphanumeric() && rest.peek().is_some_and(|next| next.is_alphanumeric());
        if matches!(c, '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '&' | '~') || (c == '_' && !inside) {
            out.push('\\');
        }
        out.push(c);
        before = c;
    }
    out
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
    fn a_code_span_cannot_be_left() {
        assert_eq!(code("a<b>|*_", NAME), "`a<b>|*_`");
        assert_eq!(code("a`b", NAME), "``a`b``");
        assert_eq!(code("``", NAME), "``` `` ```");
        assert_eq!(code("", NAME), "` `");
    }

    #[test]
    fn prose_means_nothing_to_markdown() {
        assert_eq!(prose("a_b _c_ <b>*x*</b> [l](u)", PHRASE), "a_b \\_c\\_ \\<b\\>\\*x\\*\\</b\\> \\[l\\](u)");
    }

    proptest::proptest! {
        #[test]
        fn the_fence_is_longer_than_any_run_inside(text in "[`a\n ]{0,40}") {
            let span = code(&text, NAME);
            let fence = span.chars().take_while(|c| *c == '`').count();
            let inside = &span[fence..span.len() - fence];
            proptest::prop_assert!(!inside.contains(&"`".repeat(fence)));
            proptest::prop_assert!(!span.contains('\n'));
        }
    }
}
