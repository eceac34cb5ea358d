//! The import of a capture, whichever form it has: what is known while it is read, and what is told at its end.

use std::path::Path;

use model::{
    Category, Clock, CollectiveCall, CopyDetail, Detail, ImportStat, KernelDetail, KernelSummary, Ns, ProbeRow,
    ProbeUnit, Reading, Setting, Severity, Slice, Statistic, StringId, TraceSink, TrackId,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    agents::Agents,
    files::{self, File},
    tables,
};
use crate::{
    Place, Progress, ReadError,
    csv_table::Table,
    hip::{
        self,
        counters::{Columns, Means},
    },
    lanes::{Account, Lanes},
    nccl,
};

/// Context of the queues of copies whose stream ran no kernel: their numbers are those of streams, kernels give queues.
const COPIES: Option<i64> = Some(1);
/// Types of the products that a roofline measures, in the order of its columns.
pub(super) const TYPES: [&str; 4] = ["f16", "bf16", "f32", "f64"];
/// Most counters of one dispatch; all channels of all blocks of an MI300 are some two thousand.
const MAX_COUNTERS: usize = 1 << 14;
/// Files that an error names.
const NAMED: usize = 4;
/// Most streams that are remembered; a process that makes one for every request has some hundred.
const MAX_STREAMS: usize = 1 << 16;

/// Process and number of a dispatch.
type Dispatch = (Option<i64>, i64);
/// A dispatch, what is known of it, and its counters by name.
type Counted = (Dispatch, KernelSummary, Vec<(String, f64)>);

/// An import under way.
pub(super) struct Import<'a> {
    pub sink: &'a mut dyn TraceSink,
    lanes: Lanes,
    pub agents: Agents,
    /// Process of the rows that do not say theirs: the one that the file is named after, or that another file with the
    /// same prefix tells.
    pub process: Option<i64>,
    /// Queues on which the kernels of each process's streams ran. A stream orders its kernels and copies, so that copies
    /// belong where its kernels are.
    streams: FxHashMap<(u64, i64), (i32, i64)>,
    /// The dispatch whose counters are being read, and what they say so far.
    counted: Option<Counted>,
    /// Means of the counters of a table that has a column for each.
    pub means: Option<Means>,
    /// Calls that ask for copies, and copies.
    copy_calls: u64,
    copies: u64,
    /// Of each device of a roofline: GB/s of the memory, and Gflop/s of products of the types in [`TYPES`].
    pub ceilings: Vec<[Option<f64>; 1 + TYPES.len()]>,
    /// Whether the kernels of the table that is read were already taken from another one of the same runs.
    pub again: bool,
    /// Kernels that ran one after the other, with the mean times of several runs.
    pub alone: u64,
    /// First and last number of the kernels of each process, and how many rows have one. The runtime numbers the dispatches
    /// of a process without a gap.
    numbered: FxHashMap<u64, (i64, i64, u64)>,
    /// Process, number and start of those kernels.
    dispatched: FxHashSet<(u64, i64, Ns)>,
    /// Rows of kernels that stood before.
    doubled: u64,
}

impl<'a> Import<'a> {
    pub fn new(sink: &'a mut dyn TraceSink) -> Self {
        Self {
            sink,
            lanes: Lanes::default(),
            agents: Agents::default(),
            process: None,
            streams: FxHashMap::default(),
            counted: None,
            means: None,
            copy_calls: 0,
            copies: 0,
            ceilings: Vec::new(),
            again: false,
            alone: 0,
            numbered: FxHashMap::default(),
            dispatched: FxHashSet::default(),
            doubled: 0,
        }
    }

    /// Key of the process of a row.
    fn process_of(&mut self, said: Option<i64>) -> u64 {
        let pid = said.or(self.process);
        self.process = self.process.or(said);
        // Process ids are positive, so the key of those without one meets none.
        let key = pid.map_or(0, i64::cast_unsigned);
        let process = self.lanes.process(&mut *self.sink, key);
        self.sink.describe_process(process, pid, None, None);
        key
    }

    /// Adds a call of the host.
    pub fn call(
        &mut self,
        times: (Ns, Ns),
        (pid, thread): (Option<i64>, Option<i64>),
        correlation: Option<i64>,
        domain: &str,
        name: &str,
    ) {
        let process = self.process_of(pid);
        let track = self.lanes.thread(&mut *self.sink, process, thread.unwrap_or(-1));
        let (category, detail) = self.kind_of_call(domain, name);
        self.copy_calls += u64::from(category == Category::HostApi && name.starts_with("hipMemcpy"));
        let name = self.sink.intern(name);
        self.slice(track, times, name, category, correlation, detail.as_ref());
    }

