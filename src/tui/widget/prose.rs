//! A document as lines of a width: headings, paragraphs, lists, notices and tables, with names and what is strong in their
//! styles. What the terminal says is so what the report says.

use crate::tui::{
    text,
    theme::{Role, Theme},
};
use ratatui::{buffer::Buffer, layout::Rect};
use report::{
    document::{Align, Block, Document, Inline, Inlines, Table},
    text::visible,
};

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

/// Lays a document out in lines of `width` cells.
pub fn lines(document: &Document, width: usize) -> Vec<Line> {
    let mut out: Vec<Line> = Vec::new();
    for own in document.blocks.iter().map(|own| block(own, width)) {
        part(&mut out);
        out.extend(own);
    }
    out
}

/// Lays a block out in lines of `width` cells.
pub fn block(block: &Block, width: usize) -> Vec<Line> {
    let wrapped = |text: &Inlines, role: Role| wrap(&pieces(text, role), width, ("", ""));
    match block {
        Block::Heading { text, .. } => wrapped(text, Role::Title),
        Block::Paragraph(text) => wrapped(text, Role::Text),
        Block::Notice(text) => wrapped(text, Role::Warn),
        Block::List(items) => {
            items.iter().flat_map(|item| wrap(&pieces(item, Role::Text), width, ("• ", "  "))).collect()
        }
        Block::Table(table) => grid(table, width),
        Block::Listing(text) => text.lines().map(|line| vec![piece(visible(line), Role::Name)]).collect(),
    }
}

/// One empty line under what stands there, and no second one.
pub fn part(lines: &mut Vec<Line>) {
    if lines.last().is_some_and(|last| !last.is_empty()) {
        lines.push(Line::new());
    }
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

/// The parts of a text, each in its style; where nothing else is said, in that of its block.
fn pieces(text: &Inlines, base: Role) -> Line {
    let mut out = Line::new();
    for part in text {
        match part {
            Inline::Text(text) => out.push(piece(visible(text), base)),
            Inline::Code(text) => out.push(piece(visible(text), Role::Name)),
            Inline::Strong(inside) | Inline::Emphasis(inside) => out.extend(pieces(inside, Role::Strong)),
            Inline::Break => out.push(piece(" ", base)),
            Inline::Evidence { shown, .. } => out.extend(pieces(shown, base)),
        }
    }
    out
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
fn grid(table: &Table, width: usize) -> Vec<Line> {
    let right: Vec<bool> = table.align().iter().map(|align| *align == Align::Right).collect();
    let laid = |row: &[Inlines], role: Role| -> Vec<Line> { row.iter().map(|cell| pieces(cell, role)).collect() };
    let mut rows = vec![laid(table.titles(), Role::Title)];
    rows.extend(table.rows().iter().map(|row| laid(row, Role::Text)));
    let gutters = GUTTER.len() * right.len().saturating_sub(1);
    let widths = narrowed(&rows, &right, width.saturating_sub(gutters));
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
    rows.iter().enumerate().flat_map(row).collect()
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
    use report::{cells, inlines};

    fn shown(document: &Document, width: usize) -> Vec<String> {
        lines(document, width).iter().map(plain).collect()
    }

    fn paragraph(text: impl Into<Inlines>) -> Document {
        let mut document = Document::new();
        document.paragraph(text);
        document
    }

    fn table(titles: [&str; 2], rows: &[[&str; 2]]) -> Document {
        let mut table = Table::new(titles.into_iter().zip([Align::Left, Align::Right]));
        rows.iter().for_each(|row| table.row(*row));
        let mut document = Document::new();
        document.table(table);
        document
    }

    #[test]
    fn paragraphs_and_lists_wrap_at_words_and_between_wide_characters() {
        assert_eq!(shown(&paragraph("one two three"), 8), ["one two", "three"]);
        let mut list = Document::new();
        list.list(["one two three"]);
        assert_eq!(shown(&list, 8), ["• one", "  two", "  three"]);
        assert_eq!(shown(&paragraph("主机启动速度不足"), 7), ["主机启", "动速度", "不足"]);
        assert_eq!(shown(&paragraph("abcdefghijkl"), 5), ["abcde", "fghij", "kl"]);
    }

    #[test]
    fn blocks_stand_apart_by_one_empty_line() {
        let mut document = paragraph("a");
        document.heading(2, "b");
        document.notice("c");
        assert_eq!(shown(&document, 8), ["a", "", "b", "", "c"]);
    }

    #[test]
    fn parts_get_their_styles_and_what_acts_is_written_out() {
        let text = inlines!["a ", Inlines::strong(inlines!["b ", Inlines::code("c")]), Inlines::emphasis("\u{1b}")];
        let line = pieces(&text, Role::Text);
        let roles: Vec<(&str, Role)> = line.iter().map(|p| (p.text.as_str(), p.role)).collect();
        assert_eq!(roles, [("a ", Role::Text), ("b ", Role::Strong), ("c", Role::Name), ("\\u{1b}", Role::Strong)]);
    }

    #[test]
    fn a_table_fits_its_width() {
        let names = table(["name", "ns"], &[["a long kernel name", "1"], ["矩阵 | b", "12"]]);
        assert_eq!(shown(&names, 40), ["name                ns", "a long kernel name   1", "矩阵 | b            12"]);
        assert_eq!(
            shown(&names, 14),
            ["name        ns", "a long       1", "kernel        ", "name          ", "矩阵 | b    12"]
        );
        let numbers = table(["some words", "a long title"], &[["a b c d e f g h i j k l m n o", "1 352.0 µs"]]);
        assert_eq!(
            shown(&numbers, 20),
            ["some wo…  a long ti…", "a b c d   1 352.0 µs", "e f g h             ", "i j k l…            "]
        );
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_too_long(text in "[a-c 核`*|\\\\#>-]{0,200}", width in 4usize..40) {
            let mut table = Table::new([("a", Align::Left), ("b", Align::Right)]);
            table.row(cells![text.as_str(), Inlines::code(text.as_str())]);
            let mut document = paragraph(inlines![text.as_str(), Inlines::strong(text.as_str())]);
            if width > 20 {
                document.table(table);
            }
            for line in lines(&document, width) {
                proptest::prop_assert!(text::width(&plain(&line)) <= width, "{:?}", plain(&line));
            }
        }
    }
}
