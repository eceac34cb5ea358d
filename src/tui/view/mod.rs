//! Views of a capture: one file per view and one line in [`all`]. A view says which actions mean something now, acts on
//! them, and draws itself; what reaches beyond it, it asks for as an [`Effect`].

mod diff;
mod findings;
mod import;
mod manifest;
mod operators;
pub(super) mod overview;
mod page;
mod ranks;
mod report;
pub(super) mod rule;
mod steps;
pub mod timeline;

pub use overview::initial;

use model::{Ns, SliceId, Span};
use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    action::{Action, Scope},
    at::At,
    opened::{Beside, Look},
    theme::Theme,
    widget::prose::Line,
};
use ::report::model::RankPart;
use diagnosis::{
    analysis::Rank,
    i18n::{Lang, Text},
};

/// What a view sees.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The capture.
    pub look: Look<'a>,
    /// The two captures that are compared, if any are.
    pub beside: Option<Beside<'a>>,
    /// The rank that is looked at, as an index.
    pub rank: usize,
    /// Language.
    pub lang: Lang,
    /// Colours.
    pub theme: &'a Theme,
    /// What is searched for; empty for nothing.
    pub search: &'a str,
    /// Columns of the screen.
    pub width: u16,
}

impl<'a> Scene<'a> {
    /// A text in the language of the interface.
    pub fn get(&self, text: Text) -> &'static str {
        text.get(self.lang)
    }

    /// The rank that is looked at.
    pub fn rank(&self) -> Option<&'a Rank> {
        self.look.analysis()?.ranks.get(self.rank)
    }

    /// What the report says of it.
    pub fn part(&self) -> Option<&'a RankPart> {
        self.look.capture()?.ranks.get(self.rank)
    }
}

/// A place in a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A slice of the trace.
    Slice(SliceId),
    /// A time on the lanes of the rank that is looked at.
    Time(Span),
    /// What a finding is about, by the finding's position: the longest stretch of time but for so many.
    Evidence(usize, usize),
    /// A stretch of time, the cursor, and a lane by its position; what is `None` stays as it is.
    Window {
        /// What is seen, on the clock that lanes are drawn on.
        window: Option<Span>,
        /// Where the cursor is.
        cursor: Option<Ns>,
        /// The lane.
        lane: Option<usize>,
    },
    /// A slot of the alignment of two captures, on the lanes of both.
    Slot(u32),
}

/// What an action of a view asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Nothing further.
    None,
    /// A place is to be shown in the timeline.
    Show(Place),
    /// The same of another capture, by its position.
    ShowOf(usize, Place),
    /// The same, and a name that `n` and `N` shall find further slices of.
    ShowNamed(Place, String),
    /// A text is to be copied.
    Copy(String),
    /// A command that opens this place again is to be copied.
    Link(At),
    /// Lines under a title are to be read.
    Tell(String, Vec<Line>),
    /// One of some places is to be chosen, each told in a line.
    Choose(String, Vec<(Line, Place)>),
    /// Something is to be said.
    Say(String),
}

/// What the mouse did, in cells of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A click.
    Click(u16, u16),
    /// A turn of the wheel: where, and whether up.
    Wheel(u16, u16, bool),
    /// A movement with the button held: from where, to where.
    Drag((u16, u16), (u16, u16)),
}

/// One view.
pub trait View {
    /// Whose keys it has beside those that are active everywhere.
    fn scope(&self) -> Scope;

    /// Actions of its own that mean something now, the most useful first.
    fn actions(&self, scene: &Scene<'_>) -> Vec<Action>;

    /// Carries out an action that [`View::actions`] named.
    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Effect;

    /// What the mouse did in it.
    fn point(&mut self, point: Point, scene: &Scene<'_>) -> Effect;

    /// Draws it.
    fn draw(&mut self, scene: &Scene<'_>, area: Rect, buf: &mut Buffer);

    /// What stands in place of the name of the capture, where the view is not of one capture.
    fn title(&self, _scene: &Scene<'_>) -> Option<Line> {
        None
    }

    /// What it shows in other forms than the text of the screen, or as a text of its own: extension and content of a file each.
    fn export(&self, _scene: &Scene<'_>) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Whether it has something to show before the capture is analysed.
    fn is_early(&self) -> bool {
        false
    }

    /// Stays where it is while the analysis of its capture comes in: lanes and slices are numbered anew.
    fn arrived(&mut self, _before: &Look<'_>, _after: &Look<'_>) {}

    /// Moves to a place; only the timeline has places.
    fn show(&mut self, _place: Place, _scene: &Scene<'_>) {}
}

/// The views in the order of their tabs, each with the action that leads to it; that of two captures where two are compared.
pub fn all(compared: bool) -> Vec<(Action, Box<dyn View>)> {
    let diff: Option<(Action, Box<dyn View>)> = compared.then(|| (DIFF, Box::<diff::Diff>::default() as _));
    let mut views: Vec<(Action, Box<dyn View>)> = vec![
        (Action::ShowOverview, Box::new(page::Page::new(overview::lines))),
        (TIMELINE, Box::new(timeline::Timeline::default())),
        (Action::ShowFindings, Box::new(findings::Findings::default())),
        (Action::ShowOperators, Box::new(operators::Operators::default())),
        (Action::ShowSteps, Box::new(steps::Steps::default())),
        (Action::ShowRanks, Box::new(page::Page::new(ranks::lines))),
        (Action::ShowImport, Box::new(page::Page::new(import::lines))),
        (Action::ShowManifest, Box::new(page::Page::new(manifest::lines))),
    ];
    views.extend(diff);
    let report = page::Page::new(report::lines).titled(diff::title).saved_as("md", report::markdown);
    views.push((Action::ShowReport, Box::new(report)));
    views
}

/// The action that leads to the view that has places.
pub const TIMELINE: Action = Action::ShowTimeline;
/// The action that leads to the view of two captures.
pub const DIFF: Action = Action::ShowDiff;
