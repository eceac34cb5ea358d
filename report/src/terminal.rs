//! A document on a terminal: its Markdown with colour around headings, names and what is strong, so that a copy is still
//! Markdown.

use super::{
    document::Document,
    markdown::{self, Paint},
};

/// Bold cyan headings, bold, and green names.
const PAINT: Paint = Paint { heading: "\u{1b}[1;36m", strong: "\u{1b}[1m", code: "\u{1b}[32m", end: "\u{1b}[0m" };

/// Writes a document in colour.
pub fn render(document: &Document) -> String {
    markdown::write(document, &PAINT)
}

/// The text with every colour of [`render`] removed.
#[cfg(test)]
pub fn uncoloured(text: &str) -> String {
    [PAINT.heading, PAINT.strong, PAINT.code, PAINT.end]
        .iter()
        .fold(text.to_owned(), |text, code| text.replace(code, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        document::{Align, Inlines, Table},
        inlines,
    };

    #[test]
    fn only_colour_is_added() {
        let mut document = Document::new();
        document.heading(2, inlines!["Of ", Inlines::code("x")]);
        document.paragraph(inlines![
            "plain ",
            Inlines::strong(inlines!["bold ", Inlines::code("n")]),
            " ",
            Inlines::code("c")
        ]);
        let mut table = Table::new([("name", Align::Left)]);
        table.row([Inlines::code("核|")]);
        document.table(table);
        let shown = render(&document);
        assert_eq!(uncoloured(&shown), markdown::render(&document));
        assert!(shown.starts_with("\u{1b}[1;36m## Of `x`\u{1b}[0m\n"), "{shown:?}");
        assert!(shown.contains("plain \u{1b}[1m**bold `n`**\u{1b}[0m \u{1b}[32m`c`\u{1b}[0m\n"), "{shown:?}");
        assert!(shown.contains("| \u{1b}[32m`核\\|`\u{1b}[0m |"), "{shown:?}");
    }
}
