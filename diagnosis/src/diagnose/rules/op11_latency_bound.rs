//! OP-11: long kernels in which no unit of the device is busy.

use model::{
    EvidenceClass::{Counters, Device},
    Ns,
};

use super::{
    measured::{self, LATENCY},
    reading,
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{Confidence, Layer, OpKind},
    diagnose::{
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text},
};

/// A kernel below this is bound by starting and ending (OP-08), ns.
const SHORTEST: Ns = 20_000;

/// The rule.
pub struct LatencyBound;

static DOC: Doc = Doc {
    id: "OP-11",
    title: Text::new("Kernel bound by latency", "内核受延迟限制"),
    layer: Layer::Operator,
    needs: &[Device, Counters],
    advice: Advice::Device,
    relations: Relations { shares_time_with: &["OP-09", "OP-10", "OP-12"], ..Relations::NONE },
    sees: Text::new(
        "Kernels of more than 20 µs use neither the compute units nor the memory system of the device to 60 %.",
        "超过 20 µs 的内核对设备计算单元与存储系统的利用率均不到 60%。",
    ),
    matters: Text::new(
        "Such a kernel waits for its own loads and dependencies. Neither a faster chip nor more bandwidth helps; more work in flight does.",
        "这样的内核在等待自身的访存与依赖。更快的芯片或更大的带宽都无济于事，需要更多并行中的工作。",
    ),
    trigger: Text::new(
        "Kernels measured by Nsight Compute or msprof op, joined to the run by name, launch shape and order, that take more than 20 µs in the run and use the busiest unit to less than 0.6; what is left when they use it to 0.6 saves at least 3 % of the mean step.",
        "由 Nsight Compute 或 msprof op 测量、按名称、启动形状与顺序与运行对应的内核：在运行中超过 20 µs，且最忙单元利用率低于 0.6；提升到 0.6 所省时间至少占平均步时的 3%。",
    ),
    source: Text::new(
        "0.6: latency mark of Nsight Compute's speed-of-light texts. 20 µs: the Ascend advisor's limit for operators that no unit bounds.",
        "0.6：Nsight Compute speed-of-light 文本的延迟标记。20 µs：Ascend advisor 对无瓶颈单元算子的下限。",
    ),
    guards: Text::new(
        "Both compute and memory must have been measured. A kernel hidden behind other work gains nothing; only what it holds alone counts. More occupancy is no goal of its own: in one public case it made a kernel 6 to 12 % slower. The measurement ran the kernel alone, as a rule with cold caches and fixed clocks.",
        "计算与存储两方面都须有测量值。被其他工作掩盖的内核没有收益，只计其独占时间。提高占用率本身不是目的：公开案例中它使一个内核变慢 6% 至 12%。测量时内核单独执行，通常缓存为冷态且频率固定。",
    ),
    verify: Text::new(
        "Change the kernel's parallelism (split, wider loads, prefetch) and measure it again: its duration falls and the use of its busiest unit rises together.",
        "改变内核的并行度（切分、更宽的访存、预取）并重新测量：时长下降的同时最忙单元的利用率上升。",
    ),
};

static KIND: Kind = Kind {
    doc: &DOC,
    share: 0.03,
    per_layer: None,
    formula: Text::new(
        "sum of duration x (1 - use of the busiest unit / 0.6) / mean step",
        "时长 ×（1 − 最忙单元利用率 / 0.6）之和 / 平均步时",
    ),
    claim: Text::new(
        "{count} kernels per step of {class} leave every unit of the device below 60 %; they take {busy}, and would save {time} of {step} ({share}) if they used one of them that far.",
        "{class} 每步有 {count} 个内核使设备各单元利用率均低于 60%；耗时 {busy}，若能将其中之一用到该程度可省 {time}，步时 {step}（{share}）。",
    ),
    what: Text::new("time of kernels that no unit bounds per step", "每步无瓶颈单元的内核耗时"),
    rivals: &[
        (
            Text::new("the kernel has too little work for the device", "该内核的工作量不足以占满设备"),
            Text::new(
                "its blocks against the cores decide (OP-09, OP-12)",
                "其块数与核心数之比可以判定（OP-09、OP-12）",
            ),
        ),
        (
            Text::new("it is slower apart from the run than in it", "单独测量时比运行中更慢"),
            Text::new(
                "a measurement with warm caches and free clocks decides",
                "在缓存热态、频率不锁定下的测量可以判定",
            ),
        ),
    ],
    most: Confidence::Medium,
};

impl Rule for LatencyBound {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        if cx.analysis.measured.joined.matched == 0 {
            return Outcome::Abstain(Message::plain(Text::new(
                "no kernel of the capture was measured; give what a profiler of kernels measured with --kernel-metrics",
                "采集中没有任何内核被测量；请用 --kernel-metrics 提供内核分析器的测量结果",
            )));
        }
        if !measured::any(cx, |summary| measured::busiest(summary).is_some()) {
            return Outcome::Abstain(Message::plain(Text::new(
                "kernels were measured, and nothing that was measured says how busy both compute and memory were",
                "内核有测量值，但其中没有同时说明计算与访存繁忙程度的数据",
            )));
        }
        let found = cx.main_classes().filter_map(|(rank, class)| {
            let finding = share_of_step::of_class(cx, &KIND, rank, class, |step| {
                reading::accounted(rank, step)
                    .filter(|(_, op, _)| op.kind == OpKind::Compute && op.dur() > SHORTEST)
                    .filter_map(|part| {
                        let used = measured::busiest(measured::of(cx, part.1)?).filter(|used| *used < LATENCY)?;
                        Some(Part::gone(part).to((part.1.dur() as f64 * used / LATENCY) as Ns))
                    })
                    .collect()
            })?;
            Some(measured::witness(cx, rank, finding, None))
        });
        found.collect()
    }
}
