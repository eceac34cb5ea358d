//! OP-07: an operator runs on a CPU in the middle of the forward pass.

use model::{EvidenceClass::Device, SliceId, Span, Trace};
use rustc_hash::FxHashMap;

use super::{
    change,
    gate::{LEAST_GAIN, recurring},
    host_op::{self, HostOp, SHORTEST},
    reading,
};
use crate::{
    analysis::{AnchorKind, Class, CopyDir, DeviceOp, Edit, Layer, OpKind, Rank, Step},
    diagnose::{
        Competing, Evidence, Intervention, Trigger,
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::OpClass,
};

/// How many times faster a device kernel is at least; the catalogue says tens of times.
const FASTER: i64 = 10;

/// The rule.
pub struct CpuFallback;

static DOC: Doc = Doc {
    id: "OP-07",
    title: Text::new("CPU fallback in the forward pass", "前向中的 CPU 回退"),
    layer: Layer::Operator,
    needs: &[Device],
    sees: Text::new(
        "An operator runs on the device's auxiliary CPU (AI CPU), a tensor goes to the host and comes back in the middle of the forward pass, or the host waits for the device there and computes an operator itself.",
        "算子在设备的辅助 CPU（AI CPU）上运行，或张量在前向中途被搬到主机再搬回，或主机在前向中途等待设备后自行计算算子。",
    ),
    matters: Text::new(
        "Such an operator is tens of times slower than on the compute cores, and everything after it waits.",
        "这样的算子比在计算核心上慢几十倍，且其后的一切都要等待。",
    ),
    trigger: Text::new(
        "An AI CPU operator longer than 20 µs in a step, or a device-to-host copy followed directly by a host-to-device copy, or an operator that the host computes after a blocking call, launching nothing, while the device idles; both with matrix work before and after, and longer than 20 µs with all that the device waits.",
        "步内有超过 20 µs 的 AI CPU 算子；或一次设备到主机拷贝后紧跟主机到设备拷贝；或主机在阻塞调用之后自行计算算子且不下发任何工作，期间设备空闲。后两者前后均有矩阵计算，连同设备的等待合计超过 20 µs。",
    ),
    source: Text::new("20 µs: limit of the Ascend advisor.", "20 µs：昇腾 advisor 的限值。"),
    guards: Text::new(
        "Collectives that the AI CPU expands are not fallbacks. The readback of the token is not in the middle of the forward pass. Of the host's operators only matrix products, attention, norms, rotary embeddings, activations and routing count: small work on elements and indices is the host's own.",
        "由 AI CPU 展开的集合通信不算回退。token 读回不在前向中途。主机算子只计矩阵乘、注意力、归一化、旋转位置编码、激活与路由：零碎的逐元素与索引操作本属主机。",
    ),
    verify: Text::new(
        "Change the dtype or the API so that the operator has a device kernel: no such operator or round trip is left in the step.",
        "更换数据类型或接口使算子有设备内核：步内不再有此类算子或往返。",
    ),
};

impl Rule for CpuFallback {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let mut found = Vec::new();
        for (rank, class) in cx.main_classes() {
            let fallbacks = Fallbacks::of(cx, rank, class);
            let time = |s: &Step| fallbacks.of_step(s).iter().map(|(_, ns)| ns).sum();
            let Some(cost) = recurring(rank, class, LEAST_GAIN, time) else { continue };
            let all: Vec<_> = rank.steady_steps(class).flat_map(|s| fallbacks.of_step(s)).collect();
            let longest = all.iter().map(|(_, ns)| *ns).max().unwrap_or(0);
            let trigger = Trigger {
                formula: Text::new(
                    "longest AI CPU operator, round trip through the host or wait for an operator of the host, ns",
                    "最长的 AI CPU 算子、经主机往返或对主机算子的等待，ns",
                ),
                value: longest as f64,
                threshold: SHORTEST as f64,
            };
            let claim = Message::new(
                Text::new(
                    "Work that falls back to a CPU inside the forward pass takes {time} of {step} in {class} ({share}), the longest {longest}.",
                    "{class} 前向中回退到 CPU 的工作耗时 {time}，步时 {step}（{share}），最长 {longest}。",
                ),
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("time", Value::Ns(cost.per_step)),
                    ("step", Value::Ns(class.p50)),
                    ("share", Value::Share(cost.share)),
                    ("longest", Value::Ns(longest)),
                ],
            );
            let change =
                Intervention { removes: cost.per_step, layer: Layer::Operator, edits: fallbacks.on_device(class) };
            let finding = cx
                .finding(&DOC, rank, class, claim, trigger, change)
                .with(Evidence::new(
                    Text::new("fallbacks in the steps that count", "计入统计的步中的回退次数"),
                    Value::Count(all.len() as u64),
                    reading::sample(all.iter().map(|(row, _)| *row)),
                ))
                .against(Competing::open(
                    Text::new("the host needs the value to decide what to run next", "主机需要该值来决定后续执行"),
                    Text::new("the code between the two copies decides", "两次拷贝之间的代码可以判定"),
                ));
            found.extend(finding.gated(cost.most));
        }
        found.into_iter().collect()
    }
}

