//! Whether the two may be compared, as JSON.

use std::collections::BTreeMap;

use model::manifest::{Control as Class, Field, Provenance};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    super::{DiffReport, declaration, words as said},
    plain,
};
use crate::json::words;
use diagnosis::{
    compare::{
        Side,
        contract::{About, Change, Claim, Contract, Control, Force, MAIN, Reason, Verdict},
        work::{Distance, Parted},
    },
    i18n::Lang,
};

/// Whether the two may be compared, and why not.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Contract")]
pub(super) struct Comparability {
    #[schemars(schema_with = "words::verdict")]
    verdict: &'static str,
    /// The verdict for each question.
    #[schemars(schema_with = "words::claims")]
    claims: BTreeMap<&'static str, &'static str>,
    controls: Vec<Held>,
    reasons: Vec<Why>,
    /// The smallest changes that would make the two comparable.
    changes: Vec<Needed>,
    /// How far the work of the two is apart, by what their traces show.
    work: Option<Work>,
    /// A declaration file with what is known and the open fields commented out, where the comparison is refused.
    declaration: Option<String>,
}

/// The work of both, held against each other.
#[derive(Serialize, JsonSchema)]
struct Work {
    /// From 0, other work, to 1, the same as far as both show it; null where they show nothing in common.
    comparability: Option<f64>,
    /// Share of the parts that both show.
    shown: f64,
    parts: Vec<WorkPart>,
}

/// A part of the work.
#[derive(Serialize, JsonSchema)]
struct WorkPart {
    /// Such as `layers` or `tokens`.
    part: &'static str,
    a: Option<String>,
    b: Option<String>,
    /// From 0, equal, upwards; null where a side does not show it.
    distance: Option<f64>,
    /// The most that the same work may be apart.
    limit: f64,
    /// Whether this is other work.
    differs: bool,
}

fn work(work: &Distance) -> Work {
    let rounded = |n: f64| (n * 1e4).round() / 1e4;
    let part = |own: &Parted| WorkPart {
        part: own.part.key(),
        a: own.a.as_deref().map(plain),
        b: own.b.as_deref().map(plain),
        distance: own.distance.map(rounded),
        limit: own.limit,
        differs: own.differs(),
    };
    Work {
        comparability: work.comparability().map(rounded),
        shown: rounded(work.shown()),
        parts: work.parts.iter().map(part).collect(),
    }
}

/// A field of the manifest as both sides state it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Control")]
struct Held {
    field: &'static str,
    #[schemars(schema_with = "words::control")]
    class: Class,
    a: Option<Stated>,
    b: Option<Stated>,
    #[schemars(schema_with = "status")]
    status: &'static str,
    /// Whether the difference is what the pair was made to find out.
    studied: bool,
    /// Code of the reason that it gives.
    code: Option<String>,
}

fn status(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["equal", "equivalent", "different", "unknown"] })
}

/// What a side states.
#[derive(Serialize, JsonSchema)]
struct Stated {
    value: String,
    #[schemars(schema_with = "words::provenance")]
    provenance: Provenance,
}

/// Why questions are refused or limited.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Reason")]
struct Why {
    /// Such as `UNKNOWN(model.name)`.
    code: String,
    #[schemars(schema_with = "words::force")]
    force: Force,
    #[schemars(schema_with = "words::side_or_both")]
    side: Option<Side>,
    #[schemars(schema_with = "words::claim_list")]
    claims: Vec<&'static str>,
}

/// A change that would help.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "do", rename_all = "snake_case")]
#[schemars(rename = "Change")]
enum Needed {
    /// Say in a declaration file what these were.
    Declare {
        #[schemars(schema_with = "words::side_or_both")]
        side: Option<Side>,
        fields: Vec<&'static str>,
    },
    /// Run a side again with these settings.
    Rerun {
        #[schemars(schema_with = "words::side")]
        side: Side,
        settings: BTreeMap<&'static str, String>,
    },
    /// Name these as what is studied.
    Study { fields: Vec<&'static str> },
    /// Record a side again, so that this no longer holds.
    Record {
        #[schemars(schema_with = "words::side")]
        side: Side,
        what: String,
    },
}

pub(super) fn comparability(report: &DiffReport, lang: Lang) -> Comparability {
    let contract = &report.contract;
    let refused = contract.verdict() == Verdict::NotComparable;
    let reasons = contract.reasons.iter().map(|reason| Why {
        code: reason.text(),
        force: reason.force,
        side: reason.side,
        claims: reason.claims.iter().map(|claim| claim.key()).collect(),
    });
    Comparability {
        verdict: contract.verdict().key(),
        claims: Claim::ALL.iter().map(|claim| (claim.key(), contract.of(*claim).key())).collect(),
        controls: contract.controls.iter().map(|control| held(contract, control)).collect(),
        reasons: reasons.collect(),
        changes: contract.changes(MAIN).iter().map(|c| change(c, lang)).collect(),
        work: contract.work.as_ref().map(work),
        declaration: refused.then(|| declaration::render(report, lang)),
    }
}

fn held(contract: &Contract, control: &Control) -> Held {
    let stated = |side| {
        let entry = control.entry(side)?;
        Some(Stated { value: plain(&entry.value), provenance: entry.provenance })
    };
    let reason = contract.reasons.iter().find(|reason| match reason.about {
        About::Field(field) => field.key == control.field.key,
        _ => false,
    });
    Held {
        field: control.field.key,
        class: control.field.control,
        a: stated(Side::A),
        b: stated(Side::B),
        status: control.status.key(),
        studied: control.studied,
        code: reason.map(Reason::text),
    }
}

fn change(change: &Change, lang: Lang) -> Needed {
    let keys = |fields: &[&'static Field]| fields.iter().map(|field| field.key).collect();
    match change {
        Change::Declare { side, fields } => Needed::Declare { side: *side, fields: keys(fields) },
        Change::Rerun { side, settings } => {
            let settings = settings.iter().map(|(field, value)| (field.key, plain(value)));
            Needed::Rerun { side: *side, settings: settings.collect() }
        }
        Change::Study { fields } => Needed::Study { fields: keys(fields) },
        Change::Record { side, about } => {
            let what = said::plain(*about).get(lang).replace("{side}", side.letter());
            Needed::Record { side: *side, what }
        }
    }
}
