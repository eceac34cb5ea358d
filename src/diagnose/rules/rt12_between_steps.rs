//! RT-12: the device waits between steps for the host's scheduling.

use model::EvidenceClass::{Correlation, Device, HostApi};

use super::{gate::recurring, reading};
use crate::{
    analysis::{Bucket, Edit, Layer, idle::Gap},
    diagnose::{
        Competing, Evidence, Intervention, Trigger,
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of the step: half of TraceLens's idle flag.
const SHARE: f64 = 0.08;
/// The same for short steps, which leave the host less time; own value.
const SHARE_SHORT: f64 = 0.05;
/// Steps shorter than this are short, ns.
const SHORT: i64 = 10_000_000;

/// The rule.
pub struct BetweenSteps;

static DOC: Doc = Doc {
    id: "RT-12",
    title: Text::new("Host scheduling exposed between steps", "步间主机调度暴露"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi, Correlation],
    sees: Text::new(
        "After the last operation of a step the device waits until the host has scheduled and launched the next step.",
        "一步的最后一个算子结束后，设备一直等到主机完成调度并下发下一步。",
    ),
    matters: Text::new(
        "Scheduling, detokenising and answering requests take their time on every token; with overlap the device would not see it.",
        "调度、反分词与响应请求在每个 token 上都要耗时；若能重叠，设备便感觉不到。",
    ),
    trigger: Text::new(
        "Idle time between steps at least 8 % of the median step, or 5 % if the step is shorter than 10 ms.",
        "步间空闲至少占中位步时的 8%；步时短于 10 ms 时为 5%。",
    ),
    source: Text::new(
        "8 %: half of TraceLens's idle flag; 5 % for short steps: own value.",
        "8%：TraceLens 空闲阈值的一半；短步 5%：自定值。",
    ),
    guards: Text::new(
        "Garbage collection, compilation and allocation between steps have their own rules. Without asynchronous scheduling the next batch depends on the sample, and part of the wait is unavoidable. A server without requests is not slow.",
        "步间的垃圾回收、编译与分配另有规则。没有异步调度时下一批依赖采样结果，部分等待不可避免。没有请求的服务并不是慢。",
    ),
    verify: Text::new(
        "Turn on asynchronous (overlapped) scheduling: the idle time between steps shrinks to the launch of the next step.",
        "启用异步（重叠）调度：步间空闲缩短到下一步的下发时间。",
    ),
};

impl Rule for BetweenSteps {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let counts = |g: &Gap, b: Bucket| {
            let other =
                matches!(b, Bucket::Compile | Bucket::Alloc | Bucket::Prof | Bucket::GraphInternal | Bucket::DeviceDep);
            g.between_steps && !other && !reading::is_host(cx.analysis, b, "gc")
        };
        let mut found = Vec::new();
        for (rank, class) in reading::marked(cx) {
            let threshold = if class.p50 < SHORT { SHARE_SHORT } else { SHARE };
            let Some(cost) = recurring(rank, class, threshold, |s| reading::idle(rank, s, counts)) else { continue };
            let trigger = Trigger { formula: "idle between steps / median step", value: cost.share, threshold };
            let claim = Message::new(
                Text::new(
                    "Between two steps of {class} the device waits {idle} of {step} ({share}) for the host.",
                    "{class} 的两步之间设备等待主机 {idle}，步时 {step}（{share}）。",
                ),
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("idle", Value::Ns(cost.per_step)),
                    ("step", Value::Ns(class.p50)),
                    ("share", Value::Share(cost.share)),
                ],
            );
            let change =
                Intervention { removes: cost.per_step, layer: Layer::Runtime, edits: vec![Edit::OverlapSteps] };
            let rows = reading::gap_rows(rank, rank.steady_steps(class), counts);
            let finding = cx
                .finding(&DOC, rank, class, claim, trigger, change)
                .with(Evidence::new(
                    Text::new("idle per step between steps", "每步的步间空闲"),
                    Value::Ns(cost.per_step),
                    rows,
                ))
                .against(Competing::open(
                    Text::new("the server had no request to work on", "服务当时没有请求可处理"),
                    Text::new("the scheduler's log of waiting requests decides", "调度器的等待请求日志可以判定"),
                ))
                .against(Competing::open(
                    Text::new("the next batch depends on the sampled token", "下一批依赖采样出的 token"),
                    Text::new("asynchronous scheduling on the same engine decides", "在同一引擎上启用异步调度可以判定"),
                ));
            found.extend(finding.gated(cost.most));
        }
        found.into_iter().collect()
    }
}
