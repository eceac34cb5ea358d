//! The findings: a list, and beside it all that the selected one rests on. One key leads to its evidence in the timeline.

use model::SliceId;
use ratatui::{buffer::Buffer, layout::Rect};

use super::{Effect, Place, Point, Scene, View, overview::mark, page::clean};
use crate::tui::{
    action::{Action, Scope},
    glyph, text,
    theme::Role,
    widget::{
        prose::{self, Line},
        rows::Rows,
        table::{self, Cell, Column},
    },
};
use diagnosis::{
    diagnose::{Finding, rules},
    i18n::{Lang, Message, Text, Value},
};
use report::{
    document::{Align, Document},
    phrase,
    sections::{self, words},
    units,
};

/// Width from which the list stands beside the text and not above it.
const BESIDE: u16 = 100;

/// The list of findings and the text of one.
#[derive(Default)]
pub struct Findings {
    rows: Rows,
    text: Rows,
    /// Which of the slices that support the selected finding is meant.
    evidence: usize,
    list: Rect,
    lines: usize,
}

/// Slices that support a finding, each with the fact it supports.
fn slices(finding: &Finding) -> Vec<(SliceId, usize)> {
    let facts = finding.evidence.iter().enumerate();
    facts.flat_map(|(fact, evidence)| evidence.rows.iter().map(move |row| (*row, fact))).collect()
}

/// Pieces of evidence that the timeline can show: stretches of time, or slices where no stretch is named.
fn pieces(finding: &Finding) -> usize {
    if finding.stretches.is_empty() { slices(finding).len() } else { finding.stretches.len() }
}

/// All findings of the capture.
fn all<'a>(scene: &Scene<'a>) -> &'a [Finding] {
    scene.look.capture().map_or(&[], |capture| &capture.findings)
}

/// What stands where there are none: that none was found, and how many rules could not have found any.
pub fn none(scene: &Scene<'_>) -> String {
    let undecided = scene.look.capture().map_or(0, |capture| capture.abstained.len() as u64);
    let text = Text::new(
        "None. Skipped rules: {n}; the report lists what they need.",
        "无。另有 {n} 条规则被跳过，所需输入见报告。",
    );
    phrase::plain(&Message::new(text, [("n", Value::Count(undecided))]), scene.lang)
}

/// What the report says of one.
fn told(scene: &Scene<'_>, at: usize) -> Document {
    scene.look.capture().map_or_else(Document::new, |capture| sections::finding(capture, at, scene.lang))
}

impl Findings {
    fn selected<'a>(&self, scene: &Scene<'a>) -> Option<&'a Finding> {
        all(scene).get(self.rows.at)
    }

    fn text(&self, scene: &Scene<'_>, width: usize) -> Vec<Line> {
        let mut lines = prose::lines(&told(scene, self.rows.at), width);
        let selected = self.selected(scene).map(|finding| (finding, pieces(finding)));
        if let Some((finding, count)) = selected.filter(|(_, count)| *count > 0) {
            let at = self.evidence.min(count - 1);
            let (title, fact) = match finding.stretches.is_empty() {
                true => {
                    let fact = slices(finding).get(at).and_then(|(_, fact)| finding.evidence.get(*fact));
                    (
                        Text::new("slice", "切片"),
                        fact.map_or(String::new(), |fact| phrase::plain_fact(fact, scene.lang)),
                    )
                }
                false => {
                    let span = finding.stretches.get(at).map(|stretch| stretch.span);
                    (Text::new("stretch", "区间"), span.map_or(String::new(), |span| units::brief(span.len())))
                }
            };
            let place = scene.get(Text::new("in the timeline:", "时间线中："));
            let line = [
                prose::piece(
                    format!("{} {place} {} {} / {count} ", glyph::POINTER, scene.get(title), at + 1),
                    Role::Key,
                ),
                prose::piece(fact, Role::Dim),
            ];
            let mut head = prose::wrap(&line, width, ("", "  "));
            head.push(Line::new());
            head.append(&mut lines);
            return head;
        }
        lines
    }

    fn go(&self, scene: &Scene<'_>) -> Effect {
        show(scene, self.rows.at, self.evidence)
    }
}

/// Shows a piece of the evidence of a finding, or a step that it speaks of.
pub(super) fn show(scene: &Scene<'_>, at: usize, piece: usize) -> Effect {
    let Some(finding) = all(scene).get(at) else { return Effect::None };
    if !finding.stretches.is_empty() {
        return Effect::Show(Place::Evidence(at, piece));
    }
    let slices = slices(finding);
    if let Some((slice, _)) = slices.get(piece.min(slices.len().saturating_sub(1))) {
        return Effect::Show(Place::Slice(*slice));
    }
    // A finding without slices speaks of steps: the first that counts shows them.
    let mut ranks = scene.look.analysis().into_iter().flat_map(|analysis| &analysis.ranks);
    let rank = ranks.find(|rank| finding.ranks.contains(&rank.rank)).or(scene.rank());
    let step = rank.and_then(|rank| {
        let class = rank.classes.iter().find(|class| class.key == finding.class).or(rank.main_class())?;
        rank.steady_steps(class).next().or(rank.steps.first())
    });
    match step {
        Some(step) => Effect::Show(Place::Time(step.window)),
        None => Effect::Say(scene.get(NOWHERE).to_owned()),
    }
}

const NOWHERE: Text = Text::new("this finding names no slice and no step", "该发现没有对应的切片或步");

impl View for Findings {
    fn scope(&self) -> Scope {
        Scope::List
    }

