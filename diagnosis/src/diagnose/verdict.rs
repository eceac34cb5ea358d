//! The answer in one sentence.

mod headline;

use model::{EvidenceClass, Ns};

use headline::{blame, step_args, subject, without_findings};

use super::{
    Assessment, Level,
    finding::{Finding, Severity},
    level,
    rule::Context,
    rules::{
        cp13_shared_machine as machine, late, reading, rt19_load_limited as load, rt21_speculation as speculation,
    },
    sums,
};
use crate::{
    analysis::{AnchorKind, Bucket, Class, Confidence, Layer, Rank, Scheduler, Step, idle::Gap, inflation},
    i18n::{Message, Text, Value},
};

/// What the verdict blames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictLayer {
    /// Kernels and what they are made of.
    Operator,
    /// Host, launches, graphs, copies.
    Runtime,
    /// Transfers and late ranks.
    Communication,
    /// Too few requests: no bottleneck of the stack.
    Load,
    /// The capture does not allow a verdict.
    Undecided,
    /// No layer stands out.
    None,
}

/// The verdict on a capture.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Verdict {
    /// What it blames.
    pub layer: VerdictLayer,
    /// One sentence.
    pub headline: Message,
    /// How sure it is.
    pub confidence: Confidence,
    /// Rules it rests on.
    pub because: Vec<&'static str>,
    /// Level reached; `None` when not even a device operation was seen.
    pub level: Option<Level>,
    /// What is missing for the next level, one sentence each.
    pub missing: Vec<Message>,
    /// Every level with what it rests on.
    pub levels: Vec<Assessment>,
}

/// Share of another layer from which a step without findings is not called operator-bound: a cause of high severity would
/// fit into it, and that no rule that could decide names one proves nothing of the rules that could not; own value.
const RIVAL: f64 = 0.10;
/// Part of the gain of faster scheduling that lies where the host did nothing known, from which a server without requests
/// explains it as well; own value.
const IDLE_HOST: f64 = 0.5;
/// Part of the gain of something that may be nothing from which a sure cause is named instead; own value.
const COMPARABLE: f64 = 0.5;
/// Share of the step that may be opaque before there is no verdict.
const OPAQUE: f64 = 0.50;
/// Share of the step, attributed to nothing or to a layer whose rules could not speak, from which it is weighed against what
/// was found: a finding of low severity is not worth more; own value, the limit of medium severity.
const UNEXPLAINED: f64 = 0.03;
/// Share of collectives from which a single rank's capture must not be judged by what little it explains; own value, the
/// limit of rule RT-14 for idle time.
const COLLECTIVES: f64 = 0.15;
/// Operations per step below which a busy device proves nothing: the window of a lone kernel is busy by definition; own value.
const FEW_OPS: usize = 10;
/// Rules that a verdict names at most.
const BECAUSE: usize = 4;

