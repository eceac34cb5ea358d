//! Counters: of the server, the devices, the machine, this process, and what watching costs. A counter that gives nothing is
//! there with its reason.

use model::Reading;

use super::{Scene, cell};
use crate::tui::{
    lane::Kind,
    live::{model::Group, reasons, spark, state::Series, words},
    text,
    theme::Role,
    widget::prose::{Line, piece},
};
use diagnosis::i18n::Text;

const LABEL: usize = 20;
const VALUE: usize = 12;

/// A line for each counter under the name of its group.
pub fn gauges(scene: &Scene<'_>, width: usize) -> Vec<Line> {
    let mut out = Vec::new();
    let mut group = None;
    // Devices that have rows of their own come last.
    let is_device = |of: &Group| matches!(of, Group::Device(_));
    let apart = super::devices::of(scene).len() >= super::SEVERAL;
    let first = scene.moment.gauges().filter(|(of, ..)| !apart || !is_device(of));
    let last = scene.moment.gauges().filter(|(of, ..)| apart && is_device(of));
    for (of, name, series) in first.chain(last) {
        if group != Some(of) {
            group = Some(of);
            out.push(vec![piece(text::fit(&title(scene, of), width).into_owned(), Role::Title)]);
        }
        out.push(gauge(scene, name, series, width));
    }
    out
}

fn title(scene: &Scene<'_>, group: &Group) -> String {
    let of = |text: Text, name: &str| format!("{} {}", scene.get(text), text::safe(name));
    match group {
        Group::Server(name) => of(Text::new("Server", "服务"), name),
        Group::Device(name) => of(Text::new("Device", "设备"), name),
        Group::Host => scene.get(Text::new("Machine", "主机")).to_owned(),
        Group::Process => scene.get(Text::new("This process", "本进程")).to_owned(),
        Group::Watching => scene.get(Text::new("What watching costs, of one core", "观测开销（占单核）")).to_owned(),
    }
}

fn gauge(scene: &Scene<'_>, name: &str, series: &Series, width: usize) -> Line {
    let label = words::label(name).map_or_else(|| text::safe(name), |text| scene.get(text).to_owned());
    let mut line = vec![piece(cell(&label, LABEL.min(width), false), Role::Dim)];
    let room = width.saturating_sub(LABEL);
    match series.value(scene.moment.at) {
        Reading::Value(value) => {
            let value = words::value(value, name, &series.unit);
            line.push(piece(cell(&value, VALUE.min(room), true), Role::Text));
            let rest = room.saturating_sub(VALUE + 1);
            // The newest values are enough for the room there is.
            let mut values: Vec<Option<f64>> =
                series.until(scene.moment.at).rev().take(rest).map(|(_, value)| *value).collect();
            values.reverse();
            if rest > 3 && !is_constant(&values) {
                line.push(piece(" ", Role::Text));
                line.extend(spark::curve(&values, rest, 1, Role::Kind(Kind::Device)).into_iter().flatten());
            }
        }
        Reading::Unavailable(reason) => {
            let said = text::safe(&reasons::said(&reason, scene.lang));
            line.push(piece(text::fit(&format!("– {said}"), room).into_owned(), Role::Dim));
        }
    }
    line
}

/// Whether there is nothing to see in a curve.
fn is_constant(values: &[Option<f64>]) -> bool {
    values.windows(2).all(|pair| matches!(pair, [one, other] if one == other))
}
