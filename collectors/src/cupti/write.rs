//! What was observed, into a sink: the device's work on a track per stream, calls on a track per thread, waits beside the
//! queues, and beside each queue the operators that its work is of.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::{
    Beside, Category, CopyDetail, Detail, Device, KernelDetail, Ns, ProcessId, Provenance, Severity, Slice, StringId,
    SyncKind, TraceSink, TrackId, TrackKey, TrackKind,
};

use super::{
    abi,
    gather::Kept,
    record::{Interface, Queue, Record, When, Work},
    session::Observed,
};

/// Stream of a wait that is for none.
const NO_STREAM: u32 = u32::MAX;
/// `cudaErrorNotReady` and `CUDA_ERROR_NOT_READY`: the answer of a question, which CUDA's reference calls no error.
const NOT_READY: u32 = 600;

/// Directions of copies by `CUpti_ActivityMemcpyKind`, in words and as the model writes them.
const DIRECTIONS: [(&str, &str); 11] = [
    ("unknown", ""),
    ("Host-to-Device", "HtoD"),
    ("Device-to-Host", "DtoH"),
    ("Host-to-Array", "HtoA"),
    ("Array-to-Host", "AtoH"),
    ("Array-to-Array", "AtoA"),
    ("Array-to-Device", "AtoD"),
    ("Device-to-Array", "DtoA"),
    ("Device-to-Device", "DtoD"),
    ("Host-to-Host", "HtoH"),
    ("Peer-to-Peer", "PtoP"),
];
/// Kinds of memory by `CUpti_ActivityMemoryKind`.
const MEMORY: [&str; 8] =
    ["unknown", "pageable", "pinned", "device", "array", "managed", "device static", "managed static"];

/// Where what was observed goes.
pub struct Place<'p> {
    /// This process.
    pub process: ProcessId,
    /// The track of a thread, by the system's number of it, where the capture has one already: its calls lie there.
    pub thread: Option<(u32, TrackId)>,
    /// An operator by the id that was pushed for it: its name, and what it worked on.
    pub operator: Operator<'p>,
}

impl std::fmt::Debug for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place").field("process", &self.process).field("thread", &self.thread).finish_non_exhaustive()
    }
}

impl Observed {
    /// Writes it; times become those of the run's clock.
    pub fn write(&self, place: Place<'_>, sink: &mut dyn TraceSink) {
        let mut writer = Writer {
            seen: self,
            process: place.process,
            own: place.thread,
            launched: self.launched(),
            devices: self.devices(),
            told: [0; 2],
            without_time: 0,
            kept: BTreeMap::new(),
            sink,
        };
        self.found.records.iter().for_each(|kept| writer.record(kept, place.operator));
        writer.end();
    }

    /// Operators of calls, by what ties the calls to what they launched.
    fn launched(&self) -> HashMap<u32, u64> {
        let of = |kept: &Kept| match kept.record {
            Record::External { whose: abi::EXTERNAL_CUSTOM0, id, correlation } => Some((correlation, id)),
            _ => None,
        };
        self.found.records.iter().filter_map(of).collect()
    }

    /// Devices of contexts: a wait names its context only.
    fn devices(&self) -> HashMap<u32, u32> {
        let of = |kept: &Kept| match kept.record {
            Record::Kernel { work, .. }
            | Record::Copy { work, .. }
            | Record::Fill { work, .. }
            | Record::Graph { work, .. } => Some((work.queue.context, work.queue.device)),
            _ => None,
        };
        self.found.records.iter().filter_map(of).collect()
    }
}

type Operator<'p> = &'p dyn Fn(u64) -> Option<(StringId, Option<Detail>)>;

struct Writer<'w> {
    seen: &'w Observed,
    process: ProcessId,
    own: Option<(u32, TrackId)>,
    launched: HashMap<u32, u64>,
    devices: HashMap<u32, u32>,
    /// Work of the device of which the operator is known, and all of it.
    told: [u64; 2],
    without_time: u64,
    /// Rows and time of what was kept, by kind.
    kept: BTreeMap<&'static str, (u64, Ns)>,
    sink: &'w mut dyn TraceSink,
}

