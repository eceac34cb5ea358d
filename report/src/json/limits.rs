//! Rates of operators and the floor of the step, as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::{plain, words};
use crate::{model::Capture, phrase};
use diagnosis::{
    diagnose::limits::{self, Basis},
    i18n::Lang,
};

/// How fast one operator ran with one kernel and one shape, beside what the device can do.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Rate")]
pub(super) struct RateRow {
    capture: usize,
    rank: u32,
    /// Step class.
    class: String,
    /// Canonical operator.
    operator: &'static str,
    /// What of the layer it computes, where a model says it.
    slot: Option<&'static str>,
    kernel: String,
    /// Sizes; of a product its rows, outputs and inputs.
    shape: String,
    /// Number format of the arithmetic.
    dtype: Option<&'static str>,
    /// Executions over the steps that count.
    count: u64,
    /// Mean time of one execution.
    ns: f64,
    ns_per_step: i64,
    /// Operations of one execution; a multiply-add is two.
    flops: f64,
    /// Bytes of one execution, where nothing is read twice.
    bytes: f64,
    /// Rate towards what binds it, per second.
    achieved: f64,
    /// What `achieved` and `peak` count.
    #[schemars(schema_with = "words::rate_unit")]
    unit: &'static str,
    /// The most that the device can do.
    peak: Option<f64>,
    /// A published peak is an upper bound of what is possible.
    #[schemars(schema_with = "words::peak_source")]
    peak_source: Option<&'static str>,
    /// Share of the peak; above one where operands lie in a cache.
    share: Option<f64>,
    #[schemars(schema_with = "words::bound_by")]
    bound_by: Option<&'static str>,
    /// What keeps it below its limit, as far as shape and launch tell.
    why: Vec<String>,
}

/// The least that a step takes on the device: reading what it must read, or computing what it must compute.
#[derive(Serialize, JsonSchema)]
pub(super) struct Floor {
    capture: usize,
    rank: u32,
    /// Step class.
    class: String,
    /// Mean of its steps.
    step_ns: i64,
    /// The least that one takes; null where nothing says it.
    floor_ns: Option<i64>,
    /// How many times its floor a step takes.
    ratio: Option<f64>,
    /// Bytes of weights that this rank must read; where shapes say it of another stage than decode, all that its matrix products
    /// read and write.
    weight_bytes: f64,
    /// Bytes of cache that this rank must read; null where the lengths of the sequences are not known.
    cache_bytes: Option<f64>,
    flops: f64,
    #[schemars(schema_with = "words::bound_by")]
    bound_by: Option<&'static str>,
    /// The peak that it is held against, per second.
    peak: Option<f64>,
    #[schemars(schema_with = "words::rate_unit")]
    unit: &'static str,
    #[schemars(schema_with = "words::peak_source")]
    peak_source: Option<&'static str>,
    /// Model whose shape says what must be read.
    model: Option<String>,
    /// Share of the time of matrix products whose recorded shapes say it.
    shapes_cover: Option<f64>,
    /// What would give the floor, where nothing says it.
    needs: Option<&'static str>,
}

/// The rates of a capture.
pub(super) fn rates(capture: &Capture, lang: Lang) -> impl Iterator<Item = RateRow> + '_ {
    let (rank, class) = capture.limits.class.clone().unwrap_or_default();
    capture.limits.rates.iter().map(move |rate| RateRow {
        capture: capture.id,
        rank,
        class: plain(&class),
        operator: rate.operator,
        slot: rate.slot,
        kernel: plain(&rate.kernel),
        shape: plain(&rate.shape),
        dtype: rate.dtype,
        count: rate.count,
        ns: rate.ns,
        ns_per_step: rate.per_step,
        flops: rate.flops,
        bytes: rate.bytes,
        achieved: rate.achieved,
        unit: rate.unit.name(),
        peak: rate.peak,
        peak_source: rate.peak_source.map(limits::PeakSource::key),
        share: rate.share(),
        bound_by: rate.bound_by.map(limits::Bound::key),
        why: rate.why.iter().map(|why| phrase::plain(why, lang)).collect(),
    })
}

/// The floor of a capture.
pub(super) fn floor(capture: &Capture, lang: Lang) -> Option<Floor> {
    let floor = capture.limits.floor.as_ref()?;
    let (mut model, mut shapes_cover, mut needs) = (None, None, None);
    match &floor.basis {
        Basis::Model(name) => model = Some(plain(name)),
        Basis::Shapes(share) => shapes_cover = Some(*share),
        Basis::Nothing(why) => needs = Some(why.get(lang)),
    }
    Some(Floor {
        capture: capture.id,
        rank: floor.rank,
        class: plain(&floor.class),
        step_ns: floor.step,
        floor_ns: floor.ns,
        ratio: floor.ratio(),
        weight_bytes: floor.weights,
        cache_bytes: floor.cache,
        flops: floor.flops,
        bound_by: floor.bound_by.map(limits::Bound::key),
        peak: floor.peak,
        unit: floor.unit.name(),
        peak_source: floor.peak_source.map(limits::PeakSource::key),
        model,
        shapes_cover,
        needs,
    })
}
