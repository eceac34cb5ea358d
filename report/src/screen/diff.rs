//! A comparison on one screen of a terminal: which of the two is slower and by how much, whether they did the same work, what makes
//! the difference as a waterfall of bars, and how to go on. Where the contract refuses a comparison, what each side takes for itself.

use unicode_width::UnicodeWidthStr;

use super::{
    ROWS, Screen, answer,
    canvas::{self, Line, Look, Style, fit, left, middle, right, wrap_at_most},
    say,
};
use crate::{
    diff::{DiffReport, Mover, What, is_large, movers, sections, unknown, words},
    document::Inlines,
    sections::buckets,
    text, units,
};
use diagnosis::{
    compare::{
        Difference,
        contract::{About, Code, MAIN, Reason, Verdict},
        statistics::Outcome,
        waterfall::Basis,
    },
    i18n::{Lang, Message, Text, Value},
};

/// Movers at most.
const MOST: usize = 12;
/// Part of the longer step below which a difference is one of the others.
const LEAST: i64 = 200;
/// Columns of a side's name.
const NAME: usize = 24;
/// What follows "A" where a side is meant at the beginning of a sentence.
const SIDES: [&str; 5] = [" and B", " has ", " takes ", " is ", " shows "];
/// Caveats in words; the others are counted.
const CAVEATS: usize = 3;
/// Sentences on what is not known.
const UNKNOWN: usize = 2;
/// Columns below which commands stand further to the left.
const NARROW: usize = 60;
/// Narrowest bar that shows anything.
const BAR: usize = 10;

