//! A timeline as a picture: what a page's timeline shows of it, for documents and messages.

use std::fmt::Write;

use model::Ns;

use super::{
    timeline::{Lane, Mark, Timeline},
    units,
};
use diagnosis::i18n::Lang;

/// Width of the picture and of the names at its left, in its own units.
const WIDTH: i64 = 1280;
const LABELS: i64 = 180;
/// Heights of the ruler, of a head and of a lane.
const RULER: i64 = 24;
const HEAD: i64 = 22;
const ROW: i64 = 18;
/// Height of the legend and of what is said below the lanes.
const FOOT: i64 = 44;
/// Parts of the ruler at most.
const TICKS: i64 = 9;
/// Width of a character in tenths, and the width from which a mark carries its name.
const GLYPH: i64 = 62;
const NAMED: i64 = 28;

/// Draws a timeline.
pub fn render(timeline: &Timeline, lang: Lang) -> String {
    let about = &timeline.about(lang);
    let heads = timeline.lanes.iter().filter(|lane| lane.head.is_some()).count() as i64;
    let height = RULER + heads * HEAD + timeline.lanes.len() as i64 * ROW + FOOT;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"10\">\n<title>{}</title>\n<style>{}</style>\n\
         <rect class=\"ground\" width=\"{WIDTH}\" height=\"{height}\"/>\n",
        escape(about),
        style(timeline)
    );
    let picture = Picture { timeline };
    picture.ruler(&mut out, height);
    let mut y = RULER;
    for lane in &timeline.lanes {
        if let Some(head) = &lane.head {
            let _ = writeln!(out, "<text class=\"head\" x=\"6\" y=\"{}\">{}</text>", y + 15, escape(head));
            y += HEAD;
        }
        picture.lane(lane, y, &mut out);
        y += ROW;
    }
    picture.evidence(y, &mut out);
    legend(timeline, y, &mut out);
    let _ = writeln!(out, "<text class=\"dim\" x=\"6\" y=\"{}\">{}</text>\n</svg>", y + 36, escape(about));
    out
}

/// The kinds of work that are seen.
fn legend(timeline: &Timeline, y: i64, out: &mut String) {
    let mut x = 6;
    for (i, kind) in timeline.kinds.iter().enumerate() {
        if timeline.lanes.iter().any(|lane| lane.marks.iter().any(|mark| mark.kind == i)) {
            let _ = write!(out, "<rect class=\"k{i}\" x=\"{x}\" y=\"{}\" width=\"9\" height=\"9\"/>", y + 9);
            let _ = writeln!(out, "<text class=\"dim\" x=\"{}\" y=\"{}\">{}</text>", x + 13, y + 17, escape(kind.name));
            x += 26 + unicode_width::UnicodeWidthStr::width(kind.name) as i64 * GLYPH / 10;
        }
    }
}

/// Labels of a ruler: where whole times would repeat, those after the first say how much later they are.
fn labels(ticks: &[Ns]) -> Vec<String> {
    let whole: Vec<String> = ticks.iter().map(|t| units::time(*t)).collect();
    let repeat = whole.windows(2).any(|pair| matches!(pair, [one, other] if one == other));
    let Some(first) = ticks.first().filter(|_| repeat) else { return whole };
    let later = ticks.iter().skip(1).map(|t| format!("+{}", units::time(t - first)));
    whole.iter().take(1).cloned().chain(later).collect()
}

/// The next longer time that is 1, 2 or 5 of a power of ten.
fn round(ns: Ns) -> Ns {
    let power = 10i64.saturating_pow(ns.max(1).ilog10());
    [1, 2, 5, 10].into_iter().map(|n| power.saturating_mul(n)).find(|step| *step >= ns).unwrap_or(power).max(1)
}

fn style(timeline: &Timeline) -> String {
    let kinds = |dark: bool| {
        timeline.kinds.iter().enumerate().fold(String::new(), |mut out, (i, kind)| {
            let _ = write!(out, ".k{i}{{fill:{}}}", if dark { &kind.dark } else { &kind.light });
            out
        })
    };
    format!(
        ".ground{{fill:#fff}}text{{fill:#1c2126}}.dim{{fill:#5f6a75}}.head{{font-weight:600}}path{{stroke:#e2e5e8}}.evidence{{stroke:#0064a4;stroke-width:1.5}}\
         .name{{fill:#fff;pointer-events:none}}.shared{{opacity:.6}}.samples{{stroke:none;fill:#0064a4}}{}\
         @media (prefers-color-scheme:dark){{.ground{{fill:#151a1f}}text{{fill:#dfe5ea}}.dim{{fill:#93a0ac}}\
         path{{stroke:#2a323a}}.evidence{{stroke:#56b4e9}}.name{{fill:#101418}}.samples{{stroke:none;fill:#56b4e9}}{}}}",
        kinds(false),
        kinds(true)
    )
}

struct Picture<'a> {
    timeline: &'a Timeline,
}

