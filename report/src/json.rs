//! The report for scripts: `strato.diagnosis/1`. Keys are a contract; new ones may be added, none goes away.
//!
//! `steps` and `verdict` at the top are those of the leading capture (the one with the gravest finding, else the first);
//! every capture has its own under `captures`, and whatever belongs to one capture carries its `capture` id.

mod finding;
mod held;
mod job;
mod job_sums;
mod level;
pub(super) mod readiness;
mod replay;
mod shape;

use serde::Serialize;

use super::{
    grade::Grade,
    ledger_note,
    model::{Capture, ClassPart, RankPart, Report},
    phrase,
    summaries::Summary,
    text, units,
    work::Work,
};
use diagnosis::{
    analysis::Layer,
    diagnose::{Finding, Level, VerdictLayer},
    i18n::Lang,
};

/// Name of the schema.
pub const SCHEMA: &str = "strato.diagnosis/1";

/// Most characters of a text from the capture.
const TEXT: usize = 1000;

/// Writes the report as one JSON object.
///
/// # Errors
/// Only if serialisation fails, which would be a defect.
pub fn render(report: &Report, lang: Lang) -> Result<String, serde_json::Error> {
    let leading = report.leading();
    let all = |part: fn(&Capture, Lang) -> Vec<serde_json::Value>| -> Vec<serde_json::Value> {
        report.captures.iter().flat_map(|c| part(c, lang)).collect()
    };
    let document = Document {
        schema: SCHEMA,
        simulated: report.simulated(),
        captures: report.captures.iter().map(|c| capture(c, lang)).collect(),
        steps: leading.and_then(Capture::leading_rank).map(steps),
        attribution: report.captures.iter().flat_map(attribution).collect(),
        verdict: leading.map(|c| verdict(c, lang)),
        findings: report
            .captures
            .iter()
            .flat_map(|c| c.findings.iter().map(move |f| finding::finding(c, f, lang)))
            .collect(),
        abstained: all(abstained),
        import: all(import),
        ledger: all(ledger),
    };
    let mut out = serde_json::to_string_pretty(&document)?;
    out.push('\n');
    Ok(out)
}

/// One finding of a capture as it stands in the report, on one line.
///
/// # Errors
/// Only if serialisation fails, which would be a defect.
pub fn render_finding(capture: &Capture, found: &Finding, lang: Lang) -> Result<String, serde_json::Error> {
    serde_json::to_string(&finding::finding(capture, found, lang))
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    simulated: bool,
    captures: Vec<serde_json::Value>,
    steps: Option<Steps>,
    attribution: Vec<Attribution>,
    verdict: Option<Judgement>,
    findings: Vec<finding::Found>,
    abstained: Vec<serde_json::Value>,
    import: Vec<serde_json::Value>,
    ledger: Vec<serde_json::Value>,
}

#[derive(Serialize)]
struct Steps {
    anchor: String,
    confidence: &'static str,
    marks_without_work: u32,
    outside_ns: Outside,
    awaited: Option<serde_json::Value>,
    count: usize,
    classes: Vec<serde_json::Value>,
}

/// Device work in no step, ns.
#[derive(Serialize)]
struct Outside {
    before: i64,
    after: i64,
}

#[derive(Serialize)]
struct Attribution {
    capture: usize,
    class: String,
    rank: u32,
    simulated: bool,
    steps: usize,
    window_ns: i64,
    layers: std::collections::BTreeMap<&'static str, i64>,
    buckets: Vec<Bucket>,
    hidden: Vec<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reassigned: Option<serde_json::Value>,
    idle: Option<serde_json::Value>,
    attended: Option<serde_json::Value>,
    copies: Vec<serde_json::Value>,
    operators: Vec<serde_json::Value>,
    kernels: Vec<serde_json::Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    replayed: Vec<serde_json::Value>,
}

#[derive(Serialize)]
struct Bucket {
    bucket: String,
    layer: Layer,
    ns: i64,
    share: f64,
}

#[derive(Serialize)]
struct Judgement {
    layer: VerdictLayer,
    headline: String,
    confidence: &'static str,
    because: Vec<&'static str>,
    level: Option<Level>,
    missing: Vec<String>,
    levels: Vec<serde_json::Value>,
    grade: Grade,
}

fn plain(text: &str) -> String {
    text::plain(text, TEXT)
}

fn chip(chip: &super::model::Chip) -> serde_json::Value {
    serde_json::json!({
        "name": plain(&chip.name),
        "cores": chip.cores,
        "memory_gb": chip.memory_gb,
        "memory_gb_per_s": chip.memory_gb_per_s,
        "source": plain(&chip.source),
        "date": plain(&chip.date),
    })
}

