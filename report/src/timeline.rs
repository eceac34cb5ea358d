//! A stretch of time of a capture, lane by lane, as values that a page or a picture draws. Whoever draws it needs no trace.

use model::{Ns, Span};

use diagnosis::{
    analysis::clock::Offset,
    i18n::{Lang, Text},
};

/// What is drawn.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Whether it is simulated rather than measured.
    pub simulated: bool,
    /// Time that it holds.
    pub window: Span,
    /// Time that is seen first; lies in `window`.
    pub focus: Span,
    /// What it is the evidence of, if it was drawn for that.
    pub evidence: Option<Evidence>,
    /// The capture's zero, from which times are shown.
    pub zero: Ns,
    /// Which part of the capture it holds.
    pub held: Held,
    /// Length of a column where slices were too many to hold each, ns.
    pub column: Option<Ns>,
    /// Lanes from top to bottom.
    pub lanes: Vec<Lane>,
    /// Lanes of the capture that are not in it.
    pub left_out: usize,
    /// Kinds of work; a mark names one by its position.
    pub kinds: Vec<Kind>,
    /// Names; a mark names one by its position.
    pub names: Vec<Name>,
}

/// The stretch of time that a picture is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// From when to when, on the clock of the picture.
    pub span: Span,
    /// The rule whose finding it shows.
    pub rule: &'static str,
    /// Stretches of that finding, of which this is one.
    pub of: usize,
    /// Frames around the window, the outermost first, safe to print.
    pub frames: Vec<String>,
}

/// A name, safe to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// As the capture has it; cut where it is endless.
    pub whole: String,
    /// Its telling part, if that is shorter.
    pub short: Option<String>,
}

impl Name {
    /// What stands where there is little room.
    pub fn label(&self) -> &str {
        self.short.as_deref().unwrap_or(&self.whole)
    }
}

/// Which part of a capture is held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Held {
    /// All of it.
    #[default]
    Whole,
    /// Steps of a rank: the first and the last by their number, how many there are, and the rank.
    Steps {
        /// Number of the first.
        first: u32,
        /// Number of the last.
        last: u32,
        /// Steps of the rank.
        of: usize,
        /// The rank.
        rank: u32,
    },
    /// What someone looked at.
    Window,
}

/// One row.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// Head of the group that begins with it.
    pub head: Option<String>,
    /// Name, safe to print.
    pub label: String,
    /// Nesting depth.
    pub depth: u16,
    /// What lies on it, in order of time.
    pub marks: Vec<Mark>,
    /// What it shows instead, if it is a counter.
    pub samples: Option<Samples>,
}

/// A slice, or a column that several share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// From when to when it is drawn.
    pub span: Span,
    /// When it is, if it is one slice: the window, or what runs beside it, may hide a part.
    pub whole: Span,
    /// What it is, or is for the longest time.
    pub kind: usize,
    /// Its name, if it is one slice.
    pub name: Option<usize>,
    /// Slices that it stands for.
    pub count: u32,
    /// Time of it that is busy, ns.
    pub busy: Ns,
    /// The call that launched it: lane and position of its mark.
    pub launch: Option<(usize, usize)>,
}

/// Least and most of a counter in columns of equal length over the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Each column; `None` before the first sample.
    pub columns: Vec<Option<[f64; 2]>>,
}

impl Samples {
    /// Least and most of all columns.
    pub fn range(&self) -> Option<[f64; 2]> {
        self.columns.iter().flatten().copied().reduce(|[a, b], [c, d]| [a.min(c), b.max(d)])
    }
}

/// A kind of work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// Name in the language of whoever reads.
    pub name: &'static str,
    /// Colour on a dark ground, `#rrggbb`.
    pub dark: String,
    /// Colour on a light ground.
    pub light: String,
}