/// The comparison on one screen. `given` is what stands for A and B on a command line.
pub fn render(report: &DiffReport, given: [&str; 2], lang: Lang, look: Look) -> String {
    let screen = Both { report, given, lang, look, names: names(report) };
    let mut out = String::new();
    screen.lines().iter().for_each(|line| line.write(&mut out, look));
    out
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
        let parts = top.into_iter().chain([between]).chain(bottom).filter(|part| !part.is_empty());
        let mut out: Vec<Line> = Vec::new();
        for part in parts {
            if !out.is_empty() {
                out.push(Line::new());
            }
            out.extend(part);
        }
        out
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

    /// Why nothing is set beside each other.
    fn refusal(&self) -> String {
        let contract = &self.report.contract;
        let open = contract.open(MAIN);
        let only_unknown = contract.refusals(MAIN).all(|reason| reason.code == Code::Unknown);
        if only_unknown && !open.is_empty() {
            let fields = self.list(open.iter().map(|field| self.field(field.what)).collect());
            let text = match open.len() {
                1 => Text::new("Not comparable yet: {fields} is unknown.", "尚不可比：{fields}未知。"),
                _ => Text::new("Not comparable yet: {fields} are unknown.", "尚不可比：{fields}未知。"),
            };
            return self.fill(text, &[("fields", fields)]);
        }
        let known = contract.refusals(MAIN).filter(|reason| reason.code != Code::Unknown);
        let mut said: Vec<String> = known.map(|reason| self.reason(reason)).collect();
        said.dedup();
        self.fill(Text::new("Not comparable: {why}.", "不可比：{why}。"), &[("why", said.join("; "))])
    }

    /// What a field is, without what stands in brackets after it.
    fn field(&self, what: &str) -> String {
        what.split(" (").next().unwrap_or(what).to_owned()
    }

    fn list(&self, parts: Vec<String>) -> String {
        let and = self.get(Text::new(" and ", "与"));
        match parts.split_last() {
            Some((last, rest)) if !rest.is_empty() => {
                format!("{}{and}{last}", rest.join(self.get(Text::new(", ", "、"))))
            }
            _ => parts.concat(),
        }
    }

    fn reason(&self, reason: &Reason) -> String {
        self.named(&say::message(&words::reason(&self.report.contract, reason), "", self.lang))
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

    /// What makes a difference, as words: what the device waits for instead of the name of a bucket.
    fn mover(&self, mover: &Mover, name: String) -> String {
        match &mover.what {
            What::Bucket(bucket) if !mover.waited => {
                let meaning = self.get(buckets::meaning(bucket));
                if meaning.is_empty() { name } else { meaning.to_owned() }
            }
            _ => name,
        }
    }

    /// Whether both did the same work, and what goes with every number.
    fn contract(&self) -> Vec<Line> {
        let contract = &self.report.contract;
        let mut said = Vec::new();
        if let Some(work) = &contract.work {
            let count = work.parts.iter().filter(|own| own.distance.is_some()).count();
            let other: Vec<String> = work.differing().map(|own| self.get(words::work(own.part)).to_owned()).collect();
            let text = match other.len() {
                0 => Text::new(
                    "Same work? {n} properties compared, none differs.",
                    "工作相同吗？比较了 {n} 项，均无差异。",
                ),
                _ => Text::new(
                    "Same work? {n} properties compared, {k} differ: {other}.",
                    "工作相同吗？比较了 {n} 项，{k} 项不同：{other}。",
                ),
            };
            let args = [("n", count.to_string()), ("k", other.len().to_string()), ("other", other.join(", "))];
            if count > 0 {
                said.push(self.fill(text, &args));
            }
        }
        if contract.verdict() == Verdict::Caveats {
            said.push(self.caveats());
        }
        let lines = said.iter().flat_map(|one| wrap_at_most(one, self.width(), 3));
        lines.map(|line| Line::of(Style::Plain, line)).collect()
    }

    /// What goes with every number: settings that differ and that are unknown are counted, the rest is said.
    fn caveats(&self) -> String {
        let all: Vec<&Reason> = self.report.contract.caveats(MAIN).collect();
        let mut differ: Vec<String> = Vec::new();
        let (mut unknown, mut told) = (Vec::new(), Vec::new());
        for reason in all {
            match (reason.about, reason.code) {
                (About::Field(field), Code::Unknown) => unknown.push(field.key),
                (About::Field(field), _) => {
                    differ.push(field.key.split('.').next_back().unwrap_or("").replace('_', " "))
                }
                _ => told.push(self.reason(reason)),
            }
        }
        unknown.sort_unstable();
        unknown.dedup();
        told.dedup();
        let mut parts = Vec::new();
        if !differ.is_empty() {
            let shown = differ.iter().take(CAVEATS).cloned().collect::<Vec<_>>().join(self.get(Text::new(", ", "、")));
            let more = if differ.len() > CAVEATS { "…" } else { "" };
            let text = match differ.len() {
                1 => Text::new("one setting differs ({shown})", "1 项设置不同（{shown}）"),
                _ => Text::new("{n} settings differ ({shown}{more})", "{n} 项设置不同（{shown}{more}）"),
            };
            let args = [("n", differ.len().to_string()), ("shown", shown), ("more", more.to_owned())];
            parts.push(self.fill(text, &args));
        }
        if !unknown.is_empty() {
            parts.push(self.fill(Text::new("{n} are unknown", "{n} 项未知"), &[("n", unknown.len().to_string())]));
        }
        let more = told.len().saturating_sub(CAVEATS);
        parts.extend(told.into_iter().take(CAVEATS));
        if more > 0 {
            parts.push(self.fill(Text::new("{n} more", "另有 {n} 项"), &[("n", more.to_string())]));
        }
        let joined = parts.join(self.get(Text::new("; ", "；")));
        self.fill(Text::new("Caveats: {all}.", "保留：{all}。"), &[("all", joined)])
    }

    /// From one side to the other, the largest difference first.
    fn waterfall(&self, difference: &Difference, room: usize) -> Vec<Line> {
        let waterfall = &difference.waterfall;
        let (from, to) = (waterfall.from, waterfall.to);
        let scale = units::Scale::of([from, to]);
        let movers: Vec<_> = movers(difference).into_iter().filter(|mover| mover.delta() != 0).collect();
        let weighty = movers.iter().filter(|mover| mover.delta().abs().saturating_mul(LEAST) >= from.max(to)).count();
        let listed = weighty.max(3).min(movers.len()).min(MOST).min(room.saturating_sub(4));
        let (first, rest) = movers.split_at(listed);
        // Sums between which each bar stands.
        let mut rows: Vec<(String, Option<[i64; 2]>, i64)> = Vec::new();
        for mover in first {
            let name = sections::mover_name(self.report, mover, self.lang);
            rows.push((self.mover(mover, name), Some(mover.sides), mover.delta()));
        }
        if !rest.is_empty() {
            let sum = |n: usize| rest.iter().map(|mover| mover.sides[n]).sum::<i64>();
            let name = self.fill(Text::new("{n} others", "其余 {n} 项"), &[("n", rest.len().to_string())]);
            rows.push((name, Some([sum(0), sum(1)]), sum(1) - sum(0)));
        }
        let [a, b] = self.names.each_ref().map(|name| fit(name, 12));
        let width = self.width();
        let number = (a.width() + 2).max(b.width() + 2).min(width.saturating_sub(15) / 3).max(8);
        let [a, b] = [a, b].map(|name| fit(&name, number - 1));
        let numbers = 3 * number + 2;
        let names = rows.iter().map(|(name, ..)| name.width()).max().unwrap_or(0);
        let label = names.clamp(12, (width / 3).max(16)).min(width.saturating_sub(numbers).max(8));
        let bar = width.saturating_sub(label + numbers + 1);
        let bar = if bar < BAR { 0 } else { bar };
        let most = rows.iter().fold((from, from), |(at, most), (_, _, delta)| (at + delta, most.max(at + delta))).1;
        let most = most.max(to).max(1);
        let cell = |ns: i64| (i128::from(ns.clamp(0, most)) * bar as i128 / i128::from(most)) as usize;
        let head = self.fill(
            match waterfall.basis {
                Basis::Step => Text::new("per step, {unit}", "每步，{unit}"),
                Basis::Token => Text::new("per token, {unit}", "每 token，{unit}"),
            },
            &[("unit", scale.name().to_owned())],
        );
        let titles = [&a, &b, &self.get(Text::new("differs", "差")).to_owned()].map(|title| right(title, number));
        let mut out = vec![Line::of(Style::Dim, format!("{}{}", left(&fit(&head, label), label), titles.concat()))];
        let total = |name: &str, ns: i64, cells: [String; 3]| {
            let line = Line::of(Style::Strong, left(&fit(name, label), label)).then(Style::Strong, cells.concat());
            line.then(Style::Plain, "  ").then(Style::Tone(1), "▒".repeat(cell(ns)))
        };
        let blank = || right("", number);
        out.push(total(&self.names[0], from, [right(&scale.digits(from), number), blank(), blank()]));
        let mut at = from;
        for (name, sides, delta) in &rows {
            let [own_a, own_b] = sides.unwrap_or_default().map(|ns| right(&scale.digits(ns), number));
            let sign = if *delta > 0 { "+" } else { "−" };
            let differs = right(&format!("{sign}{}", scale.digits(delta.saturating_abs())), number);
            let (low, high) = (at.min(at + delta), at.max(at + delta));
            let (begin, end) = (cell(low), cell(high));
            let marks = match end - begin {
                _ if bar == 0 => String::new(),
                0 => "▌".to_owned(),
                cells => "█".repeat(cells),
            };
            let tone = if *delta > 0 { 0 } else { 2 };
            let line = Line::of(Style::Plain, left(&fit(name, label), label)).then(Style::Plain, own_a);
            let line = line.then(Style::Plain, own_b).then(Style::Strong, differs);
            out.push(
                line.then(Style::Plain, format!("  {}", " ".repeat(begin.min(bar.saturating_sub(1)))))
                    .then(Style::Tone(tone), marks),
            );
            at += delta;
        }
        let whole =
            right(&format!("{}{}", if to >= from { "+" } else { "−" }, scale.digits((to - from).abs())), number);
        out.push(total(&self.names[1], to, [blank(), right(&scale.digits(to), number), whole]));
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
            let screen = Screen { report, capture, lang: self.lang, look };
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
