//! OP-05: layout and format conversions between operators.

use std::collections::BTreeMap;

use model::{EvidenceClass::Device, StringId};

use super::{
    gate::{LEAST_GAIN, recurring},
    reading,
};
use crate::{
    analysis::{Class, DeviceOp, Edit, Layer, OpKind, Rank, Step},
    diagnose::{
        Competing, Evidence, Intervention, Trigger,
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::CanonicalOp,
};

/// Share of the step; own value, above run-to-run noise.
const SHARE: f64 = 0.02;

/// The rule.
pub struct Layout;

static DOC: Doc = Doc {
    id: "OP-05",
    title: Text::new("Layout or format conversion", "布局或格式转换"),
    layer: Layer::Operator,
    needs: &[Device],
    sees: Text::new(
        "Transposes, contiguous copies, concatenations, paddings, casts or private-format conversions run between the operators that compute.",
        "在计算算子之间运行转置、连续化拷贝、拼接、填充、类型转换或私有格式转换。",
    ),
    matters: Text::new(
        "A conversion computes nothing: it moves a tensor through memory because two operators disagree about its layout.",
        "转换不做计算：只因两个算子对布局意见不一，就把张量在内存里搬一遍。",
    ),
    trigger: Text::new(
        "Exclusive time of conversion kernels at least 2 % of the median step, or at least one per layer and 1 %.",
        "转换内核的独占时间至少占中位步时的 2%；或每层至少一次且占 1%。",
    ),
    source: Text::new(
        "2 %: own value, above run-to-run noise. One per layer is structural.",
        "2%：自定值，高于重复运行噪声。每层一次为结构性判据。",
    ),
    guards: Text::new(
        "Conversions of less than 1 % are ignored. A conversion may enable a faster kernel; only a run without it tells the net effect.",
        "低于 1% 的转换忽略。转换可能换来更快的算子；只有去掉它再跑才知道净效果。",
    ),
    verify: Text::new(
        "Keep one layout through the layer (weights converted once): the number of conversion kernels falls to zero.",
        "整层保持同一布局（权重只转换一次）：转换内核数量降到零。",
    ),
};

impl Rule for Layout {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let mut found = Vec::new();
        for (rank, class) in cx.main_classes() {
            let layers = rank.period.as_ref().map(|p| p.repeats);
            let count = rank.steady_steps(class).map(|s| conversions(rank, s).count()).min().unwrap_or(0);
            let threshold = if layers.is_some_and(|l| count >= l) { LEAST_GAIN } else { SHARE };
            let time = |s: &Step| conversions(rank, s).map(|(_, ns)| ns).sum();
            let Some(cost) = recurring(rank, class, threshold, time) else { continue };
            let trigger = Trigger { formula: "time of conversion kernels / median step", value: cost.share, threshold };
            let claim = Message::new(
                Text::new(
                    "Layout and format conversions take {time} of {step} in {class} ({share}), {count} kernels per step.",
                    "{class} 的布局与格式转换耗时 {time}，步时 {step}（{share}），每步 {count} 个内核。",
                ),
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("time", Value::Ns(cost.per_step)),
                    ("step", Value::Ns(class.p50)),
                    ("share", Value::Share(cost.share)),
                    ("count", Value::Count(count as u64)),
                ],
            );
            let change = Intervention { removes: cost.per_step, layer: Layer::Operator, edits: removed(rank, class) };
            let rows = rank.steady_steps(class).flat_map(|s| conversions(rank, s)).map(|(op, _)| op.slice);
            let finding = cx
                .finding(&DOC, rank, class, claim, trigger, change)
                .with(Evidence::new(
                    Text::new("time of conversion kernels per step", "每步转换内核耗时"),
                    Value::Ns(cost.per_step),
                    reading::sample(rows),
                ))
                .against(Competing::open(
                    Text::new("the conversion enables a faster kernel", "该转换换来了更快的算子"),
                    Text::new("a run without the conversion decides", "去掉转换再跑一次可以判定"),
                ));
            found.extend(finding.gated(cost.most));
        }
        found.into_iter().collect()
    }
}

fn is_conversion(op: &DeviceOp) -> bool {
    op.kind == OpKind::Compute && op.op == CanonicalOp::Format
}

fn conversions<'a>(rank: &'a Rank, step: &Step) -> impl Iterator<Item = (&'a DeviceOp, i64)> {
    reading::accounted(rank, step).filter(|(_, op, _)| is_conversion(op)).map(|(_, op, x)| (op, x.busy))
}

/// The conversions that recur within a step are not done; hopefully neither are those that occur once in it, which may be
/// part of the model, such as a cast of the logits.
fn removed(rank: &Rank, class: &Class) -> Vec<Edit> {
    let (mut recurring, mut single) = (Vec::new(), Vec::new());
    for step in rank.steady_steps(class) {
        let mut kinds: BTreeMap<StringId, Vec<u32>> = BTreeMap::new();
        for (i, op) in rank.ops_of(step).iter().enumerate().filter(|(_, op)| is_conversion(op)) {
            kinds.entry(op.name).or_default().push((step.ops.start + i) as u32);
        }
        for ops in kinds.into_values() {
            if ops.len() > 1 { recurring.extend(ops) } else { single.extend(ops) }
        }
    }
    vec![Edit::Remove(recurring), Edit::Hoped(Box::new(Edit::Remove(single)))]
}
