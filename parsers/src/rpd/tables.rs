//! The tables that are read, in the order they are read: names first, then calls, what calls say of the work they cause, which
//! call caused what, and last the work.

use model::{
    Category, Clock, CollectiveCall, CopyDetail, Detail, KernelDetail, Ns, Provenance, Severity, Slice, TraceSink,
};
use rustc_hash::FxHashMap;

use crate::{
    hip,
    lanes::Lanes,
    nccl, simulated,
    sqlite::page::{
        Column::{self, Decimal, Int, Text},
        Page,
    },
};

/// Context of lanes that are streams: their numbers are not those of the hardware's queues.
const STREAMS: i64 = 2;

/// A table of the database.
pub(super) struct Table {
    pub name: &'static str,
    pub columns: &'static [Column],
    /// What its rows become, for the ledger.
    pub becomes: &'static str,
    /// Takes a row; `None` when it lacks what it cannot be placed without.
    pub take: fn(&mut State<'_>, &Page, usize) -> Option<(Ns, Ns)>,
}

/// Every table that is read.
pub(super) const TABLES: &[Table] = &[
    Table { name: "rocpd_metadata", columns: METADATA, becomes: "version of the schema", take: metadata },
    Table { name: "rocpd_string", columns: STRING, becomes: "names", take: string },
    Table { name: "rocpd_ustring", columns: STRING, becomes: "texts of calls and markers", take: ustring },
    Table {
        name: "rocpd_api",
        columns: API,
        becomes: "host_api; user_range of markers, collective_call of RCCL, overhead of the tracer",
        take: api,
    },
    Table { name: "rocpd_kernelapi", columns: KERNEL, becomes: "launch shapes and streams", take: kernel },
    Table { name: "rocpd_copyapi", columns: COPY, becomes: "bytes and streams of copies", take: copy },
    Table { name: "rocpd_api_ops", columns: LINK, becomes: "links", take: link },
    Table { name: "rocpd_op", columns: OP, becomes: "kernel; memcpy and memset by type", take: op },
    Table { name: "rocpd_monitor", columns: MONITOR, becomes: "counters", take: monitor },
];

/// In which unit a call gives the grid of its launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grid {
    Blocks,
    WorkItems,
    /// Schema 3 is written through roctracer, which tells blocks, and through rocprofiler-sdk, which tells work items.
    Unknown,
}

/// What is known of a call.
#[derive(Clone, Copy, Debug)]
struct Call {
    pid: i64,
    grid: Grid,
    /// Whether it launches a graph, so that its shape is none of its kernels'.
    graph: bool,
}

/// What the tables of calls say of the work that a call causes.
#[derive(Clone, Copy, Debug, Default)]
struct Cause {
    stream: Option<i64>,
    grid: Option<[u32; 3]>,
    block: Option<[u32; 3]>,
    bytes: Option<i64>,
}

/// What is known while the tables are read.
pub(super) struct State<'a> {
    pub sink: &'a mut dyn TraceSink,
    lanes: Lanes,
    schema: i64,
    strings: FxHashMap<i64, Box<str>>,
    /// Texts of calls; empty in schema 2, which keeps them among the names.
    texts: FxHashMap<i64, Box<str>>,
    calls: FxHashMap<i64, Call>,
    causes: FxHashMap<i64, Cause>,
    /// The call of each operation.
    links: FxHashMap<i64, i64>,
    cuda: bool,
    unnamed: u64,
    unlinked: u64,
    text_left: u64,
    refused: u64,
}

impl<'a> State<'a> {
    pub fn new(sink: &'a mut dyn TraceSink, bytes: u64) -> Self {
        Self {
            sink,
            lanes: Lanes::default(),
            schema: 0,
            strings: FxHashMap::default(),
            texts: FxHashMap::default(),
            calls: FxHashMap::default(),
            causes: FxHashMap::default(),
            links: FxHashMap::default(),
            cuda: false,
            unnamed: 0,
            unlinked: 0,
            text_left: bytes.saturating_mul(2),
            refused: 0,
        }
    }

    /// The text, unless more has been kept than the file can honestly hold.
    fn kept(&mut self, text: &str) -> Option<Box<str>> {
        let Some(left) = self.text_left.checked_sub(text.len() as u64) else {
            self.refused += 1;
            return None;
        };
        self.text_left = left;
        Some(text.into())
    }

    /// Tells what is known at the end.
    pub fn settle(mut self) {
        let vendor = if self.cuda { "nvidia" } else { "amd" };
        self.lanes.describe(&mut *self.sink, vendor);
        hip::manifest(&mut *self.sink, vendor, "rocmProfileData");
        self.sink.clock(Clock::FromFirstSlice { unix_offset: None });
        for (name, severity, count) in [
            ("rpd.text_beyond_file", Severity::DataLoss, self.refused),
            ("rpd.too_many_tracks", Severity::DataLoss, self.lanes.crowded),
            ("rpd.missing_name", Severity::Notice, self.unnamed),
            ("rpd.operation_without_call", Severity::Notice, self.unlinked),
        ] {
            if count > 0 {
                self.sink.stat(name, severity, count, None);
            }
        }
    }
}