    fn actions(&self, scene: &Scene<'_>) -> Vec<Action> {
        let Some(finding) = self.selected(scene) else { return Vec::new() };
        let mut actions = vec![Action::Open, Action::Explain];
        actions.extend(Rows::actions(all(scene).len()).iter().take(2));
        if pieces(finding) > 1 {
            actions.extend([Action::Right, Action::Left]);
        }
        actions.extend([Action::PageDown, Action::PageUp, Action::Top, Action::Bottom, Action::Copy]);
        if !finding.remedy.is_empty() {
            actions.push(Action::CopyRemedy);
        }
        if !scene.search.is_empty() {
            actions.extend([Action::SearchNext, Action::SearchPrevious]);
        }
        actions
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Effect {
        let findings = all(scene);
        let before = self.rows.at;
        match action {
            Action::Open => return self.go(scene),
            Action::Explain => return super::rule::explain(scene, self.rows.at),
            Action::Right => {
                let most = self.selected(scene).map_or(0, |f| pieces(f).saturating_sub(1));
                self.evidence = (self.evidence + 1).min(most);
            }
            Action::Left => self.evidence = self.evidence.saturating_sub(1),
            Action::PageDown | Action::PageUp => self.text.scroll(action, self.lines),
            Action::Copy => {
                return Effect::Copy(clean(&told(scene, self.rows.at).markdown()));
            }
            Action::CopyRemedy => {
                let remedies = self.selected(scene).map_or(&[][..], |f| &f.remedy);
                let text = |remedy: &diagnosis::platform::Remedy| match scene.lang {
                    Lang::En => remedy.text_en.clone(),
                    Lang::Zh => remedy.text_zh.clone(),
                };
                return Effect::Copy(clean(&remedies.iter().map(text).collect::<Vec<_>>().join("\n")));
            }
            Action::SearchNext | Action::SearchPrevious => {
                let wanted = scene.search.to_lowercase();
                let holds = |at: &usize| told(scene, *at).markdown().to_lowercase().contains(&wanted);
                let found = match action {
                    Action::SearchNext => (self.rows.at + 1..findings.len()).find(holds),
                    _ => (0..self.rows.at).rev().find(holds),
                };
                match found {
                    Some(at) => self.rows.at = at,
                    None => return Effect::Say(scene.get(super::timeline::NOT_FOUND).to_owned()),
                }
            }
            action => self.rows.act(action, findings.len()),
        }
        if self.rows.at != before {
            (self.text, self.evidence) = (Rows::default(), 0);
        }
        Effect::None
    }

    fn point(&mut self, point: Point, scene: &Scene<'_>) -> Effect {
        match point {
            Point::Click(x, y) if self.list.contains((x, y).into()) => {
                let before = self.rows.at;
                self.rows.point(usize::from(y - self.list.y), all(scene).len());
                if before == self.rows.at {
                    return self.go(scene);
                }
                (self.text, self.evidence) = (Rows::default(), 0);
            }
            Point::Wheel(_, _, up) => {
                (0..3).for_each(|_| self.text.scroll(if up { Action::Up } else { Action::Down }, self.lines));
            }
            _ => {}
        }
        Effect::None
    }

    fn draw(&mut self, scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
        let findings = all(scene);
        if findings.is_empty() {
            let none = none(scene);
            text::put(buf, (area.x + 1, area.y), &none, area.width, scene.theme.style(Role::Dim));
            return;
        }
        let beside = area.width >= BESIDE;
        let (list, detail) = if beside {
            let width = (area.width * 2 / 5).min(60);
            (
                Rect { width, ..area },
                Rect { x: area.x + width + 2, width: area.width.saturating_sub(width + 3), ..area },
            )
        } else {
            let height = (findings.len() as u16 + 1).min(area.height / 3).max(2).min(area.height);
            let below = Rect { y: area.y + height, height: area.height - height, ..area };
            let line = glyph::LINE;
            text::fill(buf, (below.x, below.y), below.width, line, scene.theme.style(Role::Dim));
            let text = Rect {
                x: below.x + 1,
                y: below.y.saturating_add(1),
                width: below.width.saturating_sub(2),
                height: below.height.saturating_sub(1),
            };
            (Rect { height, ..area }, text)
        };
        if beside {
            for y in area.top()..area.bottom() {
                text::put(buf, (list.right(), y), glyph::BAR, 1, scene.theme.style(Role::Dim));
            }
        }
        let columns = [
            Column { title: String::new(), align: Align::Left, width: 1 },
            Column { title: scene.get(Text::new("rule", "规则")).to_owned(), align: Align::Left, width: 6 },
            Column { title: scene.get(Text::new("finding", "发现")).to_owned(), align: Align::Left, width: 0 },
            Column { title: scene.get(Text::new("severity", "严重程度")).to_owned(), align: Align::Left, width: 8 },
        ];
        let row = |at: usize| -> Vec<Cell> {
            let Some(finding) = findings.get(at) else { return Vec::new() };
            let role = Role::Severity(finding.severity);
            let title = rules::find(finding.rule).map_or("", |rule| scene.get(rule.doc().title));
            vec![
                (mark(finding.severity).to_string(), role),
                (finding.rule.to_owned(), Role::Name),
                (title.to_owned(), Role::Text),
                (scene.get(words::severity(finding.severity)).to_owned(), role),
            ]
        };
        let inside = Rect { width: list.width.saturating_sub(u16::from(beside)), ..list };
        self.list = table::draw(&columns, (&mut self.rows, findings.len()), row, scene.theme, inside, buf);
        let lines = self.text(scene, usize::from(detail.width));
        self.lines = lines.len();
        let top = self.text.scrolled(lines.len(), usize::from(detail.height));
        prose::draw(&lines, top, scene.theme, detail, buf);
        super::page::underline(scene, detail, buf);
    }
}