/// Judges a capture from its ranked findings.
pub fn judge(cx: &Context<'_>, findings: &[Finding]) -> Verdict {
    let levels = level::assess(cx);
    let (level, missing) = level::reached(&levels);
    let verdict = |layer, headline, confidence, because| Verdict {
        layer,
        headline,
        confidence,
        because,
        level,
        missing: missing.clone(),
        levels: levels.clone(),
    };
    let undecided = |headline, because| verdict(VerdictLayer::Undecided, headline, Confidence::Low, because);
    if let Some((rank, class)) = longest(cx).filter(|(rank, _)| rank.anchor.kind == AnchorKind::Log) {
        let because: Vec<&'static str> =
            findings.iter().filter(|f| f.layer != Layer::Measurement).map(|f| f.rule).take(BECAUSE).collect();
        let text = Text::new(
            "{subject} ({class}): a step takes {step}, as a log says; a log answers for jitter, graph coverage and compile stalls, and for no layer.",
            "{subject}（{class}）：日志给出的步时为 {step}；日志可回答抖动、图覆盖与编译停顿，不能判定任何一层。",
        );
        return undecided(Message::new(text, step_args(rank, class)), because);
    }
    if level.is_none() {
        if let Some(headline) = sums::headline(cx.trace) {
            return undecided(headline, vec!["CP-07"]);
        }
        if cx.analysis.evidence.has(EvidenceClass::Logs) {
            let text = Text::new(
                "The log times no step: it says how the engine was set up and started, and nothing of where a step's time goes. Log the latency of each step, or record a trace.",
                "日志中没有步时：只说明引擎的配置与启动过程，不能说明一步的时间花在哪里。请记录每步延迟，或采集一次 trace。",
            );
            return undecided(Message::plain(text), Vec::new());
        }
        let text = Text::new(
            "No device operation was recorded: nothing can be said about where the time goes.",
            "没有记录到任何设备算子：无法判断时间花在哪里。",
        );
        return undecided(Message::plain(text), Vec::new());
    }
    let Some((rank, class)) = longest(cx) else {
        let text = Text::new("No step that counts was found in the capture.", "采集中没有可计入统计的步。");
        return undecided(Message::plain(text), Vec::new());
    };
    if let Some(ratio) = inflation::ratio(&cx.trace.manifest).filter(|r| *r > inflation::REFUSED) {
        let text = Text::new(
            "{subject}: tracing makes the step {ratio} as long, so the capture allows no verdict.",
            "{subject}：剖析使步时变为 {ratio}，该采集不足以下结论。",
        );
        let args = [("subject", subject(rank, class)), ("ratio", Value::Ratio(ratio))];
        return undecided(Message::new(text, args), vec!["CP-04"]);
    }
    if let Some(shared) = machine::starved(cx, rank, class) {
        let text = Text::new(
            "{subject} ({class}): {lasts} {step}; other processes had {others} of the processors' time meanwhile and no core was free, so the steps show what was left of the machine and the capture allows no verdict: run again on a quiet one.",
            "{subject}（{class}）：{lasts} {step}；期间其他进程占用了 {others} 的处理器时间且没有空闲核心，各步只反映机器的余力，该采集不足以下结论：请在空闲时重跑。",
        );
        let args = step_args(rank, class).into_iter().chain([("others", Value::Share(shared.others))]);
        return undecided(Message::new(text, args), vec!["CP-13"]);
    }
    let opaque = opaque(class);
    if opaque > OPAQUE {
        let text = Text::new(
            "{subject} ({class}): {share} of a step of {step} is opaque to this capture, so it allows no verdict.",
            "{subject}（{class}）：步时 {step} 中有 {share} 对该采集不透明，不足以下结论。",
        );
        let args = step_args(rank, class).into_iter().chain([("share", Value::Share(opaque))]);
        return undecided(Message::new(text, args), vec!["CP-08"]);
    }
    let starting = class.share(|b| b == Bucket::Compile);
    if starts(rank, class) {
        let text = Text::new(
            "{subject} ({class}): {share} of {step} is compilation or graph capture, so this is a start-up and no decode step.",
            "{subject}（{class}）：{step} 中有 {share} 是编译或图捕获，属于启动阶段而非解码步。",
        );
        let args = step_args(rank, class).into_iter().chain([("share", Value::Share(starting))]);
        return undecided(Message::new(text, args), Vec::new());
    }
    if let Some((gap, share)) = start_up_gap(rank, class) {
        let text = Text::new(
            "{subject} ({class}): {lasts} {step}, {share} of it a single idle gap of {gap} in which the host prepared code or graphs, so this is a start-up and no decode step.",
            "{subject}（{class}）：{lasts} {step}，其中 {share} 是一个 {gap} 的空闲间隙，其间主机在准备代码或图，属于启动阶段而非解码步。",
        );
        let args = [("share", Value::Share(share)), ("gap", Value::Ns(gap))];
        return undecided(Message::new(text, step_args(rank, class).into_iter().chain(args)), Vec::new());
    }
    let weighty = |f: &&Finding| f.layer != Layer::Measurement && f.severity >= Severity::Low;
    let collectives = class.share(|b| matches!(b, Bucket::CommTransfer | Bucket::CommWait));
    let best = findings.iter().filter(weighty).map(|f| f.estimate.max_gain_share()).fold(0.0, f64::max);
    let alone = !cx.analysis.evidence.has(EvidenceClass::MultiRank)
        && !findings.iter().any(|f| f.layer == Layer::Communication);
    if alone && collectives >= COLLECTIVES && collectives > best {
        let text = Text::new(
            "{subject} ({class}): {lasts} {step}, {share} of it inside collectives; one rank alone cannot tell their transfer from waiting for a late rank, so capture the other ranks of the job too.",
            "{subject}（{class}）：{lasts} {step}，其中 {share} 在集合通信内；仅凭一个 rank 无法区分传输与等待迟到的 rank，请同时采集作业的其他 rank。",
        );
        let args = step_args(rank, class).into_iter().chain([("share", Value::Share(collectives))]);
        return undecided(Message::new(text, args), Vec::new());
    }
    if opaque >= UNEXPLAINED && opaque > best {
        let text = Text::new(
            "{subject} ({class}): {lasts} {step}; for {share} of it nothing recorded says why the device does not work, and that is more than what was found would gain ({gain} at most): record the host's calls and which of them launched what.",
            "{subject}（{class}）：{lasts} {step}；其中 {share} 的时间没有任何记录能说明设备为何不工作，多于已发现问题的最大收益（{gain}）：请采集主机调用及其与设备操作的关联。",
        );
        let args = [("share", Value::Share(opaque)), ("gain", Value::Share(best))];
        return undecided(Message::new(text, step_args(rank, class).into_iter().chain(args)), vec!["CP-08"]);
    }
    if let Some(limited) = findings.iter().find(|f| f.rule == load::ID && f.trigger.value >= best) {
        let text = Text::new(
            "{subject} ({class}): {lasts} {step}, and for {share} of the time the engine has no request to work on: the run is load-limited, and that is not a bottleneck of the stack.",
            "{subject}（{class}）：{lasts} {step}，其中 {share} 的时间引擎没有请求可处理：该运行受负载限制，并非软件栈的瓶颈。",
        );
        let args = step_args(rank, class).into_iter().chain([("share", Value::Share(limited.trigger.value))]);
        return verdict(VerdictLayer::Load, Message::new(text, args), limited.confidence, vec![load::ID]);
    }
    let first = findings.iter().find(weighty);
    let unsure = first.filter(|first| may_lack_requests(cx, first, rank, class));
    // What is sure comes before what is not, unless it is worth much less.
    let sure = unsure.and_then(|first| {
        let least = COMPARABLE * first.estimate.max_gain_share();
        findings.iter().find(|f| weighty(f) && f.rule != first.rule && f.estimate.max_gain_share() >= least)
    });
    let first = sure.or(first);
    if let Some(first) = unsure.filter(|_| sure.is_none()) {
        let text = Text::new(
            "{subject} ({class}): {lasts} {step}; {rule} comes first with up to {gain} of it, but nothing recorded says whether the host was late or had no request to work on: record the engine's counters of running and waiting requests, or ranges around its scheduling.",
            "{subject}（{class}）：{lasts} {step}；首要问题是 {rule}，最多占其中的 {gain}，但没有任何记录能说明主机是迟缓还是没有请求可处理：请记录引擎的运行与等待请求计数，或标注其调度区间。",
        );
        let args =
            [("rule", Value::Raw(first.rule.to_owned())), ("gain", Value::Share(first.estimate.max_gain_share()))];
        return undecided(Message::new(text, step_args(rank, class).into_iter().chain(args)), vec![first.rule]);
    }
    let pause = pause_without_demand(cx, rank, class);
    if pause >= RIVAL && pause > best {
        let text = Text::new(
            "{subject} ({class}): {lasts} {step}; for {share} of it the host does nothing known between steps, which is more than what was found would gain ({gain} at most), and nothing recorded says whether it had requests to work on: record the engine's counters of running and waiting requests, or ranges around its scheduling.",
            "{subject}（{class}）：{lasts} {step}；其中 {share} 的时间主机在步间没有任何已知活动，多于已发现问题的最大收益（{gain}），也没有任何记录能说明是否有请求可处理：请记录引擎的运行与等待请求计数，或标注其调度区间。",
        );
        let args = [("share", Value::Share(pause)), ("gain", Value::Share(best))];
        return undecided(Message::new(text, step_args(rank, class).into_iter().chain(args)), vec![load::ID]);
    }
    match first {
        Some(first) => {
            let same = |f: &&Finding| weighty(f) && f.layer == first.layer;
            let mut because: Vec<&'static str> = Vec::new();
            for f in findings.iter().filter(same) {
                if !because.contains(&f.rule) && because.len() < BECAUSE {
                    because.push(f.rule);
                }
            }
            let headline = blame(cx, (first, unsure.filter(|_| sure.is_some())), rank, class);
            verdict(blamed(first.layer), headline, first.confidence, because)
        }
        None if speculation::is_unjudged(cx, rank, class) => {
            let text = Text::new(
                "{subject} ({class}): {lasts} {step}; its steps draft tokens beside the model, and nothing recorded says how many are accepted: record the engine's counters of drafted and accepted tokens.",
                "{subject}（{class}）：{lasts} {step}；各步在模型之外还生成草稿 token，但没有任何记录能说明接受了多少：请记录引擎的草稿与接受 token 计数。",
            );
            undecided(Message::new(text, step_args(rank, class)), vec![speculation::ID])
        }
        None => {
            let (layer, headline) = without_findings(cx, rank, class);
            // That no rule fired is weaker evidence than a rule that fired.
            verdict(layer, headline, cx.confidence(rank).min(Confidence::Medium), Vec::new())
        }
    }
}

