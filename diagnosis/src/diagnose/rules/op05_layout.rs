//! OP-05: layout conversions and concatenations between operators.

use model::EvidenceClass::Device;

use super::{
    reading,
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{Confidence, DeviceOp, Layer, OpKind, dtype::is_cast},
    diagnose::{
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::Text,
    platform::{CanonicalOp, Stage},
};

/// The rule.
pub struct Layout;

static DOC: Doc = Doc {
    id: "OP-05",
    title: Text::new("Layout conversion or concatenation", "布局转换或拼接"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations { shares_time_with: &["OP-03", "OP-17"], ..Relations::NONE },
    sees: Text::new(
        "Transposes, contiguous copies, concatenations, paddings or private-format conversions run between the operators that compute.",
        "在计算算子之间运行转置、连续化拷贝、拼接、填充或私有格式转换。",
    ),
    matters: Text::new(
        "A conversion computes nothing: it moves a tensor through memory because two operators disagree about its layout.",
        "转换不做计算：只因两个算子对布局意见不一，就把张量在内存里搬一遍。",
    ),
    trigger: Text::new(
        "Exclusive time of conversion kernels at least 2 % of the mean step, or, where tokens are served, at least one per layer and 1 %.",
        "转换内核的独占时间至少占平均步时的 2%；推理时或每层至少一次且占 1%。",
    ),
    source: Text::new(
        "2 %: own value, above run-to-run noise. One per layer is structural.",
        "2%：自定值，高于重复运行噪声。每层一次为结构性判据。",
    ),
    guards: Text::new(
        "Conversions of less than 1 % are ignored. Conversions of the data type belong to OP-04. A conversion may enable a faster kernel; only a run without it tells the net effect.",
        "低于 1% 的转换忽略。数据类型转换归 OP-04。转换可能换来更快的算子；只有去掉它再跑才知道净效果。",
    ),
    verify: Text::new(
        "Keep one layout through the layer: the number of conversion kernels falls to zero.",
        "整层保持同一布局：转换内核数量降到零。",
    ),
};

const KIND: Kind = Kind {
    doc: &DOC,
    share: 0.02,
    per_layer: Some(1),
    formula: Text::new("time of conversion kernels / mean step", "转换内核时间 / 平均步时"),
    claim: Text::new(
        "Layout conversions and concatenations take {time} of {step} in {class} ({share}), {count} kernels per step.",
        "{class} 的布局转换与拼接耗时 {time}，步时 {step}（{share}），每步 {count} 个内核。",
    ),
    what: Text::new("time of conversion kernels per step", "每步转换内核耗时"),
    rivals: &[(
        Text::new("the conversion enables a faster kernel", "该转换换来了更快的算子"),
        Text::new("a run without the conversion decides", "去掉转换再跑一次可以判定"),
    )],
    most: Confidence::High,
};

static SERVING: Kind = KIND;
/// In training the backward pass has transposes of its own: one per layer is nothing out of the ordinary.
static TRAINING: Kind = Kind { per_layer: None, ..KIND };

impl Rule for Layout {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let casts = reading::named(cx, is_cast);
        let conversion =
            |op: &DeviceOp| op.kind == OpKind::Compute && op.op == CanonicalOp::Format && !casts.contains(&op.name);
        let found = cx.main_classes().filter_map(|(rank, class)| {
            let kind = if class.stage == Stage::Train { &TRAINING } else { &SERVING };
            share_of_step::of_class(cx, kind, rank, class, |step| {
                reading::accounted(rank, step).filter(|(_, op, _)| conversion(op)).map(Part::gone).collect()
            })
        });
        found.collect()
    }
}
