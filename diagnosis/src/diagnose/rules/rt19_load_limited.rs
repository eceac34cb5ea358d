//! RT-19: the device idles because there is no request to work on.

use model::{
    EvidenceClass::{Device, Logs},
    Ns,
};

use super::{
    exposed::{Exposed, Saying},
    gate::{Cost, LEAST_STEPS},
    reading,
};
use crate::{
    analysis::{Class, Confidence, Layer, Rank, Scheduler, Step},
    diagnose::{
        Competing, Estimate, Evidence, Finding, Intervention, Severity,
        relations::{Advice, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of the time of the steps; own value, that of RT-12 for short steps.
const SHARE: f64 = 0.05;

/// The rule.
pub struct LoadLimited;

static DOC: Doc = Doc {
    id: "RT-19",
    title: Text::new("Load-limited, not slow", "负载不足，并非慢"),
    layer: Layer::Runtime,
    needs: &[Device, Logs],
    advice: Advice::Host,
    relations: Relations { role: Some(Role::LoadLimited), ..Relations::NONE },
    sees: Text::new(
        "Between steps the device is idle while the scheduler has no request, neither running nor waiting.",
        "步间设备空闲，而调度器既没有运行中的请求也没有等待的请求。",
    ),
    matters: Text::new(
        "A server without requests is not slow. Its step times measure the arrival of requests, and no change of the stack makes them shorter.",
        "没有请求的服务并不慢。此时步时反映的是请求到达，改动软件栈不会使其变短。",
    ),
    trigger: Text::new(
        "Idle time while the counters of running and of waiting requests are both zero at least 5 % of the time of the steps that count.",
        "运行中与等待中的请求计数均为零时的空闲，至少占计入统计的步总时间的 5%。",
    ),
    source: Text::new("An empty queue is structural. 5 %: own value.", "队列为空是结构性判据。5%：自定值。"),
    guards: Text::new(
        "Without both counters the rule abstains: idle time between steps alone does not tell a late host from a missing request (RT-12).",
        "缺少任一计数器时不作判断：仅凭步间空闲无法区分主机迟到与没有请求（RT-12）。",
    ),
    verify: Text::new(
        "Raise the request rate: the idle time between steps disappears, and throughput grows with the load.",
        "提高请求到达率：步间空闲消失，吞吐随负载增长。",
    ),
};

impl Rule for LoadLimited {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        if !Scheduler::of(cx.trace).knows_demand() {
            return Outcome::Abstain(Message::plain(Text::new(
                "the capture does not say when requests were running and waiting; record the engine's counters num_requests_running and num_requests_waiting",
                "采集没有说明何时有请求在运行或等待；请记录引擎计数器 num_requests_running 与 num_requests_waiting",
            )));
        }
        reading::marked(cx).filter_map(|(rank, class)| starved(cx, rank, class)).collect()
    }
}

fn starved(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let scheduler = Scheduler::of_rank(cx.trace, rank.process);
    let gaps = || rank.steady_steps(class).flat_map(|s| reading::gaps(rank, s));
    let without = |s: &Step| reading::gaps(rank, s).iter().map(|g| scheduler.empty_in(g.span)).sum::<Ns>();
    let idle: Ns = rank.steady_steps(class).map(without).sum();
    let share = idle as f64 / class.total.max(1) as f64;
    if share < SHARE {
        return None;
    }
    let most = if class.steady < LEAST_STEPS { Confidence::Low } else { Confidence::High };
    let cost = Cost { per_step: idle / class.steady.max(1) as Ns, share, most };
    let saying = Saying {
        formula: Text::new(
            "idle without a request in the engine / time of the steps",
            "引擎内无请求时的空闲 / 各步总时间",
        ),
        claim: Text::new(
            "In {share} of the time of {class} the device is idle because the engine has no request: {idle} per step on average.",
            "{class} 有 {share} 的时间设备因引擎内没有请求而空闲：平均每步 {idle}。",
        ),
        more: Vec::new(),
        change: Intervention::none(Layer::Runtime),
    };
    let mut finding = Exposed { cx, doc: &DOC, rank, class }.finding(SHARE, &cost, saying);
    finding.estimate = Estimate::none(finding.estimate.from);
    finding.severity = Severity::Info;
    finding.confidence = finding.confidence.min(most);
    let rows = gaps().filter(|g| scheduler.was_empty(g.span)).filter_map(|g| reading::owner(rank, g));
    Some(
        finding
            .with(Evidence::new(
                Text::new("idle per step without a request", "每步无请求的空闲"),
                Value::Ns(cost.per_step),
                reading::sample(rows.map(|op| op.slice)),
            ))
            .against(Competing::refuted(
                Text::new("the host schedules too slowly", "主机调度太慢"),
                Text::new(
                    "only idle time with no running and no waiting request was counted",
                    "只统计了既无运行也无等待请求时的空闲",
                ),
            )),
    )
}