impl Writer<'_> {
    fn record(&mut self, kept: &Kept, operator: Operator<'_>) {
        match kept.record {
            Record::Kernel { work, grid, block, queued, submitted, graph, .. } => {
                let name = kept.name.and_then(|name| self.seen.found.names.get(name as usize));
                let name = self.sink.intern(name.map_or("kernel without a name", String::as_str));
                let detail = Detail::Kernel(KernelDetail {
                    graph: graph.map(i64::from),
                    graph_node: work.node.map(signed),
                    grid: Some(grid),
                    block: Some(block),
                    collective: None,
                });
                if self.work("kernel", work, name, Category::Kernel, &detail, operator) {
                    self.latency(work, queued, submitted);
                }
            }
            Record::Copy { work, direction, source, target, bytes } => {
                let (words, short) = DIRECTIONS.get(usize::from(direction)).copied().unwrap_or(("unknown", ""));
                let name = self.sink.intern(&format!("[CUDA memcpy {words}]"));
                let direction = (!short.is_empty()).then(|| self.sink.intern(short));
                let (src, dst) = (self.memory(source.into()), self.memory(target.into()));
                let bytes = i64::try_from(bytes).ok();
                let detail = Detail::Copy(CopyDetail { direction, src, dst, bytes, graph_node: work.node.map(signed) });
                self.work("copy", work, name, Category::Memcpy, &detail, operator);
            }
            Record::Fill { work, target, bytes } => {
                let name = self.sink.intern("[CUDA memset]");
                let (dst, bytes) = (self.memory(target), i64::try_from(bytes).ok());
                let (direction, src) = (None, None);
                let detail = Detail::Copy(CopyDetail { direction, src, dst, bytes, graph_node: work.node.map(signed) });
                self.work("fill", work, name, Category::Memset, &detail, operator);
            }
            Record::Graph { work, graph } => {
                let name = self.sink.intern(&format!("CUDA graph {graph}"));
                let detail = Detail::Kernel(KernelDetail { graph: Some(graph.into()), ..KernelDetail::default() });
                self.work("graph", work, name, Category::GraphExec, &detail, operator);
            }
            Record::Call { interface, id, when, thread, correlation, result } => {
                let track = self.thread(Some(thread));
                let name = self.call(interface, id);
                let failed = (result != 0 && result != NOT_READY).then(|| Detail::Failed(result.into()));
                self.put("call", track, when, name, Category::HostApi, Some(correlation), failed.as_ref());
            }
            // It has no time of its own; what it says went into `launched`.
            Record::External { .. } => self.keep("operator of a call", 0),
            Record::Wait { what, when, place: [context, stream], correlation } => {
                let (name, kind) = match what {
                    1 => ("event synchronize", Some(SyncKind::Event)),
                    2 => ("stream wait event", Some(SyncKind::StreamWaitEvent)),
                    3 => ("stream synchronize", Some(SyncKind::Stream)),
                    4 => ("context synchronize", Some(SyncKind::Context)),
                    _ => ("synchronize", None),
                };
                let track = self.sink.track(TrackKey {
                    kind: TrackKind::DeviceSync,
                    process: self.process,
                    device: self.devices.get(&context).and_then(|device| i32::try_from(*device).ok()),
                    context: Some(context.into()),
                    id: if stream == NO_STREAM { -1 } else { stream.into() },
                });
                let (name, detail) = (self.sink.intern(name), kind.map(Detail::Sync));
                self.put("wait", track, when, name, Category::DeviceSync, Some(correlation), detail.as_ref());
            }
            Record::Overhead { what, when, thread } => {
                let track = self.thread(thread);
                let (name, category) = overhead(what);
                let name = self.sink.intern(name);
                self.put("overhead", track, when, name, category, None, None);
            }
        }
    }

    /// Work of the device, with the operator it is of beside it; whether it has a time.
    fn work(
        &mut self,
        kind: &'static str,
        work: Work,
        name: StringId,
        category: Category,
        detail: &Detail,
        operator: Operator<'_>,
    ) -> bool {
        let key = self.queue(work.queue);
        let track = self.sink.track(key);
        if !self.put(kind, track, work.when, name, category, Some(work.correlation), Some(detail)) {
            return false;
        }
        if category == Category::GraphExec {
            return true;
        }
        let id =
            work.node.map_or_else(|| self.launched.get(&work.correlation).copied(), |node| self.seen.nodes.of(node));
        self.told[1] += 1;
        let sink = &mut *self.sink;
        if let Some((name, detail)) = id.and_then(operator) {
            self.told[0] += 1;
            let track = sink.track(Beside::Operators.key(key));
            let (start, end) = (self.seen.conversion.run(work.when.start), self.seen.conversion.run(work.when.end));
            let (category, correlation, detail) = (Category::DeviceRange, None, detail.as_ref());
            sink.slice(Slice { track, start, dur: end.saturating_sub(start), name, category, correlation, detail });
        }
        true
    }

    /// How long a kernel was on its way to the device, and then waited there.
    fn latency(&mut self, work: Work, queued: Option<u64>, submitted: Option<u64>) {
        let run = |stamp| self.seen.conversion.run(stamp);
        let (start, submitted) = (run(work.when.start), submitted.map(run));
        let on_the_way = queued.map(run).zip(submitted).map(|(queued, submitted)| submitted - queued);
        let device = i32::try_from(work.queue.device).ok();
        let waited = submitted.map(|submitted| start.saturating_sub(submitted));
        for (name, wait) in [("queued_to_submitted", on_the_way), ("submitted_to_started", waited)] {
            if let Some(wait) = wait {
                let name = self.sink.intern(name);
                self.sink.counter(self.process, device, name, "ns", start, wait as f64);
            }
        }
    }

    /// Adds a slice, if it has a time; whether it has.
    #[allow(clippy::too_many_arguments)]
    fn put(
        &mut self,
        kind: &'static str,
        track: TrackId,
        when: When,
        name: StringId,
        category: Category,
        correlation: Option<u32>,
        detail: Option<&Detail>,
    ) -> bool {
        if when.start == 0 || when.end == 0 {
            self.without_time += 1;
            return false;
        }
        let (start, end) = (self.seen.conversion.run(when.start), self.seen.conversion.run(when.end));
        let dur = end.saturating_sub(start);
        let correlation = correlation.filter(|correlation| *correlation != 0).map(i64::from);
        self.sink.slice(Slice { track, start, dur, name, category, correlation, detail });
        self.keep(kind, dur);
        true
    }

    fn keep(&mut self, kind: &'static str, dur: Ns) {
        let (rows, time) = self.kept.entry(kind).or_default();
        *rows += 1;
        *time = time.saturating_add(dur.max(0));
    }

    fn queue(&self, queue: Queue) -> TrackKey {
        TrackKey {
            kind: TrackKind::DeviceQueue,
            process: self.process,
            device: i32::try_from(queue.device).ok(),
            context: Some(queue.context.into()),
            id: queue.stream.into(),
        }
    }

    /// The track of a thread; what belongs to none has one of its own.
    fn thread(&mut self, thread: Option<[u32; 2]>) -> TrackId {
        let (kind, id) = match (thread, self.own) {
            (Some([_, thread]), Some((own, track))) if thread == own => return track,
            (Some([_, thread]), _) => (TrackKind::HostThread, thread.into()),
            (None, _) => (TrackKind::Global, 0),
        };
        self.sink.track(TrackKey { kind, process: self.process, device: None, context: None, id })
    }

    fn memory(&mut self, kind: u16) -> Option<StringId> {
        let word = MEMORY.get(usize::from(kind)).filter(|word| **word != "unknown")?;
        Some(self.sink.intern(word))
    }

    fn call(&mut self, interface: Interface, id: u32) -> StringId {
        match self.seen.calls.get(&(interface, id)) {
            Some(name) => self.sink.intern(plain(name)),
            None => self.sink.intern(&format!("{interface:?} call {id}").to_lowercase()),
        }
    }

    /// What is said once of the whole.
    fn end(mut self) {
        let (seen, sink) = (self.seen, &mut *self.sink);
        let vendor = Some(sink.intern("nvidia"));
        for device in self.devices.values().collect::<BTreeSet<_>>() {
            let Ok(ordinal) = i32::try_from(*device) else { continue };
            let (process, name, cores, memory_bytes) = (self.process, None, None, None);
            sink.device(Device { process, ordinal, name, vendor, cores, memory_bytes });
        }
        if let Some((records, time)) = self.kept.get("overhead") {
            let said = format!("{records} records of {time} ns, of CUPTI and of the driver");
            sink.manifest("cupti.overhead", &said, Provenance::Observed);
        }
        let version = seen.version.map_or_else(|| "unknown".to_owned(), |version| version.to_string());
        let mut say = |key: &str, value: &str| sink.manifest(key, value, Provenance::Observed);
        say("cupti.version", &format!("{version}, {}", seen.file));
        say("cupti.mode", seen.mode.name());
        say("cupti.clock", &seen.conversion.said());
        if self.told[0] > 0 {
            let [told, all] = self.told;
            say(Beside::MATCH, &format!("{told} of {all} kernels, copies and fills, by the run's own operators"));
        }
        for (what, why) in &seen.absent {
            sink.stat(&format!("cupti.without_{}", what.replace(' ', "_")), Severity::Notice, 1, Some(why));
        }
        for (what, (count, example)) in &seen.found.wrong {
            sink.stat(&format!("cupti.{what}"), severity(what), *count, example.as_deref());
        }
        if self.devices.is_empty() {
            sink.stat("cupti.no_work_of_a_device", Severity::DataLoss, 1, None);
        }
        if self.without_time > 0 {
            sink.stat("cupti.without_time", Severity::DataLoss, self.without_time, None);
        }
        for (kind, (rows, time)) in std::mem::take(&mut self.kept) {
            let read = KINDS.iter().filter(|(_, own)| *own == kind).filter_map(|(kind, _)| seen.found.read.get(kind));
            sink.ledger(&format!("CUPTI {kind}"), read.sum::<u64>().max(rows), rows, time, "records of this process");
        }
    }
}

