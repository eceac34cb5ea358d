//! From an analysis and its diagnosis to the rows that a capture file keeps of them.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use model::{Category, StringId, Trace, TrackKind};
use rustc_hash::FxHashSet;

use super::ended;
use diagnosis::{
    analysis::{Analysis, Bucket, Rank, Step},
    diagnose::{Diagnosis, Finding, Method},
    i18n::Lang,
    platform::Packs,
};
use report::{self, Report, json, phrase, units};
use store::{self, Results, results};

/// Writes captures with what was found in each, as their report tells it.
///
/// # Errors
/// Those of [`store::save`].
pub(super) fn save(
    path: &Path,
    inputs: &[(Trace, Analysis, Diagnosis)],
    report: &Report,
    packs: &Packs,
    lang: Lang,
) -> anyhow::Result<()> {
    let rows = inputs.iter().zip(&report.captures).map(|((trace, analysis, _), capture)| {
        Ok(Results {
            ops: ops(trace, packs),
            steps: analysis.ranks.iter().flat_map(|rank| steps(rank, &analysis.host_labels)).collect(),
            waits: waits(analysis),
            findings: capture.findings.iter().map(|f| finding(capture, f, lang)).collect::<Result<_, _>>()?,
        })
    });
    let rows: Vec<Results> = rows.collect::<Result<_, serde_json::Error>>()?;
    let captures: Vec<_> = inputs.iter().map(|(trace, ..)| trace).zip(&rows).collect();
    Ok(ended::whole(|| store::save_results(path, &captures))?)
}

/// Canonical operators of the names of a capture's kernels; a name that no pack knows has none.
pub(super) fn ops(trace: &Trace, packs: &Packs) -> Vec<(StringId, &'static str)> {
    let queues = trace.tracks.iter().zip(&trace.lanes).filter(|(track, _)| track.key.kind == TrackKind::DeviceQueue);
    let kernels = queues.flat_map(|(_, lane)| lane.name.iter().zip(&lane.category));
    let names: FxHashSet<StringId> = kernels.filter(|(_, c)| **c == Category::Kernel).map(|(name, _)| *name).collect();
    let known = |name: StringId| Some(packs.op(trace.strings.get(name))).filter(|op| op.mapped);
    names.into_iter().filter_map(|name| Some((name, known(name)?.op.name()))).collect()
}

fn steps(rank: &Rank, labels: &[String]) -> Vec<results::Step> {
    let anchor: Arc<str> = rank.anchor.key().into();
    let classes: Vec<Arc<str>> = rank.classes.iter().map(|class| class.key.as_str().into()).collect();
    let mut names: BTreeMap<Bucket, Arc<str>> = BTreeMap::new();
    let mut part = |(bucket, ns): &(Bucket, i64)| results::Part {
        bucket: names.entry(*bucket).or_insert_with(|| bucket.name(labels).into()).clone(),
        layer: bucket.layer().key(),
        ns: *ns,
        provenance: provenance(rank, *bucket),
    };
    let step = |step: &Step| results::Step {
        rank: rank.rank,
        device: rank.device,
        number: step.index,
        label: step.label.clone(),
        class: classes.get(step.class).cloned().unwrap_or_default(),
        anchor: anchor.clone(),
        confidence: units::confidence_key(rank.anchor.confidence),
        selection: step.selection.key(),
        window: step.window,
        parts: step.buckets.iter().map(&mut part).collect(),
    };
    rank.steps.iter().map(step).collect()
}

/// Only the border between transfer and wait of a collective is ever modelled: where one rank alone had to tell. All of a collective
/// counts as transfer there, unless there are enough of its kind.
fn provenance(rank: &Rank, bucket: Bucket) -> &'static str {
    let modelled = rank.collectives.is_modelled() && matches!(bucket, Bucket::CommTransfer | Bucket::CommWait);
    if modelled { "modelled" } else { "measured" }
}

/// Causes of the waits, each with its step as an index into the steps of all ranks.
fn waits(analysis: &Analysis) -> Vec<results::WaitCause> {
    let mut names: BTreeMap<Bucket, Arc<str>> = BTreeMap::new();
    let (mut out, mut first) = (Vec::new(), 0);
    for (index, rank) in analysis.ranks.iter().enumerate() {
        for (number, step) in rank.steps.iter().enumerate() {
            for wait in analysis.job.waits_in(index, &step.ops) {
                let Some(op) = rank.timeline.ops.get(wait.op as usize) else { continue };
                for cause in &wait.causes {
                    let Some(late) = analysis.ranks.get(cause.late) else { continue };
                    let name = || cause.bucket.name(&analysis.host_labels).into();
                    out.push(results::WaitCause {
                        step: first + number,
                        slice: op.slice,
                        rank: rank.rank,
                        late: late.rank,
                        bucket: names.entry(cause.bucket).or_insert_with(name).clone(),
                        layer: cause.bucket.layer().key(),
                        ns: cause.ns,
                        provenance: if wait.is_skewed() { "modelled" } else { "measured" },
                    });
                }
            }
        }
        first += rank.steps.len();
    }
    out
}

fn finding(
    capture: &report::model::Capture,
    finding: &Finding,
    lang: Lang,
) -> Result<results::Finding, serde_json::Error> {
    let estimate = &finding.estimate;
    Ok(results::Finding {
        rule: finding.rule,
        layer: finding.layer.key(),
        severity: finding.severity.key(),
        confidence: units::confidence_key(finding.confidence),
        class: Some(finding.class.clone()).filter(|class| !class.is_empty()),
        claim: phrase::plain(&finding.claim, lang),
        from: estimate.from,
        to: (estimate.method != Method::None).then_some((estimate.to_low, estimate.to_high)),
        method: estimate.method.key(),
        body: json::render_finding(capture, finding, lang)?,
    })
}
