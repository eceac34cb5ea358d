//! RT-13: the launching thread loses the processor, or its calls take far longer now and then.

use std::collections::BTreeMap;

use model::{
    EvidenceClass::{Device, HostApi},
    Ns, Span, StringId,
};

use super::{
    exposed::{Exposed, Saying},
    reading,
};
use crate::{
    analysis::{Bucket, Call, Class, Confidence, Layer, Rank, Step, median},
    diagnose::{
        Competing, Evidence, Finding, Intervention,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Text, Value},
    platform::HostCall,
};

/// Slowest hundredth of the launch calls over their median; own value.
const RATIO: f64 = 5.0;
/// Launch calls of which a 99th percentile says something.
const CALLS: usize = 100;
/// Share of the host's part of the idle time off the processor; own value.
const OFF_CPU: f64 = 0.20;
/// Share of the step that is lost; own value, above run-to-run noise.
const SHARE: f64 = 0.02;
/// Where nine in ten times off the processor are this close to their median, a timer set them: a scheduler gives the core back when
/// others leave it, not after the same time. Heuristic; `time.sleep(0.001)` in a recorded run: 1.0 to 1.1 times the median of 1.09 ms.
const ALIKE: f64 = 1.2;
/// Fewest times off the processor to say so.
const TIMED: usize = 8;

/// The rule.
pub struct CpuContention;

static DOC: Doc = Doc {
    id: "RT-13",
    title: Text::new("Host CPU contention", "主机 CPU 争用"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi],
    advice: Advice::Host,
    relations: Relations::NONE,
    sees: Text::new(
        "The thread that launches work is taken off the processor, or some of its launch calls take many times the usual time, while the device is idle.",
        "下发线程被换下处理器，或部分下发调用耗时为平常的许多倍，期间设备空闲。",
    ),
    matters: Text::new(
        "A launch takes microseconds; losing the core costs milliseconds. With several ranks every one of them waits for the one that lost it.",
        "一次下发只需微秒，失去一次 CPU 核却要毫秒；多 rank 时其余 rank 都要等它。",
    ),
    trigger: Text::new(
        "With scheduling records: the launching thread is off the processor for at least 20 % of the host's part of the idle time. Without them: p99 over p50 of the durations of launch calls (each over the median of its own interface) at least 5, in at least 100 calls. In both cases the idle time that this costs is at least 2 % of the step.",
        "有调度记录时：主机侧空闲中至少 20% 下发线程不在处理器上。没有时：下发调用时长（各自除以同名接口的中位数）的 p99/p50 至少为 5，且不少于 100 次调用。两种情况下由此造成的空闲都至少占步时的 2%。",
    ),
    source: Text::new(
        "5, 20 % and 2 %: own values. Cases: binding cores and raising priority of the launching threads (Ascend tuning guides), TGI #1874.",
        "5、20% 与 2%：自定值。案例：下发线程绑核与提高优先级（昇腾调优指南），TGI #1874。",
    ),
    guards: Text::new(
        "Times off the processor that are all alike are a timer's and do not count. Calls that load code on first use, and calls that block because the queue is full while the device works, do not count. Without scheduling records other causes of slow calls stay open, and the confidence is low.",
        "时长彼此相近的离开处理器来自定时器，不计入。首次使用时加载代码的调用、设备忙时因队列已满而阻塞的调用不计入。没有调度记录时，调用变慢的其他原因无法排除，置信度为低。",
    ),
    verify: Text::new(
        "Bind the launching threads to cores of their own and record context switches: p99 over p50 of the launch calls falls below 5, and the idle time with it.",
        "把下发线程绑定到独占核并记录上下文切换：下发调用的 p99/p50 降到 5 以下，空闲随之减少。",
    ),
};

impl Rule for CpuContention {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        cx.main_classes()
            .filter_map(|(rank, class)| off_cpu(cx, rank, class).or_else(|| slow(cx, rank, class)))
            .collect()
    }
}

/// Time off the processor as the operating system recorded it.
fn off_cpu(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let off = |b: Bucket| reading::is_host(cx.analysis, b, "offcpu");
    let host = class.sum(|b| matches!(b, Bucket::Host(_)));
    let share = class.sum(off) as f64 / host.max(1) as f64;
    let lost = |s: &Step| reading::idle(rank, s, |_, b| off(b));
    let pauses: Vec<Ns> = rank.steady_steps(class).map(lost).filter(|ns| *ns > 0).collect();
    if share < OFF_CPU || is_timed(rank, class, off) {
        return None;
    }
    let stretches = rank.steady_steps(class).flat_map(|s| {
        let thread = reading::issuing_thread(rank, s);
        let parts = reading::gaps(rank, s).iter().flat_map(|g| &g.parts).filter(move |(b, _)| off(*b));
        parts.filter_map(move |(_, span)| Some((thread?, *span, 0)))
    });
    let (finding, cost) = Exposed { cx, doc: &DOC, rank, class }.stalling(SHARE, &pauses, |cost| Saying {
        formula: Text::new(
            "idle while the launching thread is off the processor / mean step",
            "下发线程不在处理器上时的空闲 / 平均步时",
        ),
        claim: Text::new(
            "The launching thread of {class} is off the processor while the device waits: {idle} of {step} ({share}), {part} of what the host keeps the device waiting.",
            "{class} 的下发线程不在处理器上，设备只能等待：步时 {step} 中有 {idle}（{share}），占主机侧等待的 {part}。",
        ),
        more: vec![("part", Value::Share(share))],
        change: Intervention {
            removes: cost.per_step,
            layer: Layer::Runtime,
            edits: reading::host_takes(stretches),
        },
    })?;
    finding
        .with(Evidence::new(
            Text::new("idle per step off the processor", "每步因不在处理器上造成的空闲"),
            Value::Ns(cost.per_step),
            reading::gap_rows(rank, rank.steady_steps(class), |_, b| off(b)),
        ))
        .against(Competing::refuted(
            Text::new("the host was busy", "主机在忙"),
            Text::new("the operating system recorded that the thread did not run", "操作系统记录显示该线程未在运行"),
        ))
        .against(Competing::open(
            Text::new(
                "the thread gave the processor up: it waits for a lock, a file or another thread",
                "线程主动让出处理器：在等锁、文件或其他线程",
            ),
            Text::new(
                "the code around the pauses and the thread's state when it is taken off decide",
                "停顿处的代码与线程被换下时的状态可以判定",
            ),
        ))
        .gated(cost.most)
}

