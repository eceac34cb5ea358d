//! A comparison on one screen of a terminal: which of the two is slower and by how much, whether they did the same work, what makes
//! the difference as a waterfall of bars, and how to go on. Where the contract refuses a comparison, what each side takes for itself.

mod contract;
mod waterfall;

use unicode_width::UnicodeWidthStr;

use super::{
    ROWS, Screen, answer,
    canvas::{self, Line, Look, Style, left, middle, wrap_at_most},
    say,
};
pub use waterfall::Bar;

use crate::{
    diff::{DiffReport, is_large, unknown},
    document::Inlines,
    text, units,
};
use diagnosis::{
    compare::{
        Difference,
        contract::{MAIN, Verdict},
        statistics::Outcome,
        waterfall::Basis,
    },
    i18n::{Lang, Message, Text, Value},
};

/// Columns of a side's name.
const NAME: usize = 24;
/// What follows "A" where a side is meant at the beginning of a sentence.
const SIDES: [&str; 5] = [" and B", " has ", " takes ", " is ", " shows "];
/// Sentences on what is not known.
const UNKNOWN: usize = 2;
/// Columns below which commands stand further to the left.
const NARROW: usize = 60;

/// The comparison on one screen. `given` is what stands for A and B on a command line.
pub fn render(report: &DiffReport, given: [&str; 2], lang: Lang, look: Look) -> String {
    let screen = Both { report, given, lang, look, names: names(report) };
    let mut out = String::new();
    screen.lines().iter().for_each(|line| line.write(&mut out, look));
    out
}

/// The waterfall of a comparison as bars; none where there is no difference to show.
pub fn bars(report: &DiffReport, lang: Lang) -> Vec<Bar> {
    let look = Look { width: 0, colour: false, ascii: false };
    let both = Both { report, given: ["A", "B"], lang, look, names: names(report) };
    report.difference.as_ref().map_or(Vec::new(), |difference| both.bars(difference))
}

struct Both<'a> {
    report: &'a DiffReport,
    given: [&'a str; 2],
    lang: Lang,
    look: Look,
    names: [String; 2],
}

/// What the two are called: their devices, their files where the devices are alike, else their letters.
fn names(report: &DiffReport) -> [String; 2] {
    let devices = report.heads.each_ref().map(|head| head.device.as_deref().map(device));
    if let [Some(a), Some(b)] = &devices
        && a != b
    {
        return [a.clone(), b.clone()];
    }
    let files = report.heads.each_ref().map(|head| middle(&text::plain(&head.name, text::PHRASE), NAME));
    if files[0] != files[1] { files } else { ["A", "B"].map(str::to_owned) }
}

/// A device without its maker: `MI300X` of `AMD Instinct MI300X VF`.
fn device(name: &str) -> String {
    const MAKERS: [&str; 6] = ["NVIDIA ", "AMD ", "Instinct ", "Huawei ", "Intel(R) ", "Tesla "];
    let name = text::plain(name, text::NAME);
    let short = MAKERS.iter().fold(name.as_str(), |name, maker| name.strip_prefix(maker).unwrap_or(name));
    let first = short.split(' ').next().filter(|word| word.chars().any(|c| c.is_ascii_digit()));
    middle(first.unwrap_or(short), NAME)
}

