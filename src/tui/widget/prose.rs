//! The report's markdown as lines of a width: headings, paragraphs, lists, quotes and tables, with bold text and code spans.
//! What the terminal says is so what the report says.

use ratatui::{buffer::Buffer, layout::Rect};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::tui::{
    text,
    theme::{Role, Theme},
};

/// A piece of a line in one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Text.
    pub text: String,
    /// What it means.
    pub role: Role,
}

/// One line of the screen.
pub type Line = Vec<Piece>;

/// Cells that a column of a table keeps when the table is too wide.
const LEAST: usize = 8;
/// Between the columns of a table.
const GUTTER: &str = "  ";

/// A piece of a line.
pub fn piece(text: impl Into<String>, role: Role) -> Piece {
    Piece { text: text.into(), role }
}

/// Lays markdown out in lines of `width` cells.
pub fn lines(markdown: &str, width: usize) -> Vec<Line> {
    let mut out: Vec<Line> = Vec::new();
    let mut rows = markdown.lines().peekable();
    while let Some(row) = rows.next() {
        if row.starts_with('|') {
            let mut table = vec![row];
            while let Some(next) = rows.next_if(|next| next.starts_with('|')) {
                table.push(next);
            }
            out.extend(grid(&table, width));
        } else if let Some(heading) = row.strip_prefix('#') {
            let heading = heading.trim_start_matches('#').trim_start();
            out.extend(wrap(&pieces(heading, Role::Title), width, ("", "")));
        } else if let Some(item) = row.strip_prefix("- ") {
            out.extend(wrap(&pieces(item, Role::Text), width, ("• ", "  ")));
        } else if let Some(quote) = row.strip_prefix("> ") {
            out.extend(wrap(&pieces(quote, Role::Warn), width, ("", "")));
        } else if row.is_empty() {
            if out.last().is_some_and(|last| !last.is_empty()) {
                out.push(Line::new());
            }
        } else {
            out.extend(wrap(&pieces(row, Role::Text), width, ("", "")));
        }
    }
    out
}

/// Writes the lines from `top` on.
pub fn draw(lines: &[Line], top: usize, theme: &Theme, area: Rect, buf: &mut Buffer) {
    for (line, y) in lines.iter().skip(top).zip(area.top()..area.bottom()) {
        let mut x = area.left();
        for piece in line {
            x += text::put(buf, (x, y), &piece.text, area.right().saturating_sub(x), theme.style(piece.role));
        }
    }
}

/// Text of a line without style.
pub fn plain(line: &Line) -> String {
    line.iter().map(|piece| piece.text.as_str()).collect()
}

/// Bold text, code spans and escapes of one paragraph.
fn pieces(markdown: &str, base: Role) -> Line {
    let mut out: Line = Vec::new();
    let mut rest = markdown;
    let mut plain = String::new();
    while let Some(at) = rest.find(['`', '*', '\\']) {
        let (before, tail) = rest.split_at(at);
        plain.push_str(before);
        let ticks = tail.len() - tail.trim_start_matches('`').len();
        let stars = (tail.len() - tail.trim_start_matches('*').len()).min(2);
        let (mark, role) = if ticks > 0 { (ticks, Role::Name) } else { (stars, Role::Strong) };
        let open = tail.get(..mark).unwrap_or("");
        let inside = tail.get(mark..).unwrap_or("");
        let close = (mark > 0).then(|| inside.find(open)).flatten().filter(|close| *close > 0);
        if tail.starts_with('\\') {
            let mut letters = tail.chars();
            letters.next();
            plain.extend(letters.next());
            rest = letters.as_str();
        } else if let Some(close) = close {
            if !plain.is_empty() {
                out.push(piece(std::mem::take(&mut plain), base));
            }
            let text = inside.get(..close).unwrap_or("");
            // A backtick at the edge of a span is kept from its fence by a space.
            let padded = ticks > 0 && (text.starts_with(" `") || text.ends_with("` "));
            if role == Role::Strong && base != Role::Strong {
                // Names stand in what is bold too, and escapes.
                out.extend(pieces(text, role));
            } else {
                out.push(piece(if padded { text.trim() } else { text }, role));
            }
            rest = inside.get(close + mark..).unwrap_or("");
        } else {
            plain.push_str(open);
            rest = inside;
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        out.push(piece(plain, base));
    }
    out
}

/// Breaks a paragraph into lines: at spaces, between wide characters, and inside a word only where it is longer than a line.
/// The first line begins with the first indent, all others with the second.
pub fn wrap(line: &[Piece], width: usize, (first, then): (&str, &str)) -> Vec<Line> {
    let width = width.max(4);
    let mut out = Vec::new();
    let mut current = Wrapped::new(first);
    let mut word: Vec<(&str, usize, Role)> = Vec::new();
    let mut flush = |word: &mut Vec<(&str, usize, Role)>, current: &mut Wrapped| {
        let long: usize = word.iter().map(|(_, width, _)| width).sum();
        if current.used + long > width && !current.fresh {
            out.push(std::mem::replace(current, Wrapped::new(then)).finish());
        }
        for (cluster, wide, role) in word.drain(..) {
            if current.used + wide > width {
                out.push(std::mem::replace(current, Wrapped::new(then)).finish());
            }
            current.add(cluster, wide, role);
        }
    };
    for part in line {
        for cluster in part.text.graphemes(true) {
            let wide = cluster.width().min(2);
            if cluster == " " {
                flush(&mut word, &mut current);
                if !current.fresh && current.used < width {
                    current.add(" ", 1, part.role);
                }
                continue;
            }
            if wide == 2 {
                flush(&mut word, &mut current);
            }
            word.push((cluster, wide, part.role));
            if wide == 2 {
                flush(&mut word, &mut current);
            }
        }
    }
    flush(&mut word, &mut current);
    out.push(current.finish());
    out
}

/// A line as far as it is filled.
struct Wrapped {
    line: Line,
    used: usize,
    /// Whether nothing but the indent stands in it.
    fresh: bool,
}

impl Wrapped {
    fn new(indent: &str) -> Self {
        let line = if indent.is_empty() { Line::new() } else { vec![piece(indent, Role::Dim)] };
        Self { line, used: indent.width(), fresh: true }
    }

    fn add(&mut self, cluster: &str, width: usize, role: Role) {
        match self.line.last_mut().filter(|last| last.role == role && !self.fresh) {
            Some(last) => last.text.push_str(cluster),
            None => self.line.push(piece(cluster, role)),
        }
        self.used += width;
        self.fresh = false;
    }

    fn finish(mut self) -> Line {
        if let Some(last) = self.line.last_mut() {
            last.text.truncate(last.text.trim_end().len());
        }
        self.line
    }
}

/// Cells of a row of a markdown table.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim().trim_start_matches('|');
    let row = row.strip_suffix('|').unwrap_or(row);
    let mut out = vec![String::new()];
    let mut letters = row.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '|' => out.push(String::new()),
            '\\' if letters.next_if_eq(&'|').is_some() => out.last_mut().into_iter().for_each(|cell| cell.push('|')),
            c => out.last_mut().into_iter().for_each(|cell| cell.push(c)),
        }
    }
    out.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// A table, its widest columns narrowed until it fits.
