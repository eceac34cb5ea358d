//! The whole report, as `strato diagnose` or `strato diff` writes it.

use super::Scene;
use crate::{
    report::{
        diff,
        markdown::{self, Part},
    },
    tui::widget::prose::{self, Line},
};

pub(super) fn lines(scene: &Scene<'_>, width: usize) -> Vec<Line> {
    prose::lines(&markdown(scene), width)
}

/// The report as markdown: of the two captures where two are compared, else of the one that is looked at.
pub(super) fn markdown(scene: &Scene<'_>) -> String {
    if let Some(beside) = scene.beside {
        return diff::markdown::render(beside.report, scene.lang);
    }
    let Some(capture) = scene.look.capture() else { return String::new() };
    markdown::joined(Part::ALL.iter().map(|part| part.render(capture, scene.lang)))
}
