//! What was read, what was lost on the way, and what could not be decided for it.

use super::Scene;
use crate::tui::widget::prose::{self, Line};
use report::{document::Document, sections::Part};

pub(super) fn lines(scene: &Scene<'_>, width: usize) -> Vec<Line> {
    let Some(capture) = scene.look.capture() else { return Vec::new() };
    let text: Document = [Part::Source, Part::Abstained].map(|part| part.of(capture, scene.lang)).into_iter().collect();
    prose::lines(&text, width)
}
