//! Paragraphs in lines of a width: broken at spaces and between wide characters, but not where people would not: a number
//! keeps its unit, and no line begins with a mark that closes something.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::prose::{Line, Piece, piece};
use crate::tui::theme::Role;

/// Units that stay with their number.
const UNITS: [&str; 16] =
    ["ns", "µs", "ms", "s", "%", "B", "KiB", "MiB", "GiB", "TiB", "W", "MHz", "GB/s", "TFLOP/s", "°C", "×"];
/// Marks before which no line ends.
const CLOSING: &str = "、，。；：！？）】》」』”’…";
/// Marks after which no line ends.
const OPENING: &str = "（【《「『“‘";

/// A cluster of characters that shares cells, with its width.
type Cluster<'a> = (&'a str, usize, Role);

/// Breaks a paragraph into lines, inside a word only where it is longer than a line. The first line begins with the first
/// indent, all others with the second.
pub fn wrap(line: &[Piece], width: usize, (first, then): (&str, &str)) -> Vec<Line> {
    let width = width.max(4);
    let clusters = line.iter().flat_map(|part| {
        part.text.grapheme_indices(true).map(|(at, cluster)| {
            let rest = part.text.get(at + cluster.len()..).unwrap_or("");
            let glued = cluster == " " && begins_with_unit(rest);
            (cluster, cluster.width().min(2), part.role, glued)
        })
    });
    let mut lines = Lines { out: Vec::new(), current: Wrapped::new(first), then, width };
    let mut word: Vec<Cluster<'_>> = Vec::new();
    for (cluster, wide, role, glued) in clusters {
        let last = word.last().copied();
        if cluster == " " {
            let after_number = last.is_some_and(|(last, ..)| last.ends_with(|c: char| c.is_ascii_digit()));
            if glued && after_number {
                word.push((cluster, wide, role));
                continue;
            }
            lines.put(&mut word);
            lines.space(role);
            continue;
        }
        if last.is_some_and(|last| may_break(last, (cluster, wide))) {
            lines.put(&mut word);
        }
        word.push((cluster, wide, role));
    }
    lines.put(&mut word);
    lines.out.push(lines.current.finish());
    lines.out
}

/// Whether the text goes on with a unit and then with something that ends it.
fn begins_with_unit(rest: &str) -> bool {
    let ends = |after: &str| !after.starts_with(|c: char| c.is_alphanumeric() || c == '/');
    UNITS.iter().any(|unit| rest.strip_prefix(unit).is_some_and(ends))
}

/// Whether a line may end between two clusters that no space separates.
fn may_break((before, wide_before, _): Cluster<'_>, (after, wide_after): (&str, usize)) -> bool {
    (wide_before == 2 || wide_after == 2) && !CLOSING.contains(after) && !OPENING.contains(before)
}

/// The lines so far.
struct Lines<'a> {
    out: Vec<Line>,
    current: Wrapped,
    then: &'a str,
    width: usize,
}

impl Lines<'_> {
    fn begin(&mut self) {
        let full = std::mem::replace(&mut self.current, Wrapped::new(self.then));
        self.out.push(full.finish());
    }

    /// Adds what may not be broken, in a new line where it does not fit this one.
    fn put(&mut self, word: &mut Vec<Cluster<'_>>) {
        let long: usize = word.iter().map(|(_, width, _)| width).sum();
        if self.current.used + long > self.width && !self.current.fresh {
            self.begin();
        }
        for (cluster, wide, role) in word.drain(..) {
            if self.current.used + wide > self.width {
                self.begin();
            }
            self.current.add(cluster, wide, role);
        }
    }

    fn space(&mut self, role: Role) {
        if !self.current.fresh && self.current.used < self.width {
            self.current.add(" ", 1, role);
        }
    }
}

/// A line as far as it is filled.
struct Wrapped {
    line: Line,
    used: usize,
    /// Whether nothing but the indent stands in it.
    fresh: bool,
}

impl Wrapped {
    fn new(indent: &str) -> Self {
        let line = if indent.is_empty() { Line::new() } else { vec![piece(indent, Role::Dim)] };
        Self { line, used: indent.width(), fresh: true }
    }

    fn add(&mut self, cluster: &str, width: usize, role: Role) {
        match self.line.last_mut().filter(|last| last.role == role && !self.fresh) {
            Some(last) => last.text.push_str(cluster),
            None => self.line.push(piece(cluster, role)),
        }
        self.used += width;
        self.fresh = false;
    }

    fn finish(mut self) -> Line {
        if let Some(last) = self.line.last_mut() {
            last.text.truncate(last.text.trim_end().len());
        }
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::widget::prose::plain;

    fn shown(text: &str, width: usize) -> Vec<String> {
        wrap(&[piece(text, Role::Text)], width, ("", "")).iter().map(plain).collect()
    }

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(shown("between 648.2 µs and more", 13), ["between", "648.2 µs and", "more"]);
        assert_eq!(shown("12 seconds or 12 s", 8), ["12", "seconds", "or 12 s"]);
        assert_eq!(shown("a (−52.4 %) b", 9), ["a", "(−52.4 %)", "b"]);
    }

    #[test]
    fn marks_stay_with_what_they_close_or_open() {
        assert_eq!(shown("主机、设备", 4), ["主", "机、", "设备"]);
        assert_eq!(shown("甲乙（丙丁）", 6), ["甲乙", "（丙", "丁）"]);
        assert_eq!(shown("+984 ns、rt.host", 9), ["+984 ns、", "rt.host"]);
    }
}