    /// Adds a call that asks for a copy, with what its arguments say of it.
    #[cfg(feature = "sqlite")]
    pub fn copy_call(
        &mut self,
        times: (Ns, Ns),
        (pid, thread): (Option<i64>, Option<i64>),
        correlation: Option<i64>,
        name: &str,
        (direction, bytes): (Option<&str>, Option<i64>),
    ) {
        let process = self.process_of(pid);
        let track = self.lanes.thread(&mut *self.sink, process, thread.unwrap_or(-1));
        let direction = direction.map(|direction| self.sink.intern(direction));
        let detail = Detail::Copy(CopyDetail { direction, bytes, ..CopyDetail::default() });
        self.copy_calls += 1;
        let name = self.sink.intern(name);
        self.slice(track, times, name, Category::HostApi, correlation, Some(&detail));
    }

    /// What a call of this domain is.
    fn kind_of_call(&mut self, domain: &str, name: &str) -> (Category, Option<Detail>) {
        if domain.starts_with("MARKER") {
            return (Category::UserRange, None);
        }
        if domain.starts_with("HIP") || domain.starts_with("HSA") {
            return (Category::HostApi, None);
        }
        match nccl::collective(name) {
            Some(op) => {
                let call = CollectiveCall { op: Some(self.sink.intern(op)), ..CollectiveCall::default() };
                (Category::CollectiveCall, Some(Detail::Collective(Box::new(call))))
            }
            None => (Category::LibraryApi, None),
        }
    }

    /// Adds a kernel, whose grid is in work items; its name and shape.
    pub fn kernel(
        &mut self,
        times: (Ns, Ns),
        pid: Option<i64>,
        (device, queue, stream): (Option<i32>, Option<i64>, Option<i64>),
        correlation: Option<i64>,
        (items, block): ([Option<i64>; 3], [Option<i64>; 3]),
        name: &str,
    ) -> hip::counters::Key {
        let process = self.process_of(pid);
        let track = self.lanes.queue(&mut *self.sink, process, device, None, queue.unwrap_or(-1));
        if let (Some(device), Some(queue), Some(stream)) = (device, queue, stream)
            && self.streams.len() < MAX_STREAMS
        {
            self.streams.entry((process, stream)).or_insert((device, queue));
        }
        let (items, block) = (hip::sides(items), hip::sides(block));
        let grid = hip::blocks(items, block);
        let detail = KernelDetail { grid, block, ..KernelDetail::default() };
        let name = self.sink.intern(hip::kernel_name(name));
        self.slice(track, times, name, Category::Kernel, correlation, Some(&Detail::Kernel(detail)));
        (name, grid, block)
    }

    /// Name and shape of a kernel whose execution is already there.
    pub fn shaped(&mut self, name: &str, (items, block): ([Option<i64>; 3], [Option<i64>; 3])) -> hip::counters::Key {
        let (items, block) = (hip::sides(items), hip::sides(block));
        (self.sink.intern(hip::kernel_name(name)), hip::blocks(items, block), block)
    }

    /// Notes the number of a dispatch, and when it started; `false` where its row stood before.
    pub fn numbered(&mut self, pid: Option<i64>, dispatch: i64, start: Ns) -> bool {
        let process = self.process_of(pid);
        if !self.dispatched.insert((process, dispatch, start)) {
            self.doubled += 1;
            return false;
        }
        let (first, last, rows) = self.numbered.entry(process).or_insert((dispatch, dispatch, 0));
        (*first, *last, *rows) = ((*first).min(dispatch), (*last).max(dispatch), rows.saturating_add(1));
        true
    }