impl Both<'_> {
    fn get(&self, text: Text) -> &'static str {
        text.get(self.lang)
    }

    fn width(&self) -> usize {
        self.look.columns()
    }

    /// A text with values.
    fn fill(&self, text: Text, args: &[(&'static str, String)]) -> String {
        let args = args.iter().map(|(name, value)| (*name, Value::Raw(value.clone())));
        Message::new(text, args).render(self.lang, |value| match value {
            Value::Raw(raw) => raw.clone(),
            _ => String::new(),
        })
    }

    fn lines(&self) -> Vec<Line> {
        let report = self.report;
        let top = [self.head(), self.answer(), self.contract()];
        let bottom = [self.unknown(), self.next()];
        let size = |parts: &[Vec<Line>]| {
            parts.iter().filter(|part| !part.is_empty()).map(|part| part.len() + 1).sum::<usize>()
        };
        let room = ROWS.saturating_sub(size(&top) + size(&bottom) + 1);
        let between = match &report.difference {
            Some(difference) => self.waterfall(difference, room),
            None => self.apart(room),
        };
        canvas::stacked(top.into_iter().chain([between]).chain(bottom))
    }

    /// Whose captures these are, and what no reader may miss.
    fn head(&self) -> Vec<Line> {
        let widest = self.names.iter().map(|name| name.width()).max().unwrap_or(0) + 2;
        let mut out: Vec<Line> = Vec::new();
        for (name, head) in self.names.iter().zip(&self.report.heads) {
            let mark = if head.simulated { self.get(Text::new(" (simulated)", "（模拟数据）")) } else { "" };
            let device = head.device.as_deref().map_or(String::new(), |own| format!("{} · ", text::visible(own)));
            let said = format!("{device}{}{mark}", text::visible(&head.name));
            let line = Line::of(Style::Title, left(name, widest));
            out.push(line.then(Style::Dim, middle(&said, self.width().saturating_sub(widest))));
        }
        for banner in self.report.banners() {
            let said = self.named(&say::message(&banner, "", self.lang));
            out.extend(wrap_at_most(&said, self.width(), 2).into_iter().map(|line| Line::of(Style::Strong, line)));
        }
        out
    }

    /// Which is slower, and by how much.
    fn answer(&self) -> Vec<Line> {
        let said = match &self.report.difference {
            Some(difference) => self.difference(difference),
            None if self.report.contract.verdict() == Verdict::NotComparable => self.refusal(),
            None => self.fill(
                Text::new(
                    "Nothing to compare: the two have no steps of one stage and batch size.",
                    "没有可对比的内容：两侧没有同一阶段、同一批大小的步。",
                ),
                &[],
            ),
        };
        wrap_at_most(&said, self.width(), 3).into_iter().map(|line| Line::of(Style::Strong, line)).collect()
    }

    fn difference(&self, difference: &Difference) -> String {
        let waterfall = &difference.waterfall;
        let (from, to) = (waterfall.from, waterfall.to);
        let scale = units::Scale::of([from, to]);
        let time = |ns| format!("{} {}", scale.digits(ns), scale.name());
        let per = match waterfall.basis {
            Basis::Step => self.get(Text::new("per step", "每步")),
            Basis::Token => self.get(Text::new("per token of a sequence", "每序列每 token")),
        };
        let [a, b] = self.names.clone();
        let args = |ratio: String| {
            [
                ("a", a.clone()),
                ("b", b.clone()),
                ("from", time(from)),
                ("to", time(to)),
                ("per", per.to_owned()),
                ("ratio", ratio),
            ]
        };
        if self.report.outcome() == Outcome::NotSignificant {
            let text = Text::new(
                "No difference beyond noise: {b} {to} {per}, {a} {from}.",
                "差异未超出波动：{b} {per} {to}，{a} {from}。",
            );
            return self.fill(text, &args(String::new()));
        }
        if !is_large(waterfall.delta(), from, to) {
            let text = Text::new(
                "{a} and {b} take the same time to within 1 %: {from} and {to} {per}.",
                "{a} 与 {b} 耗时相差不到 1 %：{per} {from} 与 {to}。",
            );
            return self.fill(text, &args(String::new()));
        }
        let slower = to > from;
        let ratio = if slower { to as f64 / from.max(1) as f64 } else { from as f64 / to.max(1) as f64 };
        let text = match slower {
            true => Text::new(
                "{b} is {ratio} slower: {to} {per}, {a} {from}.",
                "{b} 耗时为 {a} 的 {ratio}：{per} {to}，{a} {from}。",
            ),
            false => {
                Text::new("{b} is {ratio} faster: {to} {per}, {a} {from}.", "{b} 快 {ratio}：{per} {to}，{a} {from}。")
            }
        };
        self.fill(text, &args(units::ratio(ratio)))
    }

    /// The sides by their names where a sentence calls them A and B. A sentence that begins with "A" speaks of something else,
    /// unless a side can be meant.
    fn named(&self, said: &str) -> String {
        let beside = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || "._-/'".contains(c));
        let mut out = String::new();
        let mut before = None;
        for (at, c) in said.char_indices() {
            let rest = said.get(at + c.len_utf8()..).unwrap_or("");
            let article = at == 0 && c == 'A' && !SIDES.iter().any(|words| rest.starts_with(words));
            let alone = !beside(before) && !beside(rest.chars().next().filter(|c| *c != '.'));
            match c {
                'A' if alone && !article => out.push_str(&self.names[0]),
                'B' if alone => out.push_str(&self.names[1]),
                c => out.push(c),
            }
            before = Some(c);
        }
        out
    }

    /// What each side takes for itself.
    fn apart(&self, room: usize) -> Vec<Line> {
        let mut out = Vec::new();
        for (name, report) in self.names.iter().zip(self.report.apart.iter().flatten()) {
            let Some(capture) = report.leading() else { continue };
            // A screen has as many columns as the narrowest at least.
            let indent = if self.width() > canvas::NARROWEST + 2 { 2 } else { 0 };
            let look = Look { width: self.width().saturating_sub(indent), ..self.look };
            let screen = Screen { all: &report.captures, capture, lang: self.lang, look };
            if !out.is_empty() {
                out.push(Line::new());
            }
            out.push(Line::of(Style::Title, name.clone()));
            let inside = answer::lines(&screen).into_iter().chain(answer::bar(&screen));
            out.extend(inside.map(|line| line.indented(indent)));
        }
        out.truncate(room);
        out
    }

    fn unknown(&self) -> Vec<Line> {
        let Some(difference) = &self.report.difference else { return Vec::new() };
        let sentences = unknown::sentences(difference);
        let label = self.get(Text::new("Not known", "未知"));
        let indent = label.width() + 3;
        let mut out: Vec<Line> = Vec::new();
        for sentence in sentences.iter().take(UNKNOWN) {
            let said = self.named(&say::message(sentence, "", self.lang));
            for line in wrap_at_most(&capitalised(&said), self.width().saturating_sub(indent), 2) {
                let first = if out.is_empty() { label } else { "" };
                out.push(Line::of(Style::Dim, left(first, indent)).then(Style::Plain, line));
            }
        }
        out
    }

    /// Commands that go on from here; where fields are unknown, the one that says that they are the same comes first, with the files
    /// that were given, so that it can be copied.
    fn next(&self) -> Vec<Line> {
        let label = self.get(Text::new("Next", "下一步"));
        let wide = self.get(Text::new("Not known", "未知")).width().max(label.width()) + 3;
        let indent = if self.width() < NARROW { label.width() + 1 } else { wide };
        let inside = self.width().saturating_sub(indent);
        let mut out: Vec<Line> = Vec::new();
        let mut put = |style: Style, said: String| {
            let first = if out.is_empty() { label } else { "" };
            out.push(Line::of(Style::Dim, left(first, indent)).then(style, said));
        };
        let open: Vec<&str> = self.report.contract.open(MAIN).iter().map(|field| field.key).collect();
        if self.report.contract.verdict() == Verdict::NotComparable && !open.is_empty() {
            let what = Text::new("If these are the same on both sides:", "若两侧的这些项相同：");
            wrap_at_most(self.get(what), inside, 2).into_iter().for_each(|line| put(Style::Plain, line));
            let [a, b] = self.given.map(quoted);
            // The fields stand in one list where it fits on a line.
            let list = format!("--same {}", open.join(","));
            let same = match list.width() + 2 <= inside {
                true => vec![list],
                false => open.iter().map(|key| format!("--same {key}")).collect(),
            };
            let words: Vec<String> = ["strato diff".to_owned(), a, b].into_iter().chain(same).collect();
            broken(&words, inside).into_iter().for_each(|line| put(Style::Strong, line));
        }
        let others = [
            ("strato view A B", Text::new("both timelines, one above the other", "上下对照两侧时间线")),
            ("strato diff A B --format md", Text::new("the whole report", "完整报告")),
        ];
        let widest = others.iter().map(|(command, _)| command.width()).max().unwrap_or(0);
        let words = others.iter().map(|(_, what)| self.get(*what).width()).max().unwrap_or(0);
        for (command, what) in others {
            let beside = indent + widest + 2 + words <= self.width();
            put(
                Style::Strong,
                if beside { format!("{}{}", left(command, widest + 2), self.get(what)) } else { command.to_owned() },
            );
        }
        out
    }
}

/// A command on lines of at most `width` columns: a shell takes the lines for one. Only a word that is longer is not broken.
fn broken(words: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() + 2 <= width => *line = format!("{line} {word}"),
            Some(line) => {
                line.push_str(" \\");
                lines.push(format!("  {word}"));
            }
            None => lines.push(word.clone()),
        }
    }
    lines
}

/// A word of a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", text::visible(word).replace('\'', "'\\''"))
}

fn capitalised(text: &str) -> String {
    let plain = Inlines::from(text).words();
    let mut chars = plain.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
