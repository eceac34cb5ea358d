//! A document as Markdown that is also readable as plain text: columns are padded to the width a terminal gives their
//! characters. Whatever Markdown or HTML would act on in a text is escaped here, and what a terminal would act on is written
//! out.

use unicode_width::UnicodeWidthStr;

use super::{
    columns::{Columns, Frame},
    document::{Align, Block, Document, Inline, Inlines, Table},
    text::visible,
};

/// Borders of a table's lines.
const BORDERS: Frame = ["| ", " | ", " |"];
/// Least width of a column: that of the marks of its side.
const LEAST: usize = 3;

/// Marks around what is shown in a style; on a page of Markdown there are none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Paint {
    pub(super) heading: &'static str,
    pub(super) strong: &'static str,
    pub(super) code: &'static str,
    pub(super) end: &'static str,
}

/// Writes a document.
pub fn render(document: &Document) -> String {
    write(document, &Paint::default())
}

/// Writes a document with marks around what is shown in a style.
pub(super) fn write(document: &Document, paint: &Paint) -> String {
    let mut out = String::new();
    for (n, block) in document.blocks.iter().enumerate() {
        out.push_str(if n > 0 { "\n" } else { "" });
        write_block(&mut out, block, paint);
    }
    out
}

fn write_block(out: &mut String, block: &Block, paint: &Paint) {
    match block {
        Block::Heading { level, text, .. } => {
            let marks = "#".repeat(usize::from((*level).clamp(1, 6)));
            out.extend([paint.heading, &marks, " ", &line(text, &Paint::default()), paint.end, "\n"]);
        }
        Block::Paragraph(text) => out.extend([begun(&line(text, paint)).as_str(), "\n"]),
        Block::Notice(text) => out.extend(["> ", &begun(&line(text, paint)), "\n"]),
        Block::List(items) => {
            for item in items {
                out.extend(["- ", &begun(&line(item, paint)), "\n"]);
            }
        }
        Block::Table(table) => write_table(out, table, paint),
        Block::Listing(text) => {
            let fence = "`".repeat(longest_run(text).max(2) + 1);
            out.extend([&fence, "\n"]);
            text.lines().for_each(|line| out.extend([&visible(line), "\n"]));
            out.extend([&fence, "\n"]);
        }
    }
}

fn write_table(out: &mut String, table: &Table, paint: &Paint) {
    let cells = |row: &[Inlines]| -> Vec<(String, usize)> {
        let width = |text: &Inlines| cell(&line(text, &Paint::default())).width();
        row.iter().map(|text| (cell(&line(text, paint)), width(text))).collect()
    };
    let titles = cells(table.titles());
    let rows: Vec<_> = table.rows().iter().map(|row| cells(row)).collect();
    let widths = |row: &Vec<(String, usize)>| row.iter().map(|(_, width)| *width).collect();
    let columns = Columns::fit(table.align(), std::iter::once(&titles).chain(&rows).map(widths), LEAST);
    let side = |width: usize, align| match align {
        Align::Left => "-".repeat(width),
        Align::Right => "-".repeat(width - 1) + ":",
    };
    let head = [columns.line(&titles, BORDERS), columns.dashes(side, BORDERS)];
    for line in head.into_iter().chain(rows.iter().map(|row| columns.line(row, BORDERS))) {
        out.extend([&line, "\n"]);
    }
}

/// A pipe ends a cell even inside a code span, and a line that ends would end the row.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace("  \n", " ")
}

/// Parts of a line.
fn line(text: &Inlines, paint: &Paint) -> String {
    let mut out = String::new();
    write_inlines(&mut out, text, paint);
    out
}

fn write_inlines(out: &mut String, text: &Inlines, paint: &Paint) {
    for part in text {
        match part {
            Inline::Text(text) => out.push_str(&escaped(text)),
            Inline::Code(text) => out.extend([paint.code, &span(text), paint.end]),
            // One style at a time: what is strong is so as a whole.
            Inline::Strong(inside) => {
                out.extend([paint.strong, "**", &line(inside, &Paint::default()), "**", paint.end])
            }
            Inline::Emphasis(inside) => out.extend(["*", &line(inside, paint), "*"]),
            Inline::Break => out.push_str("  \n"),
            Inline::Evidence { shown, .. } => write_inlines(out, shown, paint),
        }
    }
}

/// A code span, in which neither Markdown nor HTML means anything.
fn span(text: &str) -> String {
    let text = visible(text);
    if text.is_empty() {
        return "` `".into();
    }
    let fence = "`".repeat(longest_run(&text) + 1);
    // Markdown strips one space from each side; it is needed where a backtick would touch the fence.
    let pad = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Backticks that stand beside each other at most.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Words in which nothing means anything to Markdown or HTML.
fn escaped(text: &str) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if is_mark(before, c, rest.peek().copied()) {
            out.push('\\');
        }
        out.push(c);
        before = Some(c);
    }
    out
}

