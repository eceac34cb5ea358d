//! From captures and what was found in them to the values of a report.

use model::{Ns, Trace};

use super::{
    grade::Grade,
    idle,
    job::{JobPart, Moved},
    link_test::LinkTest,
    model::{BucketRow, Capture, Chip, ClassPart, DeviceGroup, Mapping, P95_STEPS, P99_STEPS, RankPart, Slow},
    owners, replayed,
    serving::Loads,
    summaries::Summaries,
    work, workload,
};
use diagnosis::{
    analysis::{Analysis, Class, Jitter, Rank, Selection, contradiction::Against, job_sums::JobTotals, sequences},
    diagnose::{
        Diagnosis,
        state::{self, State},
    },
};

/// Unmapped names listed; the rest is counted.
const UNMAPPED: usize = 10;

impl Capture {
    pub(super) fn build(id: usize, trace: &Trace, analysis: &Analysis, diagnosis: &Diagnosis) -> Self {
        let mut stats = trace.stats.clone();
        stats.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.name.cmp(&b.name)));
        let mut ledger = trace.ledger.clone();
        ledger.sort_by(|a, b| a.category.cmp(&b.category));
        // Sums of a rank take nothing from what was recorded of others.
        let of_sums = analysis.ranks.iter().all(|rank| rank.timeline.collectives_only);
        let contradicted = analysis.contradictions.iter().any(|of| of_sums || of.against == Against::Rows);
        let nodes = analysis.ranks.iter().any(|r| r.timeline.ops.iter().any(|op| op.in_graph));
        let facts = trace.manifest.iter().map(|(k, e)| (k.to_owned(), e.value.clone(), e.provenance)).collect();
        Self {
            id,
            source: file_name(&trace.source),
            format: trace.format.clone(),
            simulated: trace.simulated,
            devices: devices(trace, analysis),
            facts,
            world_size: trace.manifest.value("parallel.world_size").and_then(|v| v.parse().ok()),
            window: trace.window.map(model::Span::len),
            rows: rows(trace),
            start_unix_ns: trace.start_unix_ns,
            evidence: analysis.evidence,
            grade: Grade::of(analysis.evidence, &analysis.integrity, nodes)
                .or_sums(!trace.summaries.is_empty() || !trace.job_sums.is_empty())
                .contradicted(contradicted)
                .incomplete(analysis.loss.forbids_shares()),
            contradicted,
            caveat: [analysis.card.note_en.clone(), analysis.card.note_zh.clone()],
            integrity: analysis.integrity.clone(),
            loss: analysis.loss.clone(),
            job_sums: JobTotals::of(trace),
            serving: Loads::of(trace),
            link_test: LinkTest::of(trace, diagnosis.limits.link.as_ref()),
            summaries: Summaries::of(trace, analysis.measured.joined, diagnosis.kernel_sums.clone()),
            ranks: (0..).zip(&analysis.ranks).map(|(i, rank)| RankPart::build(trace, analysis, i, rank)).collect(),
            owners: owners::of(trace, analysis),
            job: JobPart::build(analysis),
            verdict: diagnosis.verdict.clone(),
            readiness: diagnosis.readiness.clone(),
            largest: diagnosis.largest.clone(),
            findings: diagnosis.findings.clone(),
            held: diagnosis.roofline.clone(),
            limits: diagnosis.limits.clone(),
            counterfactual: diagnosis.counterfactual.clone(),
            breaches: diagnosis.breaches.clone(),
            coverage: diagnosis.coverage,
            // A preview that could not decide is no loss.
            abstained: diagnosis.abstained.iter().filter(|of| state::of(of.rule) == State::Stable).cloned().collect(),
            mapping: mapping(trace, analysis),
            ledger,
            stats,
        }
    }
}

