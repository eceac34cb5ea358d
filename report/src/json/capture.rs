//! A capture as JSON.

use std::collections::BTreeMap;

use model::{EvidenceClass, Metric, Provenance};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Judgement, job, job_sums, lost, plain, readiness, replay, roofline, steps, verdict, words};
use crate::{
    grade::Grade,
    link_test,
    model::{Capture, DeviceGroup},
    serving, summaries,
};
use diagnosis::{diagnose::kernel_sums, i18n::Lang};

/// What is said of one capture.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Capture")]
pub(super) struct CaptureReport {
    critical_path: Vec<replay::Chain>,
    /// Which classes of evidence it holds.
    #[schemars(schema_with = "words::evidence")]
    evidence: BTreeMap<&'static str, bool>,
    /// What the run says of itself, by key.
    facts: BTreeMap<String, Fact>,
    /// Format it was read as.
    format: String,
    #[schemars(schema_with = "words::grade")]
    grade: Grade,
    #[serde(skip_serializing_if = "Option::is_none")]
    roofline: Option<roofline::Roofline>,
    /// Position in the report, from 1.
    id: usize,
    integrity: Integrity,
    /// What its ranks did together.
    job: Option<job::Job>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_sums: Option<job_sums::JobSums>,
    /// What of the run the capture lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<lost::Lost>,
    /// Kernels that were measured one by one, each alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_alone: Option<Vec<Summary>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_kernels: Option<MeasuredKernels>,
    /// Share of device time whose name is that of a known operator.
    op_coverage: Option<f64>,
    platform: Platform,
    /// The rank, where there is one.
    rank: Option<u32>,
    ranks: Vec<steps::Rank>,
    readiness: readiness::Ready,
    replay: replay::Replayed,
    /// What a client measured of a server under load.
    #[serde(skip_serializing_if = "Option::is_none")]
    serving: Option<serving::json::Single>,
    /// What a link test measured.
    link_test: Option<link_test::json::Single>,
    simulated: bool,
    /// File name of the source, without its folders.
    source: String,
    /// Wall clock of the capture's zero.
    start_unix_ns: Option<i64>,
    /// Sums of kernels over the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    sums: Option<Vec<Summary>>,
    /// The same by operator, the largest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    sums_by_operator: Option<Vec<OperatorSum>>,
    /// Names of no known operator, longest first.
    unmapped: Vec<Unmapped>,
    unmapped_more: Further,
    verdict: Judgement,
    /// Length of the time that was recorded.
    window_ns: Option<i64>,
    /// Ranks of the job, if the source says it.
    world_size: Option<u32>,
}

/// What the run says of itself.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CaptureFact")]
struct Fact {
    #[schemars(schema_with = "words::provenance")]
    provenance: Provenance,
    value: String,
}

/// What is wrong with the trace itself: numbers of device operations and of gaps between them.
#[derive(Serialize, JsonSchema)]
struct Integrity {
    /// Operations that start before their launch call.
    before_launch: u64,
    /// Operations before the first whose launch was recorded.
    before_recording: u64,
    /// How far the device's clock lags behind the host's.
    clock_lag_ns: i64,
    device_ops: u64,
    gaps: u64,
    /// Operations of the steps that count.
    judged_ops: u64,
    /// Those of them without a launch call.
    judged_unlinked: u64,
    /// Operations that overlap another one of their queue.
    overlapping: u64,
    /// Operations without a launch call.
    unlinked: u64,
    /// Gaps of at most 2 ns.
    zero_gaps: u64,
}

/// The devices of a capture.
#[derive(Serialize, JsonSchema)]
struct Platform {
    /// What is published of the chip.
    chip: Option<Chip>,
    /// Devices.
    count: usize,
    device: Option<String>,
    vendor: Option<String>,
}

/// What the maker of a chip publishes; none of it was measured.
#[derive(Serialize, JsonSchema)]
struct Chip {
    cores: Option<u32>,
    /// When it was last checked, `YYYY-MM`.
    date: String,
    memory_gb: Option<u32>,
    memory_gb_per_s: Option<u32>,
    name: String,
    source: String,
}

/// Sums or measurements of a kernel, which lie on no time axis.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "KernelSummary")]
struct Summary {
    count: u64,
    kernel: String,
    metrics: Vec<Measured>,
    ns: Option<i64>,
}

/// Sums of the kernels of one operator.
#[derive(Serialize, JsonSchema)]
struct OperatorSum {
    count: u64,
    /// Its kernel with the largest sum.
    kernel: String,
    ns: i64,
    operator: &'static str,
}

/// What was measured of a kernel.
#[derive(Serialize, JsonSchema)]
struct Measured {
    #[schemars(schema_with = "words::metric")]
    metric: Metric,
    unit: &'static str,
    value: f64,
}

/// How much of the capture's own kernels the measurements speak of.
#[derive(Serialize, JsonSchema)]
struct MeasuredKernels {
    executions: u64,
    matched: u64,
    measurements: u64,
    share_of_kernel_time: Option<f64>,
    time_ns: i64,
}