/// Whether Markdown or HTML could act on a character between these two; at either end of the words something may follow.
fn is_mark(before: Option<char>, c: char, after: Option<char>) -> bool {
    let between = |is: fn(char) -> bool| before.is_some_and(is) && after.is_some_and(is);
    match c {
        '\\' | '`' | '[' | ']' | '~' => true,
        // Beside spaces it is a multiplication, inside a word an underscore.
        '*' => !between(|c| c == ' '),
        '_' => !between(char::is_alphanumeric),
        // A tag, an end tag, a comment, an instruction; an entity.
        '<' => after.is_none_or(|c| c.is_alphabetic() || matches!(c, '/' | '!' | '?')),
        '&' => after.is_none_or(|c| c.is_alphanumeric() || c == '#'),
        _ => false,
    }
}

/// A line at the start of a block, where some characters would begin another kind of block.
fn begun(line: &str) -> String {
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = line.split_at(digits);
    let is_mark = match rest.chars().next() {
        Some('#' | '>' | '=') => number.is_empty(),
        Some('-' | '+') => {
            number.is_empty() && rest.get(1..).is_none_or(|rest| rest.starts_with([' ', '-']) || rest.is_empty())
        }
        Some('.' | ')') => {
            !number.is_empty() && rest.get(1..).is_some_and(|rest| rest.starts_with(' ') || rest.is_empty())
        }
        _ => false,
    };
    if is_mark { format!("{number}\\{rest}") } else { line.trim_start().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{inlines, text::acts};

    fn paragraph(text: impl Into<Inlines>) -> String {
        let mut document = Document::new();
        document.paragraph(text);
        render(&document)
    }

    #[test]
    fn columns_line_up_with_wide_characters() {
        let mut table = Table::new([("名", Align::Left), ("ns", Align::Right)]);
        table.row(["算子", "1"]);
        table.row(["a|b\nc", "12345"]);
        table.row([Inlines::code("a|b")]);
        let text = render(&Document { blocks: vec![Block::Table(table)] });
        assert_eq!(
            text,
            "| 名          |    ns |\n| ----------- | ----: |\n| 算子        |     1 |\n| a\\|b\\\\u{a}c | 12345 |\n| `a\\|b`      |       |\n"
        );
        assert!(text.lines().all(|l| l.width() == text.lines().next().map_or(0, |l| l.width())));
    }

    #[test]
    fn a_code_span_cannot_be_left() {
        assert_eq!(span("a<b>|*_"), "`a<b>|*_`");
        assert_eq!(span("a`b"), "``a`b``");
        assert_eq!(span("``"), "``` `` ```");
        assert_eq!(span(""), "` `");
    }

    #[test]
    fn words_mean_nothing_to_markdown() {
        assert_eq!(escaped("a_b _c_ <b>*x*</b> [l](u)"), "a_b \\_c\\_ \\<b>\\*x\\*\\</b> \\[l\\](u)");
        assert_eq!(escaped("p < 0.05 & 3 * 4 > 2"), "p < 0.05 & 3 * 4 > 2");
        assert_eq!(escaped("&lt; &#60; AT&T"), "\\&lt; \\&#60; AT\\&T");
        assert_eq!(escaped("\u{1b}[2J"), "\\\\u{1b}\\[2J");
    }

    #[test]
    fn a_line_begins_no_other_block() {
        for (text, shown) in [
            ("# a", "\\# a"),
            ("> a", "\\> a"),
            ("- a", "\\- a"),
            ("12. a", "12\\. a"),
            ("-5 µs", "-5 µs"),
            ("1.5 a", "1.5 a"),
        ] {
            assert_eq!(paragraph(text), format!("{shown}\n"));
        }
    }

    #[test]
    fn blocks_stand_apart_by_one_line() {
        let mut document = Document::new();
        document.heading(1, inlines!["of ", Inlines::code("x")]);
        document.notice(inlines![Inlines::strong("s"), ": t"]);
        document.list(["a", "b"]);
        document.listing("```\nx");
        document.paragraph(inlines![Inlines::emphasis("e"), "."]);
        assert_eq!(render(&document), "# of `x`\n\n> **s**: t\n\n- a\n- b\n\n````\n```\nx\n````\n\n*e*.\n");
        assert_eq!(render(&Document::new()), "");
    }

    proptest::proptest! {
        #[test]
        fn the_fence_is_longer_than_any_run_inside(text in "[`a\n ]{0,40}") {
            let span = span(&text);
            let fence = span.chars().take_while(|c| *c == '`').count();
            let inside = &span[fence..span.len() - fence];
            proptest::prop_assert!(!inside.contains(&"`".repeat(fence)));
        }

        #[test]
        fn nothing_that_acts_is_left(text in ".*") {
            let shown = paragraph(inlines![text.as_str(), Inlines::code(text.as_str())]);
            proptest::prop_assert!(!shown.trim_end_matches('\n').chars().any(acts));
        }
    }
}
