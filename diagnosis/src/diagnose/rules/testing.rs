//! A run of decode steps written as a program: what the host does, and what the device makes of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, Ns, Trace};

use crate::{
    analysis::{Analysis, script::Script},
    diagnose::{
        Diagnosis, Finding, diagnose,
        rule::{Context, Outcome},
        rules,
    },
    platform::Packs,
};

pub const GEMM: &str = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64";
pub const NORM: &str = "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*, c10::BFloat16 const*)";
pub const ALL_REDUCE: &str = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
pub const SORT: &str = "void at::native::radixSortKVInPlace<2, -1, 128, 32, float, long, unsigned int>";
pub const CONTIGUOUS: &str =
    "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::lambda>";

/// Microseconds in ns.
pub const fn us(n: Ns) -> Ns {
    n * 1_000
}

/// A launch call, ns.
const CALL: Ns = us(5);
/// From the return of a launch call to the start of its work on an idle device, ns.
const LATENCY: Ns = us(2);
/// From the end of one operation to the start of the next that was queued, ns.
const DISPATCH: Ns = 500;

/// A capture while it is written.
pub struct Run {
    pub script: Script,
    /// Where the host is.
    pub host: Ns,
    /// When the device is done with what it has.
    pub device: Ns,
}

impl Run {
    /// A run of `steps` decode steps of four sequences; `step` writes each.
    pub fn steps(steps: usize, step: impl FnMut(&mut Self, usize)) -> (Trace, Analysis) {
        Self::labelled("execute_context_0(0)_generation_4(4)", steps, step)
    }

    /// A run of `steps` steps under the annotation `label`.
    pub fn labelled(label: &str, steps: usize, mut step: impl FnMut(&mut Self, usize)) -> (Trace, Analysis) {
        Self::annotated(steps, |run, i| {
            step(run, i);
            label.to_owned()
        })
    }

    /// A run of decode steps of as many sequences as `step` says of each.
    pub fn batches(steps: usize, mut step: impl FnMut(&mut Self, usize) -> u32) -> (Trace, Analysis) {
        Self::annotated(steps, |run, i| {
            let batch = step(run, i);
            format!("execute_context_0(0)_generation_{batch}({batch})")
        })
    }

    /// A run of `steps` steps on a device of 132 cores; `step` writes each and gives its annotation.
    pub fn annotated(steps: usize, step: impl FnMut(&mut Self, usize) -> String) -> (Trace, Analysis) {
        Self::written(Script::default(), steps, step)
    }

    /// The same on the device of a script.
    pub fn written(
        script: Script,
        steps: usize,
        mut step: impl FnMut(&mut Self, usize) -> String,
    ) -> (Trace, Analysis) {
        let mut run = Self { script, host: 0, device: 0 };
        run.script.cores(132);
        for i in 0..steps {
            let start = run.host;
            let label = step(&mut run, i);
            let span = (start, run.host.max(start + 1));
            run.script.host(Category::UserRange, &label, span);
        }
        run.script.analyze()
    }

    /// The host does something that leaves no record.
    pub fn think(&mut self, ns: Ns) -> &mut Self {
        self.host += ns;
        self
    }

    /// A record of the host's own work.
    pub fn work(&mut self, category: Category, name: &str, ns: Ns) -> &mut Self {
        self.script.host(category, name, (self.host, self.host + ns));
        self.think(ns)
    }

    /// A call that causes no device work.
    pub fn call(&mut self, api: &str, ns: Ns) -> &mut Self {
        self.work(Category::HostApi, api, ns)
    }

    /// A call that lasts until the device is done.
    pub fn wait(&mut self) -> &mut Self {
        let end = self.device.max(self.host) + us(2);
        self.call("cudaStreamSynchronize", end - self.host)
    }

    /// A launch and its kernel.
    pub fn launch(&mut self, name: &str, ns: Ns) -> &mut Self {
        let call = (self.host, self.host + CALL);
        let start = (call.1 + LATENCY).max(self.device + DISPATCH);
        self.script.launch(call, name, (start, start + ns));
        (self.host, self.device) = (call.1, start + ns);
        self
    }

    /// A launch of so many blocks and its kernel.
    pub fn launch_blocks(&mut self, name: &str, ns: Ns, blocks: u32) -> &mut Self {
        let call = (self.host, self.host + CALL);
        let start = (call.1 + LATENCY).max(self.device + DISPATCH);
        self.script.launch_blocks(call, name, (start, start + ns), blocks);
        (self.host, self.device) = (call.1, start + ns);
        self
    }

    /// A launch under a framework operator with recorded inputs, JSON.
    pub fn shaped(&mut self, name: &str, ns: Ns, shapes: &str, types: &str) -> &mut Self {
        let from = self.host;
        self.launch(name, ns);
        self.script.operator("aten::operator", (from, self.host), shapes, types);
        self
    }

    /// A graph launch and its nodes, `gap` apart.
    pub fn graph(&mut self, nodes: &[(&str, Ns)], gap: Ns) -> &mut Self {
        let call = (self.host, self.host + CALL);
        let mut at = (call.1 + LATENCY).max(self.device + DISPATCH);
        let mut placed = Vec::new();
        for (name, ns) in nodes {
            placed.push((*name, (at, at + ns)));
            at += ns + gap;
        }
        self.script.graph(call, &placed);
        (self.host, self.device) = (call.1, at - gap);
        self
    }

    /// A copy through `api`, whose call lasts `call` ns; a copy begins when its call is nearly over.
    pub fn copy(&mut self, api: &str, call: Ns, dir: &str, memory: &str, ns: Ns) -> &mut Self {
        let span = (self.host, self.host + call);
        let start = (span.1 - us(1)).max(self.device + DISPATCH);
        self.script.copy(api, span, dir, memory, 1 << 16, (start, start + ns));
        (self.host, self.device) = (span.1, start + ns);
        self
    }

    /// The readback of the token: an asynchronous copy and a wait for it.
    pub fn token(&mut self) -> &mut Self {
        self.copy("cudaMemcpyAsync", us(5), "DtoH", "pinned", us(2)).wait()
    }
}

/// What one rule finds.
pub fn check(id: &str, (trace, analysis): &(Trace, Analysis)) -> Vec<Finding> {
    let packs = Packs::embedded().unwrap();
    let cx = Context { trace, analysis, packs: &packs };
    match rules::find(id).unwrap().check(&cx) {
        Outcome::Found(found) => found,
        Outcome::Quiet | Outcome::Abstain(_) => Vec::new(),
    }
}

/// Whether a rule finds something; its claim must be complete in both languages.
pub fn fires(id: &str, capture: &(Trace, Analysis)) -> bool {
    let found = check(id, capture);
    for f in &found {
        for lang in [crate::i18n::Lang::En, crate::i18n::Lang::Zh] {
            let claim = f.claim.render(lang, |_| "x".into());
            assert!(!claim.contains(['{', '}']), "{id}: {claim}");
        }
        assert!(f.evidence.iter().all(|e| e.rows.len() <= 16), "{id}: too many rows");
        assert!(f.rule == id && (!f.evidence.is_empty()), "{id}: no evidence");
    }
    !found.is_empty()
}

/// The whole diagnosis.
pub fn diagnosis((trace, analysis): &(Trace, Analysis)) -> Diagnosis {
    diagnose(trace, analysis, &Packs::embedded().unwrap())
}
