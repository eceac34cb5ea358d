//! How fast it is: tokens per second, the time of a step, and its curve.

use super::{Scene, flow};
use crate::tui::{
    lane::Kind,
    live::spark,
    theme::Role,
    widget::prose::{Line, piece},
};
use diagnosis::i18n::{Lang, Text};
use report::units;

/// The numbers, and a curve of `rows` rows below them.
pub fn speed(scene: &Scene<'_>, width: usize, rows: usize) -> Vec<Line> {
    let moment = &scene.moment;
    let mut items = Vec::new();
    // With the number of the newest steps that a value is of: they differ.
    let mut put = |label: Text, value: Option<String>, of: Option<usize>, strong: bool| {
        let role = if strong { Role::Strong } else { Role::Text };
        let value = piece(value.unwrap_or_else(|| "–".to_owned()), role);
        let mut item = vec![piece(format!("{} ", scene.get(label)), Role::Dim), value];
        item.extend(of.map(|steps| match (scene.lang, steps) {
            (Lang::En, 1) => piece(" of 1 step", Role::Dim),
            (Lang::En, _) => piece(format!(" of {steps} steps"), Role::Dim),
            (Lang::Zh, _) => piece(format!("（{steps} 步）"), Role::Dim),
        }));
        items.push(item);
    };
    let (rate, percentiles) = (moment.rate(), moment.percentiles());
    let tokens = rate.map(|(rate, _)| units::tenths((rate * 10.0).round() as i64));
    put(Text::new("tokens/s", "token/秒"), tokens, rate.map(|(_, steps)| steps), true);
    put(Text::new("step p50", "步 p50"), percentiles.map(|(p50, ..)| units::time(p50)), None, true);
    let steps = percentiles.map(|(_, _, steps)| steps);
    put(Text::new("p99", "p99"), percentiles.map(|(_, p99, _)| units::time(p99)), steps, true);
    put(Text::new("last", "最近"), moment.last().map(|step| units::time(step.ns)), None, false);
    put(Text::new("prefill", "预填充"), moment.prefill().map(units::time), None, false);
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
