//! What is run: batch, context, graph mode, and how full the cache is.

use super::{Scene, cell};
use crate::tui::{
    text,
    theme::Role,
    widget::prose::{Line, piece},
};
use diagnosis::i18n::Text;
use report::units;

/// A line for each fact.
pub fn workload(scene: &Scene<'_>, width: usize) -> Vec<Line> {
    const LABEL: usize = 20;
    let run = scene.moment.run;
    let label = LABEL.min(width / 2);
    let room_for = width.saturating_sub(label);
    let mut facts: Vec<(String, String)> =
        run.facts.iter().map(|(label, value)| (scene.get(*label).to_owned(), value.clone())).collect();
    if let Some((tokens, room)) = scene.moment.context() {
        let of = scene.get(Text::new("of", "/"));
        facts.push((scene.get(Text::new("context", "上下文")).to_owned(), format!("{tokens} {of} {room}")));
        let bytes = |tokens: usize| units::bytes((run.kv_bytes.saturating_mul((tokens * run.batch) as u64)) as i64);
        let share = units::share_of(tokens as i64, room as i64);
        let used = format!("{} {of} {}", bytes(tokens), bytes(room));
        let with_share = format!("{used} ({share})");
        let used = if text::width(&with_share) <= room_for { with_share } else { used };
        facts.push((scene.get(Text::new("KV cache", "KV 缓存")).to_owned(), used));
    }
    if facts.is_empty() {
        return Vec::new();
    }
    let mut out = vec![vec![scene.title(Text::new("Workload", "负载"))]];
    for (name, value) in facts {
        out.push(vec![
            piece(cell(&name, label, false), Role::Dim),
            piece(text::fit(&text::safe(&value), room_for).into_owned(), Role::Text),
        ]);
    }
    out
}
