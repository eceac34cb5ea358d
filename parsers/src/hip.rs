//! What the profilers of HIP programs have in common: how they spell kernels, sizes and directions, and what they tell of
//! the machine.

use std::{collections::BTreeSet, path::Path};

use model::{Category, Conditions, KernelSummary, Ns, Provenance, Severity, Stated, StatedSum, StringId, TraceSink};

use crate::csv_table::Table;

pub(crate) mod counters;

/// A kernel's name without what the code object adds to it: `.kd` (kernel descriptor), also as the compiler's clone mark.
pub(crate) fn kernel_name(name: &str) -> &str {
    let name = name.trim_end();
    let name = [" [clone .kd]", " (.kd)"].iter().find_map(|mark| name.strip_suffix(mark)).unwrap_or(name);
    name.strip_suffix(".kd").unwrap_or(name)
}

/// Whether a name is that of a call of RCCL, rocDecode or rocJPEG: its kernels are called `ncclDevKernel_…` and the like.
pub(crate) fn is_library_call(name: &str) -> bool {
    let rccl = name.strip_prefix("nccl").and_then(|rest| rest.chars().next()).is_some_and(char::is_uppercase);
    rccl && !name.contains("Kernel") || name.starts_with("rocDec") || name.starts_with("rocJpeg")
}

/// Names of sums by kernel, of how often and of the time: `pmc_kernel_top.csv`, `*_kernel_stats.csv`, `*.stats.csv`.
const SUMS: [&str; 3] = ["kernel_name|name", "count|calls", "sum(ns)|totaldurationns"];
/// What the names of host calls begin with; tables of their sums have the same columns.
const CALLS: [&str; 3] = ["__hip", "hsa_", "roctx"];

/// Whether a name is that of a call of HIP, HSA or ROCTX: those of HIP go on with a capital letter, other than the kernels of a
/// program that are called `hip_…` or `hipcub::…`.
pub(crate) fn is_call(name: &str) -> bool {
    let of_hip = name.strip_prefix("hip").and_then(|rest| rest.chars().next()).is_some_and(char::is_uppercase);
    of_hip || CALLS.iter().any(|prefix| name.starts_with(prefix))
}

/// What the names of hardware counters begin with, by their block. While they are read, kernels run one after the other and
/// several runs are merged, so that the rows are no timeline.
const COUNTERS: &[&str] = &[
    "sq_",
    "sqc_",
    "grbm_",
    "tcc_",
    "tcp_",
    "ta_",
    "td_",
    "spi_",
    "cpc_",
    "cpf_",
    "fetch_size",
    "write_size",
    "l2cachehit",
];

/// Whether a column, in lower case, holds a hardware counter.
pub(crate) fn is_counter(column: &str) -> bool {
    COUNTERS.iter().any(|block| column.starts_with(block))
}

/// Tells what the profiler summed of the kernels in a table beside the capture, where it has one.
pub(crate) fn tell_sums(path: &Path, sink: &mut dyn TraceSink) {
    if !path.is_file() {
        return;
    }
    let has = |header: &[String], names: &str| names.split('|').any(|name| header.iter().any(|column| column == name));
    let Ok(mut table) = Table::open(path, |header| SUMS.iter().all(|names| has(header, names))) else { return };
    table.select(&SUMS);
    let (mut rows, mut count, mut time): (u64, u64, Ns) = (0, 0, 0);
    while let Ok(Some(row)) = table.next(&|_, _| {}) {
        let Some(name) = row.text(0).filter(|name| !is_call(name)) else { continue };
        let Some((n, ns)) = row.int(1).and_then(|n| u64::try_from(n).ok()).zip(row.decimal(2, 0)) else { continue };
        if crate::nccl::collective(&name).is_none() {
            (count, time) = (count.saturating_add(n), time.saturating_add(ns.max(0)));
        }
        rows += 1;
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    sink.ledger(&name, rows, 0, time, "a sum that the profiler made, for comparison");
    if rows > 0 {
        let source = sink.intern(&name);
        sink.stated(StatedSum { process: None, source, what: Stated::Kernels, name: None, count: Some(count), time });
    }
}

/// Blocks of a launch. HIP's profilers give the grid in work items (the HSA packet's `grid_size`), CUDA's in blocks.
pub(crate) fn blocks(work_items: Option<[u32; 3]>, block: Option<[u32; 3]>) -> Option<[u32; 3]> {
    let (items, block) = (work_items?, block?);
    let [x, y, z] = std::array::from_fn(|side| {
        let (items, block) = (items.get(side)?, block.get(side)?);
        (*block > 0).then(|| items.div_ceil(*block))
    });
    Some([x?, y?, z?])
}

/// Three sides of a shape, where all of them are there.
pub(crate) fn sides(sides: [Option<i64>; 3]) -> Option<[u32; 3]> {
    let [x, y, z] = sides.map(|side| side.and_then(|n| u32::try_from(n).ok()));
    Some([x?, y?, z?])
}

/// One execution of a kernel while its counters were read, for which kernels run one after the other.
pub(crate) fn counted(kernel: StringId, times: (Ns, Ns), shape: (Option<[u32; 3]>, Option<[u32; 3]>)) -> KernelSummary {
    let dur = times.1.saturating_sub(times.0).max(0);
    KernelSummary {
        total: Some(dur),
        range: Some((dur, dur)),
        grid: shape.0,
        block: shape.1,
        ..KernelSummary::of(kernel, Conditions::Isolated)
    }
}

/// Short form of a direction that ends like `HOST_TO_DEVICE` or `HostToDevice`, with whatever prefix.
pub(crate) fn direction(text: &str) -> Option<&'static str> {
    let text = text.trim().to_ascii_uppercase().replace('_', "");
    let known =
        [("HOSTTODEVICE", "HtoD"), ("DEVICETOHOST", "DtoH"), ("DEVICETODEVICE", "DtoD"), ("HOSTTOHOST", "HtoH")];
    known.iter().find(|(ending, _)| text.ends_with(ending)).map(|(_, short)| *short)
}

