//! RT-06: graphs are captured, instantiated or rebuilt in the steady part of the run.

use std::collections::BTreeSet;

use model::{Area, EvidenceClass::HostApi, Span, TrackId};

use super::{
    exposed::{Exposed, Saying},
    reading::{self, Recurs},
};
use crate::{
    analysis::{Bucket, Layer, Step, Workload, idle::Gap},
    diagnose::{
        Competing, Evidence, Finding, Intervention,
        estimate::LEAST_GAIN,
        relations::{Advice, Feeds, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// The rule.
pub struct GraphRecapture;

static DOC: Doc = Doc {
    id: "RT-06",
    title: Text::new("Graphs rebuilt in steady state", "稳态中重建图"),
    layer: Layer::Runtime,
    needs: &[HostApi],
    advice: Advice::Device,
    relations: Relations {
        board: &[Feeds::Area(Area::CompileStability)],
        role: Some(Role::StartUp),
        ..Relations::NONE
    },
    sees: Text::new(
        "Steps after warm-up capture a graph, instantiate one, or update a whole instantiated graph, while the device is idle.",
        "预热之后的步里仍在捕获图、实例化图或更新整张已实例化的图，期间设备空闲。",
    ),
    matters: Text::new(
        "A graph pays off by being replayed. A changed buffer address, mask shape or stride makes the engine build it again, and the step waits.",
        "图只有被重放才划算。缓冲区地址、掩码形状或步长一变，引擎就要重新构建，该步只能等待。",
    ),
    trigger: Text::new(
        "Graph construction in the steps that count, of whatever batch: at least two, or one longer than 5 median steps; the idle time in it at least 1 % of the time of the workload.",
        "计入统计的步（不论批大小）中出现图构建：至少两次，或单次超过 5 个中位步时；其间的空闲至少占该工作负载时间的 1%。",
    ),
    source: Text::new(
        "Structural: a steady run builds no graph. Cases: HF transformers #32227, #29114.",
        "结构性判据：稳态不应构建图。案例：HF transformers #32227、#29114。",
    ),
    guards: Text::new(
        "Captures at the start of the run do not count, nor changes of the parameters of single nodes, which belong to the preparation of a replay (RT-08). Construction that hides behind device work costs nothing.",
        "运行开头的捕获不计入；只改单个节点参数属于重放前的准备（RT-08）。被设备工作掩盖的构建没有代价。",
    ),
    verify: Text::new(
        "Keep buffers and shapes static: no capture, instantiation or update of a graph is left in the steps that count.",
        "保持缓冲区与形状不变：计入统计的步中不再有图的捕获、实例化或更新。",
    ),
};

impl Rule for GraphRecapture {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn reads_logs(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        if cx.is_logged() && cx.analysis.ranks.iter().all(|rank| rank.timeline.capturing.is_empty()) {
            return Outcome::Abstain(Message::plain(Text::new(
                "the log names no graph capture; log capture_ms where the engine captures a graph",
                "日志中没有图捕获记录；请在引擎捕获图时记录 capture_ms",
            )));
        }
        cx.workloads().filter_map(|workload| rebuilt(cx, &workload)).collect()
    }
}

fn rebuilt(cx: &Context<'_>, workload: &Workload<'_>) -> Option<Finding> {
    let rank = workload.rank;
    let builds = reading::graph_builds(cx.trace, rank);
    let exposed = |gap: &Gap| {
        let host =
            gap.parts.iter().filter(|(b, _)| matches!(b, Bucket::Compile | Bucket::GraphUpdate)).map(|(_, s)| *s);
        reading::overlap(&host.collect::<Vec<Span>>(), &builds)
    };
    let pauses = reading::pauses(workload, Recurs::Step, exposed);
    if pauses.is_empty() {
        return None;
    }
    let all = || workload.steps().flat_map(|s| reading::calls(rank, s));
    let calls = || all().filter(|c| reading::builds_graph(cx.trace, c));
    // From the begin of a capture to its end the thread does nothing but record.
    let threads: BTreeSet<TrackId> = calls().map(|c| c.track).collect();
    let inside = |step: &Step| {
        let from = builds.partition_point(|b| b.end <= step.window.start);
        let window = step.window;
        builds.iter().skip(from).take_while(move |b| b.start < window.end).map(move |b| b.clip(window))
    };
    let stretches: Vec<Span> = workload.steps().flat_map(inside).collect();
    let edits = reading::host_takes(threads.iter().flat_map(|t| stretches.iter().map(|span| (*t, *span, 0))));
    let (finding, cost) = Exposed::interrupting((cx, &DOC, workload), LEAST_GAIN, &pauses, |cost| Saying {
        formula: Text::new("idle time in graph construction / class time", "图构建造成的空闲 / 该类总时间"),
        claim: Text::new(
            "{stalls} stalls to build or rebuild a graph in the steady steps of {class}: {idle} per step on average ({share}), the longest {longest}.",
            "{class} 在稳态步中因构建或重建图停顿 {stalls} 次：平均每步 {idle}（{share}），最长 {longest}。",
        ),
        more: vec![
            ("stalls", Value::Count(pauses.len() as u64)),
            ("longest", Value::Ns(pauses.iter().copied().max().unwrap_or(0))),
        ],
        change: Intervention { removes: cost.per_step, layer: Layer::Runtime, edits },
    })?;
    finding
        .with(Evidence::new(
            Text::new("idle per step in graph construction", "每步图构建造成的空闲"),
            Value::Ns(cost.per_step),
            reading::sample(calls().map(|c| c.slice)),
        ))
        .against(Competing::open(
            Text::new("new batch sizes were met for the first time", "首次遇到新的批大小"),
            Text::new(
                "a longer capture decides: first captures end, rebuilding does not",
                "更长的采集可以判定：首次捕获会结束，反复重建不会",
            ),
        ))
        .gated(cost.most)
}
