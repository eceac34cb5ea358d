//! OP-04: the model computes in 16 bits, and part of the step goes through 32.

use model::{EvidenceClass::Device, Ns, StringId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    ceilings::{Ceilings, Origin},
    composite,
    fine_op::{FineOp, fine_op},
    reading,
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{
        Confidence, DeviceOp, Layer, OpKind, Rank, Step,
        attribution::Exclusive,
        dtype::{self, Width, is_cast, width_of_name},
        op_shapes::{self, Gemm},
    },
    diagnose::{
        estimate::LEAST_GAIN,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::Text,
    platform::{CanonicalOp, OpClass},
};

/// Share of the step that matrix products with 32-bit operands must take. Their time stands for their bytes: decode reads
/// weights at the speed of memory.
const SINGLE_SHARE: f64 = 0.05;

/// What a product with 16-bit weights takes of the time with 32 bits, at best and at worst. The bytes are half; steps of
/// llama.cpp, PyTorch and this engine on server CPUs took 0.59 to 0.72 of the time, their other operators included. Where the
/// read bandwidth was measured, half of the bytes at its best may be less than half of the time: then that is the best.
const NARROWED: (f64, f64) = (0.5, 0.7);

/// The rule.
pub struct Upcast;

static DOC: Doc = Doc {
    id: "OP-04",
    title: Text::new("Casts and 32-bit products", "类型转换与 32 位矩阵乘"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations { shares_time_with: &["OP-10"], ..Relations::NONE },
    sees: Text::new(
        "Tensors are cast between data types inside the step, or matrix products of a model of at most 16 bits run with 32-bit operands.",
        "步内在数据类型之间反复转换张量，或在不超过 16 位的模型中以 32 位操作数做矩阵乘。",
    ),
    matters: Text::new(
        "Decode is bound by the bytes it reads: 32-bit operands double them, and a cast only moves data.",
        "解码受读取字节数限制：32 位操作数使其翻倍，而类型转换只是搬运数据。",
    ),
    trigger: Text::new(
        "Time of casts, with half the time of 32-bit matrix products where these take at least 5 % of the step, at least 1 % of the mean step. A model counts as 16-bit if at least half of its matrix time with a known type is, or if the manifest says that its weights were published so and converted.",
        "类型转换的时间，加上 32 位矩阵乘时间的一半（仅当其至少占该步 5% 时），至少占平均步时的 1%。已知类型的矩阵时间至少一半为 16 位或更窄，或清单说明其权重以此发布后又经转换时，模型按 16 位计。",
    ),
    source: Text::new("5 % of the bytes and 1 % of the time: own values.", "字节 5% 与时间 1%：自定值。"),
    guards: Text::new(
        "The last matrix product and what follows are logits and sampling, where 32 bits are usual unless all weights were converted. Casts inside an unfused norm or another composite belong to OP-03: 32-bit accumulation in a norm is required, and the rule is about storage.",
        "最后一次矩阵乘及其后为 logits 与采样，使用 32 位属正常，除非全部权重都经过转换。未融合的归一化等复合算子内部的转换归 OP-03：归一化需要 32 位累加，本规则针对的是存储。",
    ),
    verify: Text::new(
        "Keep weights, residual and rotary tables in 16 bits: no cast and no 32-bit product is left inside the layers, and the numbers stay within their tolerance.",
        "权重、残差与旋转位置表保持 16 位：层内不再有类型转换与 32 位矩阵乘，且数值保持在容差之内。",
    ),
};

static KIND: Kind = Kind {
    doc: &DOC,
    share: LEAST_GAIN,
    per_layer: None,
    formula: Text::new(
        "(casts + half of the 32-bit matrix products) / mean step",
        "（类型转换 + 32 位矩阵乘的一半）/ 平均步时",
    ),
    claim: Text::new(
        "{count} casts and 32-bit matrix products per step of {class} take {busy}; without the casts, and with these products in 16 bits, up to {time} of device time goes ({share} of the step of {step}), with the launches of the casts and the gaps around them.",
        "{class} 每步有 {count} 个类型转换与 32 位矩阵乘，耗时 {busy}；去掉类型转换、并以 16 位做这些矩阵乘后，最多减少设备时间 {time}（占步时 {step} 的 {share}），类型转换的下发及其前后的空隙也随之消失。",
    ),
    what: Text::new("time of casts and 32-bit matrix products per step", "每步类型转换与 32 位矩阵乘耗时"),
    rivals: &[(
        Text::new("the precision is needed there", "该处确实需要这一精度"),
        Text::new("a layer-wise numeric comparison of a run in 16 bits decides", "以 16 位运行后逐层比较数值可以判定"),
    )],
    most: Confidence::High,
};

impl Rule for Upcast {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let casts = reading::named(cx, is_cast);
        let fine: FxHashMap<StringId, FineOp> =
            cx.analysis.ops.iter().map(|(n, m)| (*n, fine_op(cx.trace.strings.get(*n), m.op))).collect();
        share_of_step::check(cx, &KIND, |rank, class, step| {
            let limit = (SINGLE_SHARE * class.mean() as f64) as Ns;
            let mut out = loose_casts(rank, step, &casts, &fine);
            out.extend(singles(cx, rank, step).filter(|(_, ns)| *ns >= limit).map_or(Vec::new(), |(parts, _)| parts));
            out
        })
        .into_iter()
        .collect()
    }
}

/// Operations before the last matrix product of a step.
fn before_logits<'a>(rank: &'a Rank, step: &Step) -> impl Iterator<Item = (usize, &'a DeviceOp, Exclusive)> {
    let matrix = |op: &DeviceOp| op.op.class() == OpClass::Matrix;
    let last = rank.ops_of(step).iter().rposition(matrix).map_or(usize::MAX, |i| step.ops.start + i);
    reading::accounted(rank, step).filter(move |(i, ..)| *i < last)
}

