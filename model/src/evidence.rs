//! Which classes of evidence a capture holds. A rule whose class is missing abstains and says what to collect.

/// A class of evidence. The letters are those of the rule catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceClass {
    /// D: device operations with times.
    Device,
    /// H: host API calls with times.
    HostApi,
    /// X: correlation between host calls and device operations.
    Correlation,
    /// G: graph launches, and their nodes or extent.
    Graph,
    /// S: shapes and dtypes.
    Shapes,
    /// P: measured ceilings of the platform.
    Probes,
    /// M: more than one rank of the job.
    MultiRank,
    /// L: scheduler or minimal logs.
    Logs,
    /// U: unit, performance-counter, frequency or power samples.
    Counters,
    /// N: notify waits or pair detail of collectives.
    PairDetail,
    /// B: a second run to compare with.
    SecondRun,
}

impl EvidenceClass {
    /// All classes in catalogue order.
    pub const ALL: [Self; 11] = [
        Self::Device,
        Self::HostApi,
        Self::Correlation,
        Self::Graph,
        Self::Shapes,
        Self::Probes,
        Self::MultiRank,
        Self::Logs,
        Self::Counters,
        Self::PairDetail,
        Self::SecondRun,
    ];

    /// Key in JSON output.
    pub fn key(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::HostApi => "host_api",
            Self::Correlation => "correlation",
            Self::Graph => "graph",
            Self::Shapes => "shapes",
            Self::Probes => "probes",
            Self::MultiRank => "multi_rank",
            Self::Logs => "logs",
            Self::Counters => "counters",
            Self::PairDetail => "pair_detail",
            Self::SecondRun => "second_run",
        }
    }
}

/// The set of classes a capture holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence(u16);

impl Evidence {
    /// Adds a class.
    pub fn insert(&mut self, class: EvidenceClass) {
        self.0 |= 1 << class as u16;
    }

    /// Whether a class is held.
    pub fn has(self, class: EvidenceClass) -> bool {
        self.0 & (1 << class as u16) != 0
    }

    /// The manifest field that says in which columns or tables a source holds what is not read of a class.
    pub fn unread(class: EvidenceClass) -> String {
        format!("unread.{}", class.key())
    }

    /// The classes of `needs` that are not held.
    pub fn missing(self, needs: &[EvidenceClass]) -> Vec<EvidenceClass> {
        needs.iter().copied().filter(|class| !self.has(*class)).collect()
    }
}

impl FromIterator<EvidenceClass> for Evidence {
    fn from_iter<I: IntoIterator<Item = EvidenceClass>>(classes: I) -> Self {
        let mut evidence = Self::default();
        classes.into_iter().for_each(|class| evidence.insert(class));
        evidence
    }
}