    /// Adds a copy from one agent to another.
    pub fn copy(
        &mut self,
        times: (Ns, Ns),
        pid: Option<i64>,
        (agents, stream): ([Option<i32>; 2], Option<i64>),
        correlation: Option<i64>,
        direction: Option<&str>,
        bytes: Option<i64>,
    ) {
        self.copies += 1;
        let process = self.process_of(pid);
        let [from, to] = agents.map(|device| device.filter(|device| !self.agents.is_cpu(*device)));
        // Both directions between two devices have one name; the agents tell a peer.
        let peers = from.zip(to).is_some_and(|(from, to)| from != to);
        let direction = if direction == Some("DtoD") && peers { Some("PtoP") } else { direction };
        // Of two devices the copy is shown on the one that this process works with.
        let worked = |device: &i32| self.lanes.devices.contains(&(process, *device));
        let device = match direction {
            Some("HtoD") => to.or(from),
            Some("PtoP") => from.filter(worked).or(to.filter(worked)).or(from),
            _ => from.or(to),
        };
        let (context, queue) = match stream.and_then(|stream| self.streams.get(&(process, stream))) {
            Some((its, queue)) if device == Some(*its) => (None, *queue),
            _ => (COPIES, stream.unwrap_or(-1)),
        };
        let track = self.lanes.queue(&mut *self.sink, process, device, context, queue);
        let name = direction.map_or_else(|| "memcpy".to_owned(), |direction| format!("memcpy {direction}"));
        let direction = direction.map(|direction| self.sink.intern(direction));
        let name = self.sink.intern(&name);
        let detail = Detail::Copy(CopyDetail { direction, bytes, ..CopyDetail::default() });
        self.slice(track, times, name, Category::Memcpy, correlation, Some(&detail));
    }

    /// Adds a counter of a dispatch; the rows of a dispatch follow each other.
    pub fn counter(
        &mut self,
        times: (Ns, Ns),
        dispatch: Dispatch,
        (items, block): (Option<i64>, Option<i64>),
        name: &str,
        counter: Option<(&str, f64)>,
    ) {
        if self.counted.as_ref().is_none_or(|(known, ..)| *known != dispatch) {
            self.end_counters();
            let [items, block] = [items, block].map(|n| hip::sides([n, Some(1), Some(1)]));
            let kernel = self.sink.intern(hip::kernel_name(name));
            let summary = hip::counted(kernel, times, (hip::blocks(items, block), block));
            self.counted = Some((dispatch, summary, Vec::new()));
        }
        if let Some((.., counters)) = self.counted.as_mut().filter(|(.., counters)| counters.len() < MAX_COUNTERS) {
            counters.extend(counter.map(|(name, value)| (name.to_owned(), value)));
        }
    }

    fn end_counters(&mut self) {
        if let Some((_, mut summary, counters)) = self.counted.take() {
            let counters = counters.iter().map(|(name, value)| (name.as_str(), *value));
            hip::counters::add(&mut *self.sink, &mut summary, counters);
            self.sink.summary(summary);
        }
    }

    fn slice(
        &mut self,
        track: TrackId,
        (start, end): (Ns, Ns),
        name: StringId,
        category: Category,
        correlation: Option<i64>,
        detail: Option<&Detail>,
    ) {
        let dur = end.saturating_sub(start);
        // 0 stands for no correlation.
        let correlation = correlation.filter(|id| *id != 0);
        self.sink.slice(Slice { track, start, dur, name, category, correlation, detail });
    }

    /// Tells the measured ceilings: the spread is that of the machine's devices.
    fn measured(&mut self) {
        let bandwidth = ("read", "bandwidth", ProbeUnit::BytesPerSecond, Setting::new().with("in", "memory"));
        let products = TYPES
            .map(|dtype| ("gemm", "arithmetic", ProbeUnit::FlopsPerSecond, Setting::new().with(Setting::DTYPE, dtype)));
        for (place, (probe, metric, unit, setting)) in std::iter::once(bandwidth).chain(products).enumerate() {
            let rates = self.ceilings.iter().filter_map(|device| device.get(place).copied().flatten());
            let Some(statistic) = Statistic::of(rates.map(|rate| rate * 1e9)) else { continue };
            let value = Reading::Value(statistic);
            self.sink.probe(ProbeRow { probe: probe.to_owned(), metric: metric.to_owned(), unit, setting, value });
        }
    }

