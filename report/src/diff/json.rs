//! The comparison for scripts: `strato.diff/1`. Keys are a contract; new ones may be added, none goes away.
//!
//! Where the contract refuses the comparison, `alignment`, `waterfall`, `statistics` and `path` are null, and `reports` holds the report on
//! each side. The deltas of `waterfall.terms` add up to `to_ns − from_ns` exactly.

use serde_json::{Value, json};

use super::{DiffReport, Head, unknown};
use crate::{json as single, phrase, text};
use diagnosis::{
    compare::{
        Difference, Side, Statistics,
        align::{Alignment, Slot},
        contract::{Change, Claim, Contract, MAIN, Reason},
        path::{Signatures, Trait},
        readiness::together,
        statistics::{Interval, Outcome, RankTest},
        waterfall::{Basis, Waterfall},
    },
    diagnose::Readiness,
    i18n::Lang,
};

/// Name of the schema.
pub const SCHEMA: &str = "strato.diff/1";
/// Most characters of a text from a capture.
const TEXT: usize = 1000;

fn plain(value: &str) -> String {
    text::plain(value, TEXT)
}

/// Writes the comparison as one JSON object.
///
/// # Errors
/// Only if serialisation fails, which would be a defect.
pub fn render(report: &DiffReport, lang: Lang) -> Result<String, serde_json::Error> {
    let difference = report.difference.as_ref();
    let single = |side| serde_json::from_str::<Value>(&single::render(side, lang)?);
    let reports = match &report.apart {
        Some([a, b]) => json!({ "a": single(a)?, "b": single(b)? }),
        None => Value::Null,
    };
    let document = json!({
        "schema": SCHEMA,
        "simulated": crate::sections::Shown::is_simulated(report),
        "a": head(&report.heads[0]),
        "b": head(&report.heads[1]),
        "contract": contract(&report.contract, lang),
        "steps": difference.map(steps),
        "alignment": difference.map(alignment),
        "waterfall": difference.map(|d| waterfall(&d.waterfall, &d.alignment, report)),
        "statistics": report.statistics.as_ref().map(statistics),
        "path": difference.map(|d| path(&d.signatures)),
        "configuration": difference.map(|d| configuration(&d.signatures)),
        "unknown": difference.map(|d| {
            unknown::sentences(d).iter().map(|m| phrase::plain(m, lang)).collect::<Vec<_>>()
        }),
        "readiness": readiness(report, lang),
        "reports": reports,
    });
    let mut out = serde_json::to_string_pretty(&document)?;
    out.push('\n');
    Ok(out)
}

/// Boards of both sides and the lights of the pair; null where nobody assessed them. Where the pair is refused the evidence of
/// the lights stands in the reports on both sides.
fn readiness(report: &DiffReport, lang: Lang) -> Value {
    let Some([a, b]) = &report.readiness else { return Value::Null };
    let lights = |of: &Readiness| of.board.iter().map(|cell| (cell.of, cell.light)).collect::<Vec<_>>();
    let (of_a, of_b) = (lights(a), lights(b));
    let pair = together([&of_a, &of_b], &report.contract, report.outcome());
    let pair = pair.into_iter().map(|(area, _, light)| json!({ "area": area, "light": light }));
    let side = |of: &Readiness| {
        let mut side = single::readiness::readiness(of, lang);
        if report.difference.is_none() {
            let cells = side.as_object_mut().into_iter().flat_map(|side| side.values_mut());
            for cell in cells.filter_map(Value::as_array_mut).flatten().filter_map(Value::as_object_mut) {
                cell.remove("evidence");
            }
        }
        side
    };
    json!({ "a": side(a), "b": side(b), "together": pair.collect::<Vec<_>>() })
}

fn head(head: &Head) -> Value {
    json!({ "source": plain(&head.name), "device": head.device.as_deref().map(plain), "simulated": head.simulated })
}

