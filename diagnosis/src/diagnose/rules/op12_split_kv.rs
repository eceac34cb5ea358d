//! OP-12: decode attention is cut into too few blocks for the device.

use model::{EvidenceClass::Device, Ns};

use super::{
    launch_shape::cores,
    measured::{self, LATENCY},
    reading,
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{Class, Confidence, DeviceOp, Layer, OpKind, Rank, Step, attribution::Exclusive, launch_shape::blocks},
    diagnose::{
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text},
    platform::{CanonicalOp, Stage},
};

/// Share of the cores below which a launch leaves most of the device idle.
const FILLED: f64 = 0.5;
/// Least context per sequence that is worth splitting, tokens.
const CONTEXT: u64 = 4096;
/// Least time of a kernel whose context is unknown, ns: below it there is little to split (limit of the Ascend advisor for
/// kernels that no unit bounds).
const LONG: Ns = 20_000;
/// Share of the bandwidth that split attention reaches.
const REACHED: f64 = 0.7;
/// How many times faster a split made the kernels of public cases at least (sglang #27786 and its like).
const FASTER: f64 = 1.2;
/// Blocks that a core needs to draw its share of the bandwidth; own value: of one alone the loads are waited for.
const RESIDENT: f64 = 2.0;

/// The rule.
pub struct SplitKv;

static DOC: Doc = Doc {
    id: "OP-12",
    title: Text::new("Decode attention without enough split", "解码注意力切分不足"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "Decode attention over a long context is launched with fewer blocks than half the device's cores.",
        "长上下文的解码注意力以少于设备核心数一半的块启动。",
    ),
    matters: Text::new(
        "One block per sequence and head walks the whole context alone while the other cores wait; split along the context, all of them read the cache at once.",
        "每个序列与头由一块独自走完整个上下文，其余核心空等；沿上下文切分后所有核心同时读取缓存。",
    ),
    trigger: Text::new(
        "Decode attention with blocks < 0.5 × cores and at least 4096 tokens of context per sequence, and what a split would save at least 2 % of the mean step. Where the context is unknown: kernels of at least 20 µs and at least 10 % of the step, no combine kernel among them. Where the kernel was measured: memory system used to less than 0.4 and no compute unit to 0.6.",
        "解码注意力的块数 < 0.5 × 核心数，且每序列上下文至少 4096 个 token，切分可省的时间至少占平均步时的 2%。上下文未知时：内核至少 20 µs，至少占该步 10%，且该步没有合并内核。内核有测量值时：存储系统利用率低于 0.4，且计算单元均低于 0.6。",
    ),
    source: Text::new(
        "Half the cores: sglang #27786 and its like (1.2 to 3.5 times faster when split). 0.7 of the bandwidth: what split attention reaches. 10 % without known context: own value.",
        "核心数一半：sglang #27786 一类案例（切分后快 1.2 至 3.5 倍）。带宽的 0.7：切分注意力可达水平。上下文未知时 10%：自定值。",
    ),
    guards: Text::new(
        "Short contexts have nothing to split. Where nothing says that the steps decode, the rule abstains. A combine kernel shows that the library splits; without the context nobody can say that it should have split more. Some kernels run at low occupancy by design. Latent attention (MLA) may be bound by compute.",
        "短上下文没有可切分的内容。无法得知各步为解码时不作判断。出现合并内核说明库已在切分；不知道上下文就无法断言应当切得更多。部分内核按设计就是低占用运行。潜在注意力（MLA）可能受计算限制。",
    ),
    verify: Text::new(
        "Turn split-KV on or raise the number of splits: attention gets shorter by up to the ratio of cores to blocks, its combine kernel included.",
        "打开 split-KV 或增加切分数：注意力（含合并内核）缩短，上限为核心数与块数之比。",
    ),
};

const KIND: Kind = Kind {
    doc: &DOC,
    share: 0.02,
    per_layer: None,
    formula: Text::new(
        "attention time x (1 - blocks / cores / 0.7) / mean step",
        "注意力时间 ×（1 − 线程块数 / 核心数 / 0.7）/ 平均步时",
    ),
    claim: Text::new(
        "{count} attention kernels per step of {class} use less than half of the device's cores; of their {busy}, splitting along the context would save up to {time} of {step} ({share}).",
        "{class} 每步有 {count} 个注意力内核只用到不足一半的核心；其耗时 {busy}，沿上下文切分最多可省 {time}，步时 {step}（{share}）。",
    ),
    what: Text::new("time of attention kernels with few blocks per step", "每步块数过少的注意力内核耗时"),
    rivals: &[
        (
            Text::new("the kernel is meant to run with few blocks", "该内核按设计以少量块运行"),
            Text::new("the bandwidth that it reaches against a probe decides", "其实际带宽与探测值对比可以判定"),
        ),
        (
            Text::new("latent attention is bound by compute", "潜在注意力受计算限制"),
            Text::new("the use of the matrix units, from counters, decides", "计数器给出的矩阵单元利用率可以判定"),
        ),
    ],
    most: Confidence::Medium,
};

