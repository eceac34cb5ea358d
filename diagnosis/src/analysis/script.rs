//! Small captures written by hand, for tests: host calls and the device work they cause, in nanoseconds, for one rank or
//! several.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use model::{
    Category, CollectiveCall, CopyDetail, Detail, Device, KernelDetail, Ns, ProcessId, Slice, Trace, TraceBuilder,
    TraceSink, TrackId, TrackKey, TrackKind,
};

use super::{Analysis, Options, analyze};
use crate::platform::Packs;

/// A capture of one process with one host thread and one device, or of one such process per rank.
pub struct Script {
    /// Where everything is written.
    pub builder: TraceBuilder,
    process: ProcessId,
    thread: TrackId,
    correlation: i64,
}

impl Default for Script {
    fn default() -> Self {
        Self::of("nvidia")
    }
}

fn place(builder: &mut TraceBuilder, key: u64, vendor: &str) -> (ProcessId, TrackId) {
    let process = builder.process(key);
    let thread = TrackKey { kind: TrackKind::HostThread, process, device: None, context: None, id: 1 };
    let thread = builder.track(thread);
    let vendor = Some(builder.intern(vendor));
    builder.device(Device { process, ordinal: 0, name: None, vendor, cores: None, memory_bytes: None });
    (process, thread)
}

impl Script {
    /// A capture of a device of this vendor.
    pub fn of(vendor: &str) -> Self {
        let mut builder = TraceBuilder::new("script", "kineto");
        let (process, thread) = place(&mut builder, 0, vendor);
        Self { builder, process, thread, correlation: 0 }
    }

    /// What follows is of this rank, a process of its own.
    pub fn rank(&mut self, rank: u32) -> &mut Self {
        (self.process, self.thread) = place(&mut self.builder, u64::from(rank), "nvidia");
        self.builder.describe_process(self.process, None, None, Some(rank));
        self
    }

    /// The device is of this name.
    pub fn chip(&mut self, name: &str) -> &mut Self {
        let (process, name) = (self.process, Some(self.builder.intern(name)));
        self.builder.device(Device { process, ordinal: 0, name, vendor: None, cores: None, memory_bytes: None });
        self
    }

    /// A collective of a process group of `size` ranks, launched by `call`.
    pub fn collective(&mut self, call: (Ns, Ns), group: (&str, u32), seq: Option<i64>, span: (Ns, Ns)) -> &mut Self {
        self.exchange(call, ("allreduce", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 65_536), group, seq, span)
    }

    /// The same of any kind: what the source calls it, its kernel, and its payload in bytes, 0 where the source does not say it.
    pub fn exchange(
        &mut self,
        call: (Ns, Ns),
        (op, kernel, bytes): (&str, &str, i64),
        group: (&str, u32),
        seq: Option<i64>,
        span: (Ns, Ns),
    ) -> &mut Self {
        let id = self.issue("cudaLaunchKernel", call);
        self.exchanged((op, kernel, bytes), group, seq, span, Some(id))
    }

    /// The same of a rank of which nothing but its collectives was recorded.
    pub fn exchange_alone(
        &mut self,
        kind: (&str, &str, i64),
        group: (&str, u32),
        seq: Option<i64>,
        span: (Ns, Ns),
    ) -> &mut Self {
        self.exchanged(kind, group, seq, span, None)
    }

    fn exchanged(
        &mut self,
        (op, kernel, bytes): (&str, &str, i64),
        group: (&str, u32),
        seq: Option<i64>,
        span: (Ns, Ns),
        launch: Option<i64>,
    ) -> &mut Self {
        let description = CollectiveCall {
            op: Some(self.builder.intern(op)),
            group: Some(self.builder.intern(group.0)),
            group_size: Some(group.1),
            seq,
            bytes: Some(bytes).filter(|bytes| *bytes > 0),
            dtype: None,
        };
        let detail = KernelDetail { collective: Some(Box::new(description)), ..KernelDetail::default() };
        self.kernel(7, kernel, span, launch, Some(Detail::Kernel(detail)));
        self
    }

    /// A slice on the host thread.
    pub fn host(&mut self, category: Category, name: &str, span: (Ns, Ns)) -> &mut Self {
        self.put(self.thread, category, name, span, None, None);
        self
    }

    /// A slice on another host thread.
    pub fn host_on(&mut self, thread: i64, category: Category, name: &str, span: (Ns, Ns)) -> &mut Self {
        let process = self.process;
        let key = TrackKey { kind: TrackKind::HostThread, process, device: None, context: None, id: thread };
        let track = self.builder.track(key);
        self.put(track, category, name, span, None, None);
        self
    }

