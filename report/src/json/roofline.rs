//! The run beside measured ceilings, as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    finding::{Amount, quantity},
    plain,
};
use diagnosis::{diagnose::roofline as diagnose, i18n::Lang};

/// The steps with the most time beside what the device was measured to be able to do.
#[derive(Serialize, JsonSchema)]
pub(super) struct Roofline {
    /// Step class.
    class: String,
    /// What disturbed the probes.
    noise: Option<String>,
    rank: u32,
    rows: Vec<Comparison>,
}

/// One quantity of the run beside its ceiling.
#[derive(Serialize, JsonSchema)]
struct Comparison {
    /// The ceiling.
    ceiling: Amount,
    /// Share of the ceiling that the run reached.
    reached: f64,
    /// What the run did.
    run: Amount,
    /// Unit of both.
    unit: &'static str,
    /// What is compared.
    what: &'static str,
}

/// Every comparison with its unit.
pub(super) fn roofline(held: &diagnose::Roofline, lang: Lang) -> Roofline {
    let rows = held.rows.iter().map(|row| {
        let ((run, unit), (ceiling, _)) = (quantity(&row.run, lang), quantity(&row.ceiling, lang));
        Comparison { ceiling, reached: row.reached, run, unit, what: row.what.get(lang) }
    });
    Roofline {
        class: plain(&held.class),
        noise: held.noise.as_deref().map(plain),
        rank: held.rank,
        rows: rows.collect(),
    }
}
