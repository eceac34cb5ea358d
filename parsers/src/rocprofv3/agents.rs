//! The agents of a machine, which are its CPUs and GPUs, and which of them a row means.

use std::collections::BTreeMap;

use model::{Device, Provenance, TraceSink};

use crate::lanes::Lanes;

/// A GPU or CPU of the machine.
#[derive(Clone, Debug, Default)]
pub(super) struct Agent {
    /// Whether it is a GPU.
    pub gpu: bool,
    /// Product, else architecture (`gfx942`).
    pub name: Option<String>,
    /// Compute units.
    pub cores: Option<u32>,
    /// Numbers that rows may give it: its node, its place in the list, its place among its kind.
    pub node: Option<i64>,
    pub logical: Option<i64>,
    pub of_kind: Option<i64>,
}

/// Most agents that are remembered; a machine has a dozen.
const MAX_AGENTS: usize = 4096;

/// What is known of the agents.
#[derive(Default)]
pub(super) struct Agents {
    known: Vec<Agent>,
    /// Agent that each device number, as a row gave it, stands for.
    meant: BTreeMap<i32, usize>,
}

impl Agents {
    /// Adds an agent.
    pub fn add(&mut self, agent: Agent) {
        if self.known.len() < MAX_AGENTS {
            self.known.push(agent);
        }
    }

    /// The device number in an agent cell: `Agent 1`, `GPU 0` or a bare node number. Which number an agent has depends on
    /// `--agent-index`; the words tell.
    pub fn device(&mut self, cell: &str) -> Option<i32> {
        let (words, digits) = cell.trim().split_at(cell.trim().rfind(' ').map_or(0, |space| space + 1));
        let number: i32 = digits.trim().parse().ok()?;
        if !self.meant.contains_key(&number) {
            let wanted = Some(i64::from(number));
            let found = match words.trim() {
                "GPU" => self.known.iter().position(|a| a.gpu && a.of_kind == wanted),
                "" => self.known.iter().position(|a| a.node == wanted),
                _ => self.known.iter().position(|a| a.logical == wanted),
            };
            found.map(|index| self.meant.insert(number, index));
        }
        Some(number)
    }

    /// Whether the device with this number is known to be a CPU.
    pub fn is_cpu(&self, device: i32) -> bool {
        self.meant.get(&device).and_then(|index| self.known.get(*index)).is_some_and(|agent| !agent.gpu)
    }

    /// Describes the devices that did work.
    pub fn describe(&self, sink: &mut dyn TraceSink, lanes: &mut Lanes) {
        let vendor = sink.intern("amd");
        let mut names = std::collections::BTreeSet::new();
        let mut numbers = std::collections::BTreeSet::new();
        for (key, ordinal) in lanes.devices.clone() {
            let agent = self.meant.get(&ordinal).and_then(|index| self.known.get(*index));
            let process = lanes.process(sink, key);
            let name = agent.and_then(|agent| agent.name.as_deref());
            names.extend(name.map(str::to_owned));
            numbers.insert(ordinal);
            let name = name.map(|name| sink.intern(name));
            let cores = agent.and_then(|agent| agent.cores);
            sink.device(Device { process, ordinal, name, vendor: Some(vendor), cores, memory_bytes: None });
        }
        if !names.is_empty() {
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            sink.manifest("hardware.device", &names, Provenance::Observed);
        }
        if !numbers.is_empty() {
            sink.manifest("hardware.count", &numbers.len().to_string(), Provenance::Observed);
        }
    }
}
