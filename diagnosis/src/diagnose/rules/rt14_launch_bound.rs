//! RT-14: the step goes at the pace of the host's launches.

use std::collections::HashMap;

use model::{
    Area,
    EvidenceClass::{Correlation, Device, HostApi},
    StringId, Trace,
};

use super::{
    change,
    gate::recurring,
    launch_chain::{Chain, chain},
    launching,
    measurement::extras,
    reading,
};
use crate::{
    analysis::{Analysis, AnchorKind, Bucket, Class, Confidence, Layer, Rank, Step, idle::Gap, replay::SLOW_LAUNCH},
    diagnose::{
        Competing, Evidence, Finding, Intervention, Trigger,
        relations::{Advice, Feeds, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of the step; the idle flag of TraceLens.
const SHARE: f64 = 0.15;
/// The launch chain is unbroken if its holes are at most this share of it; own value.
const HOLES: f64 = 0.20;
/// Mean time from launch to launch above which it is not launching that takes the time, ns; own value, several times what
/// the slowest eager framework needs per operation.
const PACE: i64 = 1_000_000;

/// Launches of a capture in which nothing marks the steps below which it is too short to be judged; own value.
const FEWEST: usize = 20;

/// Time that the host spends on something else than launching, as a part of the time for launching, from which that is no longer
/// the only explanation; own value.
const OTHER: f64 = 0.20;
/// What cheaper launches leave of their time, in percent: a graph replay leaves up to a third (see the costs of launch chains).
const LEFT: i64 = 35;

/// The rule.
pub struct LaunchBound;

static DOC: Doc = Doc {
    id: "RT-14",
    title: Text::new("Launch-bound", "受下发速度限制"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi, Correlation],
    advice: Advice::Device,
    relations: Relations {
        yields_to: &["CM-11", "RT-09", "RT-02"],
        shares_time_with: &["RT-13", "RT-16"],
        board: &[Feeds::IfLaunched(Area::Graph)],
        role: Some(Role::LaunchBound),
        ..Relations::NONE
    },
    sees: Text::new(
        "Inside a step the device is idle again and again until the next launch arrives, while the launching thread never stops issuing operations.",
        "步内设备一再空闲等待下一次下发，而下发线程一直在不停地发出算子。",
    ),
    matters: Text::new(
        "The host cannot launch as fast as the device executes: faster kernels bring nothing until launches become fewer or cheaper.",
        "主机下发速度赶不上设备执行速度：在下发变少或变便宜之前，更快的算子没有收益。",
    ),
    trigger: Text::new(
        "Idle time inside the step owned by launches outside graphs (launch calls, launch latency, framework and model code before a launch), in pauses shorter than 1 ms, at least 15 % of the mean step, holes in the chain of launches at most 20 % of it, and at most 1 ms from launch to launch on average. A hole is more than 100 µs between two launches in which the thread recorded no call, framework operation or library call, and what a framework operation computes on the host without calling the device's runtime; time with a name and a cause of its own is none.",
        "步内由图外下发造成、单次短于 1 ms 的空闲（下发调用、下发延迟、下发前的框架与模型代码）至少占平均步时的 15%，下发链中的空洞不超过链长的 20%，且平均下发间隔不超过 1 ms。空洞指两次下发之间超过 100 µs 且线程没有任何调用、框架算子或库调用记录的时间，以及框架算子在主机上计算而未调用设备运行时的时间；另有名目与原因的时间不算空洞。",
    ),
    source: Text::new(
        "15 %: idle flag of TraceLens. A launch call takes 5 to 20 µs (HTA), at least about 4.7 µs (TaxBreak). Holes, 1 ms and 20 launches: own values.",
        "15%：TraceLens 的空闲阈值。一次下发调用 5 到 20 µs（HTA），下限约 4.7 µs（TaxBreak）。空洞、1 ms 与 20 次下发：自定值。",
    ),
    guards: Text::new(
        "Idle time between two steps does not count; where nothing marks the steps, the whole capture is judged as one window, if it has at least 20 launches. A launch that is late without starving the device costs nothing. Data loading, tokenizing, scheduling, input preparation, sampling, optimizers, messages between processes and time off the processor are causes of their own. Operations of a graph replay do not count. A profiler makes launches slower: without an untraced run the share is an upper bound.",
        "步间空闲不计入；没有步标记且下发不少于 20 次时，整个采集作为一个窗口判断。下发晚但没有饿着设备的不算代价。数据加载、分词、调度、输入准备、采样、优化器、进程间消息与离开处理器的时间各有其因。图重放内的算子不计入。剖析器会拖慢下发：没有未剖析的运行时，该占比是上界。",
    ),
    verify: Text::new(
        "Toggle graphs (or compile): the idle time that launches own disappears, and the step approaches the device's busy time.",
        "切换图执行（或编译）：由下发造成的空闲消失，步时接近设备忙时。",
    ),
};

impl Rule for LaunchBound {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let found = cx.main_classes().filter_map(|(rank, class)| launch_bound(cx, rank, class)).collect();
        change::job_wide(cx, found, |rank, class| vec![change::forward_graph(cx.analysis, rank, class)])
    }
}

fn launch_bound(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let counts = waits_for_launch(cx.analysis, rank);
    let cost = recurring(rank, class, SHARE, |s| reading::idle(rank, s, &counts))?;
    let mut threads = HashMap::new();
    let chains: Vec<Chain> = rank.steady_steps(class).filter_map(|s| chain(cx, rank, s, &mut threads)).collect();
    let length: i64 = chains.iter().map(|c| c.length).sum();
    let holes: i64 = chains.iter().map(|c| c.holes).sum();
    let all: usize = chains.iter().map(|c| c.launches).sum();
    // Between n launches lie n - 1 intervals, step by step.
    let pace = chains.iter().map(|c| c.paced).sum::<i64>() / all.saturating_sub(chains.len()).max(1) as i64;
    if length <= 0 || holes as f64 > HOLES * length as f64 || pace > PACE {
        return None;
    }
    let launches = all / chains.len().max(1);
    let whole = rank.anchor.kind == AnchorKind::WholeCapture;
    if whole && launches < FEWEST {
        return None;
    }
    let trigger = Trigger {
        formula: Text::new(
            "idle inside the step owned by launches outside graphs / mean step, chain of launches unbroken",
            "步内由图外下发造成的空闲 / 平均步时，且下发链不断",
        ),
        value: cost.share,
        threshold: SHARE,
    };
    let claim = Message::new(
        if whole {
            Text::new(
                "The device waits {idle} of {step} ({share}) for the next launch: the host issues {launches} launches one after the other. No mark divides the capture into steps.",
                "设备在 {step} 中有 {idle}（{share}）在等下一次下发：主机逐个下发 {launches} 次。采集中没有步标记。",
            )
        } else {
            Text::new(
                "In {class} the device waits {idle} of {step} ({share}) for the next launch: the host issues {launches} launches per step one after the other.",
                "{class} 中设备每步 {step} 里有 {idle}（{share}）在等下一次下发：主机每步逐个下发 {launches} 次。",
            )
        },
        [
            ("class", Value::Raw(class.key.clone())),
            ("launches", Value::Count(launches as u64)),
            ("idle", Value::Ns(cost.per_step)),
            ("step", Value::Ns(class.mean())),
            ("share", Value::Share(cost.share)),
        ],
    );
    let inside = |gap: &Gap, bucket| bucket == Bucket::LaunchApi && counts(gap, bucket);
    let calls =
        rank.steady_steps(class).map(|s| reading::idle(rank, s, inside)).sum::<i64>() / class.steady.max(1) as i64;
    let dearest = dearest(cx, rank, class, inside);
    // A window without marks is no forward pass that one graph could replay: there the launches become cheaper.
    let cheaper = |left| change::host_time(rank, rank.steady_steps(class), &counts, left);
    let edits = match whole {
        true => cheaper(LEFT).into_iter().chain(change::hoped(cheaper(0))).collect(),
        false => vec![change::forward_graph(cx.analysis, rank, class)],
    };
    let change = Intervention { removes: cost.per_step, layer: Layer::Runtime, edits };
    let rows = reading::gap_rows(rank, rank.steady_steps(class), &counts);
    // Without framework records the thread's own word for "busy" is missing.
    let framework = chains.iter().any(|c| c.framework);
    let most = if framework { Confidence::High } else { Confidence::Medium };
    let other = rank.steady_steps(class).map(|s| elsewhere(cx, rank, s)).sum::<i64>() / class.steady.max(1) as i64;
    let busy = Text::new("the host is busy with something else than launching", "主机忙于下发以外的事");
    let elsewhere = if framework {
        let of = |ns: i64| Value::Share(ns as f64 / length as f64);
        let why = Message::new(
            Text::new(
                "the host keeps the device waiting for another {other} per step, in pauses of 1 ms and more or for what has a name of its own; framework operations and calls cover {calls} of the chain, Python code between them {python}",
                "主机另使设备每步等待 {other}：停顿不短于 1 ms，或另有名目；框架算子与调用覆盖下发链的 {calls}，其间的 Python 代码占 {python}",
            ),
            [
                ("other", Value::Ns(other)),
                ("calls", of(chains.iter().map(|c| c.called).sum())),
                ("python", of(chains.iter().map(|c| c.python).sum())),
            ],
        );
        // Of the time that the host keeps the device waiting nearly all is launching.
        let refuted = (other as f64) < OTHER * cost.per_step as f64;
        Competing { claim: Message::plain(busy), refuted, why }
    } else {
        let why = Text::new("a capture with framework operations decides", "包含框架算子的采集可以判定");
        Competing::open(busy, why)
    };
    let mut finding = cx
        .finding(&DOC, rank, class, claim, trigger, change)
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
        ));
    if let Some((name, ns)) = dearest.filter(|(_, ns)| *ns > cost.per_step / 2) {
        finding = finding.with(Evidence {
            what: Message::new(
                Text::new(
                    "most of it inside {call}: that call is what to look at",
                    "其中大部分在 {call} 内：应先查看该调用",
                ),
                [("call", Value::Raw(name))],
            ),
            value: Value::Ns(ns),
            rows: Vec::new(),
        });
    }
    finding
        .with(Evidence::new(
            Text::new("mean time from one launch to the next", "相邻两次下发的平均间隔"),
            Value::Ns(pace),
            Vec::new(),
        ))
        .with(Evidence::new(
            Text::new(
                "pauses over 100 µs without a call or framework operation, share of the chain",
                "超过 100 µs 且无调用或框架算子的停顿，占下发链",
            ),
            Value::Share(holes as f64 / length as f64),
            Vec::new(),
        ))
        .against(elsewhere)
        .against(slowed(cx.trace))
        .gated(cost.most.min(most))
}

