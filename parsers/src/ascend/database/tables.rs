//! The tables that are read, in the order they are read: names first, because rows refer to them, then the host, whose
//! process device rows without one fall back to, then what is known of tasks, and the tasks last.

use super::{
    device, host, infos, names,
    state::{Kept, State},
};
use crate::sqlite::page::{
    Column::{self, Int, Text},
    Page,
};

/// A table of the database.
pub(super) struct Table {
    pub name: &'static str,
    pub columns: &'static [Column],
    /// What its rows become, for the ledger.
    pub becomes: &'static str,
    /// Whether its rows enter the ledger themselves, by type.
    pub own_rows: bool,
    /// Whether its rows are words that records point at, and no records: they are not counted among them.
    pub words: bool,
    pub take: fn(&mut State<'_>, &Page) -> Kept,
}

const fn table(
    name: &'static str,
    columns: &'static [Column],
    becomes: &'static str,
    take: fn(&mut State<'_>, &Page) -> Kept,
) -> Table {
    Table { name, columns, becomes, own_rows: false, words: false, take }
}

const fn words(name: &'static str, columns: &'static [Column], take: fn(&mut State<'_>, &Page) -> Kept) -> Table {
    Table { name, columns, becomes: "", own_rows: false, words: true, take }
}

const fn by_type(name: &'static str, columns: &'static [Column], take: fn(&mut State<'_>, &Page) -> Kept) -> Table {
    Table { name, columns, becomes: "", own_rows: true, words: false, take }
}

const IDS: &[Column] = &[Int("id", &[]), Text("value", None)];
const LABELS: &[Column] = &[Int("id", &[]), Text("name", None)];

/// Tables that together with `STRING_IDS` tell a database of this family.
pub(super) const MARKS: [&str; 4] = ["TASK", "CANN_API", "COMPUTE_TASK_INFO", "COMMUNICATION_OP"];

/// Every table that is read.
pub(super) const TABLES: &[Table] = &[
    words("STRING_IDS", IDS, names::strings),
    words("ENUM_HCCL_DATA_TYPE", LABELS, names::data_types),
    words("ENUM_API_TYPE", LABELS, names::levels),
    words("ENUM_API_LEVEL", LABELS, names::levels),
    table("META_DATA", names::META, "manifest, environment redacted", names::meta),
    table("NPU_INFO", LABELS, "devices", names::devices),
    table("TARGET_INFO_NPU", LABELS, "devices", names::devices),
    table("HOST_INFO", names::HOST, "manifest", names::host),
    table("SESSION_TIME_INFO", names::SESSION, "window", names::session),
    table("TARGET_INFO_SESSION_TIME", names::SESSION, "window", names::session),
    table("RANK_DEVICE_MAP", names::RANK, "rank", names::ranks),
    table("CANN_API", host::CALL, "host_api, collective_call", host::calls),
    table("API", host::CALL, "host_api, collective_call", host::calls),
    table("PYTORCH_API", host::OPERATOR, "framework_op, user_range, python_frame, host_other", host::operators),
    table("GC_RECORD", host::SPAN, "gc", host::collections),
    table("MSTX_EVENTS", host::RANGE, "user_range", host::ranges),
    table("COMPUTE_TASK_INFO", infos::COMPUTE, "facts of tasks", infos::compute),
    table("COMMUNICATION_TASK_INFO", infos::COMMUNICATION, "facts of tasks", infos::communication),
    table("MEMCPY_INFO", infos::COPY, "facts of tasks", infos::copies),
    table(
        "TASK_PMU_INFO",
        infos::PMU,
        "values of counters; kept as means by kernel, launch shape and counter",
        infos::counters,
    ),
    by_type("TASK", device::TASK, device::tasks),
    by_type("COMMUNICATION_OP", device::COLLECTIVE, device::collectives),
    table("STEP_TIME", host::STEPS, "steps, where no range of the program marks them", host::steps),
    table("AICORE_FREQ", device::FREQUENCY, "counters", device::frequencies),
    table("HBM", device::BANDWIDTH, "counters", device::bandwidths),
];

/// Tables that are known and not read, and why; a name that ends in `_` stands for all that begin so.
pub(super) const NOT_READ: &[(&str, &str)] = &[
    ("OVERLAP_ANALYSIS", "not read: derived from the tasks"),
    ("CONNECTION_IDS", "not read: the calls that operators made are found by time"),
    ("PYTORCH_CALLCHAINS", "not read: call chains of operators"),
    ("MEMORY_RECORD", "not read: memory over time"),
    ("OP_MEMORY", "not read: sizes of allocations"),
    ("NPU_OP_MEM", "not read: sizes of allocations"),
    ("NPU_MEM", "not read: memory over time"),
    ("NPU_MODULE_MEM", "not read: memory over time"),
    ("ACC_PMU", "not read: levels and latencies of buses"),
    ("SOC_BANDWIDTH_LEVEL", "not read: levels and latencies of buses"),
    ("LLC", "not read: hit rates of the last cache"),
    ("DDR", "not read: bandwidth of the host's memory"),
    ("ENUM_", "labels of values that are not read"),
    ("_COMPUTE_TASK_INFO_old_", "not read: a viewer's copy of a table"),
    ("status_info", "not read: a viewer's own"),
    ("connectionCats", "not read: a viewer's own"),
    ("sqlite_", "SQLite's own"),
];
