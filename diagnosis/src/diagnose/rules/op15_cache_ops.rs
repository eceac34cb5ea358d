//! OP-15: storing the new keys and values takes far longer than their bytes.

use model::{EvidenceClass::Device, Ns, StringId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    reading,
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{Confidence, DeviceOp, Layer, OpKind, Rank, Step, op_shapes},
    diagnose::{
        estimate::LEAST_GAIN,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text},
    platform::{CanonicalOp, OpClass, Stage},
};

/// What a good cache operation takes at most, in yardsticks.
const GOOD: Ns = 2;
/// How much longer than its yardstick a cache operation may take: half as long again as a good one.
const SLOWER: Ns = 3;

/// Fragments of names of general index operators that stand in for a cache write.
const SCATTERS: &[&str] = &["scatter", "index_put", "indexput", "index_copy", "index_elementwise", "index_kernel"];

/// The rule.
pub struct CacheOps;

static DOC: Doc = Doc {
    id: "OP-15",
    title: Text::new("Slow cache writes", "缓存写入低效"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "Cache writes or general scatter operators that run in every layer take several times as long as the small operators beside them.",
        "每层执行的缓存写入或通用 scatter 算子比旁边的小算子慢数倍。",
    ),
    matters: Text::new(
        "A new token's keys and values are no more bytes than its hidden vector; a general scatter writes them element by element, or touches the whole cache.",
        "一个新 token 的 K、V 字节数不超过其隐藏向量；通用 scatter 却逐元素写入，或触碰整个缓存。",
    ),
    trigger: Text::new(
        "A cache write or scatter that runs at least once per layer (twice per step where no layers are known) takes more than three times its yardstick, and what is beyond two yardsticks adds up to at least 1 % of the mean step. The yardstick is twice the bytes of its inputs without the cache, over the best rate seen in the capture, and at least the shortest norm, rotary embedding or activation of the step; without recorded shapes it is the smallest of the medians of those three kinds.",
        "每层至少执行一次（未知层结构时每步两次）的缓存写入或 scatter 超过其标尺的三倍，且超出两倍标尺的部分合计至少占平均步时的 1%。标尺为除缓存外输入字节的两倍除以采集中最佳速率，且不小于该步最短的归一化、旋转编码或激活；未采集形状时取这三类各自中位数中的最小者。",
    ),
    source: Text::new(
        "Three times, half as long again as a good one of two: own values; vllm-ascend #4154 won 26 ms per token by a dedicated cache write.",
        "三倍，即比两倍标尺的良好实现再长一半：自定值；vllm-ascend #4154 改用专用缓存写入后每 token 缩短 26 ms。",
    ),
    guards: Text::new(
        "Prompts write many tokens: only decode steps count. A step without any norm, rotary embedding or activation kernel gives no yardstick, and the rule abstains.",
        "提示阶段写入大量 token：只看解码步。若步内没有归一化、旋转编码或激活内核则没有标尺，规则弃权。",
    ),
    verify: Text::new(
        "Use the platform's own cache-write operator: its time per layer falls to that of a norm.",
        "改用平台专用的缓存写入算子：其每层耗时降到与归一化相当。",
    ),
};

static KIND: Kind = Kind {
    doc: &DOC,
    share: LEAST_GAIN,
    per_layer: None,
    formula: Text::new(
        "time of cache operations beyond two yardsticks / mean step",
        "缓存操作超出两倍标尺的时间 / 平均步时",
    ),
    claim: Text::new(
        "{count} cache writes or scatters per step of {class} take {busy}, more than three times what their bytes need; good ones would save {time} of {step} ({share}).",
        "{class} 每步 {count} 次缓存写入或 scatter 耗时 {busy}，超过其字节所需的三倍；高效实现可省 {time}，步时 {step}（{share}）。",
    ),
    what: Text::new("time of slow cache writes and scatters per step", "每步低效缓存写入与 scatter 耗时"),
    rivals: &[(
        Text::new("the operator does more than store one token per sequence", "该算子做的不只是为每个序列存一个 token"),
        Text::new("the shapes of its inputs, or the code that calls it, decide", "其输入形状或调用它的代码可以判定"),
    )],
    most: Confidence::Medium,
};

