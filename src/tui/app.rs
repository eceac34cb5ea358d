//! The interface as a whole: which view is seen, what lies over it, and what becomes of a key or a click. It knows no
//! terminal: a frame is cells in a buffer, so that tests see what people see.

use std::sync::Arc;

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    action::{Action, Scope},
    key::Key,
    keymap::Keymap,
    opened::Opened,
    popup::{self, Popup},
    text,
    theme::{Depth, Role, Theme},
    view::{self, Effect, Place, Point, Scene, View},
};
use crate::i18n::{Lang, Text};

/// The smallest terminal in which something can be read.
const LEAST: (u16, u16) = (20, 3);

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
}

/// What only the owner of the terminal can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Leave.
    Quit,
    /// Stop until the shell continues the program.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Begin or end to take mouse events.
    Mouse(bool),
    /// Copy to the clipboard.
    Copy(String),
}

/// The interface.
pub struct App {
    opened: Arc<Opened>,
    keymap: Keymap,
    theme: Theme,
    lang: Lang,
    ascii: bool,
    mouse: bool,
    capture: usize,
    rank: usize,
    views: Vec<(Action, Box<dyn View>)>,
    /// Views that were left, the one seen last.
    seen: Vec<usize>,
    popup: Option<Popup>,
    search: String,
    message: Option<String>,
    hits: Vec<(Rect, Action)>,
    body: Rect,
    dragged: Option<(u16, u16)>,
}

/// The scene for a view, borrowed apart from the views.
macro_rules! scene {
    ($app:ident, $look:expr) => {
        Scene { look: $look, rank: $app.rank, lang: $app.lang, theme: &$app.theme, search: &$app.search }
    };
}

impl App {
    /// The interface on captures, at the overview of the gravest.
    pub fn new(opened: impl Into<Arc<Opened>>, settings: Settings) -> Self {
        let opened = opened.into();
        let capture = opened.leading();
        let mut app = Self {
            theme: Theme::new(&settings.theme, settings.depth),
            keymap: settings.keymap,
            lang: settings.lang,
            ascii: settings.ascii,
            mouse: settings.mouse,
            capture,
            rank: 0,
            views: view::all(),
            seen: vec![0],
            popup: None,
            search: String::new(),
            message: None,
            hits: Vec::new(),
            body: Rect::default(),
            dragged: None,
            opened,
        };
        app.lead();
        app
    }

