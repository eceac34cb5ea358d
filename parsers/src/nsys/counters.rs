//! Samples: performance counters of the GPUs, and the device memory that processes hold.

use model::{Severity, StringId};
use rustc_hash::FxHashMap;

use super::{
    import::{Import, Kept, MACHINE, MAX_TRACKS},
    page::{
        Column::{self, Int, Real, Text},
        Page, Text as Cell,
    },
};

/// Names of metrics and the memory held.
#[derive(Default)]
pub(super) struct Counters {
    metrics: FxHashMap<(i64, i64), (StringId, &'static str)>,
    memory: FxHashMap<(u64, Option<i32>, Option<i64>), i64>,
}

/// Columns of [`metric_names`].
pub(super) const METRIC_NAMES: &[Column] = &[Int("typeId", &[]), Int("metricId", &[]), Text("metricName", None)];

/// `TARGET_INFO_GPU_METRICS`. The ids differ between files; the names do not.
pub(super) fn metric_names(import: &mut Import<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let (Some(kind), Some(metric), Some(name)) = (page.int(0, row), page.int(1, row), page.inline(2, row)) else {
            kept.incomplete += 1;
            continue;
        };
        let unit = if name.contains('%') { "%" } else { "" };
        let Some(id) = import.text(Some(Cell::Inline(name))) else { continue };
        if import.counters.metrics.len() < MAX_TRACKS {
            import.counters.metrics.insert((kind, metric), (id, unit));
            kept.rows += 1;
        }
    }
    kept
}

/// Columns of [`metrics`].
pub(super) const METRICS: &[Column] = &[Int("timestamp", &[]), Int("typeId", &[]), Int("metricId", &[]), Real("value")];

/// `GPU_METRICS`. The low byte of the type id is the GPU as the machine numbers it, which is no process's ordinal.
pub(super) fn metrics(import: &mut Import<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    let machine = import.process(MACHINE);
    let mut unnamed = 0;
    for row in 0..page.rows {
        let ([Some(time), Some(kind), Some(metric)], Some(value)) = (page.ints(row), page.real(3, row)) else {
            kept.incomplete += 1;
            continue;
        };
        let Some((name, unit)) = import.counters.metrics.get(&(kind, metric)).copied() else {
            unnamed += 1;
            continue;
        };
        let gpu = i32::try_from(kind & 0xFF).ok();
        import.sink.counter(machine, gpu, name, unit, time, value);
        kept.rows += 1;
    }
    import.stat("metric_without_name", Severity::DataLoss, unnamed, None);
    kept
}

/// Columns of [`memory`].
pub(super) const MEMORY: &[Column] = &[
    Int("start", &["timestamp"]),
    Int("globalPid", &[]),
    Int("deviceId", &[]),
    Int("memKind", &[]),
    Int("memoryOperationType", &[]),
    Int("bytes", &[]),
];

/// `memoryOperationType` of an allocation and of its release. Source: `ENUM_CUDA_DEV_MEM_EVENT_OPER`.
const ALLOCATION: i64 = 0;
const RELEASE: i64 = 1;

/// `CUDA_GPU_MEMORY_USAGE_EVENTS`: the bytes that a process holds of each kind of memory since the capture began. What it
/// held before is unknown, so the sum can be negative.
pub(super) fn memory(import: &mut Import<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let [time, global_pid, device, kind, operation, bytes] = page.ints(row);
        let change = match (operation, bytes) {
            (Some(ALLOCATION), Some(bytes)) => bytes,
            (Some(RELEASE), Some(bytes)) => bytes.saturating_neg(),
            _ => {
                kept.incomplete += 1;
                continue;
            }
        };
        let Some(time) = time else {
            kept.incomplete += 1;
            continue;
        };
        let (key, process) = import.process_of_row(global_pid);
        let device = device.and_then(|device| i32::try_from(device).ok());
        let name = format!("allocated {} memory", import.memory_kind_label(kind).as_deref().unwrap_or("unknown"));
        let name = import.sink.intern(&name);
        let memory = &mut import.counters.memory;
        if memory.len() >= MAX_TRACKS && !memory.contains_key(&(key, device, kind)) {
            kept.incomplete += 1;
            continue;
        }
        let held = memory.entry((key, device, kind)).or_default();
        *held = held.saturating_add(change);
        let held = *held;
        // Below 2^53 bytes the conversion is exact.
        import.sink.counter(process, device, name, "B", time, held as f64);
        kept.rows += 1;
    }
    kept
}
