//! The run beside measured ceilings, as JSON.

use super::{finding::quantity, plain};
use diagnosis::{diagnose::roofline::Roofline, i18n::Lang};

/// Every comparison with its unit.
pub(super) fn held(held: &Roofline, lang: Lang) -> serde_json::Value {
    let rows = held.rows.iter().map(|row| {
        let ((run, unit), (ceiling, _)) = (quantity(&row.run, lang), quantity(&row.ceiling, lang));
        serde_json::json!({
            "what": row.what.get(lang), "run": run, "ceiling": ceiling, "unit": unit, "reached": row.reached,
        })
    });
    serde_json::json!({
        "rank": held.rank, "class": plain(&held.class), "rows": rows.collect::<Vec<_>>(),
        "noise": held.noise.as_deref().map(plain),
    })
}
