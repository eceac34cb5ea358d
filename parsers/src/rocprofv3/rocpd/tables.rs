//! The tables that are read, in the order they are read: names and ids first, because rows refer to them.

use model::Ns;

use super::{
    super::agents::Agent,
    state::{Event, State, Track},
};
use crate::{
    hip, simulated,
    sqlite::page::{
        Column::{self, Int, Text},
        Page,
    },
};

/// A table of a capture.
pub(super) struct Table {
    /// Its name without the capture's id.
    pub name: &'static str,
    pub columns: &'static [Column],
    /// What its rows become, for the ledger.
    pub becomes: &'static str,
    /// Takes a row; `None` when it lacks what it cannot be placed without.
    pub take: fn(&mut State<'_, '_>, &Page, usize) -> Option<(Ns, Ns)>,
}

/// Every table that is read.
pub(super) const TABLES: &[Table] = &[
    Table { name: "rocpd_metadata", columns: METADATA, becomes: "label of simulated captures", take: metadata },
    Table { name: "rocpd_string", columns: STRING, becomes: "names", take: string },
    Table { name: "rocpd_info_process", columns: PROCESS, becomes: "processes, environment not read", take: process },
    Table { name: "rocpd_info_thread", columns: THREAD, becomes: "threads", take: thread },
    Table { name: "rocpd_info_agent", columns: AGENT, becomes: "devices", take: agent },
    Table { name: "rocpd_info_kernel_symbol", columns: SYMBOL, becomes: "names", take: symbol },
    Table { name: "rocpd_track", columns: TRACK, becomes: "places of rows", take: track },
    Table { name: "rocpd_event", columns: EVENT, becomes: "links", take: event },
    Table { name: "rocpd_arg", columns: ARGUMENT, becomes: "bytes and directions that calls ask for", take: argument },
    Table {
        name: "rocpd_region",
        columns: REGION,
        becomes: "host_api; user_range of markers, collective_call of RCCL",
        take: region,
    },
    Table { name: "rocpd_kernel_dispatch", columns: DISPATCH, becomes: "kernel", take: dispatch },
    Table { name: "rocpd_memory_copy", columns: COPY, becomes: "memcpy", take: copy },
];

const METADATA: &[Column] = &[Text("tag", None), Text("value", None)];

fn metadata(state: &mut State<'_, '_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    if page.inline(0, row)? == simulated::LABEL && page.inline(1, row)? == "true" {
        simulated::tell(&mut *state.import.sink);
    }
    Some((0, 0))
}

const STRING: &[Column] = &[Int("id", &[]), Text("string", None)];

fn string(state: &mut State<'_, '_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    let (id, text) = (page.int(0, row)?, state.kept(page.inline(1, row)?)?);
    state.strings.insert(id, text);
    Some((0, 0))
}

const PROCESS: &[Column] = &[Int("id", &[]), Int("pid", &[])];

fn process(state: &mut State<'_, '_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    state.processes.insert(page.int(0, row)?, page.int(1, row)?);
    Some((0, 0))
}

const THREAD: &[Column] = &[Int("id", &[]), Int("tid", &[])];

fn thread(state: &mut State<'_, '_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    state.threads.insert(page.int(0, row)?, page.int(1, row)?);
    Some((0, 0))
}

const AGENT: &[Column] = &[
    Int("id", &[]),
    Int("logical_index", &["absolute_index"]),
    Int("absolute_index", &[]),
    Int("type_index", &[]),
    Text("type", None),
    Text("product_name", None),
    Text("model_name", None),
    Text("name", None),
];

fn agent(state: &mut State<'_, '_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    let [id, logical, node, of_kind] = page.ints(row);
    let id = id?;
    let names = [5, 6, 7].into_iter().filter_map(|lane| page.inline(lane, row));
    let number = logical.and_then(|n| i32::try_from(n).ok());
    state.import.agents.add(Agent {
        gpu: page.inline(4, row) == Some("GPU"),
        name: names.map(str::to_owned).find(|name| !name.is_empty()),
        cores: None,
        node,
        logical,
        of_kind,
    });
    if let Some(device) = number.and_then(|n| state.import.agents.device(&format!("Agent {n}"))) {
        state.agents.insert(id, device);
    }
    Some((0, 0))
}

const SYMBOL: &[Column] = &[Int("id", &[]), Text("display_name", None), Text("kernel_name", None)];

fn symbol(state: &mut State<'_, '_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    let id = page.int(0, row)?;
    let name = page.inline(1, row).filter(|name| !name.is_empty()).or_else(|| page.inline(2, row))?;
    let name = state.kept(name)?;
    state.kernels.insert(id, name);
    Some((0, 0))
}

const TRACK: &[Column] = &[
    Int("id", &[]),
    Int("pid", &[]),
    Int("tid", &[]),
    Int("agent_id", &[]),
    Int("queue_id", &[]),
    Int("stream_id", &[]),
];

fn track(state: &mut State<'_, '_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    let [id, pid, tid, agent, queue, stream] = page.ints(row);
    state.tracks.insert(id?, Track { pid, tid, agent, queue, stream });
    Some((0, 0))
}

const EVENT: &[Column] =
    &[Int("id", &[]), Int("category_id", &[]), Int("stack_id", &[]), Int("correlation_id", &[]), Text("extdata", None)];

/// `rocpd_event`. Calls and the work they cause share the stack id; the correlation id is 0 in files of schema 3. The text
/// of a marker is in the JSON beside.
fn event(state: &mut State<'_, '_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    let [id, category, stack, correlation] = page.ints(row);
    let id = id?;
    let correlation = stack.filter(|id| *id != 0).or(correlation.filter(|id| *id != 0));
    state.events.insert(id, Event { category, correlation });
    let further = page.inline(4, row).filter(|text| text.contains("\"message\""));
    let message = further.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    if let Some(text) = message.as_ref().and_then(|json| json.get("message")?.as_str()).and_then(|m| state.kept(m)) {
        state.messages.insert(id, text);
    }
    Some((0, 0))
}