/// Whether what comes first is a host that is late between steps, although nothing says what it did there, and nothing
/// whether it had anything to do.
fn may_lack_requests(cx: &Context<'_>, first: &Finding, rank: &Rank, class: &Class) -> bool {
    let unknown = |b: Bucket| reading::is_host(cx.analysis, b, "unknown");
    first.rule == "RT-12"
        && !Scheduler::of(cx.trace).knows_demand()
        && class.share(unknown) - awaited(cx, rank, class, unknown) >= IDLE_HOST * first.estimate.mid_gain_share()
}

/// Share of a class in which another rank waits for what the host does on the buckets that `pick` takes: that there was
/// something to do.
fn awaited(cx: &Context<'_>, rank: &Rank, class: &Class, pick: impl Fn(Bucket) -> bool) -> f64 {
    let index = cx.analysis.ranks.iter().position(|r| r.rank == rank.rank);
    index.map_or(0.0, |index| late::awaited(cx, index, pick) as f64 / class.total.max(1) as f64)
}

/// Share of a class in which the host does nothing known between steps, while nothing says whether it had anything to do.
fn pause_without_demand(cx: &Context<'_>, rank: &Rank, class: &Class) -> f64 {
    if Scheduler::of(cx.trace).knows_demand() {
        return 0.0;
    }
    let unknown = |b: Bucket| reading::is_host(cx.analysis, b, "unknown");
    let between = |gap: &Gap, b: Bucket| gap.between_steps && unknown(b);
    let pause: Ns = rank.steady_steps(class).map(|step| reading::idle(rank, step, between)).sum();
    pause as f64 / class.total.max(1) as f64 - awaited(cx, rank, class, unknown)
}

