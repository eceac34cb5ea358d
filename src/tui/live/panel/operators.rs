//! The operators of the newest steps, the longest first.

use super::{Scene, cell};
use crate::tui::{
    text,
    theme::Role,
    widget::prose::{Line, piece},
};
use diagnosis::i18n::Text;
use report::units;

/// A line for each operator from `top` on, under the names of the columns; and how many there are.
pub fn operators(scene: &Scene<'_>, width: usize, height: usize, top: usize) -> (Vec<Line>, usize) {
    const COLUMNS: [(Text, usize); 3] =
        [(Text::new("per step", "每步"), 13), (Text::new("share", "占比"), 8), (Text::new("calls", "次数"), 6)];
    let (ops, steps, total) = scene.moment.ops();
    let fits = COLUMNS.iter().scan(12, |used, (_, width)| {
        *used += width;
        Some(*used)
    });
    let columns = fits.take_while(|used| *used <= width).count();
    let name = width - COLUMNS.iter().take(columns).map(|(_, width)| width).sum::<usize>().min(width);
    let mut head = vec![piece(cell(scene.get(Text::new("Operators", "算子")), name, false), Role::Title)];
    let titles = COLUMNS.iter().take(columns);
    head.extend(titles.map(|(title, width)| piece(cell(scene.get(*title), *width, true), Role::Dim)));
    let mut out = vec![head];
    let per = |ns: i64| ns / (steps.max(1) as i64);
    for op in ops.iter().skip(top).take(height.saturating_sub(1)) {
        let known = scene.moment.state.names.get(usize::from(op.name)).map_or("?", String::as_str);
        let calls = units::tenths(i64::from(op.count) * 10 / steps.max(1) as i64);
        let cells = [units::time(per(op.ns)), units::share_of(op.ns, total), calls.trim_end_matches(".0").to_owned()];
        let mut line = vec![piece(cell(&text::safe(known), name, false), Role::Name)];
        let shown = cells.iter().zip(COLUMNS).take(columns);
        line.extend(shown.map(|(value, (_, width))| piece(cell(value, width, true), Role::Text)));
        out.push(line);
    }
    if ops.is_empty() {
        out.push(vec![piece(scene.get(Text::new("no record of an operator yet", "尚无算子记录")), Role::Dim)]);
    }
    (out, ops.len())
}
