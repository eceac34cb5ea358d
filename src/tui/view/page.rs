//! A view that is a text: parts of the report, to be scrolled and searched.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Effect, Point, Scene, View};
use crate::tui::{
    action::{Action, Scope},
    export, glyph, text,
    theme::Role,
    widget::{
        prose::{self, Line},
        rows::Rows,
    },
};
use diagnosis::i18n::Lang;
use report::text::visible;

/// Cells between the text and the edge of the screen, and between the text and the scroll bar.
const MARGIN: u16 = 1;
/// Widest line of a text that people read without losing the next one.
const WIDEST: u16 = 120;

/// A text that is laid out.
#[derive(Default)]
pub struct Laid {
    /// Its lines.
    pub lines: Vec<Line>,
    /// Lines that speak of a finding, each with the finding's position.
    pub findings: Vec<(usize, usize)>,
}

impl From<Vec<Line>> for Laid {
    fn from(lines: Vec<Line>) -> Self {
        Self { lines, findings: Vec::new() }
    }
}

/// What lays a text out for a width.
type Make = Box<dyn Fn(&Scene<'_>, usize) -> Laid>;
/// What makes the content of a file.
type Content = fn(&Scene<'_>) -> String;

/// A text of one capture.
pub struct Page {
    make: Make,
    /// Extension of the file that it is written to beside its text, and what that holds.
    saved: Option<(&'static str, Content)>,
    /// What stands in place of the name of the capture.
    title: fn(&Scene<'_>) -> Option<Line>,
    /// The lines, and for which width, language and rank they were made.
    made: Option<((u16, Lang, usize), Laid)>,
    rows: Rows,
    /// Which of the findings that it speaks of is selected.
    finding: usize,
    body: Rect,
}

impl Page {
    /// A page whose lines `make` lays out for a width.
    pub fn new<L: Into<Laid> + 'static>(make: fn(&Scene<'_>, usize) -> L) -> Self {
        let make: Make = Box::new(move |scene, width| make(scene, width).into());
        Self {
            make,
            saved: None,
            title: |_| None,
            made: None,
            rows: Rows::default(),
            finding: 0,
            body: Rect::default(),
        }
    }

    /// The same under a title of its own, where there is one.
    pub fn titled(self, title: fn(&Scene<'_>) -> Option<Line>) -> Self {
        Self { title, ..self }
    }

    /// The same, written also to a file with this extension.
    pub fn saved_as(self, extension: &'static str, content: Content) -> Self {
        Self { saved: Some((extension, content)), ..self }
    }

    fn lines(&self) -> &[Line] {
        self.made.as_ref().map_or(&[], |(_, laid)| &laid.lines)
    }

    fn findings(&self) -> &[(usize, usize)] {
        self.made.as_ref().map_or(&[], |(_, laid)| &laid.findings)
    }

    /// Whether the line of the selected finding is seen.
    fn sees_finding(&self) -> bool {
        let seen = self.rows.top..self.rows.top + usize::from(self.body.height);
        self.findings().get(self.finding).is_some_and(|(line, _)| seen.contains(line))
    }

    /// The finding after the selected one or before it; where that is out of sight, the next one from what is seen.
    fn next_finding(&self, forward: bool) -> usize {
        let before = |line: usize| self.findings().partition_point(|(at, _)| *at < line);
        match (self.sees_finding(), forward) {
            (true, true) => self.finding + 1,
            (true, false) => self.finding.saturating_sub(1),
            (false, true) => before(self.rows.top),
            (false, false) => before(self.rows.top).saturating_sub(1),
        }
    }

    /// Selects another finding and shows its line.
    fn select(&mut self, finding: usize) {
        if let Some((line, _)) = self.findings().get(finding) {
            let (line, height) = (*line, usize::from(self.body.height));
            self.finding = finding;
            self.rows.top = self.rows.top.clamp((line + 1).saturating_sub(height.max(1)), line);
        }
    }

    /// Shows the evidence of the selected finding.
    fn open(&self, scene: &Scene<'_>) -> Effect {
        let finding = self.findings().get(self.finding);
        finding.map_or(Effect::None, |(_, finding)| super::findings::show(scene, *finding, 0))
    }

    /// The next line that holds what is searched for, from the one at the top on.
    fn seek(&mut self, search: &str, forward: bool) -> bool {
        let wanted = search.to_lowercase();
        let lines = self.made.as_ref().map_or(&[][..], |(_, laid)| &laid.lines);
        let holds = |at: &usize| lines.get(*at).is_some_and(|line| prose::plain(line).to_lowercase().contains(&wanted));
        let found =
            if forward { (self.rows.top + 1..lines.len()).find(holds) } else { (0..self.rows.top).rev().find(holds) };
        self.rows.top = found.unwrap_or(self.rows.top);
        found.is_some()
    }
}

impl View for Page {
    fn scope(&self) -> Scope {
        Scope::List
    }

    fn actions(&self, scene: &Scene<'_>) -> Vec<Action> {
        let mut actions = Vec::new();
        let others: &[Action] = match self.findings().len() > usize::from(self.sees_finding()) {
            true => &[Action::Right, Action::Left],
            false => &[],
        };
        // What leads to the findings comes first where none is seen.
        if self.sees_finding() {
            actions.extend([Action::Open, Action::Explain]);
            actions.extend(Rows::actions(self.lines().len()));
            actions.extend(others);
        } else {
            actions.extend(others);
            actions.extend(Rows::actions(self.lines().len()));
        }
        actions.push(Action::Copy);
        if !scene.search.is_empty() {
            actions.extend([Action::SearchNext, Action::SearchPrevious]);
        }
        actions
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Effect {
        match action {
            Action::Open => return self.open(scene),
            Action::Explain => {
                let finding = self.findings().get(self.finding);
                return finding.map_or(Effect::None, |(_, finding)| super::rule::explain(scene, *finding));
            }
            Action::Right | Action::Left => self.select(self.next_finding(action == Action::Right)),
            Action::SearchNext | Action::SearchPrevious => {
                if !self.seek(scene.search, action == Action::SearchNext) {
                    return Effect::Say(scene.get(super::timeline::NOT_FOUND).to_owned());
                }
            }
            Action::Copy => {
                let lines: Vec<String> = self.lines().iter().map(prose::plain).collect();
                return Effect::Copy(clean(&lines.join("\n")));
            }
            action => {
                let len = self.lines().len();
                self.rows.scroll(action, len);
            }
        }
        Effect::None
    }

    fn point(&mut self, point: Point, scene: &Scene<'_>) -> Effect {
        match point {
            Point::Wheel(_, _, up) => {
                let len = self.lines().len();
                (0..3).for_each(|_| self.rows.scroll(if up { Action::Up } else { Action::Down }, len));
            }
            Point::Click(x, y) if self.body.contains((x, y).into()) => {
                let line = self.rows.top + usize::from(y - self.body.y);
                if let Some(finding) = self.findings().iter().position(|(at, _)| *at == line) {
                    if finding == self.finding {
                        return self.open(scene);
                    }
                    self.select(finding);
                }
            }
            _ => {}
        }
        Effect::None
    }

    fn title(&self, scene: &Scene<'_>) -> Option<Line> {
        (self.title)(scene)
    }

    fn export(&self, scene: &Scene<'_>) -> Vec<(&'static str, String)> {
        // All of the text, not the part of it that is seen.
        let lines: Vec<String> = self.lines().iter().map(prose::plain).collect();
        let more = self.saved.iter().map(|(extension, content)| (*extension, content(scene)));
        std::iter::once(("txt", export::text(&lines))).chain(more).collect()
    }

    fn draw(&mut self, scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
        let width = area.width.saturating_sub(2 * MARGIN + 1).min(WIDEST);
        let made_for = (width, scene.lang, scene.rank);
        if self.made.as_ref().is_none_or(|(key, _)| *key != made_for) {
            self.made = Some((made_for, (self.make)(scene, usize::from(width))));
        }
        let len = self.lines().len();
        let top = self.rows.scrolled(len, usize::from(area.height));
        let inner = Rect { x: area.x + MARGIN.min(area.width), width, ..area };
        prose::draw(self.lines(), top, scene.theme, inner, buf);
        underline(scene, inner, buf);
        self.body = area;
        let selected = self.findings().get(self.finding).and_then(|(line, _)| line.checked_sub(top));
        if let Some(y) = selected.filter(|line| *line < usize::from(area.height)) {
            text::put(buf, (area.x, area.y + y as u16), glyph::POINTER, 1, scene.theme.style(Role::Strong));
        }
        scroll_bar((top, len), scene, area, buf);
    }
}

/// In the margin, which part of a text of `len` lines is seen from `top` on; nothing where all of it is.
fn scroll_bar((top, len): (usize, usize), scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
    let height = usize::from(area.height);
    if len <= height || area.is_empty() {
        return;
    }
    let thumb = (height * height / len).max(1);
    let above = (height - thumb) * top / (len - height).max(1);
    for y in (area.top()..area.bottom()).skip(above).take(thumb) {
        text::put(buf, (area.right() - 1, y), glyph::THUMB, 1, scene.theme.style(Role::Dim));
    }
}

/// Marks what is searched for in the rows of an area.
pub fn underline(scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
    let wanted: Vec<char> = scene.search.to_lowercase().chars().collect();
    if wanted.is_empty() {
        return;
    }
    let style = scene.theme.style(Role::Match);
    for y in area.top()..area.bottom() {
        let cells: Vec<char> = (area.left()..area.right())
            .map(|x| buf.cell((x, y)).and_then(|c| c.symbol().chars().next()).unwrap_or(' '))
            .flat_map(|c| c.to_lowercase().next())
            .collect();
        for (start, window) in cells.windows(wanted.len()).enumerate() {
            if window == wanted {
                buf.set_style(Rect { x: area.x + start as u16, y, width: wanted.len() as u16, height: 1 }, style);
            }
        }
    }
}

/// Text for the clipboard: one that is pasted into a shell must not act on it.
pub fn clean(text: &str) -> String {
    text.lines().map(visible).collect::<Vec<_>>().join("\n")
}
