//! How fast it is: tokens per second, the time of a step, and its curve.

use super::{Scene, flow};
use crate::{
    i18n::Text,
    report::units,
    tui::{
        lane::Kind,
        live::spark,
        theme::Role,
        widget::prose::{Line, piece},
    },
};

/// The numbers, and a curve of `rows` rows below them.
pub fn speed(scene: &Scene<'_>, width: usize, rows: usize) -> Vec<Line> {
    let moment = &scene.moment;
    let mut items = Vec::new();
    let mut put = |label: Text, value: Option<String>, strong: bool| {
        let role = if strong { Role::Strong } else { Role::Text };
        let value = piece(value.unwrap_or_else(|| "–".to_owned()), role);
        items.push(vec![piece(format!("{} ", scene.get(label)), Role::Dim), value]);
    };
    let percentiles = moment.percentiles();
    put(Text::new("tokens/s", "token/秒"), moment.rate().map(|rate| units::tenths((rate * 10.0).round() as i64)), true);
    put(Text::new("step p50", "步 p50"), percentiles.map(|(p50, ..)| units::time(p50)), true);
    put(Text::new("p99", "p99"), percentiles.map(|(_, p99, _)| units::time(p99)), true);
    put(Text::new("last", "最近"), moment.last().map(|step| units::time(step.ns)), false);
    put(Text::new("prefill", "预填充"), moment.prefill().map(units::time), false);
    let mut out = flow(items, width);
    let times = moment.times(width);
    if times.is_empty() {
        let none = scene.get(Text::new("no decode step yet", "尚无解码步"));
        out.push(vec![piece(none, Role::Dim)]);
        out.extend((1..rows).map(|_| Line::new()));
    } else {
        out.extend(spark::curve(&times, width, rows, Role::Kind(Kind::Matrix)));
    }
    out
}
