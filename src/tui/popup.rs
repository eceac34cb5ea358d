//! What lies over a view for a moment: the help, the palette, and the line in which a search is typed. All of them are made
//! from the actions and the keymap.

mod page;

use ratatui::{buffer::Buffer, layout::Rect, widgets::Widget};

use super::{
    action::{Action, Scope},
    app::command::{COMMANDS, is_command},
    glyph,
    key::Key,
    keymap::Keymap,
    text,
    theme::{Role, Theme},
    widget::rows::Rows,
};
use diagnosis::i18n::{Lang, Text};
pub use page::Page;

/// Characters of a search or of a filter.
const LONGEST: usize = 200;

/// What lies over the view.
#[derive(Clone, Debug)]
pub enum Popup {
    /// All actions with their keys.
    Help(Rows),
    /// Actions whose text holds what was typed.
    Palette {
        /// What was typed.
        typed: String,
        /// The selected action.
        rows: Rows,
    },
    /// A search that is being typed.
    Search(String),
    /// Lines to be read or chosen from.
    Page(Page),
}

/// What a key did to a popup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It stays.
    Stay,
    /// It goes.
    Close,
    /// It goes, and the action is carried out.
    Act(Action),
    /// It goes, and this is searched for.
    Search(String),
    /// It goes, and this command is carried out.
    Command(String),
    /// It goes, and this line of it is taken.
    Chosen(usize),
}

/// What a popup is drawn with.
pub struct Look<'a> {
    /// Colours.
    pub theme: &'a Theme,
    /// Keys.
    pub keymap: &'a Keymap,
    /// Language.
    pub lang: Lang,
    /// Actions that mean something now.
    pub valid: &'a [Action],
}

/// Actions whose text, in either language, or name holds `typed`.
fn matching(typed: &str) -> Vec<Action> {
    let typed = typed.to_lowercase();
    let holds = |action: &Action| {
        let Text { en, zh } = action.text();
        [action.id(), en, zh].iter().any(|text| text.to_lowercase().contains(&typed))
    };
    Action::ALL.iter().copied().filter(holds).collect()
}

impl Popup {
    /// The palette with nothing typed.
    pub fn palette() -> Self {
        Self::Palette { typed: String::new(), rows: Rows::default() }
    }

    /// Takes a key. What types a character types it where text is asked for; everything else acts by the keymap.
    pub fn key(&mut self, key: Key, keymap: &Keymap) -> Outcome {
        let action = keymap.action(key, Scope::Move);
        match self {
            Self::Help(rows) => match action {
                Some(Action::Back | Action::Help | Action::Quit) => Outcome::Close,
                Some(action) => {
                    rows.scroll(action, usize::MAX / 2);
                    Outcome::Stay
                }
                None => Outcome::Stay,
            },
            Self::Palette { typed, rows } => {
                let len = matching(typed).len();
                if edit(typed, key) {
                    *rows = Rows::default();
                    return Outcome::Stay;
                }
                match action {
                    Some(Action::Open) if is_command(typed) => Outcome::Command(typed.clone()),
                    Some(Action::Open) => matching(typed).get(rows.at).map_or(Outcome::Close, |a| Outcome::Act(*a)),
                    Some(Action::Back | Action::Quit) => Outcome::Close,
                    Some(action) => {
                        rows.act(action, len);
                        Outcome::Stay
                    }
                    None => Outcome::Stay,
                }
            }
            Self::Page(page) => page.key(action),
            Self::Search(typed) => {
                if edit(typed, key) {
                    return Outcome::Stay;
                }
                match action {
                    Some(Action::Open) => Outcome::Search(typed.clone()),
                    Some(Action::Back | Action::Quit) => Outcome::Close,
                    _ => Outcome::Stay,
                }
            }
        }
    }

    /// Takes a turn of the wheel.
    pub fn turn(&mut self, up: bool) {
        let action = if up { Action::Up } else { Action::Down };
        match self {
            Self::Help(rows) => (0..3).for_each(|_| rows.scroll(action, usize::MAX / 2)),
            Self::Palette { typed, rows } => (0..3).for_each(|_| rows.act(action, matching(typed).len())),
            Self::Page(page) => (0..3).for_each(|_| page.turn(action)),
            Self::Search(_) => {}
        }
    }

