//! Schemas of words that come from other crates, each with the words that it may be.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Value, json};

use crate::grade::Grade;
use diagnosis::{
    analysis::{Confidence, Layer},
    compare::{
        Side,
        contract::{Claim, Force, Verdict},
        waterfall::Cause,
    },
    diagnose::{
        Level, Method, Severity, VerdictLayer,
        limits::{Bound, PeakSource, RateUnit},
    },
    largest::{Kind, Over},
};
use model::{Area, EvidenceClass, Light, Maturity, Metric, Provenance, StepPart, manifest::Control};

fn listed<T: Serialize>(all: &[T]) -> Vec<Value> {
    all.iter().map(|word| json!(word)).collect()
}

fn one_of<T: Serialize>(all: &[T]) -> Schema {
    json_schema!({ "type": "string", "enum": listed(all) })
}

fn one_of_or_null<T: Serialize>(all: &[T]) -> Schema {
    let mut words = listed(all);
    words.push(Value::Null);
    json_schema!({ "enum": words })
}

fn several_of<T: Serialize>(all: &[T]) -> Schema {
    json_schema!({ "type": "array", "items": one_of(all) })
}

/// A number of each of these keys.
fn numbers_by(keys: Vec<&'static str>) -> Schema {
    let properties: serde_json::Map<String, Value> =
        keys.iter().map(|key| ((*key).to_owned(), json!({ "type": "integer", "format": "int64" }))).collect();
    json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// What the time of a table is.
pub fn over(_: &mut SchemaGenerator) -> Schema {
    one_of(&[Over::Steps, Over::Window, Over::Host, Over::Sums, Over::Alone])
}

/// What a table is of.
pub fn table(_: &mut SchemaGenerator) -> Schema {
    one_of(&Kind::ALL)
}

/// A layer of the stack.
pub fn layer(_: &mut SchemaGenerator) -> Schema {
    one_of(&Layer::ALL)
}

/// Nanoseconds by layer.
pub fn layers(_: &mut SchemaGenerator) -> Schema {
    numbers_by(Layer::ALL.map(Layer::key).to_vec())
}

/// Where the verdict sees the bottleneck.
pub fn verdict_layer(_: &mut SchemaGenerator) -> Schema {
    use VerdictLayer::*;
    one_of(&[Operator, Runtime, Communication, Load, Undecided, None])
}

/// How sure something is.
pub fn confidence(_: &mut SchemaGenerator) -> Schema {
    one_of(&[Confidence::Low, Confidence::Medium, Confidence::High].map(crate::units::confidence_key))
}

/// How grave a finding is.
pub fn severity(_: &mut SchemaGenerator) -> Schema {
    use Severity::*;
    one_of(&[Info, Low, Medium, High, Critical])
}

/// How grave a loss of the import is.
pub fn stat_severity(_: &mut SchemaGenerator) -> Schema {
    use model::Severity::*;
    one_of(&[Info, Notice, DataLoss, Error])
}

/// A level that a capture reaches.
pub fn level(_: &mut SchemaGenerator) -> Schema {
    one_of(&[Level::Run, Level::Optimise, Level::Verify])
}

/// The level that a capture reached, if any.
pub fn level_reached(_: &mut SchemaGenerator) -> Schema {
    one_of_or_null(&[Level::Run, Level::Optimise, Level::Verify])
}

/// How far the evidence reaches.
pub fn grade(_: &mut SchemaGenerator) -> Schema {
    one_of(&[Grade::A, Grade::B, Grade::C, Grade::Totals, Grade::D])
}

/// What an estimate was modelled by.
pub fn method(_: &mut SchemaGenerator) -> Schema {
    one_of(&[Method::Replay, Method::Bound, Method::None])
}

/// What a rate counts.
pub fn rate_unit(_: &mut SchemaGenerator) -> Schema {
    one_of(&[RateUnit::Flops, RateUnit::Bytes])
}

/// Where a peak is from.
pub fn peak_source(_: &mut SchemaGenerator) -> Schema {
    one_of_or_null(&[PeakSource::Measured, PeakSource::Published])
}

/// What binds an operator.
pub fn bound_by(_: &mut SchemaGenerator) -> Schema {
    one_of_or_null(&[Bound::Memory, Bound::Compute, Bound::Latency, Bound::Link])
}

/// Where a fact is from.
pub fn provenance(_: &mut SchemaGenerator) -> Schema {
    one_of(&[Provenance::Observed, Provenance::Declared, Provenance::Simulated])
}

/// Classes of evidence.
pub fn evidence_classes(_: &mut SchemaGenerator) -> Schema {
    several_of(&EvidenceClass::ALL)
}

/// Which classes of evidence are there.
pub fn evidence(_: &mut SchemaGenerator) -> Schema {
    let keys = EvidenceClass::ALL.map(EvidenceClass::key);
    let properties: serde_json::Map<String, Value> =
        keys.iter().map(|key| ((*key).to_owned(), json!({ "type": "boolean" }))).collect();
    json_schema!({ "type": "object", "properties": properties, "required": keys })
}

/// A light of the board or of the matrix.
pub fn light(_: &mut SchemaGenerator) -> Schema {
    one_of(&[Light::Red, Light::Amber, Light::Green, Light::Unknown])
}

/// An area of the board.
pub fn area(_: &mut SchemaGenerator) -> Schema {
    one_of(&Area::ALL)
}

/// A row of the maturity matrix.
pub fn maturity(_: &mut SchemaGenerator) -> Schema {
    one_of(&Maturity::ALL)
}

/// A part of a rank's step.
pub fn step_part(_: &mut SchemaGenerator) -> Schema {
    one_of(&StepPart::ALL.map(StepPart::name))
}

/// What was measured of a kernel.
pub fn metric(_: &mut SchemaGenerator) -> Schema {
    one_of(&Metric::ALL)
}

/// A side of a pair.
pub fn side(_: &mut SchemaGenerator) -> Schema {
    one_of(&Side::BOTH)
}

/// A side of a pair; null for both.
pub fn side_or_both(_: &mut SchemaGenerator) -> Schema {
    one_of_or_null(&Side::BOTH)
}

/// A verdict of the contract.
pub fn verdict(_: &mut SchemaGenerator) -> Schema {
    one_of(&[Verdict::Comparable, Verdict::Caveats, Verdict::NotComparable])
}

/// A verdict for each question that a pair may be asked.
pub fn claims(generator: &mut SchemaGenerator) -> Schema {
    let keys = Claim::ALL.map(Claim::key);
    let properties: serde_json::Map<String, Value> =
        keys.iter().map(|key| ((*key).to_owned(), verdict(generator).into())).collect();
    json_schema!({ "type": "object", "properties": properties, "required": keys })
}

/// Questions that a pair may be asked.
pub fn claim_list(_: &mut SchemaGenerator) -> Schema {
    several_of(&Claim::ALL.map(Claim::key))
}

/// What a reason does to its questions.
pub fn force(_: &mut SchemaGenerator) -> Schema {
    one_of(&[Force::Refuses, Force::Limits])
}

/// How strictly a field is held.
pub fn control(_: &mut SchemaGenerator) -> Schema {
    one_of(&[Control::Hard, Control::Soft])
}

/// What a part of a difference comes from.
pub fn cause(_: &mut SchemaGenerator) -> Schema {
    one_of(&Cause::ALL.map(Cause::key))
}

/// Nanoseconds by cause.
pub fn causes(_: &mut SchemaGenerator) -> Schema {
    numbers_by(Cause::ALL.map(Cause::key).to_vec())
}
