//! The text of a rule as a page: what `strato explain` prints and what `docs/rules` holds.

use std::fmt::Write;

use model::EvidenceClass;

use super::rule::Doc;
use crate::{
    i18n::{Lang, Text},
    platform::Remedy,
};

const NEEDS: Text = Text::new("Needs", "所需证据");
const NOTHING: Text = Text::new("nothing beyond the capture itself", "无需采集之外的证据");
const SEES: Text = Text::new("What it sees", "看到什么");
const MATTERS: Text = Text::new("Why it matters", "为何重要");
const TRIGGER: Text = Text::new("Trigger", "触发条件");
const SOURCE: Text = Text::new("Where the threshold comes from", "阈值来源");
const GUARDS: Text = Text::new("When it keeps quiet", "何时不作判断");
const REMEDIES: Text = Text::new("Remedies", "处置");
const VERIFY: Text = Text::new("How to verify", "如何验证");
const LAYER: Text = Text::new("Layer", "所属层");

/// The page of a rule as Markdown.
pub fn markdown(doc: &Doc, remedies: &[Remedy], lang: Lang) -> String {
    let mut page = format!("# {}: {}\n\n", doc.id, doc.title.get(lang));
    let needs: Vec<&str> = doc.needs.iter().map(|class: &EvidenceClass| class.key()).collect();
    let needs = if needs.is_empty() { NOTHING.get(lang).to_owned() } else { needs.join(", ") };
    // Writing to a String cannot fail.
    let _ = write!(page, "{}: {}  \n{}: {needs}\n", LAYER.get(lang), doc.layer.key(), NEEDS.get(lang));
    for (title, text) in
        [(SEES, doc.sees), (MATTERS, doc.matters), (TRIGGER, doc.trigger), (SOURCE, doc.source), (GUARDS, doc.guards)]
    {
        let _ = write!(page, "\n## {}\n\n{}\n", title.get(lang), text.get(lang));
    }
    if !remedies.is_empty() {
        let _ = write!(page, "\n## {}\n\n", REMEDIES.get(lang));
        for r in remedies {
            let text = match lang {
                Lang::En => &r.text_en,
                Lang::Zh => &r.text_zh,
            };
            let _ = writeln!(page, "- **{}** {text} ({}, {})", r.platform, r.source, r.date);
        }
    }
    let _ = write!(page, "\n## {}\n\n{}\n", VERIFY.get(lang), doc.verify.get(lang));
    page
}
