//! OP-09: the last wave of blocks leaves most cores idle.

use model::{EvidenceClass::Device, Metric, Ns};

use super::{
    launch_shape::cores,
    measured::{self, NEAR_LIMIT},
    reading,
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{Confidence, DeviceOp, Layer, OpKind, Rank, Step, launch_shape::blocks, op_shapes},
    diagnose::{
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text},
    platform::{OpClass, Stage},
};

/// Waves from which a tail no longer matters.
const WAVES: u64 = 4;
/// Least share of the cores' time that the tail leaves idle.
const TAIL: f64 = 0.3;
/// Rows of a product from which arithmetic bounds it and not the memory that holds its weights: the published peaks of the
/// accelerators at hand meet between 120 and 300 operations per byte.
const ARITHMETIC_ROWS: u64 = 256;
/// A kernel below this is bound by starting and ending (OP-08), ns.
const SHORTEST: Ns = 10_000;

/// The rule.
pub struct Tail;

static DOC: Doc = Doc {
    id: "OP-09",
    title: Text::new("Tail of the last wave", "尾波浪费"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations { shares_time_with: &["OP-10", "OP-04"], ..Relations::NONE },
    sees: Text::new(
        "A matrix product or attention kernel is cut into a little more than a whole number of blocks per core, so that its last wave uses few cores.",
        "矩阵乘或注意力内核切出的块数略多于每核整数块，最后一波只用到少数核心。",
    ),
    matters: Text::new(
        "The busiest core decides when the kernel ends. With 1.05 waves it does two blocks while most cores do one.",
        "最忙的核心决定内核何时结束。1.05 波时它要做两块，而多数核心只做一块。",
    ),
    trigger: Text::new(
        "Waves w = blocks / cores above 1 and below 4, tail 1 − w/⌈w⌉ at least 0.3, and the time of the tails at least 2 % of the mean step. Kernels of at least 10 µs count. How many blocks a core holds at once is not recorded; with one at a time the tail is the least that the imbalance costs. Where the kernel was measured, the tail is the share of its cycles in which the mean core had no work. Else products of fewer than 256 rows and the attention of steps that decode do not count.",
        "波数 w = 块数 / 核心数大于 1 且小于 4，尾部 1 − w/⌈w⌉ 至少 0.3，且尾部时间合计至少占平均步时的 2%。只计 10 µs 以上的内核。采集未记录每核同时驻留的块数；按一次一块计算，得到不均衡的最小代价。内核有测量值时，尾部取核心平均空闲周期占比。否则少于 256 行的矩阵乘与解码步的注意力不计。",
    ),
    source: Text::new(
        "Four waves and 0.3: own values, from the arithmetic of waves. 256 rows: published peaks of arithmetic over bandwidth.",
        "四波与 0.3：自定值，由波数算术得出。256 行：公布的算力峰值与带宽之比。",
    ),
    guards: Text::new(
        "Fewer blocks than cores are no tail (OP-12 looks at attention). A kernel that saturates memory with part of the cores loses less than the tail: products of few rows and attention of decode steps are left out; a measurement of the kernel that shows the memory system used to 80 % rules the tail out, else only a bandwidth probe by number of blocks can tell.",
        "块数少于核心数不算尾波（注意力由 OP-12 检查）。用部分核心就能占满显存带宽的内核损失小于尾部：行数少的矩阵乘与解码步的注意力不计；若内核测量显示存储系统利用率达 80% 则排除尾波，否则只有按块数的带宽探测能够区分。",
    ),
    verify: Text::new(
        "Choose another tile or split, or a kernel that streams (stream-K): the same product ends sooner with blocks that fill whole waves.",
        "换用其他分块、切分或流式（stream-K）内核：块数填满整波后，同一运算更早结束。",
    ),
};

static KIND: Kind = Kind {
    doc: &DOC,
    share: 0.02,
    per_layer: None,
    formula: Text::new("sum of duration x tail / mean step", "时长 × 尾部占比之和 / 平均步时"),
    claim: Text::new(
        "{count} kernels per step of {class} end with a wave that leaves most cores idle; of their {busy} the tails are {time}, {share} of the step of {step}.",
        "{class} 每步有 {count} 个内核的最后一波使多数核心空闲；其 {busy} 中尾部占 {time}，为步时 {step} 的 {share}。",
    ),
    what: Text::new("time of kernels with a tail per step", "每步带尾波的内核耗时"),
    rivals: &[(
        Text::new("memory is saturated before the tail begins", "尾波之前显存带宽已经占满"),
        Text::new(
            "the bandwidth that so many blocks reach, from a probe, decides",
            "由探测得到的该块数可达带宽可以判定",
        ),
    )],
    most: Confidence::Medium,
};

impl Rule for Tail {
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
        let parts = |rank: &Rank, step: &Step| {
            let Some(cores) = cores(cx.trace, rank) else { return Vec::new() };
            reading::accounted(rank, step)
                .filter(|(_, op, _)| op.kind == OpKind::Compute && op.dur() >= SHORTEST)
                .filter(|(_, op, _)| matches!(op.op.class(), OpClass::Matrix | OpClass::Attention))
                .filter_map(|part| {
                    let tail = tail(blocks(cx.trace, part.1)?, cores)?;
                    let tail = match measured::of(cx, part.1) {
                        Some(summary) if measured::memory(summary).is_some_and(|used| used >= NEAR_LIMIT) => {
                            return None;
                        }
                        Some(summary) => summary.metric(Metric::CoresBusy).map_or(Some(tail), idle)?,
                        None => Some(tail).filter(|_| costs(cx, rank, step, part.1))?,
                    };
                    let ns = part.1.dur() as f64 * (1.0 - tail);
                    // Where memory is saturated all the same, the tail costs nothing.
                    Some(Part::gone(part).to(ns as Ns).within(ns as Ns, part.1.dur()))
                })
                .collect()
        };
        let found = cx.main_classes().filter_map(|(rank, class)| {
            let finding = share_of_step::of_class(cx, &KIND, rank, class, |step| parts(rank, step))?;
            Some(measured::witness(cx, rank, finding, Some((0, BELOW))))
        });
        found.collect()
    }
}

