//! RT-14: the forward pass goes at the pace of the host's launches.

use model::{
    Category,
    EvidenceClass::{Correlation, Device, HostApi},
    Span, Trace,
};

use super::{change, gate::recurring, reading};
use crate::{
    analysis::{Analysis, Bucket, Class, Confidence, Layer, Rank, Step, idle::Gap},
    diagnose::{
        Competing, Evidence, Finding, Intervention, Trigger,
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of the step; the idle flag of TraceLens.
const SHARE: f64 = 0.15;
/// The launch chain is unbroken if its holes are at most this share of it; own value.
const HOLES: f64 = 0.20;
/// Time between two launches without any record that is not the framework's way from one operation to the next, ns; own
/// value: an eager framework takes 5 to 50 µs per operation, twice that under a profiler.
const HOLE: i64 = 100_000;
/// Mean time from launch to launch above which it is not launching that takes the time, ns; own value, several times what
/// the slowest eager framework needs per operation.
const PACE: i64 = 1_000_000;

/// The rule.
pub struct LaunchBound;

static DOC: Doc = Doc {
    id: "RT-14",
    title: Text::new("Launch-bound forward pass", "前向受下发速度限制"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi, Correlation],
    sees: Text::new(
        "Inside the forward pass the device is idle again and again until the next launch arrives, while the launching thread never stops issuing operations.",
        "前向内部设备一再空闲等待下一次下发，而下发线程一直在不停地发出算子。",
    ),
    matters: Text::new(
        "The host cannot launch as fast as the device executes: faster kernels bring nothing until launches become fewer or cheaper.",
        "主机下发速度赶不上设备执行速度：在下发变少或变便宜之前，更快的算子没有收益。",
    ),
    trigger: Text::new(
        "Idle time inside the forward pass owned by launches outside graphs (launch calls, launch latency, framework code before a launch) at least 15 % of the median step, holes in the chain of launches at most 20 % of it, and at most 1 ms from launch to launch on average. A hole is more than 100 µs between two launches in which the thread recorded no call, framework operation or library call.",
        "前向内部由图外下发造成的空闲（下发调用、下发延迟、下发前的框架代码）至少占中位步时的 15%，下发链中的空洞不超过链长的 20%，且平均下发间隔不超过 1 ms。空洞指两次下发之间超过 100 µs 且线程没有任何调用、框架算子或库调用记录的时间。",
    ),
    source: Text::new(
        "15 %: idle flag of TraceLens. A launch call takes 5 to 20 µs (HTA), at least about 4.7 µs (TaxBreak). Holes and 1 ms: own values.",
        "15%：TraceLens 的空闲阈值。一次下发调用 5 到 20 µs（HTA），下限约 4.7 µs（TaxBreak）。空洞与 1 ms：自定值。",
    ),
    guards: Text::new(
        "A launch that is late without starving the device costs nothing. Operations of a graph replay do not count. A profiler makes launches slower: without an untraced run the share is an upper bound.",
        "下发晚但没有饿着设备的不算代价。图重放内的算子不计入。剖析器会拖慢下发：没有未剖析的运行时，该占比是上界。",
    ),
    verify: Text::new(
        "Toggle graphs (or compile): the idle time inside the forward pass disappears, and the step approaches the device's busy time.",
        "切换图执行（或编译）：前向内部空闲消失，步时接近设备忙时。",
    ),
};

impl Rule for LaunchBound {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        cx.main_classes().filter_map(|(rank, class)| launch_bound(cx, rank, class)).collect()
    }
}

fn launch_bound(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let counts = waits_for_launch(cx.analysis, rank);
    let cost = recurring(rank, class, SHARE, |s| reading::idle(rank, s, &counts))?;
    let chains: Vec<Chain> = rank.steady_steps(class).filter_map(|s| chain(cx.trace, rank, s)).collect();
    let length: i64 = chains.iter().map(|c| c.length).sum();
    let holes: i64 = chains.iter().map(|c| c.holes).sum();
    let all: usize = chains.iter().map(|c| c.launches).sum();
    let pace = length / all.max(1) as i64;
    if length <= 0 || holes as f64 > HOLES * length as f64 || pace > PACE {
        return None;
    }
    let launches = all / chains.len().max(1);
    let trigger = Trigger {
        formula: "idle inside the forward pass owned by launches outside graphs / median step, chain of launches unbroken",
        value: cost.share,
        threshold: SHARE,
    };
    let claim = Message::new(
        Text::new(
            "{class} is launch-bound: the host goes from launch to launch, {launches} per step, and the device waits {idle} of {step} ({share}) for them.",
            "{class} 受下发限制：主机每步接连下发 {launches} 次，设备在步时 {step} 中仍有 {idle}（{share}）在等待下发。",
        ),
        [
            ("class", Value::Raw(class.key.clone())),
            ("launches", Value::Count(launches as u64)),
            ("idle", Value::Ns(cost.per_step)),
            ("step", Value::Ns(class.p50)),
            ("share", Value::Share(cost.share)),
        ],
    );
    let inside = |gap: &Gap, bucket| bucket == Bucket::LaunchApi && counts(gap, bucket);
    let calls =
        rank.steady_steps(class).map(|s| reading::idle(rank, s, inside)).sum::<i64>() / class.steady.max(1) as i64;
    let change =
        Intervention { removes: cost.per_step, layer: Layer::Runtime, edits: vec![change::forward_graph(rank, class)] };
    let rows = reading::gap_rows(rank, rank.steady_steps(class), &counts);
    // Without framework records the thread's own word for "busy" is missing.
    let framework = chains.iter().any(|c| c.framework);
    let most = if framework { Confidence::High } else { Confidence::Medium };
    let busy = Text::new("the host is busy with something else than launching", "主机忙于下发以外的事");
    let elsewhere = if framework {
        let why = Text::new(
            "between launches the thread records framework operations and library calls, but for the holes above",
            "除上述空洞外，线程在两次下发之间记录的都是框架算子与库调用",
        );
        Competing::refuted(busy, why)
    } else {
        let why = Text::new("a capture with framework operations decides", "包含框架算子的采集可以判定");
        Competing::open(busy, why)
    };
    cx.finding(&DOC, rank, class, claim, trigger, change)
        .with(Evidence::new(
            Text::new("idle per step that a launch owns", "每步由下发造成的空闲"),
            Value::Ns(cost.per_step),
            rows,
        ))
        .with(Evidence::new(
            Text::new(
                "of it inside launch calls; the rest is host code before a launch, and launch latency",
                "其中处于下发调用内的时间；其余为下发前的主机代码与下发延迟",
            ),
            Value::Ns(calls),
            Vec::new(),
        ))
        .with(Evidence::new(
            Text::new("mean time from one launch to the next", "相邻两次下发的平均间隔"),
            Value::Ns(pace),
            Vec::new(),
        ))
        .with(Evidence::new(
            Text::new("holes in the chain of launches, share of it", "下发链中空洞的占比"),
            Value::Share(holes as f64 / length as f64),
            Vec::new(),
        ))
        .against(elsewhere)
        .against(Competing::open(
            Text::new("the profiler slows the launches down", "剖析器拖慢了下发"),
            Text::new("an untraced run of the same workload decides", "同一负载不剖析再跑一次可以判定"),
        ))
        .gated(cost.most.min(most))
}

/// Idle inside the forward pass that a launch outside a graph owns.
fn waits_for_launch<'a>(analysis: &'a Analysis, rank: &'a Rank) -> impl Fn(&Gap, Bucket) -> bool + 'a {
    |gap, bucket| {
        let launch = match bucket {
            Bucket::LaunchApi | Bucket::LaunchLatency => true,
            Bucket::Host(_) => !["gc", "blocked"].iter().any(|l| reading::is_host(analysis, bucket, l)),
            _ => false,
        };
        launch && !gap.between_steps && reading::owner(rank, gap).is_some_and(|op| !op.in_graph)
    }
}

/// The launches of one step as the issuing thread made them.
struct Chain {
    /// Launch calls.
    launches: usize,
    /// From the first launch to the end of the last, ns.
    length: i64,
    /// Time in holes, ns.
    holes: i64,
    /// Whether the thread has framework records.
    framework: bool,
}

fn chain(trace: &Trace, rank: &Rank, step: &Step) -> Option<Chain> {
    let thread = reading::issuing_thread(rank, step)?;
    let mine = || rank.ops_of(step).iter().filter_map(|op| rank.timeline.call(op)).filter(|c| c.track == thread);
    let span = Span::new(mine().map(|c| c.start).min()?, mine().map(|c| c.end).max()?);
    let launches = rank.ops_of(step).iter().filter(|op| op.first_of_call).count();
    let lane = trace.lanes.get(thread.0 as usize)?;
    let rows = lane.start.partition_point(|s| *s < span.start)..lane.start.partition_point(|s| *s < span.end);
    let (mut end, mut holes, mut framework) = (span.start, 0i64, false);
    for i in rows {
        match lane.category[i] {
            Category::FrameworkOp => framework = true,
            Category::HostApi | Category::LibraryApi => {}
            _ => continue,
        }
        let quiet = lane.start[i] - end;
        if quiet > HOLE {
            holes += quiet;
        }
        end = end.max(lane.end(i));
    }
    Some(Chain { launches, length: span.len(), holes, framework })
}
