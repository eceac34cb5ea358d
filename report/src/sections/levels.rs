//! How far the capture supports work on performance: every level with what shows it, what is missing, and what it does not
//! claim.

use super::Page;
use crate::{document::Inlines, inlines};
use diagnosis::{
    diagnose::Level,
    i18n::{Text, Value},
};

/// Writes the section.
pub(super) fn write(page: &mut Page<'_>) {
    let levels = &page.capture.verdict.levels;
    if levels.is_empty() {
        return;
    }
    page.heading(Text::new("What the capture supports", "采集能支持到哪一级"));
    for assessment in levels {
        let met = assessment.checks.iter().filter(|check| check.met).count();
        let name = match assessment.level {
            Level::Run => Text::new("Can run", "能运行"),
            Level::Optimise => Text::new("Can optimise", "能优化"),
            Level::Verify => Text::new("Can verify", "能验证"),
        };
        let counted = page.fill(
            Text::new("{met} of {all} shown", "{all} 项中已有 {met} 项"),
            [("met", Value::Count(met as u64)), ("all", Value::Count(assessment.checks.len() as u64))],
        );
        let unclaimed = page.get(assessment.unclaimed);
        let shown = page.labelled(name, counted);
        let not_claimed = page.get(Text::new(". Not claimed", "。不声称"));
        page.paragraph(inlines![shown, not_claimed, page.colon(), unclaimed]);
        let items: Vec<Inlines> = assessment
            .checks
            .iter()
            .map(|check| {
                let mark = if check.met { Text::new("shown", "已有") } else { Text::new("missing", "缺少") };
                inlines![page.get(mark), page.colon(), page.message(&check.what)]
            })
            .collect();
        page.list(items);
    }
}
