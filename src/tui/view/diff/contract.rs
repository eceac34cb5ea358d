//! Whether the two may be compared: the verdict claim by claim, the reasons with their codes, the smallest change, and every
//! field with what each side shows or was declared to be.

use super::{super::Scene, parts};
use crate::tui::widget::prose::Line;
use report::diff::sections::Part;

pub(super) fn lines(scene: &Scene<'_>, width: usize) -> Vec<Line> {
    parts(scene, &[Part::Verdict, Part::Claims, Part::Reasons, Part::Change, Part::Controls], width)
}