impl RankPart {
    fn build(trace: &Trace, analysis: &Analysis, index: usize, rank: &Rank) -> Self {
        let main = rank.main_class();
        let (operators, kernels) = main.map(|class| work::of(trace, rank, class)).unwrap_or_default();
        Self {
            rank: rank.rank,
            device: rank.device,
            anchor: rank.anchor.clone(),
            steps: rank.steps.len(),
            covered: rank.steps.iter().map(|step| step.window.len()).fold(0, Ns::saturating_add),
            selections: selections(rank),
            classes: rank.classes.iter().map(|c| ClassPart::build(trace, analysis, index, rank, c)).collect(),
            main: main.and_then(|class| rank.classes.iter().position(|c| c.index == class.index)),
            operators,
            kernels,
            replayed: main.map(|class| replayed::of(trace, rank, class)).unwrap_or_default(),
            outside: outside(rank),
            awaited: awaited(trace, rank).filter(|(_, ns)| *ns > 2 * outside(rank)[0]),
            workload: main.and_then(|class| workload::of(analysis, rank, class)),
            copies: main.map(|class| work::copies(trace, rank, class)).unwrap_or_default(),
            untraced: main.map(|class| work::untraced(trace, rank, class)).unwrap_or_default(),
            collectives: (rank.collectives.instances, rank.collectives.estimated),
            only_collectives: rank.timeline.collectives_only,
        }
    }
}

impl ClassPart {
    fn build(trace: &Trace, analysis: &Analysis, index: usize, rank: &Rank, class: &Class) -> Self {
        let labels = &analysis.host_labels;
        let mut buckets: Vec<BucketRow> = Vec::new();
        let mut rows = class.buckets.clone();
        rows.sort();
        for (bucket, ns) in rows {
            let (name, layer) = (bucket.name(labels), bucket.layer());
            // Two labels may carry one name; a report has one row for it.
            match buckets.iter_mut().find(|row| row.name == name) {
                Some(row) => row.ns += ns,
                None => buckets.push(BucketRow { name, layer, ns }),
            }
        }
        // Without a step that counts the percentiles are over all steps of the class.
        let timed = if class.steady > 0 { class.steady } else { class.count };
        let slow = |j: &Jitter| Slow {
            ratio: j.ratio,
            slowest: timed < P99_STEPS,
            steps: j.slow.len(),
            excess: j.excess.iter().map(|(bucket, ns)| (bucket.name(labels), *ns)).collect(),
        };
        Self {
            key: class.key.clone(),
            stage: class.stage,
            count: class.count,
            used: class.steady,
            lengths: rank.steady_steps(class).map(|step| step.window.len()).collect(),
            median: class.p50,
            p95: (timed >= P95_STEPS).then_some(class.p95),
            p99: (timed >= P99_STEPS).then_some(class.p99),
            total: class.total,
            buckets,
            shadow: class.shadow.clone(),
            slow: class.jitter.as_ref().map(slow),
            reassigned: Moved::build(analysis, index, rank, class),
            host: host_range(rank, class),
            idle: idle::of(trace, rank, class),
            attended: sequences::attended(trace, rank, class),
        }
    }
}

/// Time in which the device worked before the first step and after the last one, ns.
fn outside(rank: &Rank) -> [Ns; 2] {
    let Some((first, last)) = rank.steps.first().zip(rank.steps.last()) else { return [0, 0] };
    let (mut out, mut done) = ([0; 2], [Ns::MIN, last.window.end]);
    for op in &rank.timeline.ops {
        // Operations come in order of their start: what one covers beyond those before it is new.
        for (side, end) in [op.end.min(first.window.start), op.end].into_iter().enumerate() {
            out[side] += (end - op.start.max(done[side])).max(0);
            done[side] = done[side].max(end);
        }
    }
    out
}

/// A wait before the first step shorter than this part of the steps is not worth a line.
const WAIT: Ns = 20;

/// The longest wait of the host before the first step: what it waited for may have begun before the recording.
/// Where the capture holds it, the wait says nothing new.
fn awaited(trace: &Trace, rank: &Rank) -> Option<(String, Ns)> {
    let first = rank.steps.first()?.window.start;
    let waits = rank.timeline.calls.iter().take_while(|call| call.start < first);
    let waits = waits.filter(|call| call.blocking || call.kind.is_blocking());
    let (call, ns) = waits.map(|call| (call, call.end.min(first) - call.start)).max_by_key(|(_, ns)| *ns)?;
    let covered = rank.steps.iter().map(|step| step.window.len()).fold(0, Ns::saturating_add);
    (ns >= covered / WAIT).then(|| (trace.strings.get(call.name).to_owned(), ns))
}

