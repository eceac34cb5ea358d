//! Any document on a terminal, fitted to its width and without marks of Markdown. Tables keep their numbers whole: what is too
//! wide for the terminal loses the middle of its names, and text breaks inside its cell.

use unicode_width::UnicodeWidthStr;

use super::{
    ROWS,
    canvas::{Line, Look, Style, left, right, wrap},
};
use crate::{
    document::{Align, Block, Document, Inlines, Table},
    text::visible,
};
use diagnosis::i18n::{Lang, Text};

/// Fewest columns of a cell whose text breaks.
const NARROWEST: usize = 12;

/// Writes a document.
pub fn render(document: &Document, look: Look) -> String {
    let mut out = String::new();
    let mut before: Option<&Block> = None;
    for block in &document.blocks {
        // A title stands at what it is over.
        let tight = matches!(before, Some(Block::Heading { .. }));
        if before.is_some() && !tight {
            out.push('\n');
        }
        lines(block, look.columns()).iter().for_each(|line| line.write(&mut out, look));
        before = Some(block);
    }
    out
}

/// The first parts of a document, on one screen: whole blocks as far as there is room. Where more follows, the last line says with which
/// command all of it is shown.
pub fn first(document: &Document, lang: Lang, look: Look, command: &str) -> String {
    let mut parts: Vec<(bool, Vec<Line>)> = Vec::new();
    let (mut used, mut before) = (0, false);
    let mut all = true;
    for block in &document.blocks {
        let heading = matches!(block, Block::Heading { .. });
        let own = lines(block, look.columns());
        let space = usize::from(!parts.is_empty() && !before);
        // The last two lines say what follows.
        if used + space + own.len() + 2 > ROWS && !parts.is_empty() {
            all = false;
            break;
        }
        used += space + own.len();
        parts.push((heading, own));
        before = heading;
    }
    while !all && parts.last().is_some_and(|(heading, _)| *heading) {
        parts.pop();
    }
    let mut out = String::new();
    let mut tight = true;
    for (heading, own) in &parts {
        if !tight {
            out.push('\n');
        }
        own.iter().take(ROWS).for_each(|line| line.write(&mut out, look));
        tight = *heading;
    }
    if !all {
        out.push('\n');
        Line::of(Style::Dim, format!("{} {command}", Text::new("Whole report:", "完整报告：").get(lang)))
            .write(&mut out, look);
    }
    out
}

fn lines(block: &Block, width: usize) -> Vec<Line> {
    let styled = |style: Style, text: &Inlines| -> Vec<Line> {
        wrap(&text.words(), width).into_iter().map(|line| Line::of(style, line)).collect()
    };
    match block {
        Block::Heading { text, .. } => styled(Style::Title, text),
        Block::Paragraph(text) => styled(if text.is_strong() { Style::Strong } else { Style::Plain }, text),
        Block::Notice(text) => styled(Style::Strong, text),
        Block::List(items) => items.iter().flat_map(|item| listed(item, width)).collect(),
        Block::Table(own) => table(own, width),
        Block::Listing(text) => text.lines().map(|line| Line::of(Style::Plain, visible(line))).collect(),
    }
}

fn listed(item: &Inlines, width: usize) -> Vec<Line> {
    let lines = wrap(&item.words(), width.saturating_sub(2)).into_iter().enumerate();
    lines.map(|(n, line)| Line::of(Style::Plain, format!("{}{line}", if n == 0 { "· " } else { "  " }))).collect()
}

fn table(table: &Table, width: usize) -> Vec<Line> {
    let words = |row: &[Inlines]| row.iter().map(|cell| visible(&cell.words())).collect::<Vec<String>>();
    let titles = words(table.titles());
    let rows: Vec<Vec<String>> = table.rows().iter().map(|row| words(row)).collect();
    let widths = widths(table, &titles, &rows, width);
    let mut out: Vec<Line> = row(table, &titles, &widths).into_iter().map(|line| Line::of(Style::Dim, line)).collect();
    out.extend(rows.iter().flat_map(|cells| row(table, cells, &widths)).map(|line| Line::of(Style::Plain, line)));
    out
}

/// Columns of each cell: as wide as its text, the widest of the texts narrower until all fit.
fn widths(table: &Table, titles: &[String], rows: &[Vec<String>], width: usize) -> Vec<usize> {
    let most = |n: usize| rows.iter().chain([&titles.to_vec()]).filter_map(|row| row.get(n)).map(|c| c.width()).max();
    let mut widths: Vec<usize> = (0..titles.len()).map(|n| most(n).unwrap_or(0)).collect();
    let between = 2 * titles.len().saturating_sub(1);
    let mut over = (widths.iter().sum::<usize>() + between).saturating_sub(width);
    while over > 0 {
        let texts =
            widths.iter_mut().zip(table.align()).filter(|(own, align)| **align == Align::Left && **own > NARROWEST);
        let Some((widest, _)) = texts.max_by_key(|(own, _)| **own) else { break };
        *widest -= 1;
        over -= 1;
    }
    widths
}

/// A row on as many lines as its longest cell takes.
fn row(table: &Table, cells: &[String], widths: &[usize]) -> Vec<String> {
    let wrapped: Vec<Vec<String>> = widths
        .iter()
        .enumerate()
        .map(|(n, width)| wrap(cells.get(n).map_or("", String::as_str), (*width).max(1)))
        .collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let line = |at: usize| {
        let parts = wrapped.iter().zip(widths).zip(table.align()).map(|((lines, width), align)| {
            let text = lines.get(at).map_or("", String::as_str);
            if *align == Align::Right { right(text, *width) } else { left(text, *width) }
        });
        parts.collect::<Vec<_>>().join("  ")
    };
    (0..height).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inlines;

    const LOOK: Look = Look { width: 44, colour: false, ascii: false };

    #[test]
    fn a_document_has_no_marks_and_fits() {
        let mut document = Document::new();
        document.heading(2, inlines!["Of ", Inlines::code("x")]);
        document.paragraph(Inlines::strong("a strong sentence that is longer than the terminal is wide"));
        document.list(["one item"]);
        let mut table =
            Table::new([("name", Align::Left), ("ns", Align::Right), ("what it is, in words", Align::Left)]);
        table.row(["gemm", "12 345", "a product of two matrices of which one is the weights"]);
        document.table(table);
        let shown = render(&document, LOOK);
        let expected = "\
Of x
a strong sentence that is longer than the
terminal is wide

· one item

name      ns  what it is, in words
gemm  12 345  a product of two matrices of
              which one is the weights
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_does_not_fit_on_one_screen_is_named_with_its_command() {
        let mut document = Document::new();
        for n in 0..30 {
            document.heading(2, format!("part {n}"));
            document.list(["one", "two", "three"]);
        }
        let screen = first(&document, Lang::En, LOOK, "strato x");
        assert!(screen.lines().count() <= ROWS, "{screen}");
        // No title stands alone, and the last line says where the rest is.
        let lines: Vec<&str> = screen.lines().rev().take(3).collect();
        assert_eq!(lines, ["Whole report: strato x", "", "· three"]);
        let mut short = Document::new();
        short.paragraph("all of it");
        assert_eq!(first(&short, Lang::En, LOOK, "strato x"), "all of it\n");
    }
}
