//! The text of a rule as a page: what `strato explain` prints and what `docs/rules` holds.

use super::{
    document::{Document, Inline, Inlines, notation},
    inlines, phrase,
};
use diagnosis::{
    diagnose::{rule::Doc, state},
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
const STATE: Text = Text::new("State", "状态");

/// The page of a rule.
pub fn document(doc: &Doc, remedies: &[Remedy], lang: Lang) -> Document {
    let get = |text: Text| phrase::text(text, lang);
    let mut page = Document::new();
    page.heading(1, inlines![doc.id, ": ", get(doc.title)]);
    let needs: Vec<&str> = doc.needs.iter().map(|class| class.key()).collect();
    let needs = if needs.is_empty() { get(NOTHING) } else { needs.join(", ").into() };
    page.paragraph(inlines![
        get(LAYER),
        ": ",
        doc.layer.key(),
        Inline::Break,
        get(NEEDS),
        ": ",
        needs,
        Inline::Break,
        get(STATE),
        ": ",
        state::of(doc.id).key()
    ]);
    for (title, text) in
        [(SEES, doc.sees), (MATTERS, doc.matters), (TRIGGER, doc.trigger), (SOURCE, doc.source), (GUARDS, doc.guards)]
    {
        page.heading(2, get(title));
        page.paragraph(get(text));
    }
    if !remedies.is_empty() {
        page.heading(2, get(REMEDIES));
        page.list(remedies.iter().map(|remedy| {
            let text = match lang {
                Lang::En => &remedy.text_en,
                Lang::Zh => &remedy.text_zh,
            };
            let platform = Inlines::strong(remedy.platform.as_str());
            let source = format!(" ({}, {})", remedy.source, remedy.date);
            inlines![platform, " ", notation::plain(text), source]
        }));
    }
    page.heading(2, get(VERIFY));
    page.paragraph(get(doc.verify));
    page
}
