//! How far a rule is trusted: `rules.toml` says it of each.

use std::{collections::BTreeMap, sync::LazyLock};

/// State of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It has not fired on a recorded run, nor on a simulation that is not the program's own: it may name a cost and add a note.
    #[default]
    Preview,
    /// It has.
    Stable,
    /// It is no longer asked.
    Retired,
}

impl State {
    /// Word for people and in `rules.toml`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Preview => "preview",
            Self::Stable => "stable",
            Self::Retired => "retired",
        }
    }
}

/// A row of `rules.toml`.
#[derive(serde::Deserialize)]
struct Row {
    state: State,
    /// Release that the rule came with.
    #[allow(dead_code)] // for readers of the file
    since: String,
}

/// Every row, by rule id.
static ROWS: LazyLock<BTreeMap<String, Row>> =
    LazyLock::new(|| toml::from_str(include_str!("rules.toml")).unwrap_or_default());

/// The state of the rule with this id; one without a row is a preview.
pub fn of(rule: &str) -> State {
    ROWS.get(rule).map(|row| row.state).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::rules::REGISTRY;

    #[test]
    fn every_rule_has_a_state_and_every_state_a_rule() {
        let ids: Vec<&str> = REGISTRY.iter().map(|rule| rule.doc().id).collect();
        assert!(ids.iter().all(|id| ROWS.contains_key(*id)), "{ids:?}");
        assert_eq!(ROWS.len(), ids.len());
        assert_eq!((of("RT-14"), of("XX-00")), (State::Stable, State::Preview));
    }
}
