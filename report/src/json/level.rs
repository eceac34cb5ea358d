//! A level and what it rests on, as JSON.

use serde_json::{Value, json};

use crate::phrase;
use diagnosis::{diagnose::Assessment, i18n::Lang};

/// A level with each of its checks; what it does not claim is said even where everything is met.
pub(super) fn assessment(assessment: &Assessment, lang: Lang) -> Value {
    let checks = assessment.checks.iter();
    let checks: Vec<Value> =
        checks.map(|check| json!({ "met": check.met, "what": phrase::plain(&check.what, lang) })).collect();
    json!({
        "level": assessment.level,
        "met": assessment.is_met(),
        "checks": checks,
        "not_claimed": assessment.unclaimed.get(lang),
    })
}
