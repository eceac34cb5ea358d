//! The markdown report on a terminal: the same characters with colour around them, so that a copy is still markdown.

/// Bold.
const BOLD: &str = "\u{1b}[1m";
/// Bold cyan, for headings.
const HEADING: &str = "\u{1b}[1;36m";
/// Green, for names from the capture.
const NAME: &str = "\u{1b}[32m";
/// Back to normal.
const RESET: &str = "\u{1b}[0m";

/// Colours headings, bold text and code spans of a markdown text. The input must hold no escape sequences of its own.
pub fn colour(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len() + markdown.len() / 8);
    for line in markdown.split_inclusive('\n') {
        let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
        if text.starts_with('#') {
            out.extend([HEADING, text, RESET]);
        } else {
            spans(text, &mut out);
        }
        out.push_str(end);
    }
    out
}

/// Colours the spans of one line. A mark without its closing partner is text.
fn spans(mut text: &str, out: &mut String) {
    while let Some(at) = text.find(['`', '*']) {
        let (before, tail) = text.split_at(at);
        out.push_str(before);
        let run = tail.len() - tail.trim_start_matches(['`', '*']).len();
        let ticks = tail.len() - tail.trim_start_matches('`').len();
        let (mark, colour) = match (ticks, tail.starts_with("**")) {
            (1.., _) => (tail.get(..ticks).unwrap_or(""), NAME),
            (0, true) => ("**", BOLD),
            (0, false) => ("", ""),
        };
        let close = (!mark.is_empty()).then(|| closing(tail.get(mark.len()..).unwrap_or(""), mark)).flatten();
        let taken = match close {
            Some(close) => {
                let span = tail.get(..mark.len() + close + mark.len()).unwrap_or(tail);
                out.extend([colour, span, RESET]);
                span.len()
            }
            None => {
                let plain = tail.get(..run.max(1)).unwrap_or(tail);
                out.push_str(plain);
                plain.len()
            }
        };
        text = tail.get(taken..).unwrap_or("");
    }
    out.push_str(text);
}

/// Where the mark occurs again in a run of exactly its length.
fn closing(text: &str, mark: &str) -> Option<usize> {
    let letter = mark.chars().next()?;
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find(letter) {
        let start = from + at;
        let rest = text.get(start..)?;
        let run = rest.len() - rest.trim_start_matches(letter).len();
        if run == mark.len() {
            return Some(start);
        }
        from = start + run;
    }
    None
}

/// The text with every colour sequence of [`colour`] removed.
#[cfg(test)]
pub fn uncoloured(text: &str) -> String {
    [BOLD, HEADING, NAME, RESET].iter().fold(text.to_owned(), |text, code| text.replace(code, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_get_colour_and_text_stays() {
        let text = "# Title\nplain **bold** and `code **x**` and ``a`b``\n* item ** open `\n";
        let shown = colour(text);
        assert_eq!(uncoloured(&shown), text);
        assert!(shown.starts_with("\u{1b}[1;36m# Title\u{1b}[0m\nplain \u{1b}[1m**bold**\u{1b}[0m"), "{shown:?}");
        assert!(shown.contains("\u{1b}[32m``a`b``\u{1b}[0m\n* item ** open `\n"), "{shown:?}");
    }

    proptest::proptest! {
        #[test]
        fn only_colour_is_added(text in "[#*`a \n核]{0,60}") {
            proptest::prop_assert_eq!(uncoloured(&colour(&text)), text);
        }
    }
}
