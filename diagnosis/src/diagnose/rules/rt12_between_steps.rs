//! RT-12: the device waits between steps for the host's scheduling.

use model::{
    EvidenceClass::{Correlation, Device, HostApi},
    Ns, Span,
};

use super::{
    change, demand,
    exposed::{Exposed, Saying},
    owned::{self, Owned},
    pauses, reading,
};
use crate::{
    analysis::{Bucket, Class, Edit, Layer, Rank, Scheduler, idle::Gap},
    diagnose::{
        Competing, Evidence, Intervention,
        relations::{Advice, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of the step: half of TraceLens's idle flag.
const SHARE: f64 = 0.08;
/// The same for short steps, which leave the host less time; own value.
const SHARE_SHORT: f64 = 0.05;
/// Steps shorter than this are short, ns.
const SHORT: i64 = 10_000_000;

/// So many times the lower quartile of the steps' idle time makes its mean irregular; own value.
const IRREGULAR: Ns = 3;

/// The rule.
pub struct BetweenSteps;

static DOC: Doc = Doc {
    id: "RT-12",
    title: Text::new("Host scheduling exposed between steps", "步间主机调度暴露"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi, Correlation],
    advice: Advice::Host,
    relations: Relations {
        yields_to: &["CM-01", "RT-08", "RT-15", "RT-06", "RT-19"],
        role: Some(Role::BetweenSteps),
        ..Relations::NONE
    },
    sees: Text::new(
        "After the last operation of a step the device waits until the host has scheduled and launched the next step.",
        "一步的最后一个算子结束后，设备一直等到主机完成调度并下发下一步。",
    ),
    matters: Text::new(
        "Scheduling, detokenising and answering requests take their time on every token; with overlap the device would not see it.",
        "调度、反分词与响应请求在每个 token 上都要耗时；若能重叠，设备便感觉不到。",
    ),
    trigger: Text::new(
        "Idle time between steps at least 8 % of the mean step, or 5 % if the step is shorter than 10 ms.",
        "步间空闲至少占平均步时的 8%；步时短于 10 ms 时为 5%。",
    ),
    source: Text::new(
        "8 %: half of TraceLens's idle flag; 5 % for short steps: own value.",
        "8%：TraceLens 空闲阈值的一半；短步 5%：自定值。",
    ),
    guards: Text::new(
        "Garbage collection, compilation and allocation between steps have their own rules, and so has the wait for a core that the launching thread itself holds (RT-01). Without asynchronous scheduling the next batch depends on the sample, and part of the wait is unavoidable. A server without requests is not slow: where most of the idle time that comes before a prompt, or before steps whose sequences are not known, comes in some of them only and the scheduler's counters are missing, the rule abstains. A step that decodes the sequences of the step before it needs no request.",
        "步间的垃圾回收、编译与分配另有规则，等待下发线程让出核心的时间也另有规则（RT-01）。没有异步调度时下一批依赖采样结果，部分等待不可避免。没有请求的服务并不是慢：若提示之前（或序列未知的步之前）的空闲大多只出现在其中一部分，且缺少调度器计数器，则不作判断。解码上一步已有序列的步不需要请求。",
    ),
    verify: Text::new(
        "Turn on asynchronous (overlapped) scheduling: the idle time between steps shrinks to the launch of the next step.",
        "启用异步（重叠）调度：步间空闲缩短到下一步的下发时间。",
    ),
};

impl Rule for BetweenSteps {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let scheduler = Scheduler::of(cx.trace);
        let counts = |empty: &Scheduler, g: &Gap, b: Bucket| {
            let other =
                matches!(b, Bucket::Compile | Bucket::Alloc | Bucket::Prof | Bucket::GraphInternal | Bucket::DeviceDep);
            g.between_steps && !other && !reading::is_host(cx.analysis, b, "gc") && !empty.was_empty(g.span)
        };
        let one = |(rank, class): (&Rank, &Class)| {
            let threshold = if class.mean() < SHORT { SHARE_SHORT } else { SHARE };
            let idle = Exposed { cx, doc: &DOC, rank, class };
            let empty = Scheduler::of_rank(cx.trace, rank.process);
            // A pause that comes now and then is no scheduling, which every step needs.
            let paused: Vec<Span> = pauses::of(cx, &rank.workload(class)).iter().map(|pause| pause.gap.span).collect();
            let counts = |g: &Gap, b: Bucket| {
                counts(&empty, g, b)
                    && !reading::is_crowded_out(rank, g, b)
                    && !reading::is_in_next_mark(cx, rank, g, b)
                    && !paused.contains(&g.span)
            };
            let waits = Owned::of(rank, rank.steady_steps(class), |g, _, b, part| {
                (counts(g, b) && owned::is_code(cx, b)).then_some(part)
            });
            // One owner of half of it is what the host does there.
            let spoken = waits.spoken(cx, rank).filter(|spoken| 2 * spoken.ns >= waits.total);
            let claim = match spoken {
                Some(_) => Text::new(
                    "Between two steps of {class} the device waits {idle} of {step} ({share}) for the host, mostly for {owner}.",
                    "{class} 的两步之间设备等待主机 {idle}，步时 {step}（{share}），主要在等待 {owner}。",
                ),
                None => Text::new(
                    "Between two steps of {class} the device waits {idle} of {step} ({share}) for the host.",
                    "{class} 的两步之间设备等待主机 {idle}，步时 {step}（{share}）。",
                ),
            };
            let more = spoken.map(|spoken| ("owner", Value::Raw(spoken.place))).into_iter().collect();
            let (finding, cost) = idle.recurring(
                threshold,
                |s| reading::idle(rank, s, counts),
                |cost| Saying {
                    formula: Text::new("idle between steps / mean step", "步间空闲 / 平均步时"),
                    claim,
                    more,
                    change: Intervention {
                        removes: cost.per_step,
                        layer: Layer::Runtime,
                        edits: overlapped(cx, rank, class),
                    },
                },
            )?;
            finding
                .with(Evidence::new(
                    Text::new("idle per step between steps", "每步的步间空闲"),
                    Value::Ns(cost.per_step),
                    reading::gap_rows(rank, rank.steady_steps(class), counts),
                ))
                .against(no_request(rank, class, &scheduler))
                .against(Competing::open(
                    Text::new("the next batch depends on the sampled token", "下一批依赖采样出的 token"),
                    Text::new("asynchronous scheduling on the same engine decides", "在同一引擎上启用异步调度可以判定"),
                ))
                .gated(cost.most)
        };
        // One engine schedules for all ranks of a job: what one of them shows holds for all.
        let irregular = |(rank, class): (&Rank, &Class)| {
            is_irregular(rank, class, |g, b| counts(&scheduler, g, b) && demand::in_doubt(rank, g, &scheduler))
        };
        if !scheduler.knows_demand() && reading::marked(cx).any(irregular) {
            return Outcome::Abstain(Message::plain(Text::new(
                "the idle time between steps is long in some steps and short in others, as it is while no request is there; record the engine's counters num_requests_running and num_requests_waiting",
                "步间空闲在部分步很长、部分步很短，没有请求时也会如此；请记录引擎计数器 num_requests_running 与 num_requests_waiting",
            )));
        }
        let found = reading::marked(cx).filter_map(one).collect();
        change::job_wide(cx, found, |rank, class| overlapped(cx, rank, class))
    }
}

/// Steps that overlap. Cautiously half of the host's work between them needs the token that was sampled, but nothing of the
/// scheduler's: it knows the sequences and their cache blocks before (asynchronous scheduling of vLLM, overlap scheduler of SGLang).
fn overlapped(cx: &Context<'_>, rank: &Rank, class: &Class) -> Vec<Edit> {
    let (mut work, mut scheduling): (Ns, Ns) = (0, 0);
    for step in rank.steady_steps(class) {
        work += reading::idle(rank, step, |g, b| g.between_steps && owned::is_code(cx, b));
        scheduling +=
            reading::idle(rank, step, |g, b| g.between_steps && reading::is_host(cx.analysis, b, "scheduler"));
    }
    let awaiting = (work - scheduling).max(0);
    vec![Edit::OverlapSteps(change::scale(50, awaiting, work.max(scheduling)))]
}

/// Whether most of the idle time between steps is none that every step pays, and enough of it to matter.
fn is_irregular(rank: &Rank, class: &Class, counts: impl Fn(&Gap, Bucket) -> bool) -> bool {
    let mut idle: Vec<Ns> = rank.steady_steps(class).map(|s| reading::idle(rank, s, &counts)).collect();
    idle.sort_unstable();
    let paid = idle.get(idle.len() / 4).copied().unwrap_or(0);
    let mean = idle.iter().sum::<Ns>() / idle.len().max(1) as Ns;
    mean > IRREGULAR * paid && (mean - paid) as f64 >= SHARE * class.mean() as f64
}

/// Idle time of a server without requests is left to RT-19; without a scheduler's counters the steps tell whether one was
/// needed.
fn no_request(rank: &Rank, class: &Class, scheduler: &Scheduler) -> Competing {
    let claim = Text::new("the server had no request to work on", "服务当时没有请求可处理");
    if scheduler.knows_demand() {
        let why = Text::new("only idle time with requests in the engine was counted", "只统计了引擎内有请求时的空闲");
        return Competing::refuted(claim, why);
    }
    let in_doubt = |gap: &&Gap| demand::in_doubt(rank, gap, scheduler);
    let between = || rank.steady_steps(class).flat_map(|s| reading::gaps(rank, s)).filter(|gap| gap.between_steps);
    if 2 * between().filter(in_doubt).count() <= between().count() {
        let why = Text::new(
            "the steps decode sequences that were there in the step before, and need no new request",
            "这些步解码的是上一步已有的序列，不需要新请求",
        );
        return Competing::refuted(claim, why);
    }
    let why = Text::new("the scheduler's log of waiting requests decides", "调度器的等待请求日志可以判定");
    Competing::open(claim, why)
}
