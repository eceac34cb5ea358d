//! What a rule says, with the values of the capture that is looked at.

use crate::tui::{
    opened::Look,
    theme::Role,
    view::{Effect, Scene},
    widget::prose::{self, Line, piece},
};
use diagnosis::{
    diagnose::{Finding, rules},
    i18n::{Lang, Text},
};
use report::{explain, phrase, units};

/// Cells of a frame around a page.
const FRAME: usize = 8;
/// Widest line of a page.
const WIDEST: usize = 100;

/// Title and lines of the page of a rule, for a screen of a width; `None` where there is no such rule.
pub fn page(look: Option<&Look<'_>>, id: &str, width: usize, lang: Lang) -> Option<(String, Vec<Line>)> {
    let doc = rules::find(id)?.doc();
    let findings = look.and_then(|look| look.capture()).map_or(&[][..], |capture| &capture.findings);
    let own: Vec<&Finding> = findings.iter().filter(|finding| finding.rule == doc.id).collect();
    let width = width.saturating_sub(FRAME).clamp(20, WIDEST);
    let mut lines = Vec::new();
    for finding in &own {
        lines.extend(values(finding, width, lang));
        lines.push(Line::new());
    }
    let remedies = own.first().map_or(&[][..], |finding| &finding.remedy);
    lines.extend(prose::lines(&explain::document(doc, remedies, lang), width));
    Some((format!("{}: {}", doc.id, doc.title.get(lang)), lines))
}

/// The page of the rule of a finding, by its position.
pub(super) fn explain(scene: &Scene<'_>, finding: usize) -> Effect {
    let rule = scene.look.capture().and_then(|capture| capture.findings.get(finding)).map(|finding| finding.rule);
    let told = rule.and_then(|rule| page(Some(&scene.look), rule, usize::from(scene.width), scene.lang));
    told.map_or(Effect::None, |(title, lines)| Effect::Tell(title, lines))
}

/// The condition of a finding with its values, and the facts that it rests on.
fn values(finding: &Finding, width: usize, lang: Lang) -> Vec<Line> {
    let here = Text::new("In this capture", "在此采集中").get(lang);
    let trigger = &finding.trigger;
    let (from, value) = (units::number(trigger.threshold), units::number(trigger.value));
    let limit = Text::new("fires from", "阈值").get(lang);
    let mut lines = vec![vec![piece(here, Role::Title)]];
    let condition = [
        piece(format!("{} ", trigger.formula.get(lang)), Role::Text),
        piece(value, Role::Strong),
        piece(format!("  ({limit} {from})"), Role::Dim),
    ];
    lines.extend(prose::wrap(&condition, width, ("• ", "  ")));
    for fact in &finding.evidence {
        let said = [piece(phrase::plain_fact(fact, lang), Role::Text)];
        lines.extend(prose::wrap(&said, width, ("• ", "  ")));
    }
    lines
}
