//! Evidence: the stretches of time that a finding is about, or idle time with one owner, the costliest first. One stretch fills most of
//! the window; around it stand the lanes that have something to say there, chosen by [`focus`](super::focus).

use std::cmp::Reverse;

use model::{Ns, Span, StringId};
use rustc_hash::FxHashMap;

use super::{
    NOT_FOUND, Timeline,
    focus::{self, Focus},
};
use crate::tui::{
    text,
    theme::Role,
    view::{Effect, Scene},
    widget::prose::{Line, piece},
};
use diagnosis::{
    analysis::{Bucket, Layer, Rank},
    diagnose::{Stretch, rules},
    i18n::Text,
};
use report::{timeline::Evidence as Drawn, units};

/// Stretches that are walked through, and how they are shown.
pub struct Evidence {
    /// What they are evidence of.
    head: Line,
    /// The rank whose device they are on, as an index.
    rank: usize,
    /// The stretches by the rank's own clock, the costliest first.
    spans: Vec<Stretch>,
    /// The one that is seen.
    at: usize,
    /// Names that the claim says.
    names: Vec<StringId>,
    /// Whether other ranks belong into the picture.
    several: bool,
    /// The rule of the finding, if it is one's.
    rule: Option<&'static str>,
    /// Position among the owners of idle time, if it is idle time of one owner.
    owner: Option<usize>,
    /// The lanes around the stretch that is seen.
    pub focus: Focus,
}

impl Evidence {
    /// That of a finding, by its position; `None` where it names no stretch.
    fn of_finding(scene: &Scene<'_>, at: usize, stretch: usize) -> Option<Self> {
        let finding = scene.look.capture()?.findings.get(at)?;
        let spans = finding.stretches.clone();
        if spans.is_empty() {
            return None;
        }
        let (rank, names) = focus::about(&scene.look, finding);
        let rank = rank.unwrap_or(scene.rank);
        let title = rules::find(finding.rule).map_or("", |rule| scene.get(rule.doc().title));
        let head = vec![piece(finding.rule, Role::Name), piece(format!(" {title}"), Role::Title)];
        let (at, several) = (stretch.min(spans.len() - 1), finding.layer == Layer::Communication);
        Some(Self {
            head,
            rank,
            spans,
            at,
            names,
            several,
            rule: Some(finding.rule),
            owner: None,
            focus: Focus::default(),
        })
    }

    /// Idle time of the owner with this position, the costliest first.
    fn of_owner(scene: &Scene<'_>, rank: usize, at: usize) -> Option<Self> {
        let analysis = scene.look.analysis()?;
        let owners = owners(analysis.ranks.get(rank)?);
        let at = at % owners.len().max(1);
        let ((bucket, name), spans) = owners.get(at)?;
        let number = Text::new("idle time", "空闲时间");
        let mut head = vec![piece(
            format!("{} {} / {} ", scene.get(number), at + 1, units::count(owners.len() as u64)),
            Role::Dim,
        )];
        head.push(piece(bucket.name(&analysis.host_labels), Role::Name));
        if let Some(name) = name {
            let name = text::safe(scene.look.trace.strings.get(*name));
            head.push(piece(format!(" {name}"), Role::Title));
        }
        let (names, spans) = (name.iter().copied().collect(), longest_first(spans));
        Some(Self {
            head,
            rank,
            spans,
            at: 0,
            names,
            several: false,
            rule: None,
            owner: Some(at),
            focus: Focus::default(),
        })
    }

    /// The stretch that is seen.
    pub fn span(&self) -> Option<Span> {
        self.spans.get(self.at).map(|stretch| stretch.span)
    }

    /// The stretch that is seen, as a picture draws it.
    pub fn drawn(&self, scene: &Scene<'_>) -> Option<Drawn> {
        let span = scene.look.lanes.aligned(self.rank, self.span()?);
        Some(Drawn { span, rule: self.rule?, of: self.spans.len(), frames: Vec::new() })
    }

