//! Which tasks of the device lie inside which collective, where nothing says so: at level 0 the profiler keeps the tasks of the
//! communication library and drops what they belong to. The library's queues are those that wait for other devices; what waits,
//! transfers or notifies there while a collective runs is part of it.

use std::collections::BTreeSet;

use model::{Ns, ProcessId};

use super::{
    import::{DeviceTask, Part},
    task::Task,
};

/// Most tasks and collectives that are kept in mind; level 0 is what is recorded in production, for minutes at most.
const MOST: usize = 1 << 22;
/// Engines that move data between devices, as the types of their tasks begin.
const MOVERS: [&str; 3] = ["SDMA", "RDMA", "UB"];

/// A task that may be part of a collective.
#[derive(Clone, Debug)]
struct Loose {
    process: ProcessId,
    device: i32,
    stream: i64,
    start: Ns,
    end: Ns,
    waits: bool,
    name: Box<str>,
}

/// Tasks of the device that may lie inside collectives, and the collectives.
#[derive(Debug, Default)]
pub(super) struct Inside {
    tasks: Vec<Loose>,
    collectives: Vec<(ProcessId, i32, Ns, Ns)>,
}

impl Inside {
    /// Notes a task, if its kind is one that collectives are made of.
    pub fn note(&mut self, task: &DeviceTask<'_>) {
        let moves = || MOVERS.iter().any(|mover| task.task_type.starts_with(mover));
        let part = match task.task {
            Task::NotifyWait | Task::Record => true,
            Task::Pseudo => moves(),
            _ => false,
        };
        if part && self.tasks.len() < MOST {
            let waits = task.task == Task::NotifyWait;
            let super::import::Place { process, device, stream } = task.place;
            let (start, end, name) = (task.start, task.end, task.name.into());
            self.tasks.push(Loose { process, device, stream, start, end, waits, name });
        }
    }

    /// Notes a collective.
    pub fn collective(&mut self, process: ProcessId, device: i32, (start, end): (Ns, Ns)) {
        if self.collectives.len() < MOST {
            self.collectives.push((process, device, start, end));
        }
    }

    /// Gives the tasks that lie within a collective of their device to `take`, but for devices of which `known` says that the
    /// source itself tells what lies inside.
    pub fn settle(mut self, known: &BTreeSet<(ProcessId, i32)>, mut take: impl FnMut(&Part<'_>)) {
        let queues: BTreeSet<(ProcessId, i32, i64)> =
            self.tasks.iter().filter(|task| task.waits).map(|task| (task.process, task.device, task.stream)).collect();
        self.collectives.sort_unstable();
        for task in &self.tasks {
            let Loose { process, device, stream, start, end, .. } = *task;
            if known.contains(&(process, device)) || !queues.contains(&(process, device, stream)) {
                continue;
            }
            let after = self.collectives.partition_point(|(p, d, from, _)| (*p, *d, *from) <= (process, device, start));
            let around = after.checked_sub(1).and_then(|at| self.collectives.get(at));
            if around.is_some_and(|(p, d, _, until)| (*p, *d) == (process, device) && end <= *until) {
                take(&Part { process, device, plane: stream, start, end, name: &task.name, peer: None, own: None });
            }
        }
    }
}
