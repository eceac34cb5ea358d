//! RT-10: device memory is allocated or freed in the steady part of the run.

use model::EvidenceClass::HostApi;

use super::{change, gate::stalling, reading};
use crate::{
    analysis::{Bucket, Layer},
    diagnose::{
        Competing, Evidence, Intervention, Trigger,
        estimate::LEAST_GAIN,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::HostCall,
};

/// The rule.
pub struct Allocator;

static DOC: Doc = Doc {
    id: "RT-10",
    title: Text::new("Allocator stall", "内存分配停顿"),
    layer: Layer::Runtime,
    needs: &[HostApi],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "Steps after warm-up call the driver's allocator while the device is idle.",
        "预热之后的步仍调用驱动的内存分配接口，期间设备空闲。",
    ),
    matters: Text::new(
        "A driver allocation takes hundreds of microseconds and may wait for the whole device; a warm pool needs none.",
        "驱动分配需要数百微秒，并可能等待整个设备；预热好的内存池不需要它。",
    ),
    trigger: Text::new(
        "Device allocations or frees in steps that count, at least two or one longer than 5 median steps, exposed for at least 1 % of the class's time.",
        "计入统计的步中有设备内存分配或释放，至少两次或单次超过 5 个中位步时，暴露时间至少占该类时间的 1%。",
    ),
    source: Text::new(
        "1 %: own value. The Ascend advisor's limit of 10 ms in total is not used: below 1 % of the step it is no gain.",
        "1%：自定值。未采用昇腾 advisor 的合计 10 ms 限值：低于步时 1% 不构成收益。",
    ),
    guards: Text::new(
        "Pinned host memory allocated at the start does not count, nor do calls that the device's work hides.",
        "启动时的锁页主机内存分配不计入，被设备工作掩盖的调用也不计入。",
    ),
    verify: Text::new(
        "Preallocate or let the pool grow in warm-up: no allocation call is left in the steps that count.",
        "预分配或在预热中让内存池长满：计入统计的步中不再有分配调用。",
    ),
};

impl Rule for Allocator {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let mut found = Vec::new();
        for (rank, class) in cx.analysis.ranks.iter().flat_map(|r| r.classes.iter().map(move |c| (r, c))) {
            let exposed = |s| reading::idle(rank, s, |_, b| b == Bucket::Alloc);
            let pauses: Vec<i64> = rank.steady_steps(class).map(exposed).filter(|ns| *ns > 0).collect();
            let Some(cost) = stalling(class, &pauses, LEAST_GAIN) else { continue };
            let calls = rank.steady_steps(class).flat_map(|s| reading::calls(rank, s));
            let allocs: Vec<_> = calls.filter(|c| matches!(c.kind, HostCall::Alloc | HostCall::Free)).collect();
            let trigger = Trigger {
                formula: Text::new("idle time in allocator calls / class time", "分配器调用造成的空闲 / 该类总时间"),
                value: cost.share,
                threshold: LEAST_GAIN,
            };
            let claim = Message::new(
                Text::new(
                    "{steps} steady steps of {class} wait for the device allocator: {cost} per step on average ({share} of {step}).",
                    "{class} 有 {steps} 个稳态步等待设备内存分配：平均每步 {cost}（{step} 的 {share}）。",
                ),
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("steps", Value::Count(pauses.len() as u64)),
                    ("cost", Value::Ns(cost.per_step)),
                    ("share", Value::Share(cost.share)),
                    ("step", Value::Ns(class.mean())),
                ],
            );
            let edits = change::without_calls(rank, class, |c| matches!(c.kind, HostCall::Alloc | HostCall::Free));
            let change = Intervention { removes: cost.per_step, layer: Layer::Runtime, edits };
            let finding = cx
                .finding(&DOC, rank, class, claim, trigger, change)
                .with(Evidence::new(
                    Text::new("allocator calls in the steps that count", "计入统计的步中的分配调用数"),
                    Value::Count(allocs.len() as u64),
                    reading::sample(allocs.iter().map(|c| c.slice)),
                ))
                .against(Competing::open(
                    Text::new("the pool was still growing when the capture began", "采集开始时内存池仍在增长"),
                    Text::new("a capture after a longer warm-up decides", "延长预热后再采集即可判定"),
                ));
            found.extend(finding.gated(cost.most));
        }
        found.into_iter().collect()
    }
}
