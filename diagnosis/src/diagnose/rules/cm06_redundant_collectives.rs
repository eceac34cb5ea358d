//! CM-06: more collectives per layer than the parallel plan needs.

use std::collections::BTreeMap;

use model::{Area, EvidenceClass::Device, StringId};

use super::{gate::recurring, link::Collective, reading};
use crate::{
    analysis::{Confidence, DeviceOp, Edit, Layer, OpKind, Rank, Step},
    diagnose::{
        Competing, Evidence, Intervention, Trigger,
        estimate::LEAST_GAIN,
        relations::{Advice, Feeds, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::{CanonicalOp, OpClass, Stage},
};

/// Collectives of a dense layer under tensor parallelism: after attention and after the MLP.
const DENSE: usize = 2;
/// With experts: those, and dispatch and combine.
const EXPERTS: usize = 4;
/// Once per step: the embedding and the logits, or in place of the logits the three of a loss over a divided vocabulary (largest
/// logit, the target's logit, sum of exponentials: Megatron-LM, `tensor_parallel/cross_entropy.py`).
const ONCE: usize = 4;
/// Repeats per operation that mixes tokens, at most, for them to be layers: hybrid models have attention in every eighth layer; heuristic.
const MIXED: usize = 8;

/// The rule.
pub struct RedundantCollectives;

static DOC: Doc = Doc {
    id: "CM-06",
    title: Text::new("Redundant collectives", "多余的集合通信"),
    layer: Layer::Communication,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations { board: &[Feeds::Area(Area::Communication)], ..Relations::NONE },
    sees: Text::new("A step carries out more collectives than its layers need.", "一个步执行的集合通信多于各层所需。"),
    matters: Text::new(
        "A collective of a decode step is all latency; every extra one is paid on every layer and token.",
        "解码步的集合通信几乎全是时延；每多一次，每层每个 token 都要付出。",
    ),
    trigger: Text::new(
        "Collectives per step above 2 per layer (4 with experts) plus 4, and the exposed time of as many average collectives as are too many at least 1 % of the mean step.",
        "每步集合通信次数超过每层 2 次（含专家时 4 次）再加 4 次，且超出次数乘以平均暴露时间至少占平均步时的 1%。",
    ),
    source: Text::new(
        "Structural: tensor parallelism reduces after attention and after the MLP, expert parallelism dispatches and combines; embedding and logits add one each, or the embedding one and a loss over a divided vocabulary three (Megatron-LM).",
        "结构性判据：张量并行在注意力与 MLP 之后各规约一次，专家并行有分发与合并；嵌入与 logits 各一次；或嵌入一次，切分词表上的损失三次（Megatron-LM）。",
    ),
    guards: Text::new(
        "A layer has at most one attention kernel, so there are at least as many layers as those. A reduce-scatter and an all-gather count as one (sequence parallelism), sends and receives do not count. Training is not judged: its plans divide weights and gradients too. Without a layer structure found in the step the rule abstains.",
        "每层至多一个注意力内核，因此层数不少于注意力内核数。一次 reduce-scatter 与一次 all-gather 合计一次（序列并行），点对点收发不计。不评判训练：其并行方案还会切分权重与梯度。若步内未找到层结构则不作判断。",
    ),
    verify: Text::new(
        "Fuse or drop the extra calls: the number of collectives per layer matches the plan.",
        "合并或去掉多余调用：每层集合通信次数与方案一致。",
    ),
};

impl Rule for RedundantCollectives {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let mut found = Vec::new();
        let mut blind = false;
        // Training divides weights and gradients too, by plans that a capture does not tell.
        for (rank, class) in cx.main_classes().filter(|(_, class)| class.stage != Stage::Train) {
            let Some(layers) = rank.period.as_ref().map(|p| p.repeats) else {
                blind |= rank.steady_steps(class).any(|s| collectives(cx, rank, s) > ONCE);
                continue;
            };
            let experts = |s: &Step| {
                let moe = |op: CanonicalOp| matches!(op, CanonicalOp::GroupedGemm | CanonicalOp::MoeRoute);
                rank.ops_of(s).iter().any(|op| moe(op.op))
            };
            // A repeat may hold more than one layer, such as a pair that pieces of a graph cut differently.
            let attention = |s: &Step| {
                rank.ops_of(s).iter().filter(|op| matches!(op.op, CanonicalOp::AttnDecode | CanonicalOp::Attn)).count()
            };
            // What repeats without anything that mixes tokens is no layer, and an excerpt of a step holds fewer than it has.
            let mixes = |s: &Step| {
                let mixes = |op: &CanonicalOp| op.class() == OpClass::Attention || *op == CanonicalOp::Ssm;
                rank.ops_of(s).iter().map(|op| op.op).filter(mixes).count()
            };
            if (1..layers.div_ceil(MIXED)).contains(&rank.steady_steps(class).map(mixes).max().unwrap_or(0)) {
                continue;
            }
            let layers = rank.steady_steps(class).map(attention).max().unwrap_or(0).max(layers);
            let plan = |s: &Step| layers * if experts(s) { EXPERTS } else { DENSE } + ONCE;
            let extra = |s: &Step| {
                let count = collectives(cx, rank, s);
                let exposed =
                    reading::accounted(rank, s).filter(|(_, op, _)| is_counted(cx, op)).map(|(_, _, x)| x.busy);
                exposed.sum::<i64>() / count.max(1) as i64 * count.saturating_sub(plan(s)) as i64
            };
            let Some(cost) = recurring(rank, class, LEAST_GAIN, extra) else { continue };
            let surplus = |s: &Step| surplus_of(cx, rank, s, collectives(cx, rank, s).saturating_sub(plan(s)));
            let ops = |of: fn(&Surplus) -> &[u32]| {
                let all = rank.steady_steps(class).map(surplus);
                Edit::Remove(all.flat_map(|s| of(&s).to_vec()).collect())
            };
            let edits = vec![ops(|s| &s.certain), Edit::Hoped(Box::new(ops(|s| &s.possible)))];
            let Some(step) = rank.steady_steps(class).max_by_key(|s| collectives(cx, rank, s)) else { continue };
            let (count, plan) = (collectives(cx, rank, step), plan(step));
            let trigger = Trigger {
                formula: Text::new(
                    "collectives per step / (collectives per layer of the plan x layers + 4)",
                    "每步集合通信次数 /（方案每层次数 × 层数 + 4）",
                ),
                value: count as f64 / plan as f64,
                threshold: 1.0,
            };
            let claim = Message::new(
                Text::new(
                    "A step of {class} carries out {count} collectives where {layers} layers need {plan}; the others take {cost} ({share} of the step).",
                    "{class} 每步执行 {count} 次集合通信，而 {layers} 层只需 {plan} 次；多出的耗时 {cost}（占步时 {share}）。",
                ),
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("count", Value::Count(count as u64)),
                    ("layers", Value::Count(layers as u64)),
                    ("plan", Value::Count(plan as u64)),
                    ("cost", Value::Ns(cost.per_step)),
                    ("share", Value::Share(cost.share)),
                ],
            );
            let change = Intervention { removes: cost.per_step, layer: Layer::Communication, edits };
            let rows = rank.ops_of(step).iter().filter(|op| op.kind == OpKind::Comm).map(|op| op.slice);
            let finding = cx
                .finding(&DOC, rank, class, claim, trigger, change)
                .with(Evidence::new(
                    Text::new("collectives in a step", "每步集合通信次数"),
                    Value::Count(count as u64),
                    reading::sample(rows),
                ))
                .against(Competing::open(
                    Text::new("the parallel plan needs them", "并行方案本就需要它们"),
                    Text::new(
                        "the engine's parallel settings (context, expert parallelism) decide",
                        "引擎的并行设置（上下文、专家并行）可以判定",
                    ),
                ));
            // The number of layers is mined from the sequence of operators, not read from the model.
            found.extend(finding.gated(cost.most.min(Confidence::Medium)));
        }
        if found.is_empty() && blind {
            return Outcome::Abstain(Message::plain(Text::new(
                "no layer structure was found in the step, so the collectives per layer are unknown; capture whole steps",
                "步内未找到层结构，无法得知每层集合通信次数；请采集完整的步",
            )));
        }
        found.into_iter().collect()
    }
}

