//! The answer, as JSON: the total, the largest terms, what they come from, what is not known.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{super::DiffReport, plain};
use crate::json::words;
use diagnosis::{
    analysis::Layer,
    compare::{
        Difference,
        terms::{Held, How, Term},
        waterfall::Cause,
    },
};

/// Terms in the answer.
const TERMS: usize = 12;

/// What B takes longer than A, and why.
#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    from_ns: i64,
    to_ns: i64,
    delta_ns: i64,
    /// B over A; null where A takes no time.
    ratio: Option<f64>,
    /// The largest terms, the largest first; each is net of what cancels in its slot.
    terms: Vec<AnswerTerm>,
    /// Further terms, which are not listed, and what they add up to.
    further: Further,
    /// The whole difference by what it comes from, signed.
    #[schemars(schema_with = "words::causes")]
    comes_from: BTreeMap<&'static str, i64>,
    /// Share of what moved that no measured factor covers, in 0..=1.
    unexplained: f64,
    /// Whether environment rests on data sheets and not on probes.
    published: bool,
}

/// Terms that are not listed.
#[derive(Serialize, JsonSchema)]
struct Further {
    count: usize,
    delta_ns: i64,
}

/// A term of the difference.
#[derive(Serialize, JsonSchema)]
struct AnswerTerm {
    /// Slot such as `layer.gemm#2`, or bucket such as `rt.host.forward`.
    name: String,
    operator: Option<String>,
    #[schemars(schema_with = "words::layer")]
    layer: Layer,
    /// How the two differ in it.
    #[schemars(schema_with = "hows")]
    how: How,
    delta_ns: i64,
    a: AnswerSide,
    b: AnswerSide,
    /// What it comes from, signed.
    #[schemars(schema_with = "words::causes")]
    comes_from: BTreeMap<&'static str, i64>,
}

/// A side of a term.
#[derive(Serialize, JsonSchema)]
struct AnswerSide {
    ns: i64,
    /// Calls of kernels, or idle stretches, per step.
    calls: f64,
    ns_per_call: Option<f64>,
    /// How long a call lasts, ns, where a part of it runs beside other work and is not counted in `ns`.
    lasting_ns_per_call: Option<f64>,
    /// The kernel with most of the time, or the owner of most of the idle time.
    kernel_or_owner: Option<String>,
    /// Shapes of what went into it.
    shape: Option<String>,
    /// Bytes per ns that it reads, where shapes say it.
    gb_per_s: Option<f64>,
    /// The least time of it by the data sheet, ns.
    floor_ns: Option<f64>,
}

fn hows(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": How::ALL.map(How::key) })
}

fn rounded(n: f64) -> f64 {
    (n * 1e4).round() / 1e4
}

pub(super) fn answer(difference: &Difference, _: &DiffReport) -> Answer {
    let waterfall = &difference.waterfall;
    let moved: Vec<&Term> = difference.terms.iter().filter(|term| term.delta() != 0).collect();
    let rest = moved.get(TERMS..).unwrap_or(&[]);
    let [all, open] = waterfall.moved();
    Answer {
        from_ns: waterfall.from,
        to_ns: waterfall.to,
        delta_ns: waterfall.delta(),
        ratio: (waterfall.from > 0).then(|| rounded(waterfall.to as f64 / waterfall.from as f64)),
        terms: moved.iter().take(TERMS).map(|term| of(term)).collect(),
        further: Further { count: rest.len(), delta_ns: rest.iter().map(|term| term.delta()).sum() },
        comes_from: waterfall.causes().into_iter().map(|(cause, ns)| (cause.key(), ns)).collect(),
        unexplained: rounded(open as f64 / all.max(1) as f64),
        published: waterfall.setup.ceilings.published,
    }
}

fn of(term: &Term) -> AnswerTerm {
    let [a, b] = term.sides.each_ref().map(side);
    AnswerTerm {
        name: plain(&term.name),
        operator: term.operator.clone(),
        layer: term.layer,
        how: term.how,
        delta_ns: term.delta(),
        a,
        b,
        comes_from: Cause::ALL
            .iter()
            .map(|cause| (cause.key(), term.causes.iter().filter(|(own, _)| own == cause).map(|(_, ns)| ns).sum()))
            .collect(),
    }
}

fn side(held: &Held) -> AnswerSide {
    AnswerSide {
        ns: held.ns,
        calls: rounded(held.calls),
        ns_per_call: held.per_call().map(rounded),
        lasting_ns_per_call: held.lasting.map(rounded),
        kernel_or_owner: held.name.as_deref().map(plain),
        shape: held.shape.as_deref().map(plain),
        gb_per_s: held.rate().map(rounded),
        floor_ns: held.floor.map(rounded),
    }
}
