//! The report for people. One file per part; the order here is the order on the page: the answer first, then what it
//! rests on, then what was lost on the way.

mod answer;
mod buckets;
mod capture;
mod findings;
mod job;
mod levels;
mod replay;
mod replayed;
mod source;
mod steps;
mod summaries;
mod time;
mod words;
mod work;

use super::{
    model::{Capture, Report},
    phrase,
    table::Table,
    text,
};
use crate::{
    analysis::{AnchorKind, Confidence},
    i18n::{Lang, Message, Text, Value},
};

/// Writes the whole report.
pub fn render(report: &Report, lang: Lang) -> String {
    let mut out = String::new();
    if report.captures.len() > 1 {
        out.push_str(&answer::overview(report, lang));
    }
    for capture in &report.captures {
        let mut page = Page { lang, capture, out };
        answer::write(&mut page);
        capture::write(&mut page);
        steps::write(&mut page);
        time::write(&mut page);
        work::write(&mut page);
        replayed::write(&mut page);
        summaries::write(&mut page);
        findings::write(&mut page);
        replay::write(&mut page);
        levels::write(&mut page);
        findings::write_abstained(&mut page);
        source::write(&mut page);
        out = page.out;
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// The page as far as it is written.
struct Page<'a> {
    lang: Lang,
    capture: &'a Capture,
    out: String,
}

impl Page<'_> {
    /// A text in the page's language.
    fn get(&self, text: Text) -> &'static str {
        text.get(self.lang)
    }

    /// A text with its places filled in.
    fn fill<const N: usize>(&self, text: Text, args: [(&'static str, Value); N]) -> String {
        phrase::markdown(&Message::new(text, args), self.lang)
    }

    /// A message of a rule.
    fn message(&self, message: &Message) -> String {
        phrase::markdown(message, self.lang)
    }

    /// A name from the capture.
    fn name(&self, name: &str) -> String {
        text::code(name, text::NAME)
    }

    /// A heading of the second level.
    fn heading(&mut self, heading: Text) {
        self.paragraph(&format!("## {}", self.get(heading)));
    }

    /// A paragraph.
    fn paragraph(&mut self, text: &str) {
        self.out.extend([text, "\n\n"]);
    }

    /// A list.
    fn list(&mut self, items: impl IntoIterator<Item = String>) {
        let before = self.out.len();
        for item in items {
            self.out.extend(["- ", &item, "\n"]);
        }
        if self.out.len() > before {
            self.out.push('\n');
        }
    }

    /// A table under its title, which says so when the numbers are simulated.
    fn table(&mut self, title: &str, table: &Table) {
        let mark = if self.capture.simulated { self.get(Text::new(" — simulated", " — 模拟数据")) } else { "" };
        self.paragraph(&format!("**{title}{mark}**"));
        self.out.push_str(&table.markdown());
        self.out.push('\n');
    }

    /// Texts joined as a list inside a sentence.
    fn join(&self, items: impl IntoIterator<Item = String>) -> String {
        let comma = match self.lang {
            Lang::En => ", ",
            Lang::Zh => "、",
        };
        items.into_iter().collect::<Vec<_>>().join(comma)
    }

    /// Longer texts joined as a list inside a sentence.
    fn join_long(&self, items: &[&str]) -> String {
        items.join(match self.lang {
            Lang::En => "; ",
            Lang::Zh => "；",
        })
    }

    /// A remark in brackets after what it is about.
    fn aside(&self, text: &str) -> String {
        match self.lang {
            Lang::En => format!(" ({text})"),
            Lang::Zh => format!("（{text}）"),
        }
    }

    /// A number of steps.
    fn steps(&self, n: u64) -> String {
        let text = if n == 1 { Text::new("{n} step", "{n} 步") } else { Text::new("{n} steps", "{n} 步") };
        self.fill(text, [("n", Value::Count(n))])
    }

    /// What a mean of the leading rank's main class is over: its steps, or a window that is no step.
    fn is_window(&self) -> bool {
        self.capture.leading_rank().is_some_and(|rank| rank.anchor.kind == AnchorKind::WholeCapture)
    }

    /// The text for steps, or the one for a window that is no step.
    fn per(&self, steps: Text, window: Text) -> &'static str {
        self.get(if self.is_window() { window } else { steps })
    }

    /// How sure something is, in brackets.
    fn sure(&self, confidence: Confidence) -> String {
        let word = self.get(Text::new("confidence", "置信度"));
        self.aside(&format!("{word} {}", self.get(words::confidence(confidence))))
    }

    /// What stands between a word and what it introduces.
    fn colon(&self) -> &'static str {
        match self.lang {
            Lang::En => ": ",
            Lang::Zh => "：",
        }
    }

    /// A label, a colon and what it labels.
    fn labelled(&self, label: Text, what: &str) -> String {
        format!("**{}**{}{what}", self.get(label), self.colon())
    }
}