    /// Something on a queue that is no work of its own: a wait or a transfer inside a collective.
    pub fn inside(&mut self, queue: i64, category: Category, name: &str, span: (Ns, Ns), detail: Option<Detail>) {
        let queue = self.queue(queue);
        self.put(queue, category, name, span, None, detail);
    }

    /// A wait for an event of another queue, as the device recorded it.
    pub fn stands(&mut self, queue: i64, span: (Ns, Ns)) -> &mut Self {
        let process = self.process;
        let key = TrackKey { kind: TrackKind::DeviceSync, process, device: Some(0), context: None, id: queue };
        let track = self.builder.track(key);
        let wait = Some(Detail::Sync(model::SyncKind::StreamWaitEvent));
        self.put(track, Category::DeviceSync, "EVENT_WAIT", span, None, wait);
        self
    }

    /// A range that was drawn on the device alone.
    pub fn drawn(&mut self, name: &str, span: (Ns, Ns)) -> &mut Self {
        let process = self.process;
        let key = TrackKey { kind: TrackKind::DeviceAnnotation, process, device: Some(0), context: None, id: 0 };
        let track = self.builder.track(key);
        self.put(track, Category::DeviceRange, name, span, None, None);
        self
    }

    /// A runtime call that causes no device work.
    pub fn call(&mut self, api: &str, span: (Ns, Ns)) -> &mut Self {
        self.host(Category::HostApi, api, span)
    }

    /// A blocking copy of which only the call was recorded, with the direction and the bytes of its arguments.
    pub fn copy_call(&mut self, api: &str, span: (Ns, Ns), direction: &str, bytes: i64) -> &mut Self {
        let direction = Some(self.builder.intern(direction));
        let detail = Detail::Copy(model::CopyDetail { direction, bytes: Some(bytes), ..model::CopyDetail::default() });
        self.put(self.thread, Category::HostApi, api, span, None, Some(detail));
        self
    }

    /// A launch call and its kernel on queue 7.
    pub fn launch(&mut self, call: (Ns, Ns), name: &str, kernel: (Ns, Ns)) -> &mut Self {
        self.launch_on(7, call, name, kernel)
    }

    /// A launch call and its kernel on a queue.
    pub fn launch_on(&mut self, queue: i64, call: (Ns, Ns), name: &str, kernel: (Ns, Ns)) -> &mut Self {
        let id = self.issue("cudaLaunchKernel", call);
        self.kernel(queue, name, kernel, Some(id), None);
        self
    }

    /// A graph launch and its nodes on queue 7.
    pub fn graph(&mut self, call: (Ns, Ns), nodes: &[(&str, (Ns, Ns))]) -> &mut Self {
        let id = self.issue("cudaGraphLaunch", call);
        // Other kernels are another graph.
        let graph = nodes
            .iter()
            .flat_map(|(name, _)| name.bytes())
            .fold(1, |graph: i64, byte| graph.wrapping_mul(31).wrapping_add(i64::from(byte)) & 0xffff_ffff);
        for (i, (name, span)) in nodes.iter().enumerate() {
            let node = KernelDetail { graph: Some(graph), graph_node: Some(i as i64), ..KernelDetail::default() };
            self.kernel(7, name, *span, Some(id), Some(Detail::Kernel(node)));
        }
        self
    }

    /// A graph launch whose replay on queue 7 is told as one.
    pub fn replay(&mut self, call: (Ns, Ns), span: (Ns, Ns)) -> &mut Self {
        let id = self.issue("cudaGraphLaunch", call);
        let queue = self.queue(7);
        self.put(queue, Category::GraphExec, "graph 3", span, Some(id), None);
        self
    }

    /// A copy call `api` and its copy of `bytes`, in a direction such as `DtoH`, from or to `pageable` or `pinned` memory.
    pub fn copy(&mut self, api: &str, call: (Ns, Ns), dir: &str, host: &str, bytes: i64, span: (Ns, Ns)) -> &mut Self {
        let id = self.issue(api, call);
        let text = |b: &mut TraceBuilder, t: &str| Some(b.intern(t));
        let (src, dst) = if dir == "HtoD" { (host, "device") } else { ("device", host) };
        let detail = CopyDetail {
            direction: text(&mut self.builder, dir),
            src: text(&mut self.builder, src),
            dst: text(&mut self.builder, dst),
            bytes: Some(bytes),
            graph_node: None,
        };
        let queue = self.queue(7);
        self.put(queue, Category::Memcpy, &format!("Memcpy {dir}"), span, Some(id), Some(Detail::Copy(detail)));
        self
    }

    /// A sample of a counter of the process.
    pub fn counter(&mut self, name: &str, t: Ns, value: f64) -> &mut Self {
        let name = self.builder.intern(name);
        self.builder.counter(self.process, None, name, "", t, value);
        self
    }

