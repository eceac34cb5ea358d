//! OP-24: the cache is copied together before each attention of a decode step, which could read it where it lies.

use model::EvidenceClass::Device;

use super::{
    fine_op, reading,
    share_of_step::{self, Kind},
};
use crate::{
    analysis::{Confidence, DeviceOp, Layer},
    diagnose::{
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::Text,
    platform::{CanonicalOp, OpClass, Stage},
};

/// The rule.
pub struct GatheredCache;

static DOC: Doc = Doc {
    id: "OP-24",
    title: Text::new("Cache gathered before attention", "注意力之前先聚拢缓存"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "In every layer rows of the cache are picked and written one behind the other, and the attention kernel reads that copy.",
        "每一层都先把缓存的行挑出并连续写出，注意力内核再读取这份副本。",
    ),
    matters: Text::new(
        "The attention of a decode step reads the cache once, and that is most of its time. Gathering it first reads it, writes it and reads it again.",
        "解码步的注意力只需读一遍缓存，这正是其大部分耗时。先聚拢则要读、写、再读一遍。",
    ),
    trigger: Text::new(
        "Exclusive time of gathers directly before an attention kernel of their queue in decode steps at least 2 % of the mean step.",
        "解码步中，同一队列上紧接注意力内核之前的 gather 的独占时间至少占平均步时的 2%。",
    ),
    source: Text::new(
        "2 %: own value, above run-to-run noise. Paged attention reads blocks in place: vLLM (SOSP 2023), FlashInfer.",
        "2%：自定值，高于重复运行噪声。分页注意力就地读取各块：vLLM（SOSP 2023）、FlashInfer。",
    ),
    guards: Text::new(
        "Only decode steps are judged: a prefill gathers what earlier chunks wrote once for many rows. What is gathered before an attention made of single kernels belongs to that composite (OP-03). The estimate takes the gathers away and keeps the attention kernel; one that reads pages may be a little slower.",
        "只评判解码步：预填充为许多行只聚拢一次先前各块的内容。由单个内核拼成的注意力之前的 gather 属于该复合算子（OP-03）。估计只去掉 gather、保留注意力内核；按页读取的内核可能略慢。",
    ),
    verify: Text::new(
        "Use a paged attention kernel: the gathers are gone, and the attention is hardly slower.",
        "改用分页注意力内核：gather 消失，注意力几乎不变慢。",
    ),
};

static KIND: Kind = Kind {
    doc: &DOC,
    share: 0.02,
    per_layer: None,
    formula: Text::new("time of gathers before attention / mean step", "注意力之前 gather 的时间 / 平均步时"),
    claim: Text::new(
        "Gathers directly before attention take {time} of {step} in {class} ({share}), {count} per step.",
        "{class} 中紧接注意力之前的 gather 耗时 {time}，步时 {step}（{share}），每步 {count} 次。",
    ),
    what: Text::new("time of gathers before attention per step", "每步注意力之前 gather 的耗时"),
    rivals: &[(
        Text::new("what is gathered is not the cache", "被聚拢的不是缓存"),
        Text::new("the shapes of its inputs, or the code that calls it, decide", "其输入形状或调用它的代码可以判定"),
    )],
    most: Confidence::Medium,
};

impl Rule for GatheredCache {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let names = reading::named(cx, fine_op::is_gather);
        share_of_step::check(cx, &KIND, |rank, class, step| match class.stage {
            Stage::Decode => {
                let gathers = |op: &DeviceOp| op.op == CanonicalOp::Index && names.contains(&op.name);
                share_of_step::before(rank, step, gathers, |op| op.op.class() == OpClass::Attention)
            }
            _ => Vec::new(),
        })
        .into_iter()
        .collect()
    }
}
