//! Captures while they are diagnosed: what can be looked at before, and how the diagnosis arrives under the eyes of whoever looks.

use std::sync::Arc;

use ratatui::buffer::Buffer;

use super::{App, Settings};
use crate::tui::{
    captures::Captures,
    opened::Opened,
    sketch::Sketch,
    text,
    theme::Role,
    view::{self, TIMELINE},
};
use diagnosis::i18n::Text;

impl App {
    /// The interface on captures that are being diagnosed, at the timeline.
    pub fn early(sketch: Arc<Sketch>, settings: Settings) -> Self {
        let views = view::all(false);
        let first = views.iter().position(|(action, _)| *action == TIMELINE).unwrap_or(0);
        Self::on(Captures::Sketch(sketch), views, first, settings)
    }

    /// Says what is being done to the captures.
    pub fn doing(&mut self, what: String) {
        self.doing = Some(what);
    }

    /// Whether a person has done anything yet.
    pub fn is_touched(&self) -> bool {
        self.touched
    }

    /// The settings as they are now.
    pub fn settings(&self) -> Settings {
        self.chrome.settings()
    }

    /// Takes in the diagnosis of the captures that it is on. What is seen stays where it is.
    pub fn arrive(&mut self, opened: impl Into<Arc<Opened>>) {
        let opened = opened.into();
        let said = opened.said().join("  ");
        let before = std::mem::replace(&mut self.captures, Captures::Opened(opened));
        self.capture = self.capture.min(self.captures.len().saturating_sub(1));
        if let Some((before, after)) = before.look(self.capture).zip(self.captures.look(self.capture)) {
            self.views.iter_mut().for_each(|(_, view)| view.arrived(&before, &after));
        }
        self.doing = None;
        self.lead();
        let done = Text::new("the diagnosis is done", "诊断已完成").get(self.chrome.lang);
        self.chrome.message = Some(if said.is_empty() { done.to_owned() } else { format!("{done}  {said}") });
    }

    /// Says in place of a view that it has nothing to show yet.
    pub(super) fn wait(&self, buf: &mut Buffer) {
        let key = self.chrome.keymap.keys(TIMELINE).first().map_or(String::new(), |key| format!(" ({key})"));
        let [before, after] = [
            Text::new("Shown once the diagnosis is done; the timeline", "诊断完成后显示；时间线"),
            Text::new(" is there already.", " 已可查看。"),
        ]
        .map(|text| text.get(self.chrome.lang));
        let style = self.chrome.theme.style(Role::Dim);
        text::put(buf, (self.body.x + 1, self.body.y), &format!("{before}{key}{after}"), self.body.width, style);
    }
}
