//! RT-15: the interpreter collects garbage while the device waits.

use model::{
    Category,
    EvidenceClass::{Device, HostApi},
};

use super::{
    change,
    gate::{STALL_STEPS, stalling},
    reading,
};
use crate::{
    analysis::{Bucket, Class, Confidence, Edit, Layer, Rank, idle::Gap},
    diagnose::{
        Competing, Evidence, Finding, Intervention, Trigger,
        estimate::LEAST_GAIN,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// The rule.
pub struct GcPauses;

static DOC: Doc = Doc {
    id: "RT-15",
    title: Text::new("Garbage collection pauses", "垃圾回收停顿"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi],
    advice: Advice::Host,
    relations: Relations { yields_to: &["RT-19"], ..Relations::NONE },
    sees: Text::new(
        "The device is idle while the interpreter collects garbage, or for several steps' worth of time in which the host calls nothing at all.",
        "解释器回收垃圾时设备空闲；或主机在相当于数步的时间里没有任何调用。",
    ),
    matters: Text::new(
        "A full collection of a large heap takes tens to hundreds of milliseconds, and in tensor parallel one rank's pause stops all ranks.",
        "大堆的一次完整回收需要数十到数百毫秒；张量并行下一个 rank 的停顿会拖住所有 rank。",
    ),
    trigger: Text::new(
        "Recorded collections with exposed idle time (two, or one longer than 5 median steps), or at least two pauses of at least 5 median steps without any host call; together at least 1 % of the class's time.",
        "有记录的回收且造成暴露空闲（两次，或单次超过 5 个中位步时）；或至少两次不少于 5 个中位步时且没有任何主机调用的停顿；合计至少占该类时间的 1%。",
    ),
    source: Text::new(
        "msprof conjectures a collection from 200 ms of quiet, its advisor reports collections from 1 ms; 5 steps: common gate for stalls.",
        "msprof 以 200 ms 静默推断回收，其 advisor 从 1 ms 起报告；5 步为停顿类规则的通用门槛。",
    ),
    guards: Text::new(
        "Pauses without a recorded collection may also be a wait for requests or another process; the confidence is low then.",
        "没有回收记录的停顿也可能是等待请求或其他进程；此时置信度为低。",
    ),
    verify: Text::new(
        "Freeze or disable the collector after warm-up: the pauses disappear from the slow steps.",
        "预热后冻结或关闭回收器：慢步中的停顿消失。",
    ),
};

impl Rule for GcPauses {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let pairs = cx.analysis.ranks.iter().flat_map(|r| r.classes.iter().map(move |c| (r, c)));
        pairs.filter_map(|(rank, class)| recorded(cx, rank, class).or_else(|| conjectured(cx, rank, class))).collect()
    }
}

fn recorded(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let collecting = |b: Bucket| reading::is_host(cx.analysis, b, "gc");
    let pauses = reading::pauses(rank, class, reading::Pause::Call, |gap| reading::time_in(gap, collecting));
    let rows = rank.steady_steps(class).flat_map(|s| reading::host_slices(cx.trace, rank, s.window, Category::Gc));
    let fact = Evidence::new(
        Text::new("pauses for a collection", "因回收而停顿的次数"),
        Value::Count(pauses.len() as u64),
        reading::sample(rows.map(|(id, _)| id)),
    );
    let rival = Competing::refuted(
        Text::new("the host waited for something else", "主机在等待其他事物"),
        Text::new("the collections are recorded and cover the idle time", "回收有记录且覆盖了该空闲"),
    );
    let slices = rank.steady_steps(class).flat_map(|s| {
        let thread = reading::issuing_thread(rank, s);
        reading::host_slices(cx.trace, rank, s.window, Category::Gc).filter_map(move |(_, span)| Some((thread?, span)))
    });
    let edits = change::shortened(slices, 0);
    finding(cx, rank, class, (&pauses, Confidence::High, edits), fact, rival)
}

/// Long pauses in which the host called nothing.
fn conjectured(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let long = class.p50.saturating_mul(STALL_STEPS);
    // Interpreter frames and annotated ranges enclose the pause; they are no sign of work.
    let quiet = |b: Bucket| ["unknown", "python", "range"].iter().any(|l| reading::is_host(cx.analysis, b, l));
    let stalls = || {
        let gaps = rank.steady_steps(class).flat_map(|s| reading::gaps(rank, s));
        gaps.filter_map(|g| {
            let silent: i64 = g.parts.iter().filter(|(b, _)| quiet(*b)).map(|(_, s)| s.len()).sum();
            (silent >= long).then_some((g, silent))
        })
    };
    let pauses: Vec<i64> = stalls().map(|(_, ns)| ns).collect();
    if class.p50 <= 0 || pauses.len() < 2 {
        return None;
    }
    let fact = Evidence::new(
        Text::new("pauses of at least 5 median steps without any host call", "不少于 5 个中位步时且无主机调用的停顿"),
        Value::Count(pauses.len() as u64),
        reading::sample(stalls().filter_map(|(g, _)| reading::owner(rank, g)).map(|op| op.slice)),
    );
    let rival = Competing::open(
        Text::new("the host waited for requests or was not scheduled", "主机在等待请求或未被调度"),
        Text::new("record the collector (gc callbacks) or context switches", "请记录回收器（gc 回调）或上下文切换"),
    );
    let silent = |g: &Gap, b: Bucket| {
        quiet(b) && g.parts.iter().filter(|(b, _)| quiet(*b)).map(|(_, s)| s.len()).sum::<i64>() >= long
    };
    let edits = change::host_time(rank, rank.steady_steps(class), silent, 0);
    finding(cx, rank, class, (&pauses, Confidence::Low, edits), fact, rival)
}

fn finding(
    cx: &Context<'_>,
    rank: &Rank,
    class: &Class,
    (pauses, most, edits): (&[i64], Confidence, Vec<Edit>),
    fact: Evidence,
    rival: Competing,
) -> Option<Finding> {
    let cost = stalling(class, pauses, LEAST_GAIN)?;
    let trigger = Trigger {
        formula: Text::new(
            "idle time in collections or pauses without a call / class time",
            "垃圾回收或无调用停顿造成的空闲 / 该类总时间",
        ),
        value: cost.share,
        threshold: LEAST_GAIN,
    };
    let text = if most == Confidence::Low {
        Text::new(
            "{pauses} pauses without any host call stop {class}: {cost} per step on average ({share}), the longest {longest}; garbage collection is the usual cause.",
            "{class} 有 {pauses} 次无任何主机调用的停顿：平均每步 {cost}（{share}），最长 {longest}；常见原因是垃圾回收。",
        )
    } else {
        Text::new(
            "Garbage collection stops {class} {pauses} times: {cost} per step on average ({share}), the longest {longest}.",
            "垃圾回收使 {class} 停顿 {pauses} 次：平均每步 {cost}（{share}），最长 {longest}。",
        )
    };
    let claim = Message::new(
        text,
        [
            ("class", Value::Raw(class.key.clone())),
            ("pauses", Value::Count(pauses.len() as u64)),
            ("cost", Value::Ns(cost.per_step)),
            ("share", Value::Share(cost.share)),
            ("longest", Value::Ns(pauses.iter().copied().max().unwrap_or(0))),
        ],
    );
    let change = Intervention { removes: cost.per_step, layer: Layer::Runtime, edits };
    cx.finding(&DOC, rank, class, claim, trigger, change).with(fact).against(rival).gated(cost.most.min(most))
}