    /// Draws it over a view, and says which lines stand for which actions.
    pub fn draw(&mut self, look: &Look<'_>, area: Rect, buf: &mut Buffer) -> Vec<(Rect, Action)> {
        match self {
            Self::Help(rows) => help(rows, look, area, buf),
            Self::Palette { typed, rows } => palette(typed, rows, look, area, buf),
            Self::Page(page) => {
                page.draw(look, area, buf);
                Vec::new()
            }
            Self::Search(typed) => {
                let line = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
                ratatui::widgets::Clear.render(line, buf);
                prompt("/", typed, line, look, buf);
                Vec::new()
            }
        }
    }
}

/// Takes a key into a text; whether it was one that edits.
fn edit(typed: &mut String, key: Key) -> bool {
    if key.erases() {
        return typed.pop().is_some();
    }
    match key.typed() {
        Some(c) if typed.chars().count() < LONGEST => {
            typed.push(c);
            true
        }
        typed => typed.is_some(),
    }
}

fn prompt(mark: &str, typed: &str, line: Rect, look: &Look<'_>, buf: &mut Buffer) {
    let x = text::put(buf, (line.x, line.y), mark, line.width, look.theme.style(Role::Key)) + line.x;
    // The end is what is being typed.
    let room = usize::from(line.right().saturating_sub(x + 1));
    let mut shown = typed;
    while text::width(shown) > room {
        let mut letters = shown.chars();
        letters.next();
        shown = letters.as_str();
    }
    let x = x + text::put(buf, (x, line.y), shown, line.right().saturating_sub(x), look.theme.style(Role::Strong));
    text::put(buf, (x, line.y), "_", 1, look.theme.style(Role::Dim));
}

/// A frame in the middle of an area, and what it leaves inside.
fn frame(title: &str, (width, height): (u16, u16), look: &Look<'_>, area: Rect, buf: &mut Buffer) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    let outer = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    ratatui::widgets::Clear.render(outer, buf);
    // A wide character that reaches under the frame would be drawn over its side.
    for (x, y) in outer.x.checked_sub(1).into_iter().flat_map(|x| (outer.top()..outer.bottom()).map(move |y| (x, y))) {
        if let Some(cell) = buf.cell_mut((x, y)).filter(|cell| text::width(cell.symbol()) > 1) {
            cell.set_symbol(" ");
        }
    }
    let dim = look.theme.style(Role::Dim);
    let last = (outer.right().saturating_sub(1), outer.bottom().saturating_sub(1));
    for y in outer.top()..outer.bottom() {
        text::put(buf, (outer.x, y), glyph::BAR, 1, dim);
        text::put(buf, (last.0, y), glyph::BAR, 1, dim);
    }
    for y in [outer.y, last.1] {
        text::fill(buf, (outer.x, y), outer.width, glyph::LINE, dim);
    }
    for (corner, mark) in [((outer.x, outer.y), "┌"), ((last.0, outer.y), "┐"), ((outer.x, last.1), "└"), (last, "┘")]
    {
        text::put(buf, corner, mark, 1, dim);
    }
    text::put(
        buf,
        (outer.x + 2, outer.y),
        &format!(" {title} "),
        width.saturating_sub(4),
        look.theme.style(Role::Title),
    );
    Rect { x: outer.x + 2, y: outer.y + 1, width: width.saturating_sub(4), height: height.saturating_sub(2) }
}

/// Keys of an action as the help writes them.
fn keys(keymap: &Keymap, action: Action) -> String {
    keymap.keys(action).iter().map(Key::to_string).collect::<Vec<_>>().join(" ")
}

/// One action in a line: its keys, and what it does.
fn entry(action: Action, line: Rect, look: &Look<'_>, buf: &mut Buffer) {
    const KEYS: u16 = 15;
    let valid = look.valid.contains(&action);
    let role = |role| look.theme.style(if valid { role } else { Role::Dim });
    text::put(buf, (line.x, line.y), &keys(look.keymap, action), KEYS.min(line.width), role(Role::Key));
    let room = line.width.saturating_sub(KEYS + 1);
    text::put(buf, (line.x + KEYS + 1, line.y), action.text().get(look.lang), room, role(Role::Text));
}

