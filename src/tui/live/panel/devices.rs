//! The devices in a row each: what they do, how full, how warm and how fast they are, and what they did before.

use std::collections::BTreeMap;

use model::Reading;

use super::{Scene, cell};
use crate::tui::{
    lane::Kind,
    live::{model::Group, spark, state::Series},
    text,
    theme::Role,
    widget::prose::{Line, piece},
};
use diagnosis::i18n::Text;

/// Devices from which each has one row, and its counters stand further down.
pub const SEVERAL: usize = 2;
/// Fewest cells of the name, of a number, and of the curve.
const NAME: usize = 22;
const NUMBER: usize = 9;
const CURVE: usize = 8;
/// Shares and temperatures from which a number warns.
const WARM: f64 = 85.0;
const TIGHT: f64 = 0.97;

type Counters<'a> = BTreeMap<&'a str, &'a Series>;

/// The devices that tell how busy they are, with their counters.
pub fn of<'a>(scene: &Scene<'a>) -> Vec<(&'a str, Counters<'a>)> {
    let mut out: Vec<(&str, Counters<'_>)> = Vec::new();
    for (group, name, series) in scene.moment.gauges() {
        let Group::Device(own) = group else { continue };
        if out.last().is_none_or(|(last, _)| last != own) {
            out.push((own, Counters::new()));
        }
        if let Some((_, counters)) = out.last_mut() {
            counters.insert(name, series);
        }
    }
    out.retain(|(_, counters)| counters.contains_key("utilisation"));
    out
}

/// A row for each of them under titles; nothing for fewer than [`SEVERAL`].
pub fn devices(scene: &Scene<'_>, width: usize) -> Vec<Line> {
    let all = of(scene);
    if all.len() < SEVERAL {
        return Vec::new();
    }
    let titles = [
        Text::new("busy", "利用率"),
        Text::new("memory", "显存"),
        Text::new("W / cap", "功耗/上限"),
        Text::new("°C", "°C"),
        Text::new("MHz", "MHz"),
    ];
    let longest = all.iter().map(|(of, _)| text::width(of) + 1).max().unwrap_or(0).max(NAME);
    let name = longest.min(width.saturating_sub(titles.len() * NUMBER + CURVE + 2)).max(8);
    let numbers = (width.saturating_sub(name) / NUMBER).min(titles.len());
    let curve = width.saturating_sub(name + numbers * NUMBER + 2);
    let mut head = vec![piece(cell(scene.get(Text::new("Devices", "设备")), name, false), Role::Title)];
    head.extend(titles.iter().take(numbers).map(|title| piece(cell(scene.get(*title), NUMBER, true), Role::Dim)));
    if curve >= CURVE {
        let scale = scene.get(Text::new("  0–100 %", "  0–100 %"));
        head.push(piece(text::fit(scale, curve + 2).into_owned(), Role::Dim));
    }
    let mut out = vec![head];
    out.extend(all.iter().map(|(of, counters)| row(scene, (of, counters), (name, numbers, curve))));
    out
}

fn row(
    scene: &Scene<'_>,
    (of, counters): (&str, &Counters<'_>),
    (name, numbers, curve): (usize, usize, usize),
) -> Line {
    let at = scene.moment.at;
    let get = |name: &str| counters.get(name).and_then(|series| series.value(at).value().copied());
    let whole = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.0}"));
    let percent = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.0} %"));
    let filled = get("memory_used").zip(get("memory_total").filter(|total| *total > 0.0));
    let memory = filled.map(|(used, total)| used / total * 100.0).or_else(|| get("memory_utilisation"));
    let (power, cap) = (get("power"), get("power_cap"));
    let both = match cap {
        Some(cap) => format!("{}/{cap:.0}", whole(power)),
        None => whole(power),
    };
    let tight = power.zip(cap).is_some_and(|(power, cap)| cap > 0.0 && power >= TIGHT * cap);
    let throttled = counters.iter().any(|(name, series)| {
        name.starts_with("throttle_") && matches!(series.value(at), Reading::Value(value) if value >= 1.0)
    });
    let role = |warns: bool| if warns { Role::Warn } else { Role::Text };
    let cells = [
        (percent(get("utilisation")), role(false)),
        (percent(memory), role(memory.is_some_and(|share| share >= TIGHT * 100.0))),
        (both, role(tight)),
        (whole(get("temperature")), role(get("temperature").is_some_and(|heat| heat >= WARM))),
        (whole(get("clock")), role(throttled)),
    ];
    let mut line = vec![piece(cell(&text::safe(of), name, false), Role::Text)];
    line.extend(cells.into_iter().take(numbers).map(|(value, role)| piece(cell(&value, NUMBER, true), role)));
    if curve >= CURVE {
        let values = counters.get("utilisation").map(|series| {
            let mut values: Vec<Option<f64>> = series.until(at).rev().take(curve).map(|(_, value)| *value).collect();
            values.reverse();
            values
        });
        line.push(piece("  ", Role::Text));
        let drawn = spark::scaled(&values.unwrap_or_default(), curve, 100.0, Role::Kind(Kind::Device));
        line.extend(drawn);
    }
    line
}
