//! What the export says of itself: versions, the machine, its GPUs, processes, threads and streams. It is collected while
//! the tables are read and told at the end, when it is known which of them took part.

use std::collections::BTreeMap;

use model::{Ns, Severity};

use super::{
    global_id::GlobalId,
    import::{Import, Kept},
    page::{
        Column::{self, Int, Text},
        Page,
    },
};
use crate::environment::Environment;

/// Most GPUs, device mappings, streams, threads or processes that are remembered.
const MAX_FACTS: usize = 1 << 16;

/// Facts collected so far.
#[derive(Default)]
pub(super) struct Facts {
    pub product: Option<String>,
    pub schema: Option<String>,
    pub simulated: bool,
    /// Whether the export holds only a part of the capture's time.
    pub cut_in_time: bool,
    pub graph_trace: Option<String>,
    pub environment: Environment,
    pub driver: Option<String>,
    pub toolkit: Option<String>,
    pub cpu: Option<String>,
    pub host: Option<String>,
    /// Wall clock of the capture's zero, Unix ns.
    pub unix_zero: Option<Ns>,
    /// Length of the capture, ns.
    pub duration: Option<Ns>,
    pub gpus: Vec<Gpu>,
    /// GPU id of a process's device ordinal, by (pid, ordinal).
    pub ordinals: BTreeMap<(i64, i64), i64>,
    pub streams: Vec<Stream>,
    /// Process names by process key; the last one is what the process became.
    pub processes: BTreeMap<u64, String>,
    /// Thread names with their priorities by global id.
    pub threads: BTreeMap<i64, (i64, String)>,
}

/// A GPU of the machine.
pub(super) struct Gpu {
    pub id: Option<i64>,
    pub ordinal: Option<i64>,
    pub name: Option<String>,
    pub memory_bytes: Option<i64>,
    pub cores: Option<u32>,
}

/// A CUDA stream.
pub(super) struct Stream {
    pub pid: Option<i64>,
    pub context: Option<i64>,
    pub id: i64,
    pub priority: Option<i64>,
    pub kind: Option<i64>,
}

fn each_row(page: &Page, mut take: impl FnMut(usize) -> Option<()>) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        match take(row) {
            Some(()) => kept.rows += 1,
            None => kept.incomplete += 1,
        }
    }
    kept
}

/// Columns of [`export`] and [`capture`].
pub(super) const META: &[Column] = &[Text("name", None), Text("value", None)];

/// `META_DATA_EXPORT`, or `EXPORT_META_DATA` before schema 3.7.
pub(super) fn export(import: &mut Import<'_>, page: &Page) -> Kept {
    each_row(page, |row| {
        let (name, value) = (page.inline(0, row)?, page.inline(1, row).unwrap_or_default());
        let facts = &mut import.facts;
        match name {
            "EXPORT_PRODUCT_VERSION" => facts.product = Some(value.to_owned()),
            "EXPORT_SCHEMA_VERSION" => facts.schema = Some(value.to_owned()),
            "EXPORT_PARAM_TIMES_TO_EXPORT" => facts.cut_in_time = !value.is_empty(),
            crate::simulated::LABEL => facts.simulated = value == "true",
            _ => {}
        }
        Some(())
    })
}

/// `META_DATA_CAPTURE`. Command lines stay out: they can hold secrets.
pub(super) fn capture(import: &mut Import<'_>, page: &Page) -> Kept {
    each_row(page, |row| {
        let (name, value) = (page.inline(0, row)?, page.inline(1, row).unwrap_or_default());
        if name.ends_with("ENVIRONMENT_VARIABLE") {
            import.facts.environment.take(value);
        } else if name.ends_with("CUDA_GRAPH_TRACE_OPTIONS:MODE") {
            import.facts.graph_trace = Some(value.to_lowercase()).filter(|mode| mode == "graph" || mode == "node");
        }
        Some(())
    })
}

/// Columns of [`system`].
pub(super) const SYSTEM: &[Column] = &[Text("name", None), Text("value", None)];

