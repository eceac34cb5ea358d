//! The report for people. One file per part; the order here is the order on the page: the answer first, then what it
//! rests on, then what was lost on the way.

mod answer;
pub mod buckets;
mod capture;
mod findings;
mod held;
mod job;
mod job_sums;
mod levels;
mod readiness;
mod replay;
mod replayed;
mod source;
mod steps;
mod summaries;
mod time;
pub mod words;
mod work;

use super::{
    model::{Capture, Report},
    phrase,
    table::Table,
    text,
};
use diagnosis::{
    analysis::{AnchorKind, Confidence},
    i18n::{Lang, Message, Text, Value},
};

/// Writes the whole report.
pub fn render(report: &Report, lang: Lang) -> String {
    let mut out = String::new();
    if report.captures.len() > 1 {
        out.push_str(&overview(report, lang));
    }
    let parts = report.captures.iter().flat_map(|capture| Part::ALL.map(|part| part.render(capture, lang)));
    joined(std::iter::once(out).chain(parts))
}

/// Parts of a report as one text.
pub fn joined(parts: impl Iterator<Item = String>) -> String {
    let mut out: String = parts.collect();
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Writes the table of a report on several captures: one row each.
pub fn overview(report: &Report, lang: Lang) -> String {
    answer::overview(report, lang)
}

/// A part of the report on one capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The verdict.
    Answer,
    /// Facts about the capture.
    Capture,
    /// How the steps were found and how long they took.
    Steps,
    /// Where their time went.
    Time,
    /// Which operators and kernels took it.
    Work,
    /// Operators beside what the device was measured to do.
    Held,
    /// What launched the replayed kernels.
    Replayed,
    /// What is said of kernels without saying when they ran.
    Summaries,
    /// What is said of ranks and links in sums.
    JobSums,
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
}

impl Part {
    /// All parts in the order on the page.
    pub const ALL: [Self; 15] = [
        Self::Answer,
        Self::Capture,
        Self::Steps,
        Self::Time,
        Self::Work,
        Self::Held,
        Self::Replayed,
        Self::Summaries,
        Self::JobSums,
        Self::Findings,
        Self::Replay,
        Self::Levels,
        Self::Readiness,
        Self::Abstained,
        Self::Source,
    ];

    fn write(self, page: &mut Page<'_>) {
        match self {
            Self::Answer => answer::write(page),
            Self::Capture => capture::write(page),
            Self::Steps => steps::write(page),
            Self::Time => time::write(page),
            Self::Work => work::write(page),
            Self::Held => held::write(page),
            Self::Replayed => replayed::write(page),
            Self::Summaries => summaries::write(page),
            Self::JobSums => job_sums::write(page),
            Self::Findings => findings::write(page),
            Self::Replay => replay::write(page),
            Self::Levels => levels::write(page),
            Self::Readiness => readiness::write(page),
            Self::Abstained => findings::write_abstained(page),
            Self::Source => source::write(page),
        }
    }

    /// Writes this part of the report on a capture.
    pub fn render(self, capture: &Capture, lang: Lang) -> String {
        let mut page = Page { lang, capture, out: String::new() };
        self.write(&mut page);
        page.out
    }
}

/// Writes one finding of a capture, by its position; nothing where there is none.
pub fn finding(capture: &Capture, index: usize, lang: Lang) -> String {
    let mut page = Page { lang, capture, out: String::new() };
    if let Some(finding) = capture.findings.get(index) {
        findings::one(&mut page, index + 1, finding);
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
    pub(super) out: String,
}

impl<T: Shown> Page<'_, T> {
    /// A text in the page's language.
    pub(super) fn get(&self, text: Text) -> &'static str {
        text.get(self.lang)
    }

    /// A text with its places filled in.
    pub(super) fn fill<const N: usize>(&self, text: Text, args: [(&'static str, Value); N]) -> String {
        phrase::markdown(&Message::new(text, args), self.lang)
    }

    /// A message of a rule.
    pub(super) fn message(&self, message: &Message) -> String {
        phrase::markdown(message, self.lang)
    }

    /// A name from the capture.
    pub(super) fn name(&self, name: &str) -> String {
        text::code(name, text::NAME)
    }

    /// A heading of the second level.
    pub(super) fn heading(&mut self, heading: Text) {
        self.paragraph(&format!("## {}", self.get(heading)));
    }

    /// A paragraph.
    pub(super) fn paragraph(&mut self, text: &str) {
        self.out.extend([text, "\n\n"]);
    }

    /// A list.
    pub(super) fn list(&mut self, items: impl IntoIterator<Item = String>) {
        let before = self.out.len();
        for item in items {
            self.out.extend(["- ", &item, "\n"]);
        }
        if self.out.len() > before {
            self.out.push('\n');
        }
    }

    /// A table under its title, which says so when the numbers are simulated.
    pub(super) fn table(&mut self, title: &str, table: &Table) {
        let mark =
            if self.capture.is_simulated() { self.get(Text::new(" — simulated", " — 模拟数据")) } else { "" };
        self.paragraph(&format!("**{title}{mark}**"));
        self.out.push_str(&table.markdown());
        self.out.push('\n');
    }

    /// Texts joined as a list inside a sentence.
    pub(super) fn join(&self, items: impl IntoIterator<Item = String>) -> String {
        let comma = match self.lang {
            Lang::En => ", ",
            Lang::Zh => "、",
        };
        items.into_iter().collect::<Vec<_>>().join(comma)
    }

    /// Longer texts joined as a list inside a sentence.
    pub(super) fn join_long(&self, items: &[&str]) -> String {
        items.join(match self.lang {
            Lang::En => "; ",
            Lang::Zh => "；",
        })
    }

    /// A remark in brackets after what it is about.
    pub(super) fn aside(&self, text: &str) -> String {
        match self.lang {
            Lang::En => format!(" ({text})"),
            Lang::Zh => format!("（{text}）"),
        }
    }

    /// A number of steps.
    pub(super) fn steps(&self, n: u64) -> String {
        let text = if n == 1 { Text::new("{n} step", "{n} 步") } else { Text::new("{n} steps", "{n} 步") };
        self.fill(text, [("n", Value::Count(n))])
    }

    /// How sure something is, in brackets.
    pub(super) fn sure(&self, confidence: Confidence) -> String {
        let word = self.get(Text::new("confidence", "置信度"));
        self.aside(&format!("{word} {}", self.get(words::confidence(confidence))))
    }

    /// What stands between a word and what it introduces.
    pub(super) fn colon(&self) -> &'static str {
        match self.lang {
            Lang::En => ": ",
            Lang::Zh => "：",
        }
    }

    /// A label, a colon and what it labels.
    pub(super) fn labelled(&self, label: Text, what: &str) -> String {
        format!("**{}**{}{what}", self.get(label), self.colon())
    }
}

impl Page<'_> {
    /// What a mean of the leading rank's main class is over: its steps, or a window that is no step.
    fn is_window(&self) -> bool {
        self.capture.leading_rank().is_some_and(|rank| rank.anchor.kind == AnchorKind::WholeCapture)
    }

    /// The text for steps, or the one for a window that is no step.
    fn per(&self, steps: Text, window: Text) -> &'static str {
        self.get(if self.is_window() { window } else { steps })
    }
}
