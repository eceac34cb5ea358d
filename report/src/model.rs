//! Everything a report shows, as values without formatting. The formats differ in form only: what one of them says, all
//! of them can.

use model::{Evidence, EvidenceClass, ImportStat, LedgerRow, Ns, Provenance, Trace};

use super::{
    document::Document,
    grade::Grade,
    idle::Idle,
    job::{JobPart, Moved},
    link_test::LinkTest,
    owners::IdleOwner,
    replayed::Replayed,
    sections,
    serving::Loads,
    summaries::Summaries,
    work::Work,
    workload::WorkloadPart,
};
use diagnosis::{
    analysis::{Analysis, Anchor, Layer, Selection, job_sums::JobTotals, steps::Shadow},
    diagnose::{
        Abstention, Breach, Counterfactual, Diagnosis, Finding, Readiness, Severity, Verdict, coverage::Coverage,
        limits::Limits, roofline::Roofline,
    },
    i18n::Lang,
    largest::{Largest, Tables},
    platform::Stage,
};

/// Steps from which a 95th percentile (nearest rank) is not simply the slowest step.
pub const P95_STEPS: usize = 20;
/// The same for the 99th.
pub const P99_STEPS: usize = 100;

/// A report on one or more captures.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Report {
    /// Captures in the order they were given.
    pub captures: Vec<Capture>,
}

/// What is said about one capture.
#[derive(Clone, Debug, serde::Serialize)]
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
    #[serde(serialize_with = "held")]
    pub evidence: Evidence,
    /// How far that evidence reaches.
    pub grade: Grade,
    /// Whether the profiler's own sums contradict the rows, which lowered the grade.
    pub contradicted: bool,
    /// Caveat about what the source's rows mean, in English and Chinese.
    pub caveat: [String; 2],
    /// What is wrong with the trace itself.
    pub integrity: diagnosis::analysis::Integrity,
    /// What of the run the capture lacks.
    #[serde(skip)]
    pub loss: diagnosis::analysis::Loss,
    /// What it says of kernels without saying when they ran.
    pub summaries: Summaries,
    /// What it says of the steps and links of a job without a timeline.
    pub job_sums: JobTotals,
    /// What a client measured of a server under load.
    pub serving: Loads,
    /// What it measured of links, size by size.
    pub link_test: LinkTest,
    /// Each accelerator as one process drove it.
    pub ranks: Vec<RankPart>,
    /// Who owns the idle time of the steps that count, longest first.
    pub owners: Vec<IdleOwner>,
    /// What the ranks did together; absent for a capture of one rank.
    pub job: Option<JobPart>,
    /// The answer.
    pub verdict: Verdict,
    /// How ready the platform is, as far as the capture shows it.
    pub readiness: Readiness,
    /// What takes the most time, by name.
    pub largest: Largest,
    /// Findings, the most important first.
    pub findings: Vec<Finding>,
    /// The steps with the most time beside what the device was measured to be able to do.
    pub held: Option<Roofline>,
    /// Operators beside what the device can do, and the least that a step takes.
    pub limits: Limits,
    /// What the replay says beside the single estimates.
    pub counterfactual: Counterfactual,
    /// What cannot be, and was withheld.
    pub breaches: Vec<Breach>,
    /// How much of the time that is not useful is stated.
    pub coverage: Coverage,
    /// Rules that could not decide.
    pub abstained: Vec<Abstention>,
    /// Which device names have a canonical operator.
    pub mapping: Mapping,
    /// What became of each category of the source.
    pub ledger: Vec<LedgerRow>,
    /// Import statistics, the worst first.
    pub stats: Vec<ImportStat>,
}

impl Capture {
    /// What puts a capture before others: the severity of its gravest finding, then whether it has steps to speak of, then whether
    /// it has anything that takes time, then how much time it covers, ns.
    pub fn weight(&self) -> (Option<Severity>, bool, bool, Ns) {
        let gravest = self.findings.iter().map(|finding| finding.severity).max();
        let rows = self.tables().map(|tables| tables.rows.len()).sum::<usize>();
        let placed = self.verdict.place.is_some();
        let covered = self.ranks.iter().filter_map(|rank| Some(rank.main_class()?.total)).max().unwrap_or(0);
        (gravest, placed, rows > 0 || !self.serving.loads.is_empty(), covered)
    }

    /// Vendor of the devices, as the manifest names it; empty where nothing says it.
    pub fn vendor(&self) -> &str {
        let said = self.facts.iter().find(|(key, ..)| key == "hardware.vendor").map(|(_, value, _)| value.as_str());
        said.or_else(|| self.devices.iter().find_map(|group| group.vendor.as_deref())).unwrap_or("")
    }
}

/// Devices of one vendor and model.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DeviceGroup {
    /// Vendor key, if known.
    pub vendor: Option<String>,
    /// Product name, if known.
    pub name: Option<String>,
    /// How many.
    pub count: usize,
    /// What is published of the chip, if it is known.
    pub chip: Option<Chip>,
}

/// What the maker of a chip publishes; none of it was measured.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Chip {
    /// Product.
    pub name: String,
    /// Cores that take blocks.
    pub cores: Option<u32>,
    /// Memory, in the GB or GiB of its maker.
    pub memory_gb: Option<u32>,
    /// Nominal bandwidth of the memory, 10⁹ B/s.
    pub memory_gb_per_s: Option<u32>,
    /// Where this is published.
    pub source: String,
    /// When it was last checked, `YYYY-MM`.
    pub date: String,
}