fn capture(capture: &Capture, lang: Lang) -> serde_json::Value {
    let device = capture.devices.first();
    let name =
        |pick: fn(&super::model::DeviceGroup) -> &Option<String>| device.and_then(|d| pick(d).as_deref()).map(plain);
    let evidence: serde_json::Map<String, serde_json::Value> = model::EvidenceClass::ALL
        .into_iter()
        .map(|class| (class.key().to_owned(), capture.evidence.has(class).into()))
        .collect();
    let facts: serde_json::Map<String, serde_json::Value> = capture
        .facts
        .iter()
        .map(|(key, value, provenance)| {
            (plain(key), serde_json::json!({ "value": plain(value), "provenance": provenance }))
        })
        .collect();
    let integrity = &capture.integrity;
    let rank = match capture.ranks.as_slice() {
        [one] => Some(one.rank),
        _ => None,
    };
    let mut json = serde_json::json!({
        "id": capture.id,
        "source": plain(&capture.source),
        "format": plain(&capture.format),
        "simulated": capture.simulated,
        "platform": {
            "vendor": name(|d| &d.vendor),
            "device": name(|d| &d.name),
            "count": capture.devices.iter().map(|d| d.count).sum::<usize>(),
            "chip": device.and_then(|d| d.chip.as_ref()).map(chip),
        },
        "rank": rank,
        "ranks": capture.ranks.iter().map(ranks).collect::<Vec<_>>(),
        "world_size": capture.world_size,
        "job": capture.job.as_ref().map(job::job),
        "window_ns": capture.window,
        "start_unix_ns": capture.start_unix_ns,
        "evidence": evidence,
        "grade": capture.grade,
        "facts": facts,
        "verdict": verdict(capture, lang),
        "readiness": readiness::readiness(&capture.readiness, lang),
        "op_coverage": capture.mapping.coverage,
        "replay": replay::checks(&capture.counterfactual),
        "critical_path": capture.counterfactual.paths.iter().map(replay::critical_path).collect::<Vec<_>>(),
        "unmapped": capture.mapping.unmapped.iter()
            .map(|(name, ns)| serde_json::json!({ "name": plain(name), "ns": ns })).collect::<Vec<_>>(),
        "unmapped_more": { "names": capture.mapping.more.0, "ns": capture.mapping.more.1 },
        "integrity": {
            "device_ops": integrity.device_ops,
            "before_launch": integrity.before_launch,
            "clock_lag_ns": integrity.lag,
            "unlinked": integrity.unlinked,
            "before_recording": integrity.before_recording,
            "judged_ops": integrity.judged,
            "judged_unlinked": integrity.judged_unlinked,
            "gaps": integrity.gaps,
            "zero_gaps": integrity.zero_gaps,
            "overlapping": integrity.overlapping,
        },
    });
    if let Some(entries) = json.as_object_mut().filter(|_| !capture.job_sums.is_empty()) {
        entries.insert("job_sums".to_owned(), job_sums::totals(&capture.job_sums));
    }
    if let Some((entries, held)) = json.as_object_mut().zip(capture.held.as_ref()) {
        entries.insert("held_against_ceilings".to_owned(), held::held(held, lang));
    }
    if let Some(entries) = json.as_object_mut().filter(|_| !capture.summaries.is_empty()) {
        entries.insert("sums".to_owned(), capture.summaries.run.iter().map(summary).collect());
        entries.insert("measured_alone".to_owned(), capture.summaries.isolated.iter().map(summary).collect());
        let joined = capture.summaries.joined;
        let share = (joined.of > 0).then(|| joined.time as f64 / joined.of as f64);
        let rate = serde_json::json!({
            "measurements": joined.measurements,
            "matched": joined.matched,
            "executions": joined.executions,
            "time_ns": joined.time,
            "share_of_kernel_time": share,
        });
        entries.insert("measured_kernels".to_owned(), rate);
    }
    json
}

/// Sums or measurements of a kernel, which lie on no time axis.
fn summary(summary: &Summary) -> serde_json::Value {
    let metrics = summary
        .metrics
        .iter()
        .map(|(metric, value)| serde_json::json!({ "metric": metric, "value": value, "unit": metric.unit() }));
    serde_json::json!({
        "kernel": plain(&summary.kernel),
        "count": summary.count,
        "ns": summary.total,
        "metrics": metrics.collect::<Vec<_>>(),
    })
}

fn ranks(rank: &RankPart) -> serde_json::Value {
    serde_json::json!({ "rank": rank.rank, "device": rank.device, "steps": steps(rank) })
}

