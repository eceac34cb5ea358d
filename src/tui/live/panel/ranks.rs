//! The ranks beside each other: how long each computed and waited, and which one the others wait for.

use super::{Scene, cell};
use crate::tui::{
    glyph,
    theme::Role,
    widget::prose::{Line, piece},
};
use diagnosis::i18n::Text;
use report::units;

/// A lane for each rank, as many as `most` lines hold.
pub fn ranks(scene: &Scene<'_>, width: usize, most: usize) -> Vec<Line> {
    const LABEL: usize = 9;
    const AFTER: usize = 26;
    let moment = &scene.moment;
    let count = moment.state.ranks.len();
    if count < 2 || most < 2 {
        return Vec::new();
    }
    let (late, steps) = moment.late();
    let latest = late.iter().enumerate().max_by_key(|(_, count)| **count).filter(|(_, count)| **count * 2 > steps);
    let mut out = vec![vec![
        scene.title(Text::new("Ranks", "Rank")),
        piece(scene.get(Text::new("  mean step, with waits", "  平均步时间，含等待")), Role::Dim),
    ]];
    let sums: Vec<_> = (0..count).map(|rank| moment.layers(rank)).collect();
    let mean = |(layers, steps): &([i64; 4], usize)| layers.map(|ns| ns / *steps as i64);
    let longest: i64 = sums.iter().flatten().map(|sum| mean(sum).iter().sum()).max().unwrap_or(1);
    let room = width.saturating_sub(LABEL + AFTER).max(4);
    // The late rank is shown, wherever it stands.
    let mut shown: Vec<usize> = (0..count).take(most - 1).collect();
    if let Some((rank, _)) = latest.filter(|(rank, _)| !shown.contains(rank)) {
        shown.pop();
        shown.push(rank);
    }
    for rank in shown {
        let is_late = latest.is_some_and(|(late, _)| late == rank);
        let mark = if is_late { glyph::POINTER } else { " " };
        let label = cell(&format!("{mark} rank {rank}"), LABEL, false);
        let mut line = vec![piece(label, if is_late { Role::Warn } else { Role::Text })];
        match sums.get(rank).and_then(Option::as_ref).map(mean) {
            Some(layers) => {
                let own: i64 = layers.iter().sum();
                let cells = (i128::from(own) * room as i128 / i128::from(longest.max(1))) as usize;
                line.extend(scene.bar(layers, own, cells.min(room)));
                line.push(piece(" ".repeat(room - cells.min(room)), Role::Text));
                let wait = units::share_of(layers[2], own);
                let comm = scene.get(Text::new("comm", "通信"));
                line.push(piece(format!(" {}", cell(&format!("{comm} {wait}"), 14, false)), Role::Text));
            }
            None => line.push(piece("–", Role::Dim)),
        }
        if let Some((_, count)) = latest.filter(|_| is_late) {
            let late = scene.get(Text::new("late", "滞后"));
            line.push(piece(format!("{late} {count}/{steps}"), Role::Warn));
        }
        out.push(line);
    }
    if count > out.len() - 1 {
        let more = scene.get(Text::new("more ranks", "个 rank 未显示"));
        let hidden = count - (out.len() - 1);
        if let Some(title) = out.first_mut() {
            title.push(piece(format!("  +{hidden} {more}"), Role::Dim));
        }
    }
    out
}
