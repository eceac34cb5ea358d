//! The ranks beside each other, and who waited for whom.

use super::Scene;
use crate::tui::widget::prose::{self, Line};
use diagnosis::{analysis::Layer, i18n::Text};
use report::{
    markdown::{Part, words},
    table::{Align, Table},
    text, units,
};

pub(super) fn lines(scene: &Scene<'_>, width: usize) -> Vec<Line> {
    let Some(capture) = scene.look.capture() else { return Vec::new() };
    let mut columns = vec![
        (scene.get(Text::new("rank", "rank")), Align::Right),
        (scene.get(Text::new("device", "设备")), Align::Right),
        (scene.get(Text::new("steps", "步数")), Align::Right),
        (scene.get(Text::new("main class", "主类别")), Align::Left),
        (scene.get(Text::new("median", "中位数")), Align::Right),
    ];
    columns.extend(Layer::ALL.map(|layer| (scene.get(words::layer(layer)), Align::Right)));
    let mut table = Table::new(columns);
    for rank in &capture.ranks {
        let mut row = vec![rank.rank.to_string(), rank.device.to_string(), units::count(rank.steps as u64)];
        if let Some(class) = rank.main_class() {
            row.extend([text::code(&class.key, text::NAME), units::time(class.median)]);
            row.extend(class.layers().map(|ns| units::share_of(ns, class.total)));
        }
        table.row(row);
    }
    let parts = [Part::Steps, Part::Time, Part::JobSums].map(|part| part.render(capture, scene.lang)).concat();
    prose::lines(&format!("{}\n{parts}", table.markdown()), width)
}