    /// Looks at the rank that the report shows first.
    fn lead(&mut self) {
        let look = self.opened.look(self.capture);
        let leading = look.and_then(|look| {
            let rank = look.capture.leading_rank()?.rank;
            look.capture.ranks.iter().position(|part| part.rank == rank)
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
        let look = self.opened.look(self.capture);
        let view = self.views.get(self.view());
        let mut actions = match (look, view) {
            (Some(look), Some((_, view))) => view.actions(&scene!(self, look)),
            _ => Vec::new(),
        };
        actions.extend([Action::Search, Action::Palette, Action::Help, Action::Quit]);
        if self.opened.len() > 1 {
            actions.extend([Action::NextCapture, Action::PreviousCapture]);
        }
        if look.is_some_and(|look| look.analysis.ranks.len() > 1) {
            actions.extend([Action::NextRank, Action::PreviousRank]);
        }
        if self.seen.len() > 1 || !self.search.is_empty() {
            actions.push(Action::Back);
        }
        if !self.theme.is_mono() {
            actions.push(Action::CycleTheme);
        }
        actions.extend([Action::NextView, Action::PreviousView]);
        actions.extend(self.views.iter().map(|(action, _)| *action));
        actions.extend([Action::ToggleMouse, Action::Redraw, Action::Suspend]);
        actions
    }

    /// Takes a key.
    pub fn key(&mut self, key: Key) -> Option<Request> {
        if key == Key::CTRL_C {
            return Some(Request::Quit);
        }
        self.message = None;
        if let Some(popup) = &mut self.popup {
            let outcome = popup.key(key, &self.keymap);
            return self.outcome(outcome);
        }
        let action = self.keymap.action(key, self.scope())?;
        self.act(action)
    }

    fn outcome(&mut self, outcome: popup::Outcome) -> Option<Request> {
        if outcome != popup::Outcome::Stay {
            self.popup = None;
        }
        match outcome {
            popup::Outcome::Act(action) => self.act(action),
            popup::Outcome::Search(search) => {
                self.search = search;
                if self.search.is_empty() { None } else { self.act(Action::SearchNext) }
            }
            popup::Outcome::Stay | popup::Outcome::Close => None,
        }
    }

    /// Carries out an action, or says that it means nothing now.
    pub fn act(&mut self, action: Action) -> Option<Request> {
        if !self.actions().contains(&action) {
            let says = Text::new("means nothing here now", "当前无效");
            self.message = Some(format!("{}: {}", action.text().get(self.lang), says.get(self.lang)));
            return None;
        }
        match action {
            Action::Quit => return Some(Request::Quit),
            Action::Suspend => return Some(Request::Suspend),
            Action::Redraw => return Some(Request::Redraw),
            Action::ToggleMouse => {
                self.mouse = !self.mouse;
                return Some(Request::Mouse(self.mouse));
            }
            Action::Help => self.popup = Some(Popup::Help(Default::default())),
            Action::Palette => self.popup = Some(Popup::palette()),
            Action::Search => self.popup = Some(Popup::Search(String::new())),
            Action::CycleTheme => {
                self.theme = self.theme.next();
                self.message = Some(self.theme.name.clone());
            }
            Action::Back => {
                if !self.search.is_empty() {
                    self.search.clear();
                } else if self.seen.len() > 1 {
                    self.seen.pop();
                }
            }
            Action::NextView => self.go((self.view() + 1) % self.views.len().max(1)),
            Action::PreviousView => {
                self.go((self.view() + self.views.len().saturating_sub(1)) % self.views.len().max(1))
            }
            Action::NextCapture => self.look_at((self.capture + 1) % self.opened.len().max(1)),
            Action::PreviousCapture => {
                self.look_at((self.capture + self.opened.len().saturating_sub(1)) % self.opened.len().max(1));
            }
            Action::NextRank | Action::PreviousRank => {
                let ranks = self.opened.look(self.capture).map_or(1, |look| look.analysis.ranks.len()).max(1);
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
        self.views = view::all();
        self.lead();
    }

    fn of_view(&mut self, deed: impl FnOnce(&mut dyn View, &Scene<'_>) -> Effect) -> Option<Request> {
        let at = self.view();
        let look = self.opened.look(self.capture)?;
        let (_, view) = self.views.get_mut(at)?;
        let effect = deed(view.as_mut(), &scene!(self, look));
        match effect {
            Effect::None => None,
            Effect::Say(text) => {
                self.message = Some(text);
                None
            }
            Effect::Copy(text) => {
                self.message = Some(Text::new("copied", "已复制").get(self.lang).to_owned());
                Some(Request::Copy(text))
            }
            Effect::Show(place) => self.show(place),
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

    /// Takes what the mouse did.
    pub fn point(&mut self, point: Point) -> Option<Request> {
        if let Point::Click(x, y) = point {
            self.message = None;
            let hit = self.hits.iter().rev().find(|(area, _)| area.contains((x, y).into())).map(|(_, action)| *action);
            let over = self.popup.take();
            if hit.is_some() || over.is_some() {
                return hit.and_then(|action| self.act(action));
            }
        }
        let inside = match point {
            Point::Click(x, y) | Point::Wheel(x, y, _) | Point::Drag((x, y), _) => self.body.contains((x, y).into()),
        };
        if inside { self.of_view(|view, scene| view.point(point, scene)) } else { None }
    }

    /// Takes a movement with the button held, or its end.
    pub fn drag(&mut self, to: Option<(u16, u16)>) -> Option<Request> {
        let from = std::mem::replace(&mut self.dragged, to);
        match (from, to) {
            (Some(from), Some(to)) => self.point(Point::Drag(from, to)),
            _ => None,
        }
    }

    /// Draws a frame into all of a buffer.
    pub fn draw(&mut self, buf: &mut Buffer) {
        let area = buf.area;
        self.hits.clear();
        if area.width < LEAST.0 || area.height < LEAST.1 {
            let size = format!("{}x{} < {}x{}", area.width, area.height, LEAST.0, LEAST.1);
            text::put(buf, (area.x, area.y), &size, area.width, self.theme.style(Role::Strong));
            return;
        }
        let tabs = Rect { y: area.y, height: 1, ..area };
        let title_height = u16::from(area.height >= 10);
        self.tabs(tabs, buf);
        self.title(Rect { y: area.y + 1, height: title_height, ..area }, buf);
        let footer = Rect { y: area.bottom() - 1, height: 1, ..area };
        let above = 1 + title_height;
        self.body = Rect { y: area.y + above, height: area.height - above - 1, ..area };
        let at = self.view();
        if let (Some(look), Some((_, view))) = (self.opened.look(self.capture), self.views.get_mut(at)) {
            view.draw(&scene!(self, look), self.body, buf);
        }
        let valid = self.actions();
        self.footer(footer, &valid, buf);
        let look = popup::Look { theme: &self.theme, keymap: &self.keymap, lang: self.lang, valid: &valid };
        if let Some(popup) = &mut self.popup {
            let hits = popup.draw(&look, area, buf);
            self.hits = hits;
        }
        if self.ascii {
            super::glyph::to_ascii(buf);
        }
    }

    fn tabs(&mut self, line: Rect, buf: &mut Buffer) {
        let at = self.view();
        // Where not all names fit, only the one that is seen has more than its key.
        let label = |action: Action, whole: bool| {
            let key = self.keymap.keys(action).first().map_or(String::new(), Key::to_string);
            if whole { format!("{key} {}", action.text().get(self.lang)) } else { key }
        };
        let all: usize = self.views.iter().map(|(action, _)| text::width(&label(*action, true))).sum();
        let spare = usize::from(line.width).checked_sub(all + self.views.len().saturating_sub(1));
        let gap = if spare.is_some_and(|spare| spare >= self.views.len()) { 2 } else { 1 };
        let mut x = line.x;
        for (i, (action, _)) in self.views.iter().enumerate() {
            let style = self.theme.style(if i == at { Role::Tab } else { Role::Dim });
            let room = line.right().saturating_sub(x);
            let taken = text::put(buf, (x, line.y), &label(*action, spare.is_some() || i == at), room, style);
            self.hits.push((Rect { x, y: line.y, width: taken, height: 1 }, *action));
            x += taken + gap;
        }
    }

    /// Which capture and rank is looked at.
    fn title(&self, line: Rect, buf: &mut Buffer) {
        let Some(look) = self.opened.look(self.capture).filter(|_| line.height > 0) else { return };
        let style = |role| self.theme.style(role);
        let mut x = line.x + 1;
        let mut put = |text: &str, role: Role| {
            x += text::put(buf, (x, line.y), text, line.right().saturating_sub(x), style(role));
        };
        if self.opened.len() > 1 {
            put(&format!("{}/{} ", self.capture + 1, self.opened.len()), Role::Dim);
        }
        put(&text::safe(&look.capture.source), Role::Title);
        if look.capture.simulated {
            put(Text::new(" simulated", " 模拟数据").get(self.lang), Role::Warn);
        }
        if let Some(part) = look.capture.ranks.get(self.rank) {
            put(&format!("  rank {}", part.rank), Role::Text);
            if look.capture.ranks.len() > 1 {
                put(&format!(" ({}/{})", self.rank + 1, look.capture.ranks.len()), Role::Dim);
            }
            if let Some(class) = part.main_class() {
                put(&format!("  {}", text::safe(&class.key)), Role::Dim);
            }
        }
        let lost = look.capture.stats.iter().filter(|stat| stat.severity >= model::Severity::DataLoss);
        let lost: u64 = lost.map(|stat| stat.count).sum();
        if lost > 0 {
            let text = Text::new("lost in import", "导入丢失").get(self.lang);
            put(&format!("  {text}: {lost}"), Role::Warn);
        }
    }

    /// A message, or what can be done now with its keys.
    fn footer(&mut self, line: Rect, valid: &[Action], buf: &mut Buffer) {
        if let Some(message) = &self.message {
            text::put(buf, (line.x + 1, line.y), &text::safe(message), line.width, self.theme.style(Role::Warn));
            return;
        }
        let mut x = line.x + 1;
        // The way to everything else keeps its place at the end.
        let fixed = [Action::Help, Action::Palette, Action::Quit];
        let hint = |action: Action| {
            let key = self.keymap.keys(action).first().map_or(String::new(), Key::to_string);
            (key, action.text().get(self.lang))
        };
        let needed = |action: Action| {
            let (key, name) = hint(action);
            (text::width(&key) + text::width(name) + 3) as u16
        };
        let mut room = line.width.saturating_sub(1 + fixed.iter().map(|action| needed(*action)).sum::<u16>());
        let mut shown: Vec<Action> = Vec::new();
        for action in valid.iter().filter(|action| !fixed.contains(action) && !self.keymap.keys(**action).is_empty()) {
            if needed(*action) > room {
                break;
            }
            room -= needed(*action);
            shown.push(*action);
        }
        for action in shown.into_iter().chain(fixed) {
            let (key, name) = hint(action);
            let start = x;
            x += text::put(buf, (x, line.y), &key, line.right().saturating_sub(x), self.theme.style(Role::Key));
            x += text::put(buf, (x + 1, line.y), name, line.right().saturating_sub(x + 1), self.theme.style(Role::Dim));
            self.hits.push((Rect { x: start, y: line.y, width: x + 1 - start, height: 1 }, action));
            x += 3;
        }
    }
}