/// The text with this id; empty where there is none.
fn named(texts: &FxHashMap<i64, Box<str>>, id: Option<i64>) -> &str {
    id.and_then(|id| texts.get(&id)).map_or("", AsRef::as_ref)
}

const METADATA: &[Column] = &[Text("tag", None), Text("value", None)];

fn metadata(state: &mut State<'_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    match (page.inline(0, row)?, page.inline(1, row)?) {
        ("schema_version", version) => {
            state.schema = version.parse().unwrap_or_default();
            state.sink.manifest("software.profiler_schema", version, Provenance::Observed);
        }
        (simulated::LABEL, "true") => simulated::tell(&mut *state.sink),
        _ => {}
    }
    Some((0, 0))
}

const STRING: &[Column] = &[Int("id", &[]), Text("string", None)];

fn string(state: &mut State<'_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    let (id, text) = (page.int(0, row)?, state.kept(page.inline(1, row)?)?);
    state.strings.insert(id, text);
    Some((0, 0))
}

fn ustring(state: &mut State<'_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    let (id, text) = (page.int(0, row)?, state.kept(page.inline(1, row)?)?);
    state.texts.insert(id, text);
    Some((0, 0))
}

/// A pointer as the tracer prints it, `0x7f3ea0600000`, as the number of a stream.
fn pointer(text: &str) -> Option<i64> {
    u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok().map(u64::cast_signed)
}

const API: &[Column] = &[
    Int("id", &[]),
    Int("pid", &[]),
    Int("tid", &[]),
    Int("start", &[]),
    Int("end", &[]),
    Int("apiName_id", &[]),
    Int("args_id", &[]),
];

/// `rocpd_api`. A marker of the program is a call named `UserMarker` whose text is its name.
fn api(state: &mut State<'_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    let [id, pid, tid, start, end, name, args] = page.ints(row);
    let (id, pid, (start, end)) = (id?, pid?, (start?, end?));
    let call = named(&state.strings, name);
    let text = named(if state.texts.is_empty() { &state.strings } else { &state.texts }, args);
    let prefixed = |prefixes: &[&str]| prefixes.iter().any(|prefix| call.starts_with(prefix));
    let graph = call.contains("GraphLaunch");
    let collective = nccl::collective(call);
    let category = match call {
        "UserMarker" => Category::UserRange,
        _ if hip::is_rpd_tracer(call) => Category::Overhead,
        _ if prefixed(&["hip", "hsa_", "cu", "__hip"]) => Category::HostApi,
        _ if collective.is_some() => Category::CollectiveCall,
        _ => Category::HostOther,
    };
    state.cuda |= call.starts_with("cu");
    let grid = match call {
        // Source: the arguments globalWorkSizeX… of these calls.
        "hipExtModuleLaunchKernel" | "hipHccModuleLaunchKernel" => Grid::WorkItems,
        _ if state.schema <= 2 || call.starts_with("cu") => Grid::Blocks,
        _ => Grid::Unknown,
    };
    let shown = if category == Category::UserRange && !text.is_empty() { text } else { call };
    let name = state.sink.intern(if shown.is_empty() { "(unnamed)" } else { shown });
    // A launch of a graph says its stream among its arguments.
    let stream = graph.then(|| text.split_once("stream = ").and_then(|(_, rest)| pointer(rest))).flatten();
    state.unnamed += u64::from(call.is_empty());
    let detail = match (category, collective, hip::asked(call)) {
        (Category::CollectiveCall, Some(op), _) => {
            let call = CollectiveCall { op: Some(state.sink.intern(op)), ..CollectiveCall::default() };
            Some(Detail::Collective(Box::new(call)))
        }
        (Category::HostApi, _, Some(direction)) => {
            let direction = Some(state.sink.intern(direction));
            Some(Detail::Copy(CopyDetail { direction, ..CopyDetail::default() }))
        }
        _ => None,
    };
    state.calls.insert(id, Call { pid, grid, graph });
    if stream.is_some() {
        state.causes.insert(id, Cause { stream, ..Cause::default() });
    }
    let key = pid.cast_unsigned();
    let process = state.lanes.process(&mut *state.sink, key);
    state.sink.describe_process(process, Some(pid), None, None);
    let track = state.lanes.thread(&mut *state.sink, key, tid.unwrap_or(-1));
    let correlation = (category == Category::HostApi).then_some(id);
    let dur = end.saturating_sub(start);
    state.sink.slice(Slice { track, start, dur, name, category, correlation, detail: detail.as_ref() });
    Some((start, end))
}

const KERNEL: &[Column] = &[
    Int("api_ptr_id", &[]),
    Int("gridX", &[]),
    Int("gridY", &[]),
    Int("gridZ", &[]),
    Int("workgroupX", &[]),
    Int("workgroupY", &[]),
    Int("workgroupZ", &[]),
    Text("stream", None),
];

