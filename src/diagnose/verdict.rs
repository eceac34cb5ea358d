//! The answer in one sentence.

use model::{EvidenceClass, Ns};

use super::{
    Level,
    finding::{Finding, Severity},
    level,
    rule::Context,
    rules::{self, cp04_tracing_inflation as inflation, late, reading, rt19_load_limited as load},
    sums,
};
use crate::{
    analysis::{AnchorKind, Bucket, Class, Confidence, Layer, Rank, Scheduler, Step, idle::Gap},
    i18n::{Message, Text, Value},
    platform::Stage,
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
#[derive(Clone, Debug)]
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
}

/// Share of another layer from which a step without findings is not called operator-bound: a cause of high severity would
/// fit into it, and that no rule that could decide names one proves nothing of the rules that could not; own value.
const RIVAL: f64 = 0.10;
/// Part of the gain of faster scheduling that lies where the host did nothing known, from which a server without requests
/// explains it as well; own value.
const IDLE_HOST: f64 = 0.5;
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
    let (level, missing) = level::reached(cx);
    let verdict = |layer, headline, confidence, because| Verdict {
        layer,
        headline,
        confidence,
        because,
        level,
        missing: missing.clone(),
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
    if let Some(ratio) = inflation::ratio(cx).filter(|r| *r > inflation::REFUSED) {
        let text = Text::new(
            "{subject}: tracing makes the step {ratio} as long, so the capture allows no verdict.",
            "{subject}：剖析使步时变为 {ratio}，该采集不足以下结论。",
        );
        let args = [("subject", subject(rank, class)), ("ratio", Value::Ratio(ratio))];
        return undecided(Message::new(text, args), vec!["CP-04"]);
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
    if let Some(first) = first.filter(|first| may_lack_requests(cx, first, rank, class)) {
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
            verdict(blamed(first.layer), blame(cx, first, rank, class), first.confidence, because)
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

fn layer_name(layer: Layer) -> Text {
    match layer {
        Layer::Operator => Text::new("operator", "算子"),
        Layer::Runtime => Text::new("runtime", "运行时"),
        Layer::Communication => Text::new("communication", "通信"),
        Layer::Measurement => Text::new("measurement", "测量"),
    }
}

/// What the class is, in plain words: a capture without decode steps must not pass for one.
fn subject(rank: &Rank, class: &Class) -> Value {
    Value::Text(match class.stage {
        Stage::Train if rank.anchor.kind == AnchorKind::WholeCapture => Text::new(
            "Training, not decode; no steps found, one window from the first device operation to the end of the last",
            "训练，并非解码；未找到步，取首个设备操作开始到最后一个设备操作结束的一个窗口",
        ),
        _ if rank.anchor.kind == AnchorKind::WholeCapture => Text::new(
            "No steps found, one window from the first device operation to the end of the last",
            "未找到步，取首个设备操作开始到最后一个设备操作结束的一个窗口",
        ),
        Stage::Decode => Text::new("Decode", "解码"),
        Stage::Prefill => Text::new("Prefill only, no decode step in the capture", "仅预填充，采集中无解码步"),
        Stage::Mixed => Text::new("Mixed prefill and decode", "预填充与解码混合"),
        Stage::Train => Text::new("Training, not decode", "训练，并非解码"),
        Stage::Unknown => Text::new("Steps of unknown stage", "阶段未知的步"),
    })
}

fn step_args(rank: &Rank, class: &Class) -> [(&'static str, Value); 4] {
    let lasts = if rank.anchor.kind == AnchorKind::WholeCapture {
        Text::new("it lasts", "时长")
    } else {
        Text::new("a step takes", "步时")
    };
    [
        ("subject", subject(rank, class)),
        ("class", Value::Raw(class.key.clone())),
        ("step", Value::Ns(class.p50)),
        ("lasts", Value::Text(lasts)),
    ]
}

/// The bucket with the most time and its share: what a person asks for next. Equals are all named.
fn largest(cx: &Context<'_>, class: &Class) -> [(&'static str, Value); 2] {
    let order = |bucket: Bucket| (bucket.layer(), bucket.name(&cx.analysis.host_labels));
    let most = class.buckets.iter().max_by_key(|(bucket, ns)| (*ns, std::cmp::Reverse(order(*bucket))));
    let equal = class.buckets.iter().filter(|(_, ns)| most.is_some_and(|(_, longest)| ns == longest));
    let mut equal: Vec<Bucket> = equal.map(|(bucket, _)| *bucket).collect();
    equal.sort_by_key(|bucket| order(*bucket));
    let names: Vec<String> = equal.iter().map(|bucket| bucket.name(&cx.analysis.host_labels)).collect();
    let name = names.join(" = ");
    let share = most.map_or(0.0, |(bucket, _)| class.share(|b| b == *bucket));
    [("bucket", Value::Raw(name)), ("part", Value::Share(share))]
}

fn blame(cx: &Context<'_>, first: &Finding, rank: &Rank, class: &Class) -> Message {
    let of = |r: &&Rank| first.ranks.contains(&r.rank);
    let own =
        cx.analysis.ranks.iter().filter(of).find_map(|r| Some((r, r.classes.iter().find(|c| c.key == first.class)?)));
    let (rank, class) = own.unwrap_or((rank, class));
    let title = rules::find(first.rule).map_or(Text::new("", ""), |r| r.doc().title);
    let text = Text::new(
        "{subject} ({class}): {lasts} {step}, {share} of it in the {layer} layer; {rule} ({title}) comes first, worth up to {gain} of that time. The largest bucket is {bucket} with {part}.",
        "{subject}（{class}）：{lasts} {step}，其中 {share} 在{layer}层；首要问题是 {rule}（{title}），最多可省其中的 {gain}。最大的一项是 {bucket}，占 {part}。",
    );
    let args = [
        ("share", Value::Share(class.share(|b| b.layer() == first.layer))),
        ("layer", Value::Text(layer_name(first.layer))),
        ("rule", Value::Raw(first.rule.to_owned())),
        ("title", Value::Text(title)),
        ("gain", Value::Share(first.estimate.max_gain_share())),
    ];
    Message::new(text, step_args(rank, class).into_iter().chain(args).chain(largest(cx, class)))
}

fn without_findings(cx: &Context<'_>, rank: &Rank, class: &Class) -> (VerdictLayer, Message) {
    let share = |layer: Layer| class.share(|b| b.layer() == layer);
    let computes = share(Layer::Operator);
    let copies = class.share(|b| matches!(b, Bucket::Copy(_)));
    let rivals = Layer::ALL.into_iter().filter(|layer| *layer != Layer::Operator);
    let marked = rank.anchor.kind != AnchorKind::WholeCapture;
    let enough = rank.steady_steps(class).all(|s| s.ops.len() >= FEW_OPS);
    // Where most rules of the other layers could not speak, that they are silent says nothing.
    let heard = [EvidenceClass::HostApi, EvidenceClass::Correlation].iter().all(|e| cx.analysis.evidence.has(*e));
    let rival = if heard { RIVAL } else { UNEXPLAINED };
    let (layer, text) = if rivals.map(share).all(|share| share < rival) && marked && enough {
        let text = Text::new(
            "{subject} ({class}): {lasts} {step}, and the device computes for {operator} of it, so it is operator-bound; no rule that could decide fired. The largest bucket is {bucket} with {part}.",
            "{subject}（{class}）：{lasts} {step}，其中设备计算占 {operator}，受算子限制；能够判定的规则都没有触发。最大的一项是 {bucket}，占 {part}。",
        );
        // Without ceilings nobody knows whether the operators are fast, so their share is no verdict on them.
        let unjudged = Text::new(
            "{subject} ({class}): {lasts} {step}, and the device computes for {operator} of it, so it is operator-bound; no rule that could decide fired, and how efficient the operators are was not judged (no probes of this platform). The largest bucket is {bucket} with {part}.",
            "{subject}（{class}）：{lasts} {step}，其中设备计算占 {operator}，受算子限制；能够判定的规则都没有触发，算子本身的效率未作判断（没有本平台探针）。最大的一项是 {bucket}，占 {part}。",
        );
        (VerdictLayer::Operator, if cx.analysis.evidence.has(EvidenceClass::Probes) { text } else { unjudged })
    } else {
        let text = Text::new(
            "{subject} ({class}): {lasts} {step}; no rule names a cause: operator {operator}, runtime {runtime}, communication {communication}, measurement {measurement}. The largest bucket is {bucket} with {part}.",
            "{subject}（{class}）：{lasts} {step}；没有规则指出原因：算子 {operator}，运行时 {runtime}，通信 {communication}，测量 {measurement}。最大的一项是 {bucket}，占 {part}。",
        );
        let copying = Text::new(
            "{subject} ({class}): {lasts} {step}, and for {copies} of it copies run that nothing hides: what they move, and whether it must move each time, comes before any operator. Operator {operator}, communication {communication}, measurement {measurement}. The largest bucket is {bucket} with {part}.",
            "{subject}（{class}）：{lasts} {step}，其中 {copies} 是没有任何工作掩盖的拷贝：先弄清搬运了什么、是否每次都必须搬运，再看算子。算子 {operator}，通信 {communication}，测量 {measurement}。最大的一项是 {bucket}，占 {part}。",
        );
        let text = if copies > OPAQUE { copying } else { text };
        (if marked && enough { VerdictLayer::None } else { VerdictLayer::Undecided }, text)
    };
    let args = [
        ("operator", Value::Share(computes)),
        ("runtime", Value::Share(share(Layer::Runtime))),
        ("communication", Value::Share(share(Layer::Communication))),
        ("measurement", Value::Share(share(Layer::Measurement))),
        ("copies", Value::Share(copies)),
    ];
    (layer, Message::new(text, step_args(rank, class).into_iter().chain(args).chain(largest(cx, class))))
}
