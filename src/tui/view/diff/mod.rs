//! Two captures beside each other, panel by panel. A panel is a view of its own; what sets one side beside the other is not
//! there where the contract refuses that.
//!
//! | panel | shows |
//! | --- | --- |
//! | `ladders` | where the time of a step of each side goes |
//! | `waterfall` | what makes the difference, to the nanosecond |
//! | `layer` | the aligned slots with the kernels of both sides |
//! | `timelines` | a step of both under each other |
//! | `contract` | whether they may be compared, and why not |
//! | `readiness` | how ready both platforms are, and what is next |

mod contract;
mod ladders;
mod layer;
mod pictures;
mod readiness;
mod timelines;
mod waterfall;

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Effect, Place, Point, Scene, View, page::Page};
use crate::tui::{
    action::{Action, Scope},
    glyph, text,
    theme::Role,
    widget::prose::{Line, piece},
};
use diagnosis::i18n::Text;
use report::diff::{Head, words};

/// One panel.
struct Panel {
    name: Text,
    view: Box<dyn View>,
    /// Whether it sets one side beside the other.
    beside: bool,
    /// Where its name stood in the last frame.
    tab: Rect,
}

/// The view of two captures.
pub struct Diff {
    panels: Vec<Panel>,
    at: usize,
}

/// The panel that has places.
const TIMELINES: usize = 3;

impl Default for Diff {
    fn default() -> Self {
        let panel = |name, view: Box<dyn View>, beside| Panel { name, view, beside, tab: Rect::default() };
        Self {
            panels: vec![
                panel(Text::new("ladders", "阶梯"), Box::new(Page::new(ladders::lines)), false),
                panel(Text::new("waterfall", "瀑布"), Box::<waterfall::Waterfall>::default(), true),
                panel(Text::new("layer", "层"), Box::<layer::Layer>::default(), true),
                panel(Text::new("timelines", "时间线"), Box::<timelines::Timelines>::default(), true),
                panel(Text::new("contract", "契约"), Box::new(Page::new(contract::lines)), false),
                panel(Text::new("readiness", "就绪度"), Box::new(Page::new(readiness::lines)), false),
            ],
            at: 0,
        }
    }
}

impl Diff {
    /// Panels that may be seen, by position.
    fn open(&self, scene: &Scene<'_>) -> Vec<usize> {
        let compared = scene.beside.is_some_and(|beside| beside.report.difference.is_some());
        (0..).zip(&self.panels).filter(|(_, panel)| compared || !panel.beside).map(|(at, _)| at).collect()
    }

    fn turn(&mut self, scene: &Scene<'_>, forward: bool) {
        let open = self.open(scene);
        let at = open.iter().position(|panel| *panel == self.at).unwrap_or(0);
        let by = if forward { 1 } else { open.len().saturating_sub(1) };
        self.at = open.get((at + by) % open.len().max(1)).copied().unwrap_or(0);
    }

    /// Carries out what a panel asks of the others.
    fn taken(&mut self, effect: Effect, scene: &Scene<'_>) -> Effect {
        let Effect::Show(place @ Place::Slot(_)) = effect else { return effect };
        self.at = TIMELINES;
        if let Some(panel) = self.panels.get_mut(TIMELINES) {
            panel.view.show(place, scene);
        }
        Effect::None
    }

    fn tabs(&mut self, scene: &Scene<'_>, line: Rect, buf: &mut Buffer) {
        let open = self.open(scene);
        let mut x = line.x.saturating_add(1);
        for (at, panel) in self.panels.iter_mut().enumerate() {
            panel.tab = Rect::default();
            if !open.contains(&at) {
                continue;
            }
            let role = if at == self.at { Role::Strong } else { Role::Dim };
            let mark = if at == self.at { glyph::POINTER } else { " " };
            let room = line.right().saturating_sub(x);
            let name = format!("{mark}{}", scene.get(panel.name));
            let taken = text::put(buf, (x, line.y), &name, room, scene.theme.style(role));
            panel.tab = Rect { x, width: taken, height: 1, ..line };
            x = x.saturating_add(taken).saturating_add(2);
        }
    }
}

