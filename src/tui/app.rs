//! The interface on captures: which view is seen, and what becomes of a key or a click. It knows no terminal: a frame is
//! cells in a buffer, so that tests see what people see.

pub(super) mod command;
mod early;
mod file;
mod head;

use std::sync::Arc;

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    action::{Action, Scope},
    at::Start,
    captures::Captures,
    chrome::{Asked, COMMON, Chrome},
    export::Export,
    face::Face,
    key::Key,
    keymap::Keymap,
    opened::{Look, Opened},
    theme::Depth,
    view::{self, Effect, Place, Point, Scene, View},
};
use diagnosis::i18n::Lang;

/// What the interface is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Language.
    pub lang: Lang,
    /// Name of the theme.
    pub theme: String,
    /// Colours that the terminal shows.
    pub depth: Depth,
    /// Whether the terminal shows only ASCII.
    pub ascii: bool,
    /// Whether mouse events are taken.
    pub mouse: bool,
    /// Keys.
    pub keymap: Keymap,
    /// What it is started on.
    pub start: Start,
}

/// What only the owner of the terminal can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Leave.
    Quit,
    /// Leave for the capture that has been made.
    Open,
    /// Stop until the shell continues the program.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Begin or end to take mouse events.
    Mouse(bool),
    /// Copy to the clipboard.
    Copy(String),
    /// Write files.
    Save(Vec<Export>),
}

/// The interface.
pub struct App {
    captures: Captures,
    chrome: Chrome,
    capture: usize,
    rank: usize,
    views: Vec<(Action, Box<dyn View>)>,
    /// Views that were left, the one seen last.
    seen: Vec<usize>,
    search: String,
    body: Rect,
    /// What is being done to the captures, and for how long, while they are not diagnosed.
    doing: Option<String>,
    touched: bool,
    /// Places of which one is being chosen.
    choices: Vec<Place>,
}

/// The scene for a view, borrowed apart from the views.
macro_rules! scene {
    ($app:ident, $look:expr) => {
        Scene {
            look: $look,
            beside: $app.captures.beside(),
            rank: $app.rank,
            lang: $app.chrome.lang,
            theme: &$app.chrome.theme,
            search: &$app.search,
            width: $app.body.width,
        }
    };
}
use scene;

impl App {
    /// The interface on captures, at the overview of the gravest, or at the comparison where two are compared.
    pub fn new(opened: impl Into<Arc<Opened>>, settings: Settings) -> Self {
        let opened = opened.into();
        let capture = opened.leading();
        let views = view::all(opened.beside().is_some());
        let first = views.iter().position(|(action, _)| *action == view::DIFF).unwrap_or(0);
        let said = opened.said().join("  ");
        let mut app = Self::on(Captures::Opened(opened), views, first, settings);
        app.capture = capture;
        app.lead();
        app.chrome.message = (!said.is_empty()).then_some(said);
        if let Some(at) = app.chrome.start.at.clone() {
            app.go_to(&at);
        }
        app
    }

    fn on(captures: Captures, views: Vec<(Action, Box<dyn View>)>, first: usize, settings: Settings) -> Self {
        Self {
            captures,
            chrome: Chrome::new(settings),
            capture: 0,
            rank: 0,
            views,
            seen: vec![first],
            search: String::new(),
            body: Rect::default(),
            doing: None,
            touched: false,
            choices: Vec::new(),
        }
    }

    /// Looks at the rank that the report shows first.
    fn lead(&mut self) {
        let capture = self.captures.look(self.capture).and_then(|look| look.capture());
        let leading = capture.and_then(|capture| {
            let rank = capture.leading_rank()?.rank;
            capture.ranks.iter().position(|part| part.rank == rank)
        });
        self.rank = leading.unwrap_or(0);
    }

    fn view(&self) -> usize {
        self.seen.last().copied().unwrap_or(0)
    }

    fn scope(&self) -> Scope {
        self.views.get(self.view()).map_or(Scope::List, |(_, view)| view.scope())
    }

