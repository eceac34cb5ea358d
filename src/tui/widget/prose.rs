//! The report's markdown as lines of a width: headings, paragraphs, lists, quotes and tables, with bold text and code spans.
//! What the terminal says is so what the report says.

use crate::tui::{
    text,
    theme::{Role, Theme},
};
use ratatui::{buffer::Buffer, layout::Rect};

pub use super::wrap::wrap;

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
/// Cells that the title of a column of numbers keeps, where its numbers are shorter.
const LEAST_TITLE: usize = 6;
/// Lines that a cell of words takes at most.
const FOLDS: usize = 3;
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

/// Widths of the columns of a table in which they fit `room`: words give way before numbers, titles before numbers too, and
/// numbers only where nothing else is left.
fn narrowed(table: &[Vec<Line>], right: &[bool], room: usize) -> Vec<usize> {
    let columns = table.first().map_or(0, Vec::len);
    let long = |line: &Line| line.iter().map(|piece| text::width(&piece.text)).sum::<usize>();
    let longest = |rows: &[Vec<Line>], column: usize| rows.iter().filter_map(|row| row.get(column)).map(long).max();
    let mut widths: Vec<usize> = (0..columns).map(|column| longest(table, column).unwrap_or(0)).collect();
    let is_number = |column: usize| right.get(column).copied().unwrap_or(false);
    let values = |column: usize| longest(table.get(1..).unwrap_or_default(), column).unwrap_or(0).max(LEAST_TITLE);
    let steps: [&dyn Fn(usize) -> usize; 3] = [
        &|column| if is_number(column) { usize::MAX } else { LEAST },
        &|column| if is_number(column) { values(column) } else { usize::MAX },
        &|_| LEAST,
    ];
    for least in steps {
        while widths.iter().sum::<usize>() > room {
            let over = widths.iter_mut().enumerate().filter(|(column, width)| **width > least(*column));
            let Some((_, widest)) = over.max_by_key(|(_, width)| **width) else { break };
            *widest -= 1;
        }
    }
    widths
}

/// A table that fits its width. Words that are longer than their column go on below, for a few lines.
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
    let gutters = GUTTER.len() * header.len().saturating_sub(1);
    let widths = narrowed(&table, &right, width.saturating_sub(gutters));
    let row = |(at, row): (usize, &Vec<Line>)| -> Vec<Line> {
        let is_number = |column: usize| right.get(column).copied().unwrap_or(false);
        let cells: Vec<Vec<Line>> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(
                |(column, (cell, width))| {
                    if at > 0 && !is_number(column) { folded(cell, *width) } else { vec![cell.clone()] }
                },
            )
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        let line = |y: usize| {
            let mut out = Line::new();
            for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                let none = Line::new();
                place(cell.get(y).unwrap_or(&none), *width, is_number(column), column + 1 < widths.len(), &mut out);
            }
            out
        };
        (0..height).map(line).collect()
    };
    table.iter().enumerate().flat_map(row).collect()
}

/// A cell of words in lines of its column; what is longer than [`FOLDS`] lines is cut in the last of them.
fn folded(cell: &Line, width: usize) -> Vec<Line> {
    let long = cell.iter().map(|piece| text::width(&piece.text)).sum::<usize>();
    if long <= width {
        return vec![cell.clone()];
    }
    let mut lines = wrap(cell, width, ("", ""));
    if lines.len() > FOLDS {
        lines.truncate(FOLDS);
        if let Some(last) = lines.last_mut().and_then(|line| line.last_mut()) {
            // One cell more than there is room for, so that it is cut with a mark.
            last.text.push_str(&" ".repeat(width + 1));
        }
    }
    lines
}

/// Adds a cell to a line, filled up to its width.
fn place(cell: &Line, width: usize, right: bool, more: bool, out: &mut Line) {
    let long = cell.iter().map(|piece| text::width(&piece.text)).sum::<usize>();
    let pad = " ".repeat(width.saturating_sub(long));
    if right {
        out.push(piece(pad.clone(), Role::Text));
    }
    let mut left = width;
    for part in cell {
        let shown = text::fit(&part.text, left);
        left -= text::width(&shown).min(left);
        out.push(piece(shown, part.role));
    }
    if more {
        out.push(piece(if right { GUTTER.to_owned() } else { pad + GUTTER }, Role::Text));
    }
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
        assert_eq!(
            shown(table, 14),
            ["name        ns", "a long       1", "kernel        ", "name          ", "矩阵 | b    12"]
        );
        let numbers = "| some words | a long title |\n| --- | ---: |\n| a b c d e f g h i j k l m n o | 1 352.0 µs |\n";
        assert_eq!(
            shown(numbers, 20),
            ["some wo…  a long ti…", "a b c d   1 352.0 µs", "e f g h             ", "i j k l…            "]
        );
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
