//! Regular expressions that read log lines: those of the packs in `packs/`, and those of the user before them. The named
//! groups of an expression are fields ([`Field::named`]). They are a value that the caller hands to the reader
//! ([`crate::ReadOptions::patterns`]).

use std::sync::LazyLock;

use regex::{Regex, RegexSet};
use serde::Deserialize;

use super::field::{Field, Record};
use crate::lines::plain;

/// A log pattern that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// The pack is no TOML of the expected shape.
    #[error("log patterns: {0}; see parsers/src/log/packs/vllm.toml for the form")]
    Form(String),
    /// The expression does not compile.
    #[error("log pattern '{regex}': {why}; correct the expression")]
    Regex {
        /// The expression.
        regex: String,
        /// What is wrong with it.
        why: String,
    },
    /// A group has a name that is no field.
    #[error(
        "log pattern '{regex}': group '{group}' is no field; name it latency_ms, batch_size, graph_mode or another field"
    )]
    Group {
        /// The expression.
        regex: String,
        /// The group.
        group: String,
    },
}

/// A pack: `[[log]]` tables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pack {
    #[allow(dead_code)] // read by people, in the pack; required to be text here
    source: String,
    #[allow(dead_code)] // as above
    date: String,
    log: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    engine: String,
    regex: String,
    #[serde(default)]
    #[allow(dead_code)] // as above
    source: Option<String>,
}

struct Line {
    engine: String,
    regex: Regex,
    fields: Vec<(String, Field)>,
}

/// Compiled expressions that read log lines; the first one that knows a line reads it.
#[derive(Default)]
pub struct Patterns {
    set: RegexSet,
    lines: Vec<Line>,
}

const EMBEDDED: [&str; 6] = [
    include_str!("packs/vllm.toml"),
    include_str!("packs/sglang.toml"),
    include_str!("packs/vllm_ascend.toml"),
    include_str!("packs/tensorrt_llm.toml"),
    include_str!("packs/llama_cpp.toml"),
    include_str!("packs/failures.toml"),
];

/// The built-in patterns, compiled once; nothing changes them.
static BUILT_IN: LazyLock<Patterns> = LazyLock::new(|| {
    // A test compiles them, so there is no other outcome.
    embedded().and_then(|texts| Patterns::compile(texts.into_iter())).unwrap_or_default()
});

fn embedded() -> Result<Vec<(String, String)>, PatternError> {
    let mut all = Vec::new();
    for text in EMBEDDED {
        let pack: Pack = toml::from_str(text).map_err(|e| PatternError::Form(e.to_string()))?;
        all.extend(pack.log.into_iter().map(|entry| (entry.engine, entry.regex)));
    }
    Ok(all)
}

impl Patterns {
    /// Those that come with the program.
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// The patterns of a user, each an engine's name and an expression whose named groups are fields, before the built-in
    /// ones.
    ///
    /// # Errors
    /// [`PatternError`] of the first one that cannot be used.
    pub fn with(patterns: &[(String, String)]) -> Result<Self, PatternError> {
        Self::compile(patterns.iter().cloned().chain(embedded()?))
    }

    fn compile(patterns: impl Iterator<Item = (String, String)>) -> Result<Self, PatternError> {
        let mut lines = Vec::new();
        for (engine, text) in patterns {
            let wrong = |e: regex::Error| PatternError::Regex { regex: text.clone(), why: e.to_string() };
            let regex = Regex::new(&text).map_err(wrong)?;
            let mut fields = Vec::new();
            for group in regex.capture_names().flatten() {
                let unknown = || PatternError::Group { regex: text.clone(), group: group.to_owned() };
                fields.push((group.to_owned(), Field::named(group).ok_or_else(unknown)?));
            }
            lines.push(Line { engine, regex, fields });
        }
        let set = RegexSet::new(lines.iter().map(|line| line.regex.as_str()))
            .map_err(|e| PatternError::Regex { regex: "all patterns together".to_owned(), why: e.to_string() })?;
        Ok(Self { set, lines })
    }

    /// Whether any pattern knows a line.
    pub fn know(&self, line: &[u8]) -> bool {
        self.set.is_match(&plain(line))
    }

    /// What the first pattern that knows the line reads of it: the engine, the record, and the fields that could not be
    /// read.
    pub fn read(&self, line: &str) -> Option<(&str, Record, u64)> {
        let pattern = self.lines.get(self.set.matches(line).into_iter().next()?)?;
        let found = pattern.regex.captures(line)?;
        let mut record = Record::default();
        let mut unreadable = 0;
        for (group, field) in &pattern.fields {
            if let Some(value) = found.name(group) {
                unreadable += u64::from(!record.set(*field, value.as_str()));
            }
        }
        Some((&pattern.engine, record, unreadable))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn every_built_in_pattern_compiles_and_names_fields() {
        let all = embedded().unwrap();
        assert!(all.len() > 10);
        assert_eq!(Patterns::compile(all.clone().into_iter()).unwrap().lines.len(), all.len());
    }

    #[test]
    fn a_wrong_pattern_is_refused_with_its_reason() {
        let refused = |regex: &str| match Patterns::with(&[("x".to_owned(), regex.to_owned())]) {
            Ok(_) => panic!("{regex} is taken"),
            Err(error) => error.to_string(),
        };
        assert!(refused("(").contains("correct the expression"));
        assert!(refused(r"took (?P<duration>\d+)").contains("'duration'"));
    }
}
