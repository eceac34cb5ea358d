//! OP-06: fills and copies inside the device's memory that the model does not need.

use model::{EvidenceClass::Device, StringId};
use rustc_hash::FxHashSet;

use super::{
    reading,
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{Confidence, CopyDir, DeviceOp, Layer, OpKind, Rank, Step},
    diagnose::{
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::Text,
    platform::{CanonicalOp, OpClass, Stage},
};

/// Fragments of names of kernels by which libraries clear memory: MIOpen's, and the runtime's own on ROCm.
const WORKSPACES: &[&str] = &["SubTensorOpWithScalar", "rocclr_fillBuffer"];

/// Operations looked back upon for the one before on the same queue; own value.
const NEAR: usize = 16;

/// The rule.
pub struct Fills;

static DOC: Doc = Doc {
    id: "OP-06",
    title: Text::new("Redundant fills and copies", "多余的填充与拷贝"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "Buffers are filled with a constant, or copied inside the device's memory, in every step.",
        "每步都在用常数填充缓冲区，或在设备内存内部拷贝缓冲区。",
    ),
    matters: Text::new(
        "A healthy decode layer holds no fill and no copy: buffers that live across steps need none, and each one costs at least a launch and a pass over memory.",
        "健康的解码层没有填充与拷贝：跨步常驻的缓冲区不需要它们，而每一次至少花费一次下发与一遍内存访问。",
    ),
    trigger: Text::new(
        "Exclusive time of fills, memsets and device-to-device copies at least 2 % of the mean step, or at least one per layer and 1 %.",
        "填充、memset 与设备内拷贝的独占时间至少占平均步时的 2%；或每层至少一次且占 1%。",
    ),
    source: Text::new(
        "2 %: own value, above run-to-run noise. One per layer is structural: a healthy dense layer has none.",
        "2%：自定值，高于重复运行噪声。每层一次为结构性判据：健康的稠密层为零次。",
    ),
    guards: Text::new(
        "A memset directly before a matrix product or an attention kernel on its queue clears that kernel's own workspace (split-K) and does not count. A copy directly before or after a collective on its queue stages that collective's buffer and does not count. Training clears gradients in every step and is left alone. Copies by elementwise kernels are conversions (OP-05). Fills of padding slots may be needed for correct results.",
        "同一队列上紧接在矩阵乘或注意力内核之前的 memset 是为该内核清零工作区（split-K），不计入。同一队列上紧邻集合通信的拷贝是在为其中转缓冲区，不计入。训练每步清零梯度，不作检查。由逐元素内核完成的拷贝属于转换（OP-05）。填充补齐槽位可能是正确性所需。",
    ),
    verify: Text::new(
        "Allocate the buffers once and write into them: the number of fills and copies per layer falls to zero, and the results stay the same.",
        "缓冲区只分配一次并原地写入：每层填充与拷贝次数降为零，且结果不变。",
    ),
};

static KIND: Kind = Kind {
    doc: &DOC,
    share: 0.02,
    per_layer: Some(1),
    formula: Text::new("time of fills and device-to-device copies / mean step", "填充与设备内拷贝时间 / 平均步时"),
    claim: Text::new(
        "Fills and copies inside the device's memory take {time} of {step} in {class} ({share}), {count} per step.",
        "{class} 的填充与设备内拷贝耗时 {time}，步时 {step}（{share}），每步 {count} 次。",
    ),
    what: Text::new("time of fills and copies per step", "每步填充与拷贝耗时"),
    rivals: &[(
        Text::new("the fill masks padding, which the result depends on", "该填充用于屏蔽补齐部分，结果依赖于它"),
        Text::new(
            "the code that calls it decides; compare the tokens of a run without it",
            "调用它的代码可以判定；去掉后比较生成的 token",
        ),
    )],
    most: Confidence::High,
};

impl Rule for Fills {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let workspaces = reading::named(cx, |name| WORKSPACES.iter().any(|w| name.contains(w)));
        share_of_step::check(cx, &KIND, |rank, class, step| match class.stage {
            Stage::Train => Vec::new(),
            _ => fills(rank, step, &workspaces),
        })
        .into_iter()
        .collect()
    }
}

/// Fills and copies of a step in time order; `workspaces` are kernels that clear what a library's next kernel adds to.
fn fills(rank: &Rank, step: &Step, workspaces: &FxHashSet<StringId>) -> Vec<Part> {
    let ops: Vec<_> = reading::accounted(rank, step).collect();
    // The next operation of the same queue, from the last one backwards.
    let mut next: Vec<Option<&DeviceOp>> = vec![None; rank.timeline.queues.len()];
    let mut out = Vec::new();
    for (at, part) in ops.iter().copied().enumerate().rev() {
        let (_, op, _) = part;
        let Some(after) = next.get_mut(op.queue as usize) else { continue };
        let before = || ops.iter().take(at).rev().take(NEAR).map(|(_, op, _)| *op).find(|o| o.queue == op.queue);
        let stages = is_copy(op) && [*after, before()].into_iter().flatten().any(|o| o.kind == OpKind::Comm);
        if is_fill(op) && !stages && !is_workspace(op, *after, workspaces) {
            out.push(Part::gone(part));
        }
        *after = Some(op);
    }
    out.reverse();
    out
}

/// Copies into and out of the memory that ranks share are part of the collective between them.
fn is_copy(op: &DeviceOp) -> bool {
    op.kind == OpKind::Copy(CopyDir::DtoD) || (op.kind == OpKind::Compute && op.op == CanonicalOp::Copy)
}

fn is_fill(op: &DeviceOp) -> bool {
    match op.kind {
        OpKind::Copy(dir) => matches!(dir, CopyDir::Memset | CopyDir::DtoD),
        OpKind::Compute => matches!(op.op, CanonicalOp::Fill | CanonicalOp::Copy),
        _ => false,
    }
}

/// Libraries clear the counters and partial sums of a kernel just before it.
fn is_workspace(op: &DeviceOp, after: Option<&DeviceOp>, workspaces: &FxHashSet<StringId>) -> bool {
    let works = |next: &DeviceOp| matches!(next.op.class(), OpClass::Matrix | OpClass::Attention);
    let clears = op.kind == OpKind::Copy(CopyDir::Memset) || workspaces.contains(&op.name);
    clears && after.is_some_and(works)
}