/// Names of kinds in the ledger.
const KINDS: [(u32, &str); 9] = [
    (abi::KIND_KERNEL, "kernel"),
    (abi::KIND_MEMCPY, "copy"),
    (abi::KIND_MEMSET, "fill"),
    (abi::KIND_GRAPH, "graph"),
    (abi::KIND_DRIVER, "call"),
    (abi::KIND_RUNTIME, "call"),
    (abi::KIND_EXTERNAL, "operator of a call"),
    (abi::KIND_SYNCHRONIZATION, "wait"),
    (abi::KIND_OVERHEAD, "overhead"),
];

/// How bad it is that something went wrong.
fn severity(what: &str) -> Severity {
    match what {
        "unknown_kind" | "kernel_without_name" | "foreign_buffer" | "operator_not_pushed" | "nodes_full" => {
            Severity::Notice
        }
        _ => Severity::DataLoss,
    }
}

/// Numbers of 64 bits that a capture keeps with a sign: the same bits.
fn signed(number: u64) -> i64 {
    number.cast_signed()
}

/// The name of a call without the version that it dates from (`_v7000`) and without the thread's own stream (`_ptsz`).
fn plain(name: &str) -> &str {
    let without_version = |name: &'_ str| match name.rsplit_once("_v") {
        Some((stem, digits)) if digits.len() >= 4 && digits.bytes().all(|byte| byte.is_ascii_digit()) => stem.len(),
        _ => name.len(),
    };
    let name = name.split_at(without_version(name)).0;
    let stem = name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).unwrap_or(name);
    stem.split_at(without_version(stem)).0
}