fn help(rows: &mut Rows, look: &Look<'_>, area: Rect, buf: &mut Buffer) -> Vec<(Rect, Action)> {
    let title = Text::new("help: what means nothing now is dim", "帮助：当前无效的项变暗").get(look.lang);
    let inner = frame(title, (80, area.height.saturating_sub(2)), look, area, buf);
    let mut lines: Vec<Result<Action, Scope>> = Vec::new();
    for scope in Scope::ALL {
        lines.push(Err(scope));
        lines.extend(Action::ALL.iter().copied().filter(|action| action.scope() == scope).map(Ok));
    }
    // Two columns where there is room; the second goes on where the first ends.
    let columns = if inner.width >= 60 { 2 } else { 1 };
    let per_column = lines.len().div_ceil(columns);
    let top = rows.scrolled(per_column, usize::from(inner.height));
    let hidden = per_column.saturating_sub(top + usize::from(inner.height));
    if hidden > 0 {
        let note = format!(" ↓ {hidden} ");
        text::put_right(buf, (inner.x, inner.right(), inner.bottom()), &note, look.theme.style(Role::Dim));
    }
    let mut hits = Vec::new();
    let width = inner.width / columns as u16;
    for column in 0..columns {
        let shown = lines.iter().skip(column * per_column).take(per_column).skip(top);
        for (line, y) in shown.zip(inner.top()..inner.bottom()) {
            let at = Rect { x: inner.x + width * column as u16, y, width: width.saturating_sub(1), height: 1 };
            match line {
                Err(scope) => {
                    let title = scope.text().get(look.lang);
                    text::put(buf, (at.x, at.y), title, at.width, look.theme.style(Role::Title));
                }
                Ok(action) => {
                    entry(*action, at, look, buf);
                    hits.push((at, *action));
                }
            }
        }
    }
    hits
}

fn palette(typed: &str, rows: &mut Rows, look: &Look<'_>, area: Rect, buf: &mut Buffer) -> Vec<(Rect, Action)> {
    let found = matching(typed);
    let title = Action::Palette.text().get(look.lang);
    let inner = frame(title, (60, 20), look, area, buf);
    prompt(":", typed, Rect { height: inner.height.min(1), ..inner }, look, buf);
    let list = Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner };
    let mut hits = Vec::new();
    // What takes an argument is told as long as it may be meant.
    let word = typed.split(' ').next().unwrap_or("");
    let told = COMMANDS.iter().filter(|(usage, _)| usage.split(' ').next().is_some_and(|name| name.starts_with(word)));
    let told: Vec<_> = if word.is_empty() || found.is_empty() { told.collect() } else { Vec::new() };
    let below = (inner.height as usize).saturating_sub(found.len() + 1).min(told.len()).max(if word.is_empty() {
        told.len()
    } else {
        0
    });
    let list = Rect { height: list.height.saturating_sub(below as u16), ..list };
    for ((usage, what), y) in told.into_iter().take(below).zip(list.bottom()..inner.bottom()) {
        let style = look.theme.style(Role::Dim);
        text::put(
            buf,
            (inner.x + 2, y),
            &format!(":{usage:<14} {}", what.get(look.lang)),
            inner.width.saturating_sub(2),
            style,
        );
    }
    let top = rows.seen(found.len(), usize::from(list.height));
    for ((at, action), y) in found.iter().enumerate().skip(top).zip(list.top()..list.bottom()) {
        let line = Rect { y, height: 1, ..list };
        entry(*action, Rect { x: line.x + 2, width: line.width.saturating_sub(2), ..line }, look, buf);
        if at == rows.at {
            text::put(buf, (line.x, line.y), glyph::POINTER, 1, look.theme.style(Role::Strong));
            buf.set_style(line, look.theme.style(Role::Selected));
        }
        hits.push((line, *action));
    }
    hits
}
