//! The gate of a comparison in the forms of build pipelines: a JUnit report with one test case, and annotations of GitHub
//! workflows (`::error title=…::…`, GitHub Docs, "Workflow commands", 2026-11).

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::{DiffReport, gate::Ends};
use crate::{svg::escape, text, units};
use diagnosis::{
    compare::contract::{MAIN, Reason, Verdict},
    i18n::Lang,
};

/// Terms that are named.
const NAMED: usize = 5;
/// Most characters of a name from a capture.
const TEXT: usize = 200;

/// What a pipeline is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The two that were compared.
    pub name: String,
    /// How it ends.
    pub ends: Ends,
    /// How much slower B is, as a share of A.
    pub slowdown: Option<f64>,
    /// What makes it so, or why nobody can say.
    pub details: Vec<String>,
    /// Whether anybody asked for a gate.
    pub is_asked: bool,
}

/// The gate of two results without steps, for scripts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Asked {
    /// How it ends: `pass`, `slower` or `refused`.
    #[schemars(with = "String")]
    pub ends: Ends,
    /// The least severity that fails.
    pub limit: &'static str,
    /// How much slower B is at most, as a share of A; null where the two may not be compared.
    pub slowdown: Option<f64>,
    /// What is slower by as much as fails, the largest first.
    pub slower: Vec<Slower>,
}

/// Something that B takes longer for.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "SlowerResult")]
pub struct Slower {
    /// What was measured, and under which load or of which size.
    pub name: String,
    /// By which share of A.
    pub by: f64,
}

impl Check {
    /// Of a comparison. Without a gate only what cannot be compared or judged fails.
    pub fn of(report: &DiffReport, _: Lang) -> Self {
        let [a, b] = report.heads.each_ref().map(|head| text::plain(&head.name, TEXT));
        let ungated = || match report.slowdown() {
            _ if report.contract.of(MAIN) == Verdict::NotComparable => Ends::Refused,
            None => Ends::Unjudged,
            Some(_) => Ends::Pass,
        };
        let ends = report.gate.as_ref().map_or_else(ungated, |gate| gate.ends);
        let details = match ends {
            Ends::Refused => report.contract.refusals(MAIN).map(Reason::text).take(NAMED).collect(),
            _ => {
                let terms = report.difference.iter().flat_map(|difference| &difference.terms);
                let term = |term: &diagnosis::compare::terms::Term| {
                    format!("{}: {}", text::plain(&term.name, TEXT), units::signed_ns(term.delta()))
                };
                terms.filter(|term| term.delta() > 0).take(NAMED).map(term).collect()
            }
        };
        let is_asked = report.gate.is_some();
        Self { name: format!("{b} beside {a}"), ends, slowdown: report.slowdown(), details, is_asked }
    }

    fn message(&self) -> String {
        let by = self.slowdown.map_or_else(String::new, |share| format!(": B takes {:+.1} % against A", 100.0 * share));
        // Where nothing was asked nothing passes.
        let word =
            if self.ends == Ends::Pass && !self.is_asked { "not gated, give --fail-on" } else { self.ends.word() };
        format!("{word}{by}")
    }
}

/// A JUnit report.
pub fn junit(check: &Check) -> String {
    let (failures, errors) = match check.ends {
        Ends::Pass => (0, 0),
        Ends::Slower => (1, 0),
        Ends::Refused | Ends::Unjudged => (0, 1),
    };
    let (name, message, details) = (escape(&check.name), escape(&check.message()), escape(&check.details.join("\n")));
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuite name=\"strato diff\" tests=\"1\" failures=\"{failures}\" errors=\"{errors}\">\n\
         \u{20} <testcase classname=\"strato.diff\" name=\"{name}\">\n"
    );
    // Writing to a text does not fail.
    let _ = match check.ends {
        Ends::Pass => writeln!(out, "    <system-out>{message}\n{details}</system-out>"),
        Ends::Slower => writeln!(out, "    <failure message=\"{message}\">{details}</failure>"),
        Ends::Refused | Ends::Unjudged => writeln!(out, "    <error message=\"{message}\">{details}</error>"),
    };
    out.push_str("  </testcase>\n</testsuite>\n");
    out
}

/// Annotations of a GitHub workflow.
pub fn github(check: &Check) -> String {
    let level = match check.ends {
        Ends::Pass => "notice",
        Ends::Slower | Ends::Refused | Ends::Unjudged => "error",
    };
    let body = std::iter::once(check.message()).chain(check.details.iter().cloned()).collect::<Vec<_>>().join("\n");
    format!("::{level} title={}::{}\n", property(&check.name), data(&body))
}

/// A text after the colons: what ends a command is written in percent.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A text in a property, which also ends at a comma or a colon.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_capture_says_ends_no_command_and_no_element() {
        let check = Check {
            name: "a,b: <x>".into(),
            ends: Ends::Slower,
            slowdown: Some(0.05),
            details: vec!["gemm\n::error::y".into(), "<&>".into()],
            is_asked: true,
        };
        let github = github(&check);
        assert_eq!(github.lines().count(), 1);
        assert!(
            github.starts_with("::error title=a%2Cb%3A <x>::slower: B takes +5.0 %25 against A%0Agemm%0A::error::y")
        );
        let junit = junit(&check);
        assert!(
            junit.contains("failures=\"1\" errors=\"0\"") && junit.contains("&lt;&amp;&gt;") && !junit.contains("<x>")
        );
        let refused = super::junit(&Check { ends: Ends::Refused, slowdown: None, ..check });
        assert!(refused.contains("errors=\"1\"") && refused.contains("<error message=\"refused\">"), "{refused}");
    }
}