    /// Tells what is known at the end.
    pub fn settle(mut self) {
        self.end_counters();
        self.agents.describe(&mut *self.sink, &mut self.lanes);
        self.measured();
        hip::manifest(&mut *self.sink, "amd", "rocprofv3");
        self.sink.clock(Clock::FromFirstSlice { unix_offset: None });
        if self.alone > 0 {
            let why = "mean times of repeated runs, one kernel after the other: gaps between them say nothing of a run";
            self.sink.stat(ImportStat::RUN_ALONE, Severity::Notice, self.alone, Some(why));
        }
        let missing =
            |(first, last, rows): &(i64, i64, u64)| last.abs_diff(*first).saturating_add(1).saturating_sub(*rows);
        let missing = self.numbered.values().map(missing).fold(0, u64::saturating_add);
        if missing > 0 {
            let why = "numbers of dispatches between the first and the last that have no row: the kernels are missing, so where \
                       the device seems idle it may have worked; record every kernel and export the whole table";
            self.sink.stat(ImportStat::MISSING_KERNELS, Severity::DataLoss, missing, Some(why));
        }
        if self.doubled > 0 {
            let why = "rows of one process with the number and the start of a dispatch that stood before; counted once";
            self.sink.stat(ImportStat::DOUBLED_ROWS, Severity::Notice, self.doubled, Some(why));
        }
        if self.copy_calls > 0 && self.copies == 0 {
            let why = "calls ask for copies and none was recorded: what such a call takes may be the copy itself; record with \
                       --memory-copy-trace";
            self.sink.stat("rocprofv3.copies_not_traced", Severity::Notice, self.copy_calls, Some(why));
        }
        if self.lanes.crowded > 0 {
            self.sink.stat("rocprofv3.too_many_tracks", Severity::DataLoss, self.lanes.crowded, None);
        }
    }
}

/// Reads the CSV files of the capture that `path` belongs to.
pub(super) fn read(path: &Path, sink: &mut dyn TraceSink, progress: Progress<'_>) -> Result<(), ReadError> {
    let files = files::of_capture(path);
    let mut import = Import::new(sink);
    let mut failed = None;
    let mut known = 0;
    // Each process's files in the order of their kinds: what one tells, the next needs.
    let mut opened: Vec<(String, usize, &File, Table)> = Vec::new();
    for file in &files {
        match Table::open(&file.path, |cells| tables::of(cells).is_some()) {
            Ok(table) => {
                let Some((place, _)) = tables::of(table.header()) else { continue };
                opened.push((file.prefix.clone(), place, file, table));
            }
            Err(error) => {
                import.sink.stat("rocprofv3.unreadable_file", Severity::DataLoss, 1, Some(&error.to_string()));
                failed.get_or_insert(error);
            }
        }
    }
    opened.sort_by(|a, b| (a.0.as_str(), a.1).cmp(&(b.0.as_str(), b.1)));
    if !opened.is_empty()
        && opened.iter().all(|(_, place, ..)| tables::KINDS.get(*place).is_none_or(|k| k.take.is_none()))
    {
        let names: Vec<_> = opened.iter().filter_map(|(.., file, _)| file.path.file_name()).take(NAMED).collect();
        let names = names.iter().map(|name| name.to_string_lossy()).collect::<Vec<_>>().join(", ");
        return Err(ReadError::Declined {
            path: path.to_owned(),
            holds: format!("names, sums or allocations beside a run ({names})"),
            next: "give the directory with the table of what ran: pmc_perf.csv or *_kernel_trace.csv".to_owned(),
        });
    }
    let mut current = None;
    for (prefix, place, file, mut table) in opened {
        if current.as_ref() != Some(&prefix) {
            import.process = prefix.parse().ok();
            current = Some(prefix);
        }
        known += 1;
        take(&mut import, &file.path, place, &mut table, progress)?;
    }
    if known == 0 {
        return Err(failed.unwrap_or_else(|| ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: "a CSV table of rocprofv3 such as kernel_trace".to_owned(),
            next: "record with 'rocprofv3 --runtime-trace --output-format csv -- COMMAND'".to_owned(),
        }));
    }
    import.settle();
    Ok(())
}

/// Reads the rows of a table.
fn take(
    import: &mut Import<'_>,
    path: &Path,
    place: usize,
    table: &mut Table,
    progress: Progress<'_>,
) -> Result<(), ReadError> {
    let Some(kind) = tables::KINDS.get(place) else { return Ok(()) };
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut account = Account::default();
    import.means = kind.wide.then(|| Means::new(Columns::of(table)));
    import.again = kind.wide && import.alone > 0;
    let becomes = if import.again { "counters of the same kernels" } else { kind.becomes };
    table.select(kind.columns);
    while let Some(row) = table.next(progress)? {
        account.read += 1;
        match kind.take.map(|take| take(import, row)) {
            None => {}
            Some(Some((start, end))) => account.keep(start, end),
            Some(None) => account.incomplete += 1,
        }
    }
    import.end_counters();
    if let Some(means) = import.means.take() {
        means.tell(&mut *import.sink, "rocprofv3", &format!("{name}: counters"));
    }
    account.tell(&mut *import.sink, "rocprofv3", &name, becomes);
    table.tell_damage(&mut *import.sink, "rocprofv3");
    Ok(())
}