/// One rank of a capture.
#[derive(Clone, Debug, serde::Serialize)]
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
    /// What launched the replayed kernels of the main class when their graph was captured, longest first.
    pub replayed: Vec<Replayed>,
    /// Device work that lies in no step, ns: before the first and after the last.
    pub outside: [Ns; 2],
    /// The call in which the host waited longest before the first step for work that was not recorded, and for how long, ns;
    /// `None` where that is little beside the steps.
    pub awaited: Option<(String, Ns)>,
    /// The steps whose mean every share and gain refers to.
    pub workload: Option<WorkloadPart>,
    /// Copies of the main class by direction.
    pub copies: Vec<Copies>,
    /// Blocking copies of the main class by direction, where the capture holds their calls and no copy: the time is that of the
    /// calls.
    pub untraced: Vec<Copies>,
    /// Collectives seen, and those whose transfer had to be estimated.
    pub collectives: (u64, u64),
    /// Nothing but its collectives was recorded: what it computed and what its host did is not known.
    pub only_collectives: bool,
}

/// Steps of one kind.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ClassPart {
    /// Key such as `decode b=32 graph=full`.
    pub key: String,
    /// Stage.
    pub stage: Stage,
    /// Steps of the class.
    pub count: usize,
    /// Of those, steps that count.
    pub used: usize,
    /// Windows of the steps that count, in order of time, ns.
    pub lengths: Vec<Ns>,
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
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
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

impl Copies {
    /// Bytes per second; `None` without time or bytes.
    pub fn rate(&self) -> Option<f64> {
        (self.time > 0 && self.bytes > 0).then(|| self.bytes as f64 * 1e9 / self.time as f64)
    }
}

/// Time of one bucket.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BucketRow {
    /// Name such as `compute.gemm`.
    pub name: String,
    /// Layer it counts towards.
    pub layer: Layer,
    /// ns over the steps that count.
    pub ns: Ns,
}

/// Slow steps against the median one.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
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
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Mapping {
    /// Share of device time whose name a pattern knows; absent without device time.
    pub coverage: Option<f64>,
    /// Names without one and their device time, ns, longest first.
    pub unmapped: Vec<(String, Ns)>,
    /// Further names that are not listed, and their device time, ns.
    pub more: (usize, Ns),
}

/// The classes of evidence by name.
fn held<S: serde::Serializer>(evidence: &Evidence, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(EvidenceClass::ALL.into_iter().filter(|class| evidence.has(*class)))
}

impl Report {
    /// Gathers a report from captures and what was found in them.
    pub fn build(inputs: &[(Trace, Analysis, Diagnosis)]) -> Self {
        Self::of(inputs.iter().map(|(trace, analysis, diagnosis)| (trace, analysis, diagnosis)))
    }

    /// The same of captures that are kept elsewhere.
    pub fn of<'a>(inputs: impl IntoIterator<Item = (&'a Trace, &'a Analysis, &'a Diagnosis)>) -> Self {
        let captures = inputs.into_iter().enumerate().map(|(i, (t, a, d))| Capture::build(i + 1, t, a, d));
        Self { captures: captures.collect() }
    }

    /// The report as it is read first: what a page or two can hold.
    pub fn brief(&self, lang: Lang) -> Document {
        sections::brief(self, lang)
    }

    /// The whole report as a document.
    pub fn document(&self, lang: Lang) -> Document {
        sections::report(self, lang)
    }

    /// The capture whose verdict stands at the top: the one of most [`Capture::weight`], of equals the first.
    pub fn leading(&self) -> Option<&Capture> {
        self.captures.iter().rev().max_by_key(|capture| capture.weight())
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
    /// The rank that the steps of the report are shown for: the one that the headline speaks of, else the one whose main class
    /// takes longest.
    pub fn leading_rank(&self) -> Option<&RankPart> {
        let spoken = self.verdict.place.as_ref().map(|place| place.rank);
        self.ranks.iter().find(|r| Some(r.rank) == spoken).or_else(|| {
            let total = |rank: &RankPart| rank.main_class().map_or(0, |class| class.total);
            self.ranks.iter().max_by_key(|rank| (total(rank), std::cmp::Reverse(rank.rank)))
        })
    }
}

impl Capture {
    /// The tables beside the verdict: those of the rank that it speaks of, and those that belong to no rank.
    pub fn tables(&self) -> impl Iterator<Item = &Tables> {
        let rank = self.leading_rank().map(|rank| rank.rank);
        let leading = self.largest.of(rank);
        let others = self.largest.tables.iter().filter(move |own| own.rank.is_none());
        leading.into_iter().chain(others.filter(move |own| leading.is_none_or(|leading| !std::ptr::eq(*own, leading))))
    }
}

impl RankPart {
    /// The class the verdict is about.
    pub fn main_class(&self) -> Option<&ClassPart> {
        self.classes.get(self.main?)
    }
}

impl ClassPart {
    /// ns of each layer over the steps that count, in the order of [`Layer::ALL`]; they add up to `total`.
    pub fn layers(&self) -> [Ns; 4] {
        Layer::ALL.map(|layer| self.buckets.iter().filter(|row| row.layer == layer).map(|row| row.ns).sum())
    }
}
