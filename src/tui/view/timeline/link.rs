//! Where one is, as a link, and the way back to it.

use model::{Ns, Span};

use super::Timeline;
use crate::tui::{
    at::{At, bare},
    lane::Of,
    view::Scene,
};
use diagnosis::i18n::Lang;

impl Timeline {
    /// Where one is: the time in the middle of what is seen, how much is seen, the rank and the lane.
    pub(super) fn here(&mut self, scene: &Scene<'_>) -> At {
        let seen = self.window(scene).span;
        let group = scene.look.lanes.groups.iter().find(|group| group.lanes.contains(&self.lane));
        let lane = self.lane(scene).filter(|lane| !matches!(lane.of, Of::Track(_, 1..)));
        let name = lane.map(|lane| match lane.name.is_empty() {
            true => lane.what.map_or(String::new(), |what| bare(what.get(Lang::En))),
            false => lane.name.clone(),
        });
        At {
            step: None,
            t: Some((seen.start + seen.len() / 2 - Self::zero(scene)).max(0)),
            length: Some(seen.len()),
            rank: group.and_then(|group| group.rank).map(|(_, rank)| rank.rank),
            lane: name.filter(|name| !bare(name).is_empty() && !name.contains(',')),
        }
    }

    /// Shows a stretch of time with the cursor, and selects a lane.
    pub(super) fn show_window(
        &mut self,
        scene: &Scene<'_>,
        span: Option<Span>,
        cursor: Option<Ns>,
        lane: Option<usize>,
    ) {
        let window = self.window(scene);
        match (span, cursor) {
            (Some(span), _) => window.show(span),
            (None, Some(t)) => window.reveal(t),
            (None, None) => {}
        }
        self.cursor = cursor.unwrap_or(self.cursor);
        let lane = lane.unwrap_or(self.lane);
        if let Some(Of::Track(track, depth)) = scene.look.lanes.lanes.get(lane).map(|lane| lane.of)
            && depth >= super::rows::shown_depths(track, &self.open)
        {
            self.open.insert(track);
        }
        self.enter(scene, lane);
    }
}
