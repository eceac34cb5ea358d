//! What makes the difference, as JSON.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{super::DiffReport, plain};
use crate::json::words;
use diagnosis::{
    analysis::Layer,
    compare::{
        Difference,
        align::{Part, Slot},
        waterfall::{Basis, Unit},
    },
};

/// What makes the difference: the deltas of `terms` add up to `to_ns − from_ns` exactly.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Waterfall")]
pub(super) struct Terms {
    /// What the times are of.
    #[schemars(schema_with = "bases")]
    per: &'static str,
    from_ns: i64,
    to_ns: i64,
    /// Steps of each side.
    steps: [usize; 2],
    /// Codes of what goes with every number.
    caveats: Vec<String>,
    terms: Vec<Term>,
    sides: Vec<Sides>,
    parts: Vec<StepPart>,
    #[schemars(schema_with = "words::causes")]
    causes: BTreeMap<&'static str, i64>,
    /// Whether environment and maturity were told apart.
    separated: bool,
    /// Whether the two do unequal amounts of work.
    unequal: bool,
    /// What each side takes for a unit of its work, where they are unequal.
    units: Vec<OfUnit>,
}

/// The time of a unit of work.
#[derive(Serialize, JsonSchema)]
struct OfUnit {
    #[schemars(schema_with = "counted")]
    unit: Unit,
    from_ns: f64,
    to_ns: f64,
}

fn counted(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["token", "layer", "gflop"] })
}

fn bases(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["step", "token"] })
}

/// A part of the difference with one cause.
#[derive(Serialize, JsonSchema)]
struct Term {
    slot: Option<String>,
    bucket: String,
    #[schemars(schema_with = "words::layer")]
    layer: Layer,
    /// Whether it is what a late rank did while others waited in a collective.
    waited: bool,
    /// Whether one side shows only a replay in its place.
    replayed: bool,
    #[schemars(schema_with = "words::cause")]
    cause: &'static str,
    delta_ns: i64,
}

/// Time of both sides in one place.
#[derive(Serialize, JsonSchema)]
struct Sides {
    slot: Option<String>,
    bucket: String,
    #[schemars(schema_with = "words::layer")]
    layer: Layer,
    /// Whether it is what a late rank did while others waited in a collective.
    waited: bool,
    /// Whether one side shows only a replay in its place.
    replayed: bool,
    from_ns: i64,
    to_ns: i64,
}

/// Time of both sides in a part of the step.
#[derive(Serialize, JsonSchema)]
struct StepPart {
    #[schemars(schema_with = "step_parts")]
    part: &'static str,
    /// Layer of the model, from 0.
    layer: Option<u32>,
    from_ns: i64,
    to_ns: i64,
}

fn step_parts(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": Part::ALL.map(Part::key) })
}

pub(super) fn terms(difference: &Difference, report: &DiffReport) -> Terms {
    let Difference { alignment, waterfall, .. } = difference;
    let slot = |index: u32| alignment.slots.get(index as usize).map(Slot::key);
    let terms = waterfall.rows.iter().flat_map(|row| {
        row.causes.iter().map(move |(cause, ns)| Term {
            slot: slot(row.slot),
            bucket: plain(&row.bucket),
            layer: row.layer,
            waited: row.waited,
            replayed: row.replayed,
            cause: cause.key(),
            delta_ns: *ns,
        })
    });
    let sides = waterfall.rows.iter().map(|row| Sides {
        slot: slot(row.slot),
        bucket: plain(&row.bucket),
        layer: row.layer,
        waited: row.waited,
        replayed: row.replayed,
        from_ns: row.a.ns,
        to_ns: row.b.ns,
    });
    let parts = waterfall.parts.iter().map(|(part, layer, [from, to])| StepPart {
        part: part.key(),
        layer: *layer,
        from_ns: *from,
        to_ns: *to,
    });
    Terms {
        per: match waterfall.basis {
            Basis::Step => "step",
            Basis::Token => "token",
        },
        from_ns: waterfall.from,
        to_ns: waterfall.to,
        steps: waterfall.steps,
        caveats: report.caveats(),
        terms: terms.collect(),
        sides: sides.collect(),
        parts: parts.collect(),
        causes: waterfall.causes().iter().map(|(cause, ns)| (cause.key(), *ns)).collect(),
        unequal: report.unequal,
        units: waterfall
            .units
            .iter()
            .map(|(unit, [from, to])| OfUnit { unit: *unit, from_ns: *from, to_ns: *to })
            .collect(),
        separated: !waterfall.setup.ceilings.is_empty() || waterfall.setup.same_platform,
    }
}
