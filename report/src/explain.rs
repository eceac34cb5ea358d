//! The text of a rule as a page: what `strato explain` prints and what `docs/rules` holds.

use super::{
    document::{Document, Inline, Inlines, notation},
    inlines, phrase,
};
use diagnosis::{
    diagnose::rule::Doc,
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
const MEASURED: Text = Text::new(
    "On simulated runs ({date}): of {without} without this cause it was named in {wrong} ({share}), of {with} with it in {named}. `docs/calibration/thresholds.csv` has the same for higher thresholds.",
    "模拟运行（{date}）：无此原因的 {without} 次中有 {wrong} 次误报（{share}），有此原因的 {with} 次中指出 {named} 次。更高阈值的数据见 `docs/calibration/thresholds.csv`。",
);
const NO_FAULT: Text = Text::new(
    "On simulated runs ({date}), none of which has this cause, it was named in {wrong} of {without} ({share}). `docs/calibration/thresholds.csv` has the same for higher thresholds.",
    "模拟运行（{date}）均无此原因：{without} 次中有 {wrong} 次误报（{share}）。更高阈值的数据见 `docs/calibration/thresholds.csv`。",
);
/// Written by `strato selftest --calibrate`.
const CURVES: &str = include_str!("../../docs/calibration/thresholds.csv");
const LAYER: Text = Text::new("Layer", "所属层");

/// The page of a rule.
pub fn document(doc: &Doc, remedies: &[Remedy], lang: Lang) -> Document {
    let get = |text: Text| phrase::text(text, lang);
    let mut page = Document::new();
    page.heading(1, inlines![doc.id, ": ", get(doc.title)]);
    let needs: Vec<&str> = doc.needs.iter().map(|class| class.key()).collect();
    let needs = if needs.is_empty() { get(NOTHING) } else { needs.join(", ").into() };
    page.paragraph(inlines![get(LAYER), ": ", doc.layer.key(), Inline::Break, get(NEEDS), ": ", needs]);
    for (title, text) in
        [(SEES, doc.sees), (MATTERS, doc.matters), (TRIGGER, doc.trigger), (SOURCE, doc.source), (GUARDS, doc.guards)]
    {
        page.heading(2, get(title));
        page.paragraph(get(text));
        if let Some(measured) = measured(doc.id, lang).filter(|_| title == SOURCE) {
            page.paragraph(measured);
        }
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

/// How often the rule was wrong and right on simulated runs at its threshold.
fn measured(rule: &str, lang: Lang) -> Option<Inlines> {
    let mut rows = CURVES.lines().map(|line| line.split(',').collect::<Vec<_>>());
    rows.find_map(|cells| match cells.as_slice() {
        [id, "1", _, without, wrong, with, named, date] if *id == rule => {
            let share = false_share(wrong, without)?;
            let text = if *with == "0" { NO_FAULT } else { MEASURED };
            let value = |name: &str| match name {
                "without" => Some(*without),
                "wrong" => Some(*wrong),
                "with" => Some(*with),
                "named" => Some(*named),
                "date" => Some(*date),
                "share" => Some(share.as_str()),
                _ => None,
            };
            Some(notation::read(text.get(lang), &|name| value(name).map(Inlines::from)))
        }
        _ => None,
    })
}

/// Share of false alarms in per cent; `None` for what are no counts.
fn false_share(wrong: &str, without: &str) -> Option<String> {
    let (wrong, without): (u32, u32) = (wrong.parse().ok()?, without.parse().ok()?);
    Some(format!("{:.1} %", 100.0 * f64::from(wrong) / f64::from(without.max(1))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn what_was_measured_is_told_without_a_gap() {
        for lang in [Lang::En, Lang::Zh] {
            let told = measured("RT-14", lang).unwrap().words();
            assert!(told.contains("20") && !told.contains('{'), "{told}");
        }
        assert!(measured("XX-00", Lang::En).is_none());
        assert_eq!(false_share("3", "120").as_deref(), Some("2.5 %"));
    }
}
