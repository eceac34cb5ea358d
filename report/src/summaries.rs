//! What a capture says of kernels without saying when they ran: sums over a run, and measurements of kernels that were run
//! alone. No step and no gap follows from either.

use std::collections::BTreeMap;

use model::{Conditions, KernelSummary, Metric, Ns, Trace};

use diagnosis::{analysis::Joined, diagnose::kernel_sums::OperatorSum};

/// Sums or measurements of one kernel.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Name of the kernel.
    pub kernel: String,
    /// Executions.
    pub count: u64,
    /// Sum of their durations, ns.
    pub total: Option<Ns>,
    /// The longest, ns, where the source says it of every part of the sum.
    pub longest: Option<Ns>,
    /// What was measured.
    pub metrics: Vec<(Metric, f64)>,
}

impl Summary {
    /// Mean duration, ns.
    pub fn mean(&self) -> Option<Ns> {
        self.total?.checked_div(i64::try_from(self.count).ok()?)
    }
}

/// Counters of one kernel, those of the channels of a block as one.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Counters {
    /// Name of the kernel.
    pub kernel: String,
    /// Executions.
    pub count: u64,
    /// Name of each counter, its channels where it has several, and the mean of an execution: over channels, their sum.
    pub counters: Vec<(String, u64, f64)>,
}

/// Both kinds, the longest first.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Summaries {
    /// Sums over the run, one per name.
    pub run: Vec<Summary>,
    /// Sums over the run of what is no kernel, by what it is.
    pub further: Vec<(Conditions, Vec<Summary>)>,
    /// The same sums by operator.
    pub operators: Vec<OperatorSum>,
    /// Measurements of executions of which each was alone.
    pub isolated: Vec<Summary>,
    /// How much of the capture's own kernels they speak of.
    pub joined: Joined,
    /// Counters of the kernel with counters that takes longest.
    pub counters: Option<Counters>,
    /// Kernels with counters, each shape of launch and each measurement for itself.
    pub with_counters: u64,
}

impl Summaries {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.run.is_empty() && self.isolated.is_empty() && self.further.is_empty()
    }

    /// Gathers what a capture holds.
    pub fn of(trace: &Trace, joined: Joined, operators: Vec<OperatorSum>) -> Self {
        let further = [Conditions::Operators, Conditions::Host, Conditions::Classes];
        let further = further.into_iter().map(|of| (of, sums(trace, of))).filter(|(_, sums)| !sums.is_empty());
        let one = |s: &KernelSummary| Summary {
            kernel: trace.strings.get(s.kernel).to_owned(),
            count: s.count,
            total: s.total,
            longest: s.range.map(|(_, longest)| longest),
            metrics: s.metrics.clone(),
        };
        let mut found = Self {
            run: sums(trace, Conditions::Run),
            further: further.collect(),
            operators,
            isolated: trace.summaries.iter().filter(|s| s.conditions == Conditions::Isolated).map(one).collect(),
            joined,
            counters: trace
                .summaries
                .iter()
                .filter(|s| counted(s))
                .max_by_key(|s| (s.total, s.counters.len()))
                .map(|s| counters(trace, s)),
            with_counters: trace.summaries.iter().filter(|s| counted(s)).count() as u64,
        };
        found.isolated.sort_by_key(|kernel| std::cmp::Reverse(kernel.total));
        found
    }

    /// Sum of the sums, ns, where every one is known.
    pub fn total(&self) -> Option<Ns> {
        self.run.iter().try_fold(0, |sum: Ns, s| Some(sum.saturating_add(s.total?)))
    }
}

/// The sums of one kind by name, the largest first.
fn sums(trace: &Trace, of: Conditions) -> Vec<Summary> {
    let mut found: BTreeMap<&str, Summary> = BTreeMap::new();
    for summary in trace.summaries.iter().filter(|s| s.conditions == of) {
        let longest = summary.range.map(|(_, longest)| longest);
        let name = trace.strings.get(summary.kernel);
        match found.get_mut(name) {
            Some(sum) => {
                sum.count = sum.count.saturating_add(summary.count);
                sum.total = sum.total.zip(summary.total).map(|(a, b)| a.saturating_add(b));
                sum.longest = sum.longest.zip(longest).map(|(a, b)| a.max(b));
            }
            None => {
                let (kernel, count, total) = (name.to_owned(), summary.count, summary.total);
                found.insert(name, Summary { kernel, count, total, longest, metrics: Vec::new() });
            }
        }
    }
    let mut found: Vec<Summary> = found.into_values().collect();
    found.sort_by_key(|sum| std::cmp::Reverse(sum.total));
    found
}

fn counted(summary: &KernelSummary) -> bool {
    !summary.counters.is_empty()
}

/// The counters of a kernel. A block that the device has many times has a counter of each, `TCC_HIT[7]`, which are one line.
fn counters(trace: &Trace, summary: &KernelSummary) -> Counters {
    let mut by_name: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    for (name, value) in &summary.counters {
        let name = trace.strings.get(*name);
        let block = name.strip_suffix(']').and_then(|name| name.rsplit_once('[')).map_or(name, |(block, _)| block);
        let sum = by_name.entry(block).or_default();
        *sum = (sum.0 + 1, sum.1 + value);
    }
    let counters = by_name.into_iter().map(|(name, (channels, value))| (name.to_owned(), channels, value)).collect();
    Counters { kernel: trace.strings.get(summary.kernel).to_owned(), count: summary.count, counters }
}
