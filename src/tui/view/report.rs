//! The whole report, as `strato diagnose` or `strato diff` writes it.

use super::{Scene, page::Laid};
use crate::tui::widget::prose;
use report::{
    diff,
    markdown::{self, Part},
};

pub(super) fn lines(scene: &Scene<'_>, width: usize) -> Laid {
    let markdown = markdown(scene);
    // The report of a pair has findings of both sides, whose evidence lies in two timelines.
    let capture = scene.look.capture().filter(|_| scene.beside.is_none());
    let Some(capture) = capture else { return prose::lines(&markdown, width).into() };
    let mut laid = Laid::default();
    let mut rest = markdown.as_str();
    for (finding, at) in (0..).zip(&capture.findings).map(|(at, _)| (at, markdown::finding(capture, at, scene.lang))) {
        let Some((before, from)) = rest.find(at.trim_end()).map(|start| rest.split_at(start)) else { continue };
        laid.lines.extend(prose::lines(before, width));
        laid.findings.push((laid.lines.len(), finding));
        rest = from;
    }
    laid.lines.extend(prose::lines(rest, width));
    laid
}

/// The report as markdown: of the two captures where two are compared, else of the one that is looked at.
pub(super) fn markdown(scene: &Scene<'_>) -> String {
    if let Some(beside) = scene.beside {
        return diff::markdown::render(beside.report, scene.lang);
    }
    let Some(capture) = scene.look.capture() else { return String::new() };
    markdown::joined(Part::ALL.iter().map(|part| part.render(capture, scene.lang)))
}