/// The last part of a path of any system: what names the source on every machine.
pub fn file_name(source: &str) -> String {
    let trimmed = source.trim_end_matches(['/', '\\']);
    // Both are one byte, and no part of another character.
    let start = trimmed.bytes().rposition(|b| b == b'/' || b == b'\\').map_or(0, |at| at + 1);
    trimmed.get(start..).filter(|s| !s.is_empty()).unwrap_or(source).to_owned()
}

/// From the start of the first slice to the end of the last.
fn rows(trace: &Trace) -> Option<Ns> {
    let first = trace.lanes.iter().filter_map(|lane| lane.start.first()).min()?;
    let last = trace.lanes.iter().flat_map(|lane| (0..lane.len()).map(|i| lane.end(i))).max()?;
    Some(last.saturating_sub(*first))
}

/// Median length of the annotated host ranges, lower of two.
fn host_range(rank: &Rank, class: &Class) -> Option<Ns> {
    let mut ranges: Vec<Ns> = rank.steady_steps(class).filter_map(|s| s.host).map(model::Span::len).collect();
    ranges.sort_unstable();
    ranges.get(ranges.len().checked_sub(1)? / 2).copied()
}

fn devices(trace: &Trace, analysis: &Analysis) -> Vec<DeviceGroup> {
    let mut groups: Vec<DeviceGroup> = Vec::new();
    for device in &trace.devices {
        let text = |id: Option<model::StringId>| id.map(|id| trace.strings.get(id).to_owned());
        let (vendor, name) = (text(device.vendor), text(device.name));
        match groups.iter_mut().find(|g| g.vendor == vendor && g.name == name) {
            Some(group) => group.count += 1,
            None => {
                let chip = device.name.and_then(|name| analysis.chips.get(&name)).map(|chip| Chip {
                    name: chip.name.clone(),
                    cores: chip.cores,
                    memory_gb: chip.memory_gb,
                    memory_gb_per_s: chip.memory_gb_per_s,
                    source: chip.source.clone(),
                    date: chip.date.clone(),
                });
                groups.push(DeviceGroup { vendor, name, count: 1, chip });
            }
        }
    }
    groups
}

fn mapping(trace: &Trace, analysis: &Analysis) -> Mapping {
    let (listed, rest) = analysis.unmapped.split_at(analysis.unmapped.len().min(UNMAPPED));
    Mapping {
        coverage: analysis.op_coverage,
        unmapped: listed.iter().map(|(name, ns)| (trace.strings.get(*name).to_owned(), *ns)).collect(),
        more: (rest.len(), rest.iter().fold(0, |sum: Ns, (_, ns)| sum.saturating_add(*ns))),
    }
}

/// Ranges of step indices by selection: those that count first, then in the order in which they first occur.
fn selections(rank: &Rank) -> Vec<(Selection, Vec<(u32, u32)>)> {
    let mut out: Vec<(Selection, Vec<(u32, u32)>)> = Vec::new();
    for step in &rank.steps {
        let at = out.iter().position(|(s, _)| *s == step.selection).unwrap_or_else(|| {
            out.push((step.selection, Vec::new()));
            out.len() - 1
        });
        let Some((_, ranges)) = out.get_mut(at) else { continue };
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(step.index) => *last = step.index,
            _ => ranges.push((step.index, step.index)),
        }
    }
    out.sort_by_key(|(selection, _)| *selection != Selection::Steady);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_named_by_its_last_part() {
        assert_eq!(file_name("/a/b/run.json.gz"), "run.json.gz");
        assert_eq!(file_name("C:\\runs\\x.sqlite"), "x.sqlite");
        assert_eq!(file_name("/runs/out/"), "out");
        assert_eq!(file_name("/"), "/");
    }
}
