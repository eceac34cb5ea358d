//! A place in a capture as a person writes it and as a link names it: `step=3,t=155.9ms,for=20ms,rank=0,lane=stream7`.

use std::{fmt, str::FromStr};

use model::{Ns, Span};

use super::{
    lane::{LaneSet, Of},
    opened::Look,
    view::Place,
};
use diagnosis::i18n::{Lang, Text};
use report::units;

/// A place; what is not named stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// Number of a step.
    pub step: Option<u32>,
    /// Time from the beginning of the capture, ns.
    pub t: Option<Ns>,
    /// How much time is seen, ns.
    pub length: Option<Ns>,
    /// Number of a rank.
    pub rank: Option<u32>,
    /// Name of a lane, or a part of it.
    pub lane: Option<String>,
}

/// What the program was started on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The arguments that name the captures, as a shell reads them.
    pub paths: String,
    /// Where to look first.
    pub at: Option<At>,
}

/// A time with its unit, such as 155.9ms; a number without one is none.
pub fn time(text: &str) -> Option<Ns> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let (number, unit) = text.split_at(text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?);
    let scale = match unit {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let ns = number.parse::<f64>().ok()? * scale;
    (ns.is_finite() && ns < 9e18).then_some(ns.round() as Ns)
}

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut at = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| format!("'{part}' is not written as name=value"))?;
            let wrong = || format!("'{value}' is no {name}");
            match name.trim() {
                "step" => at.step = Some(value.trim().parse().map_err(|_| wrong())?),
                "rank" => at.rank = Some(value.trim().parse().map_err(|_| wrong())?),
                "t" => at.t = Some(time(value).ok_or_else(|| format!("'{value}' is no time such as 155.9ms"))?),
                "for" => at.length = Some(time(value).ok_or_else(|| format!("'{value}' is no time such as 20ms"))?),
                "lane" => at.lane = Some(value.trim().to_owned()),
                other => {
                    return Err(format!("'{other}' is no part of a place; the parts are step, t, for, rank, lane"));
                }
            }
        }
        match at == Self::default() {
            true => Err("a place needs one of step, t, for, rank, lane".to_owned()),
            false => Ok(at),
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |name: &str, ns: Option<Ns>| ns.map(|ns| format!("{name}={ns}ns"));
        let parts = [
            self.step.map(|step| format!("step={step}")),
            time("t", self.t),
            time("for", self.length),
            self.rank.map(|rank| format!("rank={rank}")),
            self.lane.as_ref().map(|lane| format!("lane={lane}")),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

/// Letters and digits of a name: "stream 7" is stream7.
pub fn bare(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase()
}

/// The lane of this name among those of a rank, then among all; whole names go first.
fn lane(set: &LaneSet, rank: usize, name: &str) -> Option<usize> {
    let wanted = bare(name);
    let of_rank = |at: &usize| {
        set.groups.iter().any(|group| group.lanes.contains(at) && group.rank.is_some_and(|(own, _)| own == rank))
    };
    let named = |at: &usize, whole: bool| {
        set.lanes.get(*at).is_some_and(|lane| {
            let names = [
                bare(&lane.name),
                lane.what.map_or(String::new(), |what| bare(what.get(Lang::En)) + &bare(&lane.name)),
            ];
            names.iter().any(|own| if whole { *own == wanted } else { own.contains(&wanted) })
        })
    };
    let all = || 0..set.lanes.len();
    let find =
        |whole: bool| all().filter(of_rank).find(|at| named(at, whole)).or_else(|| all().find(|at| named(at, whole)));
    find(true).or_else(|| find(false))
}

/// The place in a capture, and the rank that it is on as an index.
///
/// # Errors
/// What is not there, in words.
pub fn find(at: &At, look: &Look<'_>, rank: usize, lang: Lang) -> Result<(usize, Place), String> {
    let fill = |text: Text, name: &str, value: String| text.get(lang).replace(name, &value);
    let ranks = look.analysis().map_or(&[][..], |analysis| &analysis.ranks);
    let rank = match at.rank {
        None => rank,
        Some(number) => ranks
            .iter()
            .position(|rank| rank.rank == number)
            .ok_or_else(|| fill(Text::new("there is no rank {n}", "没有 rank {n}"), "{n}", number.to_string()))?,
    };
    let steps = ranks.get(rank).map_or(&[][..], |rank| &rank.steps);
    let step = match at.step {
        None => None,
        Some(number) => Some(steps.iter().find(|step| step.index == number).ok_or_else(|| {
            let known = match (steps.first(), steps.last()) {
                (Some(first), Some(last)) => format!("{} – {}", first.index, last.index),
                _ => "–".to_owned(),
            };
            fill(Text::new("there is no step {n}; ", "没有第 {n} 步；"), "{n}", number.to_string())
                + &fill(Text::new("the steps are {all}", "步的编号为 {all}"), "{all}", known)
        })?),
    };
    let extent = look.lanes.extent.unwrap_or(Span::new(0, 1));
    let cursor = at.t.map(|t| extent.start.saturating_add(t));
    if let Some(t) = cursor.filter(|t| *t > extent.end) {
        let length = units::brief(extent.len());
        let past = Text::new("the capture ends after {length}", "采集在 {length} 处结束");
        return Err(fill(past, "{length}", length) + &format!(" ({})", units::brief(t - extent.start)));
    }
    let lane = match &at.lane {
        None => None,
        Some(name) => Some(lane(look.lanes, rank, name).ok_or_else(|| {
            fill(Text::new("there is no lane '{name}'", "没有泳道“{name}”"), "{name}", report::text::plain(name, 60))
        })?),
    };
    let lane = lane.or_else(|| step.and_then(|_| look.lanes.position(Of::Steps(rank))));
    let window = step.map(|step| look.lanes.aligned(rank, step.window));
    let window = match (at.length, cursor.or(window.map(|window| window.start))) {
        (Some(length), Some(middle)) => {
            let start = middle.saturating_sub(length / 2);
            Some(Span::new(start, start.saturating_add(length.max(1))))
        }
        // A time elsewhere goes before the step, which then says how much is seen.
        (None, Some(t)) => window.map(|window| match window.contains(t) {
            true => window,
            false => Span::new(t.saturating_sub(window.len() / 2), t.saturating_add(window.len() / 2)),
        }),
        _ => window,
    };
    Ok((rank, Place::Window { window, cursor: cursor.or(window.map(|window| window.start)), lane }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written_and_what_is_wrong_is_named() {
        let at: At = "step=3, t=155.9ms, for=20 us, rank=0, lane=stream 7".parse().unwrap_or_default();
        let written = "step=3,t=155900000ns,for=20000ns,rank=0,lane=stream 7";
        assert_eq!(at.to_string(), written);
        assert_eq!(written.parse(), Ok(at));
        for (text, named) in
            [("t=5", "'5'"), ("step", "'step'"), ("colour=red", "'colour'"), ("step=x", "'x'"), ("", "step, t")]
        {
            let refused = text.parse::<At>().err().unwrap_or_default();
            assert!(refused.contains(named), "{text}: {refused}");
        }
        assert_eq!([time("1.5s"), time("3"), time("-1ms"), time("nan ms")], [Some(1_500_000_000), None, None, None]);
    }
}
