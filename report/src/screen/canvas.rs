//! Lines of a terminal: words that are never cut in two, columns in cells of the terminal, and colour that says nothing alone.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::text::visible;

/// What a terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns.
    pub width: usize,
    /// Whether escape sequences colour it.
    pub colour: bool,
    /// Whether its letters are those of ASCII alone.
    pub ascii: bool,
}

/// Fewest columns that are written for: a narrower terminal wraps by itself.
pub const NARROWEST: usize = 40;
/// Most columns that are used: longer lines are not read.
const WIDEST: usize = 200;

impl Look {
    /// The columns that are written for.
    pub fn columns(self) -> usize {
        self.width.clamp(NARROWEST, WIDEST)
    }
}

/// How words are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// As they are.
    #[default]
    Plain,
    /// What is read first.
    Strong,
    /// What may be passed over.
    Dim,
    /// In the n-th colour of a bar.
    Tone(usize),
    /// A title.
    Title,
}

impl Style {
    fn code(self) -> &'static str {
        const TONES: [&str; 4] = ["33", "36", "35", "90"];
        match self {
            Self::Plain => "",
            Self::Strong => "1",
            Self::Dim => "2",
            Self::Title => "1;36",
            Self::Tone(n) => TONES.get(n).copied().unwrap_or("90"),
        }
    }
}

/// A line in parts of one style each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line(Vec<(Style, String)>);

impl Line {
    /// An empty line.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// A line of one style.
    pub fn of(style: Style, text: impl Into<String>) -> Self {
        Self(vec![(style, text.into())])
    }

    /// Adds words.
    pub fn push(&mut self, style: Style, text: impl Into<String>) {
        self.0.push((style, text.into()));
    }

    /// The same with more words.
    #[must_use]
    pub fn then(mut self, style: Style, text: impl Into<String>) -> Self {
        self.push(style, text);
        self
    }

    /// The same after so many spaces.
    #[must_use]
    pub fn indented(mut self, by: usize) -> Self {
        self.0.insert(0, (Style::Plain, " ".repeat(by)));
        self
    }

    /// Its parts in order.
    pub fn parts(&self) -> &[(Style, String)] {
        &self.0
    }

    /// Columns that it takes.
    pub fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.width()).sum()
    }

    /// Adds words so that they end at a column, if there is room for them and a space before them.
    #[must_use]
    pub fn right(mut self, column: usize, style: Style, text: &str) -> Self {
        let used = self.width() + text.width();
        if used < column {
            self.push(Style::Plain, " ".repeat(column - used));
            self.push(style, text);
        }
        self
    }

    /// The line as a terminal shows it, without spaces at its end.
    pub fn write(&self, out: &mut String, look: Look) {
        let last = self.0.iter().rposition(|(_, text)| !text.trim_end().is_empty());
        for (n, (style, text)) in self.0.iter().take(last.map_or(0, |last| last + 1)).enumerate() {
            let text = if Some(n) == last { text.trim_end() } else { text };
            let code = if look.colour { style.code() } else { "" };
            let shown = if look.ascii { text.chars().map(ascii).collect() } else { text.to_owned() };
            match code {
                "" => out.push_str(&shown),
                code => out.extend(["\u{1b}[", code, "m", &shown, "\u{1b}[0m"]),
            }
        }
        out.push('\n');
    }
}

/// The parts of a screen with an empty line between each two; parts without lines take none.
pub fn stacked(parts: impl Iterator<Item = Vec<Line>>) -> Vec<Line> {
    let mut out: Vec<Line> = Vec::new();
    for part in parts.filter(|part| !part.is_empty()) {
        if !out.is_empty() {
            out.push(Line::new());
        }
        out.extend(part);
    }
    out
}

/// The letter that stands for one of ours where there is only ASCII; each takes one column.
fn ascii(c: char) -> char {
    match c {
        '█' => '#',
        '▓' => '=',
        '▒' => '-',
        '░' => '.',
        '▌' => '|',
        '·' => '|',
        '≤' => '<',
        'µ' | 'μ' => 'u',
        '→' => '>',
        '←' => '<',
        '…' => '~',
        '–' | '−' | '—' => '-',
        '×' => 'x',
        '\u{202f}' | '\u{a0}' => ' ',
        '“' | '”' => '"',
        other => other,
    }
}

/// Characters that no line begins with.
const CLOSING: &str = "，。、；：！？）】》”…%";

