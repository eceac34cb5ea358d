//! What the host puts on the device: kernels, graphs, copies and fills.

use std::cmp::Reverse;

use super::Machine;
use crate::{
    fault::FaultKind,
    forward::{Task, shape},
    kernel::Slot,
    meeting::{Arrival, Party},
    random::Of,
    record::{Bound, DeviceOp, Direction, HostEvent, HostKind, Inputs, Work},
};

/// Operations looked back upon for overlap; more are never in flight beside a new one.
const OVERLAP_DEPTH: usize = 96;

/// Limits on when an operation may start.
struct Ready {
    launch: i64,
    gap: i64,
    dependency: Option<i64>,
}

/// Whether a kernel works on logits in 32 bits.
fn is_sampling(slot: Slot) -> bool {
    matches!(slot, Slot::Softmax | Slot::Argmax | Slot::Sort)
}

impl Machine<'_> {
    /// Blocks until the launch queue has room.
    fn await_room(&mut self) {
        loop {
            while self.outstanding.peek().is_some_and(|Reverse(end)| *end <= self.now) {
                self.outstanding.pop();
            }
            match self.outstanding.peek() {
                Some(Reverse(end)) if self.outstanding.len() >= self.config.queue_limit.max(1) => self.now = *end,
                _ => return,
            }
        }
    }

    /// Settles when an operation runs and books it.
    fn place(&mut self, mut op: DeviceOp, ns: i64, ready: &Ready) {
        let config = self.config;
        let event_ns = config.event_ns + config.dose(FaultKind::SerialStreams, 3_000);
        let event = ready.dependency.map_or(i64::MIN, |end| end + event_ns);
        let free = self.tails[op.stream] + ready.gap;
        op.start = ready.launch.max(free).max(event);
        op.bound = match ready.dependency {
            _ if op.bound == Bound::Node && ready.launch < op.start => Bound::Node,
            Some(end) if op.start == event => Bound::Dependency(end),
            _ if op.start == ready.launch => Bound::Launch,
            _ => Bound::Stream,
        };
        if let (Work::Collective { wait, .. }, Some(meeting)) = (&mut op.work, self.meeting) {
            let party = Party::of(self.seat.rank, op.peer);
            *wait = meeting.suspend(Arrival { party, at: op.start }) - op.start;
        }
        op.end = op.start + op.work.wait() + ns.max(1);
        if matches!(op.work, Work::Compute(_)) {
            let beside: i64 = self
                .ops
                .iter()
                .rev()
                .take(OVERLAP_DEPTH)
                .filter(|other| other.stream != op.stream && matches!(other.work, Work::Compute(_)))
                .map(|other| (other.end.min(op.end) - other.start.max(op.start)).max(0))
                .sum();
            op.end += beside * self.config.contention_permille / 1000;
        }
        self.tails[op.stream] = op.end;
        self.ops.push(op);
    }

    fn task_op(&mut self, task: &Task, call: usize, bound: Bound) -> DeviceOp {
        let work = match task.kernel.card().class {
            Some(class) => Work::Compute(class),
            None => {
                self.collectives += 1;
                Work::Collective { wait: task.wait, seq: self.collectives }
            }
        };
        let bytes = if matches!(work, Work::Collective { .. }) { 2 * task.rows * self.config.hidden } else { 0 };
        DeviceOp {
            work,
            slot: Some(task.kernel),
            stream: task.stream,
            start: 0,
            end: 0,
            call,
            node: None,
            bound,
            bytes,
            blocks: task.blocks,
            name: task.name,
            peer: task.peer,
            step: self.step,
        }
    }

    /// Cost of a launch call, the profiler's share included.
    fn launch_cost(&mut self) -> i64 {
        let launch = self.config.launch_ns;
        let slow =
            self.config.dose(FaultKind::Profiler, 8_000) + self.config.dose(FaultKind::SlowLaunch, launch * 3 / 2);
        self.cost(Of::Launch, launch) + slow + self.preempted()
    }

    /// Time for which other processes have the processor in the middle of a call.
    fn preempted(&mut self) -> i64 {
        let away = self.config.dose(FaultKind::HostContention, 60 * self.config.launch_ns);
        let key = [self.step, self.place, self.draws];
        if away > 0 && self.seat.own.chance(Of::Contention, key, 25) {
            self.seat.own.around(Of::Contention, key, away, 500)
        } else {
            0
        }
    }

    /// Has `stream` wait for what `on` holds so far; two calls and the time they wait for.
    fn order(&mut self, on: usize, stream: usize) -> i64 {
        let name = self.api("cudaEventRecord", "hipEventRecord", "aclrtRecordEvent");
        self.call(HostKind::EventRecord, name, Some(on), |machine, _| machine.work(machine.config.launch_ns / 4));
        let name = self.api("cudaStreamWaitEvent", "hipStreamWaitEvent", "aclrtStreamWaitEvent");
        self.call(HostKind::StreamWait, name, Some(stream), |machine, _| machine.work(machine.config.launch_ns / 4));
        self.tails[on]
    }

    /// Gives the operator that has just begun what it is called with.
    fn note_inputs(&mut self, task: &Task) {
        let config = self.config;
        if !(config.framework_ops && config.record_shapes) {
            return;
        }
        let shapes = match shape::weight(config, task.slot) {
            Some((inner, outer)) => vec![[task.rows, inner], [inner, outer]],
            None => vec![[task.rows, self.width(task.slot)]],
        };
        let float = task.kernel == Slot::CastDown || config.serving.is_some() && is_sampling(task.slot);
        let dtype = if float { "float" } else { "c10::BFloat16" };
        if let Some(event) = self.host.last_mut() {
            event.inputs = Some(Inputs { shapes, dtype });
        }
    }

    /// Width of what a kernel that is no product works on.
    fn width(&self, slot: Slot) -> i64 {
        match self.config.serving {
            Some(serving) if slot == Slot::LogitsCast || is_sampling(slot) => serving.model.vocab,
            _ => self.config.hidden,
        }
    }

    /// `ns` of a copy or fill, which scatter as kernels do where the run serves.
    fn scattered(&mut self, ns: i64) -> i64 {
        // Without serving nothing is drawn here, so that no other draw moves.
        let Some(serving) = self.config.serving else { return ns };
        let key = self.key();
        self.seat.own.lognormal(Of::Bytes, key, ns, serving.sigma_permille)
    }

    /// Waits while another thread of the interpreter holds its lock.
    fn wait_for_interpreter(&mut self) {
        let held = self.config.dose(FaultKind::Gil, 20 * self.config.framework_ns);
        let key = [self.step, self.place, self.draws];
        if held == 0 || !self.seat.own.chance(Of::Gil, key, 30) {
            return;
        }
        let start = self.now;
        self.now += self.seat.own.around(Of::Gil, key, held, 300);
        self.other.push(HostEvent {
            kind: HostKind::PythonFrame,
            name: "vllm/v1/engine/detokenizer.py(164): update".into(),
            start,
            end: self.now,
            correlation: None,
            external: None,
            inputs: None,
            stream: None,
            step: self.step,
        });
    }

    /// Issues one kernel: framework work, then the launch call.
    pub(crate) fn launch(&mut self, task: &Task) {
        let operator = task.kernel.card().operator;
        self.at_task(task);
        self.record_if(self.config.framework_ops, HostKind::FrameworkOp, operator, |machine| {
            machine.note_inputs(task);
            machine.work(machine.config.framework_ns);
            machine.wait_for_interpreter();
            if task.slot.card().class.is_none() {
                machine.pause(machine.config.dose(FaultKind::CollectiveHost, 50_000));
            }
            let dependency = task.after.map(|on| machine.order(on, task.stream));
            let name = machine.api("cudaLaunchKernel", "hipLaunchKernel", "launch");
            machine.call(HostKind::Launch, name, Some(task.stream), |machine, call| {
                machine.await_room();
                let launch = machine.now + machine.cost(Of::Latency, machine.config.latency_ns);
                let gap = machine.cost(Of::Gap, machine.config.gap_ns);
                let op = machine.task_op(task, call, Bound::Launch);
                machine.place(op, task.ns, &Ready { launch, gap, dependency });
                machine.outstanding.push(Reverse(machine.tails[task.stream]));
                let cost = machine.launch_cost();
                machine.pause(cost);
            });
        });
    }

    /// Launches a graph of `tasks`; `graph` is its id.
    pub(crate) fn launch_graph(&mut self, graph: i64, tasks: &[Task]) {
        let graph = graph + if self.config.serving.is_some() { 100_000 } else { 100 } * self.captures;
        let name = self.api("cudaGraphLaunch", "hipGraphLaunch", "aclmdlRIExecuteAsync");
        self.call(HostKind::GraphLaunch, name, Some(crate::forward::MAIN), |machine, call| {
            machine.await_room();
            let nodes = i64::try_from(tasks.len()).unwrap_or(i64::MAX);
            let config = machine.config;
            let cost =
                machine.cost(Of::Launch, config.graph_launch_ns + config.graph_launch_node_ns.saturating_mul(nodes));
            machine.pause(cost + config.dose(FaultKind::SlowGraphLaunch, 250_000));
            // The first node starts after the call has returned.
            let launch = machine.now + machine.cost(Of::Latency, config.latency_ns / 2);
            let longer = config.dose(FaultKind::NodeGap, 2 * config.node_gap_ns);
            for (node, task) in (0..).zip(tasks) {
                machine.at_task(task);
                let gap = machine.cost(Of::Gap, config.node_gap_ns) + longer;
                let dependency = task.after.map(|on| machine.tails[on]);
                let bound = if node == 0 { Bound::Launch } else { Bound::Node };
                let mut op = machine.task_op(task, call, bound);
                op.node = Some((graph, (graph << 32) + node));
                machine.place(op, task.ns, &Ready { launch, gap, dependency });
            }
            let end = machine.tails.iter().copied().max().unwrap_or(0);
            machine.outstanding.push(Reverse(end));
        });
    }

    /// Issues a copy; `pageable` copies return when they are done.
    pub(crate) fn copy(
        &mut self,
        direction: Direction,
        bytes: i64,
        stream: usize,
        after: Option<usize>,
        pageable: bool,
    ) {
        let dependency = after.map(|on| self.order(on, stream));
        let (kind, name) = if pageable {
            (HostKind::BlockingCopy, self.api("cudaMemcpyAsync", "hipMemcpyWithStream", "aclrtMemcpy"))
        } else {
            (HostKind::Copy, self.api("cudaMemcpyAsync", "hipMemcpyAsync", "aclrtMemcpyAsync"))
        };
        let name = match direction {
            Direction::PeerToPeer => self.api("cudaMemcpyPeerAsync", "hipMemcpyPeerAsync", "aclrtMemcpyAsync"),
            _ => name,
        };
        self.call(kind, name, Some(stream), |machine, call| {
            machine.await_room();
            let launch = machine.now + machine.cost(Of::Latency, machine.config.latency_ns);
            let gap = machine.cost(Of::Gap, machine.config.gap_ns);
            // 24 bytes per ns is a PCIe 4.0 x16 link; staging through pageable memory reaches a third of it.
            let rate = if pageable { 8 } else { 24 };
            let op = DeviceOp {
                work: Work::Copy { direction, pageable },
                slot: None,
                stream,
                start: 0,
                end: 0,
                call,
                node: None,
                bound: Bound::Launch,
                bytes,
                blocks: 0,
                name: None,
                peer: None,
                step: machine.step,
            };
            let ns = machine.scattered(900 + bytes / rate);
            machine.place(op, ns, &Ready { launch, gap, dependency });
            machine.outstanding.push(Reverse(machine.tails[stream]));
            let cost = machine.launch_cost();
            machine.pause(cost);
            if pageable {
                machine.await_end(machine.tails[stream]);
            }
        });
    }

    /// Fills device memory.
    pub(crate) fn memset(&mut self, bytes: i64, stream: usize) {
        let name = self.api("cudaMemsetAsync", "hipMemsetAsync", "aclrtMemsetAsync");
        self.call(HostKind::Copy, name, Some(stream), |machine, call| {
            machine.await_room();
            let launch = machine.now + machine.cost(Of::Latency, machine.config.latency_ns);
            let gap = machine.cost(Of::Gap, machine.config.gap_ns);
            let (step, bound) = (machine.step, Bound::Launch);
            let op = DeviceOp {
                work: Work::Memset,
                slot: None,
                stream,
                start: 0,
                end: 0,
                call,
                node: None,
                bound,
                bytes,
                blocks: 0,
                name: None,
                peer: None,
                step,
            };
            let ns = machine.scattered(800 + bytes / 1000);
            machine.place(op, ns, &Ready { launch, gap, dependency: None });
            machine.outstanding.push(Reverse(machine.tails[stream]));
            let cost = machine.launch_cost();
            machine.pause(cost);
        });
    }
}
