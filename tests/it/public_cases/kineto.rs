//! A run written as a program, in Kineto's JSON: what the host does, and what the devices make of it. Times are ns.

use std::{fmt::Write, path::Path};

use model::Ns;
use serde_json::{Value, json};

pub const GEMM: &str = "nvjet_tst_64x8_64x16_4x1_v_bz_TNT";
pub const NORM: &str = "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*, c10::BFloat16 const*)";
pub const ATTENTION: &str = "void vllm::paged_attention_v1_kernel<__nv_bfloat16, 128, 16>";
pub const MUL: &str = "void at::native::elementwise_kernel<128, 2, at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>>";
pub const ALL_REDUCE: &str = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

/// Microseconds in ns.
pub const fn us(n: Ns) -> Ns {
    n * 1_000
}

/// Milliseconds in ns.
pub const fn ms(n: Ns) -> Ns {
    n * 1_000_000
}

/// A launch call.
pub const CALL: Ns = us(5);
/// From the return of a launch call to the start of its work on an idle device.
const LATENCY: Ns = us(2);
/// From the end of one operation to the start of the next that was queued.
const DISPATCH: Ns = 500;

/// A capture while it is written.
pub struct Capture {
    events: Vec<String>,
    correlation: i64,
    rank: i64,
    /// Ranks of the job.
    world: i64,
    /// Where the host is.
    pub host: Ns,
    /// When the device is done with what it has.
    pub device: Ns,
}

impl Capture {
    /// A run of `steps` steps; `step` writes each and gives its annotation.
    pub fn of(steps: usize, step: impl FnMut(&mut Self, usize) -> String) -> Self {
        Self::of_rank((0, 1), steps, step)
    }

    /// The same as one rank of so many.
    pub fn of_rank((rank, world): (i64, i64), steps: usize, mut step: impl FnMut(&mut Self, usize) -> String) -> Self {
        let mut run = Self { events: Vec::new(), correlation: 0, rank, world, host: 0, device: 0 };
        for i in 0..steps {
            let start = run.host;
            let label = step(&mut run, i);
            let end = run.host.max(start + 1);
            run.event("user_annotation", &label, run.thread(), (start, end), json!({}));
        }
        run
    }

    /// Decode steps of `batch` sequences with `context` tokens each.
    pub fn decode(steps: usize, batch: i64, context: i64, mut step: impl FnMut(&mut Self, usize)) -> Self {
        Self::of(steps, |run, i| {
            step(run, i);
            label(batch, context)
        })
    }

    fn thread(&self) -> (i64, i64) {
        (100, 100 + self.rank)
    }

    fn event(&mut self, cat: &str, name: &str, (pid, tid): (i64, i64), (start, end): (Ns, Ns), args: Value) {
        let micros = |ns: Ns| format!("{}.{:03}", ns / 1000, ns % 1000);
        let (cat, name, ts, dur) = (json!(cat), json!(name), micros(start), micros(end - start));
        self.events.push(format!(
            r#"{{"ph":"X","cat":{cat},"name":{name},"pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"args":{args}}}"#
        ));
    }

    /// The host does something that leaves no record.
    pub fn think(&mut self, ns: Ns) -> &mut Self {
        self.host += ns;
        self
    }

    /// A record of the host's own work.
    pub fn work(&mut self, cat: &str, name: &str, ns: Ns) -> &mut Self {
        let span = (self.host, self.host + ns);
        self.event(cat, name, self.thread(), span, json!({}));
        self.think(ns)
    }

    /// A call that gets a correlation id.
    fn issue(&mut self, api: &str, ns: Ns) -> i64 {
        self.correlation += 1;
        let span = (self.host, self.host + ns);
        self.event("cuda_runtime", api, self.thread(), span, json!({ "correlation": self.correlation }));
        self.host += ns;
        self.correlation
    }

    /// A call that causes no device work.
    pub fn call(&mut self, api: &str, ns: Ns) -> &mut Self {
        self.issue(api, ns);
        self
    }

    /// A call that lasts until the device is done.
    pub fn wait(&mut self) -> &mut Self {
        let end = self.device.max(self.host) + us(2);
        self.call("cudaStreamSynchronize", end - self.host)
    }

