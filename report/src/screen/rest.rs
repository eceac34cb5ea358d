//! What is not known, and what to do next.

use super::{
    Screen,
    canvas::{Line, Style, left, wrap_at_most},
    costs, say,
};
use diagnosis::i18n::Text;
use unicode_width::UnicodeWidthStr;

/// Statements of what is not known, and their lines.
const UNKNOWN: usize = 4;
const LINES: usize = 6;

/// What was not judged and would matter, with what would decide it; what could be worth most comes first.
pub(super) fn doubts(screen: &Screen<'_>) -> Vec<String> {
    let verdict = &screen.capture.verdict;
    let class = verdict.place.as_ref().map_or("", |place| place.class.as_str());
    let mut unjudged: Vec<_> = verdict.unjudged.iter().collect();
    unjudged.sort_by(|a, b| b.share.total_cmp(&a.share));
    let said = |sentence| capitalised(&say::message(sentence, class, screen.lang));
    unjudged.into_iter().take(UNKNOWN).map(|doubt| said(&doubt.sentence)).collect()
}

/// The same on lines.
pub(super) fn unknown(screen: &Screen<'_>) -> Vec<Line> {
    let label = screen.get(Text::new("Not known", "未知"));
    let indent = label.width() + 3;
    let width = screen.width().saturating_sub(indent);
    let mut out: Vec<Line> = Vec::new();
    for doubt in &doubts(screen) {
        let lines = wrap_at_most(doubt, width, LINES);
        // A sentence that would be cut is left to the whole report.
        if !out.is_empty() && out.len() + lines.len() > LINES {
            continue;
        }
        for line in lines {
            let first = if out.is_empty() { label } else { "" };
            out.push(Line::of(Style::Dim, left(first, indent)).then(Style::Plain, line));
        }
    }
    out
}

/// A sentence begins with a capital letter.
fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Commands that go on from here.
pub(super) fn next(screen: &Screen<'_>) -> Vec<Line> {
    let label = screen.get(Text::new("Next", "下一步"));
    let indent = screen.get(Text::new("Not known", "未知")).width().max(label.width()) + 3;
    let mut commands: Vec<(String, Text)> = Vec::new();
    if !screen.capture.ranks.is_empty() {
        commands.push(("strato view FILE".into(), Text::new("the evidence in the timeline", "在时间线中查看证据")));
    }
    if let Some(rule) = costs::first(screen) {
        commands.push((format!("strato explain {rule}"), Text::new("what the rule says", "该规则的说明")));
    }
    commands.push(("strato diagnose --full FILE".into(), Text::new("everything", "完整报告")));
    let widest = commands.iter().map(|(command, _)| command.width()).max().unwrap_or(0);
    let words = commands.iter().map(|(_, what)| screen.get(*what).width()).max().unwrap_or(0);
    // Where there is no room beside a command, its words are left out: it says itself what it does.
    let beside = indent + widest + 2 + words <= screen.width();
    let indent = if indent + widest <= screen.width() { indent } else { label.width() + 1 };
    let line = |(n, (command, what)): (usize, &(String, Text))| {
        let first = if n == 0 { label } else { "" };
        let line = Line::of(Style::Dim, left(first, indent));
        match beside {
            true => line.then(Style::Strong, left(command, widest + 2)).then(Style::Plain, screen.get(*what)),
            false => line.then(Style::Strong, command.clone()),
        }
    };
    commands.iter().enumerate().map(line).collect()
}
