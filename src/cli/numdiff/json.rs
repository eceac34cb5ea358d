//! The comparison for scripts, `strato.numdiff/1`.

use engine::numdiff::{Comparison, Lost, Measure, Row, Summary, ULPS, Verdict};
use serde_json::{Value, json};

use super::{Done, described};

/// The whole document. A number that is not finite is absent, as JSON has none.
pub(super) fn document(done: &Done) -> Value {
    let c = &done.comparison;
    json!({
        "schema": "strato.numdiff/1",
        "model": done.model,
        "seed": done.seed,
        "a": described(&done.sides[0]),
        "b": described(&done.sides[1]),
        "prompt_tokens": done.sides[0].prompt,
        "sequences": done.sides[0].batch,
        "decode_steps": c.steps,
        "verdict": verdict(c.verdict()),
        "precision": c.precision.name(),
        "first": c.first.and_then(|at| c.rows.get(at)).map(row),
        "not_finite": { "a": lost(c, c.not_finite[0]), "b": lost(c, c.not_finite[1]) },
        "logits": { "own": measure(&c.logits), "tolerance": c.tolerance },
        "tokens": { "chosen": c.tokens[0], "equal": c.tokens[1] },
        "split": c.split.map(|split| json!({
            "step": split.step, "sequence": split.sequence, "tokens": split.tokens,
            "margin": split.margin, "benign": split.is_benign(),
        })),
        "other_logits_when_started_whole": { "a": c.unrepeated[0], "b": c.unrepeated[1] },
        "amplified": c.amplified().and_then(|at| c.rows.get(at)).map(row),
        "ulp_ends": ULPS,
        "operators": operators(c),
    })
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Equal => "bit_equal",
        Verdict::WithinPrecision => "within_precision",
        Verdict::Grown => "divergent_benign",
        Verdict::Faulty => "faulty",
        Verdict::NotFinite => "not_finite",
    }
}

/// Where a side first gives NaN or infinity.
fn lost(c: &Comparison, at: Option<Lost>) -> Option<Value> {
    let at = at?;
    let row = c.rows.get(at.row)?;
    Some(json!({ "step": at.step, "layer": row.layer, "op": row.name() }))
}

fn operators(c: &Comparison) -> Vec<Value> {
    c.rows.iter().map(row).collect()
}

fn row(row: &Row) -> Value {
    json!({
        "phase": if row.prefill { "prefill" } else { "decode" },
        "layer": row.layer,
        "op": row.name(),
        "a_ops": row.ops[0],
        "b_ops": row.ops[1],
        "input_relative_l2": row.input,
        "amplification": row.amplification(),
        "own": measure(&row.own),
        "local": measure(&row.local),
        "weights": row.weights.as_ref().map(measure),
        "fault": row.fault.map(|(step, cause)| json!({ "step": step, "why": cause })),
    })
}

fn measure(m: &Measure) -> Value {
    json!({
        "count": m.count,
        "different": m.different,
        "max_abs": m.max_abs,
        "max_rel": m.max_rel,
        "relative_l2": m.relative_l2(),
        "cosine": m.cosine(),
        "within_1e-3": m.close().map(|close| close[0]),
        "within_5e-3": m.close().map(|close| close[1]),
        "ulps": m.ulps,
        "lost": { "a": m.lost[0], "b": m.lost[1] },
        "a": summary(&m.a),
        "b": summary(&m.b),
    })
}

fn summary(s: &Summary) -> Value {
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    json!({
        "min": finite(s.min), "max": finite(s.max), "mean": s.mean(), "variance": s.variance(), "l2": s.l2(),
        "nan": s.nan, "inf": s.inf, "beyond_1e10": s.huge,
    })
}