impl Picture<'_> {
    /// Hundredths of a unit from the left.
    fn x(&self, t: Ns) -> i64 {
        let window = self.timeline.window;
        let at = i128::from(t.clamp(window.start, window.end) - window.start);
        LABELS * 100 + (at * i128::from((WIDTH - LABELS) * 100) / i128::from(window.len().max(1))) as i64
    }

    fn ruler(&self, out: &mut String, height: i64) {
        let window = self.timeline.window;
        let (zero, step) = (self.timeline.zero, round(window.len() / TICKS));
        let first = (window.start.saturating_sub(zero)).div_euclid(step).saturating_add(1).saturating_mul(step);
        let ticks = (0..=TICKS).map(|i| first.saturating_add(i.saturating_mul(step)));
        let ticks: Vec<Ns> = ticks.take_while(|since| zero.saturating_add(*since) < window.end).collect();
        for (since, time) in ticks.iter().zip(labels(&ticks)) {
            let x = self.x(zero.saturating_add(*since)) / 100;
            let _ = writeln!(
                out,
                "<path d=\"M{x} 6V{}\"/><text class=\"dim\" x=\"{}\" y=\"14\">{time}</text>",
                height - FOOT,
                x + 3
            );
        }
    }

    /// A line at either end of what the picture is about.
    fn evidence(&self, below: i64, out: &mut String) {
        let Some(own) = &self.timeline.evidence else { return };
        for t in [own.span.start, own.span.end] {
            let _ = writeln!(out, "<path class=\"evidence\" d=\"M{} 0V{below}\"/>", self.x(t) / 100);
        }
    }

    fn lane(&self, lane: &Lane, y: i64, out: &mut String) {
        let label = cut(&lane.label, (LABELS - 20) * 10 / GLYPH);
        let indent = 8 + i64::from(lane.depth.min(6)) * 6;
        let _ = writeln!(out, "<text class=\"dim\" x=\"{indent}\" y=\"{}\">{}</text>", y + 12, escape(&label));
        lane.marks.iter().for_each(|mark| self.mark(mark, y, out));
        if let Some(samples) = &lane.samples {
            let [least, most] = samples.range().unwrap_or([0.0, 0.0]);
            let (least, count) = (least.min(0.0), samples.columns.len().max(1) as i64);
            for (i, [_, high]) in (0..).zip(&samples.columns).filter_map(|(i, range)| Some((i, (*range)?))) {
                let tall = ((high - least) / (most - least).max(f64::MIN_POSITIVE) * 14.0).clamp(0.5, 14.0);
                let (x, width) = (LABELS + (WIDTH - LABELS) * i / count, ((WIDTH - LABELS) / count).max(1));
                let top = y as f64 + 16.0 - tall;
                let _ = writeln!(
                    out,
                    "<rect class=\"samples\" x=\"{x}\" y=\"{top:.1}\" width=\"{width}\" height=\"{tall:.1}\"/>"
                );
            }
        }
    }

    fn mark(&self, mark: &Mark, y: i64, out: &mut String) {
        let (from, to) = (self.x(mark.span.start), self.x(mark.span.end));
        let width = (to - from).max(30);
        let name = mark.name.and_then(|name| self.timeline.names.get(name));
        let (name, label) = name.map_or(("", ""), |name| (&name.whole, name.label()));
        let shared = if mark.count > 1 { " shared" } else { "" };
        let _ = write!(
            out,
            "<rect class=\"k{}{shared}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"14\"><title>{} {}",
            mark.kind,
            hundredths(from),
            y + 2,
            // A hair between neighbours, so that two are not taken for one.
            hundredths(if width > 200 { width - 40 } else { width }),
            escape(name),
            units::exact_ns(mark.whole.len()),
        );
        if mark.count > 1 {
            let _ = write!(out, " × {}", units::count(u64::from(mark.count)));
        }
        out.push_str("</title></rect>\n");
        if width > NAMED * 100 && !label.is_empty() {
            let shown = cut(label, (width / 100 - 6) * 10 / GLYPH);
            let at = hundredths(from + 300);
            let _ = writeln!(out, "<text class=\"name\" x=\"{at}\" y=\"{}\">{}</text>", y + 12, escape(&shown));
        }
    }
}

fn hundredths(n: i64) -> String {
    format!("{}.{:02}", n / 100, n % 100)
}

/// The first `most` characters.
fn cut(text: &str, most: i64) -> String {
    let most = most.max(0) as usize;
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Text as it stands in XML, which has no form for most control characters.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_at_round_times() {
        assert_eq!([0, 1, 3, 11, 190, 501, 1_000].map(round), [1, 1, 5, 20, 200, 1_000, 1_000]);
        assert!(round(Ns::MAX) > 0);
    }

    /// A picture of 50 ns, 157 ms into a capture, had five labels that were the same.
    #[test]
    fn no_label_of_a_ruler_repeats() {
        assert_eq!(labels(&[157_100_000, 157_100_010, 157_100_020]), ["157.1 ms", "+10 ns", "+20 ns"]);
        assert_eq!(labels(&[1_000, 2_000]), ["1.0 µs", "2.0 µs"]);
        assert!(labels(&[]).is_empty());
    }

    #[test]
    fn what_has_a_meaning_in_xml_is_escaped() {
        assert_eq!(escape("a<b>&\"'\u{1b}"), "a&lt;b&gt;&amp;&quot;&#39; ");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("abc", 3), "abc");
    }
}
