//! The whole report, as `strato diagnose` or `strato diff` writes it.

use super::{Scene, page::Laid};
use crate::tui::widget::prose;
use report::{
    document::{About, Block, Document},
    sections,
};

pub(super) fn lines(scene: &Scene<'_>, width: usize) -> Laid {
    let document = document(scene);
    // The report of a pair has findings of both sides, whose evidence lies in two timelines.
    let has_findings = scene.beside.is_none();
    let mut laid = Laid::default();
    for block in &document.blocks {
        prose::part(&mut laid.lines);
        if let Block::Heading { about: Some(About::Finding(finding)), .. } = block
            && has_findings
        {
            laid.findings.push((laid.lines.len(), *finding));
        }
        laid.lines.extend(prose::block(block, width));
    }
    laid
}

/// The report: of the two captures where two are compared, else of the one that is looked at.
pub(super) fn document(scene: &Scene<'_>) -> Document {
    if let Some(beside) = scene.beside {
        return beside.report.document(scene.lang);
    }
    scene.look.capture().map_or_else(Document::new, |capture| sections::capture(capture, scene.lang))
}

/// The same as Markdown, for a file.
pub(super) fn markdown(scene: &Scene<'_>) -> String {
    document(scene).markdown()
}
