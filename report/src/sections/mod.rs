//! The report for people. One file per part; the order here is the order on the page: the answer first, then what it
//! rests on, then what was lost on the way.

mod answer;
pub mod buckets;
mod capture;
mod counters;
mod findings;
mod held;
mod job;
mod job_sums;
mod largest;
mod levels;
mod limits;
mod others;
mod owners;
mod readiness;
mod replay;
mod replayed;
mod rest;
mod source;
mod steps;
mod summaries;
mod time;
pub mod words;
mod work;

use super::{
    document::{Document, Inlines, Table, notation},
    inlines, link_test,
    model::{Capture, Report},
    phrase, serving,
};
use diagnosis::{
    analysis::{AnchorKind, Confidence},
    i18n::{Lang, Message, Text, Value},
};

/// The whole report.
pub fn report(report: &Report, lang: Lang) -> Document {
    let overview = (report.captures.len() > 1).then(|| overview(report, lang));
    let captures = report.captures.iter().map(|report| capture(report, lang));
    overview.into_iter().chain(captures).collect()
}

/// The report as it is read first: the answer, where the time went, what to change.
pub fn brief(report: &Report, lang: Lang) -> Document {
    let overview = (report.captures.len() > 1).then(|| overview(report, lang));
    let parts = report.captures.iter().flat_map(|capture| Part::BRIEF.map(|part| part.of(capture, lang)));
    overview.into_iter().chain(parts).collect()
}

/// The whole report on one capture.
pub fn capture(capture: &Capture, lang: Lang) -> Document {
    Part::ALL.into_iter().map(|part| part.of(capture, lang)).collect()
}

/// The table of a report on several captures: one row each.
pub fn overview(report: &Report, lang: Lang) -> Document {
    answer::overview(report, lang)
}

/// A part of the report on one capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The verdict.
    Answer,
    /// What a client measured of a server under load.
    Serving,
    /// What a link test measured.
    LinkTest,
    /// What takes the most time, by name.
    Largest,
    /// The longest pauses of the device.
    Gaps,
    /// Facts about the capture.
    Capture,
    /// How the steps were found and how long they took.
    Steps,
    /// Where their time went.
    Time,
    /// The other classes and ranks.
    Others,
    /// In the brief report, of a large job their groups and those that differ.
    Groups,
    /// What the host was doing where it was idle.
    Owners,
    /// Which operators and kernels took it.
    Work,
    /// Operators beside what the device was measured to do.
    Held,
    /// Operators beside what the device can do, and the least that a step takes.
    Limits,
    /// What launched the replayed kernels.
    Replayed,
    /// What is said of kernels without saying when they ran.
    Summaries,
    /// What was counted of a kernel, whatever it is.
    Counters,
    /// What is said of ranks and links in sums.
    JobSums,
    /// What moved between the ranks of a timeline.
    Links,
    /// The findings.
    Findings,
    /// What the replay says beside them.
    Replay,
    /// What the capture supports.
    Levels,
    /// How ready the platform is.
    Readiness,
    /// What could not be decided.
    Abstained,
    /// What was read and what was lost.
    Source,
    /// In the brief report, the findings that promise a gain.
    Gains,
    /// In the brief report, what it leaves out.
    Rest,
}

impl Part {
    /// All parts of the whole report in the order on the page.
    pub const ALL: [Self; 24] = [
        Self::Answer,
        Self::Serving,
        Self::LinkTest,
        Self::Largest,
        Self::Capture,
        Self::Steps,
        Self::Time,
        Self::Others,
        Self::Owners,
        Self::Gaps,
        Self::Work,
        Self::Held,
        Self::Limits,
        Self::Replayed,
        Self::Summaries,
        Self::Counters,
        Self::JobSums,
        Self::Links,
        Self::Findings,
        Self::Replay,
        Self::Levels,
        Self::Readiness,
        Self::Abstained,
        Self::Source,
    ];

    /// The parts of the brief report.
    const BRIEF: [Self; 12] = [
        Self::Answer,
        Self::Serving,
        Self::LinkTest,
        Self::Largest,
        Self::Time,
        Self::Groups,
        Self::Owners,
        Self::Limits,
        Self::Summaries,
        Self::JobSums,
        Self::Gains,
        Self::Rest,
    ];

    fn write(self, page: &mut Page<'_>) {
        match self {
            Self::Answer => answer::write(page),
            Self::Serving => serving::write(page),
            Self::LinkTest => link_test::write(page),
            Self::Largest => largest::write(page),
            Self::Gaps => largest::write_gaps(page),
            Self::Capture => capture::write(page),
            Self::Steps => steps::write(page),
            Self::Time => time::write(page),
            Self::Others => others::write(page),
            Self::Groups => others::write_groups(page),
            Self::Owners => owners::write(page),
            Self::Work => work::write(page),
            Self::Held => held::write(page),
            Self::Limits => limits::write(page),
            Self::Replayed => replayed::write(page),
            Self::Summaries => summaries::write(page),
            Self::Counters => counters::write(page),
            Self::JobSums => job_sums::write(page),
            Self::Links => job_sums::write_links(page),
            Self::Findings => findings::write(page),
            Self::Replay => replay::write(page),
            Self::Levels => levels::write(page),
            Self::Readiness => readiness::write(page),
            Self::Abstained => findings::write_abstained(page),
            Self::Source => source::write(page),
            Self::Gains => findings::write_gains(page),
            Self::Rest => rest::write(page),
        }
    }

    /// This part of the report on a capture.
    pub fn of(self, capture: &Capture, lang: Lang) -> Document {
        let mut page = Page { lang, capture, out: Document::new() };
        self.write(&mut page);
        page.out
    }
}