impl Rule for CacheOps {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let scatters = reading::named(cx, |name| {
            let name = name.to_ascii_lowercase();
            // Of torch's one kernel for both, the functor says whether it reads or writes.
            SCATTERS.iter().any(|s| name.contains(s)) && !name.contains("index_kernel_impl")
        });
        let mut without = false;
        let mut found = Vec::new();
        for (rank, class) in cx.main_classes().filter(|(_, c)| c.stage == Stage::Decode) {
            let fastest = op_shapes::fastest(cx.trace, rank);
            let beside = |s: &Step| neighbours(rank, s);
            let candidates = |s: &Step| cache_ops(rank, s, &scatters);
            without |= rank.steady_steps(class).any(|s| !candidates(s).is_empty() && beside(s).is_none());
            found.extend(share_of_step::of_class(cx, &KIND, rank, class, |step| {
                let Some(Beside { shortest, usual }) = beside(step) else { return Vec::new() };
                let yardstick = |op: &DeviceOp| {
                    let bytes = written(&op_shapes::inputs(cx.trace, rank, op)).zip(fastest);
                    bytes.map_or(usual, |(b, rate)| shortest.max((2.0 * b as f64 / rate) as Ns))
                };
                let slow = |op: &DeviceOp| Some(yardstick(op)).filter(|y| op.dur() > y.saturating_mul(SLOWER));
                let good = |part: Accounted<'_>| {
                    let worst = slow(part.1)?.saturating_mul(GOOD);
                    // The bytes allow what the quickest neighbour takes; two yardsticks are good enough.
                    Some(Part::gone(part).to(worst).within(shortest, worst))
                };
                candidates(step).into_iter().filter_map(good).collect()
            }));
        }
        if found.is_empty() && without {
            return Outcome::Abstain(Message::plain(Text::new(
                "the step holds no norm, rotary embedding or activation kernel to measure its cache writes by",
                "步内没有归一化、旋转编码或激活内核可用来衡量缓存写入",
            )));
        }
        found.into_iter().collect()
    }
}

type Accounted<'a> = (usize, &'a DeviceOp, crate::analysis::attribution::Exclusive);

/// Cache writes and scatters that run in every layer of a step.
fn cache_ops<'a>(rank: &'a Rank, step: &Step, scatters: &FxHashSet<StringId>) -> Vec<Accounted<'a>> {
    let stores =
        |op: &DeviceOp| op.op == CanonicalOp::KvWrite || (op.op == CanonicalOp::Index && scatters.contains(&op.name));
    let ops: Vec<Accounted<'a>> =
        reading::accounted(rank, step).filter(|(_, op, _)| op.kind == OpKind::Compute && stores(op)).collect();
    let mut counts: FxHashMap<StringId, usize> = FxHashMap::default();
    ops.iter().for_each(|(_, op, _)| *counts.entry(op.name).or_default() += 1);
    let least = rank.period.as_ref().map_or(2, |p| p.repeats);
    ops.into_iter().filter(|(_, op, _)| counts.get(&op.name).is_some_and(|n| *n >= least)).collect()
}

/// What the operators of a step take that read and write about one hidden vector per token, ns.
struct Beside {
    /// The shortest of them.
    shortest: Ns,
    /// The smallest of the medians of their kinds. Each kind moves at least as many bytes as a cache write: a rotary
    /// embedding reads and writes queries and keys (2·M·(Hq+Hk)·d elements against 4·M·Hk·d), a norm or activation whole
    /// hidden vectors. So the quickest kind is still no less than a good write needs.
    usual: Ns,
}

fn neighbours(rank: &Rank, step: &Step) -> Option<Beside> {
    let kinds = [OpClass::Norm, OpClass::Rope, OpClass::Act].map(|kind| {
        let same = |op: &&DeviceOp| op.kind == OpKind::Compute && op.op.class() == kind;
        let mut durations: Vec<Ns> = rank.ops_of(step).iter().filter(same).map(DeviceOp::dur).collect();
        durations.sort_unstable();
        durations
    });
    let shortest = kinds.iter().filter_map(|durations| durations.first().copied()).min()?;
    let usual = kinds.iter().filter_map(|durations| durations.get(durations.len() / 2).copied()).min()?;
    Some(Beside { shortest, usual })
}

/// Bytes that a cache write stores: those of its inputs, the cache itself (its largest inputs) left out.
fn written(inputs: &[op_shapes::Tensor]) -> Option<i64> {
    let cache = inputs.iter().map(op_shapes::Tensor::elements).max()?;
    let stored = inputs.iter().filter(|t| t.elements() < cache);
    stored.map(op_shapes::Tensor::bytes).try_fold(0i64, |sum, b| Some(sum.saturating_add(b?))).filter(|b| *b > 0)
}
