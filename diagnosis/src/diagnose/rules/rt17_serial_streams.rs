//! RT-17: several queues wait for one another more than they overlap.

use model::{
    EvidenceClass::{Correlation, Device, HostApi},
    Ns, Span,
};

use super::{
    exposed::{Exposed, Saying},
    reading,
};
use crate::{
    analysis::{Bucket, Call, Class, Edit, Layer, Rank, Shadow, Step},
    diagnose::{
        Competing, Evidence, Finding, Intervention,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Text, Value},
    platform::HostCall,
};

/// Share of the step; own value.
const SHARE: f64 = 0.03;

/// The longest gap between queued operations that needs no explanation, ns: own value, the upper end of current devices.
const QUEUED_GAP: Ns = 1_500;

/// The rule.
pub struct SerialStreams;

static DOC: Doc = Doc {
    id: "RT-17",
    title: Text::new("Streams wait more than they overlap", "多流互等多于重叠"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi, Correlation],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "Work is spread over several queues that wait for one another's events; the device is idle at these waits for longer than the queues ever work at once.",
        "工作分散在多个相互等待事件的队列上；设备在这些等待处的空闲超过各队列同时工作的时间。",
    ),
    matters: Text::new(
        "A second stream pays off only if it hides more than its events cost; otherwise one stream is faster.",
        "第二条流只有在掩盖的时间多于事件开销时才划算；否则单流更快。",
    ),
    trigger: Text::new(
        "Idle time that waits for an event of another queue at least 3 % of the mean step, and more than the time in which two operations ran at once.",
        "等待其他队列事件的空闲至少占平均步时的 3%，且多于两个操作同时执行的时间。",
    ),
    source: Text::new(
        "3 %: own value. sglang #29642: a copy stream helps on CUDA and loses 10 to 20 % on ROCm.",
        "3%：自定值。sglang #29642：拷贝流在 CUDA 上有益，在 ROCm 上损失 10% 到 20%。",
    ),
    guards: Text::new(
        "Overlap of computation, transfers and copies counts as gained. Dependencies inside a graph replay are its own gaps (RT-18).",
        "计算、传输与拷贝之间的重叠都算收益。图重放内部的依赖属于图的间隙（RT-18）。",
    ),
    verify: Text::new(
        "Run the same workload with one stream: the waits for events disappear, and the step is shorter.",
        "同一负载改用单流：事件等待消失，步时缩短。",
    ),
};

impl Rule for SerialStreams {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        cx.main_classes().filter_map(|(rank, class)| serial(cx, rank, class)).collect()
    }
}

/// Calls that order queues by events.
fn events(rank: &Rank) -> impl Iterator<Item = &Call> {
    let calls = rank.timeline.calls.iter();
    calls.filter(|call| matches!(call.kind, HostCall::EventRecord | HostCall::StreamWaitEvent))
}

/// Gap between operations that one queue holds ready, ns: their median, at most what current devices show.
fn usual_gap(rank: &Rank, class: &Class) -> Ns {
    let gaps = rank.steady_steps(class).flat_map(|s| reading::gaps(rank, s));
    let mut queued: Vec<Ns> =
        gaps.filter(|g| g.parts.iter().all(|(b, _)| *b == Bucket::Dispatch)).map(|g| g.span.len()).collect();
    queued.sort_unstable();
    queued.get(queued.len() / 2).map_or(QUEUED_GAP, |gap| QUEUED_GAP.min(*gap))
}

fn serial(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let gained = |kind: Shadow| !matches!(kind, Shadow::ComputeWait);
    let overlap: Ns = class.shadow.iter().filter(|(kind, _)| gained(*kind)).map(|(_, ns)| ns).sum();
    if overlap >= class.ns(Bucket::DeviceDep) {
        return None;
    }
    let overlap = overlap / class.steady.max(1) as Ns;
    let waits = |s: &Step| reading::idle(rank, s, |_, b| b == Bucket::DeviceDep);
    let owners = || {
        let gaps = rank.steady_steps(class).flat_map(|s| reading::gaps(rank, s));
        gaps.filter(|g| g.parts.iter().any(|(b, _)| *b == Bucket::DeviceDep)).filter_map(|g| g.owner)
    };
    let usual = usual_gap(rank, class);
    let (finding, cost) = Exposed { cx, doc: &DOC, rank, class }.recurring(SHARE, waits, |cost| Saying {
        formula: Text::new(
            "idle at events of other queues / mean step, more than the overlap gained",
            "等待其他队列事件的空闲 / 平均步时，且多于获得的重叠",
        ),
        claim: Text::new(
            "The queues of {class} wait for one another for {idle} of {step} ({share}) with the device idle, and work at once for only {overlap}.",
            "{class} 的各队列互等使设备空闲 {idle}，步时 {step}（{share}），而同时工作只有 {overlap}。",
        ),
        more: vec![("overlap", Value::Ns(overlap))],
        change: Intervention {
            // On one stream the overlap is gone too.
            removes: cost.per_step - overlap,
            layer: Layer::Runtime,
            // One queue needs no events, so the host does not call for them either.
            edits: std::iter::once(Edit::Lag(owners().map(|op| (op, usual)).collect()))
                .chain(reading::host_takes(events(rank).map(|c| (c.track, Span::new(c.start, c.end), 0))))
                .collect(),
        },
    })?;
    finding
        .with(Evidence::new(
            Text::new("idle per step at events of other queues", "每步等待其他队列事件的空闲"),
            Value::Ns(cost.per_step),
            reading::gap_rows(rank, rank.steady_steps(class), |_, b| b == Bucket::DeviceDep),
        ))
        .with(Evidence::new(
            Text::new("time per step in which two operations ran at once", "每步两个操作同时执行的时间"),
            Value::Ns(overlap),
            Vec::new(),
        ))
        .against(Competing::open(
            Text::new("the streams overlap with other work at larger batches", "批更大时各流能与其他工作重叠"),
            Text::new(
                "the same run with one stream, at the batch that is served, decides",
                "按实际批大小用单流再跑一次可以判定",
            ),
        ))
        .gated(cost.most)
}
