//! Everything a report shows, as values without formatting. The formats differ in form only: what one of them says, all
//! of them can.

use model::{Evidence, ImportStat, LedgerRow, Ns, Provenance, Trace};

use super::{
    grade::Grade,
    idle::{self, Idle},
    job::{JobPart, Moved},
    work::{self, Work},
};
use crate::{
    analysis::{Analysis, Anchor, Class, Jitter, Layer, Rank, Selection, sequences, steps::Shadow},
    diagnose::{Abstention, Counterfactual, Diagnosis, Finding, Severity, Verdict},
};

/// Steps from which a 95th percentile (nearest rank) is not simply the slowest step.
pub const P95_STEPS: usize = 20;
/// The same for the 99th.
pub const P99_STEPS: usize = 100;
/// Unmapped names listed; the rest is counted.
const UNMAPPED: usize = 10;

/// A report on one or more captures.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Captures in the order they were given.
    pub captures: Vec<Capture>,
}

/// What is said about one capture.
#[derive(Clone, Debug)]
pub struct Capture {
    /// Position in the report, from 1.
    pub id: usize,
    /// File name of the source, without its folders: a report reads the same wherever it was made.
    pub source: String,
    /// Format it was read as.
    pub format: String,
    /// Whether its numbers are simulated rather than measured.
    pub simulated: bool,
    /// Devices of one vendor and model.
    pub devices: Vec<DeviceGroup>,
    /// What the run says of itself: key, value, provenance.
    pub facts: Vec<(String, String, Provenance)>,
    /// Ranks of the job, if the source says it.
    pub world_size: Option<u32>,
    /// Length of the time that was recorded, ns.
    pub window: Option<Ns>,
    /// From the start of the first slice to the end of the last, ns.
    pub rows: Option<Ns>,
    /// Wall clock of the capture's zero, Unix ns.
    pub start_unix_ns: Option<Ns>,
    /// Evidence it holds.
    pub evidence: Evidence,
    /// How far that evidence reaches.
    pub grade: Grade,
    /// Caveat about what the source's rows mean, in English and Chinese.
    pub caveat: [String; 2],
    /// What is wrong with the trace itself.
    pub integrity: crate::analysis::Integrity,
    /// Each accelerator as one process drove it.
    pub ranks: Vec<RankPart>,
    /// What the ranks did together; absent for a capture of one rank.
    pub job: Option<JobPart>,
    /// The answer.
    pub verdict: Verdict,
    /// Findings, the most important first.
    pub findings: Vec<Finding>,
    /// What the replay says beside the single estimates.
    pub counterfactual: Counterfactual,
    /// Rules that could not decide.
    pub abstained: Vec<Abstention>,
    /// Which device names have a canonical operator.
    pub mapping: Mapping,
    /// What became of each category of the source.
    pub ledger: Vec<LedgerRow>,
    /// Import statistics, the worst first.
    pub stats: Vec<ImportStat>,
}

/// Devices of one vendor and model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceGroup {
    /// Vendor key, if known.
    pub vendor: Option<String>,
    /// Product name, if known.
    pub name: Option<String>,
    /// How many.
    pub count: usize,
}

/// One rank of a capture.
#[derive(Clone, Debug)]
pub struct RankPart {
    /// Rank in the job, or position in the capture.
    pub rank: u32,
    /// Device ordinal in its process.
    pub device: i32,
    /// How its steps were found.
    pub anchor: Anchor,
    /// Steps found.
    pub steps: usize,
    /// Time that the windows of the steps cover, ns.
    pub covered: Ns,
    /// Which steps count and why the others do not: ranges of step indices, both ends included.
    pub selections: Vec<(Selection, Vec<(u32, u32)>)>,
    /// Step classes, the longest in total first.
    pub classes: Vec<ClassPart>,
    /// Class the verdict is about, as an index into `classes`.
    pub main: Option<usize>,
    /// Canonical operators of the main class by exclusive time, longest first.
    pub operators: Vec<Work>,
    /// Kernels of the main class by exclusive time, longest first.
    pub kernels: Vec<Work>,
    /// Device work that lies in no step, ns: before the first and after the last.
    pub outside: [Ns; 2],
    /// Copies of the main class by direction.
    pub copies: Vec<Copies>,
    /// Collectives seen, and those whose transfer had to be estimated.
    pub collectives: (u64, u64),
}

