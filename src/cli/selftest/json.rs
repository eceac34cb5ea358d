//! The scores as JSON, `strato.selftest/1`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{figures::Figure, score::Score, serving};

/// A share to six decimals: what is beyond them is noise of the last bit.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// The scores of runs that began at `seed`, those of serving where some served.
///
/// # Errors
/// None that this content can cause.
pub fn render(
    score: &Score,
    serving: Option<&serving::score::Score>,
    figures: &BTreeMap<String, Figure>,
    seed: u64,
) -> serde_json::Result<String> {
    let figures: serde_json::Map<String, Value> =
        figures.iter().map(|(name, figure)| (name.clone(), json!(rounded(figure.value)))).collect();
    let group = |(key, group): (&super::score::Key, &super::score::Group)| {
        let mut value = json!(group);
        let error = |q| group.error(q).map(rounded);
        value["gain_error"] = json!({ "median": error(0.5), "p90": error(0.9), "of": group.errors.len() });
        (key.word(), value)
    };
    let sureness = |s: &super::score::Sureness| {
        json!({
            "confidence": report::units::confidence_key(s.confidence), "stated": s.stated, "right": s.right,
        })
    };
    let selective = |(loss, s): (&Option<super::deprive::Loss>, &super::score::Selective)| json!({ "without": loss.map(|l| l.key()), "answered": s.answered, "wrong": s.wrong });
    let value = json!({
        "schema": "strato.selftest/1",
        "seed": seed,
        "runs": score.runs,
        "figures": figures,
        "groups": score.groups.iter().map(group).collect::<serde_json::Map<String, Value>>(),
        "rules": score.rules,
        "healthy": { "false_alarms": score.false_alarms, "headroom": score.headroom },
        "pairs": score.pairs,
        "wait_residual_ns": { "median": score.residuals.get(score.residuals.len() / 2), "max": score.residuals.last(), "of": score.residuals.len() },
        "confidence": score.sureness.iter().map(sureness).collect::<Vec<_>>(),
        "evidence": score.selective.iter().map(selective).collect::<Vec<_>>(),
        "misses": score.misses,
        "wrong_layer": score.blames,
        "far_gain": score.far,
        "serving": serving.map(serving::page::json),
    });
    let mut text = serde_json::to_string_pretty(&value)?;
    text.push('\n');
    Ok(text)
}