    /// What it is evidence of, and which stretch is seen.
    pub fn title(&self, scene: &Scene<'_>) -> Line {
        let of = match scene.lang {
            diagnosis::i18n::Lang::En => format!("{} of {}", self.at + 1, units::count(self.spans.len() as u64)),
            diagnosis::i18n::Lang::Zh => {
                format!("第 {} 段，共 {} 段", self.at + 1, units::count(self.spans.len() as u64))
            }
        };
        let length = self.span().map_or(0, |span| span.len());
        let total = self.spans.iter().map(|stretch| stretch.cost).fold(0, Ns::saturating_add);
        let mut line = vec![piece(format!("{of}: {}  ", units::brief(length)), Role::Strong)];
        line.extend(self.head.iter().cloned());
        if self.spans.len() > 1 {
            let all = scene.get(Text::new("in all", "合计"));
            line.push(piece(format!("  {all} {}", units::brief(total)), Role::Dim));
        }
        line
    }
}

/// Pauses as stretches, the longest first.
fn longest_first(spans: &[Span]) -> Vec<Stretch> {
    let mut out: Vec<Stretch> = spans.iter().map(|span| Stretch { span: *span, cost: span.len() }).collect();
    out.sort_by_key(|stretch| (Reverse(stretch.cost), stretch.span.start));
    out
}

/// Idle time by what it is attributed to and by the record of the host that owns it.
type Owned = ((Bucket, Option<StringId>), Vec<Span>);

/// The owners of a rank's idle time, the costliest first.
fn owners(rank: &Rank) -> Vec<Owned> {
    let mut found: FxHashMap<(Bucket, Option<StringId>), Vec<Span>> = FxHashMap::default();
    for (at, gap) in rank.gaps.iter().enumerate() {
        let most = gap.parts.iter().max_by_key(|(_, part)| (part.len(), Reverse(part.start)));
        let Some((bucket, _)) = most else { continue };
        let owner = rank.owners.of(at).map(|owner| owner.name);
        found.entry((*bucket, owner)).or_default().push(gap.span);
    }
    let mut found: Vec<Owned> = found.into_iter().collect();
    let total = |spans: &[Span]| spans.iter().map(|span| span.len()).fold(0, Ns::saturating_add);
    found.sort_by_key(|(_, spans)| (Reverse(total(spans)), spans.first().map(|span| span.start)));
    found
}

impl Timeline {
    /// Shows the evidence of a finding, the costliest stretch but for so many.
    pub(super) fn show_finding(&mut self, scene: &Scene<'_>, finding: usize, stretch: usize) {
        if let Some(evidence) = Evidence::of_finding(scene, finding, stretch) {
            self.begin(scene, evidence);
        }
    }

    /// Shows the costliest idle time, by its owner; asked for once more, that of the next owner.
    pub(super) fn show_costliest(&mut self, scene: &Scene<'_>) -> Effect {
        let at = self.evidence.as_ref().and_then(|evidence| evidence.owner).map_or(0, |at| at + 1);
        let group = scene.look.lanes.groups.iter().find(|group| group.lanes.contains(&self.lane));
        let rank = group.and_then(|group| group.rank).map_or(scene.rank, |(at, _)| at);
        match Evidence::of_owner(scene, rank, at) {
            Some(evidence) => {
                self.begin(scene, evidence);
                Effect::None
            }
            None => Self::not_yet(scene).unwrap_or_else(|| Effect::Say(scene.get(NOT_FOUND).to_owned())),
        }
    }

    /// The stretch after the one that is seen or before it, and round.
    pub(super) fn walk(&mut self, scene: &Scene<'_>, forward: bool) -> Effect {
        if let Some(mut evidence) = self.evidence.take() {
            let count = evidence.spans.len().max(1);
            evidence.at = (evidence.at + if forward { 1 } else { count - 1 }) % count;
            self.begin(scene, evidence);
        }
        Effect::None
    }

    fn begin(&mut self, scene: &Scene<'_>, mut evidence: Evidence) {
        let Some(own) = evidence.span() else { return };
        let span = scene.look.lanes.aligned(evidence.rank, own);
        self.window(scene).around(span);
        let seen = self.window(scene).span;
        let room = if self.plot.height == 0 { ROOM } else { usize::from(self.plot.height) };
        evidence.focus =
            Focus::on(&scene.look, (evidence.rank, evidence.several), (own, span, seen), &evidence.names, room);
        self.cursor = span.start;
        if let Some((lane, slot)) = evidence.focus.pick {
            (self.lane, self.slot) = (lane, Some(slot));
        }
        self.top = 0;
        self.evidence = Some(evidence);
    }
}

/// Rows for lanes that are assumed before anything was drawn.
const ROOM: usize = 24;