    /// Actions that mean something now: those of the view first, then those that are active everywhere.
    pub fn actions(&self) -> Vec<Action> {
        let look = self.captures.look(self.capture);
        let ready = self.views.get(self.view()).zip(look).filter(|((_, view), look)| is_ready(view.as_ref(), look));
        let mut actions = ready.map_or(Vec::new(), |((_, view), look)| view.actions(&scene!(self, look)));
        actions.push(Action::Search);
        if ready.is_some() {
            actions.push(Action::Export);
        }
        actions.push(Action::Quit);
        if self.captures.len() > 1 {
            actions.extend([Action::NextCapture, Action::PreviousCapture]);
        }
        if self.ranks() > 1 {
            actions.extend([Action::NextRank, Action::PreviousRank]);
        }
        if self.seen.len() > 1 || !self.search.is_empty() {
            actions.push(Action::Back);
        }
        if !self.chrome.theme.is_mono() {
            actions.push(Action::CycleTheme);
        }
        actions.extend([Action::NextView, Action::PreviousView]);
        actions.extend(self.views.iter().map(|(action, _)| *action));
        actions.extend(COMMON);
        actions
    }

    /// Ranks of the capture, as far as it is known.
    fn ranks(&self) -> usize {
        self.captures.look(self.capture).and_then(|look| look.analysis()).map_or(0, |analysis| analysis.ranks.len())
    }

    /// Takes a key.
    pub fn key(&mut self, key: Key) -> Option<Request> {
        self.touched = true;
        let asked = self.chrome.key(key, self.scope());
        self.asked(asked)
    }

    /// Takes what the mouse did.
    pub fn point(&mut self, point: Point) -> Option<Request> {
        self.touched = true;
        let asked = self.chrome.point(point);
        self.asked(asked)
    }

    /// Takes a movement with the button held, or its end.
    pub fn drag(&mut self, to: Option<(u16, u16)>) -> Option<Request> {
        let asked = self.chrome.drag(to);
        self.asked(asked)
    }

    fn asked(&mut self, asked: Asked) -> Option<Request> {
        match asked {
            Asked::Act(action) => self.act(action),
            Asked::Search(search) => {
                self.search = search;
                if self.search.is_empty() { None } else { self.act(Action::SearchNext) }
            }
            Asked::Command(typed) => self.command(&typed),
            Asked::Chosen(at) => self.choices.get(at).copied().and_then(|place| self.show(place)),
            Asked::Point(point) => {
                let (Point::Click(x, y) | Point::Wheel(x, y, _) | Point::Drag((x, y), _)) = point;
                let inside = self.body.contains((x, y).into());
                if inside { self.of_view(|view, scene| view.point(point, scene)) } else { None }
            }
            Asked::Nothing => None,
        }
    }

    /// Carries out an action, or says that it means nothing now.
    pub fn act(&mut self, action: Action) -> Option<Request> {
        if !self.actions().contains(&action) {
            self.chrome.refuse(action);
            return None;
        }
        // What was said before is over, whatever led here.
        self.chrome.message = None;
        if let Some(request) = self.chrome.act(action) {
            return request;
        }
        match action {
            Action::Back => {
                if !self.search.is_empty() {
                    self.search.clear();
                } else if self.seen.len() > 1 {
                    self.seen.pop();
                }
            }
            Action::Export => return self.export(),
            Action::NextView => self.go((self.view() + 1) % self.views.len().max(1)),
            Action::PreviousView => {
                self.go((self.view() + self.views.len().saturating_sub(1)) % self.views.len().max(1))
            }
            Action::NextCapture => self.look_at((self.capture + 1) % self.captures.len().max(1)),
            Action::PreviousCapture => {
                self.look_at((self.capture + self.captures.len().saturating_sub(1)) % self.captures.len().max(1));
            }
            Action::NextRank | Action::PreviousRank => {
                let ranks = self.ranks().max(1);
                let by = if action == Action::NextRank { 1 } else { ranks - 1 };
                self.rank = (self.rank + by) % ranks;
            }
            action => match self.views.iter().position(|(shows, _)| *shows == action) {
                Some(view) => self.go(view),
                None => return self.of_view(|view, scene| view.act(action, scene)),
            },
        }
        None
    }

