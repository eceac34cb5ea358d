//! What a diagnosis says of a capture, as rows: canonical operators of names, steps with their buckets, findings. Plain
//! values: the store knows neither analysis nor rules.

use std::sync::Arc;

use model::{Ns, SliceId, Span, StringId};

use super::batch::{Batch, Failure, Table};

/// Everything that a capture file keeps of one diagnosis; the default is that there was none.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Canonical operators of device names; a name at most once.
    pub ops: Vec<(StringId, &'static str)>,
    /// Steps, rank by rank.
    pub steps: Vec<Step>,
    /// Findings in the order of the report.
    pub findings: Vec<Finding>,
    /// Causes of waits in collectives.
    pub waits: Vec<WaitCause>,
}

/// Part of a wait in a collective, and what it was for.
#[derive(Clone, Debug)]
pub struct WaitCause {
    /// Index into the steps.
    pub step: usize,
    /// The collective on the rank that waited.
    pub slice: SliceId,
    /// That rank.
    pub rank: u32,
    /// Rank that it waited for.
    pub late: u32,
    /// What the late rank spent longer on.
    pub bucket: Arc<str>,
    /// Layer the bucket counts towards.
    pub layer: &'static str,
    /// Time, ns, signed.
    pub ns: Ns,
    /// How it was obtained: `measured` or `modelled`.
    pub provenance: &'static str,
}

/// A step of a rank.
#[derive(Clone, Debug)]
pub struct Step {
    /// Rank in the job, or position in the capture.
    pub rank: u32,
    /// Device ordinal in the rank's process.
    pub device: i32,
    /// Position in the run of the rank, from 0.
    pub number: u32,
    /// What the source calls it.
    pub label: String,
    /// Key of its class.
    pub class: Arc<str>,
    /// How the steps of the rank were found.
    pub anchor: Arc<str>,
    /// How sure that is.
    pub confidence: &'static str,
    /// Whether it counts in the report, and why not.
    pub selection: &'static str,
    /// From when to when, ns.
    pub window: Span,
    /// Where its time went; a bucket at most once.
    pub parts: Vec<Part>,
}

/// Time of one bucket in a step.
#[derive(Clone, Debug)]
pub struct Part {
    /// Name such as `compute.gemm`.
    pub bucket: Arc<str>,
    /// Layer it counts towards.
    pub layer: &'static str,
    /// Time, ns.
    pub ns: Ns,
    /// How it was obtained: `measured` or `modelled`.
    pub provenance: &'static str,
}

/// A finding.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Rule id such as `RT-14`.
    pub rule: &'static str,
    /// Layer of the cause.
    pub layer: &'static str,
    /// How much it matters.
    pub severity: &'static str,
    /// How sure it is.
    pub confidence: &'static str,
    /// Step class it speaks of; `None` for the whole capture.
    pub class: Option<String>,
    /// The claim with its numbers.
    pub claim: String,
    /// Mean step of the class, ns.
    pub from: Ns,
    /// Least and most that the step would become, ns.
    pub to: Option<(Ns, Ns)>,
    /// How that was estimated.
    pub method: &'static str,
    /// The whole finding as JSON.
    pub body: String,
}

/// Ids from which the rows of a capture count.
pub(super) struct Firsts {
    pub(super) string: i64,
    pub(super) slice: i64,
    pub(super) step: i64,
    pub(super) finding: i64,
}

/// Writes the results of one capture.
pub(super) fn write(batch: &mut Batch<'_>, capture: i64, firsts: Firsts, results: &Results) -> Result<(), Failure> {
    batch.insert(Table::new("name_op", 3), results.ops.iter(), |cells, (name, op)| {
        cells.put(firsts.string + i64::from(name.0))?.put(capture)?.put(*op)?;
        Ok(())
    })?;
    let steps: Vec<(i64, &Step)> = (firsts.step..).zip(&results.steps).collect();
    batch.insert(Table::new("step", 12), steps.iter(), |cells, (id, step)| {
        cells.put(*id)?.put(capture)?.put(i64::from(step.rank))?.put(step.device)?.put(i64::from(step.number))?;
        cells.put(&*step.label)?.put(&*step.class)?.put(&*step.anchor)?.put(step.confidence)?;
        cells.put(step.selection)?.put(step.window.start)?.put(step.window.len())?;
        Ok(())
    })?;
    let parts: Vec<(i64, u32, &Part)> =
        steps.iter().flat_map(|(id, step)| step.parts.iter().map(|part| (*id, step.rank, part))).collect();
    batch.insert(Table::new("attribution", 7), parts.into_iter(), |cells, (step, rank, part)| {
        cells.put(step)?.put(capture)?.put(i64::from(rank))?.put(&*part.bucket)?.put(part.layer)?;
        cells.put(part.ns)?.put(part.provenance)?;
        Ok(())
    })?;
    batch.insert(Table::new("wait_cause", 10), results.waits.iter(), |cells, wait| {
        let step = i64::try_from(wait.step).unwrap_or(i64::MAX);
        cells.put(None::<i64>)?.put(capture)?.put(firsts.step.saturating_add(step))?;
        cells.put(firsts.slice + i64::from(wait.slice.0))?.put(i64::from(wait.rank))?.put(i64::from(wait.late))?;
        cells.put(&*wait.bucket)?.put(wait.layer)?.put(wait.ns)?.put(wait.provenance)?;
        Ok(())
    })?;
    let findings: Vec<(i64, &Finding)> = (firsts.finding..).zip(&results.findings).collect();
    batch.insert(Table::new("finding", 13), findings.into_iter(), |cells, (id, finding)| {
        cells.put(id)?.put(capture)?.put(finding.rule)?.put(finding.layer)?.put(finding.severity)?;
        cells.put(finding.confidence)?.put(finding.class.as_deref())?.put(&*finding.claim)?.put(finding.from)?;
        cells.put(finding.to.map(|(low, _)| low))?.put(finding.to.map(|(_, high)| high))?;
        cells.put(finding.method)?.put(&*finding.body)?;
        Ok(())
    })
}
