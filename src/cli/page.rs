//! The report on captures, or on two beside each other, as one page for a browser.

use std::io::{self, Write};

use diagnosis::{analysis::Analysis, diagnose::Diagnosis, i18n::Lang};
use model::Trace;
use report::{
    diff::DiffReport,
    html::{self, Pictures},
    screen::{brief, diff},
};

use crate::tui::{Opened, export::picture};

/// A capture, examined.
pub(super) type Input = (Trace, Analysis, Diagnosis);

/// Writes the report on captures as one page, with their timelines.
///
/// # Errors
/// Those of the file.
pub(super) fn write(out: &mut dyn Write, inputs: Vec<Input>, lang: Lang) -> io::Result<()> {
    let opened = Opened::new(inputs);
    let pictures = |at: usize| -> Option<Pictures> {
        let look = opened.look(at)?;
        let costs = brief::costs(look.capture()?, lang).into_iter().map(|cost| cost.finding);
        let evidence =
            costs.filter_map(|finding| Some((finding, picture::of_evidence(&look, finding, lang)?))).collect();
        Some(Pictures { whole: picture::of_capture(&look, lang), evidence })
    };
    let pictures: Vec<Pictures> = (0..opened.len()).map(|at| pictures(at).unwrap_or_default()).collect();
    html::write(out, opened.report(), &pictures, lang)
}

/// The report on two captures beside each other as one page, with the timelines of both.
pub(super) fn comparison(report: &DiffReport, captures: Option<[Input; 2]>, lang: Lang) -> String {
    let timeline = |input: Input| {
        let opened = Opened::new(vec![input]);
        opened.look(0).and_then(|look| picture::of_capture(&look, lang))
    };
    let timelines = captures.map_or([None, None], |captures| captures.map(timeline));
    let title = report.heads.each_ref().map(|head| head.name.as_str()).join(" · ");
    let bars = diff::bars(report, lang);
    html::comparison(
        &report.document(lang),
        &title,
        (&bars, &timelines),
        report.heads.iter().any(|head| head.simulated),
        lang,
    )
}
