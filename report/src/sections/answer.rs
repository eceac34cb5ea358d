//! The answer: the verdict in a sentence, how good the evidence is, and which level the capture reached.

use super::{Page, words};
use crate::{
    Grade, cells,
    document::{Align, Document, Inlines, Table},
    inlines,
    model::Report,
    phrase, text,
};
use diagnosis::{
    diagnose::rules,
    i18n::{Lang, Text, Value},
};

/// One row per capture, for reports on several.
pub(super) fn overview(report: &Report, lang: Lang) -> Document {
    let get = |text: Text| phrase::text(text, lang);
    let mut table = Table::new([
        ("#".into(), Align::Right),
        (get(Text::new("capture", "采集")), Align::Left),
        (get(Text::new("layer", "瓶颈层")), Align::Left),
        (get(Text::new("verdict", "结论")), Align::Left),
    ]);
    for capture in &report.captures {
        let simulated =
            if capture.simulated { get(Text::new(" **simulated**", " **模拟数据**")) } else { Inlines::new() };
        table.row(cells![
            capture.id.to_string(),
            inlines![Inlines::name(&capture.source), simulated],
            get(words::verdict_layer(capture.verdict.layer)),
            phrase::inlines(&capture.verdict.headline, lang),
        ]);
    }
    let mut out = Document::new();
    out.heading(1, get(Text::new("Diagnosis of several captures", "多个采集的诊断")));
    out.table(table);
    out
}

/// Title, verdict, grade and level.
pub(super) fn write(page: &mut Page<'_>) {
    let capture = page.capture;
    let verdict = &capture.verdict;
    let source = Inlines::quoted(&capture.source, text::PHRASE);
    let title = page.get(Text::new("Diagnosis of ", "诊断报告："));
    page.out.heading(1, inlines![title, source]);
    if capture.simulated {
        page.out.notice(page.get(Text::new(
            "**simulated**: this capture was written by a simulator. No number in it was measured on a device.",
            "**simulated（模拟数据）**：本采集由模拟器生成，其中没有任何数字是在设备上测得的。",
        )));
    }
    page.heading(Text::new("Verdict", "结论"));
    page.title(page.message(&verdict.headline));
    let because: Vec<Inlines> = verdict.because.iter().map(|rule| rule_name(page, rule)).collect();
    let layer = page.get(words::verdict_layer(verdict.layer));
    let sure = page.sure(verdict.confidence);
    let mut facts = vec![page.labelled(Text::new("Layer", "瓶颈层"), inlines![layer, sure])];
    if !because.is_empty() {
        facts.push(page.labelled(Text::new("Because of", "依据"), page.join(because)));
    }
    let integrity = &capture.integrity;
    let lost = match capture.grade {
        Grade::C if integrity.judged_unlinked > 0 => page.aside(page.fill(
            Text::new(
                "{n} of {all} device operations of the steps that count have no launch call in the capture",
                "被采用的步共有 {all} 个设备操作，其中 {n} 个在采集中没有下发调用",
            ),
            [("n", Value::Count(integrity.judged_unlinked)), ("all", Value::Count(integrity.judged))],
        )),
        _ => Inlines::new(),
    };
    let grade = inlines![format!("{:?} — ", capture.grade), page.get(capture.grade.text()), lost];
    facts.push(page.labelled(Text::new("Evidence", "证据等级"), grade));
    facts.push(page.labelled(Text::new("Level reached", "达到的级别"), page.get(words::level(verdict.level))));
    page.list(facts);
    if !verdict.missing.is_empty() {
        page.paragraph(page.get(Text::new("Missing for the next level:", "要达到下一级别还缺少：")));
        page.list(verdict.missing.iter().map(|m| page.message(m)).collect::<Vec<_>>());
    }
    if capture.findings.is_empty() && verdict.because.is_empty() {
        page.paragraph(page.fill(
            Text::new(
                "No rule fired. Rules that could not decide: {n}; see below what they need.",
                "没有规则触发。有 {n} 条规则无法判定，所需证据见下文。",
            ),
            [("n", Value::Count(capture.abstained.len() as u64))],
        ));
    }
}

/// Id and title of a rule.
pub(super) fn rule_name(page: &Page<'_>, id: &str) -> Inlines {
    match rules::find(id) {
        Some(rule) => inlines![id, page.aside(page.get(rule.doc().title))],
        None => id.into(),
    }
}
