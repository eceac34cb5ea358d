//! What happened on the host threads: calls of the runtime, the libraries and the operating system, the profiler's own
//! time, and the times a thread was off its processor.

use model::{Category, Detail, Ns, Severity};

use super::{
    import::{Import, Kept},
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

/// Threads that leave their processors and come back. Their table is not in the order of time, so they are kept until all of it is
/// read.
#[derive(Default)]
pub(super) struct OffCpu {
    /// Thread, time, and whether it came back then.
    switches: Vec<(i64, Ns, bool)>,
    /// Rows beyond [`MAX_SWITCHES`].
    refused: u64,
}

/// Rows that are kept until they are sorted, which take half a gigabyte; a host with 64 busy cores writes so many in an hour.
const MAX_SWITCHES: usize = 1 << 24;

/// Columns of [`switches`].
pub(super) const SCHED: &[Column] = &[Int("start", &[]), Int("globalTid", &[]), Int("isSchedIn", &[])];

/// `SCHED_EVENTS`: the time from a thread's switch out to its next switch in becomes one slice.
pub(super) fn switches(import: &mut Import<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        match page.ints(row) {
            [Some(time), Some(global_tid), Some(into)] if import.off_cpu.switches.len() < MAX_SWITCHES => {
                import.off_cpu.switches.push((global_tid, time, into != 0));
            }
            [Some(_), Some(_), Some(_)] => import.off_cpu.refused += 1,
            _ => kept.incomplete += 1,
        }
    }
    kept
}

/// Makes slices of the times off the processors, and counts the threads that never came back to one.
pub(super) fn settle_switches(import: &mut Import<'_>) {
    let mut switches = std::mem::take(&mut import.off_cpu.switches);
    // Of two at one time a thread came back before it left again.
    switches.sort_unstable_by_key(|(thread, time, into)| (*thread, *time, !*into));
    let mut kept = Kept::default();
    let mut open = 0;
    let name = if switches.is_empty() { None } else { Some(import.sink.intern("off-cpu")) };
    for (i, (thread, since, into)) in switches.iter().enumerate().filter(|(_, (_, _, into))| !into) {
        match switches.get(i + 1).filter(|(other, _, back)| other == thread && *back && !into) {
            Some((_, until, _)) => {
                let Some(name) = name else { continue };
                let track = import.thread(Some(*thread));
                import.slice(&mut kept, track, (*since, *until), name, Category::OsApi, None, None);
                // The row of the way out and that of the way back.
                kept.rows += 1;
            }
            None => open += 1,
        }
    }
    if kept.rows > 0 {
        import.sink.ledger("SCHED_EVENTS", 0, kept.rows, kept.time, "os_api: times off the processor");
    }
    import.stat("off_cpu_without_return", Severity::Info, open, None);
    import.stat("switches_not_kept", Severity::DataLoss, import.off_cpu.refused, None);
}