/// The launch call in which the device waits longest, of those that do more than launch, and how long per step, ns.
fn dearest(
    cx: &Context<'_>,
    rank: &Rank,
    class: &Class,
    inside: impl Fn(&Gap, Bucket) -> bool,
) -> Option<(String, i64)> {
    let mut names: HashMap<StringId, (i64, i64, i64)> = HashMap::new();
    for gap in rank.steady_steps(class).flat_map(|step| reading::gaps(rank, step)) {
        let Some(call) = reading::owner(rank, gap).and_then(|op| rank.timeline.call(op)) else { continue };
        let (waited, took, calls) = names.entry(call.name).or_default();
        *waited += reading::time_in(gap, |bucket| inside(gap, bucket));
        (*took, *calls) = (took.saturating_add(call.end - call.start), *calls + 1);
    }
    let text = |name: StringId| cx.trace.strings.get(name);
    let slow = names.into_iter().filter(|(_, (_, took, calls))| *took >= SLOW_LAUNCH * *calls);
    let (name, (ns, ..)) = slow.max_by_key(|(name, (ns, ..))| (*ns, std::cmp::Reverse(text(*name))))?;
    Some((text(name).to_owned(), ns / class.steady.max(1) as i64))
}

/// That the profiler itself is what makes launches slow.
fn slowed(trace: &Trace) -> Competing {
    let claim = Text::new("the profiler slows the launches down", "剖析器拖慢了下发");
    let extras = extras(trace);
    if extras.is_empty() {
        let why = Text::new("an untraced run of the same workload decides", "同一负载不剖析再跑一次可以判定");
        return Competing::open(claim, why);
    }
    let why = Message::new(
        Text::new(
            "it ran with {extras}, which slow exactly this path; an untraced run of the same workload decides",
            "剖析器开启了 {extras}，恰好拖慢这条路径；同一负载不剖析再跑一次可以判定",
        ),
        [("extras", Value::Raw(extras))],
    );
    Competing { claim: Message::plain(claim), refuted: false, why }
}

/// Idle inside a step, in a pause short enough to be that between two launches, that a launch outside a graph owns. Where nothing
/// marks the steps, waits for the device may come behind every launch: what they expose is theirs.
fn waits_for_launch<'a>(analysis: &'a Analysis, rank: &'a Rank) -> impl Fn(&Gap, Bucket) -> bool + 'a {
    let whole = rank.anchor.kind == AnchorKind::WholeCapture;
    move |gap, bucket| {
        let eager = || reading::owner(rank, gap).is_some_and(|op| !op.in_graph);
        !(gap.between_steps || whole && gap.after_sync) && launching::is_launching(analysis, gap, bucket) && eager()
    }
}

/// Idle inside a step that ends with a launch outside a graph and is spent on something else than launching, ns.
fn elsewhere(cx: &Context<'_>, rank: &Rank, step: &Step) -> i64 {
    let launching = waits_for_launch(cx.analysis, rank);
    let launched = |gap: &Gap| reading::owner(rank, gap).is_some_and(|op| !op.in_graph);
    reading::idle(rank, step, |gap, bucket| {
        bucket.is_host_side() && !gap.between_steps && launched(gap) && !launching(gap, bucket)
    })
}
