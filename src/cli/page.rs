//! The report on captures, or on two beside each other, as one page for a browser.

use std::io::{self, Write};

use diagnosis::{analysis::Analysis, diagnose::Diagnosis, i18n::Lang};
use model::Trace;
use report::{diff::DiffReport, html, timeline::Timeline};

use crate::tui::{Opened, export::picture};

/// A capture, examined.
pub(super) type Input = (Trace, Analysis, Diagnosis);

/// Writes the report on captures as one page, with their timelines.
///
/// # Errors
/// Those of the file.
pub(super) fn write(out: &mut dyn Write, inputs: Vec<Input>, lang: Lang) -> io::Result<()> {
    let opened = Opened::new(inputs);
    let looks = (0..opened.len()).map(|at| opened.look(at));
    let timelines: Vec<Option<Timeline>> = looks.map(|look| picture::of_capture(&look?, lang)).collect();
    html::write(out, opened.report(), &timelines, lang)
}

/// The report on two captures beside each other as one page, with the timelines of both.
pub(super) fn comparison(report: &DiffReport, captures: Option<[Input; 2]>, lang: Lang) -> String {
    let timeline = |input: Input| {
        let opened = Opened::new(vec![input]);
        opened.look(0).and_then(|look| picture::of_capture(&look, lang))
    };
    let timelines = captures.map_or([None, None], |captures| captures.map(timeline));
    let title = report.heads.each_ref().map(|head| head.name.as_str()).join(" · ");
    html::comparison(&report.document(lang), &title, &timelines, report.heads.iter().any(|head| head.simulated), lang)
}
