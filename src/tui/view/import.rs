//! What was read, what was lost on the way, and what could not be decided for it.

use super::Scene;
use crate::tui::widget::prose::{self, Line};
use report::markdown::Part;

pub(super) fn lines(scene: &Scene<'_>, width: usize) -> Vec<Line> {
    let Some(capture) = scene.look.capture() else { return Vec::new() };
    let text = [Part::Source, Part::Abstained].map(|part| part.render(capture, scene.lang)).concat();
    prose::lines(&text, width)
}
