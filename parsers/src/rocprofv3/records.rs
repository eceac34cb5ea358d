//! The names and records of the JSON. Records say their kind and operation by numbers that the file's own tables explain;
//! handles are 64 bits without a sign.

use std::collections::BTreeMap;

use model::{Severity, TraceSink};
use rustc_hash::FxHashMap;
use serde::Deserialize;

use super::{
    agents::{Agent, Agents},
    import::Import,
};
use crate::{hip, json_walk::List, lanes::Account};

/// The key of the outermost object, whose value is the list of processes.
pub(super) const ROOT: &str = "rocprofiler-sdk-tool";

/// Most names of one kind that are remembered of a process.
const MAX_NAMES: usize = 1 << 20;
/// Most processes of one file; the tool writes one.
const MAX_PROCESSES: usize = 1 << 12;

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Handle {
    handle: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AgentRow {
    id: Handle,
    #[serde(rename = "type")]
    kind: i64,
    node_id: Option<i64>,
    logical_node_id: Option<i64>,
    name: Option<String>,
    product_name: Option<String>,
    cu_count: Option<u32>,
}

#[derive(Debug, Deserialize)]
struct Symbol {
    kernel_id: u64,
    formatted_kernel_name: Option<String>,
    kernel_name: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Operations {
    kind: String,
    #[serde(default)]
    operations: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Marker {
    key: u64,
    value: String,
}

/// `agents[].type` of a GPU. Source: `rocprofiler_agent_type_t`.
const GPU: i64 = 2;

/// The tables of names of one process.
#[derive(Default)]
struct Process {
    pid: Option<i64>,
    agents: FxHashMap<u64, AgentRow>,
    kernels: FxHashMap<u64, String>,
    kinds: Vec<Operations>,
    markers: FxHashMap<u64, String>,
}

/// The tables of names of all processes.
#[derive(Default)]
pub(super) struct Names {
    processes: Vec<Process>,
}

fn parsed<'a, T: Deserialize<'a>>(raw: &'a str) -> Option<T> {
    serde_json::from_str(raw).ok()
}

fn add<T>(names: &mut FxHashMap<u64, T>, key: u64, value: T) {
    if names.len() < MAX_NAMES {
        names.insert(key, value);
    }
}

impl Names {
    /// The lists that hold names.
    pub fn list(place: &str) -> List {
        match place {
            ROOT => List::Enter,
            "agents" | "kernel_symbols" | "strings.buffer_records" | "strings.marker_api" => List::Give,
            _ => List::Skip,
        }
    }

    /// Takes a scalar or an element of a list.
    pub fn take(&mut self, process: usize, place: &str, raw: &str) {
        if process >= MAX_PROCESSES {
            return;
        }
        if process >= self.processes.len() {
            self.processes.resize_with(process + 1, Process::default);
        }
        let Some(names) = self.processes.get_mut(process) else { return };
        match place {
            "metadata.pid" => names.pid = raw.parse().ok(),
            "agents" => {
                if let Some(agent) = parsed::<AgentRow>(raw) {
                    add(&mut names.agents, agent.id.handle, agent);
                }
            }
            "kernel_symbols" => {
                if let Some(symbol) = parsed::<Symbol>(raw)
                    && let Some(name) = symbol.formatted_kernel_name.or(symbol.kernel_name)
                {
                    add(&mut names.kernels, symbol.kernel_id, name);
                }
            }
            "strings.buffer_records" if names.kinds.len() < MAX_NAMES => names.kinds.extend(parsed::<Operations>(raw)),
            "strings.marker_api" => {
                if let Some(Marker { key, value }) = parsed(raw) {
                    add(&mut names.markers, key, value);
                }
            }
            _ => {}
        }
    }

    /// Whether no process was found.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// Tells the agents; all processes of a machine see the same ones.
    pub fn agents(&self, agents: &mut Agents) {
        let Some(process) = self.processes.iter().find(|process| !process.agents.is_empty()) else { return };
        for agent in process.agents.values() {
            let named = |name: &Option<String>| name.clone().filter(|name| !name.is_empty() && name != "N/A");
            agents.add(Agent {
                gpu: agent.kind == GPU,
                name: named(&agent.product_name).or_else(|| named(&agent.name)),
                cores: agent.cu_count.filter(|n| *n > 0),
                node: agent.node_id,
                logical: agent.logical_node_id,
                of_kind: None,
            });
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Correlation {
    internal: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Sides {
    x: Option<i64>,
    y: Option<i64>,
    z: Option<i64>,
}

impl From<Sides> for [Option<i64>; 3] {
    fn from(sides: Sides) -> Self {
        [sides.x, sides.y, sides.z]
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Dispatch {
    agent_id: Handle,
    queue_id: Handle,
    kernel_id: u64,
    workgroup_size: Sides,
    grid_size: Sides,
}

#[derive(Debug, Deserialize)]
struct Record {
    start_timestamp: i64,
    end_timestamp: i64,
    kind: Option<usize>,
    operation: Option<usize>,
    thread_id: Option<i64>,
    #[serde(default)]
    correlation_id: Correlation,
    dispatch_info: Option<Dispatch>,
    stream_id: Option<Handle>,
    src_agent_id: Option<Handle>,
    dst_agent_id: Option<Handle>,
    bytes: Option<i64>,
}

/// The lists of records that are kept, and what they become.
const KEPT: &[(&str, &str)] = &[
    ("buffer_records.hip_api", "host_api"),
    ("buffer_records.hsa_api", "host_api"),
    ("buffer_records.marker_api", "user_range"),
    ("buffer_records.rccl_api", "collective_call, library_api"),
    ("buffer_records.kernel_dispatch", "kernel"),
    ("buffer_records.memory_copy", "memcpy"),
];

fn is_record(place: &str) -> bool {
    place.starts_with("buffer_records.") || place.starts_with("callback_records.")
}

/// The records of all processes.
pub(super) struct Records<'n> {
    names: &'n Names,
    accounts: BTreeMap<String, Account>,
    unnamed: u64,
}

impl<'n> Records<'n> {
    pub fn new(names: &'n Names) -> Self {
        Self { names, accounts: BTreeMap::new(), unnamed: 0 }
    }

    /// The lists that hold records.
    pub fn list(place: &str) -> List {
        match place {
            ROOT => List::Enter,
            _ if is_record(place) => List::Give,
            _ => List::Skip,
        }
    }

    /// Takes an element of a list of records.
    pub fn take(&mut self, import: &mut Import<'_>, process: usize, place: &str, raw: &str) {
        if !is_record(place) {
            return;
        }
        let mut account = self.accounts.get(place).copied().unwrap_or_default();
        account.read += 1;
        if let Some((kept, _)) = KEPT.iter().find(|(kept, _)| *kept == place) {
            match (self.names.processes.get(process), parsed::<Record>(raw)) {
                (Some(names), Some(record)) if self.add(import, names, kept, &record) => {
                    account.keep(record.start_timestamp, record.end_timestamp);
                }
                _ => account.incomplete += 1,
            }
        }
        if self.accounts.len() < 256 || self.accounts.contains_key(place) {
            self.accounts.insert(place.to_owned(), account);
        }
    }

    /// Adds a record unless it lacks what its kind must have.
    fn add(&mut self, import: &mut Import<'_>, names: &Process, place: &str, record: &Record) -> bool {
        let times = (record.start_timestamp, record.end_timestamp);
        let internal = record.correlation_id.internal;
        let correlation = internal.map(u64::cast_signed);
        let device = |handle: Handle| {
            let agent = names.agents.get(&handle.handle)?;
            i32::try_from(agent.logical_node_id.or(agent.node_id)?).ok()
        };
        let kind = record.kind.and_then(|kind| names.kinds.get(kind));
        let operation = kind.zip(record.operation).and_then(|(kind, operation)| kind.operations.get(operation));
        match (place, &record.dispatch_info) {
            ("buffer_records.kernel_dispatch", dispatch) => {
                let Some(dispatch) = dispatch else { return false };
                let device =
                    device(dispatch.agent_id).and_then(|device| import.agents.device(&format!("Agent {device}")));
                let name = names.kernels.get(&dispatch.kernel_id).map_or("(unnamed)", String::as_str);
                self.unnamed += u64::from(name == "(unnamed)");
                let queue = Some(dispatch.queue_id.handle.cast_signed());
                let shape = (dispatch.grid_size.into(), dispatch.workgroup_size.into());
                let stream = record.stream_id.map(|stream| stream.handle.cast_signed());
                import.kernel(times, names.pid, (device, queue, stream), correlation, shape, name);
            }
            ("buffer_records.memory_copy", _) => {
                let agents = [record.src_agent_id, record.dst_agent_id].map(|handle| {
                    let device = handle.and_then(device)?;
                    import.agents.device(&format!("Agent {device}"))
                });
                let direction = operation.and_then(|name| hip::direction(name));
                let stream = record.stream_id.map(|stream| stream.handle.cast_signed());
                import.copy(times, names.pid, (agents, stream), correlation, direction, record.bytes);
            }
            _ => {
                let domain = kind.map_or("", |kind| kind.kind.as_str());
                let marker = internal.filter(|_| domain.starts_with("MARKER")).and_then(|id| names.markers.get(&id));
                let name = marker.or(operation).map_or("(unnamed)", String::as_str);
                self.unnamed += u64::from(name == "(unnamed)");
                import.call(times, (names.pid, record.thread_id), correlation, domain, name);
            }
        }
        true
    }

    /// Tells what became of the records.
    pub fn tell(&self, sink: &mut dyn TraceSink) {
        for (place, account) in &self.accounts {
            let becomes = KEPT.iter().find(|(kept, _)| kept == place).map_or("not kept", |(_, becomes)| becomes);
            account.tell(sink, "rocprofv3", place, becomes);
        }
        if self.unnamed > 0 {
            sink.stat("rocprofv3.missing_name", Severity::Notice, self.unnamed, None);
        }
    }
}