/// `TARGET_INFO_SYSTEM_ENV`.
pub(super) fn system(import: &mut Import<'_>, page: &Page) -> Kept {
    each_row(page, |row| {
        let (name, value) = (page.inline(0, row)?, page.inline(1, row)?);
        let facts = &mut import.facts;
        match name {
            "NvDriverVersion" => facts.driver = Some(value.to_owned()),
            "CudaDriverVersion" => facts.toolkit = cuda_version(value),
            "CpuDescription" => facts.cpu = Some(value.to_owned()),
            "Hostname" => facts.host = Some(value.to_owned()),
            // The same variables as the capture's own list, which has one of them in each row.
            "DeviceEnvironment" if facts.environment.is_empty() => {
                value.split([';', '\n']).for_each(|line| facts.environment.take(line));
            }
            _ => {}
        }
        Some(())
    })
}

/// `12000` is CUDA 12.0, the newest that the driver supports.
fn cuda_version(value: &str) -> Option<String> {
    let number: u32 = value.trim().parse().ok().filter(|number| *number >= 1000)?;
    Some(format!("CUDA {}.{} (driver)", number / 1000, number % 1000 / 10))
}

/// Columns of [`session`].
pub(super) const SESSION: &[Column] = &[Int("utcEpochNs", &[])];

/// `TARGET_INFO_SESSION_START_TIME`.
pub(super) fn session(import: &mut Import<'_>, page: &Page) -> Kept {
    each_row(page, |row| {
        let zero = page.int(0, row)?;
        import.facts.unix_zero.get_or_insert(zero);
        Some(())
    })
}

/// Columns of [`details`]. `startTime` is on another clock than the events and must not be used with them.
pub(super) const DETAILS: &[Column] = &[Int("duration", &[])];

/// `ANALYSIS_DETAILS`.
pub(super) fn details(import: &mut Import<'_>, page: &Page) -> Kept {
    each_row(page, |row| {
        let duration = page.int(0, row)?;
        import.facts.duration = import.facts.duration.max(Some(duration));
        Some(())
    })
}

/// Columns of [`gpus`].
pub(super) const GPU: &[Column] =
    &[Int("id", &[]), Int("cuDevice", &[]), Int("totalMemory", &[]), Int("smCount", &[]), Text("name", None)];

/// `TARGET_INFO_GPU`.
pub(super) fn gpus(import: &mut Import<'_>, page: &Page) -> Kept {
    each_row(page, |row| {
        let [id, ordinal, memory_bytes, cores] = page.ints(row);
        let name = page.inline(4, row).map(str::to_owned);
        let cores = cores.and_then(|cores| u32::try_from(cores).ok());
        (import.facts.gpus.len() < MAX_FACTS).then_some(())?;
        import.facts.gpus.push(Gpu { id, ordinal, name, memory_bytes, cores });
        Some(())
    })
}

/// Columns of [`cuda_devices`].
pub(super) const CUDA_DEVICE: &[Column] = &[Int("gpuId", &[]), Int("cudaId", &[]), Int("pid", &[])];

/// `TARGET_INFO_CUDA_DEVICE`: which GPU a process means by a device ordinal.
pub(super) fn cuda_devices(import: &mut Import<'_>, page: &Page) -> Kept {
    each_row(page, |row| {
        let [Some(gpu), Some(ordinal), Some(pid)] = page.ints(row) else { return None };
        (import.facts.ordinals.len() < MAX_FACTS).then_some(())?;
        import.facts.ordinals.insert((pid, ordinal), gpu);
        Some(())
    })
}

/// Columns of [`contexts`].
pub(super) const CONTEXT: &[Column] =
    &[Int("hwId", &[]), Int("vmId", &[]), Int("processId", &[]), Int("deviceId", &[]), Int("contextId", &[])];

/// `TARGET_INFO_CUDA_CONTEXT_INFO`, or `TARGET_INFO_CUDA_NULL_STREAM` before schema 3.7.
pub(super) fn contexts(import: &mut Import<'_>, page: &Page) -> Kept {
    each_row(page, |row| {
        let [hardware, machine, Some(pid), Some(device), Some(context)] = page.ints(row) else { return None };
        let process = process_key(hardware, machine, pid);
        import.queues.context(process, context, device);
        Some(())
    })
}

