//! RT-09: more blocking synchronisations than the one that reads the token.

use model::EvidenceClass::{Device, HostApi};

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    exposed::{Exposed, Saying},
    host_op::{self, HostOp},
    owned, reading,
};
use crate::{
    analysis::{AnchorKind, Bucket, Call, Class, CopyDir, Edit, Layer, OpKind, Rank, Step, idle::Gap},
    diagnose::{
        Competing, Evidence, Finding, Intervention,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Text, Value},
    platform::HostCall,
};

/// Blocking calls that a step needs: the one that reads the token.
const STRUCTURAL: usize = 1;
/// Share of the step; own value.
const SHARE: f64 = 0.02;
/// Where nothing marks the steps, launches per blocking call up to which the host waits too often; own value: of a loop of three
/// kernels and a wait nobody knows whether it is the step.
const LAUNCHES: usize = 2;
/// And blocking calls at least; own value.
const WAITS: usize = 50;

/// The rule.
pub struct ExtraSyncs;

static DOC: Doc = Doc {
    id: "RT-09",
    title: Text::new("Extra synchronisations in the step", "步内多余的同步"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi],
    advice: Advice::Device,
    relations: Relations { yields_to: &["RT-11"], ..Relations::NONE },
    sees: Text::new(
        "The host waits for the device more than once in a step, and the device drains before the host goes on.",
        "主机在一个步内多次等待设备，设备排空后主机才继续。",
    ),
    matters: Text::new(
        "After each wait the queue is empty, and everything that the host does until the next launch is exposed.",
        "每次等待之后队列为空，主机到下一次下发之前所做的一切都会暴露。",
    ),
    trigger: Text::new(
        "More than one blocking call per step, and synchronisation on an idle device, its tail inside the step and the restart after it together at least 2 % of the mean step. Where nothing marks the steps: at least 50 blocking calls, one for at most two launches, at the same cost; a wait for a copy to the host is none of them.",
        "每步阻塞调用多于一次，且空闲设备上的同步、步内同步尾部与其后的重启工作合计至少占平均步时的 2%。没有步标记时：至少 50 次阻塞调用，且平均每至多两次下发就有一次，代价相同；等待拷贝回主机的不计。",
    ),
    source: Text::new(
        "One per step is structural: the token. 2 %: own value, above run-to-run noise. 50 and two: own values.",
        "每步一次是结构性的（读取 token）。2%：自定值，高于重复运行噪声。50 与二：自定值。",
    ),
    guards: Text::new(
        "The count alone is never a cost: fixes that only removed waits were neutral in several public cases, because the host work behind the wait stayed. The input pipeline behind a wait is RT-24. Where nothing marks the steps a wait now and then may be what ends a step.",
        "次数本身不是代价：多个公开案例中仅去掉等待并无收益，因为等待之后的主机工作仍在。等待之后的输入流水线归 RT-24。没有步标记时，偶尔一次的等待可能正是一步的结尾。",
    ),
    verify: Text::new(
        "Remove `.item()`, `nonzero` and prints from the step: one blocking call per step is left, and the device does not drain inside it.",
        "去掉步内的 `.item()`、`nonzero` 与打印：每步只剩一次阻塞调用，步内设备不再排空。",
    ),
};

impl Rule for ExtraSyncs {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        reading::marked(cx).filter_map(|(rank, class)| drained(cx, rank, class)).collect()
    }

    fn check_unmarked(&self, cx: &Context<'_>) -> Vec<Finding> {
        let often = cx.main_classes().filter(|(rank, class)| waits_often(rank, class));
        often.filter_map(|(rank, class)| drained(cx, rank, class)).collect()
    }
}

/// Whether the host waits about as often as it launches, reads of results left out.
fn waits_often(rank: &Rank, class: &Class) -> bool {
    let plain = |call: &&Call| matches!(call.kind, HostCall::SyncStream | HostCall::SyncDevice | HostCall::SyncEvent);
    let of = |step: &Step| {
        let reads = rank.ops_of(step).iter().filter(|op| op.kind == OpKind::Copy(CopyDir::DtoH)).count();
        (blocking(rank, step).filter(plain).count().saturating_sub(reads), launches(rank, step))
    };
    let sum = |(a, b): (usize, usize), (c, d): (usize, usize)| (a + c, b + d);
    let (waits, launches) = rank.steady_steps(class).map(of).fold((0, 0), sum);
    waits >= WAITS && launches <= LAUNCHES * waits
}

/// Calls that launched operations of a step.
fn launches(rank: &Rank, step: &Step) -> usize {
    rank.ops_of(step).iter().filter(|op| op.first_of_call).count()
}

