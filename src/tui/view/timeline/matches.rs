//! What a search finds: names with how often, how long in all and at most.

use std::cmp::Reverse;

use model::{Ns, StringId, TrackKind};
use rustc_hash::FxHashMap;

use super::{NOT_FOUND, Timeline, detail, seek::name_id};
use crate::tui::{
    lane::Of,
    text,
    theme::Role,
    view::{Effect, Place, Scene},
    widget::prose::{Line, piece},
};
use diagnosis::i18n::{Lang, Text};
use report::{kernel_name, units};

/// Names that a list shows.
const LISTED: usize = 200;

/// The slices of one name.
#[derive(Clone, Copy, Debug)]
struct Match {
    name: StringId,
    count: u64,
    sum: Ns,
    longest: Ns,
    /// Lane and slot of the longest.
    at: (usize, usize),
    /// Whether it runs on a device.
    device: bool,
}

/// Names that hold what is searched for, by string, and what is known of their slices.
#[derive(Default)]
pub struct Named {
    search: String,
    /// Whether a string holds it.
    pub holds: Vec<bool>,
    /// The device's first, those that take most time before the others.
    all: Vec<Match>,
}

impl Named {
    /// Looks through the names once per search: they are thousands where slices are millions. Whether the search is a new one.
    pub fn prepare(&mut self, scene: &Scene<'_>) -> bool {
        if self.search == scene.search && !self.holds.is_empty() {
            return false;
        }
        let wanted = scene.search.to_lowercase();
        let strings = scene.look.trace.strings.iter();
        self.holds = strings.map(|(_, text)| text.to_lowercase().contains(&wanted)).collect();
        self.search = scene.search.to_owned();
        self.count(scene);
        true
    }

    fn count(&mut self, scene: &Scene<'_>) {
        let mut found: FxHashMap<(StringId, bool), Match> = FxHashMap::default();
        for (at, lane) in scene.look.lanes.lanes.iter().enumerate() {
            let (Of::Track(track, _), Some(index)) = (lane.of, lane.slices()) else { continue };
            let tracks = &scene.look.trace.tracks;
            let device = tracks.get(track.0 as usize).is_some_and(|track| track.key.kind == TrackKind::DeviceQueue);
            for slot in 0..index.len() {
                let Some(name) = name_id(scene, lane, slot) else { continue };
                if !self.holds.get(name.0 as usize).copied().unwrap_or(false) {
                    continue;
                }
                let ns = index.span(slot).map_or(0, |span| span.len());
                let none = Match { name, count: 0, sum: 0, longest: -1, at: (at, slot), device };
                let own = found.entry((name, device)).or_insert(none);
                (own.count, own.sum) = (own.count + 1, own.sum.saturating_add(ns));
                if ns > own.longest {
                    (own.longest, own.at) = (ns, (at, slot));
                }
            }
        }
        self.all = found.into_values().collect();
        self.all.sort_by_key(|own| (!own.device, Reverse(own.sum), own.at));
    }

    /// Lane and slot of the longest slice of the device's name that takes most time.
    pub fn first(&self) -> Option<(usize, usize)> {
        self.all.first().filter(|own| own.device).map(|own| own.at)
    }

    /// How many slices were found, how long they take in all and at most.
    pub fn told(&self, scene: &Scene<'_>) -> Option<String> {
        // Frames lie in each other: where the device has the name, its work is what counts.
        let device = self.all.iter().any(|own| own.device);
        let own = || self.all.iter().filter(|own| own.device == device);
        let longest = own().map(|own| own.longest).max()?;
        let (names, count): (usize, u64) = (own().count(), own().map(|own| own.count).sum());
        let sum = own().map(|own| own.sum).fold(0, Ns::saturating_add);
        let [sum, longest] = [sum, longest].map(units::brief);
        let (names, count) = (units::count(names as u64), units::count(count));
        Some(match scene.lang {
            Lang::En => format!("names: {names}, slices: {count}, in all {sum}, longest {longest}; * lists them"),
            Lang::Zh => format!("名称 {names} 个，切片 {count} 个，合计 {sum}，最长 {longest}；按 * 列出"),
        })
    }
}

impl Timeline {
    /// The names that were found, of which one can be gone to.
    pub(super) fn list(&mut self, scene: &Scene<'_>) -> Effect {
        self.named.prepare(scene);
        let lanes = &scene.look.lanes.lanes;
        let row = |own: &Match| {
            let (lane, slot) = own.at;
            let place = Place::Slice(detail::slice(scene, lanes.get(lane)?, slot)?);
            Some((line(scene, own), place))
        };
        let rows: Vec<(Line, Place)> = self.named.all.iter().take(LISTED).filter_map(row).collect();
        if rows.is_empty() {
            return Effect::Say(scene.get(NOT_FOUND).to_owned());
        }
        let title = scene.get(Text::new("in all, number, longest of", "合计、数量、最长："));
        Effect::Choose(format!("{title} {}", text::safe(scene.search)), rows)
    }
}

fn line(scene: &Scene<'_>, own: &Match) -> Line {
    let name = scene.look.trace.strings.get(own.name);
    let name = if own.device { kernel_name::short(name) } else { name.to_owned() };
    let [sum, longest] = [own.sum, own.longest].map(units::brief);
    let role = if own.device { Role::Text } else { Role::Dim };
    vec![
        piece(format!("{sum:>8} {:>8} {longest:>8}  ", format!("{}×", units::count(own.count))), Role::Strong),
        piece(text::fit(&text::safe(&name), usize::from(scene.width).saturating_sub(40)).into_owned(), role),
    ]
}