/// How far the clock of a rank was moved so that all ranks are drawn on one, as the head of its lanes says it; empty for the clock
/// that the others are drawn on.
pub fn aligned(clock: &Offset, lang: Lang) -> String {
    if clock.ahead == 0 {
        return String::new();
    }
    let [by, sure] = [clock.ahead.saturating_abs(), clock.uncertainty].map(super::units::brief);
    match (lang, clock.ahead > 0) {
        (Lang::En, true) => format!(" · clock {by} ahead, drawn aligned (± {sure})"),
        (Lang::En, false) => format!(" · clock {by} behind, drawn aligned (± {sure})"),
        (Lang::Zh, true) => format!(" · 时钟快 {by}，已对齐（± {sure}）"),
        (Lang::Zh, false) => format!(" · 时钟慢 {by}，已对齐（± {sure}）"),
    }
}

impl Timeline {
    /// Marks on all lanes.
    pub fn marks(&self) -> usize {
        self.lanes.iter().map(|lane| lane.marks.len()).sum()
    }

    /// What it holds, in a sentence.
    pub fn about(&self, lang: Lang) -> String {
        let fill = |text: Text, values: &[(&str, String)]| {
            values.iter().fold(text.get(lang).to_owned(), |said, (name, value)| said.replace(name, value))
        };
        if let Some(own) = &self.evidence {
            let mut said = fill(
                Text::new(
                    "Evidence of {rule}: {time} between the two lines; stretches in all: {n}.",
                    "{rule} 的证据，共 {n} 段，此段 {time}，位于两条竖线之间。",
                ),
                &[
                    ("{rule}", own.rule.to_owned()),
                    ("{n}", super::units::count(own.of as u64)),
                    ("{time}", super::units::brief(own.span.len())),
                ],
            );
            if !own.frames.is_empty() {
                let inside = fill(
                    Text::new(" Inside {frames}.", "位于 {frames} 之内。"),
                    &[("{frames}", own.frames.join(" › "))],
                );
                said.push_str(&inside);
            }
            return said;
        }
        let held = match &self.held {
            Held::Whole => fill(Text::new("The whole capture.", "整个采集。"), &[]),
            Held::Window => fill(Text::new("A part of the capture.", "采集的一部分。"), &[]),
            Held::Steps { first, last, of, rank } if first == last => fill(
                Text::new("Step {n} of {of}, rank {rank}.", "rank {rank} 的第 {n} 步，共 {of} 步。"),
                &[("{n}", first.to_string()), ("{of}", super::units::count(*of as u64)), ("{rank}", rank.to_string())],
            ),
            Held::Steps { first, last, of, rank } => fill(
                Text::new(
                    "Steps {first} to {last} of {of}, rank {rank}.",
                    "rank {rank} 的第 {first} 至 {last} 步，共 {of} 步。",
                ),
                &[
                    ("{first}", first.to_string()),
                    ("{last}", last.to_string()),
                    ("{of}", super::units::count(*of as u64)),
                    ("{rank}", rank.to_string()),
                ],
            ),
        };
        let column = self.column.map(|ns| {
            fill(
                Text::new(
                    "There are too many slices to hold each: columns of {ns} stand for those in them, with their number and their busy time.",
                    "切片过多，无法逐一保留：以 {ns} 为一列，标出其中的切片数和忙碌时间。",
                ),
                &[("{ns}", super::units::time(ns))],
            )
        });
        let left_out = (self.left_out > 0).then(|| {
            fill(
                Text::new("{n} further lanes are not shown.", "另有 {n} 条泳道未显示。"),
                &[("{n}", super::units::count(self.left_out as u64))],
            )
        });
        let simulated = self.simulated.then(|| {
            fill(Text::new("Simulated: nothing here was measured.", "模拟数据：其中没有任何内容是测得的。"), &[])
        });
        let space = if lang == Lang::En { " " } else { "" };
        [simulated, Some(held), column, left_out].into_iter().flatten().collect::<Vec<_>>().join(space)
    }
}
