//! Text in cells. Everything that comes from a capture passes through here on its way to the screen: what acts on a terminal
//! is written out, and one cell holds one cluster of bounded size, whatever a name is made of.

use std::borrow::Cow;

use ratatui::{buffer::Buffer, layout::Rect, style::Style};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use report::text;

/// Characters of a capture's text that are looked at for a line: more than the widest terminal shows.
const LONGEST: usize = 600;
/// Bytes of one cluster that a cell holds: a letter with a few marks. What has more is shown by its first character.
const CLUSTER: usize = 24;
/// What stands where text was cut.
const CUT: &str = "…";
/// What stands for a character that would act on the terminal. Views make names safe and legible before they draw them; this
/// is for the one that forgot.
const ACTS: &str = "\u{fffd}";

/// Text of a capture, made safe for a cell and bounded.
pub fn safe(name: &str) -> String {
    text::plain(name, LONGEST)
}

/// Whether every byte is a character that takes one cell, as most text is: nothing has to be taken apart.
fn is_simple(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Cells that a text takes.
pub fn width(text: &str) -> usize {
    if is_simple(text) { text.len() } else { clusters(text).map(|(_, width)| width).sum() }
}

/// Clusters that share a cell, with the cells they take; those that would take none are left out.
fn clusters(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let cluster = |cluster: &'_ str| {
        let whole = cluster.len() <= CLUSTER;
        if whole { cluster.len() } else { cluster.chars().next().map_or(0, char::len_utf8) }
    };
    text.graphemes(true).filter_map(move |g| {
        let shown = g.get(..cluster(g))?;
        if shown.chars().any(text::acts) {
            return Some((ACTS, 1));
        }
        Some((shown, shown.width().min(2))).filter(|(_, width)| *width > 0)
    })
}

/// `text` cut at its end to `most` cells.
pub fn fit(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most || width(text) <= most {
        return Cow::Borrowed(text);
    }
    if let Some(head) = text.get(..most.saturating_sub(1)).filter(|_| most > 0 && is_simple(text)) {
        return Cow::Owned(format!("{head}{CUT}"));
    }
    let mut out = String::new();
    let mut used = 0;
    for (cluster, width) in clusters(text) {
        if used + width >= most {
            break;
        }
        used += width;
        out.push_str(cluster);
    }
    if most > 0 {
        out.push_str(CUT);
    }
    Cow::Owned(out)
}

/// Writes `text` from `(x, y)` on into at most `most` cells, cut where it is longer, and returns the cells that it took.
pub fn put(buf: &mut Buffer, (x, y): (u16, u16), text: &str, most: u16, style: Style) -> u16 {
    let area = buf.area;
    if y < area.top() || y >= area.bottom() || x < area.left() || x >= area.right() {
        return 0;
    }
    let most = most.min(area.right() - x);
    let text = fit(text, usize::from(most));
    let mut at = x;
    if is_simple(&text) {
        for letter in text.chars() {
            if let Some(cell) = buf.cell_mut((at, y)) {
                cell.set_char(letter).set_style(style);
            }
            at += 1;
        }
        return at - x;
    }
    for (cluster, width) in clusters(&text) {
        let width = width as u16;
        if at + width > x + most {
            break;
        }
        if let Some(cell) = buf.cell_mut((at, y)) {
            cell.set_symbol(cluster).set_style(style);
        }
        for beside in 1..width {
            if let Some(cell) = buf.cell_mut((at + beside, y)) {
                cell.reset();
                cell.set_style(style);
            }
        }
        at += width;
    }
    at - x
}

/// Writes `text` so that it ends before `right`.
pub fn put_right(buf: &mut Buffer, (left, right, y): (u16, u16, u16), text: &str, style: Style) {
    let most = right.saturating_sub(left);
    let taken = width(&fit(text, usize::from(most))) as u16;
    put(buf, (right.saturating_sub(taken.min(most)), y), text, most, style);
}

/// Fills a row of cells with one symbol.
pub fn fill(buf: &mut Buffer, (x, y): (u16, u16), count: u16, symbol: &str, style: Style) {
    for x in x..x.saturating_add(count) {
        if let Some(cell) = buf.cell_mut((x, y)) {
            cell.set_symbol(symbol).set_style(style);
        }
    }
}

/// The rows of an area as text; a wide character covers the cell after it.
pub fn rows(buf: &Buffer, area: Rect) -> Vec<String> {
    let row = |y: u16| {
        let (mut line, mut covered) = (String::new(), 0);
        for x in area.left()..area.right() {
            let symbol = buf.cell((x, y)).map_or(" ", |cell| cell.symbol());
            if covered > 0 {
                covered -= 1;
                continue;
            }
            covered = width(symbol).saturating_sub(1);
            line.push_str(symbol);
        }
        line.truncate(line.trim_end().len());
        line
    };
    (area.top()..area.bottom()).map(row).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn wide_and_combined_characters_are_cut_between_cells() {
        assert_eq!(fit("矩阵乘法", 5), "矩阵…");
        assert_eq!(fit("矩阵乘法", 8), "矩阵乘法");
        assert_eq!(fit("abc", 0), "");
        assert_eq!(width("한국어"), 6);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(fit("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
    }

    #[test]
    fn a_hostile_name_fills_its_cells_and_no_more() {
        let stack = format!("a{}b", "\u{301}".repeat(100_000));
        let hostile = format!("\u{1b}[2J\u{202e}{stack}");
        let area = Rect::new(0, 0, 40, 1);
        let mut buf = Buffer::empty(area);
        put(&mut buf, (0, 0), &safe(&hostile), 40, Style::default());
        for x in 0..40 {
            let symbol = buf.cell((x, 0)).unwrap().symbol();
            assert!(symbol.len() <= CLUSTER && !symbol.contains(['\u{1b}', '\u{202e}']), "{symbol:?}");
        }
        let mut raw = Buffer::empty(area);
        put(&mut raw, (0, 0), &stack, 40, Style::default());
        assert_eq!(raw.cell((0, 0)).unwrap().symbol(), "a");
        assert_eq!(raw.cell((1, 0)).unwrap().symbol(), "b");
    }

    #[test]
    fn what_nobody_made_safe_still_acts_on_nothing() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 9, 1));
        let taken = put(&mut buf, (0, 0), "a\u{1b}[2J\u{202e}\r\nz", 9, Style::default());
        assert_eq!(rows(&buf, buf.area), ["a\u{fffd}[2J\u{fffd}\u{fffd}z"]);
        assert_eq!((taken, width("a\u{1b}[2J\u{202e}\r\nz")), (8, 8));
    }

    #[test]
    fn plain_letters_are_cut_and_put_as_all_others_are() {
        assert_eq!((fit("abcdef", 4), fit("abcdef", 1), fit("abcdef", 0)), ("abc…".into(), "…".into(), "".into()));
        let mut buf = Buffer::empty(Rect::new(0, 0, 4, 1));
        assert_eq!(put(&mut buf, (1, 0), "abcdef", 9, Style::default()), 3);
        assert_eq!(rows(&buf, buf.area), [" ab…"]);
    }

    #[test]
    fn nothing_is_written_outside() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 3, 1));
        assert_eq!(put(&mut buf, (1, 0), "矩阵", 9, Style::default()), 1);
        assert_eq!(put(&mut buf, (3, 0), "x", 9, Style::default()), 0);
        assert_eq!(put(&mut buf, (0, 4), "x", 9, Style::default()), 0);
        put_right(&mut buf, (0, 3, 0), "ab", Style::default());
        assert_eq!(buf.cell((2, 0)).unwrap().symbol(), "b");
    }
}
