//! Marks that are drawn, and what stands for them where a terminal knows only ASCII. Views draw the marks below; a last pass
//! over the finished screen replaces them cell by cell, so that no view has to know.

use ratatui::buffer::Buffer;

/// How full a cell is, in eighths from the bottom; nothing is never shown for something.
pub const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
/// A cell of which one slice fills everything.
pub const SOLID: &str = "█";
/// The same, where another slice fills the cell before it.
pub const EDGE: &str = "▐";
/// Cells that several slices share, from hardly to mostly busy.
pub const SHADES: [&str; 3] = ["░", "▒", "▓"];
/// A horizontal line.
pub const LINE: &str = "─";
/// A vertical line.
pub const BAR: &str = "│";
/// The part of a scroll bar that stands for what is seen.
pub const THUMB: &str = "┃";
/// Before a selected row.
pub const POINTER: &str = "▸";
/// Where the cursor stands on the ruler.
pub const CURSOR: &str = "▼";
/// Something is open below.
pub const OPEN: &str = "▾";

/// What stands for a mark in ASCII.
const ASCII: &[(&str, &str)] = &[
    ("▁", "."),
    ("▂", "."),
    ("▃", ":"),
    ("▄", "-"),
    ("▅", "="),
    ("▆", "+"),
    ("▇", "*"),
    ("█", "#"),
    ("▐", "|"),
    ("░", "."),
    ("▒", "x"),
    ("▓", "%"),
    ("─", "-"),
    ("│", "|"),
    ("┃", "|"),
    ("┌", "+"),
    ("┐", "+"),
    ("└", "+"),
    ("┘", "+"),
    ("▸", ">"),
    ("▼", "v"),
    ("▾", "v"),
    ("▴", "^"),
    ("…", "~"),
    ("→", ">"),
    ("←", "<"),
    ("↑", "^"),
    ("↓", "v"),
    ("·", "."),
    ("•", "*"),
    ("×", "x"),
    ("µ", "u"),
    ("–", "-"),
    ("—", "-"),
    ("−", "-"),
    ("≥", ">"),
    ("≤", "<"),
    ("Δ", "d"),
    ("\u{fffd}", "?"),
    ("\u{202f}", " "),
    ("\u{a0}", " "),
];

/// Replaces the marks of a screen by ASCII. Text in other scripts stays: it is somebody's name or sentence.
pub fn to_ascii(buf: &mut Buffer) {
    for cell in &mut buf.content {
        if let Some((_, plain)) = ASCII.iter().find(|(mark, _)| *mark == cell.symbol()) {
            cell.set_symbol(plain);
        }
    }
}

/// How full a cell of `whole` is with `part`; something is never shown as nothing, and only all as all.
pub fn eighth(part: i64, whole: i64) -> &'static str {
    let level = match (part, whole) {
        (..=0, _) | (_, ..=0) => 0,
        (part, whole) if part >= whole => 8,
        (part, whole) => ((i128::from(part) * 8 / i128::from(whole)) as usize).clamp(1, 7),
    };
    EIGHTHS.get(level).copied().unwrap_or(" ")
}

/// The shade of a cell that several slices share.
pub fn shade(part: i64, whole: i64) -> &'static str {
    let third = (i128::from(part.max(0)) * 3 / i128::from(whole.max(1))) as usize;
    SHADES.get(third.min(2)).copied().unwrap_or(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_is_never_nothing_and_only_all_is_all() {
        assert_eq!(eighth(0, 100), " ");
        assert_eq!(eighth(1, 1 << 60), "▁");
        assert_eq!(eighth(i64::MAX - 1, i64::MAX), "▇");
        assert_eq!(eighth(5, 5), "█");
        assert_eq!((shade(0, 9), shade(4, 9), shade(9, 9)), ("░", "▒", "▓"));
    }

    #[test]
    fn every_mark_has_its_letter() {
        let marks =
            EIGHTHS.iter().skip(1).chain(&SHADES).chain(&[SOLID, EDGE, LINE, BAR, THUMB, POINTER, CURSOR, OPEN]);
        for mark in marks {
            assert!(ASCII.iter().any(|(known, plain)| known == mark && plain.is_ascii()), "{mark}");
        }
    }
}
