//! A document as HTML. Text is escaped here; a page of ours has no links out and loads no pictures.

use std::fmt::Write;

use crate::{
    document::{Align, Block, Document, Inline, Inlines, Table},
    text::visible,
};

/// The headings of a page as they are written.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Depth and escaped text; the position is the id.
    entries: Vec<(u8, String)>,
}

impl Contents {
    /// Takes a heading of the page, and gives it an id.
    pub fn entry(&mut self, depth: u8, text: &str) -> String {
        self.entries.push((depth, words(text)));
        format!("s{}", self.entries.len())
    }

    /// Links to the headings of the first two levels.
    pub fn list(&self) -> String {
        let mut out = String::from("<ul>");
        for ((depth, text), number) in self.entries.iter().zip(1..).filter(|((depth, _), _)| *depth < 3) {
            let _ = write!(out, "<li class=\"h{depth}\"><a href=\"#s{number}\">{text}</a></li>");
        }
        out.push_str("</ul>");
        out
    }

    /// A part of the page.
    pub fn section(&mut self, document: &Document) -> String {
        if document.is_empty() {
            return String::new();
        }
        let mut out = String::from("<section>\n");
        document.blocks.iter().for_each(|block| self.block(&mut out, block));
        out.push_str("</section>\n");
        out
    }

    fn block(&mut self, out: &mut String, block: &Block) {
        match block {
            Block::Heading { level, text, .. } => {
                let level = (*level).clamp(1, 6);
                let id = self.entry(level, &text.words());
                let _ = writeln!(out, "<h{level} id=\"{id}\">{}</h{level}>", line(text));
            }
            Block::Paragraph(text) => out.extend(["<p>", &line(text), "</p>\n"]),
            Block::Notice(text) => out.extend(["<blockquote>\n<p>", &line(text), "</p>\n</blockquote>\n"]),
            Block::List(items) => {
                out.push_str("<ul>\n");
                items.iter().for_each(|item| out.extend(["<li>", &line(item), "</li>\n"]));
                out.push_str("</ul>\n");
            }
            Block::Table(table) => write_table(out, table),
            Block::Listing(text) => {
                out.push_str("<pre><code>");
                text.lines().for_each(|line| out.extend([&words(line), "\n"]));
                out.push_str("</code></pre>\n");
            }
        }
    }
}

/// Tables scroll by themselves where the window is narrower.
fn write_table(out: &mut String, table: &Table) {
    let row = |out: &mut String, tag: &str, cells: &[Inlines]| {
        out.push_str("<tr>");
        for (n, align) in table.align().iter().enumerate() {
            let class = if *align == Align::Right { " class=\"right\"" } else { "" };
            let text = cells.get(n).map(line).unwrap_or_default();
            let _ = write!(out, "<{tag}{class}>{text}</{tag}>");
        }
        out.push_str("</tr>");
    };
    out.push_str("<div class=\"table\"><table><thead>");
    row(out, "th", table.titles());
    out.push_str("</thead><tbody>\n");
    for cells in table.rows() {
        row(out, "td", cells);
        out.push('\n');
    }
    out.push_str("</tbody></table>\n</div>\n");
}

/// Parts of a line.
fn line(text: &Inlines) -> String {
    let mut out = String::new();
    for part in text {
        match part {
            Inline::Text(text) => out.push_str(&words(text)),
            Inline::Code(text) => out.extend(["<code>", &words(text), "</code>"]),
            Inline::Strong(inside) => out.extend(["<strong>", &line(inside), "</strong>"]),
            Inline::Emphasis(inside) => out.extend(["<em>", &line(inside), "</em>"]),
            Inline::Break => out.push_str("<br>\n"),
            Inline::Evidence { slices, shown } => {
                let ids: Vec<String> = slices.iter().take(EVIDENCE).map(|id| id.0.to_string()).collect();
                let _ =
                    write!(out, "<span class=\"evidence\" data-slices=\"{}\">{}</span>", ids.join(" "), line(shown));
            }
        }
    }
    out
}

/// Slices named in an attribute; the JSON report has all.
const EVIDENCE: usize = 64;

/// A text between tags in which nothing acts, neither on HTML nor on whom reads it.
pub fn words(text: &str) -> String {
    visible(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inlines;

    #[test]
    fn html_in_a_report_is_text_and_headings_are_found() {
        let mut document = Document::new();
        document.heading(2, inlines!["a ", Inlines::code("b<i>")]);
        document.paragraph("<script>x</script> c <b>d</b> [a](https://x.y) <http://w>");
        let mut table = Table::new([("x", Align::Left), ("n", Align::Right)]);
        table.row([Inlines::code("a|b"), "style=\"text-align: right\"".into()]);
        table.row(["only one"]);
        document.table(table);
        document.listing("<x>");
        let mut contents = Contents::default();
        let page = contents.section(&document);
        assert!(page.contains("<h2 id=\"s1\">a <code>b&lt;i&gt;</code></h2>"), "{page}");
        assert!(!page.contains("<script") && !page.contains("<b>") && !page.contains("href"), "{page}");
        assert!(page.contains("<td><code>a|b</code></td><td class=\"right\">style=\"text"), "{page}");
        assert!(page.contains("<td>only one</td><td class=\"right\"></td></tr>"), "{page}");
        assert!(page.contains("<pre><code>&lt;x&gt;\n</code></pre>"), "{page}");
        assert_eq!(contents.list(), "<ul><li class=\"h2\"><a href=\"#s1\">a b&lt;i&gt;</a></li></ul>");
        assert_eq!(contents.section(&Document::new()), "");
    }

    #[test]
    fn evidence_names_its_slices() {
        let text = inlines!["x (", Inlines::evidence(vec![model::SliceId(3), model::SliceId(5)], "slices 3, …"), ")"];
        assert_eq!(line(&text), "x (<span class=\"evidence\" data-slices=\"3 5\">slices 3, …</span>)");
    }
}
