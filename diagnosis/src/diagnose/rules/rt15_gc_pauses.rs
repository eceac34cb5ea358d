//! RT-15: the interpreter collects garbage while the device waits.

use model::{
    Category,
    EvidenceClass::{Device, HostApi},
};

use super::{
    change,
    gate::interrupting,
    pauses,
    reading::{self, Recurs},
};
use crate::{
    analysis::{Bucket, Confidence, Edit, Layer, Workload},
    diagnose::{
        Competing, Evidence, Finding, Intervention, Trigger,
        estimate::LEAST_GAIN,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Pauses from which they are no accident; own value.
const RECUR: usize = 5;
/// A pause from which it is no accident, ns: two slices of Linux's scheduler, which are 3 ms by default (`base_slice_ns`); a thread
/// that one other held off the core runs again within one.
const HEAVY: i64 = 6_000_000;

/// The rule.
pub struct GcPauses;

static DOC: Doc = Doc {
    id: "RT-15",
    title: Text::new("Garbage collection pauses", "垃圾回收停顿"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi],
    advice: Advice::Host,
    relations: Relations { yields_to: &["RT-19"], precedes: &["CM-01"], ..Relations::NONE },
    sees: Text::new(
        "The device is idle while the interpreter collects garbage, or for several steps' worth of time in which the host calls nothing at all.",
        "解释器回收垃圾时设备空闲；或主机在相当于数步的时间里没有任何调用。",
    ),
    matters: Text::new(
        "A full collection of a large heap takes tens to hundreds of milliseconds, and in tensor parallel one rank's pause stops all ranks.",
        "大堆的一次完整回收需要数十到数百毫秒；张量并行下一个 rank 的停顿会拖住所有 rank。",
    ),
    trigger: Text::new(
        "Recorded collections with exposed idle time (two, or one longer than 5 median steps), or at least two pauses without any host call, in at most one step of three, that are longer than what the median step has by 1 ms and by a tenth of it; together at least 1 % of the time of the workload. Fewer than five that are shorter than 5 median steps and than 6 ms promise nothing from below. Where nothing says that there was a request, only pauses of 5 median steps count.",
        "有记录的回收且造成暴露空闲（两次，或单次超过 5 个中位步时）；或至少两次没有任何主机调用的停顿：至多出现在三分之一的步中，且比中位步的同类空闲长 1 ms 以及步时的十分之一；合计至少占该工作负载时间的 1%。不足五次且短于 5 个中位步时和 6 ms 的停顿不保证下限收益。若无法说明当时有请求，则只计不少于 5 个中位步时的停顿。",
    ),
    source: Text::new(
        "msprof conjectures a collection from 200 ms of quiet, its advisor reports collections from 1 ms; a tenth and one in three: own values; 5 steps: common gate for stalls. 6 ms: two slices of Linux's scheduler.",
        "msprof 以 200 ms 静默推断回收，其 advisor 从 1 ms 起报告；十分之一与三分之一为自定值；5 步为停顿类规则的通用门槛；6 ms 为 Linux 调度器的两个时间片。",
    ),
    guards: Text::new(
        "A pause without a recorded collection may also be another process's doing. Between two steps that decode the same sequences it is no wait for requests; elsewhere it may be, and the confidence is low then.",
        "没有回收记录的停顿也可能由其他进程造成。若前后两步解码的是同一批序列，则不是在等待请求；否则可能是，此时置信度为低。",
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
        cx.workloads().filter_map(|of| recorded(cx, &of).or_else(|| conjectured(cx, &of))).collect()
    }
}

fn recorded(cx: &Context<'_>, workload: &Workload<'_>) -> Option<Finding> {
    let rank = workload.rank;
    let collecting = |b: Bucket| reading::is_host(cx.analysis, b, "gc");
    let pauses = reading::pauses(workload, Recurs::Call, |gap| reading::time_in(gap, collecting));
    let rows = workload.steps().flat_map(|s| reading::host_slices(cx.trace, rank, s.window, Category::Gc));
    let fact = Evidence::new(
        Text::new("pauses for a collection", "因回收而停顿的次数"),
        Value::Count(pauses.len() as u64),
        reading::sample(rows.map(|(id, _)| id)),
    );
    let rival = Competing::refuted(
        Text::new("the host waited for something else", "主机在等待其他事物"),
        Text::new("the collections are recorded and cover the idle time", "回收有记录且覆盖了该空闲"),
    );
    let slices = workload.steps().flat_map(|s| {
        let thread = reading::issuing_thread(rank, s);
        reading::host_slices(cx.trace, rank, s.window, Category::Gc).filter_map(move |(_, span)| Some((thread?, span)))
    });
    let edits = change::shortened(slices, 0);
    finding(cx, workload, (&pauses, Confidence::High, edits), fact, rival)
}

/// Pauses in which the host called nothing.
fn conjectured(cx: &Context<'_>, workload: &Workload<'_>) -> Option<Finding> {
    let rank = workload.rank;
    let found = pauses::of(cx, workload);
    // A program without an interpreter collects no garbage.
    if found.len() < 2 || !cx.runs_python() {
        return None;
    }
    let lengths: Vec<i64> = found.iter().map(|pause| pause.silent).collect();
    let fact = Evidence::new(
        Text::new("pauses without any host call, far beyond what every step has", "无任何主机调用、远超各步常态的停顿"),
        Value::Count(found.len() as u64),
        reading::sample(found.iter().filter_map(|pause| reading::owner(rank, pause.gap)).map(|op| op.slice)),
    );
    let in_doubt = found.iter().any(|pause| pause.in_doubt);
    let rival = if in_doubt {
        Competing::open(
            Text::new("the host waited for requests or was not scheduled", "主机在等待请求或未被调度"),
            Text::new("record the collector (gc callbacks) or context switches", "请记录回收器（gc 回调）或上下文切换"),
        )
    } else {
        Competing::refuted(
            Text::new("the host waited for requests", "主机在等待请求"),
            Text::new(
                "the step after each pause decodes sequences that were there before it, and needs no new request",
                "每次停顿之后的步仍在解码此前已有的序列，不需要新请求",
            ),
        )
    };
    let stretches = |of: &[&pauses::Pause<'_>]| {
        let silent = of.iter().filter_map(|pause| {
            let track = reading::owner(rank, pause.gap).and_then(|op| rank.timeline.call(op))?.track;
            let parts = pause.gap.parts.iter().filter(|(b, _)| pauses::is_silent(cx, *b));
            Some(parts.map(move |(_, span)| (track, *span)).collect::<Vec<_>>())
        });
        change::shortened(silent.flatten(), 0)
    };
    // A few short ones are what every host has now and then: nobody promises that they go away.
    let recurs = |pause: &&pauses::Pause<'_>| found.len() >= RECUR || pause.is_long || pause.silent >= HEAVY;
    let (certain, rest): (Vec<_>, Vec<_>) = found.iter().partition(recurs);
    // A stage of a pipeline waits for the others now and then, too.
    let pairs = cx.analysis.job.groups.iter().any(|group| group.is_pair);
    if pairs && certain.is_empty() {
        return None;
    }
    let edits = stretches(&certain).into_iter().chain(change::hoped(stretches(&rest))).collect();
    let most = if in_doubt { Confidence::Low } else { Confidence::Medium };
    let found = finding(cx, workload, (&lengths, most, edits), fact, rival)?;
    Some(found.against(Competing::open(
        Text::new("another process or the machine's management held the host up", "其他进程或机器管理任务拖住了主机"),
        Text::new("record the collector (gc callbacks) or context switches", "请记录回收器（gc 回调）或上下文切换"),
    )))
}

fn finding(
    cx: &Context<'_>,
    workload: &Workload<'_>,
    (pauses, most, edits): (&[i64], Confidence, Vec<Edit>),
    fact: Evidence,
    rival: Competing,
) -> Option<Finding> {
    let (rank, class) = (workload.rank, workload.class);
    let cost = interrupting(workload, pauses, LEAST_GAIN)?;
    let trigger = Trigger {
        formula: Text::new(
            "idle time in collections or pauses without a call / class time",
            "垃圾回收或无调用停顿造成的空闲 / 该类总时间",
        ),
        value: cost.share,
        threshold: LEAST_GAIN,
    };
    let text = if most < Confidence::High {
        Text::new(
            "{pauses} pauses of rank {rank} without any host call stop {class}: {cost} per step on average ({share}), the longest {longest}; garbage collection is the usual cause.",
            "rank {rank} 的 {pauses} 次无任何主机调用的停顿使 {class} 停下：平均每步 {cost}（{share}），最长 {longest}；常见原因是垃圾回收。",
        )
    } else {
        Text::new(
            "Garbage collection on rank {rank} stops {class} {pauses} times: {cost} per step on average ({share}), the longest {longest}.",
            "rank {rank} 上的垃圾回收使 {class} 停顿 {pauses} 次：平均每步 {cost}（{share}），最长 {longest}。",
        )
    };
    let claim = Message::new(
        text,
        [
            ("class", Value::Raw(class.key.clone())),
            ("rank", Value::Count(u64::from(rank.rank))),
            ("pauses", Value::Count(pauses.len() as u64)),
            ("cost", Value::Ns(cost.per_step)),
            ("share", Value::Share(cost.share)),
            ("longest", Value::Ns(pauses.iter().copied().max().unwrap_or(0))),
        ],
    );
    let change = Intervention { removes: cost.per_step, layer: Layer::Runtime, edits };
    cx.event(&DOC, workload, claim, trigger, change).with(fact).against(rival).gated(cost.most.min(most))
}
