//! What the run says of itself.

use super::Scene;
use crate::tui::widget::prose::{self, Line};
use report::sections::Part;

pub(super) fn lines(scene: &Scene<'_>, width: usize) -> Vec<Line> {
    let Some(capture) = scene.look.capture() else { return Vec::new() };
    prose::lines(&Part::Capture.of(capture, scene.lang), width)
}
