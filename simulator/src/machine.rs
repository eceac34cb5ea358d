//! One host thread and one device: the thread issues calls, the device runs streams in order. Because calls are issued
//! one after the other and a stream never overtakes itself, every time is settled when its call is made.

use std::{borrow::Cow, cmp::Reverse, collections::BinaryHeap};

use crate::{
    config::Config,
    fault::FaultKind,
    forward::Task,
    kernel::Vendor,
    random::{Dice, Of},
    record::{Bound, DeviceOp, Direction, HostEvent, HostKind, SyncOn, Work},
};

/// Streams of the device.
pub(crate) const STREAMS: usize = 3;
/// Time at which the first step begins; a capture starts a little before its first event.
const ORIGIN: i64 = 250_000_000;
/// Operations looked back upon for overlap; more are never in flight beside a new one.
const OVERLAP_DEPTH: usize = 96;

pub(crate) struct Machine<'c> {
    pub(crate) config: &'c Config,
    pub(crate) dice: Dice,
    /// The host's clock.
    pub(crate) now: i64,
    pub(crate) step: i64,
    /// End of each stream's last operation.
    tails: [i64; STREAMS],
    /// Ends of the launches not yet known to be done.
    outstanding: BinaryHeap<Reverse<i64>>,
    correlation: i64,
    external: i64,
    /// External ids of the open operators and ranges.
    open: Vec<i64>,
    /// Where in the step the program is, and the draws made there: by these each cost is addressed, so that work which
    /// only one of two runs does leaves the costs of all other work as they are.
    place: i64,
    draws: i64,
    collectives: i64,
    pub(crate) host: Vec<HostEvent>,
    pub(crate) ops: Vec<DeviceOp>,
}

/// Limits on when an operation may start.
struct Ready {
    launch: i64,
    gap: i64,
    dependency: Option<i64>,
}

impl<'c> Machine<'c> {
    pub(crate) fn new(config: &'c Config) -> Self {
        Self {
            config,
            dice: Dice::new(config.seed),
            now: ORIGIN,
            step: 0,
            tails: [0; STREAMS],
            outstanding: BinaryHeap::new(),
            correlation: 1000,
            external: 1,
            open: Vec::new(),
            place: 0,
            draws: 0,
            collectives: 0,
            host: Vec::new(),
            ops: Vec::new(),
        }
    }

    /// Comes to a place of the program; small numbers, as kernels have the large ones.
    pub(crate) fn at(&mut self, place: i64) {
        self.place = place;
        self.draws = 0;
    }

    fn at_task(&mut self, task: &Task) {
        self.at(((task.slot as i64 + 1) << 40) + ((task.layer + 2) << 20) + task.nth);
    }