/// One finding of a capture, by its position; nothing where there is none.
pub fn finding(capture: &Capture, index: usize, lang: Lang) -> Document {
    let mut page = Page { lang, capture, out: Document::new() };
    if let Some(finding) = capture.findings.get(index) {
        findings::one(&mut page, index, finding);
    }
    page.out
}

/// What a page is about.
pub(super) trait Shown {
    /// Whether its numbers were simulated, which every table says.
    fn is_simulated(&self) -> bool;
}

impl Shown for Capture {
    fn is_simulated(&self) -> bool {
        self.simulated
    }
}

/// The page as far as it is written: on one capture, or on what else is shown.
pub(super) struct Page<'a, T = Capture> {
    pub(super) lang: Lang,
    pub(super) capture: &'a T,
    pub(super) out: Document,
}

impl<T: Shown> Page<'_, T> {
    /// A text in the page's language.
    pub(super) fn get(&self, text: Text) -> Inlines {
        phrase::text(text, self.lang)
    }

    /// A text with its places filled in.
    pub(super) fn fill<const N: usize>(&self, text: Text, args: [(&'static str, Value); N]) -> Inlines {
        phrase::inlines(&Message::new(text, args), self.lang)
    }

    /// The same with raw values that are words of the report's own, and no names.
    pub(super) fn tell<const N: usize>(&self, text: Text, args: [(&'static str, Value); N]) -> Inlines {
        let words = |value: &Value| match value {
            Value::Raw(words) => Inlines::from(words.as_str()),
            value => phrase::shown(value, self.lang),
        };
        let part = |name: &str| args.iter().find(|(known, _)| *known == name).map(|(_, value)| words(value));
        notation::read(text.get(self.lang), &part)
    }

    /// A text whose places take what is built already.
    pub(super) fn compose<const N: usize>(&self, text: Text, parts: [(&str, Inlines); N]) -> Inlines {
        phrase::compose(text, self.lang, parts)
    }

    /// A message of a rule.
    pub(super) fn message(&self, message: &Message) -> Inlines {
        phrase::inlines(message, self.lang)
    }

    /// A heading of the second level.
    pub(super) fn heading(&mut self, heading: Text) {
        self.out.heading(2, self.get(heading));
    }

    /// A paragraph.
    pub(super) fn paragraph(&mut self, text: impl Into<Inlines>) {
        self.out.paragraph(text);
    }

    /// A list.
    pub(super) fn list(&mut self, items: impl IntoIterator<Item = Inlines>) {
        self.out.list(items);
    }

    /// A line over a list or a table.
    pub(super) fn title(&mut self, title: impl Into<Inlines>) {
        self.out.paragraph(Inlines::strong(title));
    }

    /// A table under its title, which says so when the numbers are simulated.
    pub(super) fn table(&mut self, title: impl Into<Inlines>, table: Table) {
        let mark = match self.capture.is_simulated() {
            true => self.get(Text::new(" — simulated", " — 模拟数据")),
            false => Inlines::new(),
        };
        self.title(inlines![title, mark]);
        self.out.table(table);
    }

    /// Texts joined as a list inside a sentence.
    pub(super) fn join<I: Into<Inlines>>(&self, items: impl IntoIterator<Item = I>) -> Inlines {
        let comma = match self.lang {
            Lang::En => ", ",
            Lang::Zh => "、",
        };
        Inlines::joined(items, comma)
    }

    /// Longer texts joined as a list inside a sentence.
    pub(super) fn join_long(&self, items: impl IntoIterator<Item = Inlines>) -> Inlines {
        let semicolon = match self.lang {
            Lang::En => "; ",
            Lang::Zh => "；",
        };
        Inlines::joined(items, semicolon)
    }

    /// A remark in brackets after what it is about.
    pub(super) fn aside(&self, text: impl Into<Inlines>) -> Inlines {
        let [open, close] = match self.lang {
            Lang::En => [" (", ")"],
            Lang::Zh => ["（", "）"],
        };
        inlines![open, text, close]
    }

    /// A number of steps.
    pub(super) fn steps(&self, n: u64) -> Inlines {
        let text = if n == 1 { Text::new("{n} step", "{n} 步") } else { Text::new("{n} steps", "{n} 步") };
        self.fill(text, [("n", Value::Count(n))])
    }

    /// How sure something is, in brackets.
    pub(super) fn sure(&self, confidence: Confidence) -> Inlines {
        let word = self.get(Text::new("confidence", "置信度"));
        self.aside(inlines![word, " ", self.get(words::confidence(confidence))])
    }

    /// What stands between a word and what it introduces.
    pub(super) fn colon(&self) -> &'static str {
        phrase::colon(self.lang)
    }

    /// What ends a sentence.
    pub(super) fn stop(&self) -> &'static str {
        match self.lang {
            Lang::En => ".",
            Lang::Zh => "。",
        }
    }

    /// A label, a colon and what it labels.
    pub(super) fn labelled(&self, label: Text, what: impl Into<Inlines>) -> Inlines {
        inlines![Inlines::strong(self.get(label)), self.colon(), what]
    }
}

impl Page<'_> {
    /// What a mean of the leading rank's main class is over: its steps, or a window that is no step.
    fn is_window(&self) -> bool {
        self.capture.leading_rank().is_some_and(|rank| rank.anchor.kind == AnchorKind::WholeCapture)
    }

    /// The text for steps, or the one for a window that is no step.
    fn per(&self, steps: Text, window: Text) -> Inlines {
        self.get(if self.is_window() { window } else { steps })
    }
}