/// Whether the thread left the processor for a set time, again and again: it sleeps, and nobody took the core from it.
fn is_timed(rank: &Rank, class: &Class, off: impl Fn(Bucket) -> bool) -> bool {
    let gaps = rank.steady_steps(class).flat_map(|s| reading::gaps(rank, s)).flat_map(|gap| &gap.parts);
    let mut times: Vec<Ns> = gaps.filter(|(b, _)| off(*b)).map(|(_, span)| span.len()).collect();
    times.sort_unstable();
    let at = |tenths: usize| times.get(times.len().saturating_sub(1) * tenths / 10).copied().unwrap_or(0) as f64;
    times.len() >= TIMED && at(9) <= ALIKE * at(5) && at(5) <= ALIKE * at(1)
}

/// Launch calls that take many times as long as usual.
fn slow(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let launches =
        || rank.steady_steps(class).flat_map(|s| reading::calls(rank, s)).filter(|c| is_plain_launch(rank, c));
    let mut by_name: BTreeMap<StringId, Vec<Ns>> = BTreeMap::new();
    launches().for_each(|c| by_name.entry(c.name).or_default().push(c.end - c.start));
    let usual: BTreeMap<StringId, Ns> =
        by_name.into_iter().filter_map(|(name, durs)| Some((name, median(durs)?.max(1)))).collect();
    let over = |c: &Call| (c.end - c.start) as f64 / usual.get(&c.name).copied().unwrap_or(1) as f64;
    let mut ratios: Vec<f64> = launches().map(over).collect();
    if ratios.len() < CALLS {
        return None;
    }
    ratios.sort_by(f64::total_cmp);
    let p99 = *ratios.get((ratios.len() * 99).div_ceil(100).saturating_sub(1))?;
    if p99 < RATIO {
        return None;
    }
    let is_slow = |c: &&Call| over(c) >= RATIO;
    let exposed = |s: &Step| {
        let calls = reading::calls(rank, s).iter().filter(|c| is_plain_launch(rank, c)).filter(is_slow);
        let calls = reading::merged(calls.map(|c| Span::new(c.start, c.end)).collect());
        let parts = reading::gaps(rank, s).iter().flat_map(|g| &g.parts).filter(|(b, _)| *b == Bucket::LaunchApi);
        reading::overlap(&calls, &parts.map(|(_, span)| *span).collect::<Vec<_>>())
    };
    let pauses: Vec<Ns> = rank.steady_steps(class).map(exposed).filter(|ns| *ns > 0).collect();
    let count = launches().filter(is_slow).count();
    let takes = |c: &Call| (c.track, Span::new(c.start, c.end), usual.get(&c.name).copied().unwrap_or(0));
    let (finding, cost) = Exposed { cx, doc: &DOC, rank, class }.stalling(SHARE, &pauses, |cost| Saying {
        formula: Text::new(
            "idle in launch calls of at least 5 medians / mean step, with p99 / p50 of the calls at least 5",
            "耗时不少于 5 个中位数的下发调用造成的空闲 / 平均步时，且调用时长 p99/p50 不小于 5",
        ),
        claim: Text::new(
            "{count} launch calls in the steps of {class} take at least 5 times their usual time (p99 is {p99} the median), and the device waits {idle} of {step} ({share}) in them.",
            "{class} 的步内有 {count} 次下发调用耗时达平常的 5 倍以上（p99 为中位数的 {p99}），设备因此等待 {idle}，步时 {step}（{share}）。",
        ),
        more: vec![("count", Value::Count(count as u64)), ("p99", Value::Ratio(p99))],
        change: Intervention {
            removes: cost.per_step,
            layer: Layer::Runtime,
            edits: reading::host_takes(launches().filter(is_slow).map(takes)),
        },
    })?;
    finding
        .with(Evidence::new(
            Text::new("idle per step in slow launch calls", "每步慢下发调用造成的空闲"),
            Value::Ns(cost.per_step),
            reading::sample(launches().filter(is_slow).map(|c| c.slice)),
        ))
        .with(Evidence::new(
            Text::new("p99 over p50 of the launch calls", "下发调用时长的 p99/p50"),
            Value::Ratio(p99),
            Vec::new(),
        ))
        .against(Competing::open(
            Text::new("the driver or the profiler makes these calls slow, not the loss of the core", "是驱动或剖析器使这些调用变慢，而非失去 CPU 核"),
            Text::new(
                "context switches of the launching thread decide; record them with the operating system's scheduler trace",
                "下发线程的上下文切换可以判定；请用操作系统调度跟踪记录",
            ),
        ))
        .gated(cost.most.min(Confidence::Low))
}

/// A launch of one kernel that does not load code on the way.
fn is_plain_launch(rank: &Rank, call: &Call) -> bool {
    let nested = || rank.timeline.calls_between(call.start, call.end).iter().take(16);
    call.kind == HostCall::Launch && !nested().any(|c| c.track == call.track && c.kind.is_compile())
}
