//! A row of a table, and how what has one name is added up.

use std::{cmp::Reverse, hash::Hash};

use model::{Ns, SliceId};
use rustc_hash::FxHashMap;

use super::ROWS;

/// What a table is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Kernels, collectives among them.
    Kernel,
    /// Calls of the runtime, the driver, the operating system.
    Call,
    /// Ranges, framework operators and frames, each by its own time.
    Host,
    /// Idle time of the device by what the host did meanwhile.
    Idle,
    /// Copies and fills by direction and memory.
    Copy,
    /// Collectives by kind and payload.
    Collective,
}

impl Kind {
    /// All kinds in the order of a report.
    pub const ALL: [Self; 6] = [Self::Kernel, Self::Call, Self::Host, Self::Idle, Self::Copy, Self::Collective];

    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Call => "call",
            Self::Host => "host",
            Self::Idle => "idle",
            Self::Copy => "copy",
            Self::Collective => "collective",
        }
    }
}

/// Everything of one name in one table.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Row {
    /// Table that it is of.
    pub kind: Kind,
    /// Name as the capture spells it: the kernel, the call, the record of the host; of a copy its direction and memory
    /// (`HtoD pageable → device`); of a collective its operation. Empty where nothing was recorded that owns idle time.
    pub name: String,
    /// What the name is of: a canonical operator, a category of records, a bucket of idle time, a kernel of a collective.
    pub of: String,
    /// How many.
    pub count: u64,
    /// Sum of their durations, ns; of host records their own time: without the records inside them that stand in the table too.
    pub total: Ns,
    /// The longest of them, ns; absent where a source says only sums.
    pub max: Option<Ns>,
    /// Of the total, what nothing hides, ns: of copies and collectives the time without a kernel, of calls and host records the
    /// time in which the device was idle. Absent where the question does not arise.
    pub exposed: Option<Ns>,
    /// Bytes of each of them, where they are known and equal; of copies the bytes of all.
    pub bytes: Option<i64>,
    /// Bytes per second while they moved: of collectives matched across ranks without the wait for the last rank.
    pub rate: Option<f64>,
    /// By how much the first rank of a collective came before the last one, mean and most, ns; absent for one rank.
    pub skew: Option<(Ns, Ns)>,
    /// The longest of them.
    pub longest: Option<SliceId>,
    /// Whether a finding names it, or is about at least half of its time.
    pub named: bool,
}

impl Row {
    /// A row of which only name and sum are known.
    pub fn new(kind: Kind, name: impl Into<String>, of: impl Into<String>, count: u64, total: Ns) -> Self {
        Self {
            kind,
            name: name.into(),
            of: of.into(),
            count,
            total,
            max: None,
            exposed: None,
            bytes: None,
            rate: None,
            skew: None,
            longest: None,
            named: false,
        }
    }

    /// Mean duration, ns.
    pub fn mean(&self) -> Ns {
        self.total / i64::try_from(self.count.max(1)).unwrap_or(Ns::MAX)
    }
}

/// What is added up under one name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub count: u64,
    pub total: Ns,
    pub exposed: Ns,
    pub max: Ns,
    pub longest: Option<SliceId>,
    /// Of the time that decides whether it is named, what a finding is about, ns.
    pub stated: Ns,
}

impl Sum {
    /// Adds one of so long, of which so much is exposed, and of so much a finding speaks.
    pub fn add(&mut self, ns: Ns, (exposed, stated): (Ns, Ns), slice: SliceId) {
        self.stated = self.stated.saturating_add(stated);
        self.count += 1;
        self.total = self.total.saturating_add(ns);
        self.exposed = self.exposed.saturating_add(exposed);
        if self.longest.is_none() || ns > self.max {
            (self.max, self.longest) = (ns, Some(slice));
        }
    }

    /// The row of it.
    pub fn row(&self, kind: Kind, name: impl Into<String>, of: impl Into<String>) -> Row {
        let (max, longest) = (Some(self.max), self.longest);
        // Of the host's records only what keeps the device waiting matters, and only that does a finding speak of.
        let own = if matches!(kind, Kind::Call | Kind::Host) { self.exposed } else { self.total };
        let named = own > 0 && self.stated.saturating_mul(2) >= own;
        Row { max, longest, named, ..Row::new(kind, name, of, self.count, self.total) }
    }
}

/// Adds what one thread did to what others did. The device is idle once, however many threads do the same meanwhile: of that the
/// thread with the most counts.
pub(super) fn join<K: Eq + Hash>(sums: &mut FxHashMap<K, Sum>, of_thread: FxHashMap<K, Sum>) {
    for (key, own) in of_thread {
        let all = sums.entry(key).or_default();
        if own.exposed > all.exposed {
            (all.exposed, all.stated) = (own.exposed, own.stated);
        }
        all.count += own.count;
        all.total = all.total.saturating_add(own.total);
        if all.longest.is_none() || own.max > all.max {
            (all.max, all.longest) = (own.max, own.longest);
        }
    }
}

/// The longest of what was added up, the first name of equal ones first.
pub(super) fn largest<K: Copy + Eq + Hash, N: Ord, R>(
    sums: FxHashMap<K, Sum>,
    name: impl Fn(K) -> N,
    row: impl Fn(K, &Sum) -> R,
) -> Vec<R> {
    let mut sums: Vec<(K, Sum)> = sums.into_iter().filter(|(_, sum)| sum.total > 0).collect();
    sums.sort_by_cached_key(|(key, sum)| (Reverse(sum.total), name(*key)));
    sums.iter().take(ROWS).map(|(key, sum)| row(*key, sum)).collect()
}
