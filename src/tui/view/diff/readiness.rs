//! How ready both platforms are and the two together, with the next steps.

use super::{super::Scene, parts};
use crate::tui::widget::prose::Line;
use report::diff::sections::Part;

pub(super) fn lines(scene: &Scene<'_>, width: usize) -> Vec<Line> {
    parts(scene, &[Part::Readiness], width)
}
