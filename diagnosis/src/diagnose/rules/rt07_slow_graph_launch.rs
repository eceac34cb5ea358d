//! RT-07: a graph launch takes much longer than one of so many nodes should.

use model::EvidenceClass::{Correlation, Device, Graph, HostApi};
use model::{Area, Ns, Span};

use super::{
    exposed::{Exposed, Saying},
    reading,
};
use crate::{
    analysis::{Bucket, Call, Class, Confidence, Edit, Layer, Rank, Step, idle::Gap},
    diagnose::{
        Competing, Evidence, Finding, Intervention,
        relations::{Advice, Feeds, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Text, Value},
    platform::HostCall,
};

/// Share of the step; rule catalogue, own value.
const SHARE: f64 = 0.02;
/// So many times the known cost is slow; rule catalogue, own value.
const SLOW: Ns = 2;
/// Known cost in place of a probe's: fixed part and part per node, ns. NVIDIA reports 2.5 µs and about 1 ns per node for
/// straight graphs from CUDA 12.6 on and up to 200 ns per node before; captures of current engines lie below these values.
const KNOWN: (Ns, Ns) = (15_000, 60);
/// The same for a good driver.
const GOOD: (Ns, Ns) = (6_000, 10);

/// The rule.
pub struct SlowGraphLaunch;

static DOC: Doc = Doc {
    id: "RT-07",
    title: Text::new("Slow graph launch", "图下发慢"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi, Correlation, Graph],
    advice: Advice::Device,
    relations: Relations { board: &[Feeds::Area(Area::Graph)], ..Relations::NONE },
    sees: Text::new(
        "The device is idle while the host is inside a graph-launch call, and the call lasts much longer than a graph of so many nodes needs.",
        "主机处于图下发调用内时设备空闲，而该调用的时长远超同样节点数的图所需。",
    ),
    matters: Text::new(
        "A graph is launched once per step, before any of its work can start: where steps wait for the token, all of the call is on the critical path.",
        "图每步下发一次，且先于其全部工作：若每步都等待 token，整个调用都在关键路径上。",
    ),
    trigger: Text::new(
        "Idle time inside graph launches that last more than twice the known cost (15 µs and 60 ns per node) is at least 2 % of the mean step.",
        "时长超过已知开销（15 µs 加每节点 60 ns）两倍的图下发调用内的空闲，至少占平均步时的 2%。",
    ),
    source: Text::new(
        "Twice and 2 %: rule catalogue, own values. Known cost: NVIDIA reports 2.5 µs and about 1 ns per node from CUDA 12.6 on, up to 200 ns per node before; captures of current engines.",
        "两倍与 2%：规则目录，自定值。已知开销：NVIDIA 报告 CUDA 12.6 起为 2.5 µs 加每节点约 1 ns，此前每节点最多 200 ns；并参考当前引擎的采集。",
    ),
    guards: Text::new(
        "A launch that waits for room in a full queue is not slow: only time in which the device has nothing to do counts. A profiler that records each node makes graph launches longer.",
        "因队列已满而等待的下发不算慢：只统计设备无事可做的时间。逐节点记录的剖析器会拉长图下发。",
    ),
    verify: Text::new(
        "Time the launch of the same graph without a profiler, uploaded ahead and with fewer nodes: the idle time inside the call falls with it.",
        "在无剖析器、提前上传、减少节点的条件下测量同一张图的下发时间：调用内的空闲随之下降。",
    ),
};

impl Rule for SlowGraphLaunch {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        cx.main_classes().filter_map(|(rank, class)| slow(cx, rank, class)).collect()
    }
}

/// What a launch of so many nodes costs, ns.
fn cost((fixed, each): (Ns, Ns), call: &Call) -> Ns {
    fixed + each * Ns::from(call.ops)
}

fn is_slow(call: &Call) -> bool {
    call.kind == HostCall::GraphLaunch && call.end - call.start > SLOW * cost(KNOWN, call)
}

fn slow(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let launch = |gap: &Gap| reading::owner(rank, gap).and_then(|op| rank.timeline.call(op)).filter(|c| is_slow(c));
    let inside = |gap: &Gap, bucket: Bucket| bucket == Bucket::GraphLaunch && launch(gap).is_some();
    let frame = Exposed { cx, doc: &DOC, rank, class };
    let calls = || rank.steady_steps(class).flat_map(|s| reading::graph_launches(rank, s)).filter(|c| is_slow(c));
    let mut takes: Vec<Ns> = calls().map(|c| c.end - c.start).collect();
    takes.sort_unstable();
    let nodes = calls().map(|c| c.ops).max()?;
    let takes = *takes.get(takes.len() / 2)?;
    let to = |known| {
        let better = |c: &Call| (c.track, Span::new(c.start, c.end), cost(known, c).min(c.end - c.start));
        reading::host_takes(calls().map(better))
    };
    let (finding, cost) = frame.recurring(SHARE, |s: &Step| reading::idle(rank, s, inside), |cost| Saying {
        formula: Text::new("idle inside slow graph launches / mean step", "慢图下发调用内的空闲 / 平均步时"),
        claim: Text::new(
            "A graph launch of {class} takes {takes} for {nodes} nodes, and the device waits {idle} of {step} ({share}) inside such calls.",
            "{class} 的一次图下发为 {nodes} 个节点用了 {takes}，设备在这类调用内等待 {idle}，步时 {step}（{share}）。",
        ),
        more: vec![("takes", Value::Ns(takes)), ("nodes", Value::Count(u64::from(nodes)))],
        change: Intervention {
            removes: cost.per_step,
            layer: Layer::Runtime,
            edits: to(KNOWN).into_iter().chain(to(GOOD).into_iter().map(|e| Edit::Hoped(Box::new(e)))).collect(),
        },
    })?;
    finding
        .with(Evidence::new(
            Text::new("median length of those launch calls", "这些下发调用的时长中位数"),
            Value::Ns(takes),
            reading::sample(calls().map(|c| c.slice)),
        ))
        .with(Evidence::new(
            Text::new("idle per step inside them", "每步处于其中的空闲"),
            Value::Ns(cost.per_step),
            reading::gap_rows(rank, rank.steady_steps(class), inside),
        ))
        .against(Competing::open(
            Text::new("the profiler, which records each node, makes the launch slow", "逐节点记录的剖析器拖慢了下发"),
            Text::new(
                "a probe that launches a graph of as many empty kernels decides",
                "下发同样节点数空内核图的探针可以判定",
            ),
        ))
        .gated(cost.most.min(Confidence::Medium))
}
