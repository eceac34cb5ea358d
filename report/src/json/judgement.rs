//! The statements of a verdict as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    plain,
    steps::{self, Workload},
    words,
};
use crate::{model::Capture, phrase};
use diagnosis::{
    diagnose::{self, Place, Verdict, VerdictLayer},
    i18n::Lang,
};

/// Where the time of a step is.
#[derive(Serialize, JsonSchema)]
pub(super) struct Where {
    #[schemars(schema_with = "words::verdict_layer")]
    layer: VerdictLayer,
    /// Its share of the mean step.
    share: f64,
    /// The largest bucket.
    bucket: String,
    /// Its share of the mean step.
    bucket_share: f64,
    /// Share in which the device works.
    busy: f64,
    rank: u32,
    class: String,
}

/// What to change first.
#[derive(Serialize, JsonSchema)]
pub(super) struct First {
    rule: &'static str,
    #[schemars(schema_with = "words::verdict_layer")]
    layer: VerdictLayer,
    from_ns: i64,
    to_ns_low: i64,
    to_ns_high: i64,
    sentence: String,
}

/// Time that no rule could judge.
#[derive(Serialize, JsonSchema)]
pub(super) struct Unjudged {
    /// Share of the mean step: the most that it could be worth.
    share: f64,
    /// What it is and what would decide it.
    sentence: String,
}

/// The steps that everything refers to, and whose they are.
#[derive(Serialize, JsonSchema)]
pub(super) struct Base {
    capture: usize,
    rank: u32,
    class: String,
    #[serde(flatten)]
    workload: Workload,
}

const STATEMENTS: [&str; 3] = ["where", "first", "unjudged"];

pub(super) fn statements(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "array", "items": { "type": "string", "enum": STATEMENTS } })
}

pub(super) fn decided(verdict: &Verdict) -> Vec<&'static str> {
    let stands = [
        verdict.place.as_ref().is_some_and(|place| place.layer != VerdictLayer::Undecided),
        verdict.first.is_some(),
        !verdict.unjudged.is_empty(),
    ];
    STATEMENTS.into_iter().zip(stands).filter(|(_, stands)| *stands).map(|(name, _)| name).collect()
}

pub(super) fn place(place: &Place) -> Where {
    Where {
        layer: place.layer,
        share: place.share,
        bucket: plain(&place.bucket),
        bucket_share: place.part,
        busy: place.busy,
        rank: place.rank,
        class: plain(&place.class),
    }
}

pub(super) fn first(first: &diagnose::First, lang: Lang) -> First {
    First {
        rule: first.rule,
        layer: first.layer,
        from_ns: first.from,
        to_ns_low: first.to_low,
        to_ns_high: first.to_high,
        sentence: phrase::plain(&first.gain(), lang),
    }
}

pub(super) fn unjudged(doubt: &diagnose::Unjudged, lang: Lang) -> Unjudged {
    Unjudged { share: doubt.share, sentence: phrase::plain(&doubt.sentence, lang) }
}

pub(super) fn base(capture: &Capture) -> Option<Base> {
    let place = capture.verdict.place.as_ref()?;
    let rank = capture.ranks.iter().find(|rank| rank.rank == place.rank)?;
    let workload = steps::workload(rank.workload.as_ref()?);
    Some(Base { capture: capture.id, rank: place.rank, class: plain(&place.class), workload })
}
