//! A level and what it rests on, as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::words;
use crate::phrase;
use diagnosis::{
    diagnose::{Assessment, Level},
    i18n::Lang,
};

/// A level with each of its checks; what it does not claim is said even where everything is met.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LevelAssessment")]
pub(super) struct Assessed {
    checks: Vec<Check>,
    #[schemars(schema_with = "words::level")]
    level: Level,
    /// Whether every check is.
    met: bool,
    /// What the level does not say.
    not_claimed: &'static str,
}

/// A condition of a level.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LevelCheck")]
struct Check {
    met: bool,
    what: String,
}

/// A level with its checks.
pub(super) fn assessment(assessment: &Assessment, lang: Lang) -> Assessed {
    let checks = assessment.checks.iter().map(|check| Check { met: check.met, what: phrase::plain(&check.what, lang) });
    Assessed {
        checks: checks.collect(),
        level: assessment.level,
        met: assessment.is_met(),
        not_claimed: assessment.unclaimed.get(lang),
    }
}