/// The key of a process whose id is given in parts.
fn process_key(hardware: Option<i64>, machine: Option<i64>, pid: i64) -> u64 {
    let part = |value: i64, bits: u32| value.cast_unsigned() & ((1 << bits) - 1);
    part(hardware.unwrap_or_default(), 8) << 56 | part(machine.unwrap_or_default(), 8) << 48 | part(pid, 24) << 24
}

/// Columns of [`streams`].
pub(super) const STREAM: &[Column] =
    &[Int("streamId", &[]), Int("processId", &[]), Int("contextId", &[]), Int("priority", &[]), Int("flag", &[])];

/// `TARGET_INFO_CUDA_STREAM`.
pub(super) fn streams(import: &mut Import<'_>, page: &Page) -> Kept {
    each_row(page, |row| {
        let [Some(id), pid, context, priority, kind] = page.ints(row) else { return None };
        (import.facts.streams.len() < MAX_FACTS).then_some(())?;
        import.facts.streams.push(Stream { pid, context, id, priority, kind });
        Some(())
    })
}

/// Columns of [`processes`].
pub(super) const PROCESS: &[Column] = &[Int("globalPid", &[]), Text("name", None)];

/// `PROCESSES`, which lists every process that ever ran, compilers and profilers included.
pub(super) fn processes(import: &mut Import<'_>, page: &Page) -> Kept {
    each_row(page, |row| {
        let (id, name) = (page.int(0, row)?, page.inline(1, row)?);
        (import.facts.processes.len() < MAX_FACTS && import.within_file(name.len())).then_some(())?;
        import.facts.processes.insert(GlobalId::new(id).process(), name.to_owned());
        Some(())
    })
}

/// Columns of [`threads`].
pub(super) const THREAD: &[Column] = &[Int("globalTid", &[]), Int("nameId", &[]), Int("priority", &[])];

/// `ThreadNames`: of several names of a thread, the one of the highest priority holds.
pub(super) fn threads(import: &mut Import<'_>, page: &Page) -> Kept {
    each_row(page, |row| {
        let [Some(id), Some(name), priority] = page.ints(row) else { return None };
        let priority = priority.unwrap_or_default();
        let known = import.facts.threads.get(&id).is_some_and(|(known, _)| *known >= priority);
        if !known && import.facts.threads.len() < MAX_FACTS {
            let name = import.names.text(name)?.to_owned();
            import.within_file(name.len()).then(|| import.facts.threads.insert(id, (priority, name)))?;
        }
        Some(())
    })
}

/// Parts of an error of the profiler that only samples of the host, or events of graphics, are missing (texts of Nsight Systems
/// 2023 to 2025): what the program computes with is whole.
const ELSEWHERE: [&str; 10] = [
    "event source Perf:",
    "CPU IP/backtrace samples",
    "context switch data",
    "OpenGL",
    "Vulkan",
    "OpenXR",
    "DirectX",
    "DX11",
    "DX12",
    "Direct3D",
];

/// That migrations of managed memory are not traced: kernels and copies are.
const MANAGED: &str = "Unified Memory cannot be traced";

/// Columns of [`diagnostics`].
pub(super) const DIAGNOSTIC: &[Column] = &[Int("severity", &[]), Text("text", None)];

/// `DIAGNOSTIC_EVENT`: what the profiler warned of. Severities as in `ENUM_DIAGNOSTIC_SEVERITY_LEVEL`.
pub(super) fn diagnostics(import: &mut Import<'_>, page: &Page) -> Kept {
    each_row(page, |row| {
        let severity = page.int(0, row)?;
        // Texts have several lines; they are shown in one.
        let text = page.inline(1, row).map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
        let text = text.as_deref();
        let elsewhere = |text: &str| {
            text.contains(MANAGED) || ELSEWHERE.iter().any(|part| text.contains(part)) && !text.contains("CUDA")
        };
        match severity {
            3 if text.is_some_and(elsewhere) => import.stat("profiler_warning", Severity::Notice, 1, text),
            2 if text.is_some_and(|text| text.contains("driver version") && text.contains("not supported")) => {
                import.stat("unsupported_driver", Severity::Notice, 1, text);
            }
            2 => import.stat("profiler_warning", Severity::Notice, 1, text),
            3 => import.stat("profiler_error", Severity::Error, 1, text),
            _ => {}
        }
        Some(())
    })
}