    fn place(&mut self, cat: &str, name: &str, (start, ns): (Ns, Ns), id: i64, mut args: Value) {
        args["device"] = json!(self.rank);
        args["stream"] = json!(7);
        args["correlation"] = json!(id);
        self.event(cat, name, (self.rank, 7), (start, start + ns), args);
        self.device = start + ns;
    }

    /// A launch of so many blocks and its kernel.
    pub fn launch_blocks(&mut self, name: &str, ns: Ns, blocks: i64) -> &mut Self {
        let id = self.issue("cudaLaunchKernel", CALL);
        let start = (self.host + LATENCY).max(self.device + DISPATCH);
        self.place("kernel", name, (start, ns), id, json!({ "grid": [blocks, 1, 1], "block": [128, 1, 1] }));
        self
    }

    /// A launch and its kernel, which fills the device evenly.
    pub fn launch(&mut self, name: &str, ns: Ns) -> &mut Self {
        self.launch_blocks(name, ns, 1320)
    }

    /// A graph launch and its nodes, a microsecond apart.
    pub fn graph(&mut self, nodes: &[(&str, Ns)]) -> &mut Self {
        let id = self.issue("cudaGraphLaunch", CALL);
        let mut at = (self.host + LATENCY).max(self.device + DISPATCH);
        for (i, (name, ns)) in nodes.iter().enumerate() {
            let args = json!({ "grid": [1320, 1, 1], "block": [128, 1, 1], "graph id": 1, "graph node id": i + 1 });
            self.place("kernel", name, (at, *ns), id, args);
            at += ns + us(1);
        }
        self
    }

    /// A copy such as `HtoD (Pageable -> Device)` through `api`; it begins when its call is nearly over.
    pub fn copy(&mut self, api: &str, call: Ns, kind: &str, ns: Ns) -> &mut Self {
        let id = self.issue(api, call);
        let start = (self.host - us(1)).max(self.device + DISPATCH);
        self.place("gpu_memcpy", &format!("Memcpy {kind}"), (start, ns), id, json!({ "bytes": 65_536 }));
        self
    }

    /// The readback of the token: an asynchronous copy and a wait for it.
    pub fn token(&mut self) -> &mut Self {
        self.copy("cudaMemcpyAsync", CALL, "DtoH (Device -> Pinned)", us(2)).wait()
    }

    /// A sample of one of the engine's counters.
    pub fn counter(&mut self, name: &str, value: i64) -> &mut Self {
        let (pid, ts) = (self.thread().0, self.host / 1000);
        self.events.push(format!(r#"{{"ph":"C","name":"{name}","pid":{pid},"ts":{ts},"args":{{"{name}":{value}}}}}"#));
        self
    }

    /// An all-reduce that starts at `start` on its device, with what NCCL records of it.
    pub fn all_reduce(&mut self, start: Ns, ns: Ns, seq: i64) -> &mut Self {
        let id = self.issue("cudaLaunchKernelExC", CALL);
        let args = json!({
            "grid": [8, 1, 1], "Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 8192, "Out msg nelems": 8192,
            "Group size": self.world, "Process Group Name": "tp", "Seq": seq,
        });
        self.place("kernel", ALL_REDUCE, (start, ns), id, args);
        self
    }

    /// Writes the capture as the rank's own file.
    pub fn write(&self, directory: &Path) {
        let devices: Vec<Value> =
            (0..self.world).map(|id| json!({ "id": id, "name": "NVIDIA H100 80GB HBM3", "numSms": 132 })).collect();
        let mut text = format!(
            "{{\"schemaVersion\": 1, \"deviceProperties\": {}, \"cuda_runtime_version\": 12080,",
            json!(devices)
        );
        if self.world > 1 {
            write!(
                text,
                "\"distributedInfo\": {},",
                json!({ "backend": "nccl", "rank": self.rank, "world_size": self.world })
            )
            .unwrap();
        }
        text.push_str("\"baseTimeNanoseconds\": 1767189312000000000, \"traceEvents\": [\n");
        text.push_str(&self.events.join(",\n"));
        text.push_str("\n]}\n");
        std::fs::write(directory.join(format!("rank{}.json", self.rank)), text).unwrap();
    }
}

/// vLLM's annotation of a decode step.
pub fn label(batch: i64, context: i64) -> String {
    format!("execute_0_context_0(sq0sk0)_generation_{batch}(sq{batch}sk{})", batch * context)
}