/// Whether the tail of an operation takes time: where arithmetic bounds it. What reads weights or cache from memory has
/// saturated that before its tail begins.
fn costs(cx: &Context<'_>, rank: &Rank, step: &Step, op: &DeviceOp) -> bool {
    let facts = &step.facts;
    let decodes = matches!(facts.stage, Stage::Decode | Stage::Mixed);
    if op.op.class() != OpClass::Matrix {
        return !decodes;
    }
    let shaped = op_shapes::gemm(&op_shapes::inputs(cx.trace, rank, op)).and_then(|gemm| u64::try_from(gemm.rows).ok());
    let told = || match (facts.batch, facts.prefill_tokens) {
        (None, None) => step.rows,
        (batch, tokens) => Some(u64::from(batch.unwrap_or(0)) + u64::from(tokens.unwrap_or(0))),
    };
    shaped.or_else(told).map_or(!decodes, |rows| rows >= ARITHMETIC_ROWS)
}

/// Why saturated memory is ruled out.
const BELOW: Text = Text::new(
    "measured: none of these kernels uses the memory system to 80 %",
    "已测量：这些内核对存储系统的利用率均不到 80%",
);

/// The tail of a kernel whose cores were measured to be busy so many % of its cycles.
fn idle(busy: f64) -> Option<f64> {
    let tail = 1.0 - busy / 100.0;
    (tail >= TAIL).then_some(tail)
}

/// Share of the cores' time that the last wave leaves idle, where it is worth looking at.
fn tail(blocks: u64, cores: u64) -> Option<f64> {
    if blocks <= cores || blocks >= cores.saturating_mul(WAVES) {
        return None;
    }
    let whole = blocks.div_ceil(cores).saturating_mul(cores);
    let tail = 1.0 - blocks as f64 / whole as f64;
    (tail >= TAIL).then_some(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_needs_more_than_one_wave_and_fewer_than_four() {
        assert!(tail(139, 132).is_some_and(|t| (t - (1.0 - 139.0 / 264.0)).abs() < 1e-12));
        for blocks in [1, 131, 132, 250, 264, 528, 10_000] {
            assert_eq!(tail(blocks, 132), None, "{blocks}");
        }
        assert_eq!(tail(u64::MAX, 132), None);
    }
}