/// Collectives of a step as the plan counts them: under sequence parallelism a reduce-scatter and an all-gather do together
/// what one all-reduce does, and what stages send each other belongs to another plan.
fn collectives(cx: &Context<'_>, rank: &Rank, step: &Step) -> usize {
    let (mut whole, mut scattered, mut gathered) = (0, 0, 0);
    for op in rank.ops_of(step).iter().filter(|op| op.kind == OpKind::Comm) {
        let name = cx.trace.strings.get(op.name);
        match Collective::of(name) {
            Some(Collective::Pair) => {}
            Some(Collective::Half) if is_gather(name) => gathered += 1,
            Some(Collective::Half) => scattered += 1,
            Some(Collective::AllReduce) | None => whole += 1,
        }
    }
    whole + usize::max(scattered, gathered)
}

/// Whether an operation is a collective, and no send or receive.
fn is_counted(cx: &Context<'_>, op: &DeviceOp) -> bool {
    op.kind == OpKind::Comm && Collective::of(cx.trace.strings.get(op.name)) != Some(Collective::Pair)
}

fn is_gather(name: &str) -> bool {
    name.to_ascii_lowercase().contains("gather")
}

/// Collectives of a step that are more than the plan needs.
#[derive(Default)]
struct Surplus {
    /// As many as there are too many, of other kinds than the one the step has most of: that is the plan's own.
    certain: Vec<u32>,
    /// All of the kinds that those are of, or of the plan's own kind as many as are left.
    possible: Vec<u32>,
}

/// The surplus of a step with so many collectives too many, from the kinds it has fewest of.
fn surplus_of(cx: &Context<'_>, rank: &Rank, step: &Step, count: usize) -> Surplus {
    let mut kinds: BTreeMap<StringId, Vec<u32>> = BTreeMap::new();
    for (i, op) in rank.ops_of(step).iter().enumerate().filter(|(_, op)| is_counted(cx, op)) {
        kinds.entry(op.name).or_default().push((step.ops.start + i) as u32);
    }
    let mut kinds: Vec<Vec<u32>> = kinds.into_values().collect();
    kinds.sort_by_key(|ops| (ops.len(), ops.first().copied()));
    let (mut out, mut left) = (Surplus::default(), count);
    let last = kinds.len().saturating_sub(1);
    for (i, ops) in kinds.into_iter().enumerate() {
        if left == 0 {
            break;
        }
        let taken = ops.len().min(left);
        left -= taken;
        if i < last {
            out.certain.extend(ops.iter().take(taken));
            out.possible.extend(ops);
        } else {
            out.possible.extend(ops.iter().take(taken));
        }
    }
    out
}
