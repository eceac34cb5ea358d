//! RT-10: device memory is allocated or freed in the steady part of the run.

use std::collections::BTreeMap;

use model::{EvidenceClass::HostApi, Span};

use super::{
    change,
    first_use::FirstUses,
    gate::interrupting,
    reading::{self, Recurs},
    start_up::is_start_up,
};
use crate::{
    analysis::{Bucket, Call, Layer, Step, Workload, idle::Gap},
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
        "Device allocations or frees in steps that count, in at least two of them (without marked steps, two such pauses) or one longer than 5 median steps, exposed for at least 1 % of the class's time.",
        "计入统计的步中有设备内存分配或释放，至少出现在两步（无步标记时为两次停顿）或单次超过 5 个中位步时，暴露时间至少占该类时间的 1%。",
    ),
    source: Text::new(
        "1 %: own value. The Ascend advisor's limit of 10 ms in total is not used: below 1 % of the step it is no gain.",
        "1%：自定值。未采用昇腾 advisor 的合计 10 ms 限值：低于步时 1% 不构成收益。",
    ),
    guards: Text::new(
        "Pinned host memory allocated at the start does not count, nor do calls that the device's work hides. The first call of its kind that takes 100 ms and more makes the device's context and does not count; of a start-up nothing does. Steps (three and more) that each allocate and free at least 8 times, and about as often, use no cache.",
        "启动时的锁页主机内存分配不计入，被设备工作掩盖的调用也不计入。同类调用中首次且不短于 100 ms 者在创建设备上下文，不计入；启动阶段全部不计入。若三步及以上每步都分配并释放至少 8 次且次数相近，则未使用缓存。",
    ),
    verify: Text::new(
        "Preallocate or let the pool grow in warm-up: no allocation call is left in the steps that count.",
        "预分配或在预热中让内存池长满：计入统计的步中不再有分配调用。",
    ),
};

/// Allocations, and frees, of a step from which they are its habit; own value.
const MANY: usize = 8;

/// What it says of a pool that grows or is emptied.
const STALL: Text = Text::new(
    "The device waits for the allocator: {cost} per step ({share} of {step}), in {calls} calls; most of it in {name}.",
    "设备等待内存分配：每步 {cost}（{step} 的 {share}），共 {calls} 次调用，主要耗时在 {name}。",
);
/// What it says where no pool is used.
const UNCACHED: Text = Text::new(
    "Every step of {class} allocates device memory and frees it again, in {calls} calls, most of the time in {name}. The framework's cache is off, or emptied each time. That costs {cost} per step on average ({share} of {step}).",
    "{class} 的每一步都分配并释放设备内存，共 {calls} 次调用，主要耗时在 {name}：框架的内存缓存已关闭，或每次都被清空。平均每步代价 {cost}（{step} 的 {share}）。",
);

impl Rule for Allocator {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let mut found = Vec::new();
        for workload in cx.workloads() {
            let (rank, class) = (workload.rank, workload.class);
            // No pool is warm while everything happens for the first time.
            if is_start_up(rank, class) {
                continue;
            }
            // The first call makes the context, which no pool spares.
            let first = FirstUses::of(rank, class);
            let is_alloc = |bucket| bucket == Bucket::Alloc;
            let exposed = |gap: &Gap| reading::time_in(gap, is_alloc) - first.idle(gap, is_alloc);
            let pauses = reading::pauses(&workload, Recurs::Call, exposed);
            let Some(cost) = interrupting(&workload, &pauses, LEAST_GAIN) else { continue };
            let calls = workload.steps().flat_map(|s| reading::calls(rank, s));
            let allocs: Vec<&Call> = calls.filter(|c| allocates(c)).collect();
            let trigger = Trigger {
                formula: Text::new("idle time in allocator calls / class time", "分配器调用造成的空闲 / 该类总时间"),
                value: cost.share,
                threshold: LEAST_GAIN,
            };
            let uncached = uncached(&workload);
            let claim = Message::new(
                if uncached { UNCACHED } else { STALL },
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("calls", Value::Count(allocs.len() as u64)),
                    ("name", Value::Raw(most_idle(cx, &workload, &allocs))),
                    ("cost", Value::Ns(cost.per_step)),
                    ("share", Value::Share(cost.share)),
                    ("step", Value::Ns(workload.mean())),
                ],
            );
            let spared = first.slices();
            let goes = |c: &Call| allocates(c) && !spared.contains(&c.slice);
            let edits = workload.classes.iter().flat_map(|class| change::without_calls(rank, class, goes)).collect();
            let change = Intervention { removes: cost.per_step, layer: Layer::Runtime, edits };
            let mut finding = cx
                .event(&DOC, &workload, claim, trigger, change)
                .with(Evidence::new(
                    Text::new("allocator calls in the steps that count", "计入统计的步中的分配调用数"),
                    Value::Count(allocs.len() as u64),
                    reading::sample(allocs.iter().map(|c| c.slice)),
                ))
                .against(growing(uncached));
            let kind = if uncached { "caching off" } else { "pool" };
            finding.remedy.retain(|remedy| remedy.is_about([kind].into_iter()));
            found.extend(finding.gated(cost.most));
        }
        found.into_iter().collect()
    }
}

/// That the run had not settled.
fn growing(uncached: bool) -> Competing {
    let claim = Text::new("the pool was still growing when the capture began", "采集开始时内存池仍在增长");
    if uncached {
        let why = Text::new("every step frees about as much as it allocates", "每一步释放与分配的次数相近");
        return Competing::refuted(claim, why);
    }
    Competing::open(claim, Text::new("a capture after a longer warm-up decides", "延长预热后再采集即可判定"))
}

/// Whether a call makes or frees memory, of the device or pinned memory of the host.
fn allocates(call: &Call) -> bool {
    matches!(call.kind, HostCall::Alloc | HostCall::Free | HostCall::HostAlloc)
}

/// Whether every step allocates and frees alike, as often as no pool would: a framework's cache keeps what it once allocated.
fn uncached(workload: &Workload<'_>) -> bool {
    let count = |step: &Step, kind: HostCall| {
        reading::calls(workload.rank, step).iter().filter(|call| call.kind == kind).count()
    };
    let alike = |step: &Step| {
        let (made, freed) = (count(step, HostCall::Alloc), count(step, HostCall::Free));
        made.min(freed) >= MANY && 2 * made.min(freed) >= made.max(freed)
    };
    workload.steady() >= reading::LEAST_STEPS && workload.steps().all(alike)
}

/// Name of the calls in which the device waits longest.
fn most_idle(cx: &Context<'_>, workload: &Workload<'_>, calls: &[&Call]) -> String {
    let gaps = workload.steps().flat_map(|step| reading::gaps(workload.rank, step));
    let waits = gaps.flat_map(|gap| &gap.parts).filter(|(bucket, _)| *bucket == Bucket::Alloc);
    let waits = reading::merged(waits.map(|(_, span)| *span).collect());
    let lag = workload.rank.timeline.lag;
    let mut names: BTreeMap<&str, i64> = BTreeMap::new();
    for call in calls {
        let own = [Span::new(call.start - lag, call.end - lag)];
        *names.entry(cx.trace.strings.get(call.name)).or_default() += reading::overlap(&own, &waits);
    }
    names.into_iter().max_by_key(|(_, ns)| *ns).map_or_else(String::new, |(name, _)| name.to_owned())
}