    fn api(&self, cuda: &'static str, hip: &'static str) -> Cow<'static, str> {
        Cow::Borrowed(if self.config.vendor == Vendor::Cuda { cuda } else { hip })
    }

    /// `mean` with the jitter of host work.
    fn cost(&mut self, of: Of, mean: i64) -> i64 {
        self.draws += 1;
        let key = [self.step, self.place, self.draws];
        self.dice.around(of, key, mean, 200) + self.dice.tail(Of::Stall, key, mean / 20)
    }

    /// Host work without an event of its own.
    pub(crate) fn work(&mut self, mean: i64) {
        if mean > 0 {
            self.now += self.cost(Of::Host, mean);
        }
    }

    /// Host work of exactly `ns`.
    pub(crate) fn pause(&mut self, ns: i64) {
        self.now += ns.max(0);
    }

    /// Records `inside` as an event of `kind`. Operators and ranges give the calls within them their external id.
    pub(crate) fn record(
        &mut self,
        kind: HostKind,
        name: impl Into<Cow<'static, str>>,
        inside: impl FnOnce(&mut Self),
    ) {
        let named = matches!(kind, HostKind::FrameworkOp | HostKind::UserRange);
        if named {
            self.external += 1;
            self.open.push(self.external);
        }
        let (at, start, external) = (self.host.len(), self.now, self.open.last().copied());
        let external = external.filter(|_| named || kind.is_api());
        let correlation = kind.is_api().then(|| {
            self.correlation += 1;
            self.correlation
        });
        let name = name.into();
        self.host.push(HostEvent {
            kind,
            name,
            start,
            end: start,
            correlation,
            external,
            stream: None,
            step: self.step,
        });
        inside(self);
        if named {
            self.open.pop();
        }
        if let Some(event) = self.host.get_mut(at) {
            event.end = self.now.max(start + 1);
            self.now = event.end;
        }
    }

    /// Records a range if `on`; what is inside happens either way.
    pub(crate) fn record_if(
        &mut self,
        on: bool,
        kind: HostKind,
        name: impl Into<Cow<'static, str>>,
        inside: impl FnOnce(&mut Self),
    ) {
        if on { self.record(kind, name, inside) } else { inside(self) }
    }

    fn call(
        &mut self,
        kind: HostKind,
        name: Cow<'static, str>,
        stream: Option<usize>,
        inside: impl FnOnce(&mut Self, usize),
    ) {
        let at = self.host.len();
        self.record(kind, name, |machine| inside(machine, at));
        if let Some(event) = self.host.get_mut(at) {
            event.stream = stream;
        }
    }

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
        let event = ready.dependency.map_or(i64::MIN, |end| end + self.config.event_ns);
        let free = self.tails[op.stream] + ready.gap;
        op.start = ready.launch.max(free).max(event);
        op.bound = match ready.dependency {
            _ if op.bound == Bound::Node && ready.launch < op.start => Bound::Node,
            Some(end) if op.start == event => Bound::Dependency(end),
            _ if op.start == ready.launch => Bound::Launch,
            _ => Bound::Stream,
        };
        op.end = op.start + ns.max(1);
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
        let work = match task.slot.card().class {
            Some(class) => Work::Compute(class),
            None => {
                self.collectives += 1;
                Work::Collective { wait: task.wait, seq: self.collectives }
            }
        };
        let bytes = if matches!(work, Work::Collective { .. }) { self.config.batch * 8192 } else { 0 };
        DeviceOp {
            work,
            slot: Some(task.slot),
            stream: task.stream,
            start: 0,
            end: 0,
            call,
            node: None,
            bound,
            bytes,
            step: self.step,
        }
    }

    /// Cost of a launch call, the profiler's share included.
    fn launch_cost(&mut self) -> i64 {
        self.cost(Of::Launch, self.config.launch_ns) + self.config.dose(FaultKind::Profiler, 8_000)
    }

    /// Has `stream` wait for what `on` holds so far; two calls and the time they wait for.
    fn order(&mut self, on: usize, stream: usize) -> i64 {
        let name = self.api("cudaEventRecord", "hipEventRecord");
        self.call(HostKind::EventRecord, name, Some(on), |machine, _| machine.work(machine.config.launch_ns / 4));
        let name = self.api("cudaStreamWaitEvent", "hipStreamWaitEvent");
        self.call(HostKind::StreamWait, name, Some(stream), |machine, _| machine.work(machine.config.launch_ns / 4));
        self.tails[on]
    }

    /// Issues one kernel: framework work, then the launch call.
    pub(crate) fn launch(&mut self, task: &Task) {
        let operator = task.slot.card().operator;
        self.at_task(task);
        self.record_if(self.config.framework_ops, HostKind::FrameworkOp, operator, |machine| {
            machine.work(machine.config.framework_ns);
            if task.slot.card().class.is_none() {
                machine.pause(machine.config.dose(FaultKind::CollectiveHost, 50_000));
            }
            let dependency = task.after.map(|on| machine.order(on, task.stream));
            let name = machine.api("cudaLaunchKernel", "hipLaunchKernel");
            machine.call(HostKind::Launch, name, Some(task.stream), |machine, call| {
                machine.await_room();
                let launch = machine.now + machine.cost(Of::Latency, machine.config.latency_ns);
                let gap = machine.cost(Of::Gap, machine.config.gap_ns);
                let op = machine.task_op(task, call, Bound::Launch);
                machine.place(op, task.ns + task.wait, &Ready { launch, gap, dependency });
                machine.outstanding.push(Reverse(machine.tails[task.stream]));
                let cost = machine.launch_cost();
                machine.pause(cost);
            });
        });
    }

    /// Launches a graph of `tasks`; `graph` is its id.
    pub(crate) fn launch_graph(&mut self, graph: i64, tasks: &[Task]) {
        let name = self.api("cudaGraphLaunch", "hipGraphLaunch");
        self.call(HostKind::GraphLaunch, name, Some(crate::forward::MAIN), |machine, call| {
            machine.await_room();
            let nodes = i64::try_from(tasks.len()).unwrap_or(i64::MAX);
            let config = machine.config;
            let cost =
                machine.cost(Of::Launch, config.graph_launch_ns + config.graph_launch_node_ns.saturating_mul(nodes));
            machine.pause(cost);
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
                machine.place(op, task.ns + task.wait, &Ready { launch, gap, dependency });
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
            (HostKind::BlockingCopy, self.api("cudaMemcpyAsync", "hipMemcpyWithStream"))
        } else {
            (HostKind::Copy, self.api("cudaMemcpyAsync", "hipMemcpyAsync"))
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
                step: machine.step,
            };
            machine.place(op, 900 + bytes / rate, &Ready { launch, gap, dependency });
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
        let name = self.api("cudaMemsetAsync", "hipMemsetAsync");
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
                step,
            };
            machine.place(op, 800 + bytes / 1000, &Ready { launch, gap, dependency: None });
            machine.outstanding.push(Reverse(machine.tails[stream]));
            let cost = machine.launch_cost();
            machine.pause(cost);
        });
    }

    fn await_end(&mut self, end: i64) {
        let tail = self.cost(Of::SyncTail, self.config.sync_tail_ns);
        if end > self.now {
            self.now = end + tail;
        }
    }

    /// Waits for what `stream` holds, or until `end` if an event marks it.
    pub(crate) fn sync(&mut self, on: SyncOn, stream: usize, end: Option<i64>) {
        let name = match on {
            SyncOn::Stream => self.api("cudaStreamSynchronize", "hipStreamSynchronize"),
            SyncOn::Event => self.api("cudaEventSynchronize", "hipEventSynchronize"),
        };
        self.call(HostKind::Sync(on), name, Some(stream), |machine, _| {
            machine.work(machine.config.sync_call_ns);
            machine.await_end(end.unwrap_or(machine.tails[stream]));
        });
    }

    /// Allocates device memory and frees it.
    pub(crate) fn allocate(&mut self, ns: i64) {
        let name = self.api("cudaMalloc", "hipMalloc");
        self.call(HostKind::Alloc, name, None, |machine, _| machine.pause(ns * 2 / 3));
        self.work(1_000);
        let name = self.api("cudaFree", "hipFree");
        self.call(HostKind::Alloc, name, None, |machine, _| machine.pause(ns / 3));
    }

    /// Compiles for `ns`, module load included.
    pub(crate) fn compile(&mut self, ns: i64) {
        self.record(HostKind::Compile, "_compile.compile_inner (dynamo_timed)", |machine| {
            machine.pause(ns * 4 / 5);
            let name = machine.api("cuModuleLoadData", "hipModuleLoadData");
            machine.call(HostKind::ModuleLoad, name, None, |machine, _| machine.pause(ns / 5));
        });
    }

    /// End of a stream's last operation.
    pub(crate) fn tail(&self, stream: usize) -> i64 {
        self.tails[stream]
    }
}