/// Measured use of the memory system from which few blocks keep up with it.
const KEEPS_UP: f64 = 0.4;
/// Why a compute bound is ruled out.
const NOT_COMPUTE: Text =
    Text::new("measured: no compute unit is used to 60 %", "已测量：没有计算单元的利用率达到 60%");

/// Share of the step that attention of unknown context must take.
const SHARE_UNKNOWN: f64 = 0.10;

impl Rule for SplitKv {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        if cx.analysis.ranks.iter().all(|r| cores(cx.trace, r).is_none()) {
            return Outcome::Abstain(Message::plain(Text::new(
                "the capture does not say how many cores the device has",
                "采集未给出设备核心数",
            )));
        }
        if cx.main_classes().all(|(_, c)| c.stage == Stage::Unknown) {
            return Outcome::Abstain(Message::plain(Text::new(
                "nothing says whether the steps decode; annotate them, or record the engine's counters num_scheduled_tokens and num_requests_running",
                "没有信息说明各步是否为解码；请标注各步，或记录引擎计数器 num_scheduled_tokens 与 num_requests_running",
            )));
        }
        let mut found = Vec::new();
        for (rank, class) in cx.main_classes().filter(|(_, c)| c.stage == Stage::Decode) {
            let Some(cores) = cores(cx.trace, rank) else { continue };
            let context = context(cx, rank, class);
            if context.is_some_and(|tokens| tokens < CONTEXT) {
                continue;
            }
            let split = |op: &DeviceOp| {
                let filled = blocks(cx.trace, op)? as f64 / cores as f64;
                let takes = |share: f64| (op.dur() as f64 * share) as Ns;
                let summary = measured::of(cx, op);
                // Latent attention may be bound by compute with few blocks.
                if summary.and_then(measured::compute).is_some_and(|used| used >= LATENCY) {
                    return None;
                }
                if let Some(used) = summary.and_then(measured::memory) {
                    let (reached, least) = (takes(used / REACHED), takes(1.0 / FASTER));
                    return (filled < FILLED && used < KEEPS_UP).then(|| (reached, reached, least.max(reached)));
                }
                (filled < FILLED).then(|| (takes(filled / REACHED), takes(filled / RESIDENT), takes(1.0 / FASTER)))
            };
            let most = if context.is_some() { Confidence::Medium } else { Confidence::Low };
            let kind = Kind { most, ..KIND };
            let finding = share_of_step::of_class(cx, &kind, rank, class, |step| {
                let attention = reading::accounted(rank, step)
                    .filter(|(_, op, _)| op.kind == OpKind::Compute)
                    .filter(|(_, op, _)| matches!(op.op, CanonicalOp::AttnDecode | CanonicalOp::Attn))
                    .filter(|(_, op, _)| context.is_some() || op.dur() >= LONG);
                let attention: Vec<_> = attention.collect();
                let busy: Ns = attention.iter().map(|(.., x)| x.busy).sum();
                let unsure = (busy as f64) < SHARE_UNKNOWN * class.mean() as f64 || combines(rank, step);
                if context.is_none() && unsure {
                    return Vec::new();
                }
                let part = |part: (usize, &DeviceOp, Exclusive)| {
                    let (to, best, worst) = split(part.1)?;
                    Some(Part::gone(part).to(to).within(best, worst))
                };
                attention.into_iter().filter_map(part).collect()
            });
            found.extend(finding.map(|finding| measured::witness(cx, rank, finding, Some((1, NOT_COMPUTE)))));
        }
        found.into_iter().collect()
    }
}

/// Whether a step merges partial results of attention, which is split already.
fn combines(rank: &Rank, step: &Step) -> bool {
    rank.ops_of(step).iter().any(|op| op.op == CanonicalOp::AttnCombine)
}

/// Tokens of context per sequence: the least of the steps that count if their annotations say so, else the mean that the
/// engine counts.
fn context(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<u64> {
    let of = |label: &str| {
        let label = cx.packs.step_label(label)?;
        label.context_tokens?.checked_div(u64::from(label.decode_requests?))
    };
    let counted = || reading::mean_count(cx.trace, rank, "context_tokens").map(|mean| mean as u64);
    rank.steady_steps(class).filter_map(|s| of(&s.label)).min().or_else(counted)
}