/// The fallbacks of a class's steps.
pub struct Fallbacks<'a> {
    trace: &'a Trace,
    rank: &'a Rank,
    on_host: FxHashMap<u32, Vec<HostOp>>,
}

impl<'a> Fallbacks<'a> {
    /// Looks for them.
    pub fn of(cx: &Context<'a>, rank: &'a Rank, class: &Class) -> Self {
        Self { trace: cx.trace, rank, on_host: host_op::by_step(cx, rank, class) }
    }

    /// Those of a step: the row where each begins, and what it takes, ns.
    pub fn of_step(&self, step: &Step) -> Vec<(SliceId, i64)> {
        let Self { trace, rank, on_host } = self;
        let accounted = reading::accounted(rank, step).filter(|(_, op, _)| is_slow(trace, op));
        let mut out: Vec<(SliceId, i64)> = accounted.map(|(_, op, x)| (op.slice, x.busy)).collect();
        out.extend(trips(rank, step).filter_map(|i| {
            let (down, up) = (rank.timeline.ops.get(i)?, rank.timeline.ops.get(i + 1)?);
            Some((down.slice, up.end - down.start))
        }));
        out.extend(on_host.get(&step.index).into_iter().flatten().map(|op| (op.slice, op.idle)));
        out
    }

    fn on_device(&self, class: &Class) -> Vec<Edit> {
        let mut edits = on_device(self.trace, self.rank, class);
        edits.extend(host_op::on_device(self.rank, self.on_host.values().flatten(), FASTER));
        edits
    }
}

/// The copies to the host that a copy back follows directly, between the first and the last matrix product of a step.
fn trips(rank: &Rank, step: &Step) -> impl Iterator<Item = usize> {
    let ops = rank.ops_of(step);
    let matrix = |op: &DeviceOp| op.op.class() == OpClass::Matrix;
    // Without a mark of its own a step has no middle.
    let first = ops.iter().position(matrix).filter(|_| rank.anchor.kind != AnchorKind::WholeCapture);
    let (from, to) = (first.unwrap_or(0), first.and(ops.iter().rposition(matrix)).map_or(0, |last| last + 1));
    let begin = step.ops.start + from;
    let there_and_back = |pair: &[DeviceOp]| match pair {
        [down, up] => {
            let copies = down.kind == OpKind::Copy(CopyDir::DtoH) && up.kind == OpKind::Copy(CopyDir::HtoD);
            copies && !down.in_graph && up.end - down.start > SHORTEST
        }
        _ => false,
    };
    let pairs = ops.get(from..to).unwrap_or(&[]).windows(2).enumerate();
    pairs.filter(move |(_, pair)| there_and_back(pair)).map(move |(i, _)| begin + i)
}

/// The work is done by a device kernel: an AI CPU operator takes a tenth of its time, and less hopefully; a round trip, the
/// waits inside it and what the host does between its copies are gone.
fn on_device(trace: &Trace, rank: &Rank, class: &Class) -> Vec<Edit> {
    let slow = change::ops(rank, class, |op| is_slow(trace, op));
    let tenth = slow.iter().filter_map(|o| Some((*o, rank.timeline.ops.get(*o as usize)?.dur() / FASTER))).collect();
    let trips: Vec<usize> = rank.steady_steps(class).flat_map(|s| trips(rank, s)).collect();
    let (mut waits, mut between) = (Vec::new(), Vec::new());
    for down in &trips {
        let launch = |i: usize| rank.timeline.ops.get(i).and_then(|op| op.call);
        if let (Some(from), Some(to)) = (launch(*down), launch(down + 1)) {
            let calls = rank.timeline.calls.get(from as usize..=to as usize).unwrap_or(&[]);
            waits.extend(calls.iter().enumerate().filter(|(_, c)| c.blocking).map(|(i, _)| from + i as u32));
            let ends =
                calls.first().zip(calls.last()).filter(|(down, up)| down.track == up.track && down.end < up.start);
            between.extend(ends.map(|(down, up)| (down.track, Span::new(down.end, up.start))));
        }
    }
    let copies = trips.iter().flat_map(|i| [*i as u32, *i as u32 + 1]).collect();
    let gone = [Edit::Unblock(waits), Edit::Remove(copies)];
    let mut edits = vec![Edit::Resize(tenth), Edit::Hoped(Box::new(Edit::Remove(slow)))];
    edits.extend(change::shortened(between, 0).into_iter().chain(gone));
    edits
}

fn is_slow(trace: &Trace, op: &DeviceOp) -> bool {
    op.dur() > SHORTEST && op.kind == OpKind::Compute && on_ai_cpu(trace.strings.get(op.name))
}

fn on_ai_cpu(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    (name.contains("aicpu") || name.contains("ai_cpu")) && !name.contains("hccl") && !name.contains("hcom")
}
