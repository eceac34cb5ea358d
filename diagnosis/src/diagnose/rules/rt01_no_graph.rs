//! RT-01: the steps run without any graph, and the device starves inside the forward pass because of it.

use model::{
    Area,
    EvidenceClass::{Correlation, Device, HostApi},
};

use super::{
    change,
    exposed::{Exposed, Saying},
    launching, reading,
};
use crate::{
    analysis::{Bucket, Class, Confidence, GraphMode, Layer, Rank, idle::Gap},
    diagnose::{
        Competing, Evidence, Finding, Intervention,
        relations::{Advice, Feeds, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Text, Value},
    platform::Stage,
};

/// Idle share of the step: NVIDIA's triage guide. The cpu_idle flag of TraceLens is 15 %, which lets one go by that costs
/// more than most kernels do.
const IDLE_SHARE: f64 = 0.10;
/// The same for short steps, whose host has less time for as many launches; own value, as between steps (RT-12).
const IDLE_SHARE_SHORT: f64 = 0.05;
/// Steps shorter than this are short, ns.
const SHORT: i64 = 10_000_000;
/// Share of the steps without a graph.
const EAGER_SHARE: f64 = 0.95;

/// The rule.
pub struct NoGraph;

static DOC: Doc = Doc {
    id: "RT-01",
    title: Text::new("Steps replay no graph", "各步未使用图执行"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi, Correlation],
    advice: Advice::Device,
    relations: Relations {
        yields_to: &["RT-14", "CM-11", "RT-09", "RT-03", "RT-02"],
        shares_time_with: &["RT-13", "RT-16"],
        board: &[Feeds::Area(Area::Graph)],
        role: Some(Role::LaunchBound),
        ..Relations::NONE
    },
    sees: Text::new(
        "Every operation of the step is launched by its own host call; no graph is replayed, and the device waits for launches inside the forward pass.",
        "步内每个算子都由主机单独下发，没有任何图重放；设备在前向计算内部等待下发。",
    ),
    matters: Text::new(
        "A decode step has hundreds of short operations. A graph launches all of them with one call, so the host no longer sets the pace.",
        "一个解码步包含数百个短算子。图执行用一次调用下发全部算子，主机不再决定节奏。",
    ),
    trigger: Text::new(
        "More than 95 % of the steps of the stage replay no graph, and idle time inside the forward pass spent in launch calls, launch latency or host code is at least 10 % of the mean step, or 5 % if the step is shorter than 10 ms.",
        "该阶段超过 95% 的步没有图重放，且前向内部耗在下发调用、下发延迟或主机代码上的空闲至少占平均步时的 10%；步时短于 10 ms 时为 5%。",
    ),
    source: Text::new(
        "10 %: NVIDIA's triage guide; the idle flag of TraceLens is 15 %. 5 % for short steps and 95 %: own values.",
        "10%：NVIDIA 排查指南；TraceLens 的空闲阈值为 15%。短步 5% 与 95%：自定值。",
    ),
    guards: Text::new(
        "Idle time between steps does not count: a graph does not remove scheduling. Nor do pauses of 1 ms and more, and work with a name of its own (data loading, tokenizing, input preparation, sampling). Where the device is the host's own processors, the wait of a step's first operation for the core on which the host launches the rest does count. A step that keeps the device busy gains nothing. Eager mode may be deliberate, for debugging. A capture in which nothing marks the steps is not judged.",
        "步间空闲不计入：图执行不能消除调度开销。不短于 1 ms 的停顿，以及另有名目的工作（数据加载、分词、输入准备、采样）也不计入。若设备就是主机自身的处理器，则步的首个算子等待主机（仍在下发其余算子）让出核心的时间计入。设备已饱和的步没有收益。eager 模式也可能是有意为之（调试）。没有步标记的采集不作判断。",
    ),
    verify: Text::new(
        "Run the same batch with graphs on: the step holds one graph launch, and the idle time inside the forward pass disappears.",
        "同样批大小开启图执行再跑：每步只有一次图下发，前向内部的空闲消失。",
    ),
};

impl Rule for NoGraph {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let found = reading::marked(cx).filter_map(|(rank, class)| starved(cx, rank, class)).collect();
        change::job_wide(cx, found, |rank, class| vec![change::forward_graph(cx.analysis, rank, class)])
    }
}

fn starved(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let (eager, steps) = eager_steps(rank, class);
    // Training and prefill steps have other reasons to be eager.
    let decodes = matches!(class.stage, Stage::Decode | Stage::Unknown);
    if !decodes || (eager as f64) <= EAGER_SHARE * steps as f64 {
        return None;
    }
    let known = if class.stage == Stage::Decode { Confidence::High } else { Confidence::Low };
    let counts = |gap: &Gap, bucket| counts(cx, rank, gap, bucket);
    let idle = Exposed { cx, doc: &DOC, rank, class };
    let threshold = if class.mean() < SHORT { IDLE_SHARE_SHORT } else { IDLE_SHARE };
    let (finding, cost) = idle.recurring(threshold, |s| reading::idle(rank, s, counts), |cost| Saying {
        formula: Text::new(
            "idle inside the forward pass in launch calls, launch latency and host code / mean step",
            "前向内部耗在下发调用、下发延迟与主机代码上的空闲 / 平均步时",
        ),
        claim: Text::new(
            "No step of {class} replays a graph, and the device waits {idle} of {step} ({share}) inside the forward pass for launches.",
            "{class} 没有任何步重放图；每步 {step} 中设备在前向内部等待下发 {idle}（{share}）。",
        ),
        more: Vec::new(),
        change: Intervention { removes: cost.per_step, layer: Layer::Runtime, edits: vec![change::forward_graph(cx.analysis, rank, class)] },
    })?;
    finding
        .with(Evidence::new(
            Text::new("steps of the stage without a graph launch", "该阶段无图下发的步数"),
            Value::Count(eager as u64),
            Vec::new(),
        ))
        .with(Evidence::new(
            Text::new("idle per step inside the forward pass, owned by launches", "每步前向内部由下发造成的空闲"),
            Value::Ns(cost.per_step),
            reading::gap_rows(rank, rank.steady_steps(class), counts),
        ))
        .against(Competing::open(
            Text::new("eager mode is deliberate", "eager 模式是有意选择"),
            Text::new(
                "the capture does not say; look at the engine's settings (enforce_eager)",
                "采集中没有记录；请检查引擎设置（enforce_eager）",
            ),
        ))
        .against(Competing::refuted(
            Text::new("the host is late between steps only", "主机只在步间迟到"),
            Text::new("only idle time inside the forward pass was counted", "只统计了前向内部的空闲"),
        ))
        .gated(cost.most.min(known))
}

/// Steps of the class's stage without a graph, and all of them.
fn eager_steps(rank: &Rank, class: &Class) -> (usize, usize) {
    let of_stage = rank.classes.iter().filter(|c| c.stage == class.stage);
    of_stage
        .fold((0, 0), |(eager, all), c| (eager + if c.graph == GraphMode::Eager { c.count } else { 0 }, all + c.count))
}

fn counts(cx: &Context<'_>, rank: &Rank, gap: &Gap, bucket: Bucket) -> bool {
    let waits = launching::is_launching(cx.analysis, gap, bucket);
    !gap.between_steps && waits || reading::is_crowded_out(rank, gap, bucket)
}
