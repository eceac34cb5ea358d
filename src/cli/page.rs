//! The report on captures as one page for a browser.

use std::io::{self, Write};

use diagnosis::{analysis::Analysis, diagnose::Diagnosis, i18n::Lang};
use model::Trace;
use report::{html, timeline::Timeline};

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
