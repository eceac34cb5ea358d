//! The tables that are read, in the order they are read: names first, because rows refer to them, then the host, whose
//! processes device rows without one fall back to, then the devices, and ranges last.

use super::{
    counters, device, facts, host,
    import::{Import, Kept},
    names, nvtx,
    page::{
        Column::{self, Int, Text},
        Page,
    },
};

/// A table of the export.
pub(super) struct Table {
    /// Its name.
    pub name: &'static str,
    /// The columns that are read.
    pub columns: &'static [Column],
    /// What its rows become, for the ledger.
    pub becomes: &'static str,
    /// Takes a page of its rows.
    pub take: fn(&mut Import<'_>, &Page) -> Kept,
}

const LABELS: &[Column] = &[Int("id", &[]), Text("label", None)];

const fn table(
    name: &'static str,
    columns: &'static [Column],
    becomes: &'static str,
    take: fn(&mut Import<'_>, &Page) -> Kept,
) -> Table {
    Table { name, columns, becomes, take }
}

/// Every table that is read.
pub(super) const TABLES: &[Table] = &[
    table("StringIds", &[Int("id", &[]), Text("value", None)], "names", names::strings),
    table(device::COPY_LABELS, LABELS, "labels", names::labels),
    table(device::MEMORY_LABELS, LABELS, "labels", names::labels),
    table(host::OVERHEAD_LABELS, LABELS, "labels", names::labels),
    table("META_DATA_EXPORT", facts::META, "manifest", facts::export),
    table("EXPORT_META_DATA", facts::META, "manifest", facts::export),
    table("META_DATA_CAPTURE", facts::META, "manifest, environment redacted", facts::capture),
    table("TARGET_INFO_SYSTEM_ENV", facts::SYSTEM, "manifest, environment redacted", facts::system),
    table("TARGET_INFO_SESSION_START_TIME", facts::SESSION, "clock", facts::session),
    table("ANALYSIS_DETAILS", facts::DETAILS, "window", facts::details),
    table("TARGET_INFO_GPU", facts::GPU, "devices", facts::gpus),
    table("TARGET_INFO_CUDA_DEVICE", facts::CUDA_DEVICE, "devices", facts::cuda_devices),
    table("TARGET_INFO_CUDA_STREAM", facts::STREAM, "track names", facts::streams),
    table("PROCESSES", facts::PROCESS, "processes", facts::processes),
    table("ThreadNames", facts::THREAD, "track names", facts::threads),
    table("DIAGNOSTIC_EVENT", facts::DIAGNOSTIC, "statistics", facts::diagnostics),
    table("CUPTI_ACTIVITY_KIND_RUNTIME", host::RUNTIME, "host_api", host::calls),
    table("CUPTI_ACTIVITY_KIND_KERNEL", device::KERNEL, "kernel", device::kernels),
    table(
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        device::MEMCPY,
        "memcpy; device_other where managed memory migrates",
        device::copies,
    ),
    table("CUDA_UM_CPU_PAGE_FAULT_EVENTS", device::FAULT, "statistics", device::faults),
    table("CUDA_UM_GPU_PAGE_FAULT_EVENTS", device::FAULT, "statistics", device::faults),
    table("CUPTI_ACTIVITY_KIND_MEMSET", device::MEMSET, "memset", device::fills),
    table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", device::GRAPH, "graph_exec", device::graphs),
    // After the work, which says on which device a context lives more reliably.
    table("TARGET_INFO_CUDA_CONTEXT_INFO", facts::CONTEXT, "devices of contexts", facts::contexts),
    table("TARGET_INFO_CUDA_NULL_STREAM", facts::CONTEXT, "devices of contexts", facts::contexts),
    table("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", device::SYNCHRONIZATION, "device_sync", device::waits),
    table("CUPTI_ACTIVITY_KIND_CUDA_EVENT", device::CUDA_EVENT, "device_event, where they have a time", device::events),
    table(
        "CUPTI_ACTIVITY_KIND_OVERHEAD",
        host::OVERHEAD,
        "overhead where it is the profiler's, else host_other",
        host::overhead,
    ),
    table("PROFILER_OVERHEAD", host::CALL, "overhead", host::profiler_overhead),
    table("CUDNN_EVENTS", host::CALL, "library_api", host::library_calls),
    table("CUBLAS_EVENTS", host::CALL, "library_api", host::library_calls),
    table("OSRT_API", host::CALL, "os_api", host::os_calls),
    table("SCHED_EVENTS", host::SCHED, "os_api: times off the processor", host::switches),
    table("TARGET_INFO_GPU_METRICS", counters::METRIC_NAMES, "counter names", counters::metric_names),
    table("GPU_METRICS", counters::METRICS, "counters", counters::metrics),
    table("CUDA_GPU_MEMORY_USAGE_EVENTS", counters::MEMORY, "counters", counters::memory),
    table(
        "NVTX_EVENTS",
        nvtx::NVTX,
        "user_range; framework_op and collective_call where a range names one",
        nvtx::events,
    ),
];

/// Tables with events that are counted and not read, and why.
pub(super) const NOT_READ: &[(&str, &str)] = &[
    ("COMPOSITE_EVENTS", "not kept: samples of the processor, not intervals"),
    ("SAMPLING_CALLCHAINS", "not kept: call chains of samples"),
    ("OSRT_CALLCHAINS", "not kept: call chains of calls"),
    ("CUDA_CALLCHAINS", "not kept: call chains of calls"),
    ("CUDA_GRAPH_EVENTS", "not kept: creation of graphs"),
    ("CUDA_GRAPH_NODE_EVENTS", "not kept: creation of graph nodes"),
    ("ProcessStreams", "not kept: output of the program, which can hold secrets"),
    ("ANALYSIS_FILE", "not kept: files of the profiler's own"),
];

/// Why a table with times is not read that this version does not know.
pub(super) const UNKNOWN: &str = "not read: unknown to this version";