fn drained(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    // What the host computes itself has to wait for the device: that is another finding.
    let on_host = host_op::by_step(cx, rank, class);
    let both = |s: &Step| {
        let needed = of(&on_host, s);
        if blocking(rank, s).count() > STRUCTURAL + needed.len() {
            let is_needed = |g: &Gap| needed.iter().any(|op| Some(op.next) == g.owner);
            reading::idle(rank, s, |g, b| (waits(g, b) || restarts(cx, rank, g, b)) && !is_needed(g))
        } else {
            0
        }
    };
    let steps = class.steady.max(1);
    let calls = rank.steady_steps(class).map(|s| blocking(rank, s).count()).sum::<usize>() as f64 / steps as f64;
    let idle = Exposed { cx, doc: &DOC, rank, class };
    let (finding, cost) = idle.recurring(SHARE, both, |cost| Saying {
        formula: Text::new(
            "(synchronisation on an idle device + restart work) / mean step, with more than one blocking call",
            "（空闲设备上的同步 + 重启工作）/ 平均步时，且阻塞调用多于一次",
        ),
        claim: match rank.anchor.kind {
            AnchorKind::WholeCapture => Text::new(
                "The host waits {count} times for the device, about as often as it launches; waits that drain the device and the restarts after them cost {idle} of {step} ({share}).",
                "主机等待设备 {count} 次，几乎与下发次数相当；排空设备的等待及其后的重启耗时 {idle}，总时长 {step}（{share}）。",
            ),
            _ => Text::new(
            "The host waits {count} times per step of {class}; waits that drain the device and the restarts after them cost {idle} of {step} ({share}).",
            "{class} 每步主机阻塞 {count} 次；排空设备的等待及其后的重启耗时 {idle}，步时 {step}（{share}）。",
        )},
        more: vec![("count", Value::Number((calls * 10.0).round() / 10.0))],
        change: Intervention { removes: cost.per_step, layer: Layer::Runtime, edits: vec![Edit::Unblock(extra(rank, class, &on_host))] },
    })?;
    let restarts = |g: &Gap, b: Bucket| restarts(cx, rank, g, b);
    let restart = rank.steady_steps(class).map(|s| reading::idle(rank, s, restarts)).sum::<i64>() / steps as i64;
    let rows = rank.steady_steps(class).flat_map(|s| blocking(rank, s)).map(|c| c.slice);
    finding
        .with(Evidence::new(
            Text::new("blocking calls per step", "每步阻塞调用次数"),
            Value::Number(calls),
            reading::sample(rows),
        ))
        .with(Evidence::new(
            Text::new(
                "of the cost, restart work after a wait (stays if the host needs the value)",
                "其中等待之后的重启工作（若主机确需该值则无法消除）",
            ),
            Value::Ns(restart),
            reading::gap_rows(rank, rank.steady_steps(class), restarts),
        ))
        .against(Competing::open(
            Text::new("the host work after the wait is the cost, not the wait", "代价在等待之后的主机工作，而非等待本身"),
            Text::new(
                "removing the wait gains the restart work only if the host does not need the value; a run without the wait decides",
                "只有主机不需要该值时，去掉等待才能省下重启工作；去掉等待再跑一次即可判定",
            ),
        ))
        .gated(cost.most)
}

fn blocking<'a>(rank: &'a Rank, step: &Step) -> impl Iterator<Item = &'a Call> {
    blocking_calls(rank, step).filter_map(|i| rank.timeline.calls.get(i as usize))
}

/// From the call that launches a step's first operation to the one that launches the next step's: on the host's time, because a
/// wait that follows a launch at once begins before what it waits for.
fn blocking_calls<'a>(rank: &'a Rank, step: &Step) -> impl Iterator<Item = u32> + 'a {
    let calls = &rank.timeline.calls;
    let launch = |op: usize| rank.timeline.ops.get(op).and_then(|op| rank.timeline.call(op)).map(|call| call.start);
    let from = launch(step.ops.start).unwrap_or(step.window.start);
    let to = launch(step.ops.end).unwrap_or(step.window.end).max(from);
    let begun = calls.iter().enumerate().skip(calls.partition_point(|c| c.start < from));
    begun.take_while(move |(_, c)| c.start < to).filter(|(_, c)| c.blocking && !is_brief(c)).map(|(i, _)| i as u32)
}

/// Time of an asynchronous copy out of pageable memory below which it waited for nothing but its own bytes, ns; own value.
const BRIEF: i64 = 50_000;

/// Whether a call waits for no earlier work: it hands a few bytes over and returns.
fn is_brief(call: &Call) -> bool {
    call.kind == HostCall::CopyAsync && call.end - call.start < BRIEF
}

/// Waiting for a device that has drained. The tail at the step boundary belongs to the readback of the token.
fn waits(gap: &Gap, bucket: Bucket) -> bool {
    bucket == Bucket::SyncIdle || (bucket == Bucket::SyncTail && !gap.between_steps)
}

/// Host work that a wait inside the step exposed. The input pipeline is no work to start again: it has to be done wherever the
/// wait is. Nor is a thread that sleeps or waits for another one at work.
fn restarts(cx: &Context<'_>, rank: &Rank, gap: &Gap, bucket: Bucket) -> bool {
    gap.after_sync
        && !gap.between_steps
        && matches!(bucket, Bucket::Host(_) | Bucket::LaunchApi | Bucket::LaunchLatency)
        && !owned::is_input(cx, rank.owner_of(gap), bucket)
        && !reading::is_host(cx.analysis, bucket, "offcpu")
}

/// Operators of the host in a step.
fn of<'a>(on_host: &'a FxHashMap<u32, Vec<HostOp>>, step: &Step) -> &'a [HostOp] {
    on_host.get(&step.index).map_or(&[], Vec::as_slice)
}

/// The blocking calls of each step but for those that the host's own operators need, and the last, which brings the token.
fn extra(rank: &Rank, class: &Class, on_host: &FxHashMap<u32, Vec<HostOp>>) -> Vec<u32> {
    let needed: FxHashSet<u32> = on_host.values().flatten().map(|op| op.wait).collect();
    let mut out = Vec::new();
    for step in rank.steady_steps(class) {
        out.extend(blocking_calls(rank, step));
        out.pop();
    }
    out.retain(|call| !needed.contains(call));
    out
}