/// Casts that are no member of a composite.
fn loose_casts(rank: &Rank, step: &Step, casts: &FxHashSet<StringId>, fine: &FxHashMap<StringId, FineOp>) -> Vec<Part> {
    let mut queues: Vec<Vec<(usize, FineOp)>> = vec![Vec::new(); rank.timeline.queues.len()];
    for (i, op, _) in reading::accounted(rank, step) {
        let fine = if op.kind == OpKind::Compute { fine.get(&op.name).copied() } else { None };
        if let Some(queue) = queues.get_mut(op.queue as usize) {
            queue.push((i, fine.unwrap_or(FineOp::Other)));
        }
    }
    let mut inside: FxHashSet<usize> = FxHashSet::default();
    for queue in &queues {
        let sequence: Vec<FineOp> = queue.iter().map(|(_, f)| *f).collect();
        for m in composite::find(&sequence) {
            inside.extend(queue.get(m.start..m.end).unwrap_or(&[]).iter().map(|(i, _)| *i));
        }
    }
    before_logits(rank, step)
        .filter(|(i, op, _)| op.kind == OpKind::Compute && casts.contains(&op.name) && !inside.contains(i))
        .map(Part::gone)
        .collect()
}

/// Matrix products with 32-bit operands of a model that else uses narrower ones, or whose weights were published as such,
/// and the time they take, ns.
fn singles(cx: &Context<'_>, rank: &Rank, step: &Step) -> Option<(Vec<Part>, Ns)> {
    if was_narrow(cx) {
        // Its weights of the logits were 16 bits too.
        let (parts, single, _) = by_width(cx, rank, reading::accounted(rank, step));
        return (single > 0).then_some((parts, single));
    }
    let (parts, single, narrow) = by_width(cx, rank, before_logits(rank, step));
    let widened = || {
        let casts = before_logits(rank, step).filter(|(_, op, _)| op.kind == OpKind::Compute);
        let casts = casts.filter(|(_, op, _)| widens(cx.trace.strings.get(op.name))).count();
        casts >= MANY && casts >= parts.len().div_ceil(2)
    };
    (single > 0 && (narrow >= single || widened())).then_some((parts, single))
}

/// Casts to 32 bits of a step from which its 32-bit products read what was 16 bits wide, where they are half as many; heuristic.
const MANY: usize = 8;

/// Whether a kernel casts from 16 to 32 bits, by its name: `cast_f16_f32`.
fn widens(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    let narrow = |word: &str| matches!(word, "f16" | "fp16" | "half" | "float16" | "bf16" | "bfloat16");
    let wide = |word: &str| matches!(word, "f32" | "fp32" | "float" | "float32");
    is_cast(name) && words.any(narrow) && words.any(wide)
}

/// Products with 32-bit operands, and the time of those and of narrower ones, ns.
fn by_width<'a>(
    cx: &Context<'_>,
    rank: &Rank,
    ops: impl Iterator<Item = (usize, &'a DeviceOp, Exclusive)>,
) -> (Vec<Part>, Ns, Ns) {
    let memory = Ceilings::of(cx, rank).bandwidth().filter(|bandwidth| bandwidth.origin == Origin::Measured);
    let (mut parts, mut single, mut narrow) = (Vec::new(), 0, 0);
    for (i, op, x) in ops.filter(|(_, op, _)| op.op == CanonicalOp::Gemm) {
        let product = op_shapes::gemm(&op_shapes::inputs(cx.trace, rank, op));
        match width(cx, product, op) {
            Some(Width::Single) => {
                single += x.busy;
                let (best, worst) = NARROWED;
                let of = |share: f64| (share * op.dur() as f64) as Ns;
                let read = memory.zip(product.and_then(|p| p.bytes));
                let read = read.map_or(Ns::MAX, |(memory, bytes)| (best * bytes as f64 / memory.best) as Ns);
                parts.push(Part::gone((i, op, x)).to(of(best)).within(of(best).min(read), of(worst)));
            }
            Some(Width::Narrow) => narrow += x.busy,
            None => {}
        }
    }
    (parts, single, narrow)
}

/// Whether the weights were published in 16 bits or fewer and converted to 32: `model.conversion` is "bf16 to f32".
fn was_narrow(cx: &Context<'_>) -> bool {
    let conversion = cx.trace.manifest.value("model.conversion").and_then(|chain| chain.split_once(" to "));
    let bytes = |name: &str| dtype::bytes_of(name.trim());
    conversion.is_some_and(|(from, to)| bytes(from).is_some_and(|b| b <= 2) && bytes(to) == Some(4))
}

/// Operand width of a matrix product: what its operator recorded, else what its name shows.
fn width(cx: &Context<'_>, product: Option<Gemm>, op: &DeviceOp) -> Option<Width> {
    match product.and_then(|p| p.element) {
        Some(4) => Some(Width::Single),
        Some(1 | 2) => Some(Width::Narrow),
        _ => width_of_name(cx.trace.strings.get(op.name)),
    }
}