    fn go(&mut self, view: usize) {
        if view != self.view() {
            // The way back is as long as there are views: going round and round leaves no longer one.
            self.seen.retain(|seen| *seen != view);
            self.seen.push(view);
        }
    }

    fn look_at(&mut self, capture: usize) {
        self.capture = capture;
        let fresh = view::all(self.captures.beside().is_some());
        let before = std::mem::replace(&mut self.views, fresh);
        // What is seen of two captures is the same whichever of them is looked at.
        let kept = before.into_iter().find(|(action, _)| *action == view::DIFF);
        if let Some((view, kept)) = self.views.iter_mut().find(|(action, _)| *action == view::DIFF).zip(kept) {
            *view = kept;
        }
        self.lead();
    }

    fn of_view(&mut self, deed: impl FnOnce(&mut dyn View, &Scene<'_>) -> Effect) -> Option<Request> {
        let at = self.view();
        let look = self.captures.look(self.capture)?;
        let (_, view) = self.views.get_mut(at).filter(|(_, view)| is_ready(view.as_ref(), &look))?;
        let effect = deed(view.as_mut(), &scene!(self, look));
        match effect {
            Effect::None => None,
            Effect::Say(text) => {
                self.chrome.message = Some(text);
                None
            }
            Effect::Copy(text) => Some(Request::Copy(text)),
            Effect::Link(at) => Some(Request::Copy(self.link(&at))),
            Effect::Tell(title, lines) => {
                self.chrome.show(title, lines);
                None
            }
            Effect::Choose(title, choices) => {
                let (lines, places) = choices.into_iter().unzip();
                self.choices = places;
                self.chrome.choose(title, lines);
                None
            }
            Effect::Show(place) => {
                if matches!(place, Place::Evidence(..)) {
                    // The keys that go from match to match go through the evidence now.
                    self.search.clear();
                }
                self.show(place)
            }
            Effect::ShowOf(capture, place) => {
                self.look_at(capture);
                self.show(place)
            }
            Effect::ShowNamed(place, name) => {
                self.search = name;
                self.show(place)
            }
        }
    }

    fn show(&mut self, place: Place) -> Option<Request> {
        let timeline = self.views.iter().position(|(action, _)| *action == view::TIMELINE)?;
        self.go(timeline);
        self.of_view(|view, scene| {
            view.show(place, scene);
            Effect::None
        })
    }

    /// Draws a frame into all of a buffer.
    pub fn draw(&mut self, buf: &mut Buffer) {
        let area = buf.area;
        if !self.chrome.begin(buf) {
            return;
        }
        let tabs = Rect { y: area.y, height: 1, ..area };
        let title_height = u16::from(area.height >= 10);
        self.tabs(tabs, buf);
        self.title(Rect { y: area.y + 1, height: title_height, ..area }, buf);
        let above = 1 + title_height;
        self.body = Rect { y: area.y + above, height: area.height - above - 1, ..area };
        let at = self.view();
        if let (Some(look), Some((_, view))) = (self.captures.look(self.capture), self.views.get_mut(at)) {
            match is_ready(view.as_ref(), &look) {
                true => view.draw(&scene!(self, look), self.body, buf),
                false => self.wait(buf),
            }
        }
        let valid = self.actions();
        self.chrome.finish(&valid, buf);
    }
}

/// Whether a view has something to show of a capture.
fn is_ready(view: &dyn View, look: &Look<'_>) -> bool {
    look.found.is_some() || view.is_early()
}

impl Face for App {
    fn key(&mut self, key: Key) -> Option<Request> {
        self.key(key)
    }

    fn point(&mut self, point: Point) -> Option<Request> {
        self.point(point)
    }

    fn drag(&mut self, to: Option<(u16, u16)>) -> Option<Request> {
        self.drag(to)
    }

    fn draw(&mut self, buf: &mut Buffer) {
        self.draw(buf);
    }

    fn lang(&self) -> Lang {
        self.chrome.lang
    }

    fn say(&mut self, message: String) {
        self.chrome.message = Some(message);
    }
}
