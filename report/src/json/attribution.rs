//! Where the time of step classes went, as JSON.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{job, plain, shape, words};
use crate::{
    model::{BucketRow, Capture, ClassPart},
    work,
};
use diagnosis::analysis::{Layer, steps::Shadow};

/// Where the time of a step class went: layers and buckets add up to `window_ns`.
#[derive(Serialize, JsonSchema)]
pub(super) struct Attribution {
    capture: usize,
    class: String,
    rank: u32,
    simulated: bool,
    /// Of the rank only its collectives were kept: the 0 of what it computed and of what its host did is not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    only_collectives: bool,
    /// Steps that count.
    steps: usize,
    window_ns: i64,
    #[schemars(schema_with = "words::layers")]
    layers: BTreeMap<&'static str, i64>,
    buckets: Vec<Bucket>,
    /// Time hidden behind other work, which is in the buckets already.
    hidden: Vec<Hidden>,
    /// The same time with waits moved to their causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    reassigned: Option<job::Reassigned>,
    idle: Option<shape::Idle>,
    attended: Option<shape::Attended>,
    /// Copies, operators and kernels are those of the main class.
    copies: Vec<shape::Copies>,
    /// Blocking copies whose calls alone were recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    untraced_copies: Vec<shape::UntracedCopies>,
    operators: Vec<Work>,
    kernels: Vec<Work>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    replayed: Vec<shape::ReplayedKernels>,
}

/// Time of one bucket.
#[derive(Serialize, JsonSchema)]
struct Bucket {
    bucket: String,
    #[schemars(schema_with = "words::layer")]
    layer: Layer,
    ns: i64,
    /// Of the window.
    share: f64,
}

/// Time that was hidden.
#[derive(Serialize, JsonSchema)]
struct Hidden {
    #[schemars(schema_with = "shadows")]
    kind: &'static str,
    ns: i64,
}

/// Device time of an operator or kernel; the last row stands for all names that are not listed and has none.
#[derive(Serialize, JsonSchema)]
struct Work {
    count: u64,
    exclusive_ns: i64,
    /// Time that the device waited before it.
    idle_before_ns: i64,
    name: Option<String>,
    op: Option<&'static str>,
}

fn shadows(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    use Shadow::{ComputeCompute, ComputeCopy, ComputeTransfer, ComputeWait, TransferCopy};
    let kinds = [ComputeTransfer, ComputeCopy, ComputeWait, TransferCopy, ComputeCompute].map(shadow);
    schemars::json_schema!({ "type": "string", "enum": kinds })
}

fn shadow(kind: Shadow) -> &'static str {
    match kind {
        Shadow::ComputeTransfer => "compute_transfer",
        Shadow::ComputeCopy => "compute_copy",
        Shadow::ComputeWait => "compute_wait",
        Shadow::TransferCopy => "transfer_copy",
        Shadow::ComputeCompute => "compute_compute",
    }
}

/// The classes of a capture that have steps that count.
pub(super) fn attribution(capture: &Capture) -> impl Iterator<Item = Attribution> {
    capture.ranks.iter().flat_map(move |rank| {
        rank.classes.iter().enumerate().filter(|(_, class)| class.used > 0).map(move |(i, class)| {
            let main = rank.main == Some(i);
            let works = |works: &[work::Work]| works.iter().filter(|_| main).map(of_work).collect();
            Attribution {
                capture: capture.id,
                class: plain(&class.key),
                rank: rank.rank,
                simulated: capture.simulated,
                only_collectives: rank.only_collectives,
                steps: class.used,
                window_ns: class.total,
                layers: Layer::ALL.into_iter().map(Layer::key).zip(class.layers()).collect(),
                buckets: class.buckets.iter().map(|row| bucket(row, class)).collect(),
                hidden: class.shadow.iter().map(|(kind, ns)| Hidden { kind: shadow(*kind), ns: *ns }).collect(),
                reassigned: class.reassigned.as_ref().map(job::reassigned),
                idle: class.idle.as_ref().map(shape::idle),
                attended: class.attended.map(shape::attended),
                copies: rank.copies.iter().filter(|_| main).map(shape::copies).collect(),
                untraced_copies: rank.untraced.iter().filter(|_| main).map(shape::untraced_copies).collect(),
                operators: works(&rank.operators),
                kernels: works(&rank.kernels),
                replayed: rank.replayed.iter().filter(|_| main).map(shape::replayed).collect(),
            }
        })
    })
}

fn bucket(row: &BucketRow, class: &ClassPart) -> Bucket {
    let share = if class.total == 0 { 0.0 } else { row.ns as f64 / class.total as f64 };
    Bucket { bucket: plain(&row.name), layer: row.layer, ns: row.ns, share }
}

fn of_work(work: &work::Work) -> Work {
    Work {
        count: work.count,
        exclusive_ns: work.busy,
        idle_before_ns: work.idle,
        name: (!work.name.is_empty()).then(|| plain(&work.name)),
        op: (!work.op.is_empty()).then_some(work.op),
    }
}
