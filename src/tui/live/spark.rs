//! Curves of values with gaps where there is none.

use crate::tui::{
    glyph,
    theme::Role,
    widget::prose::{Line, piece},
};

/// What stands where a value is missing.
const GAP: &str = "·";

/// The newest `width` values as columns of `height` rows, the largest as high as the curve.
pub fn curve(values: &[Option<f64>], width: usize, height: usize, role: Role) -> Vec<Line> {
    let shown = values.get(values.len().saturating_sub(width)..).unwrap_or_default();
    let most = shown.iter().flatten().copied().fold(0.0, f64::max);
    drawn(shown, height, most, role)
}

/// The newest `width` values in one row, of which `most` is as high as the row.
pub fn scaled(values: &[Option<f64>], width: usize, most: f64, role: Role) -> Line {
    let shown = values.get(values.len().saturating_sub(width)..).unwrap_or_default();
    drawn(shown, 1, most, role).into_iter().flatten().collect()
}

fn drawn(shown: &[Option<f64>], height: usize, most: f64, role: Role) -> Vec<Line> {
    let row = |row: usize| {
        let below = (height - 1 - row) as i64 * 8;
        let mut line = Line::new();
        for value in shown {
            let (mark, role) = match value {
                // Only the lowest row says that there is a gap.
                None => (if below == 0 { GAP } else { " " }, Role::Dim),
                Some(value) => {
                    let eighths = if most > 0.0 { (value / most * (height * 8) as f64).round() as i64 } else { 0 };
                    // What has a value is seen, however small.
                    (glyph::eighth((eighths - below).max(i64::from(below == 0)), 8), role)
                }
            };
            match line.last_mut().filter(|last| last.role == role) {
                Some(last) => last.text.push_str(mark),
                None => line.push(piece(mark, role)),
            }
        }
        line
    };
    (0..height).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::widget::prose::plain;

    #[test]
    fn a_missing_value_is_a_gap_and_a_small_one_is_seen() {
        let values = [Some(8.0), None, Some(0.001), Some(4.0), Some(0.0)];
        let shown =
            |width, height| -> Vec<String> { curve(&values, width, height, Role::Text).iter().map(plain).collect() };
        assert_eq!(shown(9, 1), ["█·▁▄▁"]);
        assert_eq!(shown(2, 2), ["█ ", "█▁"]);
        assert_eq!(shown(0, 1), [""]);
    }
}
