//! RT-08: the host rebuilds metadata before it replays the graph, and the device waits.

use model::{
    Area,
    EvidenceClass::{Correlation, Device, HostApi},
};

use super::{
    change,
    exposed::{Exposed, Saying},
    reading,
};
use crate::{
    analysis::{Bucket, Class, CopyDir, DeviceOp, Edit, Layer, OpKind, Rank, Step, idle::Gap},
    diagnose::{
        Competing, Evidence, Intervention,
        relations::{Advice, Feeds, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Text, Value},
};

/// Share of the step; own value.
const SHARE: f64 = 0.05;
/// Label of the ranges in which engines build the inputs of a step.
const PREPARE: &str = "prepare_inputs";

/// The rule.
pub struct UpdateBeforeReplay;

static DOC: Doc = Doc {
    id: "RT-08",
    title: Text::new("Host update before the forward pass", "前向之前的主机侧更新"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi, Correlation],
    advice: Advice::Device,
    relations: Relations { yields_to: &["RT-06"], board: &[Feeds::Area(Area::Graph)], ..Relations::NONE },
    sees: Text::new(
        "Between the token boundary and the graph launch, or the first kernel where there is no graph, the host builds metadata, copies small tensors or rewrites graph parameters while the device is idle.",
        "在 token 边界与图下发（无图时为首个算子）之间，主机构建元数据、拷贝小张量或改写图参数，期间设备空闲。",
    ),
    matters: Text::new(
        "A graph saves the launches inside the forward pass, not what is done before it: with short steps the preparation is what remains.",
        "图执行省下前向内部的下发，省不掉它之前的准备；步越短，准备占比越大。",
    ),
    trigger: Text::new(
        "Idle time labelled as input preparation or graph update, or inside the range that marks a step before its first operation with no other record, at least 5 % of the mean step. In a class that replays graphs host-to-device copies from the start of the window to the first graph operation count too, with the time at them that nothing else explains.",
        "标注为输入准备或图更新的空闲，或位于步标记范围内、首个算子之前且无其他记录的空闲，至少占平均步时的 5%。对重放图的步类，窗口起点到第一个图内算子之间的主机到设备拷贝及其处无其他解释的空闲也计入。",
    ),
    source: Text::new("5 %: own value.", "5%：自定值。"),
    guards: Text::new(
        "Preparation that runs while the device still works on the previous step costs nothing and is not counted. Scheduling between steps belongs to RT-12, what the model's own code does before its first launch to RT-25.",
        "与上一步设备计算重叠的准备没有代价，不计入。步间调度归 RT-12，模型自身代码在首次下发前的工作归 RT-25。",
    ),
    verify: Text::new(
        "Build the metadata on the device or one step ahead: the time from the token to the first launch shrinks.",
        "在设备上或提前一步构建元数据：从 token 到首次下发的时间缩短。",
    ),
};

impl Rule for UpdateBeforeReplay {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let one = |(rank, class): (&Rank, &Class)| {
            let waits = Exposed { cx, doc: &DOC, rank, class };
            let (finding, cost) = waits.recurring(SHARE, |s| exposed(cx, rank, s), |cost| Saying {
                formula: Text::new(
                    "exposed preparation before the forward pass / mean step",
                    "前向之前暴露的准备时间 / 平均步时",
                ),
                claim: Text::new(
                    "Before each forward pass of {class} the device waits {idle} of {step} ({share}) for the host to prepare it.",
                    "{class} 每次前向之前，设备等待主机准备 {idle}，步时 {step}（{share}）。",
                ),
                more: Vec::new(),
                change: Intervention { removes: cost.per_step, layer: Layer::Runtime, edits: prepared(cx, rank, class) },
            })?;
            let rows = |s| reading::gap_rows(rank, std::iter::once(s), prepares(cx, rank, first_node(rank, s)));
            let rows = rank.steady_steps(class).take(reading::MOST_ROWS).flat_map(rows);
            finding
                .with(Evidence::new(
                    Text::new("exposed per step before the forward pass", "每步前向之前的暴露时间"),
                    Value::Ns(cost.per_step),
                    reading::sample(rows),
                ))
                .against(Competing::open(
                    Text::new("the next batch depends on the token just sampled", "下一批依赖刚采样的 token"),
                    Text::new(
                        "asynchronous scheduling on the same engine would decide",
                        "在同一引擎上启用异步调度可以判定",
                    ),
                ))
                .gated(cost.most)
        };
        reading::marked(cx).filter_map(one).collect()
    }
}

fn exposed(cx: &Context<'_>, rank: &Rank, step: &Step) -> i64 {
    let first = first_node(rank, step);
    let waits = reading::idle(rank, step, prepares(cx, rank, first));
    let copied = |kind: OpKind| kind == OpKind::Copy(CopyDir::HtoD);
    let ops = reading::accounted(rank, step).filter(|(_, op, _)| op.end <= first && copied(op.kind));
    waits + ops.map(|(_, _, x)| x.busy).sum::<i64>()
}

/// When the first graph node of a step starts, ns.
fn first_node(rank: &Rank, step: &Step) -> i64 {
    rank.ops_of(step).iter().find(|op| op.in_graph).map_or(step.window.start, |op| op.start)
}

/// Idle time spent on inputs and metadata: by its label or owner, or at a copy of inputs before the first graph node. Of time
/// before such a copy of which nothing is recorded nobody says anything else; what is recorded speaks for itself. Inside the range
/// that marks a step the host prepares that step.
fn prepares<'a>(cx: &'a Context<'_>, rank: &'a Rank, first: i64) -> impl Fn(&Gap, Bucket) -> bool + Copy + 'a {
    move |gap, bucket| {
        let labelled = |bucket| reading::is_host(cx.analysis, bucket, PREPARE);
        let owned = || rank.owner_of(gap).and_then(|owner| owner.activity).is_some_and(|a| labelled(Bucket::Host(a)));
        let silent = matches!(bucket, Bucket::LaunchApi | Bucket::LaunchLatency)
            || reading::is_host(cx.analysis, bucket, "unknown");
        let copies = || {
            let copy = |op: &DeviceOp| op.kind == OpKind::Copy(CopyDir::HtoD);
            gap.span.end <= first && reading::owner(rank, gap).is_some_and(copy)
        };
        bucket == Bucket::GraphUpdate
            || labelled(bucket)
            || (matches!(bucket, Bucket::Host(_)) && owned())
            || (silent && copies())
            || reading::is_in_next_mark(cx, rank, gap, bucket)
    }
}

/// Half of the exposed preparation is done ahead; hopefully all of it.
fn prepared(cx: &Context<'_>, rank: &Rank, class: &Class) -> Vec<Edit> {
    let to = |percent| -> Vec<Edit> {
        let steps = rank.steady_steps(class);
        steps
            .flat_map(|s| change::host_time(rank, std::iter::once(s), prepares(cx, rank, first_node(rank, s)), percent))
            .collect()
    };
    to(50).into_iter().chain(change::hoped(to(0))).collect()
}