/// Share of a class in which the capture does not show what the device waits for, or what it does.
fn opaque(class: &Class) -> f64 {
    class.share(|b| matches!(b, Bucket::GraphOpaque | Bucket::Unattributed | Bucket::IdleUndecided))
}

/// Whether most of a class is compilation or graph capture, or one gap that holds it.
pub(super) fn is_start_up(rank: &Rank, class: &Class) -> bool {
    starts(rank, class) || start_up_gap(rank, class).is_some()
}

/// Whether most of a class is compilation or graph capture, and not only because some steps of a run that goes on stop for
/// it: half of its steps and more have it.
fn starts(rank: &Rank, class: &Class) -> bool {
    let prepares = |step: &&Step| step.buckets.iter().any(|(b, ns)| *b == Bucket::Compile && *ns > 0);
    let preparing = rank.steady_steps(class).filter(prepares).count();
    class.share(|b| b == Bucket::Compile) > OPAQUE && 2 * preparing >= class.steady
}

/// The one gap, and its share, that makes a class a start-up: it is most of the class, and in it the host loaded or
/// compiled code or made graphs.
fn start_up_gap(rank: &Rank, class: &Class) -> Option<(Ns, f64)> {
    let prepares = |gap: &Gap| gap.parts.iter().any(|(bucket, _)| *bucket == Bucket::Compile);
    let gaps = rank.steady_steps(class).flat_map(|step| reading::gaps(rank, step)).filter(|gap| prepares(gap));
    let gap = gaps.map(|gap| gap.span.len()).max()?;
    let share = gap as f64 / class.total.max(1) as f64;
    (share > OPAQUE).then_some((gap, share))
}

/// The main class with the most time of all ranks.
fn longest<'a>(cx: &'a Context<'_>) -> Option<(&'a Rank, &'a Class)> {
    cx.main_classes().max_by_key(|(rank, class)| (class.total, std::cmp::Reverse(rank.rank)))
}

fn blamed(layer: Layer) -> VerdictLayer {
    match layer {
        Layer::Operator => VerdictLayer::Operator,
        Layer::Runtime => VerdictLayer::Runtime,
        Layer::Communication => VerdictLayer::Communication,
        Layer::Measurement => VerdictLayer::Undecided,
    }
}
