//! What happened on the host threads: calls of the runtime, the libraries and the operating system, the profiler's own
//! time, and the times a thread was off its processor.

use model::{Category, Detail, Ns, Severity};
use rustc_hash::FxHashMap;

use super::{
    import::{Import, Kept, MAX_TRACKS},
    page::{
        Column::{self, Int},
        Page,
    },
};
use crate::overhead;

/// `cudaErrorNotReady` and `CUDA_ERROR_NOT_READY`: the answer of a query, which CUDA's reference calls no error.
const NOT_READY: i64 = 600;

/// Columns of [`calls`].
pub(super) const RUNTIME: &[Column] = &[
    Int("start", &[]),
    Int("end", &[]),
    Int("globalTid", &[]),
    Int("nameId", &[]),
    Int("correlationId", &[]),
    Int("returnValue", &[]),
];

/// `CUPTI_ACTIVITY_KIND_RUNTIME`, which holds the calls of the runtime and of the driver interface.
pub(super) fn calls(import: &mut Import<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let [start, end, global_tid, name, correlation, result] = page.ints(row);
        let (Some(start), Some(end)) = (start, end) else {
            kept.incomplete += 1;
            continue;
        };
        let track = import.thread(global_tid);
        let name = import.names.call(&mut *import.sink, name);
        let failed = result.filter(|result| *result != 0 && *result != NOT_READY).map(Detail::Failed);
        import.slice(&mut kept, track, (start, end), name, Category::HostApi, correlation, failed.as_ref());
    }
    kept
}

/// Columns of [`os_calls`], [`library_calls`] and [`profiler_overhead`].
pub(super) const CALL: &[Column] = &[Int("start", &[]), Int("end", &[]), Int("globalTid", &[]), Int("nameId", &[])];

/// `OSRT_API`: calls of the operating system and its C library.
pub(super) fn os_calls(import: &mut Import<'_>, page: &Page) -> Kept {
    named_calls(import, page, Category::OsApi)
}

/// `CUDNN_EVENTS` and `CUBLAS_EVENTS`.
pub(super) fn library_calls(import: &mut Import<'_>, page: &Page) -> Kept {
    named_calls(import, page, Category::LibraryApi)
}

/// `PROFILER_OVERHEAD`.
pub(super) fn profiler_overhead(import: &mut Import<'_>, page: &Page) -> Kept {
    named_calls(import, page, Category::Overhead)
}

fn named_calls(import: &mut Import<'_>, page: &Page, category: Category) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let [start, end, global_tid, name] = page.ints(row);
        let (Some(start), Some(end)) = (start, end) else {
            kept.incomplete += 1;
            continue;
        };
        let track = import.thread(global_tid);
        let name = import.names.name(&mut *import.sink, name);
        import.slice(&mut kept, track, (start, end), name, category, None, None);
    }
    kept
}

/// Columns of [`overhead`].
pub(super) const OVERHEAD: &[Column] =
    &[Int("start", &[]), Int("end", &[]), Int("globalTid", &[]), Int("nameId", &[]), Int("overheadType", &[])];

/// Table of the labels of `overheadType`.
pub(super) const OVERHEAD_LABELS: &str = "ENUM_CUPTI_OVERHEAD_TYPE";

/// Labels of the kinds 0, 1, … for exports without the table of labels.
const OVERHEAD_KINDS: [&str; 9] = [
    "Undefined",
    "Unknown",
    "Driver JIT compiler (CUDA)",
    "Buffer flush (Profiler)",
    "Instrumentation (Profiler)",
    "Resource creation/destruction (Profiler)",
    "Runtime module loading (CUDA)",
    "Lazy function loading (CUDA)",
    "Command buffer full (CUDA)",
];

/// `CUPTI_ACTIVITY_KIND_OVERHEAD`, named by its kind, which says whose time it is; the call it happened in is a row of its
/// own.
pub(super) fn overhead(import: &mut Import<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let [start, end, global_tid, name, kind] = page.ints(row);
        let (Some(start), Some(end)) = (start, end) else {
            kept.incomplete += 1;
            continue;
        };
        let track = import.thread(global_tid);
        let written = kind.and_then(|kind| import.names.label(OVERHEAD_LABELS, kind));
        let label = written.or_else(|| OVERHEAD_KINDS.get(usize::try_from(kind?).ok()?).copied());
        let (name, category) = match label {
            Some(label) => (import.sink.intern(label), overhead::category(label)),
            None => (import.names.name(&mut *import.sink, name), overhead::category("unknown")),
        };
        import.slice(&mut kept, track, (start, end), name, category, None, None);
    }
    kept
}

/// When threads left their processors.
#[derive(Default)]
pub(super) struct OffCpu {
    since: FxHashMap<i64, Ns>,
}

/// Columns of [`switches`].
pub(super) const SCHED: &[Column] = &[Int("start", &[]), Int("globalTid", &[]), Int("isSchedIn", &[])];

/// `SCHED_EVENTS`: the time from a thread's switch out to its next switch in becomes one slice.
pub(super) fn switches(import: &mut Import<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    let name = import.sink.intern("off-cpu");
    for row in 0..page.rows {
        let [Some(time), Some(global_tid), Some(into)] = page.ints(row) else {
            kept.incomplete += 1;
            continue;
        };
        if into == 0 {
            if import.off_cpu.since.len() < MAX_TRACKS {
                import.off_cpu.since.insert(global_tid, time);
                kept.rows += 1;
            }
        } else if let Some(since) = import.off_cpu.since.remove(&global_tid) {
            let track = import.thread(Some(global_tid));
            import.slice(&mut kept, track, (since, time), name, Category::OsApi, None, None);
        }
    }
    kept
}

/// Counts the threads that never came back to a processor.
pub(super) fn settle_switches(import: &mut Import<'_>) {
    let open = import.off_cpu.since.len() as u64;
    import.stat("off_cpu_without_return", Severity::Info, open, None);
}
