//! The kinds of tables, told by their columns, in the order they are read: agents first, because rows refer to them, then
//! the host, whose rows say the process, then the devices.

use std::borrow::Cow;

use model::Ns;

use super::{agents::Agent, import::Import};
use crate::{csv_table::Row, hip};

/// Takes a row: its start and end, `None` when it lacks what it cannot be placed without.
type Take = fn(&mut Import<'_>, Row<'_>) -> Option<(Ns, Ns)>;

/// A kind of table.
pub(super) struct Kind {
    /// Columns that it alone has together.
    pub marks: &'static [&'static str],
    /// The columns that are read, in the order in which `take` counts them.
    pub columns: &'static [&'static str],
    /// What its rows become, for the ledger.
    pub becomes: &'static str,
    /// Absent for tables that are counted only.
    pub take: Option<Take>,
    /// Whether it has a column for each counter.
    pub wide: bool,
}

const fn kind(
    marks: &'static [&'static str],
    columns: &'static [&'static str],
    becomes: &'static str,
    take: Take,
) -> Kind {
    Kind { marks, columns, becomes, take: Some(take), wide: false }
}

const fn counted(marks: &'static [&'static str], why: &'static str) -> Kind {
    Kind { marks, columns: &[], becomes: why, take: None, wide: false }
}

/// Every kind of table.
pub(super) const KINDS: &[Kind] = &[
    kind(&["node_id", "logical_node_id", "agent_type"], AGENT, "devices", agent),
    kind(&["workload_name", "gpu_arch", "cu_per_gpu"], SYSTEM, "devices and versions", system),
    kind(&["device", "hbmbw", "l2bw"], ROOFLINE, "measured ceilings", roofline),
    kind(
        &["domain", "function", "correlation_id", "start_timestamp"],
        CALL,
        "host_api; user_range of markers, collective_call of RCCL",
        call,
    ),
    kind(&["counter_name", "counter_value"], COUNTER, "measurements of kernels", counter),
    Kind {
        wide: true,
        ..kind(&["gpu_id", "grid_size", "workgroup_size", "start_timestamp"], REPEATED, "kernel", repeated)
    },
    kind(&["kernel_name", "dispatch_id", "start_timestamp", "end_timestamp"], KERNEL, "kernel", kernel),
    kind(&["direction", "source_agent_id", "start_timestamp"], COPY, "memcpy", copy),
    counted(&["operation", "allocation_size", "start_timestamp"], "not kept: the calls that allocated are host calls"),
    counted(&["operation", "alloc_flags", "start_timestamp"], "not kept: scratch memory, no work"),
    counted(&["name", "calls", "totaldurationns", "stddev"], "not kept: sums of other tables"),
    counted(&["kernel_name", "count", "sum(ns)"], "not kept: sums of pmc_perf"),
    counted(&["dispatch_id", "kernel_name", "gpu_id"], "not kept: the names stand in pmc_perf"),
];

/// The kind of the table with this header, in lower case, and its place in the order of reading.
pub(super) fn of(header: &[String]) -> Option<(usize, &'static Kind)> {
    KINDS.iter().enumerate().find(|(_, kind)| crate::csv_table::has_all(header, kind.marks))
}

/// Columns of [`agent`].
const AGENT: &[&str] = &[
    "agent_type",
    "product_name",
    "model_name",
    "name",
    "cu_count",
    "node_id",
    "logical_node_id",
    "logical_node_type_id",
];

/// `agent_info`.
fn agent(import: &mut Import<'_>, row: Row<'_>) -> Option<(Ns, Ns)> {
    let kind = row.text(0)?;
    let names = [1, 2, 3].map(|cell| row.text(cell).filter(|name| name != "0" && name != "N/A"));
    let [cores, node, logical, of_kind] = row.ints(4);
    import.agents.add(Agent {
        gpu: kind == "GPU" || kind == "2",
        name: names.into_iter().flatten().next().map(Cow::into_owned),
        cores: cores.and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0),
        node,
        logical,
        of_kind,
    });
    Some((0, 0))
}

/// Columns of [`call`].
const CALL: &[&str] =
    &["start_timestamp", "end_timestamp", "process_id", "thread_id", "correlation_id", "domain", "function"];

/// `*_api_trace`. The domain says what called: the runtime, the code a compiler inserts, HSA below it, RCCL, or the
/// program's own markers, whose text stands where others have the function.
fn call(import: &mut Import<'_>, row: Row<'_>) -> Option<(Ns, Ns)> {
    let [start, end, pid, thread, correlation] = row.ints(0);
    let (times, domain, name) = ((start?, end?), row.text(5).unwrap_or_default(), row.text(6)?);
    import.call(times, (pid, thread), correlation, &domain, &name);
    Some(times)
}

/// Columns of [`kernel`].
const KERNEL: &[&str] = &[
    "start_timestamp",
    "end_timestamp",
    "process_id",
    "queue_id",
    "correlation_id",
    "workgroup_size_x",
    "workgroup_size_y",
    "workgroup_size_z",
    "grid_size_x",
    "grid_size_y",
    "grid_size_z",
    "agent_id",
    "kernel_name",
    "stream_id",
    "dispatch_id",
];

