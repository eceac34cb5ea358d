//! Markdown to HTML. The reports are written in markdown whose capture text is escaped already; HTML in it would be a defect
//! there, and is shown as text here.

use std::fmt::Write;

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::svg::escape;

/// The headings of a page as they are written.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Depth and escaped text; the position is the id.
    entries: Vec<(u8, String)>,
}

impl Contents {
    /// Takes a heading of the page, and gives it an id.
    pub fn entry(&mut self, depth: u8, text: &str) -> String {
        self.entries.push((depth, escape(text)));
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
    pub fn section(&mut self, markdown: &str) -> String {
        if markdown.trim().is_empty() {
            return String::new();
        }
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        let mut events: Vec<Event<'_>> = Parser::new_ext(markdown, options).map(as_text).collect();
        self.name_headings(&mut events);
        let mut out = String::from("<section>\n");
        html::push_html(&mut out, events.into_iter().flat_map(framed));
        out.push_str("</section>\n");
        // The policy of the page allows no styles but its own. No text holds a tag, so these are attributes.
        for (cell, side) in
            ["th", "td"].into_iter().flat_map(|cell| ["left", "center", "right"].map(|side| (cell, side)))
        {
            let styled = format!("<{cell} style=\"text-align: {side}\"");
            out = out.replace(&styled, &format!("<{cell} class=\"{side}\""));
        }
        out
    }

    fn name_headings(&mut self, events: &mut [Event<'_>]) {
        for at in 0..events.len() {
            let Some((before, rest)) = events.split_at_mut_checked(at + 1) else { return };
            let Some(Event::Start(Tag::Heading { level, id, .. })) = before.last_mut() else { continue };
            let inside = rest.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
            let text: String = inside.filter_map(said).collect();
            let depth = if *level == HeadingLevel::H1 { 1 } else { *level as u8 };
            *id = Some(CowStr::from(self.entry(depth, &text)));
        }
    }
}

fn said<'a>(event: &'a Event<'_>) -> Option<&'a str> {
    match event {
        Event::Text(text) | Event::Code(text) => Some(text),
        _ => None,
    }
}

fn as_text(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
        // A page of ours has no links out and loads no pictures.
        Event::Start(Tag::Link { .. } | Tag::Image { .. }) | Event::End(TagEnd::Link | TagEnd::Image) => {
            Event::Text(CowStr::Borrowed(""))
        }
        event => event,
    }
}

/// Tables scroll by themselves where the window is narrower.
fn framed(event: Event<'_>) -> Vec<Event<'_>> {
    match event {
        Event::Start(Tag::Table(_)) => vec![Event::Html("<div class=\"table\">".into()), event],
        Event::End(TagEnd::Table) => vec![event, Event::Html("</div>\n".into())],
        event => vec![event],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_in_a_report_is_text_and_headings_are_found() {
        let mut contents = Contents::default();
        let page = contents.section("## a `b<i>`\n\n<script>x</script> c <b>d</b>\n\n| x |\n| - |\n| `a\\|b` |\n");
        assert!(page.contains("<h2 id=\"s1\">a <code>b&lt;i&gt;</code></h2>"), "{page}");
        assert!(!page.contains("<script") && !page.contains("<b>"), "{page}");
        assert!(page.contains("<code>a|b</code>"), "{page}");
        let page = contents.section("| x |\n| -: |\n| style=\"text-align: right\" |\n");
        assert!(page.contains("<td class=\"right\">style=\"text-align: right\"</td>"), "{page}");
        assert_eq!(contents.list(), "<ul><li class=\"h2\"><a href=\"#s1\">a b&lt;i&gt;</a></li></ul>");
    }

    #[test]
    fn a_report_links_nowhere() {
        let page = Contents::default().section("[a](https://x.y) ![b](http://z) <http://w>\n");
        assert!(!page.contains("href") && !page.contains("src"), "{page}");
    }
}