/// Steps of one kind.
#[derive(Clone, Debug)]
pub struct ClassPart {
    /// Key such as `decode b=32 graph=full`.
    pub key: String,
    /// Steps of the class.
    pub count: usize,
    /// Of those, steps that count.
    pub used: usize,
    /// Median of the windows, ns.
    pub median: Ns,
    /// 95th percentile, ns; absent below [`P95_STEPS`] steps, where it is hardly more than the slowest one.
    pub p95: Option<Ns>,
    /// 99th percentile, ns; absent below [`P99_STEPS`] steps.
    pub p99: Option<Ns>,
    /// Sum of the windows that count, ns.
    pub total: Ns,
    /// Where the time of the steps that count went; adds up to `total`.
    pub buckets: Vec<BucketRow>,
    /// Time hidden behind other work, ns; part of `buckets` already.
    pub shadow: Vec<(Shadow, Ns)>,
    /// How the slow steps differ, with the names of the buckets.
    pub slow: Option<Slow>,
    /// The same time with waits moved to what caused them; absent where no other rank of a collective was captured.
    pub reassigned: Option<Moved>,
    /// Median length of the annotated host ranges of the steps that count, ns.
    pub host: Option<Ns>,
    /// Where the idle time lies, if it lies together.
    pub idle: Option<Idle>,
    /// Queries and keys per sequence in attention, where shapes say it and the stage is unknown.
    pub attended: Option<(u64, u64)>,
}

/// Copies of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copies {
    /// Bucket such as `copy.h2d`.
    pub name: &'static str,
    /// How many over the steps that count.
    pub count: u64,
    /// Bytes that they say they moved.
    pub bytes: i64,
    /// Sum of the durations of those that say their bytes, ns.
    pub time: Ns,
}

/// Time of one bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketRow {
    /// Name such as `compute.gemm`.
    pub name: String,
    /// Layer it counts towards.
    pub layer: Layer,
    /// ns over the steps that count.
    pub ns: Ns,
}

/// Slow steps against the median one.
#[derive(Clone, Debug, PartialEq)]
pub struct Slow {
    /// p99 over p50 by nearest rank.
    pub ratio: f64,
    /// Whether there are so few steps that this p99 is simply the slowest one.
    pub slowest: bool,
    /// How many steps are slow.
    pub steps: usize,
    /// Mean excess over the median step by bucket, ns, largest first.
    pub excess: Vec<(String, Ns)>,
}

/// Which device names have a canonical operator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    /// Share of device time whose name a pattern knows; absent without device time.
    pub coverage: Option<f64>,
    /// Names without one and their device time, ns, longest first.
    pub unmapped: Vec<(String, Ns)>,
    /// Further names that are not listed, and their device time, ns.
    pub more: (usize, Ns),
}

impl Report {
    /// Gathers a report from captures and what was found in them.
    pub fn build(inputs: &[(Trace, Analysis, Diagnosis)]) -> Self {
        let captures = inputs.iter().enumerate().map(|(i, (t, a, d))| Capture::build(i + 1, t, a, d)).collect();
        Self { captures }
    }

    /// The capture whose verdict stands at the top: the one with the gravest first finding, else the first.
    pub fn leading(&self) -> Option<&Capture> {
        let gravest = |c: &Capture| c.findings.iter().map(|f| f.severity).max();
        self.captures.iter().rev().max_by_key(|c| gravest(c))
    }