/// `kernel_trace`.
fn kernel(import: &mut Import<'_>, row: Row<'_>) -> Option<(Ns, Ns)> {
    let [start, end, pid, queue, correlation] = row.ints(0);
    let (times, name) = ((start?, end?), row.text(12)?);
    let device = row.text(11).and_then(|cell| import.agents.device(&cell));
    let (block, items) = (row.ints(5), row.ints(8));
    let [stream, dispatch] = row.ints(13);
    // A row that stands twice is read, and its kernel is kept once.
    if dispatch.is_some_and(|dispatch| !import.numbered(pid, dispatch, times.0)) {
        return Some((times.0, times.0));
    }
    import.kernel(times, pid, (device, queue, stream), correlation, (items, block), &name);
    Some(times)
}

/// Columns of [`repeated`].
const REPEATED: &[&str] =
    &["start_timestamp", "end_timestamp", "gpu_id", "correlation_id", "grid_size", "workgroup_size", "kernel_name"];

/// `pmc_perf` of rocprof-compute, which repeats a run once for each set of counters. Its times are means over the repeats, with
/// fractions of a nanosecond, and kernels ran one after the other: how long each took is known, and not how the run went.
fn repeated(import: &mut Import<'_>, row: Row<'_>) -> Option<(Ns, Ns)> {
    let (times, name) = ((row.decimal(0, 0)?, row.decimal(1, 0)?), row.text(6)?);
    let [gpu, correlation, items, block] = row.ints(2);
    let total = |n: Option<i64>| [n, n.map(|_| 1), n.map(|_| 1)];
    let device = gpu.and_then(|gpu| import.agents.device(&format!("GPU {gpu}")));
    let shape = (total(items), total(block));
    let kernel = match import.again {
        true => import.shaped(&name, shape),
        false => import.kernel(times, None, (device, None, None), correlation, shape, &name),
    };
    if let Some(means) = &mut import.means {
        means.add(kernel, times.1.saturating_sub(times.0).max(0), row);
    }
    import.alone += u64::from(!import.again);
    Some(times)
}

/// Columns of [`system`].
const SYSTEM: &[&str] = &["cu_per_gpu", "gpu_model", "gpu_arch", "rocm_version", "hbm_bw"];
/// Most GPUs of a machine.
const MAX_GPUS: i64 = 64;

/// `sysinfo` of rocprof-compute: one row for a machine whose GPUs are alike.
fn system(import: &mut Import<'_>, row: Row<'_>) -> Option<(Ns, Ns)> {
    let [cores] = row.ints(0);
    let model = [1, 2].into_iter().find_map(|cell| row.text(cell))?;
    // It adds the stepping to the model (`MI300X_A1`) and leaves away what other profilers begin with.
    let model = model.split('_').next().unwrap_or_default();
    let name = if model.starts_with("MI") { format!("AMD Instinct {model}") } else { model.to_owned() };
    for of_kind in 0..MAX_GPUS {
        let cores = cores.and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
        let known = Agent { gpu: true, name: Some(name.clone()), cores, ..Agent::default() };
        import.agents.add(Agent { of_kind: Some(of_kind), ..known });
    }
    // What the tool computes of clock and bus width, GB/s.
    if let Some(rate) = row.number(4).filter(|rate| *rate > 0.0) {
        let rate = format!("{:.0}", rate * 1e9);
        import.sink.manifest("hardware.memory_bandwidth", &rate, model::Provenance::Observed);
    }
    if let Some(version) = row.text(3) {
        import.sink.manifest("software.rocm", &version, model::Provenance::Observed);
    }
    Some((0, 0))
}

/// Columns of [`roofline`]: bandwidth in GB/s, then arithmetic of the matrix cores in Gflop/s.
const ROOFLINE: &[&str] = &["hbmbw", "mfmaf16flops", "mfmabf16flops", "mfmaf32flops", "mfmaf64flops"];

/// `roofline` of rocprof-compute, which its own micro-benchmarks measured: a row for each device of the machine.
fn roofline(import: &mut Import<'_>, row: Row<'_>) -> Option<(Ns, Ns)> {
    let measured = std::array::from_fn(|cell| row.number(cell).filter(|rate| *rate > 0.0));
    measured.iter().any(Option::is_some).then(|| import.ceilings.push(measured))?;
    Some((0, 0))
}

/// Columns of [`copy`].
const COPY: &[&str] = &[
    "start_timestamp",
    "end_timestamp",
    "process_id",
    "stream_id",
    "correlation_id",
    "direction",
    "source_agent_id",
    "destination_agent_id",
];

/// `memory_copy_trace`, which has no sizes.
fn copy(import: &mut Import<'_>, row: Row<'_>) -> Option<(Ns, Ns)> {
    let [start, end, pid, stream, correlation] = row.ints(0);
    let times = (start?, end?);
    let direction = row.text(5).and_then(|text| hip::direction(&text));
    let agents = [6, 7].map(|cell| row.text(cell).and_then(|cell| import.agents.device(&cell)));
    import.copy(times, pid, (agents, stream), correlation, direction, None);
    Some(times)
}

/// Columns of [`counter`].
const COUNTER: &[&str] = &[
    "start_timestamp",
    "end_timestamp",
    "process_id",
    "dispatch_id",
    "grid_size",
    "workgroup_size",
    "kernel_name",
    "counter_name",
    "counter_value",
];

/// `counter_collection`: a row for each counter of each dispatch. While counters are read kernels run one after the other,
/// so the rows are no timeline; their sizes are totals.
fn counter(import: &mut Import<'_>, row: Row<'_>) -> Option<(Ns, Ns)> {
    let [start, end, pid, dispatch, items, block] = row.ints(0);
    let (times, name, counter) = ((start?, end?), row.text(6)?, row.text(7)?);
    import.counter(times, (pid, dispatch?), (items, block), &name, row.number(8).map(|value| (&*counter, value)));
    Some((0, 0))
}
