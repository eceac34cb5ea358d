//! What comes next: slices of the same name, of a name that was searched for, steps, idle gaps.

use model::{Ns, StringId};

use super::{NOT_FOUND, Timeline};
use crate::tui::{
    lane::{Lane, Of},
    view::{Effect, Scene},
};
use diagnosis::i18n::Text;

/// Name of a slot of a track's lane.
pub(super) fn name_id(scene: &Scene<'_>, lane: &Lane, slot: usize) -> Option<StringId> {
    let Of::Track(track, _) = lane.of else { return None };
    let row = lane.slices()?.row(slot)? as usize;
    scene.look.trace.lanes.get(track.0 as usize)?.name.get(row).copied()
}

impl Timeline {
    /// The next slot of a lane that `wanted` takes.
    fn next_on(lane: &Lane, from: Option<usize>, forward: bool, wanted: impl Fn(usize) -> bool) -> Option<usize> {
        let len = lane.slices()?.len();
        if forward {
            (from.map_or(0, |slot| slot + 1)..len).find(|slot| wanted(*slot))
        } else {
            (0..from.unwrap_or(len)).rev().find(|slot| wanted(*slot))
        }
    }

    fn not_found(scene: &Scene<'_>) -> Effect {
        Effect::Say(scene.get(NOT_FOUND).to_owned())
    }

    /// Said of what only the analysis finds.
    pub(super) fn not_yet(scene: &Scene<'_>) -> Option<Effect> {
        let text =
            Text::new("steps and idle time are known once the capture is analysed", "步与空闲时间在分析完成后可知");
        scene.look.found.is_none().then(|| Effect::Say(scene.get(text).to_owned()))
    }

    /// The next slice of the selected one's name, on its lane.
    pub(super) fn seek_same(&mut self, scene: &Scene<'_>, forward: bool) -> Effect {
        let Some((lane, slot)) = self.lane(scene).zip(self.slot) else { return Effect::None };
        let kind = lane.slices().and_then(|index| index.kind(slot));
        let name = name_id(scene, lane, slot);
        // Where slices have no name of their own, such as idle time, their kind is asked for.
        let same = |other: usize| match name {
            Some(name) => name_id(scene, lane, other) == Some(name),
            None => lane.slices().and_then(|index| index.kind(other)) == kind,
        };
        match Self::next_on(lane, Some(slot), forward, same) {
            Some(found) => {
                self.select(scene, self.lane, found);
                Effect::None
            }
            None => Self::not_found(scene),
        }
    }

    /// The next slice whose name holds what is searched for: on this lane, else on the lanes after it and round.
    pub(super) fn seek_named(&mut self, scene: &Scene<'_>, forward: bool) -> Effect {
        let fresh = self.named.prepare(scene);
        let told = || fresh.then(|| self.named.told(scene)).flatten().map_or(Effect::None, Effect::Say);
        let lanes = &scene.look.lanes.lanes;
        let count = lanes.len();
        let holds = |lane: &Lane, slot: usize| {
            name_id(scene, lane, slot).and_then(|id| self.named.holds.get(id.0 as usize)).copied().unwrap_or(false)
        };
        let near = self.slices(scene).map(|index| index.first_from(self.cursor));
        for turn in 0..=count {
            let at = if forward { (self.lane + turn) % count } else { (self.lane + count - turn % count) % count };
            let from = match turn {
                0 => self.slot.or(near.map(|slot| slot.saturating_sub(1))),
                _ => None,
            };
            let found = lanes.get(at).and_then(|lane| Self::next_on(lane, from, forward, |slot| holds(lane, slot)));
            // Who searches for a name means the device's work, where there is any.
            let best = self.named.first().filter(|_| fresh && found.is_some_and(|_| turn > 0));
            if let Some((at, slot)) = best.or(found.map(|slot| (at, slot))) {
                let told = told();
                self.select(scene, at, slot);
                return told;
            }
        }
        Self::not_found(scene)
    }

    /// The group's lane of one kind.
    fn beside(&self, scene: &Scene<'_>, wanted: impl Fn(Of) -> bool) -> Option<usize> {
        let set = scene.look.lanes;
        let group = set.groups.iter().find(|group| group.lanes.contains(&self.lane));
        let here =
            group.and_then(|group| group.lanes.clone().find(|i| set.lanes.get(*i).is_some_and(|l| wanted(l.of))));
        here.or_else(|| set.lanes.iter().position(|lane| wanted(lane.of)))
    }

    fn after(&self, scene: &Scene<'_>, lane: usize, forward: bool) -> Option<(usize, Ns)> {
        let index = scene.look.lanes.lanes.get(lane)?.slices()?;
        let slot = if forward {
            index.first_from(self.cursor.saturating_add(1))
        } else {
            index.first_from(self.cursor).checked_sub(1)?
        };
        Some((slot, index.span(slot)?.start))
    }

    /// The beginning of the next step, on the lane that is selected.
    pub(super) fn seek_step(&mut self, scene: &Scene<'_>, forward: bool) -> Effect {
        let lane = self.beside(scene, |of| matches!(of, Of::Steps(_)));
        match lane.and_then(|lane| self.after(scene, lane, forward)) {
            Some((_, t)) => {
                self.cursor = t;
                self.window(scene).reveal(t);
                self.enter(scene, self.lane);
                Effect::None
            }
            None => Self::not_yet(scene).unwrap_or_else(|| Self::not_found(scene)),
        }
    }

    /// The next idle gap.
    pub(super) fn seek_gap(&mut self, scene: &Scene<'_>, forward: bool) -> Effect {
        let lane = self.beside(scene, |of| matches!(of, Of::Idle(_)));
        match lane.and_then(|lane| Some((lane, self.after(scene, lane, forward)?))) {
            Some((lane, (slot, _))) => {
                self.select(scene, lane, slot);
                Effect::None
            }
            None => Self::not_yet(scene).unwrap_or_else(|| Self::not_found(scene)),
        }
    }
}
