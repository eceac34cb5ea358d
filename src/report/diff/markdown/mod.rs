//! The comparison for people. The order on the page: whether the two may be compared, the answer in a sentence, what
//! repeats say of it, each side's step beside the other's, what makes the difference, the layer kernel by kernel, path against settings, what is not known.

mod answer;
mod contract;
mod layer;
mod path;
mod statistics;
mod steps;
mod waterfall;

use model::Ns;

use super::DiffReport;
use crate::{
    compare::Difference,
    i18n::{Lang, Text},
    report::{
        markdown::{self, Page},
        units,
    },
};

type DiffPage<'a> = Page<'a, DiffReport>;

/// Writes the whole comparison; where it is refused, the reports on both sides follow.
pub fn render(report: &DiffReport, lang: Lang) -> String {
    let mut page = Page { lang, capture: report, out: String::new() };
    answer::title(&mut page);
    contract::verdict(&mut page);
    match &report.difference {
        Some(difference) => compared(&mut page, difference),
        None => apart(&mut page),
    }
    contract::controls(&mut page);
    let mut out = page.out;
    for side in report.apart.iter().flatten() {
        out.push_str(&markdown::render(side, lang));
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn compared(page: &mut DiffPage<'_>, difference: &Difference) {
    answer::write(page, difference);
    if let Some(repeats) = &page.capture.statistics {
        statistics::write(page, repeats);
    }
    steps::write(page, difference);
    waterfall::write(page, difference);
    layer::write(page, difference);
    path::write(page, difference);
    page.heading(Text::new("What is not known", "未知之处"));
    let unknown = super::unknown::sentences(difference);
    page.list(unknown.iter().map(|m| page.message(m)).collect::<Vec<_>>());
    if unknown.is_empty() {
        page.paragraph(page.get(Text::new("Nothing that this report would need.", "本报告所需信息齐全。")));
    }
}

/// Where nothing may be set beside each other.
fn apart(page: &mut DiffPage<'_>) {
    if page.capture.contract.verdict() != crate::compare::contract::Verdict::NotComparable {
        page.paragraph(page.get(Text::new(
            "The two have no steps of one stage and batch that count: there is nothing to lay beside each other. The reports on both follow.",
            "两侧没有同一阶段、同一批大小的可采用步：没有可对照的内容。两侧的单独报告附后。",
        )));
    }
}

/// A difference in µs with its sign.
fn signed(ns: Ns) -> String {
    let text = units::tenths(units::mean_tenths(ns, 1));
    if ns > 0 { format!("+{text}") } else { text }
}

/// A time in µs.
fn micros(ns: Ns) -> String {
    units::tenths(units::mean_tenths(ns, 1))
}