fn kernel(state: &mut State<'_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    let id = page.int(0, row)?;
    let three = |first: usize| {
        hip::sides(std::array::from_fn(|side| page.int(first + side, row))).filter(|sides| sides.iter().all(|n| *n > 0))
    };
    let call = state.calls.get(&id).copied();
    let (grid, block) = (three(1), three(4));
    let grid = match call.map(|call| call.grid) {
        Some(Grid::Blocks) => grid,
        Some(Grid::WorkItems) => hip::blocks(grid, block),
        Some(Grid::Unknown) | None => None,
    };
    let cause = state.causes.entry(id).or_default();
    if call.is_none_or(|call| !call.graph) {
        (cause.grid, cause.block) = (grid, block);
    }
    cause.stream = cause.stream.or_else(|| pointer(page.inline(7, row)?));
    Some((0, 0))
}

const COPY: &[Column] = &[Int("api_ptr_id", &[]), Int("size", &[]), Text("stream", None)];

fn copy(state: &mut State<'_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    let cause = state.causes.entry(page.int(0, row)?).or_default();
    cause.bytes = page.int(1, row).filter(|bytes| *bytes > 0);
    cause.stream = cause.stream.or_else(|| pointer(page.inline(2, row)?));
    Some((0, 0))
}

const LINK: &[Column] = &[Int("api_id", &[]), Int("op_id", &[])];

fn link(state: &mut State<'_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    state.links.insert(page.int(1, row)?, page.int(0, row)?);
    Some((0, 0))
}

const OP: &[Column] = &[
    Int("id", &[]),
    Int("gpuId", &[]),
    Int("queueId", &[]),
    Int("start", &[]),
    Int("end", &[]),
    Int("description_id", &[]),
    Int("opType_id", &[]),
];

/// `rocpd_op`. Its type says what it is (`KernelExecution`, `Task` for the kernels of a graph, `CopyHostToDevice`, `FillBuffer`),
/// its description the kernel.
fn op(state: &mut State<'_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    let [id, gpu, queue, start, end, description, kind] = page.ints(row);
    let (start, end) = (start?, end?);
    let call = id.and_then(|id| state.links.get(&id)).copied();
    let cause = call.and_then(|id| state.causes.get(&id)).copied().unwrap_or_default();
    let known = call.and_then(|id| state.calls.get(&id)).copied();
    state.unlinked += u64::from(known.is_none());
    let (kind, described) = (named(&state.strings, kind), named(&state.strings, description));
    let category = match kind {
        _ if kind.starts_with("Copy") => Category::Memcpy,
        _ if kind.starts_with("Fill") => Category::Memset,
        _ if kind.contains("Barrier") || kind.contains("Marker") => Category::DeviceSync,
        _ => Category::Kernel,
    };
    let direction = hip::direction(kind);
    let name = [described, kind].into_iter().find(|name| !name.is_empty());
    let unnamed = name.is_none();
    let name = state.sink.intern(hip::kernel_name(name.unwrap_or("(unnamed)")));
    state.unnamed += u64::from(unnamed);
    let detail = match category {
        Category::Kernel => {
            Some(Detail::Kernel(KernelDetail { grid: cause.grid, block: cause.block, ..KernelDetail::default() }))
        }
        Category::Memcpy | Category::Memset => {
            let direction = direction.map(|direction| state.sink.intern(direction));
            // The bytes of a launch of a graph are those of none of its copies.
            let bytes = cause.bytes.filter(|_| known.is_some_and(|call| !call.graph));
            Some(Detail::Copy(CopyDetail { direction, bytes, ..CopyDetail::default() }))
        }
        _ => None,
    };
    let key = known.map_or(0, |call| call.pid.cast_unsigned());
    let device = gpu.and_then(|gpu| i32::try_from(gpu).ok());
    // A stream orders its kernels and copies.
    let (context, lane) = cause.stream.map_or((None, queue.unwrap_or(-1)), |stream| (Some(STREAMS), stream));
    let track = state.lanes.queue(&mut *state.sink, key, device, context, lane);
    let dur = end.saturating_sub(start);
    state.sink.slice(Slice { track, start, dur, name, category, correlation: call, detail: detail.as_ref() });
    Some((start, end))
}

const MONITOR: &[Column] = &[
    Int("deviceId", &[]),
    Int("start", &[]),
    Decimal("value", &[]),
    Text("deviceType", None),
    Text("monitorType", None),
];

/// `rocpd_monitor`: a value that held from `start` on. `sclk` is the clock of the cores in MHz.
fn monitor(state: &mut State<'_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    let [device, start, value] = page.ints(row);
    let (start, value, kind) = (start?, value?, page.inline(4, row)?);
    let unit = if matches!(kind, "sclk" | "mclk") { "MHz" } else { "" };
    let name = state.sink.intern(kind);
    // Monitors watch a machine; its processes share them.
    let process = state.calls.values().next().map_or(0, |call| call.pid.cast_unsigned());
    let process = state.lanes.process(&mut *state.sink, process);
    let device = device.filter(|_| page.inline(3, row) == Some("gpu")).and_then(|id| i32::try_from(id).ok());
    state.sink.counter(process, device, name, unit, start, value as f64);
    Some((start, start))
}