/// A name of no known operator.
#[derive(Serialize, JsonSchema)]
struct Unmapped {
    name: String,
    ns: i64,
}

/// Names that are not listed.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "UnmappedMore")]
struct Further {
    names: usize,
    ns: i64,
}

pub(super) fn capture(capture: &Capture, lang: Lang) -> CaptureReport {
    let facts = capture
        .facts
        .iter()
        .map(|(key, value, provenance)| (plain(key), Fact { provenance: *provenance, value: plain(value) }));
    let summaries = Some(&capture.summaries).filter(|summaries| !summaries.is_empty());
    let listed = |rows: &[summaries::Summary]| rows.iter().map(summary).collect();
    let unmapped = capture.mapping.unmapped.iter().map(|(name, ns)| Unmapped { name: plain(name), ns: *ns });
    CaptureReport {
        critical_path: capture.counterfactual.paths.iter().map(replay::critical_path).collect(),
        evidence: EvidenceClass::ALL.into_iter().map(|class| (class.key(), capture.evidence.has(class))).collect(),
        facts: facts.collect(),
        format: plain(&capture.format),
        grade: capture.grade,
        roofline: capture.held.as_ref().map(|held| roofline::roofline(held, lang)),
        id: capture.id,
        integrity: integrity(capture),
        job: capture.job.as_ref().map(job::job),
        job_sums: (!capture.job_sums.is_empty()).then(|| job_sums::totals(&capture.job_sums)),
        lost: lost::lost(&capture.loss, lang),
        measured_alone: summaries.map(|summaries| listed(&summaries.isolated)),
        measured_kernels: summaries.map(|summaries| {
            let joined = summaries.joined;
            MeasuredKernels {
                executions: joined.executions,
                matched: joined.matched,
                measurements: joined.measurements,
                share_of_kernel_time: (joined.of > 0).then(|| joined.time as f64 / joined.of as f64),
                time_ns: joined.time,
            }
        }),
        op_coverage: capture.mapping.coverage,
        platform: platform(capture),
        rank: match capture.ranks.as_slice() {
            [one] => Some(one.rank),
            _ => None,
        },
        ranks: capture.ranks.iter().map(steps::rank).collect(),
        readiness: readiness::readiness(&capture.readiness, lang),
        replay: replay::checks(&capture.counterfactual),
        link_test: (!capture.link_test.is_empty()).then(|| link_test::json::single(&capture.link_test)),
        serving: (!capture.serving.loads.is_empty()).then(|| serving::json::single(&capture.serving)),
        simulated: capture.simulated,
        source: plain(&capture.source),
        start_unix_ns: capture.start_unix_ns,
        sums: summaries.map(|summaries| listed(&summaries.run)),
        sums_by_operator: summaries.map(|summaries| summaries.operators.iter().map(operator).collect()),
        unmapped: unmapped.collect(),
        unmapped_more: Further { names: capture.mapping.more.0, ns: capture.mapping.more.1 },
        verdict: verdict(capture, lang),
        window_ns: capture.window,
        world_size: capture.world_size,
    }
}

fn integrity(capture: &Capture) -> Integrity {
    let integrity = &capture.integrity;
    Integrity {
        before_launch: integrity.before_launch,
        before_recording: integrity.before_recording,
        clock_lag_ns: integrity.lag,
        device_ops: integrity.device_ops,
        gaps: integrity.gaps,
        judged_ops: integrity.judged,
        judged_unlinked: integrity.judged_unlinked,
        overlapping: integrity.overlapping,
        unlinked: integrity.unlinked,
        zero_gaps: integrity.zero_gaps,
    }
}

fn platform(capture: &Capture) -> Platform {
    let device = capture.devices.first();
    let name = |pick: fn(&DeviceGroup) -> &Option<String>| device.and_then(|d| pick(d).as_deref()).map(plain);
    Platform {
        chip: device.and_then(|d| d.chip.as_ref()).map(|chip| Chip {
            cores: chip.cores,
            date: plain(&chip.date),
            memory_gb: chip.memory_gb,
            memory_gb_per_s: chip.memory_gb_per_s,
            name: plain(&chip.name),
            source: plain(&chip.source),
        }),
        count: capture.devices.iter().map(|d| d.count).sum(),
        device: name(|d| &d.name),
        vendor: name(|d| &d.vendor),
    }
}

fn summary(summary: &summaries::Summary) -> Summary {
    let metrics = summary.metrics.iter();
    let metrics = metrics.map(|(metric, value)| Measured { metric: *metric, unit: metric.unit(), value: *value });
    Summary { count: summary.count, kernel: plain(&summary.kernel), metrics: metrics.collect(), ns: summary.total }
}

fn operator(sum: &kernel_sums::OperatorSum) -> OperatorSum {
    OperatorSum { count: sum.count, kernel: plain(&sum.kernel), ns: sum.total, operator: sum.op.name() }
}