fn contract(contract: &Contract, lang: Lang) -> Value {
    let claims: serde_json::Map<String, Value> =
        Claim::ALL.iter().map(|claim| (claim.key().to_owned(), contract.of(*claim).key().into())).collect();
    let controls = contract.controls.iter().map(|control| {
        let value = |side| {
            control.entry(side).map(|entry| {
                json!({
                    "value": plain(&entry.value), "provenance": entry.provenance,
                })
            })
        };
        let code = contract.reasons.iter().find(|reason| match reason.about {
            diagnosis::compare::contract::About::Field(field) => field.key == control.field.key,
            _ => false,
        });
        json!({
            "field": control.field.key, "class": control.field.control, "a": value(Side::A), "b": value(Side::B),
            "status": control.status.key(), "studied": control.studied, "code": code.map(Reason::text),
        })
    });
    let reasons = contract.reasons.iter().map(|reason| {
        json!({
            "code": reason.text(), "force": reason.force, "side": reason.side,
            "claims": reason.claims.iter().map(|claim| claim.key()).collect::<Vec<_>>(),
        })
    });
    json!({
        "verdict": contract.verdict().key(),
        "claims": claims,
        "controls": controls.collect::<Vec<_>>(),
        "reasons": reasons.collect::<Vec<_>>(),
        "changes": contract.changes(MAIN).iter().map(|c| change(c, lang)).collect::<Vec<_>>(),
    })
}

fn change(change: &Change, lang: Lang) -> Value {
    let keys = |fields: &[&model::manifest::Field]| fields.iter().map(|field| field.key).collect::<Vec<_>>();
    match change {
        Change::Declare { side, fields } => json!({ "do": "declare", "side": side, "fields": keys(fields) }),
        Change::Rerun { side, settings } => {
            let settings: serde_json::Map<String, Value> =
                settings.iter().map(|(field, value)| (field.key.to_owned(), plain(value).into())).collect();
            json!({ "do": "rerun", "side": side, "settings": settings })
        }
        Change::Study { fields } => json!({ "do": "study", "fields": keys(fields) }),
        Change::Record { side, about } => {
            let what = super::words::plain(*about).get(lang).replace("{side}", side.letter());
            json!({ "do": "record", "side": side, "what": what })
        }
    }
}

fn steps(difference: &Difference) -> Value {
    let [a, b] = &difference.sides;
    let side = |side: &diagnosis::compare::difference::Compared| {
        json!({
            "rank": side.rank, "class": plain(&side.class), "count": side.steps, "host_calls": side.has_host,
            "probes": side.has_probes, "decode": side.is_decode,
        })
    };
    json!({ "a": side(a), "b": side(b) })
}

fn alignment(difference: &Difference) -> Value {
    let Difference { alignment, waterfall, .. } = difference;
    let slot = |(index, slot): (usize, &Slot)| {
        let used = waterfall.rows.iter().any(|row| row.slot as usize == index);
        let ops = |ops: &[diagnosis::compare::align::Op]| ops.iter().map(|op| op.name()).collect::<Vec<_>>();
        (slot.by.is_some() || used).then(|| {
            json!({
                "slot": slot.key(), "a_ops": ops(&slot.a), "b_ops": ops(&slot.b),
                "move": slot.by.map_or("operator", |by| by.key()),
            })
        })
    };
    let coverage = |n: usize| {
        let c = waterfall.coverage[n];
        json!({ "share": c.share(), "busy_ns": c.busy, "mapped_ns": c.mapped, "shared_ns": c.shared })
    };
    let found = |n: usize| alignment.found[n].map(|layers| json!({ "length": layers.len, "repeats": layers.repeats }));
    json!({
        "way": alignment.way.key(),
        "callers": alignment.callers,
        "coverage": { "a": coverage(0), "b": coverage(1) },
        "period": { "a": found(0), "b": found(1) },
        "layers": alignment.layers,
        "slots": alignment.slots.iter().enumerate().filter_map(slot).collect::<Vec<_>>(),
    })
}

