//! The screen while captures are read: what is being done, how much of it is done, and the key that calls it off.

use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;

use super::{
    action::{Action, Scope},
    app::{Request, Settings},
    chrome::{Asked, COMMON, Chrome},
    face::{Face, Tick},
    glyph,
    job::Job,
    key::Key,
    lane::Kind,
    text,
    theme::Role,
    view::Point,
};
use crate::i18n::Text;

/// What is over sooner than this is not worth a screen.
const PATIENCE: Duration = Duration::from_millis(200);
/// Widest bar.
const BAR: usize = 60;

/// A job, watched.
pub struct Opening<T> {
    chrome: Chrome,
    job: Job<T>,
    began: Instant,
}

impl<T: Send + 'static> Opening<T> {
    /// Watches a job.
    pub fn new(job: Job<T>, settings: Settings) -> Self {
        Self { chrome: Chrome::new(settings), job, began: Instant::now() }
    }

    /// The job, and the settings as they are now.
    pub fn finish(self) -> (Job<T>, Settings) {
        let settings = self.chrome.settings();
        (self.job, settings)
    }

    fn actions() -> Vec<Action> {
        [Action::Back, Action::Quit].into_iter().chain(COMMON).collect()
    }

    fn asked(&mut self, asked: Asked) -> Option<Request> {
        let Asked::Act(action) = asked else { return None };
        if !Self::actions().contains(&action) {
            self.chrome.refuse(action);
            return None;
        }
        if matches!(action, Action::Back | Action::Quit) {
            self.job.cancel();
            return Some(Request::Quit);
        }
        self.chrome.act(action).flatten()
    }
}

impl<T: Send + 'static> Face for Opening<T> {
    fn key(&mut self, key: Key) -> Option<Request> {
        let asked = self.chrome.key(key, Scope::List);
        self.asked(asked)
    }

    fn point(&mut self, point: Point) -> Option<Request> {
        let asked = self.chrome.point(point);
        self.asked(asked)
    }

    fn drag(&mut self, to: Option<(u16, u16)>) -> Option<Request> {
        let asked = self.chrome.drag(to);
        self.asked(asked)
    }

    fn say(&mut self, message: String) {
        self.chrome.message = Some(message);
    }

    fn tick(&mut self) -> Tick {
        if self.job.is_over() { Tick::Done } else { Tick::New }
    }

    fn draw(&mut self, buf: &mut Buffer) {
        if !self.chrome.begin(buf) || self.began.elapsed() < PATIENCE {
            return;
        }
        let area = buf.area;
        let (doing, done, total) = self.job.progress().look();
        let y = area.y + area.height.saturating_sub(1) / 3;
        let style = |role| self.chrome.theme.style(role);
        let room = area.width.saturating_sub(4);
        let title = self.chrome.get(Text::new("opening", "正在打开"));
        let seconds = self.began.elapsed().as_secs();
        text::put(buf, (area.x + 2, y), &format!("{title} · {seconds} s"), room, style(Role::Title));
        if y + 3 < area.bottom() {
            text::put(buf, (area.x + 2, y + 1), &text::safe(&doing), room, style(Role::Text));
            if total > 0 {
                let part = done.min(total);
                let cells = BAR.min(usize::from(room.saturating_sub(6)));
                let full = (u128::from(part) * cells as u128 / u128::from(total)) as usize;
                let mark = if self.chrome.theme.is_mono() { "=" } else { glyph::SOLID };
                let at = (area.x + 2, y + 2);
                let drawn = text::put(buf, at, &mark.repeat(full), room, style(Role::Kind(Kind::Matrix)));
                let rest = glyph::LINE.repeat(cells - full);
                text::put(buf, (at.0 + drawn, at.1), &rest, room.saturating_sub(drawn), style(Role::Dim));
                let percent = format!(" {} %", u128::from(part) * 100 / u128::from(total));
                text::put(buf, (at.0 + cells as u16, at.1), &percent, 6, style(Role::Text));
            }
        }
        self.chrome.finish(&Self::actions(), buf);
    }
}
