//! Whether the two did the same work: why they may not be compared yet, and what goes with every number.

use super::{
    super::{
        canvas::{Line, Style, wrap_at_most},
        say,
    },
    Both,
};
use crate::diff::words;
use diagnosis::{
    compare::contract::{About, Code, MAIN, Reason, Verdict},
    i18n::Text,
};

/// Caveats in words; the others are counted.
const CAVEATS: usize = 3;

impl Both<'_> {
    /// Why nothing is set beside each other.
    pub(super) fn refusal(&self) -> String {
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

    /// Whether both did the same work, and what goes with every number.
    pub(super) fn contract(&self) -> Vec<Line> {
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
}