fn waterfall(waterfall: &Waterfall, alignment: &Alignment, report: &DiffReport) -> Value {
    let slot = |index: u32| alignment.slots.get(index as usize).map(Slot::key);
    let terms = waterfall.rows.iter().flat_map(|row| {
        row.causes.iter().map(move |(cause, ns)| {
            json!({
                "slot": slot(row.slot), "bucket": plain(&row.bucket), "layer": row.layer, "waited": row.waited,
                "replayed": row.replayed, "cause": cause.key(), "delta_ns": ns,
            })
        })
    });
    let rows = waterfall.rows.iter().map(|row| {
        json!({
            "slot": slot(row.slot), "bucket": plain(&row.bucket), "layer": row.layer, "waited": row.waited,
            "replayed": row.replayed, "from_ns": row.a.ns, "to_ns": row.b.ns,
        })
    });
    let parts = waterfall.parts.iter().map(|(part, layer, [from, to])| {
        json!({
            "part": part.key(), "layer": layer, "from_ns": from, "to_ns": to,
        })
    });
    let causes: serde_json::Map<String, Value> =
        waterfall.causes().iter().map(|(cause, ns)| (cause.key().to_owned(), (*ns).into())).collect();
    json!({
        "per": match waterfall.basis { Basis::Step => "step", Basis::Token => "token" },
        "from_ns": waterfall.from,
        "to_ns": waterfall.to,
        "steps": waterfall.steps,
        "caveats": report.caveats(),
        "terms": terms.collect::<Vec<_>>(),
        "sides": rows.collect::<Vec<_>>(),
        "parts": parts.collect::<Vec<_>>(),
        "causes": causes,
        "separated": !waterfall.setup.ceilings.is_empty() || waterfall.setup.same_platform,
    })
}

/// What repeats say. Logarithms of ratios stand as shares of the step in the middle; there is a ratio only where one is shown.
fn statistics(statistics: &Statistics) -> Value {
    let outcome = statistics.outcome();
    let side = |n: usize| json!({ "launches_ns": statistics.launches[n], "steps": statistics.steps[n], "absent": statistics.absent[n] });
    let interval = |i: &Interval, show: fn(f64) -> f64| json!({ "value": show(i.value), "low": show(i.low), "high": show(i.high) });
    let test = |test: &RankTest| json!({ "u": test.u, "p": test.p, "cliffs_delta": test.delta });
    let repeated = statistics.repeated.as_ref().map(|repeated| {
        let buckets = repeated.buckets.iter().map(|bucket| {
            json!({
                "bucket": plain(&bucket.name), "a_ns": bucket.ns[0], "b_ns": bucket.ns[1], "test": test(&bucket.test),
                "false_share": bucket.false_share, "differs": bucket.differs(),
            })
        });
        let ratio = (outcome == Outcome::Shown).then(|| interval(&repeated.logarithm, f64::exp));
        json!({
            "a_ns": repeated.centers[0],
            "b_ns": repeated.centers[1],
            "difference_ns": interval(&repeated.difference, |ns| ns),
            "ratio": ratio,
            "test": test(&repeated.test),
            "earlier_noise": repeated.noise.earlier.map(|floor| {
                floor.map(|floor| json!({ "launches": floor.launches, "deviation": floor.deviation }))
            }),
            "noise_assumed": repeated.noise.assumed,
            "noise_floor_ns": repeated.time(repeated.noise.floor),
            "detectable_ns": repeated.time(repeated.noise.detectable),
            "buckets": buckets.collect::<Vec<_>>(),
        })
    });
    json!({ "unit": "launch", "outcome": outcome.key(), "a": side(0), "b": side(1), "repeated": repeated })
}

fn path(signatures: &Signatures) -> Value {
    let (same, different, unknown) = divided(&signatures.path, |feature| feature.key());
    json!({ "same": same, "different": different, "unknown": unknown, "reading": signatures.reading().key() })
}

fn configuration(signatures: &Signatures) -> Value {
    let (same, different, unknown) = divided(&signatures.settings, |key| key);
    json!({ "same": same, "different": different, "unknown": unknown })
}

/// Traits that are the same, that differ, and that a side does not show.
fn divided<K: Copy>(traits: &[Trait<K>], key: impl Fn(K) -> &'static str) -> (Vec<Value>, Vec<Value>, Vec<Value>) {
    let of = |same: Option<bool>| {
        let own = traits.iter().filter(|t| t.same == same);
        own.map(|t| json!({ "trait": key(t.key), "a": t.a.as_deref().map(plain), "b": t.b.as_deref().map(plain) }))
            .collect()
    };
    (of(Some(true)), of(Some(false)), of(None))
}
