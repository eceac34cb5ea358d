//! What happened, the newest last.

use super::Scene;
use crate::tui::{
    text,
    theme::Role,
    widget::prose::{Line, piece},
};
use diagnosis::i18n::{Lang, Text};
use report::units;

/// The newest events in `height` lines.
pub fn events(scene: &Scene<'_>, width: usize, height: usize) -> Vec<Line> {
    let mut out = vec![vec![scene.title(Text::new("Events", "事件"))]];
    let known = scene.moment.state.events.iter().rev().filter(|(at, _)| *at <= scene.moment.at);
    let mut newest: Vec<_> = known.take(height.saturating_sub(1)).collect();
    newest.reverse();
    for (at, event) in newest {
        let said = if scene.lang == Lang::Zh { &event.zh } else { &event.en };
        let seconds = units::tenths(at / 100_000_000);
        let line = format!("{seconds:>7} s  {}", text::safe(said));
        out.push(vec![piece(text::fit(&line, width).into_owned(), if event.warns { Role::Warn } else { Role::Text })]);
    }
    out
}
