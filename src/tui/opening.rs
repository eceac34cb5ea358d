//! The screen while captures are opened: how far they are read, then their timeline while they are diagnosed, then all that was
//! found. A key calls it off at any time.

use std::{
    sync::{Arc, mpsc::Receiver},
    time::{Duration, Instant},
};

use ratatui::buffer::Buffer;

use super::{
    action::{Action, Scope},
    app::{App, Request, Settings},
    chrome::{Asked, COMMON, Chrome},
    face::{Face, Tick},
    glyph,
    job::{Job, Panicked},
    key::Key,
    lane::Kind,
    opened::Opened,
    sketch::Sketch,
    text,
    theme::Role,
    view::Point,
};
use diagnosis::i18n::{Lang, Text};

/// What is over sooner than this is not worth a screen.
const PATIENCE: Duration = Duration::from_millis(200);
/// Widest bar.
const BAR: usize = 60;

/// Captures on their way, from a job that reads and diagnoses them.
pub struct Opening<E> {
    chrome: Chrome,
    /// The job, until it is over.
    job: Option<Job<Result<Opened, E>>>,
    early: Receiver<Arc<Sketch>>,
    began: Instant,
    /// The captures, once there is something to look at.
    app: Option<Box<App>>,
    over: Option<Over<E>>,
}

/// Why a job opened nothing.
#[derive(Debug)]
pub enum Over<E> {
    /// It could not.
    Failed(E),
    /// It panicked.
    Panicked(Panicked),
}

impl<E: Send + 'static> Opening<E> {
    /// Watches a job that sends what can be looked at early.
    pub fn new(job: Job<Result<Opened, E>>, early: Receiver<Arc<Sketch>>, settings: Settings) -> Self {
        let chrome = Chrome::new(settings);
        Self { chrome, job: Some(job), early, began: Instant::now(), app: None, over: None }
    }

    /// Calls the job off if it is not over, and says why it opened nothing if so.
    pub fn finish(self) -> Option<Over<E>> {
        if let Some(job) = &self.job {
            job.cancel();
        }
        self.over
    }

    /// The captures as they are seen, if they are.
    fn app(&mut self) -> Option<&mut App> {
        self.app.as_deref_mut()
    }

    /// Takes what the job gave.
    fn take(&mut self, job: Job<Result<Opened, E>>) -> Tick {
        match job.finish() {
            Ok(Ok(opened)) => match &mut self.app {
                // Who looks at something goes on looking at it.
                Some(app) if app.is_touched() => app.arrive(opened),
                app => {
                    let settings = app.as_ref().map_or_else(|| self.chrome.settings(), |app| app.settings());
                    self.app = Some(Box::new(App::new(opened, settings)));
                }
            },
            Ok(Err(error)) => self.over = Some(Over::Failed(error)),
            Err(panicked) => self.over = Some(Over::Panicked(panicked)),
        }
        if self.over.is_some() { Tick::Done } else { Tick::New }
    }

    /// How long it has been going on, s.
    fn seconds(&self) -> u64 {
        self.began.elapsed().as_secs()
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
            return Some(Request::Quit);
        }
        self.chrome.act(action).flatten()
    }
}

impl<E: Send + 'static> Face for Opening<E> {
    fn key(&mut self, key: Key) -> Option<Request> {
        if let Some(app) = self.app() {
            return app.key(key);
        }
        let asked = self.chrome.key(key, Scope::List);
        self.asked(asked)
    }

    fn point(&mut self, point: Point) -> Option<Request> {
        if let Some(app) = self.app() {
            return app.point(point);
        }
        let asked = self.chrome.point(point);
        self.asked(asked)
    }

    fn drag(&mut self, to: Option<(u16, u16)>) -> Option<Request> {
        if let Some(app) = self.app() {
            return app.drag(to);
        }
        let asked = self.chrome.drag(to);
        self.asked(asked)
    }

    fn lang(&self) -> Lang {
        self.chrome.lang
    }

    fn say(&mut self, message: String) {
        match &mut self.app {
            Some(app) => app.say(message),
            None => self.chrome.message = Some(message),
        }
    }

    fn tick(&mut self) -> Tick {
        if let Some(job) = self.job.take_if(|job| job.is_over()) {
            return self.take(job);
        }
        let Some(job) = &self.job else { return Tick::Same };
        if self.app.is_none()
            && self.began.elapsed() >= PATIENCE
            && let Ok(sketch) = self.early.try_recv()
        {
            self.app = Some(Box::new(App::early(sketch, self.chrome.settings())));
        }
        let doing = format!("{} … {} s", text::safe(&job.progress().look().0), self.seconds());
        if let Some(app) = self.app() {
            app.doing(doing);
        }
        Tick::New
    }

    fn draw(&mut self, buf: &mut Buffer) {
        if let Some(app) = self.app() {
            return app.draw(buf);
        }
        let Some(job) = &self.job else { return };
        let ((what, of), (done, total)) = (job.progress().look(), job.progress().part());
        if !self.chrome.begin(buf) || self.began.elapsed() < PATIENCE {
            return;
        }
        let area = buf.area;
        let y = area.y + area.height.saturating_sub(1) / 3;
        let style = |role| self.chrome.theme.style(role);
        let room = area.width.saturating_sub(4);
        let title = self.chrome.get(Text::new("opening", "正在打开"));
        text::put(buf, (area.x + 2, y), &format!("{title} · {} s", self.seconds()), room, style(Role::Title));
        if y + 3 < area.bottom() {
            text::put(
                buf,
                (area.x + 2, y + 1),
                &text::safe(format!("{what} {of}").trim_end()),
                room,
                style(Role::Text),
            );
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
