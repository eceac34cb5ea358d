//! What an import read, kept and lost. Nothing is dropped without a row here.

/// How bad an import statistic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A fact about the source.
    Info,
    /// Unusual, nothing lost.
    Notice,
    /// Something in the source could not be kept.
    DataLoss,
    /// Something is wrong with the source.
    Error,
}

impl Severity {
    /// Name in the store and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Notice => "notice",
            Self::DataLoss => "data_loss",
            Self::Error => "error",
        }
    }

    /// The severity with this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Info, Self::Notice, Self::DataLoss, Self::Error].into_iter().find(|s| s.name() == name)
    }
}

/// One named count of an import, such as `kineto.orphan_kernels`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ImportStat {
    /// `<format>.<what>` in snake case, or `trace.<what>` for what the builder counts and what means the same in every format.
    pub name: String,
    /// How bad it is.
    pub severity: Severity,
    /// How often.
    pub count: u64,
    /// The first place or value it was seen at, for people.
    pub example: Option<String>,
}

impl ImportStat {
    /// End of the name under which a profiler's warning that it does not know the driver is counted.
    pub const UNSUPPORTED_DRIVER: &str = ".unsupported_driver";

    /// Kernels that ran one after the other for the sake of counters: what lies between them says nothing of a run.
    pub const RUN_ALONE: &str = "trace.kernels_run_alone";
    /// Operations of a device that the source links to calls and has no row of.
    pub const WORK_WITHOUT_ROW: &str = "trace.work_without_row";
    /// Nothing of a capture was kept, or it contains facts and no run.
    pub const NOTHING_KEPT: &str = "import.nothing_kept";
    /// Rows that stand twice and are counted once.
    pub const DOUBLED_ROWS: &str = "trace.doubled_rows";
    /// Further runs, of other processes at other times, in one source.
    pub const OTHER_RUNS: &str = "trace.other_runs";
    /// Calls that the source links to operations of a device and has no row of.
    pub const CALLS_WITHOUT_ROW: &str = "trace.calls_without_row";
    /// Page faults on managed memory, of the host and of devices.
    pub const PAGE_FAULTS: &str = "trace.page_faults";
    /// Kernels that ran and have no row, by the numbers of those that have one.
    pub const MISSING_KERNELS: &str = "trace.missing_kernels";
}

/// What became of one of the source's own categories of event.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct LedgerRow {
    /// The category as the source spells it (`cuda_runtime`, `CUPTI_ACTIVITY_KIND_KERNEL`).
    pub category: String,
    /// Events read.
    pub read: u64,
    /// Events kept as slices, counters, flows or facts.
    pub kept: u64,
    /// Sum of the durations of the events kept, in nanoseconds.
    pub time_ns: i64,
    /// What the events became, or why they were not kept.
    pub note: String,
}