/// Text as lines of at most `width` columns, broken between words. A word that is wider than a line loses its middle.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let (mut line, mut used) = (String::new(), 0);
    for (space, word) in words(&visible(text)) {
        let word = middle(&word, width);
        let own = word.width();
        let space = usize::from(space && used > 0);
        if used > 0 && used + space + own > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        } else if space > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(&word);
        used += own;
    }
    if used > 0 {
        lines.push(line);
    }
    lines
}

/// At most `most` lines of a text; what does not fit ends with an ellipsis after a whole word.
pub fn wrap_at_most(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut lines = wrap(text, width);
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = shorten(last, width, true);
        }
    }
    lines
}

/// The words of a text, each with whether a space stands before it; wide characters are words of their own.
fn words(text: &str) -> Vec<(bool, String)> {
    let mut out: Vec<(bool, String)> = Vec::new();
    let (mut space, mut open) = (false, false);
    for c in text.chars() {
        if c == ' ' || c == '\n' {
            (space, open) = (true, false);
            continue;
        }
        let wide = c.width().unwrap_or(0) > 1;
        let joins = (open && !wide) || (CLOSING.contains(c) && !space);
        match out.last_mut().filter(|_| joins) {
            Some((_, word)) => word.push(c),
            None => out.push((space, c.to_string())),
        }
        (space, open) = (false, !wide);
    }
    out
}

/// Text in at most `width` columns: cut after a whole word where one ends in its second half, with an ellipsis.
pub fn fit(text: &str, width: usize) -> String {
    shorten(text, width, false)
}

/// The same of a text of which `more` follows.
fn shorten(text: &str, width: usize, more: bool) -> String {
    let text = visible(text);
    if text.width() <= width && !more {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    let cut =
        out.rfind(' ').filter(|at| *at * 2 > out.len() && text.get(out.len()..).is_some_and(|r| !r.starts_with(' ')));
    let kept = cut.map_or(out.as_str(), |at| out.get(..at).unwrap_or(&out));
    format!("{}…", kept.trim_end_matches([' ', ',', ';', ':', '，', '；']))
}

/// A name in at most `width` columns: its middle gives way, because both ends tell names apart.
pub fn middle(name: &str, width: usize) -> String {
    let name = visible(name);
    if name.width() <= width {
        return name;
    }
    let take = |chars: &mut dyn Iterator<Item = char>, most: usize| {
        let mut used = 0;
        let taken: Vec<char> = chars
            .take_while(|c| {
                used += c.width().unwrap_or(0);
                used <= most
            })
            .collect();
        taken
    };
    let room = width.saturating_sub(1);
    let head: String = take(&mut name.chars(), room - room / 3).into_iter().collect();
    let tail: String = take(&mut name.chars().rev(), room / 3).into_iter().rev().collect();
    format!("{head}…{tail}")
}

/// Text filled with spaces to `width` columns, on its left side.
pub fn left(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// The same on its right side.
pub fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.width())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_and_chinese_breaks_between_characters() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("设备空闲，等待主机", 8), ["设备空", "闲，等待", "主机"]);
        assert_eq!(wrap("a_very_long_kernel_name", 10), ["a_very…ame"]);
        assert_eq!(wrap_at_most("one two three four", 9, 1), ["one two…"]);
        assert_eq!(fit("one two three", 13), "one two three");
        assert_eq!(fit("one two three", 9), "one two…");
        assert_eq!(middle("hipStreamSynchronize", 11), "hipStre…ize");
        assert!(wrap("", 10).is_empty());
    }

    #[test]
    fn a_line_has_no_space_at_its_end_and_ascii_keeps_its_width() {
        let line = Line::of(Style::Strong, "45.6 µs ██").then(Style::Plain, "  ");
        let shown = |look| {
            let mut out = String::new();
            line.write(&mut out, look);
            out
        };
        assert_eq!(shown(Look { width: 80, colour: false, ascii: true }), "45.6 us ##\n");
        assert_eq!(shown(Look { width: 80, colour: true, ascii: false }), "\u{1b}[1m45.6 µs ██\u{1b}[0m\n");
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_wider_than_asked(text in ".{0,200}", width in 8usize..120) {
            for line in wrap(&text, width).into_iter().chain([fit(&text, width), middle(&text, width)]) {
                proptest::prop_assert!(line.width() <= width, "{line:?}");
            }
        }
    }
}
