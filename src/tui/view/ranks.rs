//! The ranks beside each other, and who waited for whom.

use super::Scene;
use crate::tui::widget::prose::{self, Line};
use diagnosis::{analysis::Layer, i18n::Text};
use report::{
    cells,
    document::{Align, Document, Inlines, Table},
    phrase,
    sections::{Part, words},
    split::{Split, UNKNOWN},
    units,
};

pub(super) fn lines(scene: &Scene<'_>, width: usize) -> Vec<Line> {
    let Some(capture) = scene.look.capture() else { return Vec::new() };
    let get = |text: Text| phrase::text(text, scene.lang);
    let mut columns = vec![
        (get(Text::new("rank", "rank")), Align::Right),
        (get(Text::new("device", "设备")), Align::Right),
        (get(Text::new("steps", "步数")), Align::Right),
        (get(Text::new("main class", "主类别")), Align::Left),
        (get(Text::new("median", "中位数")), Align::Right),
    ];
    columns.extend(Layer::ALL.map(|layer| (get(words::layer(layer)), Align::Right)));
    let mut table = Table::new(columns);
    for rank in &capture.ranks {
        let mut row: Vec<Inlines> =
            cells![rank.rank.to_string(), rank.device.to_string(), units::count(rank.steps as u64)].into();
        if let Some(class) = rank.main_class() {
            // What lies between its first collective and its last is no step.
            let median = if rank.only_collectives { UNKNOWN.to_owned() } else { units::time(class.median) };
            row.extend(cells![Inlines::name(&class.key), median]);
            row.extend(Split::of(capture, rank, class).shares().map(Inlines::from));
        }
        table.row(row);
    }
    let mut text = Document::new();
    text.table(table);
    for part in [Part::Steps, Part::Time, Part::Others, Part::JobSums] {
        text.append(part.of(capture, scene.lang));
    }
    prose::lines(&text, width)
}