fn steps(rank: &RankPart) -> Steps {
    let class = |c: &ClassPart| {
        serde_json::json!({
            "key": plain(&c.key), "count": c.count, "used": c.used,
            "median_ns": c.median, "host_median_ns": c.host, "p95_ns": c.p95, "p99_ns": c.p99,
        })
    };
    Steps {
        anchor: plain(&rank.anchor.key()),
        confidence: units::confidence_key(rank.anchor.confidence),
        marks_without_work: rank.anchor.without_work,
        outside_ns: Outside { before: rank.outside[0], after: rank.outside[1] },
        awaited: rank.awaited.as_ref().map(|(call, ns)| serde_json::json!({ "call": plain(call), "ns": ns })),
        count: rank.steps,
        classes: rank.classes.iter().map(class).collect(),
    }
}

fn attribution(capture: &Capture) -> impl Iterator<Item = Attribution> {
    capture.ranks.iter().flat_map(move |rank| {
        rank.classes.iter().enumerate().filter(|(_, class)| class.used > 0).map(move |(i, class)| {
            let main = rank.main == Some(i);
            let works = |works: &[Work]| works.iter().filter(|_| main).map(work).collect();
            Attribution {
                capture: capture.id,
                class: plain(&class.key),
                rank: rank.rank,
                simulated: capture.simulated,
                steps: class.used,
                window_ns: class.total,
                layers: Layer::ALL.into_iter().map(Layer::key).zip(class.layers()).collect(),
                buckets: class.buckets.iter().map(|row| bucket(row, class)).collect(),
                hidden: class
                    .shadow
                    .iter()
                    .map(|(kind, ns)| serde_json::json!({ "kind": shadow(*kind), "ns": ns }))
                    .collect(),
                reassigned: class.reassigned.as_ref().map(job::reassigned),
                idle: class.idle.as_ref().map(shape::idle),
                attended: class.attended.map(shape::attended),
                copies: rank.copies.iter().filter(|_| main).map(shape::copies).collect(),
                operators: works(&rank.operators),
                kernels: works(&rank.kernels),
                replayed: rank.replayed.iter().filter(|_| main).map(shape::replayed).collect(),
            }
        })
    })
}

fn bucket(row: &super::model::BucketRow, class: &ClassPart) -> Bucket {
    let share = if class.total == 0 { 0.0 } else { row.ns as f64 / class.total as f64 };
    Bucket { bucket: plain(&row.name), layer: row.layer, ns: row.ns, share }
}

fn shadow(kind: diagnosis::analysis::steps::Shadow) -> &'static str {
    use diagnosis::analysis::steps::Shadow;
    match kind {
        Shadow::ComputeTransfer => "compute_transfer",
        Shadow::ComputeCopy => "compute_copy",
        Shadow::ComputeWait => "compute_wait",
        Shadow::TransferCopy => "transfer_copy",
        Shadow::ComputeCompute => "compute_compute",
    }
}

/// A row of names; the last row stands for all names that are not listed and has none.
fn work(work: &Work) -> serde_json::Value {
    let name = (!work.name.is_empty()).then(|| plain(&work.name));
    let op = (!work.op.is_empty()).then_some(work.op);
    serde_json::json!({ "name": name, "op": op, "count": work.count, "exclusive_ns": work.busy, "idle_before_ns": work.idle })
}

fn verdict(capture: &Capture, lang: Lang) -> Judgement {
    let verdict = &capture.verdict;
    Judgement {
        layer: verdict.layer,
        headline: phrase::plain(&verdict.headline, lang),
        confidence: units::confidence_key(verdict.confidence),
        because: verdict.because.clone(),
        level: verdict.level,
        missing: verdict.missing.iter().map(|m| phrase::plain(m, lang)).collect(),
        levels: verdict.levels.iter().map(|a| level::assessment(a, lang)).collect(),
        grade: capture.grade,
    }
}

fn abstained(capture: &Capture, lang: Lang) -> Vec<serde_json::Value> {
    let row = |a: &diagnosis::diagnose::Abstention| {
        serde_json::json!({
            "capture": capture.id,
            "rule": a.rule,
            "needs": a.needs,
            "why": a.why.as_ref().map(|why| phrase::plain(why, lang)),
        })
    };
    capture.abstained.iter().map(row).collect()
}

fn import(capture: &Capture, _: Lang) -> Vec<serde_json::Value> {
    let row = |s: &model::ImportStat| {
        serde_json::json!({
            "capture": capture.id,
            "stat": plain(&s.name),
            "severity": s.severity,
            "count": s.count,
            "example": s.example.as_deref().map(plain),
        })
    };
    capture.stats.iter().map(row).collect()
}

fn ledger(capture: &Capture, lang: Lang) -> Vec<serde_json::Value> {
    let row = |l: &model::LedgerRow| {
        serde_json::json!({
            "capture": capture.id,
            "category": plain(&l.category),
            "read": l.read,
            "kept": l.kept,
            "time_ns": l.time_ns,
            "note": plain(ledger_note::in_language(&l.note, lang)),
        })
    };
    capture.ledger.iter().map(row).collect()
}