/// What overhead is, and whether it is the profiler's: what the driver does on its own account would happen without one, too.
fn overhead(what: u32) -> (&'static str, Category) {
    match what {
        abi::OVERHEAD_COMPILER => ("driver compiler", Category::HostOther),
        abi::OVERHEAD_FLUSH => ("buffer flush (profiler)", Category::Overhead),
        abi::OVERHEAD_INSTRUMENTATION => ("instrumentation (profiler)", Category::Overhead),
        abi::OVERHEAD_RESOURCE => ("resource creation (profiler)", Category::Overhead),
        abi::later::OVERHEAD_MODULE => ("runtime module loading", Category::HostOther),
        abi::later::OVERHEAD_LAZY => ("lazy function loading", Category::HostOther),
        abi::later::OVERHEAD_FULL => ("command buffer full", Category::HostOther),
        abi::later::OVERHEAD_REQUEST => ("activity buffer request (profiler)", Category::Overhead),
        _ => ("overhead of an unknown kind", Category::HostOther),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_named_without_their_versions() {
        for (name, expected) in [
            ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
            ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel"),
            ("cuLaunchKernel_ptsz", "cuLaunchKernel"),
            ("cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync_v2"),
            ("_v7000", ""),
            ("", ""),
        ] {
            assert_eq!(plain(name), expected);
        }
    }
}