const ARGUMENT: &[Column] = &[Int("event_id", &[]), Text("name", None), Text("value", None)];

/// `rocpd_arg`: an argument of a call. Of most calls none is kept: they are pointers.
fn argument(state: &mut State<'_, '_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    let (event, name) = (page.int(0, row)?, page.inline(1, row)?);
    let (bytes, direction) = match (name, page.inline(2, row)) {
        ("sizeBytes", Some(value)) => (value.parse().ok().filter(|bytes: &i64| *bytes >= 0), None),
        ("kind", Some(value)) => (None, hip::direction(value)),
        _ => return Some((0, 0)),
    };
    let known = state.asked.entry(event).or_default();
    *known = (known.0.or(direction), known.1.or(bytes));
    Some((0, 0))
}

impl State<'_, '_> {
    /// Where a row lies, by its own columns or by its track.
    fn place(&self, own: Track, track: Option<i64>) -> Track {
        let track = track.and_then(|id| self.tracks.get(&id)).copied().unwrap_or_default();
        // The columns refer to the tables of processes and threads, whose ids may be the numbers themselves.
        let pid = own.pid.or(track.pid).map(|id| self.processes.get(&id).copied().unwrap_or(id));
        let tid = own.tid.or(track.tid).map(|id| self.threads.get(&id).copied().unwrap_or(id));
        Track {
            pid,
            tid,
            agent: own.agent.or(track.agent),
            queue: own.queue.or(track.queue),
            stream: own.stream.or(track.stream),
        }
    }

    fn device(&self, agent: Option<i64>) -> Option<i32> {
        self.agents.get(&agent?).copied()
    }

    fn correlation(&self, event: Option<i64>) -> Option<i64> {
        self.events.get(&event?)?.correlation
    }
}

const REGION: &[Column] = &[
    Int("start", &[]),
    Int("end", &[]),
    Int("name_id", &[]),
    Int("event_id", &[]),
    Int("pid", &[]),
    Int("tid", &[]),
    Int("track_id", &[]),
];

fn region(state: &mut State<'_, '_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    let [start, end, name, event, pid, tid, track] = page.ints(row);
    let times = (start?, end?);
    let place = state.place(Track { pid, tid, ..Track::default() }, track);
    let known = event.and_then(|id| state.events.get(&id)).copied().unwrap_or_default();
    let domain = known.category.and_then(|id| state.strings.get(&id)).map_or("", AsRef::as_ref);
    let message = event.filter(|_| domain.starts_with("MARKER")).and_then(|id| state.messages.get(&id));
    let name = message.or_else(|| state.strings.get(&name?));
    state.unnamed += u64::from(name.is_none());
    let name = name.map_or("(unnamed)", AsRef::as_ref);
    let who = (place.pid, place.tid);
    match event.and_then(|id| state.asked.get(&id)).filter(|_| name.starts_with("hipMemcpy")) {
        Some(asked) => state.import.copy_call(times, who, known.correlation, name, *asked),
        None => state.import.call(times, who, known.correlation, domain, name),
    }
    Some(times)
}

const DISPATCH: &[Column] = &[
    Int("start", &[]),
    Int("end", &[]),
    Int("kernel_id", &[]),
    Int("event_id", &[]),
    Int("pid", &[]),
    Int("agent_id", &[]),
    Int("queue_id", &[]),
    Int("track_id", &[]),
    Int("workgroup_size_x", &["workgroup_x"]),
    Int("workgroup_size_y", &["workgroup_y"]),
    Int("workgroup_size_z", &["workgroup_z"]),
    Int("grid_size_x", &["grid_x"]),
    Int("grid_size_y", &["grid_y"]),
    Int("grid_size_z", &["grid_z"]),
    Int("stream_id", &[]),
];

fn dispatch(state: &mut State<'_, '_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    let [start, end, kernel, event, pid, agent, queue, track] = page.ints(row);
    let times = (start?, end?);
    let place = state.place(Track { pid, agent, queue, stream: page.int(14, row), ..Track::default() }, track);
    let (device, correlation) = (state.device(place.agent), state.correlation(event));
    let sides = |first: usize| std::array::from_fn(|side| page.int(first + side, row));
    let name = kernel.and_then(|id| state.kernels.get(&id));
    state.unnamed += u64::from(name.is_none());
    let name = name.map_or("(unnamed)", AsRef::as_ref);
    let queue = (device, place.queue, place.stream);
    state.import.kernel(times, place.pid, queue, correlation, (sides(11), sides(8)), name);
    Some(times)
}

const COPY: &[Column] = &[
    Int("start", &[]),
    Int("end", &[]),
    Int("name_id", &[]),
    Int("event_id", &[]),
    Int("pid", &[]),
    Int("src_agent_id", &[]),
    Int("dst_agent_id", &[]),
    Int("stream_id", &[]),
    Int("size", &[]),
    Int("track_id", &[]),
];

fn copy(state: &mut State<'_, '_>, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    let [start, end, name, event, pid, from, to, stream, bytes, track] = page.ints(row);
    let times = (start?, end?);
    let place = state.place(Track { pid, stream, ..Track::default() }, track);
    let direction = name.and_then(|id| state.strings.get(&id)).and_then(|name| hip::direction(name));
    let agents = [state.device(from), state.device(to)];
    let correlation = state.correlation(event);
    state.import.copy(times, place.pid, (agents, place.stream), correlation, direction, bytes);
    Some(times)
}
