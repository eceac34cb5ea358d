//! What surrounds whatever fills the screen: the line of keys below it, the help, the palette and the search over it, colours,
//! messages, and what a click on any of them does. Written once for captures and for what is live.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    action::{Action, Scope},
    app::{Request, Settings},
    at::Start,
    key::Key,
    keymap::Keymap,
    popup::{self, Outcome, Page, Popup},
    text,
    theme::{Role, Theme},
    view::Point,
    widget::prose::Line,
};
use diagnosis::i18n::{Lang, Text};

/// The smallest terminal in which something can be read.
const LEAST: (u16, u16) = (20, 3);

/// Actions that mean the same wherever they are taken.
pub const COMMON: [Action; 5] = [Action::Palette, Action::Help, Action::ToggleMouse, Action::Redraw, Action::Suspend];

/// The surroundings.
pub struct Chrome {
    /// Keys.
    pub keymap: Keymap,
    /// Colours.
    pub theme: Theme,
    /// Language.
    pub lang: Lang,
    /// What is said in place of the keys until the next one.
    pub message: Option<String>,
    /// What can be clicked, from the last frame.
    pub hits: Vec<(Rect, Action)>,
    /// What the program was started on.
    pub start: Start,
    ascii: bool,
    mouse: bool,
    popup: Option<Popup>,
    dragged: Option<(u16, u16)>,
}

/// What a key or the mouse asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// Nothing, or what has been done already.
    Nothing,
    /// An action.
    Act(Action),
    /// To search for this.
    Search(String),
    /// A command with its argument.
    Command(String),
    /// One of the lines that [`Chrome::choose`] showed.
    Chosen(usize),
    /// The mouse did something to what fills the screen.
    Point(Point),
}

impl Chrome {
    /// The surroundings as they were asked for.
    pub fn new(settings: Settings) -> Self {
        let Settings { lang, theme, depth, ascii, mouse, keymap, start } = settings;
        Self {
            keymap,
            theme: Theme::new(&theme, depth),
            lang,
            message: None,
            hits: Vec::new(),
            start,
            ascii,
            mouse,
            popup: None,
            dragged: None,
        }
    }

    /// The same as they are now.
    pub fn settings(&self) -> Settings {
        Settings {
            lang: self.lang,
            theme: self.theme.name.clone(),
            depth: self.theme.depth,
            ascii: self.ascii,
            mouse: self.mouse,
            keymap: self.keymap.clone(),
            start: self.start.clone(),
        }
    }

    /// A text in the language of the interface.
    pub fn get(&self, text: Text) -> &'static str {
        text.get(self.lang)
    }

    /// Takes a key where the keys of `scope` are active.
    pub fn key(&mut self, key: Key, scope: Scope) -> Asked {
        if key == Key::CTRL_C {
            return Asked::Act(Action::Quit);
        }
        self.message = None;
        match &mut self.popup {
            Some(popup) => {
                let outcome = popup.key(key, &self.keymap);
                self.outcome(outcome)
            }
            None => self.keymap.action(key, scope).map_or(Asked::Nothing, Asked::Act),
        }
    }

    fn outcome(&mut self, outcome: Outcome) -> Asked {
        if outcome != Outcome::Stay {
            self.popup = None;
        }
        match outcome {
            Outcome::Act(action) => Asked::Act(action),
            Outcome::Search(search) => Asked::Search(search),
            Outcome::Command(typed) => Asked::Command(typed),
            Outcome::Chosen(at) => Asked::Chosen(at),
            Outcome::Stay | Outcome::Close => Asked::Nothing,
        }
    }

    /// Takes what the mouse did.
    pub fn point(&mut self, point: Point) -> Asked {
        match (point, &mut self.popup) {
            (Point::Click(x, y), popup) => {
                self.message = None;
                let over = popup.take();
                let hit = self.hits.iter().rev().find(|(area, _)| area.contains((x, y).into()));
                match hit {
                    Some((_, action)) => Asked::Act(*action),
                    None if over.is_some() => Asked::Nothing,
                    None => Asked::Point(point),
                }
            }
            (Point::Wheel(_, _, up), Some(popup)) => {
                popup.turn(up);
                Asked::Nothing
            }
            (Point::Drag(..), Some(_)) => Asked::Nothing,
            (point, None) => Asked::Point(point),
        }
    }

    /// Takes a movement with the button held, or its end.
    pub fn drag(&mut self, to: Option<(u16, u16)>) -> Asked {
        let from = std::mem::replace(&mut self.dragged, to);
        match (from, to) {
            (Some(from), Some(to)) => self.point(Point::Drag(from, to)),
            _ => Asked::Nothing,
        }
    }

    /// Shows lines under a title, to be read.
    pub fn show(&mut self, title: String, lines: Vec<Line>) {
        self.popup = Some(Popup::Page(Page::new(title, lines, false)));
    }

    /// The same, of which one can be taken.
    pub fn choose(&mut self, title: String, lines: Vec<Line>) {
        self.popup = Some(Popup::Page(Page::new(title, lines, true)));
    }

    /// Says that an action means nothing now.
    pub fn refuse(&mut self, action: Action) {
        let says = self.get(Text::new(": means nothing here now", "：当前无效"));
        self.message = Some(format!("{}{says}", self.get(action.text())));
    }

    /// Carries out an action that is the same everywhere; `None` for one that is not.
    pub fn act(&mut self, action: Action) -> Option<Option<Request>> {
        let request = match action {
            Action::Quit => Some(Request::Quit),
            Action::Suspend => Some(Request::Suspend),
            Action::Redraw => Some(Request::Redraw),
            Action::ToggleMouse => {
                self.mouse = !self.mouse;
                let says = match self.mouse {
                    true => Text::new("mouse on", "鼠标已启用"),
                    false => Text::new("mouse off: the terminal selects text", "鼠标已关闭：由终端选择文本"),
                };
                self.message = Some(self.get(says).to_owned());
                Some(Request::Mouse(self.mouse))
            }
            Action::Help => {
                self.popup = Some(Popup::Help(Default::default()));
                None
            }
            Action::Palette => {
                self.popup = Some(Popup::palette());
                None
            }
            Action::Search => {
                self.popup = Some(Popup::Search(String::new()));
                None
            }
            Action::CycleTheme => {
                self.theme = self.theme.next();
                self.message = Some(self.theme.name.clone());
                None
            }
            _ => return None,
        };
        Some(request)
    }

    /// Begins a frame. Where the terminal is too small to show anything it says so, and there is nothing else to draw.
    pub fn begin(&mut self, buf: &mut Buffer) -> bool {
        let area = buf.area;
        self.hits.clear();
        let small = area.width < LEAST.0 || area.height < LEAST.1;
        if small {
            let size = format!("{}x{} < {}x{}", area.width, area.height, LEAST.0, LEAST.1);
            text::put(buf, (area.x, area.y), &size, area.width, self.theme.style(Role::Strong));
        }
        !small
    }

    /// Ends a frame: the keys in its last line, what lies over it, and ASCII where there is nothing else.
    pub fn finish(&mut self, valid: &[Action], buf: &mut Buffer) {
        let area = buf.area;
        self.footer(Rect { y: area.bottom() - 1, height: 1, ..area }, valid, buf);
        let look = popup::Look { theme: &self.theme, keymap: &self.keymap, lang: self.lang, valid };
        if let Some(popup) = &mut self.popup {
            self.hits = popup.draw(&look, area, buf);
        }
        self.theme.ground(buf);
        if self.ascii {
            super::glyph::to_ascii(buf);
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
            // A long one leaves its place to shorter ones after it.
            if needed(*action) > room {
                continue;
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