impl View for Diff {
    fn scope(&self) -> Scope {
        self.panels.get(self.at).map_or(Scope::List, |panel| panel.view.scope())
    }

    fn actions(&self, scene: &Scene<'_>) -> Vec<Action> {
        let mut actions = vec![Action::NextPanel];
        actions.extend(self.panels.get(self.at).map(|panel| panel.view.actions(scene)).into_iter().flatten());
        actions.push(Action::PreviousPanel);
        actions
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Effect {
        match action {
            Action::NextPanel | Action::PreviousPanel => {
                self.turn(scene, action == Action::NextPanel);
                Effect::None
            }
            action => {
                let effect = self.panels.get_mut(self.at).map(|panel| panel.view.act(action, scene));
                self.taken(effect.unwrap_or(Effect::None), scene)
            }
        }
    }

    fn point(&mut self, point: Point, scene: &Scene<'_>) -> Effect {
        if let Point::Click(x, y) = point
            && let Some(at) = self.panels.iter().position(|panel| panel.tab.contains((x, y).into()))
        {
            self.at = at;
            return Effect::None;
        }
        let effect = self.panels.get_mut(self.at).map(|panel| panel.view.point(point, scene));
        self.taken(effect.unwrap_or(Effect::None), scene)
    }

    fn draw(&mut self, scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
        let below = Rect { y: area.y.saturating_add(1), height: area.height.saturating_sub(1), ..area };
        if area.height > 0 {
            self.tabs(scene, Rect { height: 1, ..area }, buf);
        }
        if let Some(panel) = self.panels.get_mut(self.at) {
            panel.view.draw(scene, below, buf);
        }
    }

    fn title(&self, scene: &Scene<'_>) -> Option<Line> {
        title(scene)
    }

    fn export(&self, scene: &Scene<'_>) -> Vec<(&'static str, String)> {
        self.panels.get(self.at).map(|panel| panel.view.export(scene)).unwrap_or_default()
    }
}

/// A side by its name and the device that it ran on.
fn named(head: &Head) -> String {
    let device = head.device.as_deref().map_or(String::new(), |device| format!(" ({})", text::safe(device)));
    format!("{}{device}", text::safe(&head.name))
}

/// Cells of a side's name in the title.
const NAME: usize = 28;

/// Parts of the report as lines of a panel.
fn parts(scene: &Scene<'_>, of: &[report::diff::sections::Part], width: usize) -> Vec<Line> {
    let Some(beside) = scene.beside else { return Vec::new() };
    let text: report::document::Document = of.iter().map(|part| part.of(beside.report, scene.lang)).collect();
    crate::tui::widget::prose::lines(&text, width)
}

/// The names of both, what may be said of them, and that numbers are simulated where they are.
pub(super) fn title(scene: &Scene<'_>) -> Option<Line> {
    let beside = scene.beside?;
    let report = beside.report;
    let verdict = report.contract.verdict();
    let same = report.heads[0].name == report.heads[1].name;
    let mut line = vec![piece(scene.get(words::verdict(verdict)), Role::Warn)];
    for (letter, head) in ["  A ", "  B "].into_iter().zip(&report.heads) {
        line.push(piece(letter, Role::Dim));
        let [own, device] = [Some(&head.name), head.device.as_ref()]
            .map(|name| name.map_or(String::new(), |name| text::fit(&text::safe(name), NAME).into_owned()));
        line.push(piece(own, Role::Title));
        // Two captures of one name are told apart by what they ran on.
        if same && !device.is_empty() {
            line.push(piece(format!(" ({device})"), Role::Dim));
        }
        if head.simulated {
            line.push(piece(scene.get(Text::new(" simulated", " 模拟数据")), Role::Warn));
        }
    }
    let caveats = report.caveats();
    if report.difference.is_some() && !caveats.is_empty() {
        line.push(piece(format!("  {}", caveats.join(", ")), Role::Dim));
    }
    Some(line)
}
