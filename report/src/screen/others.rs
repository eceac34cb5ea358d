//! The other captures of what was given, each with its file and its sentence: the screen is about one of them alone.

use super::{
    Screen, answer,
    canvas::{Line, Style, fit, left, middle, wrap_at_most},
    say,
};
use crate::{model::Capture, text};
use diagnosis::i18n::{Message, Text, Value};
use unicode_width::UnicodeWidthStr;

/// Lines of all others, where the screen has costs to show, and where it has none.
const LINES: [usize; 2] = [5, 18];
/// Lines of one sentence.
const EACH: usize = 2;
/// Most columns of a file's name.
const NAME: usize = 34;
/// Fewest columns of a sentence beside a name.
const BESIDE: usize = 30;

/// The others, those that tell the most first, as far as there is room.
pub(super) fn lines(screen: &Screen<'_>) -> Vec<Line> {
    let mut others: Vec<&Capture> = screen.all.iter().filter(|other| other.id != screen.capture.id).collect();
    others.sort_by_key(|other| std::cmp::Reverse(other.weight()));
    let label = screen.get(Text::new("Also read", "其他采集"));
    let indent = label.width() + 3;
    let width = screen.width().saturating_sub(indent);
    let names: Vec<String> = others.iter().map(|other| middle(&text::visible(&other.source), NAME)).collect();
    let named = names.iter().map(|name| name.width()).max().unwrap_or(0) + 2;
    let beside = width >= named + BESIDE;
    let room = LINES[usize::from(screen.capture.verdict.place.is_none())];
    let mut out: Vec<Line> = Vec::new();
    for (n, (other, name)) in others.iter().zip(&names).enumerate() {
        let own = Screen { capture: other, ..*screen };
        let said = wrap_at_most(&answer::said(&own), if beside { width - named } else { width }, EACH);
        let lines = said.len() + usize::from(!beside);
        // The last line is for those that find no room.
        let last = n + 1 == others.len();
        if out.len() + lines + usize::from(!last) > room {
            let text = Text::new("{n} more: --full shows all.", "另有 {n} 个：--full 显示全部。");
            let more = Message::new(text, [("n", Value::Count((others.len() - n) as u64))]);
            let more = fit(&say::message(&more, "", screen.lang), width);
            out.push(Line::of(Style::Plain, " ".repeat(indent)).then(Style::Dim, more));
            break;
        }
        let begin = |first: bool| Line::of(Style::Dim, left(if first { label } else { "" }, indent));
        if !beside {
            out.push(begin(out.is_empty()).then(Style::Strong, name.clone()));
        }
        for (row, line) in said.into_iter().enumerate() {
            let first = out.is_empty();
            let name = if row == 0 { name.as_str() } else { "" };
            let start = if beside { begin(first).then(Style::Strong, left(name, named)) } else { begin(false) };
            out.push(start.then(Style::Plain, line));
        }
    }
    out
}
