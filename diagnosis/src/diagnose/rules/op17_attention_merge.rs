//! OP-17: merging the parts of split attention takes a chain of kernels.

use model::{EvidenceClass::Device, Ns};

use super::{gate::recurring, reading};
use crate::{
    analysis::{Confidence, CopyDir, DeviceOp, Edit, Layer, OpKind, Rank, Step, attribution::Exclusive},
    diagnose::{
        Competing, Evidence, Intervention, Trigger,
        estimate::LEAST_GAIN,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::{CanonicalOp, OpClass},
};

/// Kernels of one merge from which it should have been one.
const KERNELS: usize = 5;
/// The same by time: share of the attention and its merge.
const SHARE: f64 = 0.20;
/// What a fused kernel reaches of the time of its longest member (fusion estimator of TraceLens).
const FUSION_EFFICIENCY: f64 = 0.85;

/// The rule.
pub struct AttentionMerge;

static DOC: Doc = Doc {
    id: "OP-17",
    title: Text::new("Attention merged by many kernels", "注意力结果由多个内核合并"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "Between an attention kernel and the next matrix product, a chain of small kernels rescales and adds partial results (split-KV, context parallelism).",
        "注意力内核与下一次矩阵乘之间，由一串小内核对部分结果做重缩放与求和（split-KV、上下文并行）。",
    ),
    matters: Text::new(
        "The parts of one token are a few kilobytes: one kernel merges them in the time that a single one of the chain takes.",
        "单个 token 的部分结果只有几千字节：一个内核就能合并，耗时相当于链中的一个内核。",
    ),
    trigger: Text::new(
        "At least five kernels between attention and the next matrix product, or at least two, a combine kernel among them, that take 20 % of the attention's time with theirs; merged into one they save at least 1 % of the mean step.",
        "注意力与下一次矩阵乘之间至少五个内核，或至少两个（其中含合并内核）且占注意力与其合计时间的 20%；合为一个可省至少中位步时的 1%。",
    ),
    source: Text::new(
        "Five kernels or 20 %: own values after vllm-ascend #16753, where about 20 kernels were merged (212 to 65 µs per layer). 0.85: fusion estimator of TraceLens.",
        "五个内核或 20%：参考 vllm-ascend #16753 的自定值，该例约 20 个内核合并后每层 212 降至 65 µs。0.85：TraceLens 的融合估计。",
    ),
    guards: Text::new(
        "Matrix products, norms, collectives and fused kernels end the chain. A single combine kernel is how split attention works.",
        "矩阵乘、归一化、集合通信与融合内核会终止这一串。单个合并内核是切分注意力的正常做法。",
    ),
    verify: Text::new(
        "Use a fused merge: one kernel between attention and the output projection.",
        "使用融合合并：注意力与输出投影之间只剩一个内核。",
    ),
};

impl Rule for AttentionMerge {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let mut found = Vec::new();
        for (rank, class) in cx.main_classes() {
            let saved = |s: &Step| merges(rank, s).iter().map(Merge::saved).sum();
            let Some(cost) = recurring(rank, class, LEAST_GAIN, saved) else { continue };
            let all: Vec<Merge> = rank.steady_steps(class).flat_map(|s| merges(rank, s)).collect();
            let kernels: usize = all.iter().map(|m| m.members.len()).sum();
            let claim = Message::new(
                Text::new(
                    "Merging attention takes {kernels} kernels where one would do, {merges} times per step of {class}; fused they would save up to {saved} of {step} ({share}).",
                    "{class} 每步 {merges} 次注意力合并各用 {kernels} 个内核，而一个即可；融合后最多可省 {saved}，步时 {step}（{share}）。",
                ),
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("kernels", Value::Count((kernels / all.len().max(1)) as u64)),
                    ("merges", Value::Count((all.len() / class.steady.max(1)) as u64)),
                    ("saved", Value::Ns(cost.per_step)),
                    ("step", Value::Ns(class.mean())),
                    ("share", Value::Share(cost.share)),
                ],
            );
            let formula = Text::new(
                "(merge kernels + device gaps - longest / 0.85) / mean step",
                "（合并内核 + 设备间隙 − 最长者 / 0.85）/ 平均步时",
            );
            let trigger = Trigger { formula, value: cost.share, threshold: LEAST_GAIN };
            let edits = vec![Edit::Fuse(all.iter().map(Merge::fused).collect())];
            let change = Intervention { removes: cost.per_step, layer: Layer::Operator, edits };
            let rows = all.iter().flat_map(|m| &m.members).map(|(_, op, _)| op.slice);
            let time: Ns = all.iter().map(Merge::time).sum();
            let finding = cx
                .finding(&DOC, rank, class, claim, trigger, change)
                .with(Evidence::new(
                    Text::new("time of merge kernels per step", "每步合并内核耗时"),
                    Value::Ns(time / class.steady.max(1) as Ns),
                    reading::sample(rows),
                ))
                .against(Competing::open(
                    Text::new(
                        "the kernels do something else to the output (a gate, a layout)",
                        "这些内核对输出做的是别的事（门控、布局）",
                    ),
                    Text::new("the model's code after attention decides", "模型中注意力之后的代码可以判定"),
                ));
            found.extend(finding.gated(cost.most.min(Confidence::Medium)));
        }
        found.into_iter().collect()
    }
}

