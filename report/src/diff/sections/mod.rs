//! The comparison for people. The order on the page: the answer, what repeats say of it, whether the two may be
//! compared, each side's step beside the other's, what makes the difference, the layer kernel by kernel, path against settings, what is not known.

mod answer;
mod contract;
mod layer;
mod path;
mod readiness;
mod statistics;
mod steps;
mod waterfall;

use model::Ns;

use super::{DiffReport, words};
use crate::{
    document::{Document, Inlines},
    inlines,
    sections::{self, Page},
    units,
};
use diagnosis::{
    compare::Difference,
    i18n::{Lang, Text},
};

type DiffPage<'a> = Page<'a, DiffReport>;

/// The whole comparison; where it is refused, the reports on both sides follow.
pub fn report(report: &DiffReport, lang: Lang) -> Document {
    let parts = Part::ALL.into_iter().map(|part| part.of(report, lang));
    parts.chain(report.apart.iter().flatten().map(|side| sections::report(side, lang))).collect()
}

/// A part of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The names of the two.
    Title,
    /// Whether they may be compared.
    Verdict,
    /// The same for each question that a pair may be asked.
    Claims,
    /// Why not, or with which caveats.
    Reasons,
    /// The smallest change that would make them comparable.
    Change,
    /// The answer in a sentence.
    Answer,
    /// What repeated launches say of it.
    Repeats,
    /// Each side's step beside the other's.
    Steps,
    /// What makes the difference.
    Waterfall,
    /// The layer kernel by kernel.
    Layer,
    /// Path against settings.
    Path,
    /// What is not known.
    Unknown,
    /// How ready both platforms are.
    Readiness,
    /// Every field of the contract.
    Controls,
}

impl Part {
    /// All parts in the order on the page.
    pub const ALL: [Self; 14] = [
        Self::Title,
        Self::Answer,
        Self::Repeats,
        Self::Verdict,
        Self::Claims,
        Self::Reasons,
        Self::Change,
        Self::Steps,
        Self::Waterfall,
        Self::Layer,
        Self::Path,
        Self::Unknown,
        Self::Readiness,
        Self::Controls,
    ];

    /// Writes it. What sets one side beside the other is not there where the contract refuses that.
    fn write(self, page: &mut DiffPage<'_>) {
        let report = page.capture;
        match (self, &report.difference) {
            (Self::Title, _) => answer::title(page),
            (Self::Verdict, _) => contract::verdict(page),
            (Self::Claims, _) => contract::claims(page),
            (Self::Reasons, _) => contract::reasons(page),
            (Self::Change, _) => contract::changes(page),
            (Self::Readiness, _) => readiness::write(page),
            (Self::Controls, _) => contract::controls(page),
            (Self::Answer, Some(difference)) => answer::write(page, difference),
            (Self::Answer, None) => apart(page),
            (Self::Repeats, _) => report.statistics.iter().for_each(|repeats| statistics::write(page, repeats)),
            (Self::Steps, Some(difference)) => steps::write(page, difference),
            (Self::Waterfall, Some(difference)) => waterfall::write(page, difference),
            (Self::Layer, Some(difference)) => layer::write(page, difference),
            (Self::Path, Some(difference)) => path::write(page, difference),
            (Self::Unknown, Some(difference)) => unknown(page, difference),
            (Self::Steps | Self::Waterfall | Self::Layer | Self::Path | Self::Unknown, None) => {}
        }
    }

    /// This part of a comparison.
    pub fn of(self, report: &DiffReport, lang: Lang) -> Document {
        let mut page = Page { lang, capture: report, out: Document::new() };
        self.write(&mut page);
        page.out
    }
}

/// What a mover is called, in plain words.
pub(crate) fn mover_name(report: &DiffReport, mover: &super::Mover, lang: Lang) -> String {
    answer::name(&Page { lang, capture: report, out: Document::new() }, mover).words()
}

fn unknown(page: &mut DiffPage<'_>, difference: &Difference) {
    page.heading(Text::new("What is not known", "未知之处"));
    let unknown = super::unknown::sentences(difference);
    page.list(unknown.iter().map(|m| page.message(m)).collect::<Vec<_>>());
    if unknown.is_empty() {
        page.paragraph(page.get(Text::new("Nothing that this report would need.", "本报告所需信息齐全。")));
    }
}

/// Where nothing may be set beside each other.
fn apart(page: &mut DiffPage<'_>) {
    if page.capture.contract.verdict() != diagnosis::compare::contract::Verdict::NotComparable {
        page.paragraph(page.get(Text::new(
            "The two have no steps of one stage and batch that count: there is nothing to lay beside each other. The reports on both follow.",
            "两侧没有同一阶段、同一批大小的可采用步：没有可对照的内容。两侧的单独报告附后。",
        )));
    }
}

/// What the times of unequal work are of; nothing where both do the same.
fn each(page: &DiffPage<'_>, difference: &Difference) -> Inlines {
    match page.capture.unequal {
        true => inlines![" ", page.get(words::each(difference.waterfall.basis))],
        false => Inlines::new(),
    }
}

/// The head of a column of times in µs.
fn head(page: &DiffPage<'_>, difference: &Difference, of: Text) -> Inlines {
    page.get(of) + each(page, difference)
}

/// Heads of the columns of both sides and of their difference.
const A: Text = Text::new("A, µs", "A, µs");
const B: Text = Text::new("B, µs", "B, µs");
const DELTA: Text = Text::new("B − A, µs", "B − A，µs");

/// A difference in µs with its sign.
fn signed(ns: Ns) -> String {
    let text = units::tenths(units::mean_tenths(ns, 1));
    if ns > 0 { format!("+{text}") } else { text }
}

/// A time in µs.
fn micros(ns: Ns) -> String {
    units::tenths(units::mean_tenths(ns, 1))
}