    /// A sample of a counter of the device.
    pub fn device_counter(&mut self, name: &str, t: Ns, value: f64) -> &mut Self {
        let name = self.builder.intern(name);
        self.builder.counter(self.process, Some(0), name, "", t, value);
        self
    }

    /// The device has so many cores.
    pub fn cores(&mut self, cores: u32) -> &mut Self {
        let process = self.process;
        let cores = Some(cores);
        self.builder.device(Device { process, ordinal: 0, name: None, vendor: None, cores, memory_bytes: None });
        self
    }

    /// A launch call and its kernel of so many blocks on queue 7.
    pub fn launch_blocks(&mut self, call: (Ns, Ns), name: &str, kernel: (Ns, Ns), blocks: u32) -> &mut Self {
        let id = self.issue("cudaLaunchKernel", call);
        let detail = KernelDetail { grid: Some([blocks, 1, 1]), ..KernelDetail::default() };
        self.kernel(7, name, kernel, Some(id), Some(Detail::Kernel(detail)));
        self
    }

    /// A framework operator with the recorded shapes and types of its inputs, JSON.
    pub fn operator(&mut self, name: &str, span: (Ns, Ns), shapes: &str, types: &str) -> &mut Self {
        let (shapes, dtypes) = (Some(self.builder.intern(shapes)), Some(self.builder.intern(types)));
        let detail = Detail::Op(model::OpDetail { shapes, dtypes });
        self.put(self.thread, Category::FrameworkOp, name, span, None, Some(detail));
        self
    }

    /// A copy call that says the direction it was asked for; its correlation id.
    pub fn asked(&mut self, api: &str, call: (Ns, Ns), dir: &str) -> i64 {
        self.correlation += 1;
        let detail = self.direction(dir);
        self.put(self.thread, Category::HostApi, api, call, Some(self.correlation), Some(detail));
        self.correlation
    }

    /// The copy of a call, under the direction that the profiler gives it.
    pub fn copied(&mut self, dir: &str, span: (Ns, Ns), id: i64) {
        let (queue, detail) = (self.queue(7), self.direction(dir));
        self.put(queue, Category::Memcpy, &format!("Memcpy {dir}"), span, Some(id), Some(detail));
    }

    fn direction(&mut self, dir: &str) -> Detail {
        Detail::Copy(CopyDetail { direction: Some(self.builder.intern(dir)), ..CopyDetail::default() })
    }

    /// A call that gets a correlation id.
    pub fn issue(&mut self, api: &str, call: (Ns, Ns)) -> i64 {
        self.correlation += 1;
        self.put(self.thread, Category::HostApi, api, call, Some(self.correlation), None);
        self.correlation
    }

    /// A call of another host thread that launches a kernel on queue 7.
    pub fn launch_from(&mut self, thread: i64, call: (Ns, Ns), name: &str, kernel: (Ns, Ns)) -> &mut Self {
        self.correlation += 1;
        let (id, process) = (self.correlation, self.process);
        let key = TrackKey { kind: TrackKind::HostThread, process, device: None, context: None, id: thread };
        let track = self.builder.track(key);
        self.put(track, Category::HostApi, "cudaLaunchKernel", call, Some(id), None);
        self.kernel(7, name, kernel, Some(id), None);
        self
    }

    /// A kernel with or without correlation id.
    pub fn kernel(&mut self, queue: i64, name: &str, span: (Ns, Ns), id: Option<i64>, detail: Option<Detail>) {
        let queue = self.queue(queue);
        self.put(queue, Category::Kernel, name, span, id, detail);
    }

    fn queue(&mut self, id: i64) -> TrackId {
        let process = self.process;
        self.builder.track(TrackKey { kind: TrackKind::DeviceQueue, process, device: Some(0), context: None, id })
    }

    fn put(
        &mut self,
        track: TrackId,
        category: Category,
        name: &str,
        (start, end): (Ns, Ns),
        correlation: Option<i64>,
        detail: Option<Detail>,
    ) {
        let name = self.builder.intern(name);
        let slice = Slice { track, start, dur: end - start, name, category, correlation, detail: detail.as_ref() };
        self.builder.slice(slice);
    }

    /// The capture, with its times as written.
    pub fn trace(mut self) -> Trace {
        self.builder.clock(model::Clock::AsIs { unix_zero: None });
        self.builder.finish()
    }

    /// The capture and its analysis.
    pub fn analyze(self) -> (Trace, Analysis) {
        let trace = self.trace();
        let analysis = analyze(&trace, &Packs::embedded().unwrap(), &Options::default());
        (trace, analysis)
    }
}

/// Buckets of a step by name.
pub fn named(analysis: &Analysis, buckets: &[(super::Bucket, Ns)]) -> Vec<(String, Ns)> {
    buckets.iter().map(|(b, ns)| (b.name(&analysis.host_labels), *ns)).collect()
}