/// The kernels that merge the parts of one attention.
struct Merge<'a> {
    members: Vec<(usize, &'a DeviceOp, Exclusive)>,
}

impl Merge<'_> {
    fn time(&self) -> Ns {
        self.members.iter().map(|(.., x)| x.busy).sum()
    }

    fn as_one(&self) -> Ns {
        let longest = self.members.iter().map(|(.., x)| x.busy).max().unwrap_or(0);
        (longest as f64 / FUSION_EFFICIENCY) as Ns
    }

    fn saved(&self) -> Ns {
        (self.time() - self.as_one()).max(0)
    }

    fn fused(&self) -> (Vec<u32>, Ns) {
        (self.members.iter().map(|(i, ..)| *i as u32).collect(), self.as_one())
    }
}

/// The merges of a step, each on the queue of its attention.
fn merges<'a>(rank: &'a Rank, step: &Step) -> Vec<Merge<'a>> {
    let mut queues: Vec<Vec<(usize, &DeviceOp, Exclusive)>> = vec![Vec::new(); rank.timeline.queues.len()];
    for part in reading::accounted(rank, step) {
        if let Some(queue) = queues.get_mut(part.1.queue as usize) {
            queue.push(part);
        }
    }
    let mut out = Vec::new();
    for ops in &queues {
        let mut rest = ops.as_slice();
        while let Some(at) = rest.iter().position(|(_, op, _)| is_attention(op)) {
            let Some(after) = rest.get(at + 1..) else { break };
            let members: Vec<_> = after.iter().take_while(|(_, op, _)| may_merge(op)).copied().collect();
            let ends_in_product = after.get(members.len()).is_some_and(|(_, op, _)| op.op.class() == OpClass::Matrix);
            let attention = rest.get(at).map_or(0, |(.., x)| x.busy);
            rest = after.get(members.len()..).unwrap_or(&[]);
            let merge = Merge { members };
            let long = merge.time() as f64 >= SHARE * (attention + merge.time()) as f64;
            let combines = merge.members.iter().any(|(_, op, _)| op.op == CanonicalOp::AttnCombine);
            let count = merge.members.len();
            if ends_in_product && (count >= KERNELS || count >= 2 && combines && long) {
                out.push(merge);
            }
        }
    }
    out
}

fn is_attention(op: &DeviceOp) -> bool {
    op.kind == OpKind::Compute && op.op.class() == OpClass::Attention && op.op != CanonicalOp::AttnCombine
}

fn may_merge(op: &DeviceOp) -> bool {
    let small = matches!(
        op.op,
        CanonicalOp::AttnCombine
            | CanonicalOp::Elementwise
            | CanonicalOp::Softmax
            | CanonicalOp::Reduce
            | CanonicalOp::Format
            | CanonicalOp::Fill
            | CanonicalOp::Index
    );
    op.kind == OpKind::Copy(CopyDir::DtoD) || op.kind == OpKind::Compute && small
}