/// Direction of the copy that a call asks for, where its name says one: `hipMemcpyPeerAsync`, `hipMemcpyDtoH`.
pub(crate) fn asked(call: &str) -> Option<&'static str> {
    let of = call.strip_prefix("hipMemcpy")?;
    let known = [("Peer", "PtoP"), ("HtoD", "HtoD"), ("DtoH", "DtoH"), ("DtoD", "DtoD")];
    known.iter().find(|(name, _)| of.starts_with(name)).map(|(_, short)| *short)
}

/// What an operation of the device is by its name, and otherwise what its lane holds. Roctracer's own names.
pub(crate) fn operation(name: &str, otherwise: Category) -> Category {
    let begins = |word: &str| name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    match () {
        () if begins("copy") => Category::Memcpy,
        () if begins("fillbuffer") || begins("memset") => Category::Memset,
        // What a queue does of itself so that others can wait for it; HIP has no word for it.
        () if begins("unknown command type") => Category::DeviceEvent,
        () => otherwise,
    }
}

/// Most processes that are told apart where their rows are joined.
const MAX_JOINED: usize = 4096;

/// Whose the rows of rocprof v1 are. Versions up to ROCm 5 repeat the number of the lane as `pid`; there the process of an
/// operation is its `proc-id`, and that of a call is not told, so that all rows of a file are one process.
#[derive(Default)]
pub(crate) struct Owners {
    joined: BTreeSet<i64>,
}

impl Owners {
    /// Key and number of the process of a row: `by_lane` says whether `pid` is the number of its lane.
    pub fn of(&mut self, by_lane: bool, pid: Option<i64>, owner: Option<i64>) -> (u64, Option<i64>) {
        if !by_lane {
            return (pid.map_or(0, i64::cast_unsigned), pid);
        }
        if self.joined.len() < MAX_JOINED {
            self.joined.extend(owner);
        }
        // The first that is known stands for all: what is known of a process is kept.
        (0, self.joined.first().copied())
    }

    /// Tells how many processes beside the first were joined to it.
    pub fn tell(&self, sink: &mut dyn TraceSink, format: &str) {
        let joined = self.joined.len().saturating_sub(1) as u64;
        if joined > 0 {
            let why = "calls name no process, so that all processes are one";
            sink.stat(&format!("{format}.processes_joined"), Severity::Notice, joined, Some(why));
        }
    }
}

/// What rocmProfileData's tracer records of itself. Source: `createOverheadRecord` in its sources.
pub(crate) fn is_rpd_tracer(name: &str) -> bool {
    name.ends_with("::writeRows") || name.ends_with("activity_callback") || name == "rpdflush"
}

/// Tells what every capture of such a profiler says: the vendor, that the run was traced, and by what.
pub(crate) fn manifest(sink: &mut dyn TraceSink, vendor: &str, profiler: &str) {
    let entries = [("hardware.vendor", vendor), ("measurement.traced", profiler), ("software.profiler", profiler)];
    entries.iter().for_each(|(key, value)| sink.manifest(key, value, Provenance::Observed));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_the_code_object_added() {
        for (raw, name) in [
            ("void soft_max<true>(float*) [clone .kd]", "void soft_max<true>(float*)"),
            ("__amd_rocclr_fillBufferAligned.kd", "__amd_rocclr_fillBufferAligned"),
            ("plain", "plain"),
        ] {
            assert_eq!(kernel_name(raw), name);
        }
    }

    #[test]
    fn work_items_become_blocks() {
        assert_eq!(blocks(Some([1000, 2, 1]), Some([256, 1, 1])), Some([4, 2, 1]));
        assert_eq!(blocks(Some([1000, 2, 1]), Some([0, 1, 1])), None);
        assert_eq!(blocks(None, Some([1, 1, 1])), None);
    }

    #[test]
    fn some_calls_name_the_direction_of_their_copy() {
        let calls = ["hipMemcpyPeerAsync", "hipMemcpyDtoHAsync", "hipMemcpyAsync", "hipMemset"];
        assert_eq!(calls.map(asked), [Some("PtoP"), Some("DtoH"), None, None]);
    }

    #[test]
    fn directions_are_told_by_their_ending() {
        assert_eq!(direction("MEMORY_COPY_HOST_TO_DEVICE"), Some("HtoD"));
        assert_eq!(direction("device_to_device"), Some("DtoD"));
        assert_eq!(direction("CopyDeviceToHost"), Some("DtoH"));
        assert_eq!(direction("sideways"), None);
    }
}