    /// Severity of the gravest finding.
    pub fn gravest(&self) -> Option<Severity> {
        self.captures.iter().flat_map(|c| &c.findings).map(|f| f.severity).max()
    }

    /// Whether any number in it is simulated.
    pub fn simulated(&self) -> bool {
        self.captures.iter().any(|c| c.simulated)
    }
}

impl Capture {
    fn build(id: usize, trace: &Trace, analysis: &Analysis, diagnosis: &Diagnosis) -> Self {
        let mut stats = trace.stats.clone();
        stats.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.name.cmp(&b.name)));
        let mut ledger = trace.ledger.clone();
        ledger.sort_by(|a, b| a.category.cmp(&b.category));
        let nodes = analysis.ranks.iter().any(|r| r.timeline.ops.iter().any(|op| op.in_graph));
        let facts = trace.manifest.iter().map(|(k, e)| (k.to_owned(), e.value.clone(), e.provenance)).collect();
        Self {
            id,
            source: file_name(&trace.source),
            format: trace.format.clone(),
            simulated: trace.simulated,
            devices: devices(trace),
            facts,
            world_size: trace.manifest.value("parallel.world_size").and_then(|v| v.parse().ok()),
            window: trace.window.map(model::Span::len),
            rows: rows(trace),
            start_unix_ns: trace.start_unix_ns,
            evidence: analysis.evidence,
            grade: Grade::of(analysis.evidence, &analysis.integrity, nodes),
            caveat: [analysis.card.note_en.clone(), analysis.card.note_zh.clone()],
            integrity: analysis.integrity.clone(),
            ranks: (0..).zip(&analysis.ranks).map(|(i, rank)| RankPart::build(trace, analysis, i, rank)).collect(),
            job: JobPart::build(analysis),
            verdict: diagnosis.verdict.clone(),
            findings: diagnosis.findings.clone(),
            counterfactual: diagnosis.counterfactual.clone(),
            abstained: diagnosis.abstained.clone(),
            mapping: mapping(trace, analysis),
            ledger,
            stats,
        }
    }

    /// The rank that the steps of the report are shown for: that of the first finding, else the first.
    pub fn leading_rank(&self) -> Option<&RankPart> {
        let blamed = self.findings.first().and_then(|f| f.ranks.first());
        self.ranks.iter().find(|r| Some(&r.rank) == blamed).or(self.ranks.first())
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
            outside: outside(rank),
            copies: main.map(|class| work::copies(trace, rank, class)).unwrap_or_default(),
            collectives: (rank.collectives.instances, rank.collectives.estimated),
        }
    }

    /// The class the verdict is about.
    pub fn main_class(&self) -> Option<&ClassPart> {
        self.classes.get(self.main?)
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
            count: class.count,
            used: class.steady,
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

    /// ns of each layer over the steps that count, in the order of [`Layer::ALL`]; they add up to `total`.
    pub fn layers(&self) -> [Ns; 4] {
        Layer::ALL.map(|layer| self.buckets.iter().filter(|row| row.layer == layer).map(|row| row.ns).sum())
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

/// The last part of a path of any system: what names the source on every machine.
fn file_name(source: &str) -> String {
    let trimmed = source.trim_end_matches(['/', '\\']);
    trimmed.rsplit(['/', '\\']).next().filter(|s| !s.is_empty()).unwrap_or(source).to_owned()
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

fn devices(trace: &Trace) -> Vec<DeviceGroup> {
    let mut groups: Vec<DeviceGroup> = Vec::new();
    for device in &trace.devices {
        let text = |id: Option<model::StringId>| id.map(|id| trace.strings.get(id).to_owned());
        let (vendor, name) = (text(device.vendor), text(device.name));
        match groups.iter_mut().find(|g| g.vendor == vendor && g.name == name) {
            Some(group) => group.count += 1,
            None => groups.push(DeviceGroup { vendor, name, count: 1 }),
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
