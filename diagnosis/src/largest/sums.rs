//! The tables of a capture of sums: what a profiler added up of a run, and kernels that ran alone.

use std::{cmp::Reverse, collections::BTreeMap};

use model::{Conditions, Ns, Stated, StepPart, Trace};

use super::{
    Over, ROWS, Tables,
    row::{Kind, Row},
};
use crate::platform::{is_runtime_call, moves_memory};

/// The tables of the sums that a capture holds. Each has its own sum as all time: a profiler adds up one thing per table.
pub(super) fn of(trace: &Trace) -> Vec<Tables> {
    let kernels = |conditions, over| kernels(trace, conditions, over);
    // Rows of a run bring calls of their own; sums beside them say the same again.
    let calls = trace.lanes.iter().all(model::Columns::is_empty).then(|| calls(trace)).flatten();
    let of_run = [kernels(Conditions::Run, Over::Sums), calls, steps(trace)];
    of_run.into_iter().flatten().chain(kernels(Conditions::Isolated, Over::Alone)).collect()
}

/// What is known of the kernels of one name.
#[derive(Default)]
struct Known {
    count: u64,
    total: Ns,
    max: Option<Ns>,
    /// Whether every part of it says its longest execution.
    open: bool,
}

fn kernels(trace: &Trace, conditions: Conditions, over: Over) -> Option<Tables> {
    let mut sums: BTreeMap<&str, Known> = BTreeMap::new();
    for sum in trace.summaries.iter().filter(|sum| sum.conditions == conditions) {
        let Some(total) = sum.total else { continue };
        let known = sums.entry(trace.strings.get(sum.kernel)).or_default();
        known.count = known.count.saturating_add(sum.count);
        known.total = known.total.saturating_add(total);
        // One execution is its own longest.
        let max = sum.range.map(|(_, max)| max).or((sum.count == 1).then_some(total));
        known.open |= max.is_none();
        known.max = known.max.max(max);
    }
    let listed = sums.values().fold(0, |all: Ns, sum| all.saturating_add(sum.total));
    // A table that was cut says below how much all rows are.
    let said = trace.manifest.value("totals.device_ns").filter(|_| over == Over::Sums).and_then(|ns| ns.parse().ok());
    let device = listed.max(said.unwrap_or(0));
    // Beside a device that mostly idles the host's own time is the larger part: it is what all shares refer to.
    let host = trace.manifest.value("totals.host_ns").filter(|_| over == Over::Sums).and_then(|ns| ns.parse().ok());
    let idles = host.filter(|host: &Ns| *host > device.saturating_mul(2));
    let time = idles.unwrap_or(device);
    let mut sums: Vec<(&str, Known)> = sums.into_iter().filter(|(_, sum)| sum.total > 0).collect();
    sums.sort_by_key(|(name, sum)| (Reverse(sum.total), *name));
    let row = |kind: Kind| {
        move |(name, sum): &(&str, Known)| Row {
            max: sum.max.filter(|_| !sum.open),
            ..Row::new(kind, *name, "", sum.count, sum.total)
        }
    };
    let host = if idles.is_some() { of_host(trace) } else { Vec::new() };
    let of = |memory: bool| sums.iter().filter(move |(name, _)| moves_memory(name) == memory).take(ROWS);
    let rows = of(false).map(row(Kind::Kernel)).chain(of(true).map(row(Kind::Copy))).chain(host).collect();
    (!sums.is_empty()).then(|| Tables { rows, ..Tables::empty(None, over, 0, time) })
}

/// What the host's operators and calls took themselves, the longest first.
fn of_host(trace: &Trace) -> Vec<Row> {
    let mut sums: BTreeMap<&str, (u64, Ns)> = BTreeMap::new();
    for sum in trace.summaries.iter().filter(|sum| sum.conditions == Conditions::Host) {
        let known = sums.entry(trace.strings.get(sum.kernel)).or_default();
        *known = (known.0.saturating_add(sum.count), known.1.saturating_add(sum.total.unwrap_or(0)));
    }
    let mut sums: Vec<_> = sums.into_iter().filter(|(_, (_, time))| *time > 0).collect();
    sums.sort_by_key(|(name, (_, time))| (Reverse(*time), *name));
    let row = |(name, (n, time)): &(&str, (u64, Ns))| match is_runtime_call(name) {
        true => Row::new(Kind::Call, *name, "host_api", *n, *time),
        false => Row::new(Kind::Host, *name, "framework_op", *n, *time),
    };
    sums.iter().take(ROWS).map(row).collect()
}

/// The calls that a profiler summed.
fn calls(trace: &Trace) -> Option<Tables> {
    let mut sums: BTreeMap<&str, (u64, Ns)> = BTreeMap::new();
    for sum in trace.stated.iter().filter(|sum| sum.what == Stated::HostCalls) {
        let Some(name) = sum.name else { continue };
        let known = sums.entry(trace.strings.get(name)).or_default();
        *known = (known.0.saturating_add(sum.count.unwrap_or(0)), known.1.saturating_add(sum.time));
    }
    let mut sums: Vec<_> = sums.into_iter().filter(|(_, (count, time))| *count > 0 && *time > 0).collect();
    sums.sort_by_key(|(name, (_, time))| (Reverse(*time), *name));
    let time = sums.iter().fold(0, |all: Ns, (_, (_, time))| all.saturating_add(*time));
    let rows = sums.iter().take(ROWS).map(|(name, (n, time))| Row::new(Kind::Call, *name, "host_api", *n, *time));
    (time > 0).then(|| Tables { rows: rows.collect(), ..Tables::empty(None, Over::Sums, 0, time) })
}

/// The steps that the analysis of a job summed: no row has a name there, and exposed communication has a share.
fn steps(trace: &Trace) -> Option<Tables> {
    let steps = &trace.job_sums.steps;
    let sum = |part| steps.iter().filter_map(|step| step.part(part)).reduce(Ns::saturating_add);
    // These three are exclusive and fill a step.
    let [computing, exposed, free] = [StepPart::Computing, StepPart::ExposedCommunication, StepPart::Free].map(sum);
    let time = [computing, exposed, free].into_iter().flatten().fold(0, Ns::saturating_add);
    let tables = Tables::empty(None, Over::Sums, steps.len(), time);
    (time > 0).then_some(Tables { exposed_communication: exposed, ..tables })
}