fn grid(rows: &[&str], width: usize) -> Vec<Line> {
    let all: Vec<Vec<String>> = rows.iter().map(|row| cells(row)).collect();
    let (header, rest) = match all.split_first() {
        Some(split) => split,
        None => return Vec::new(),
    };
    let (marks, body) = match rest.split_first() {
        Some(split) => split,
        None => return Vec::new(),
    };
    let right: Vec<bool> = marks.iter().map(|mark| mark.ends_with(':')).collect();
    let laid = |row: &Vec<String>, role: Role| -> Vec<Line> { row.iter().map(|cell| pieces(cell, role)).collect() };
    let mut table = vec![laid(header, Role::Title)];
    table.extend(body.iter().map(|row| laid(row, Role::Text)));
    let long = |line: &Line| line.iter().map(|piece| text::width(&piece.text)).sum::<usize>();
    let mut widths: Vec<usize> = (0..header.len())
        .map(|column| table.iter().filter_map(|row| row.get(column)).map(long).max().unwrap_or(0))
        .collect();
    let gutters = GUTTER.len() * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gutters > width {
        let Some(widest) = widths.iter_mut().filter(|width| **width > LEAST).max() else { break };
        *widest -= 1;
    }
    let line = |row: &Vec<Line>| {
        let mut out = Line::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width.saturating_sub(long(cell)));
            let right = right.get(column).copied().unwrap_or(false);
            if right {
                out.push(piece(pad.clone(), Role::Text));
            }
            let mut left = *width;
            for part in cell {
                let shown = text::fit(&part.text, left);
                left -= text::width(&shown).min(left);
                out.push(piece(shown, part.role));
            }
            if column + 1 < widths.len() {
                out.push(piece(if right { GUTTER.to_owned() } else { pad + GUTTER }, Role::Text));
            }
        }
        out
    };
    table.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(markdown: &str, width: usize) -> Vec<String> {
        lines(markdown, width).iter().map(plain).collect()
    }

    #[test]
    fn paragraphs_and_lists_wrap_at_words_and_between_wide_characters() {
        assert_eq!(shown("one two three", 8), ["one two", "three"]);
        assert_eq!(shown("- one two three", 8), ["• one", "  two", "  three"]);
        assert_eq!(shown("主机启动速度不足", 7), ["主机启", "动速度", "不足"]);
        assert_eq!(shown("abcdefghijkl", 5), ["abcde", "fghij", "kl"]);
    }

    #[test]
    fn marks_become_styles_and_escapes_letters() {
        let line = pieces("a **b** `c*d` \\*e\\_ *f* 3 * 4", Role::Text);
        let roles: Vec<(&str, Role)> = line.iter().map(|p| (p.text.as_str(), p.role)).collect();
        assert_eq!(
            roles,
            [
                ("a ", Role::Text),
                ("b", Role::Strong),
                (" ", Role::Text),
                ("c*d", Role::Name),
                (" *e_ ", Role::Text),
                ("f", Role::Strong),
                (" 3 * 4", Role::Text)
            ]
        );
        let bold = pieces("**at \\_ `b` c**", Role::Text);
        let roles: Vec<(&str, Role)> = bold.iter().map(|p| (p.text.as_str(), p.role)).collect();
        assert_eq!(roles, [("at _ ", Role::Strong), ("b", Role::Name), (" c", Role::Strong)]);
    }

    #[test]
    fn a_table_fits_its_width() {
        let table = "| name | ns |\n| --- | ---: |\n| a long kernel name | 1 |\n| 矩阵 \\| b | 12 |\n";
        assert_eq!(shown(table, 40), ["name                ns", "a long kernel name   1", "矩阵 | b            12"]);
        assert_eq!(shown(table, 14), ["name        ns", "a long ke…   1", "矩阵 | b    12"]);
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_too_long(text in "[a-c 核`*|\\\\#>-]{0,200}", width in 4usize..40) {
            for line in lines(&text.replace('|', "x"), width) {
                proptest::prop_assert!(text::width(&plain(&line)) <= width, "{:?}", plain(&line));
            }
        }
    }
}
