//! What the run says of itself.

use super::Scene;
use crate::{
    report::markdown::Part,
    tui::widget::prose::{self, Line},
};

pub(super) fn lines(scene: &Scene<'_>, width: usize) -> Vec<Line> {
    prose::lines(&Part::Capture.render(scene.look.capture, scene.lang), width)
}
